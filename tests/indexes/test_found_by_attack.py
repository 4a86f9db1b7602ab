"""What was found by looking for rows to lose: each of these lost one, or trusted another function, before."""

import importlib
import sys

import numpy as np
import pyarrow as pa
import pytest

from skipstone.engines.spark.functions import FunctionIdentities
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


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write modules into a folder that Python imports from."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()

    yield write
    for name in [n for n in sys.modules if n.startswith("attacked_")]:
        del sys.modules[name]


def identity(module_name, raw):
    """Give the identity of a function ``f`` of a module, which is pickled by the module's name."""
    size = bytes([len(module_name)])
    command = b"\x80\x04\x8c" + size + module_name.encode() + b"\x94\x8c\x01f\x94\x93."
    return FunctionIdentities({}, lambda _: command).of("f", "python", raw)


@pytest.mark.parametrize(
    "spelled",
    [
        "import os, attacked_b",
        "import os; import attacked_b",
        "if True: import attacked_b",
        "from attacked_b import (\n    g,\n)",
        "import os, \\\n    attacked_b",
        "import attacked_b.c as d",
    ],
)
def test_a_module_is_found_however_it_is_imported(module, spelled):
    module("attacked_a", f"{spelled}\ndef f(x):\n    return x\n")
    module("attacked_b", "def g(x):\n    return x\n")
    before = identity("attacked_a", spelled)
    module("attacked_b", "def g(x):\n    return -x\n")
    assert "attacked_b==" in before
    assert identity("attacked_a", spelled) != before


def test_a_module_that_hides_an_installed_one_is_told_by_its_own_text(module):
    """``numpy`` stands for any package whose name a user's module takes, such as ``utils`` or ``tests``."""
    installed = identity("numpy", "hidden")
    assert any(word.startswith("numpy==") for word in installed.split())
    module("numpy", "def f(x):\n    return x\n")
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "numpy"}
    try:
        one = identity("numpy", "hidden")
        module("numpy", "def f(x):\n    return -x * 2\n")
        two = identity("numpy", "hidden")
    finally:
        sys.modules.update(kept)
    assert len({installed, one, two}) == 3
