"""Every two files of a store damaged at once: after a refresh all indexes are there, or what is lost is said."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from skipstone import MinMaxIndex, ValueListIndex
from tests.faults.aftermath import Scene
from tests.faults.lake import FEW_QUERIES, Lake

NAMES = ["valuelist(name)", "minmax(price)"]
"""The indexes of version 4: one is made in each of the first three, the first is dropped in the last."""


def flip(path):
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)


DAMAGES = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "flipped": flip,
    "emptied": lambda path: path.write_bytes(b""),
    "deleted": lambda path: path.unlink(),
}
IN_SHORT = {("truncated", "truncated"), ("flipped", "deleted"), ("deleted", "flipped"), ("deleted", "deleted")}


@pytest.fixture
def scene(lakes):
    lake = Lake(lakes / "lake", objects=3)
    for index in (MinMaxIndex("id"), ValueListIndex("name"), MinMaxIndex("price")):
        lake.create(index)
    lake.drop("minmax(id)")
    return Scene(lake, lakes / "kept")


def of_newest(name):
    return "4.json" in name


def test_every_pair(scene, tally, long):
    count = tally.of("damaged metadata, in pairs", "two files")
    files = sorted(scene.again().metadata_files())
    assert len(files) == 4 + 4 + 3
    outcomes = {"all there": 0, "said": 0, "unknown": 0}
    kinds = [pair for pair in product(DAMAGES, DAMAGES) if long or pair in IN_SHORT]
    for (one, two), (first, second) in product(combinations(files, 2), kinds):
        lake = scene.again()
        where = f"{one} {first}, {two} {second}"
        DAMAGES[first](lake.metadata / one)
        DAMAGES[second](lake.metadata / two)
        count.faults += 1
        before = lake.reopened().ask(FEW_QUERIES)
        tally.asked(count, before)
        count.noticed += bool(before.said)
        report = lake.reopened().refresh()
        tally.asked(count, lake.reopened().ask(FEW_QUERIES))
        assert list(report.indexes) == [row[0] for row in lake.reopened().describe()], where
        both = of_newest(one) and of_newest(two)
        if both and (first, second) == ("deleted", "deleted"):
            outcomes["unknown"] += 1  # nothing tells that there was a version 4
            assert list(report.indexes) == ["minmax(id)", *NAMES], where
            assert report.version == 3, where
        elif both:
            outcomes["said"] += 1
            assert list(report.indexes) == ["minmax(id)", *NAMES], where
            assert "version 4 was damaged" in report.lost[0], where
            assert "one dropped since then is back" in report.lost[0], where
        else:
            outcomes["all there"] += 1
            assert list(report.indexes) == NAMES, where
            assert report.lost == (), where
        assert lake.reopened().refresh().repaired == "", f"{where}: not repaired for good"
        count.repaired += 1
    assert outcomes["unknown"] == 1
    assert outcomes["said"] == len(kinds) - 1
    assert outcomes["all there"] == 54 * len(kinds)
