"""Evaluation by Spark: the same clauses give the same answers on executors as in the driver."""

from __future__ import annotations

import math

import numpy as np
import pytest

from skipstone.engines.spark.evaluation import SparkPartEvaluator
from skipstone.errors import MetadataStoreError
from skipstone.querying.clause import AndClause, OrClause
from skipstone.stores.parquet.store import ParquetStore
from skipstone.stores.parts import buckets
from skipstone.testing.store_model import (
    HasTag,
    HasValue,
    StoredRangeIndex,
    StoredTagsIndex,
    commit,
    record,
    rows_of,
)

A, B, T = StoredRangeIndex("a"), StoredRangeIndex("b"), StoredTagsIndex("t")
RA, RB, RT = record(A, "a"), record(B, "b"), record(T, "t")
CLAUSES = [
    HasValue(A, 25),
    HasTag(T, "x"),
    AndClause((HasValue(A, 25), HasTag(T, "y"))),
    OrClause((HasValue(A, 95), HasTag(T, "y"))),
    HasValue(B, 3),
]


@pytest.fixture
def stores(spark, tmp_path):
    """The same metadata for a driver with memory and for one without, beside data in a folder with an odd name."""
    root = f"file:{tmp_path}/day=1/a b%20[c]{{d}}*"
    return root, ParquetStore(), ParquetStore(cache_bytes=0, part_evaluator=SparkPartEvaluator(spark))


def tagged(count, start=0, **options):
    rows = rows_of(count, start=start, **options)
    for n, row in enumerate(rows):
        row.fields["t"] = {"tags": [["x"], ["y", "z"], [], None][n % 4]}
    return rows


def test_one_part_gives_the_same_answers(stores):
    root, driver, executors = stores
    rows = tagged(20)
    rows[7].trusted = False
    snapshot = commit(driver, None, None, [RA, RT, RB], rows, [RA, RT], root=root)
    for clause in CLAUSES[:4]:
        expected, found = driver.evaluate(snapshot, clause), executors.evaluate(snapshot, clause)
        assert found.by_spark
        assert not expected.by_spark
        assert found.bytes_read > 0
        assert found.kept.tolist() == expected.kept.tolist()
        assert not expected.kept.all()
        assert found.kept[7]
    assert executors.evaluate(snapshot, CLAUSES[4]).kept.all()


def test_parts_in_other_buckets_give_the_same_answers(stores, monkeypatch):
    """Two parts that keep their tags in different numbers of buckets, and one that keeps them whole."""
    root, driver, executors = stores
    snapshot = None
    for start, smallest, bucket in ((0, 0, 8), (40, 0, 64), (60, 1 << 20, 8)):
        monkeypatch.setattr(buckets, "MOST_GROWTH", math.inf)
        monkeypatch.setattr(buckets, "SMALLEST", smallest)
        monkeypatch.setattr(buckets, "_BUCKET_BYTES", bucket)
        snapshot = commit(driver, snapshot, None, [RA, RT], tagged(40 if start == 0 else 20, start=start), root=root)
    cuts = [part.buckets("t:tags") for part in driver._reader(snapshot).parts]
    assert len(set(cuts)) == 3
    assert cuts[2] is None
    for clause in (*CLAUSES[1:4], HasTag(T, "nowhere")):
        expected, found = driver.evaluate(snapshot, clause), executors.evaluate(snapshot, clause)
        assert found.by_spark
        assert found.kept.tolist() == expected.kept.tolist()
        assert not expected.kept.all()


def test_several_parts_keep_what_no_single_part_can_prove(stores):
    root, driver, executors = stores
    snapshot = commit(driver, None, None, [RA, RT], tagged(12), [RA], root=root)
    snapshot = commit(driver, snapshot, None, [RA, RT], tagged(6), [RT], root=root)
    snapshot = commit(driver, snapshot, None, [RA, RT], tagged(4, start=10, modified=2), root=root)
    snapshot = commit(driver, snapshot, None, [RA, RT], removed=[rows_of(1)[0].path], root=root)
    skipped = 0
    for clause in CLAUSES[:4]:
        expected, found = driver.evaluate(snapshot, clause).kept, executors.evaluate(snapshot, clause).kept
        assert np.all(found | ~expected)
        skipped += int((~found).sum())
    assert skipped > 20
    for clause in CLAUSES[:2]:
        expected, found = driver.evaluate(snapshot, clause).kept, executors.evaluate(snapshot, clause).kept
        assert found.tolist() == expected.tolist()


def test_a_clause_that_fails_on_an_executor_is_a_store_error(stores):
    class Failing(HasValue):
        def might_match(self, metadata):
            raise ZeroDivisionError

    root, driver, executors = stores
    snapshot = commit(driver, None, None, [RA], rows_of(3), root=root)
    with pytest.raises(MetadataStoreError, match="Spark could not evaluate"):
        executors.evaluate(snapshot, Failing(A, 1))
