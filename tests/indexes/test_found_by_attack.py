"""What was found by looking for rows to lose: each of these lost one before."""

import numpy as np
import pyarrow as pa
import pytest

from skipstone.expressions.tree import Call, Column, EqualTo, GreaterThan, Literal
from skipstone.indexes.metric_distance.index import MetricDistanceIndex
from skipstone.testing import collect, kept_objects


def own_metric(origins, spark_type, values, distances):
    """Index what a user's function gives for values, as Spark computes it."""
    index = MetricDistanceIndex("c", metric="gap", origins=origins)
    missing, *calls = index.inputs((spark_type,))
    inputs = {missing: lambda rows: rows.column(0).is_null(), **dict.fromkeys(calls, lambda _: distances)}
    return index, collect(index, [pa.record_batch({"c": values})], {"c": spark_type}, inputs=inputs)


def test_a_whole_distance_that_no_double_holds_is_not_below_its_neighbour():
    beyond = pa.array([2**53 + 1], pa.int64())
    index, metadata = own_metric([0], "bigint", beyond, beyond.cast(pa.float64(), safe=False))
    call = Call("gap", (Column("c", "bigint"), Literal(0, "bigint")), "bigint", "python")
    assert kept_objects(index, GreaterThan(call, Literal(2**53, "bigint")), metadata).all()
    assert not kept_objects(index, EqualTo(call, Literal(2**53 - 1, "bigint")), metadata).any()


@pytest.mark.parametrize("origin", [1 + 2.0**-24, -1 - 2.0**-24, 2.0**24 + 1])
def test_an_origin_between_two_single_numbers_is_not_taken_for_the_wrong_one(origin):
    """Spark reads the origin's digits as a single number at once, Python rounds twice: at a tie they may differ."""
    even = float(np.float32(origin))
    values = pa.array([even], pa.float32())
    index, metadata = own_metric([origin], "float", values, pa.array([abs(origin - even) * 2]))
    call = Call("gap", (Column("c", "float"), Literal(even, "float")), "float", "python")
    assert kept_objects(index, EqualTo(call, Literal(0.0, "float")), metadata).all()


def test_an_origin_of_a_column_of_single_numbers_serves_itself():
    values, distances = pa.array([7.5], pa.float32()), pa.array([7.4])
    index, metadata = own_metric([0.1], "float", values, distances)
    call = Call("gap", (Column("c", "float"), Literal(float(np.float32(0.1)), "float")), "float", "python")
    assert not kept_objects(index, EqualTo(call, Literal(0.0, "float")), metadata).any()
