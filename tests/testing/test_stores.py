"""The suite for authors of stores finds what is wrong with a store."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from skipstone.stores.memory import InMemoryStore
from skipstone.stores.metadata_store import Change, Evaluation
from skipstone.testing.stores import assert_store


class ForgetsRemovals(InMemoryStore):
    def commit(self, root, base, change, *, replace=False):
        return super().commit(root, base, Change(change.indexes, change.added), replace=replace)


class LastWriterWins(InMemoryStore):
    def commit(self, root, base, change, *, replace=False):
        return super().commit(root, self.latest(root), change, replace=replace)


class UnknownIsAbsent(InMemoryStore):
    def evaluate(self, snapshot, clause):
        kept = super().evaluate(snapshot, clause).kept
        for record in snapshot.indexes:
            if any(index.name == record.name for index, _ in clause.requires):
                kept = kept & self.coverage(snapshot, record)
        return Evaluation(kept, 0)


class KeepsAll(InMemoryStore):
    def evaluate(self, snapshot, clause):
        return Evaluation(np.ones(snapshot.object_count, np.bool_), 0)


class DropsNothing(InMemoryStore):
    def drop(self, root):
        pass


class StaleLatest(InMemoryStore):
    def latest(self, root):
        found = super().latest(root)
        return None if found is None else replace(found, version=1)


@pytest.mark.parametrize(
    ("store", "said"),
    [
        (ForgetsRemovals, "the number of objects|the paths"),
        (LastWriterWins, "CommitConflictError"),
        (UnknownIsAbsent, "keeps"),
        (KeepsAll, "keeps"),
        (DropsNothing, "a dropped dataset"),
        (StaleLatest, "the latest snapshot|must change nothing"),
    ],
)
def test_a_store_that_is_wrong_is_found_out(store, said):
    with pytest.raises(AssertionError, match=said):
        assert_store(store, examples=200)


def test_a_store_that_is_right_passes():
    assert assert_store(InMemoryStore) > 20
