"""What installed sources import is read once on a machine, and again wherever anything is doubtful."""

from __future__ import annotations

from pathlib import Path

import pytest

from skipstone.functions.identity.import_cache import kept_imports

FOUND = frozenset({"numpy", "os.path", "ümod"})


class Reader:
    """Counts how often sources are read."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> frozenset[str]:
        self.count += 1
        return FOUND


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SKIPSTONE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "imports"


def test_the_sources_of_one_build_are_read_once(folder):
    read = Reader()
    assert [kept_imports("a==1/x", read) for _ in range(3)] == [FOUND] * 3
    assert read.count == 1
    assert [path.name for path in folder.iterdir()] == [path.name for path in folder.glob("?" * 32)]


def test_another_build_is_another(folder):
    read = Reader()
    for distribution in ("a==1/x", "a==1/y", "a==2/x", "b==1/x"):
        kept_imports(distribution, read)
    assert read.count == 4


def test_nothing_that_is_imported_is_kept_too(folder):
    assert kept_imports("a==1/x", frozenset) == kept_imports("a==1/x", Reader()) == frozenset()


@pytest.mark.parametrize("damage", [b"", b"numpy", b"numpy\n", b"\xff\xfe\n."])
def test_a_damaged_file_is_not_believed(folder, damage):
    read = Reader()
    kept_imports("a==1/x", read)
    (file,) = folder.iterdir()
    file.write_bytes(damage)
    assert kept_imports("a==1/x", read) == FOUND
    assert read.count == 2


def test_a_folder_that_is_a_file_keeps_nothing(folder):
    folder.parent.mkdir()
    folder.write_text("in the way")
    read = Reader()
    assert [kept_imports("a==1/x", read) for _ in range(2)] == [FOUND] * 2
    assert read.count == 2


def test_without_a_home_nothing_is_kept(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("SKIPSTONE_CACHE", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    assert kept_imports("a==1/x", Reader()) == FOUND


def test_what_cannot_be_put_in_its_place_is_not_left_behind(folder, monkeypatch):
    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert kept_imports("a==1/x", Reader()) == FOUND
    assert list(folder.iterdir()) == []
