"""Audits: what lies about its objects is found, and what was looked into is told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import skipstone
from skipstone import Dataset, FormattedIndex, MinMaxIndex
from skipstone.errors import DatasetError, SoundnessError
from skipstone.expressions.ranges import between
from skipstone.indexes.minmax import MinMaxFilter
from skipstone.indexing.index import Index
from skipstone.querying.clause import Clause
from tests.indexes.test_formatted import as_in_a_notebook
from tests.support import write_objects

OBJECTS = 12


@pytest.fixture
def path(spark, tmp_path) -> str:
    rows = [", ".join(f"({10 * n + k}, 'agent {k % 3}')" for k in range(10)) for n in range(OBJECTS)]
    return write_objects(spark, tmp_path / "d", "n INT, ua STRING", rows)


@dataclass(frozen=True)
class LyingClause(Clause):
    """Keeps no object."""

    index: Index

    def might_match(self, metadata):
        return pa.array([False] * len(metadata))

    @property
    def requires(self):
        return ((self.index, "lower"),)


@dataclass(frozen=True)
class LyingFilter(MinMaxFilter):
    def label_node(self, node):
        return LyingClause(self.index)


@dataclass(frozen=True)
class LyingIndex(MinMaxIndex):
    def filters(self):
        return (LyingFilter(self),)


def test_what_was_looked_into_is_told(spark, path):
    dataset = Dataset.for_path(spark, path)
    dataset.create_indexes(MinMaxIndex("n"))
    found = dataset.audit(["n < 5", spark.read.parquet(path).where("n >= 100"), "ua = 'x'"], objects=4)
    told = [(scan.query, scan.objects, scan.skipped, scan.looked_into) for scan in found.scans]
    assert told == [(1, 12, 11, 4), (2, 12, 10, 4), (3, 12, 0, 0)]
    assert all(0 < s.bytes_looked_into < s.bytes_skipped for s in found.scans[:2])
    assert str(found).startswith("8 of 21 skipped objects (38.1%) were looked into, ")
    assert str(dataset.audit("ua = 'x'")) == "nothing was skipped"
    assert dataset.audit("n < 5", objects=100).scans[0].looked_into == 11
    assert dataset.audit("n < 5", max_bytes=1).scans[0].looked_into == 1
    assert found.as_dict()["scans"][0]["condition"]


def test_an_index_type_that_lies_is_found(spark, path):
    dataset = Dataset.for_path(spark, path)
    dataset.create_indexes(LyingIndex("n"))
    assert spark.read.parquet(path).where("n < 55").count() == 0
    with pytest.raises(SoundnessError, match=r"ROWS ARE LOST: \d+ of the objects that were skipped hold a row with"):
        dataset.audit("n < 55", objects=OBJECTS)


def test_a_wrong_promise_is_found(spark, path):
    @as_in_a_notebook
    def small(n):
        return n < 25

    spark.udf.register("small", small, "boolean")
    skipstone.udf_filter(spark, "small", lambda n: between(n, 0, 4))
    dataset = Dataset.for_path(spark, path)
    dataset.create_indexes(MinMaxIndex("n"))
    assert spark.read.parquet(path).where("small(n)").count() == 10
    with pytest.raises(SoundnessError, match=r"small\(n\)"):
        dataset.audit("small(n)", objects=OBJECTS)


def test_a_function_that_changed_unseen_is_found(spark, path, tmp_path):
    """It reads its answers from a file, which no one knows of."""
    table = tmp_path / "names.txt"
    table.write_text("one", encoding="utf-8")
    name = str(table)

    @as_in_a_notebook
    def named(n):
        return f"{open(name).read()} {n // 10}"

    spark.udf.register("named", named)
    skipstone.state_version(spark, "named", "1")
    dataset = Dataset.for_path(spark, path)
    dataset.create_indexes(FormattedIndex("n", extract="named"))
    assert dataset.audit("named(n) = 'one 3'", objects=OBJECTS).scans[0].skipped == 11
    table.write_text("two", encoding="utf-8")
    with pytest.raises(SoundnessError, match="ROWS ARE LOST"):
        dataset.audit("named(n) = 'two 3'", objects=OBJECTS)


def test_what_makes_no_sense(spark, path):
    dataset = Dataset.for_path(spark, path)
    dataset.create_indexes(MinMaxIndex("n"))
    for bounds in ({"objects": 0}, {"objects": -1}, {"max_bytes": "0"}, {"max_bytes": "much"}, {"objects": 2**31}):
        with pytest.raises(DatasetError, match="at least one object and byte"):
            dataset.audit("n < 5", **bounds)
    with pytest.raises(DatasetError, match="has no file scan of"):
        dataset.audit(spark.range(3))
    with pytest.raises(DatasetError, match="is not a predicate on"):
        dataset.audit("no_such = 3")


def test_objects_that_changed_tell_nothing(spark, path):
    dataset = Dataset.for_path(spark, path)
    dataset.create_indexes(MinMaxIndex("n"))
    df = spark.read.parquet(path)
    assert dataset.audit(df.where("n < 5"), objects=OBJECTS).scans[0].skipped == 11
    files = sorted(Path(path).glob("object-*/*.parquet")) or sorted(Path(path).glob("*.parquet"))
    files[5].write_bytes(files[0].read_bytes())
    with pytest.raises(DatasetError):
        dataset.audit(df.where("n < 5"), objects=OBJECTS)
