"""Random values of every type: clauses represent, ignorance is monotone, and parts merge in any order to the whole."""

import random
from functools import reduce

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.indexes.bloom_filter import BloomFilterIndex
from skipstone.indexes.hybrid import HybridIndex
from skipstone.indexes.minmax import MinMaxIndex
from skipstone.indexes.value_list import ValueListIndex
from skipstone.indexing.objects import DataObject
from skipstone.testing import (
    assert_merges,
    assert_monotone,
    assert_represents,
    collect,
    leaf_predicates,
    physical_type,
    values_of,
)

TYPES = [
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,10)", "string",
    "binary", "date", "timestamp", "timestamp_ntz", "time(6)", "interval year to month", "interval day to second",
]  # fmt: skip
INDEXES = [
    MinMaxIndex("c"),
    ValueListIndex("c"),
    BloomFilterIndex("c"),
    HybridIndex("c", threshold=3),
    HybridIndex("c", threshold="auto"),
]
by_index = pytest.mark.parametrize("index", INDEXES, ids=lambda index: index.name)
by_type = pytest.mark.parametrize("type_", TYPES)


def one_zero(value):
    """Which of -0.0 and 0.0 is the bound of both is nobody's business."""
    return value + 0.0 if isinstance(value, float) else value


def batch(values, type_):
    return pa.record_batch({"c": pa.array(values, physical_type(type_))})


@by_type
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_clauses_represent_their_predicates(type_, data):
    values = st.lists(values_of(type_), max_size=5)
    objects = [batch(rows, type_) for rows in data.draw(st.lists(values, min_size=1, max_size=5))]
    predicates = data.draw(st.lists(leaf_predicates("c", type_), min_size=1, max_size=6))
    for index in INDEXES:
        metadata = collect(index, objects, {"c": type_})
        assert_represents(index, predicates, objects, {"c": type_}, metadata=metadata)
        assert_monotone(index, predicates, metadata)


@by_type
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_parts_merge_to_the_whole(type_, data):
    rows = batch(data.draw(st.lists(values_of(type_).map(one_zero), max_size=8)), type_)
    for index in INDEXES:
        assert_merges(index, rows, {"c": type_}, length=100)


@by_index
@settings(max_examples=40, deadline=None)
@given(values=st.lists(st.integers(0, 9) | st.none(), min_size=1, max_size=12), seed=st.integers(0, 99))
def test_parts_merge_in_any_order_and_grouping(index, values, seed):
    chance = random.Random(seed)
    states = [_state(index, [value]) for value in values]
    whole = _stored(_state(index, values))
    chance.shuffle(states)
    while len(states) > 1:
        one, other = (states.pop(chance.randrange(len(states))) for _ in range(2))
        states.append(one.merge(other))
    assert _stored(states[0]) == whole
    assert _stored(reduce(lambda a, b: a.merge(b), [_state(index, [v]) for v in values])) == whole


def _state(index, values):
    from skipstone.testing.represents import _input

    rows = batch(values, "int")
    columns = [_input(expression, rows, {"c": "int"}, {}) for expression in index.inputs(("int",))]
    return index.collect_metadata(pa.RecordBatch.from_arrays(columns, [str(n) for n in range(len(columns))]))


def _stored(state):
    stored = state.finish(DataObject("o", 100, 0))
    return {k: sorted(v.to_pylist()) if isinstance(v, pa.Array) else v for k, v in stored.items()}
