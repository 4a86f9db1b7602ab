"""The functions of distances and the errors that are stated of them, against exact arithmetic."""

import math
from decimal import Decimal, getcontext
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from tests.functions.distances.truth import FINITE, FUNCTIONS, POINTS, WORDS, by_function, plain_levenshtein

from skipstone.engines.spark import register_distances
from skipstone.functions.distances import edits, vectorised
from skipstone.functions.distances.metrics import METRICS
from skipstone.functions.distances.vector_metrics import EARTH_RADIUS

NAN, INF = math.nan, math.inf
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # what fails is small as it is


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@settings(max_examples=100, deadline=None, phases=PHASES)
@given(data=st.data())
def test_computed_distances_are_as_exact_as_stated(metric, data):
    getcontext().prec = 1500
    size = data.draw(st.integers(1, 5))
    x, y = (data.draw(st.lists(FINITE, min_size=size, max_size=size)) for _ in range(2))
    computed = METRICS[metric].distances(np.array([x]), tuple(y))[0]
    differences = [abs(Decimal(a) - Decimal(b)) for a, b in zip(x, y, strict=True)]
    exact = sum(differences) if metric == "manhattan" else sum(d * d for d in differences).sqrt()
    tolerance = METRICS[metric].tolerance(size)
    if math.isinf(computed):
        assert exact > Decimal(tolerance.limit)
    else:
        error = abs(Decimal(float(computed)) - exact)
        assert error * 2 <= Decimal(tolerance.relative) * exact + Decimal(tolerance.absolute)


def exact_angle(x, y):
    """Twice the arc tangent of the ratio of the lengths of difference and sum of the unit vectors, in many digits."""
    units = []
    for vector in (x, y):
        length = sum(Decimal(v) ** 2 for v in vector).sqrt()
        units.append([Decimal(v) / length for v in vector])
    chord = sum((a - b) ** 2 for a, b in zip(*units, strict=True)).sqrt()
    rest = sum((a + b) ** 2 for a, b in zip(*units, strict=True)).sqrt()
    if chord > rest:
        return exact_pi() - 2 * arc_tangent(rest / chord)
    return 2 * arc_tangent(chord / rest)


def arc_tangent(x):
    for _ in range(10):
        x = x / (1 + (1 + x * x).sqrt())
    total, power, number = Decimal(0), x, 1
    while abs(power) > Decimal(10) ** -70:
        total += power / number
        power, number = -power * x * x, number + 2
    return total * 1024


@cache
def exact_pi():
    return 16 * arc_tangent(Decimal(1) / 5) - 4 * arc_tangent(Decimal(1) / 239)


@settings(max_examples=50, deadline=None, phases=PHASES)
@given(data=st.data())
def test_computed_angles_are_as_exact_as_stated(data):
    getcontext().prec = 800
    size = data.draw(st.integers(1, 5))
    x = data.draw(st.lists(FINITE, min_size=size, max_size=size))
    scale = data.draw(st.sampled_from([1.0, -1.0, 3.0, -0.1]))
    near = [scale * v if math.isfinite(scale * v) else v for v in x]
    y = data.draw(st.lists(FINITE, min_size=size, max_size=size) | st.just(near))
    assume(any(x) and any(y))
    getcontext().prec = 700
    computed = METRICS["angular"].distances(np.array([x]), tuple(y))[0]
    getcontext().prec = 100
    error = abs(Decimal(float(computed)) - exact_angle(x, y))
    assert error * 2 <= Decimal(METRICS["angular"].tolerance(size).absolute)


def test_the_globe():
    here, there = [52.52, 13.405], [48.8566, 2.3522]
    assert FUNCTIONS["haversine_distance"](here, there) == pytest.approx(877_464, rel=1e-3)
    assert FUNCTIONS["haversine_distance"]([0, 0], [0, 180]) == pytest.approx(math.pi * EARTH_RADIUS)
    assert FUNCTIONS["haversine_distance"]([90, 5], [90, -170]) < 1e-6
    assert FUNCTIONS["haversine_distance"]([10, 180], [10, -180]) < 1e-6
    assert FUNCTIONS["haversine_distance"](here, here) == 0.0


def test_distances_of_arrays_that_are_not_vectors():
    one = pa.array([None, [1.0, None], [1.0], [], [NAN, 1.0], [INF, 0.0], [1e308, -1e308]])
    other = pa.array([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0], [], [1.0, 1.0], [1.0, 1.0], [-1e308, 1e308]])
    assert vectorised.euclidean_distance(one, other).to_pylist()[:4] == [None, None, None, 0.0]
    assert math.isnan(vectorised.euclidean_distance(one, other)[4].as_py())
    assert vectorised.manhattan_distance(one, other).to_pylist()[5:] == [INF, INF]
    assert vectorised.angular_distance(one, other).to_pylist()[:4] == [None] * 4
    zero = pa.array([[0.0, 0.0], [-0.0, 1.0]])
    assert vectorised.cosine_distance(zero, pa.array([[1.0, 0.0]] * 2)).to_pylist() == [None, pytest.approx(1.0)]
    assert vectorised.haversine_distance(zero, zero).to_pylist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "literal",
    [
        pa.array([[3, 4]] * 3, pa.list_(pa.int32())),
        pa.array([[Decimal("3.0"), Decimal("4.0")]] * 3, pa.list_(pa.decimal128(3, 1))),
        pa.array([[3.0, 4.0]] * 3, pa.large_list(pa.float32())),
        pa.array([[3.0, 4.0]] * 3, pa.list_(pa.float64(), 2)),
        pa.array([[9.0], [3.0, 4.0], [3.0, 4.0], [3.0, 4.0]])[1:],
    ],
    ids=["int", "decimal", "large float", "fixed size", "slice"],
)
def test_numbers_of_every_type_and_layout(literal):
    column = pa.array([[9.0], None, [0.0, 0.0], [3.0, 4.0]])[1:]
    assert vectorised.euclidean_distance(column, literal).to_pylist() == [None, 5.0, 0.0]


def test_decimals_become_the_nearest_double():
    text = "0.1000000000000000055511151231257827021"
    column = pa.array([[Decimal(text)]], pa.list_(pa.decimal128(38, 37)))
    found = vectorised.manhattan_distance(column, pa.array([[0.0]]))[0].as_py()
    assert found == float(Decimal(text)) == METRICS["manhattan"].literal((Decimal(text),), "array<decimal(38,37)>")[0]


def test_rows_one_by_one_give_the_same():
    """The way of Spark 4.0, which has no functions on Arrow arrays."""
    for function in vectorised.FUNCTIONS:
        single = register_distances._by_rows(function)
        for value in POINTS:
            for other in ([0.0, 0.0], [1, 2], [Decimal("1.5"), Decimal("2.5")], None, []):
                expected = None if value is None or other is None else by_function(function, tuple(value), tuple(other))
                assert repr(single(value, other)) == repr(expected)


@pytest.mark.parametrize("compute", [edits.edit_distances, edits._in_matrices], ids=["rapidfuzz", "numpy"])
def test_edits_are_counted_in_characters(compute):
    words = [w for w in WORDS if w is not None] + ["kitten" * 3, "sitting", "a" * 70, "\U0010ffff", "e\u0301"]
    for origin in words:
        assert compute(words, origin).tolist() == [plain_levenshtein(w, origin) for w in words]
    assert compute([], "a").tolist() == []


def test_edits_without_rapidfuzz(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "rapidfuzz.distance", None)
    assert edits.edit_distances(["kitten"], "sitting").tolist() == [3]
