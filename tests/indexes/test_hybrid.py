import math
import pickle

import pyarrow as pa
import pytest

from skipstone.errors import SettingError
from skipstone.expressions import tree
from skipstone.expressions.tree import Column, EqualTo, Like, Literal
from skipstone.indexes.hybrid import HybridIndex, list_is_preferable
from skipstone.indexing.objects import DataObject
from skipstone.testing import collect, kept_objects
from skipstone.toolkit.hashing import spark_hash

PAPER = {"size": 64e6, "fpp": 0.01, "scanning_factor": 0.01}


def rows(*values):
    return pa.record_batch({"c": pa.array(values, pa.string())})


def test_the_papers_example():
    """64 MB, 512 bits, a scanning factor of 0.01: a list of up to 10,088 values is preferable."""
    assert list_is_preferable(10_088, 512, **PAPER)
    assert not list_is_preferable(10_089, 512, **PAPER)
    assert list_is_preferable(10**9, 9, **PAPER)  # narrower than a Bloom filter's share: a list is always preferable


def test_each_object_has_the_form_that_suits_it():
    known = collect(
        HybridIndex("c", threshold=2), [rows("a", "b", "a"), rows("a", "b", "c"), rows(None)], {"c": "string"}
    )
    assert [v is not None for v in known.fields["values"].to_pylist()] == [True, False, True]
    assert [v is not None for v in known.fields["bits"].to_pylist()] == [False, True, False]
    assert known.fields["null_count"].to_pylist() == [0, 0, 1]


def test_auto_follows_the_size_of_the_object_and_the_width_of_the_values():
    values = [f"{number:064d}" for number in range(200)]
    index = HybridIndex("c", threshold="auto")
    limit = 200 * (512 + math.log(0.01) / math.log(2) ** 2) / (0.01 * 8 * 0.99)
    for length, listed in ((int(limit * 1.01), True), (int(limit * 0.99), False)):
        known = collect(index, [rows(*values)], {"c": "string"}, length=length)
        assert known.fields["values"].is_valid().to_pylist() == [listed]
        assert known.fields["bits"].is_valid().to_pylist() == [not listed]
    numbers = pa.record_batch({"c": pa.array(range(100), pa.int8())})
    assert collect(index, [numbers], {"c": "tinyint"}, length=1).fields["values"].is_valid().to_pylist() == [True]


def test_auto_gives_lists_up_at_its_bound(monkeypatch):
    monkeypatch.setattr("skipstone.indexes.hybrid.AUTO_VALUES", 3)
    known = collect(HybridIndex("c", threshold="auto"), [rows(*"abcd"), rows(*"abc")], {"c": "string"}, length=10**12)
    assert known.fields["values"].is_valid().to_pylist() == [False, True]


def test_a_listed_part_and_a_hashed_part_merge_either_way():
    index = HybridIndex("c", threshold=2)

    def state(*values):
        hashes = pa.array([spark_hash(v, "string") for v in values], pa.int64())
        return index.collect_metadata(pa.RecordBatch.from_arrays([pa.array(values), hashes], ["c", "h"]))

    few, many = state("x"), state("a", "b", "c")
    assert few.listed.values is not None
    assert many.listed.values is None
    for merged in (few.merge(many), many.merge(few), pickle.loads(pickle.dumps(few)).merge(many)):
        stored = merged.finish(DataObject("o", 1, 0))
        assert stored["values"] is None
        assert len(merged.hashes.array) == 4


def test_values_are_not_told_apart_by_their_hashes():
    """Two values with one hash are two values: the list has both."""
    index = HybridIndex("c")
    batch = pa.RecordBatch.from_arrays([pa.array(["a", "b"]), pa.array([7, 7])], ["c", "h"])
    stored = index.collect_metadata(batch).finish(DataObject("o", 1, 0))
    assert stored["values"].to_pylist() == ["a", "b"]


def test_text_that_is_not_utf8_takes_the_bloom_form():
    index = HybridIndex("c")
    bad = pa.array([b"\xff", b"b"], pa.binary()).view(pa.string())
    batch = pa.RecordBatch.from_arrays([bad, pa.array([7, spark_hash("b", "string")])], ["c", "h"])
    stored = index.collect_metadata(batch).finish(DataObject("o", 1, 0))
    assert stored["values"] is None
    assert stored["bits"] is not None


def test_like_and_ranges_are_served_by_lists_only():
    index = HybridIndex("c", threshold=2)
    known = collect(index, [rows("a", "b"), rows("a", "b", "c")], {"c": "string"})
    column = Column("c", "string")
    assert kept_objects(index, Like(column, Literal("z%", "string")), known).tolist() == [False, True]
    assert kept_objects(index, tree.GreaterThan(column, Literal("z", "string")), known).tolist() == [False, True]
    assert kept_objects(index, EqualTo(column, Literal("zebra", "string")), known).tolist() == [False, False]


@pytest.mark.parametrize("threshold", [0, -1, 1.5, "many", True, None])
def test_a_threshold_that_is_none_is_refused(threshold):
    with pytest.raises(SettingError, match="threshold"):
        HybridIndex("c", threshold=threshold)


@pytest.mark.parametrize("factor", [-0.1, 1.1, math.nan])
def test_a_scanning_factor_that_is_none_is_refused(factor):
    with pytest.raises(SettingError, match="scanning_factor"):
        HybridIndex("c", scanning_factor=factor)


def test_names_and_options_round_trip():
    index = HybridIndex("c", threshold="auto", fpp=0.05)
    assert index.name == "hybrid(c, threshold='auto', fpp=0.05)"
    assert HybridIndex.from_options(index.name, index.options()) == index
