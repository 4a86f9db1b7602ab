"""Pruning without an engine: what is kept, skipped, stale and unindexed, case by case."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from skipstone.errors import MetadataStoreError
from skipstone.indexing.objects import DataObject
from skipstone.querying import prune as module
from skipstone.querying.plan import Decision, Plan
from skipstone.querying.prune import prune
from skipstone.stores.metadata_store import Evaluation, Snapshot
from skipstone.stores.parquet.layout import HIDDEN_FOLDER

LISTED = DataObject("file:/d/ä b.parquet", 10, 1_000)
TAGGED = DataObject("s3a://d/x", 10, 1_000, "tag")


class Answers:
    """A plan of several snapshots, each given as its objects and the rows it keeps (``None``: it says nothing)."""

    def __init__(self, *answers):
        self._tables = {}
        decisions = []
        for number, (rows, kept) in enumerate(answers):
            snapshot = Snapshot(str(number), "file:/d", "", 1, (), len(rows))
            self._tables[snapshot.id] = table(rows)
            evaluation = None if kept is None else Evaluation(np.array(kept, np.bool_), 0)
            decisions.append(Decision(snapshot, None, evaluation))
        self.plan = Plan(tuple(decisions))

    def prune(self, *listing):
        found = prune(self.plan, listing, lambda snapshot: self._tables[snapshot.id])
        assert {*found.stale, *found.unindexed} <= {*found.kept}
        return found


def table(rows):
    return pa.table(
        {
            "digest": pa.array([r.digest for r in rows], pa.binary(16)),
            "length": pa.array([r.length for r in rows], pa.int64()),
            "modified": pa.array([r.modified for r in rows], pa.int64()),
            "etag": pa.array([r.etag for r in rows], pa.string()),
        }
    )


def outcome(found):
    return tuple(map(len, (found.kept, found.skipped, found.stale, found.unindexed)))


SKIPPED, KEPT, STALE, UNINDEXED = (0, 1, 0, 0), (1, 0, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1)


@pytest.mark.parametrize(
    ("listed", "answers", "expected"),
    [
        (LISTED, [], UNINDEXED),
        (LISTED, [([], [])], UNINDEXED),
        (LISTED, [([LISTED], [False])], SKIPPED),
        (LISTED, [([LISTED], [True])], KEPT),
        (LISTED, [([LISTED], None)], KEPT),
        (LISTED, [([DataObject(LISTED.path, 11, 1_000)], [False])], STALE),
        (LISTED, [([DataObject(LISTED.path, 10, 999)], [False])], STALE),
        (LISTED, [([DataObject(LISTED.path, 11, 1_000)], None)], STALE),
        (LISTED, [([TAGGED], [False])], UNINDEXED),
        (LISTED, [([LISTED, LISTED], [False, False])], STALE),
        (LISTED, [([LISTED, LISTED, LISTED], [False, False, False])], STALE),
        # E-tags: what was recorded with one needs the same; what was recorded without one takes any.
        (TAGGED, [([TAGGED], [False])], SKIPPED),
        (TAGGED, [([DataObject(TAGGED.path, 10, 1_000)], [False])], SKIPPED),
        (TAGGED, [([DataObject(TAGGED.path, 10, 1_000, "other")], [False])], STALE),
        (DataObject(TAGGED.path, 10, 1_000), [([TAGGED], [False])], STALE),
        # Several snapshots: one proof is enough, and one that describes the object makes it known.
        (LISTED, [([LISTED], [True]), ([LISTED], [False])], SKIPPED),
        (LISTED, [([DataObject(LISTED.path, 11, 1_000)], [True]), ([LISTED], [False])], SKIPPED),
        (LISTED, [([DataObject(LISTED.path, 11, 1_000)], [False]), ([LISTED], [True])], KEPT),
        (LISTED, [([DataObject(LISTED.path, 11, 1_000)], [False]), ([TAGGED], [False])], STALE),
        # Files of metadata are no data.
        (DataObject("file:/d/_skipstone/x", 1, 1), [([DataObject("file:/d/_skipstone/x", 1, 1)], [False])], UNINDEXED),
    ],
)
def test_one_object(listed, answers, expected):
    assert outcome(Answers(*answers).prune(listed)) == expected


def test_order_and_objects_that_are_listed_twice_or_gone():
    other, gone = DataObject("file:/d/other", 1, 1), DataObject("file:/d/gone", 2, 2)
    found = Answers(([gone, LISTED, other], [False, False, True])).prune(other, LISTED, LISTED, TAGGED)
    assert (found.kept, found.skipped) == ((other, TAGGED), (LISTED, LISTED))
    assert (found.stale, found.unindexed) == ((), (TAGGED,))


@pytest.mark.parametrize(("rows", "kept"), [(2, 1), (1, 2), (0, 1), (1, 0)])
def test_an_answer_of_another_length_is_refused(rows, kept):
    with pytest.raises(MetadataStoreError, match="instead of"):
        Answers(([LISTED] * rows, [False] * kept)).prune(LISTED)


def test_one_name_of_the_folder_of_metadata():
    assert f"/{HIDDEN_FOLDER}/" == module._METADATA_FOLDER
