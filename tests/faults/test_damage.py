"""Damaged, swapped, missing and foreign metadata files: noticed or harmless, and repaired by the next refresh."""

from __future__ import annotations

import json
import os
import random
import shutil

import pytest

from skipstone.expressions.tree import And, EqualTo, IsNotNull, Literal
from tests.faults.actions import act_and_die
from tests.faults.aftermath import Scene, check_aftermath, repair
from tests.faults.forging import reseal
from tests.faults.injectors import cuts, flips, rewrites, run_and_die
from tests.faults.lake import FEW_QUERIES, NAME, PRICE, Lake, make_indexed, needed_files, write_object

SEED = 20_240_229
FLIPS, CUTS, REPAIR_EVERY = 40, 6, 12
"""In the default run: bytes flipped and lengths cut to per file, and after which share of damages it is repaired."""

OF_EVERY_INDEX = (And((FEW_QUERIES[0], IsNotNull(NAME), IsNotNull(PRICE))),)
"""One query that asks all indexes."""


@pytest.fixture
def scene(lakes):
    return Scene(make_indexed(lakes / "lake"), lakes / "kept")


def damaged(scene, tally, kind, *, repaired):
    """Ask, count whether the damage was noticed, and have it repaired if that is asked for."""
    count = tally.of("damaged metadata", kind)
    lake = scene.lake.reopened()
    if repaired:
        check_aftermath(lake, tally, count)
        scene.again()
        return
    count.faults += 1
    answers = lake.ask(OF_EVERY_INDEX)
    tally.asked(count, answers)
    count.noticed += bool(answers.said)
    assert answers.said or answers.skipped == 5, "damage that was not noticed changed what is skipped"


def test_any_byte_of_any_file(scene, tally, long):
    """A sample that is spread over every file, twenty times as large in the long run."""
    chosen = random.Random(SEED)
    most = (20 * FLIPS, 20 * CUTS) if long else (FLIPS, CUTS)
    tried = 0
    for file in scene.again().metadata_files().values():
        whole = file.read_bytes()
        for kind, damage in (*flips(whole, chosen, most[0]), *cuts(whole, chosen, most[1]), *rewrites(whole, chosen)):
            file.write_bytes(damage)
            damaged(scene, tally, kind, repaired=tried % (REPAIR_EVERY * (20 if long else 1)) == 0)
            file.write_bytes(whole)
            tried += 1
    kinds = tally.counts["damaged metadata"]
    assert kinds["flipped byte"].faults > 200
    assert kinds["flipped byte"].noticed > 0.3 * kinds["flipped byte"].faults, "hardly a damage was ever looked at"


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("folder", ["_parts", "_manifests"])
def test_a_file_that_is_gone(scene, tally, folder, which):
    lake = scene.again()
    sorted((lake.metadata / folder).iterdir())[which].unlink()
    check_aftermath(lake, tally, tally.of("damaged metadata", f"file of {folder} gone"))


@pytest.mark.parametrize("folder", ["_parts", "_manifests", "."])
def test_a_folder_that_is_gone(scene, tally, folder):
    lake = scene.again()
    shutil.rmtree(lake.metadata / folder)
    check_aftermath(lake, tally, tally.of("damaged metadata", "folder gone"))


def test_parts_that_changed_places(scene, tally):
    lake = scene.again()
    first, second, third = sorted((lake.metadata / "_parts").iterdir())
    contents = [part.read_bytes() for part in (first, second, third)]
    for order in ((1, 0, 2), (2, 0, 1), (0, 0, 0)):
        for part, place in zip((first, second, third), order, strict=True):
            part.write_bytes(contents[place])
        check_aftermath(scene.lake, tally, tally.of("damaged metadata", "parts swapped"))
        scene.again()


