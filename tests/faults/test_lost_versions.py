"""A damaged or deleted newest version: a refresh brings back every index it had, or says what is lost."""

from __future__ import annotations

import dataclasses
import json
import shutil

import pytest

from skipstone import MinMaxIndex, ValueListIndex
from skipstone.cli.main import _print_report
from skipstone.cli.output import Output
from skipstone.errors import CommitConflictError, IndexNotFoundError, MetadataCorruptError, MetadataTooNewError
from skipstone.stores.parquet.filesystem import LocalFileSystem
from skipstone.stores.parquet.store import ParquetStore
from tests.faults.forging import reseal, seal
from tests.faults.lake import Lake, write_object
from tests.faults.test_found_by_attack import key_file, local_keys

MINMAX, VALUES, PRICES = "minmax(id)", "valuelist(name)", "minmax(price)"


@pytest.fixture
def lake(lakes):
    """Version 1 has an index, version 2 two."""
    made = Lake(lakes / "lake")
    made.create(MinMaxIndex("id"))
    made.create(ValueListIndex("name"))
    return made


def file_of(lake, version, kind="_manifests"):
    return lake.metadata / kind / f"_{version:020d}.json"


def cut(path):
    path.write_bytes(path.read_bytes()[:-50])


def names_of(lake):
    return [record.name for record in lake.reopened().store.latest(lake.root).indexes]


DAMAGES = {"truncated": cut, "emptied": lambda path: path.write_bytes(b""), "deleted": lambda path: path.unlink()}


@pytest.mark.parametrize("damage", DAMAGES)
def test_indexes_made_after_the_older_version_are_made_again(lake, damage):
    DAMAGES[damage](file_of(lake, 2))
    report = lake.reopened().refresh()
    assert report.indexes == (MINMAX, VALUES)
    assert names_of(lake) == [MINMAX, VALUES]
    assert report.version == 3
    assert report.lost == ()
    assert "the definitions of version 2" in report.repaired
    assert f"repaired: {report.repaired}" in str(report)
    assert json.loads(json.dumps(report, default=dataclasses.asdict))["repaired"] == report.repaired
    assert lake.reopened().ask().skipped > 20
    assert lake.reopened().refresh().repaired == ""


def test_both_copies_damaged_say_what_is_lost(lake):
    cut(file_of(lake, 2))
    cut(file_of(lake, 2, "_definitions"))
    report = lake.reopened().refresh()
    assert report.indexes == (MINMAX,)
    (lost,) = report.lost
    assert "version 2 was damaged and cannot be read; what changed after version 1 is lost" in lost
    assert f"what is left of it names {VALUES}" in lost
    assert f"as of version 1: {MINMAX}" in lost
    assert f"\n  lost: {lost}" in str(report)
    assert json.loads(json.dumps(report, default=dataclasses.asdict))["lost"] == [lost]


@pytest.mark.parametrize("output", Output)
def test_the_command_line_says_what_is_lost(lake, capsys, output):
    cut(file_of(lake, 2))
    cut(file_of(lake, 2, "_definitions"))
    report = lake.reopened().refresh()
    _print_report(report, output)
    said = capsys.readouterr().out
    if output is Output.JSON:
        assert json.loads(said)["lost"] == list(report.lost)
        assert json.loads(said)["repaired"] == report.repaired
    else:
        assert f"\n  lost: {report.lost[0]}" in said
        assert "\n  repaired: the metadata was damaged" in said


@pytest.mark.parametrize(
    ("of_manifest", "of_definitions"), [("deleted", "emptied"), ("emptied", "deleted"), ("emptied", "emptied")]
)
def test_as_long_as_anything_tells_of_a_version_its_loss_is_said(lake, of_manifest, of_definitions):
    DAMAGES[of_manifest](file_of(lake, 2))
    DAMAGES[of_definitions](file_of(lake, 2, "_definitions"))
    report = lake.reopened().refresh()
    assert report.indexes == (MINMAX,)
    assert "what changed after version 1 is lost" in report.lost[0]
    assert report.version == 3


