"""A file system that fails at its n-th call, for every n: while metadata is written, and while it is read."""

from __future__ import annotations

import pytest

from skipstone.errors import IndexNotFoundError, MetadataStoreError
from tests.faults.actions import SCENES, make_scene
from tests.faults.aftermath import Scene, check_aftermath
from tests.faults.injectors import FAULTS, FaultyFileSystem
from tests.faults.lake import FEW_QUERIES, Lake, make_indexed

READING = ["EIO", "EACCES", "ETIMEDOUT", "ENOENT", "short read", "stale listing"]


def act(name, scene, fault, at):
    """Do it on a disk that fails once; gives the call that failed, or ``None``, and what was said."""
    action, _, max_parts = SCENES[name]
    disk = FaultyFileSystem(FAULTS[fault], at)
    lake = Lake(scene.again().folder, lambda path: disk, objects=0, max_parts=max_parts)
    try:
        action(lake)
    except (MetadataStoreError, IndexNotFoundError) as error:
        return disk.trigger.fired, str(error)
    return disk.trigger.fired, None


@pytest.mark.parametrize("name", SCENES)
def test_every_call_fails_once_while_metadata_is_written(lakes, tally, long, name):
    """In the default run every call fails in two ways of nine, in the long one in all."""
    scene = Scene(make_scene(name, lakes / "lake"), lakes / "kept")
    kinds = list(FAULTS)
    at, done, refused = 1, 0, 0
    while not done:
        chosen = kinds if long else [kinds[(at + shift) % len(kinds)] for shift in (0, 4)]
        for fault in chosen:
            failed, said = act(name, scene, fault, at)
            if failed is None:
                done += 1
                continue
            if said is not None:
                refused += 1
                assert any(word in said for word in ("_skipstone", "try again", "drop the indexes", "has no index")), (
                    said
                )
            check_aftermath(scene.lake, tally, tally.of("file system fails, writing", fault))
        at += 1
    assert at > 5 or name == "drop of all"
    assert refused > 0


@pytest.mark.parametrize("fault", READING)
def test_every_call_fails_once_while_queries_are_planned(lakes, tally, fault):
    lake = make_indexed(lakes / "lake")
    count = tally.of("file system fails, reading", fault)
    for at in range(1, 1000):
        disk = FaultyFileSystem(FAULTS[fault], at)
        asking = Lake(lake.folder, lambda path, disk=disk: disk, objects=0)
        answers = asking.ask(FEW_QUERIES)
        if disk.trigger.fired is None:
            break
        count.faults += 1
        count.noticed += bool(answers.said)
        tally.asked(count, answers)
        again = asking.ask(FEW_QUERIES)
        tally.asked(count, again)
        assert again.skipped > 10, "the store did not recover from one fault"
    assert count.faults > 8


@pytest.mark.parametrize("fault", READING[:4])
def test_a_disk_that_stays_broken(lakes, tally, fault):
    """From some call on nothing works any more, until the disk is repaired."""
    lake = make_indexed(lakes / "lake")
    count = tally.of("file system fails, for good", fault)
    for at in range(1, 12):
        disk = FaultyFileSystem(FAULTS[fault], at, lasts=True)
        asking = Lake(lake.folder, lambda path, disk=disk: disk, objects=0)
        answers = asking.ask(FEW_QUERIES)
        tally.asked(count, answers)
        assert disk.trigger.fired
        count.faults += 1
        count.noticed += bool(answers.said)
        with pytest.raises((MetadataStoreError, IndexNotFoundError), match="_skipstone|has no index"):
            asking.refresh()
    sound = lake.reopened().ask()
    tally.asked(count, sound)
    assert sound.skipped > 30
