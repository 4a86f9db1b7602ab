"""File systems: the same small contract on local disks and through the JVM, odd names and all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from skipstone.engines.spark.hadoop import HadoopFileSystem, file_system_for
from skipstone.stores.parquet.filesystem import LocalFileSystem, local_file_system, scheme_of
from skipstone.stores.parquet.store import ParquetStore
from skipstone.testing.store_model import HasValue, Model, StoredRangeIndex, assert_same, commit, record, rows_of

A = StoredRangeIndex("a")
RA = record(A, "a")


class Creating(HadoopFileSystem):
    """Through the JVM, committed as on a file system of which nothing is known."""

    renaming = ()


@pytest.fixture(params=["local", "rename", "create"])
def file_system(request):
    if request.param == "local":
        return LocalFileSystem()
    session = request.getfixturevalue("spark")
    return (HadoopFileSystem if request.param == "rename" else Creating)(session)


@pytest.fixture
def folder(tmp_path):
    odd = tmp_path / "a b%20c#d+e=ü"
    odd.mkdir()
    return f"file:{odd}"


def test_files_come_back_as_they_went(file_system, folder, tmp_path):
    data = bytes(range(256)) * 1000
    local = tmp_path / "local file%41"
    local.write_bytes(data)
    file_system.put(f"{folder}/x.part", local)
    assert file_system.exists(f"{folder}/x.part")
    assert file_system.read(f"{folder}/x.part", len(data)) == data
    for ranges in ([(0, 3), (255, 20_000), (len(data) - 4, 4)], [(0, 3), (5, 0)]):
        found = file_system.read_ranges(f"{folder}/x.part", ranges, len(data))
        assert found == [data[o : o + n] for o, n in ranges]
    (entry,) = [e for e in file_system.list_folder(folder) if not e.name.endswith(".crc")]
    assert entry[:2] == ("x.part", len(data))
    assert abs(entry.modified - (Path(folder[5:]) / "x.part").stat().st_mtime * 1000) < 1000
    file_system.delete(f"{folder}/x.part")
    file_system.delete(f"{folder}/x.part")
    assert not file_system.exists(f"{folder}/x.part")


def test_what_is_not_there_is_file_not_found(file_system, folder):
    with pytest.raises(FileNotFoundError):
        file_system.list_folder(f"{folder}/nowhere")
    with pytest.raises(FileNotFoundError):
        file_system.read(f"{folder}/nothing", 5)
    file_system.delete(f"{folder}/nowhere", recursive=True)


def test_a_file_that_became_shorter_is_not_read_as_whole(file_system, folder):
    (Path(folder[5:]) / "x").write_bytes(b"abc")
    for ranges, expected in (([(0, 5)], [b"abc"]), ([(0, 2), (2, 3)], [b"ab", b"c"])):
        try:
            found = file_system.read_ranges(f"{folder}/x", ranges, 5)
        except OSError:
            continue
        assert found == expected


def test_folders_are_made_and_deleted_whole(file_system, folder):
    file_system.make_folder(f"{folder}/p/q")
    file_system.make_folder(f"{folder}/p/q")
    assert file_system.create_if_absent(f"{folder}/p/q/f", b"1")
    file_system.delete(f"{folder}/p", recursive=True)
    assert not file_system.exists(f"{folder}/p")


def test_the_first_to_create_wins(file_system, folder):
    assert file_system.create_if_absent(f"{folder}/0001.json", b"first")
    assert not file_system.create_if_absent(f"{folder}/0001.json", b"second")
    assert file_system.read(f"{folder}/0001.json", 5) == b"first"
    assert [e.name for e in file_system.list_folder(folder) if not e.name.endswith(".crc")] == ["0001.json"]


def test_threads_that_create_have_one_winner_each_time(folder):
    file_system = LocalFileSystem()
    for n in range(30):
        barrier, wins = threading.Barrier(4), []

        def create(number, n=n, barrier=barrier, wins=wins):
            barrier.wait()
            if file_system.create_if_absent(f"{folder}/{n}", str(number).encode()):
                wins.append(str(number).encode())

        threads = [threading.Thread(target=create, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wins == [file_system.read(f"{folder}/{n}", 1)]
    assert not list(Path(folder[5:]).glob(".*"))


def test_without_hard_links_creation_still_has_one_winner(folder, monkeypatch):
    def no_links(*arguments):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    file_system = LocalFileSystem()
    assert file_system.create_if_absent(f"{folder}/x", b"first")
    assert not file_system.create_if_absent(f"{folder}/x", b"other")
    assert file_system.read(f"{folder}/x", 5) == b"first"


def test_a_deleted_recursive_folder_may_be_a_link(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/data").write_text("precious")
    (Path(folder[5:]) / "link").symlink_to(tmp_path / "elsewhere")
    LocalFileSystem().delete(f"{folder}/link", recursive=True)
    assert (tmp_path / "elsewhere/data").exists()


@pytest.mark.parametrize(
    ("path", "scheme"), [("file:/x", "file"), ("S3A://b/k", "s3a"), ("/x:y", ""), ("hdfs://n/x", "hdfs"), ("x", "")]
)
def test_schemes(path, scheme):
    assert scheme_of(path) == scheme


def test_one_place_has_one_spelling():
    local = LocalFileSystem()
    assert {local.qualify(p) for p in ("file:/x/y", "file:///x/y/", "/x/y", "file:/x//y")} == {"file:/x/y"}


def test_the_disk_is_used_directly_and_the_rest_needs_a_session(spark, tmp_path):
    assert isinstance(file_system_for("file:/x", spark), LocalFileSystem)
    assert isinstance(file_system_for(str(tmp_path), spark), LocalFileSystem)
    assert isinstance(file_system_for("hdfs://x/y", spark), HadoopFileSystem)
    assert HadoopFileSystem(spark).qualify(f"{tmp_path}/a b/") == f"file:{tmp_path}/a b"
    with pytest.raises(OSError, match="session"):
        local_file_system("s3a://b/k")


def test_what_is_atomic_is_said(spark, tmp_path):
    assert LocalFileSystem().atomic_commits("file:/x")
    assert HadoopFileSystem(spark).atomic_commits("hdfs://x/y")
    assert not Creating(spark).atomic_commits(f"file:{tmp_path}")


def test_an_unreachable_file_system_is_an_os_error(spark):
    with pytest.raises(OSError, match="nosuch"):
        HadoopFileSystem(spark).list_folder("nosuch://host/x")


def test_the_whole_store_works_through_the_jvm(spark, tmp_path):
    store = ParquetStore(lambda path: HadoopFileSystem(spark), f"file:{tmp_path}", max_parts=2)
    model, snapshot = Model(), None
    for n in range(4):
        snapshot = commit(store, snapshot, model, [RA], rows_of(3, start=2 * n), removed=[f"{n}"])
        assert store.latest(snapshot.root).id == snapshot.id
        assert assert_same(store, snapshot, model, [HasValue(A, 25)])
    store.drop(snapshot.root)
    assert store.latest(snapshot.root) is None