def test_a_dropped_index_does_not_come_back(lake):
    lake.drop(MINMAX)
    cut(file_of(lake, 3))
    report = lake.reopened().refresh()
    assert report.indexes == (VALUES,)
    assert report.lost == ()


def test_a_dropped_index_that_comes_back_is_said_to(lake):
    lake.drop(MINMAX)
    cut(file_of(lake, 3))
    file_of(lake, 3, "_definitions").unlink()
    report = lake.reopened().refresh()
    assert report.indexes == (MINMAX, VALUES)
    assert "one dropped since then is back, and drop_indexes(…) drops it again" in report.lost[0]
    assert MINMAX in report.lost[0]


def test_metadata_of_before_there_were_definitions(lake):
    shutil.rmtree(lake.metadata / "_definitions")
    assert lake.reopened().ask().skipped > 20
    cut(file_of(lake, 2))
    report = lake.reopened().refresh()
    assert report.indexes == (MINMAX,)
    assert VALUES in report.lost[0]


@pytest.mark.parametrize("damage", ["truncated", "deleted"])
def test_a_refresh_that_finds_nothing_new_mends_the_definitions(lake, damage):
    definitions = file_of(lake, 2, "_definitions")
    whole = definitions.read_bytes()
    DAMAGES[damage](definitions)
    assert lake.reopened().refresh().version == 2
    assert definitions.read_bytes() == whole


def test_the_whole_folder_of_manifests_deleted(lake):
    shutil.rmtree(lake.metadata / "_manifests")
    report = lake.reopened().refresh()
    assert report.indexes == (MINMAX, VALUES)
    assert report.version == 3


@pytest.mark.parametrize("action", [lambda lake: lake.create(MinMaxIndex("price")), lambda lake: lake.drop(MINMAX)])
def test_nothing_is_committed_on_top_of_an_older_version(lake, action):
    """Its number would be that of the lost one, and nothing would tell of that any more."""
    file_of(lake, 2).unlink()
    files = set(lake.metadata_files())
    with pytest.raises(MetadataCorruptError, match=r"version 2 is gone .* `refresh\(\)` makes its indexes again"):
        action(lake.reopened())
    with pytest.raises(MetadataCorruptError, match="version 2 is gone"):
        lake.reopened().describe()
    assert set(lake.metadata_files()) == files
    lake.reopened().refresh()
    action(lake.reopened())


def test_dropped_metadata_is_not_taken_for_lost(lake):
    lake.drop()
    with pytest.raises(IndexNotFoundError):
        lake.reopened().refresh()
    lake.create(MinMaxIndex("price"))
    assert names_of(lake) == [PRICES]


def test_a_writer_that_is_overtaken_by_a_drop_leaves_no_definitions(lakes):
    """It has committed; before it writes the definitions everything is dropped."""
    lake = Lake(lakes / "lake")

    class Overtaken(LocalFileSystem):
        def make_folder(self, folder):
            if folder.endswith("_definitions"):
                Lake(lakes / "lake", objects=0).drop()
            super().make_folder(folder)

    Lake(lake.folder, lambda path: Overtaken(), objects=0).create(MinMaxIndex("id"))
    assert not file_of(lake, 1, "_definitions").exists()
    with pytest.raises(IndexNotFoundError):
        lake.reopened().refresh()


def test_a_drop_between_two_listings_is_no_loss(lake):
    """The refresh has seen the definitions when another process drops everything."""

    class Late(LocalFileSystem):
        dropped = False

        def list_folder(self, folder):
            if folder.endswith("_manifests") and not Late.dropped:
                Late.dropped = True
                Lake(lake.folder, objects=0).drop()
            return super().list_folder(folder)

    with pytest.raises(IndexNotFoundError):
        Lake(lake.folder, lambda path: Late(), objects=0).refresh()