def test_files_of_another_dataset(scene, tally, lakes):
    """A part, a manifest, and all of the metadata of a dataset whose objects hold other rows under the same names."""
    other = Lake(lakes / "other")
    for number in range(6):
        write_object(other.path(number), number, f"other-{number}")
    other.create()
    for number in range(2):
        write_object(other.path(number), number, "again", modified=1_700_005_000)
        other.refresh()
    count = tally.of("damaged metadata", "files of another dataset")
    theirs = sorted((other.metadata / "_parts").iterdir())
    for n, part in enumerate(sorted((scene.lake.metadata / "_parts").iterdir())):
        part.write_bytes(theirs[n].read_bytes())
        check_aftermath(scene.lake, tally, count)
        scene.again()
    for n, manifest in enumerate(sorted((scene.lake.metadata / "_manifests").iterdir())):
        manifest.write_bytes(sorted((other.metadata / "_manifests").iterdir())[n].read_bytes())
        check_aftermath(scene.lake, tally, count)
        scene.again()
    shutil.rmtree(scene.lake.metadata)
    shutil.copytree(other.metadata, scene.lake.metadata)
    check_aftermath(scene.lake, tally, count)


def test_an_older_copy_of_the_metadata_put_back(scene, tally, lakes):
    """A restored backup: the objects that changed since are read, whatever the copy says of them."""
    lake = scene.again()
    shutil.copytree(lake.metadata, lakes / "backup")
    for number in range(3):
        write_object(lake.path(number), number, "changed", modified=1_700_006_000)
        lake.refresh()
    shutil.rmtree(lake.metadata)
    shutil.copytree(lakes / "backup", lake.metadata)
    check_aftermath(lake, tally, tally.of("damaged metadata", "older copy put back"))


def test_metadata_of_a_later_format_is_left_alone(scene, tally):
    """It is neither believed nor made anew by a refresh: a later release keeps it."""
    lake = scene.again()
    newest = max((lake.metadata / "_manifests").iterdir())
    reseal(newest, format_version=99)
    count = tally.of("damaged metadata", "later format")
    count.faults += 1
    answers = lake.ask()
    tally.asked(count, answers)
    count.noticed += bool(answers.said)
    assert answers.skipped == 0
    assert "pip install --upgrade" in answers.said[0]
    with pytest.raises(Exception, match="pip install --upgrade"):
        lake.refresh()
    assert json.loads(newest.read_text())["format_version"] == 99
    lake.drop()
    repair(lake)
    tally.asked(count, lake.ask())


def test_a_refresh_that_finds_nothing_new_cleans_too(scene):
    """Else what a killed writer left would stay for ever where data never changes again."""
    lake = scene.again()
    (lake.metadata / "_parts/_orphan.part").write_text("garbage")
    (lake.metadata / f"_manifests/.{'0' * 32}.tmp").write_text("garbage")
    lake.refresh()
    assert set(lake.metadata_files()) - needed_files(lake), "a writer may be at work on them"
    version = lake.refresh().version
    lake.age(2 * 86_400)
    assert lake.refresh().version == version
    assert not set(lake.metadata_files()) - needed_files(lake)


def test_a_drop_that_is_killed_does_not_bring_an_older_version_back(lakes, tally):
    """An object that got other rows and its old length and time: only a later version knew that it had changed."""
    lake = make_indexed(lakes / "lake", versions=1)
    old = lake.path(2).stat()
    for version in range(8):
        write_object(lake.path(2), 2, "another", modified=1_700_004_000 + version)
        lake.refresh()
    write_object(lake.path(2), 2, "name-X")
    os.utime(lake.path(2), ns=(old.st_atime_ns, old.st_mtime_ns))
    assert lake.path(2).stat().st_size == old.st_size
    query = (EqualTo(NAME, Literal("name-X", "string")),)
    newest = max(name for name in lake.metadata_files() if name.startswith("_manifests/"))
    scene = Scene(lake, lakes / "kept")
    count = tally.of("killed (SIGKILL)", "drop of all, after many versions")
    for step in range(1, 100):
        if not run_and_die(act_and_die, step, "drop of all", scene.again().folder):
            break
        count.faults += 1
        tally.asked(count, lake.reopened().ask(query))
        left = [name for name in lake.metadata_files() if name.startswith("_manifests/")]
        assert not left or max(left) == newest
    assert count.faults > 5