def test_a_commit_does_not_depend_on_its_definitions(lakes):
    class Without(LocalFileSystem):
        def make_folder(self, folder):
            if folder.endswith("_definitions"):
                raise PermissionError(13, "may not be written", folder)
            super().make_folder(folder)

    lake = Lake(lakes / "lake", lambda path: Without())
    assert lake.create(MinMaxIndex("id")).version == 1
    assert not (lake.metadata / "_definitions").exists()
    assert names_of(lake) == [MINMAX]


def test_forged_definitions_change_no_answer(lake):
    """Whatever they say, only a refresh of damaged metadata looks at them, and collects."""
    before = lake.reopened().ask()
    for version in (2, 3, 1 << 49):
        forged = file_of(lake, version, "_definitions")
        shutil.copy(file_of(lake, 1, "_definitions"), forged) if version != 2 else None
        reseal(forged, lambda c: c["indexes"][0]["fields"].update(low="string"), version=version)
    after = lake.reopened().ask()
    assert (after.skipped, after.wrong, after.failed) == (before.skipped, 0, 0)
    report = lake.reopened().refresh()  # the highest number tells of a lost version, and is believed for no more
    assert report.indexes == (MINMAX,)
    assert f"the definitions of version {1 << 49}" in report.repaired
    assert lake.reopened().ask().wrong == 0


@pytest.mark.parametrize("content", [b"[" * 50_000, b"null", seal(b'{"format_version":1'), b"\xff\xfe"])
def test_definitions_that_are_something_else(lake, content):
    file_of(lake, 3, "_definitions").write_bytes(content)
    report = lake.reopened().refresh()
    assert report.indexes == (MINMAX, VALUES)
    assert "version 3 was damaged" in report.lost[0]


def test_definitions_of_a_later_format_are_left_alone(lake):
    later = file_of(lake, 3, "_definitions")
    shutil.copy(file_of(lake, 2, "_definitions"), later)
    reseal(later, version=3, format_version=99)
    with pytest.raises(MetadataTooNewError, match="pip install --upgrade"):
        lake.reopened().refresh()


def test_sealed_options_stay_sealed_and_are_brought_back(lakes):
    file = key_file(lakes, "medical")
    lake = Lake(lakes / "lake")
    lake.store = ParquetStore(keys=local_keys(file), absent_seconds=0)
    lake.create(MinMaxIndex("id"))
    lake.create(ValueListIndex("name", key="medical", name="names"))
    (record,) = json.loads(file_of(lake, 2, "_definitions").read_text())["indexes"][1:]
    assert record["sealed"]
    assert not record["options"]
    cut(file_of(lake, 2))
    without = lake.reopened().refresh()  # someone without the key
    assert without.indexes == (MINMAX, "names")
    assert any("names: no key 'medical'" in problem for problem in without.problems)
    lake.store = ParquetStore(keys=local_keys(file), absent_seconds=0)
    cut(file_of(lake, 3))
    with_key = lake.refresh()
    assert with_key.indexes == (MINMAX, "names")
    assert with_key.problems == ()
    assert all(row[4] == 6 for row in lake.describe())


def test_two_that_repair_at_once(lake):
    """One of them wins; the other is told, and nothing is lost."""
    cut(file_of(lake, 2))

    class Slow(LocalFileSystem):
        repaired = False

        def make_folder(self, folder):
            if not Slow.repaired:
                Slow.repaired = True
                Lake(lake.folder, objects=0).refresh()
            super().make_folder(folder)

    slow = Lake(lake.folder, lambda path: Slow(), objects=0)
    try:
        slow.refresh()
    except CommitConflictError:
        slow.refresh()
    assert names_of(lake) == [MINMAX, VALUES]


def test_old_definitions_go_with_old_manifests(lake):
    for number in range(12):
        write_object(lake.path(3), 3, modified=1_700_003_000 + number)
        lake.refresh()
    lake.age()
    write_object(lake.path(3), 3, modified=1_700_004_000)
    lake.refresh()
    kept = {path.name for path in (lake.metadata / "_definitions").iterdir()}
    assert kept == {path.name for path in (lake.metadata / "_manifests").iterdir()}
    assert len(kept) == 10
