"""Metric distances: every metric held against the functions of a query, rounding errors and odd values included."""

import json
import math
import random
from decimal import Decimal
from functools import cache, reduce
from itertools import combinations_with_replacement, permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from tests.functions.distances.truth import FINITE, FUNCTIONS, POINTS, WORDS, l2_of_floats

from skipstone.errors import SettingError, UnsupportedTypeError
from skipstone.expressions import tree
from skipstone.expressions.tree import And, Call, Column, In, Literal, Not
from skipstone.functions.distances import own_metrics as _own_metrics
from skipstone.functions.distances import vector_metrics as _vector_metrics
from skipstone.functions.distances import vectorised
from skipstone.functions.distances.metric import FUNCTIONS_VERSION, Metric, Tolerance
from skipstone.functions.distances.metrics import METRICS
from skipstone.indexes.metric_distance import balls as _balls
from skipstone.indexes.metric_distance import index as metric_distance
from skipstone.indexes.metric_distance.index import MetricDistanceIndex
from skipstone.indexing.objects import DataObject
from skipstone.testing import InMemoryMetadata, assert_monotone, assert_represents, collect, kept_objects

NAN, INF = math.nan, math.inf
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # what fails is small as it is
OBJECT = DataObject("o", 1, 0)
OPERATORS = (tree.LessThan, tree.LessThanOrEqual, tree.EqualTo, tree.GreaterThan, tree.GreaterThanOrEqual)
ARROW = {
    "array<double>": pa.list_(pa.float64()),
    "array<float>": pa.list_(pa.float32()),
    "array<int>": pa.list_(pa.int32()),
    "array<bigint>": pa.list_(pa.int64()),
    "struct<lat:double,lng:double>": pa.struct([("lat", pa.float64()), ("lng", pa.float64())]),
    "string": pa.string(),
    "double": pa.float64(),
}
LEVENSHTEIN = {"class_name": "org.apache.spark.sql.catalyst.expressions.Levenshtein", "type": "int"}
L2 = {"identity": "org.apache.spark.sql.catalyst.expressions.VectorFunctionImplUtils.vectorL2Distance", "type": "float"}


def call(name, column, literal, *, mirrored=False, **about):
    arguments = (literal, column) if mirrored else (column, literal)
    return Call(name, arguments, **({"type": "double", "kind": "python"} | about))


def objects_of(rows, type_):
    return [pa.record_batch({"c": pa.array(values, ARROW[type_])}) for values in rows]


def check(index, type_, predicates, rows, forgetting=False, **collecting):
    objects = objects_of(rows, type_)
    metadata = collect(index, objects, {"c": type_}, **collecting)
    outcome = assert_represents(index, predicates, objects, {"c": type_}, functions=FUNCTIONS, metadata=metadata)
    if forgetting:
        assert_monotone(index, predicates[:: 1 + len(predicates) // 50], metadata)
    return outcome


# --- small universes, exhausted ---------------------------------------------------------------------------------------

VECTORS = (None, [0.0, 0.0], [3.0, 4.0], [-1.0, 1.0], [10.0, 0.0], [NAN, 0.0], [INF, 1.0], [1.0, None], [1.0], [])
TARGETS = (
    Literal((0.0, 0.0), "array<double>"),
    Literal((3, 5), "array<int>"),
    Literal((Decimal("-1.0"), Decimal("1.5")), "array<decimal(2,1)>"),
    Literal((1.0,), "array<double>"),
    Literal((), "array<double>"),
    Literal((NAN, 0.0), "array<double>"),
    Literal((INF, 1.0), "array<double>"),
    Literal((1.0, None), "array<double>"),
    Literal(None, "array<double>"),
)
UNIVERSES = {
    "euclidean": ("array<double>", VECTORS, TARGETS, (0.0, 1.0, 5.0, 6.5, INF, -INF, -1.0), ("euclidean_distance",)),
    "manhattan": ("array<double>", VECTORS, TARGETS, (0.0, 2.0, 7.0, 9.5, INF, -1.0), ("manhattan_distance",)),
    "angular": (
        "array<double>", (*VECTORS, [-3.0, -4.0], [30.0, 40.0]), TARGETS, (0.0, 0.1, 1.0, 2.0, math.pi, 4.0, INF),
        ("angular_distance", "cosine_distance"),
    ),
    "haversine": (
        "array<double>", POINTS,
        (Literal((0.0, 0.0), "array<double>"), Literal((10, -180), "array<int>"), Literal((95.0, 0.0), "array<double>"),
         Literal((0.0,), "array<double>"), Literal((-89.9, 1.0), "array<double>")),
        (0.0, 1e3, 2e6, 1.2e7, 2.1e7, INF, -1.0), ("haversine_distance",),
    ),
    "levenshtein": (
        "string", WORDS, tuple(Literal(w, "string") for w in ("", "skip", "stone", "é", "xyz", None)),
        (0, 1, 2, 3, 5, 9, -1), ("levenshtein",),
    ),
}  # fmt: skip


@cache
def universe(metric):
    type_, values, literals, radii, names = UNIVERSES[metric]
    rows = [row for size in range(3) for row in combinations_with_replacement(values, size)]
    about = {**LEVENSHTEIN, "kind": ""} if metric == "levenshtein" else {}
    radius_type = about.get("type", "double")
    predicates = [
        make(call(name, Column("c", type_), literal, mirrored=mirrored, **about), Literal(radius, radius_type))
        for name in names
        for literal in literals
        for mirrored in (False, True)
        for radius in (*radii, *((NAN,) if radius_type == "double" else ()))
        for make in (*OPERATORS, tree.NotEqualTo)
    ]
    predicates += [
        make(
            call(names[0], Column("c", type_), literals[0], **about), tuple(Literal(r, radius_type) for r in radii[:3])
        )
        for make in (In, tree.NotIn)
    ]
    return type_, rows, predicates


ORIGINS = {
    "euclidean": [(0.0, 0.0), (3.0, 4.0)],
    "manhattan": [(-1, 1)],
    "angular": [(1.0, 0.0), (0.0, -1.0)],
    "haversine": [(0.0, 0.0), (80.0, 170.0)],
    "levenshtein": ["skip", ""],
}


@pytest.mark.parametrize("metric", UNIVERSES)
def test_every_relevant_object_is_kept_and_many_others_are_not(metric):
    type_, rows, predicates = universe(metric)
    outcome = check(MetricDistanceIndex("c", metric=metric), type_, predicates, rows, forgetting=True)
    assert outcome.relevant > 0
    assert outcome.skipped > 0.1 * (outcome.pairs - outcome.relevant)  # most literals are odd on purpose


@pytest.mark.parametrize("metric", UNIVERSES)
def test_given_origins_serve_as_well(metric):
    type_, rows, predicates = universe(metric)
    index = MetricDistanceIndex("c", metric=metric, origins=ORIGINS[metric])
    outcome = check(index, type_, predicates, rows, forgetting=True)
    assert outcome.skipped > 0.1 * (outcome.pairs - outcome.relevant)


@pytest.mark.parametrize("metric", UNIVERSES)
@pytest.mark.parametrize("kept_bytes", [0, 40, 1 << 20])
def test_objects_in_parts_are_served_as_well(metric, kept_bytes, monkeypatch):
    monkeypatch.setattr(_balls, "KEPT_BYTES", kept_bytes)
    type_, rows, predicates = universe(metric)
    outcome = check(MetricDistanceIndex("c", metric=metric), type_, predicates[::5], rows, rows_per_part=1)
    assert outcome.skipped > 0.1 * (outcome.pairs - outcome.relevant)


def test_points_may_be_structs():
    _, rows, predicates = universe("haversine")
    struct = "struct<lat:double,lng:double>"
    values = [[v and dict(zip(("lat", "lng"), (*v, None), strict=False)) for v in row] for row in rows]
    moved = [type(p)(call("haversine_distance", Column("c", struct), p.left.arguments[1]), p.right)
             for p in predicates if isinstance(p, OPERATORS) and isinstance(p.left.arguments[0], Column)]  # fmt: skip
    outcome = check(MetricDistanceIndex("c", metric="haversine"), struct, moved, values)
    assert outcome.skipped > 0.2 * (outcome.pairs - outcome.relevant)


def test_fields_of_a_point_are_known_by_name():
    names = pa.struct([("longitude", pa.float64()), ("latitude", pa.float64())])
    point = pa.array([{"longitude": 170.0, "latitude": 10.0}, None], names)
    found = vectorised.haversine_distance(point, pa.array([[10.0, 170.0]] * 2))
    assert found.to_pylist() == [0.0, None]
    metric = METRICS["haversine"]
    assert metric.supports("struct<longitude:double,latitude:double>")
    assert not metric.supports("struct<x:double,y:double>")
    assert not metric.supports("struct<lat:double,lng:double,height:double>")


# --- random numbers, awkward on purpose -------------------------------------------------------------------------------

NUMBERS = {
    "array<double>": FINITE,
    "array<float>": st.sampled_from([float(np.float32(x)) for x in (0, 1, 3e38, -3e38, 1e19, 2e19, 1e-23, 1e-45, 0.1)])
    | st.floats(width=32, allow_nan=False, allow_infinity=False),
    "array<int>": st.integers(-3, 3) | st.integers(-(2**31), 2**31 - 1),
    "array<bigint>": st.integers(-3, 3) | st.sampled_from([2**53, 2**53 + 1]) | st.integers(-(2**63), 2**63 - 1),
}  # fmt: skip
VECTOR_METRICS = ("euclidean", "manhattan", "angular")


@pytest.mark.parametrize("type_", NUMBERS)
@pytest.mark.parametrize("metric", VECTOR_METRICS)
@settings(max_examples=20, deadline=None, phases=PHASES)
@given(data=st.data())
def test_rounding_never_loses_a_row(metric, type_, data):
    """Radii are distances that really occur, and their neighbours: there the bounds are tightest."""
    size = data.draw(st.integers(1, 4))
    vectors = st.lists(NUMBERS[type_], min_size=size, max_size=size)
    rows = data.draw(st.lists(st.lists(vectors, min_size=1, max_size=4), min_size=1, max_size=3))
    target = Literal(tuple(data.draw(vectors | st.sampled_from([v for row in rows for v in row]))), type_)
    names = METRICS[metric].functions
    predicates = []
    for name in names:
        subject = call(name, Column("c", type_), target)
        found = {FUNCTIONS[name](v, target.value) for row in rows for v in row} - {None}
        for radius in sorted(r for r in found if not math.isnan(r))[:2]:
            near = (math.nextafter(radius, -INF), radius, math.nextafter(radius, INF))
            predicates += [make(subject, Literal(r, "double")) for make in OPERATORS for r in near]
    assume(predicates)
    for index in (
        MetricDistanceIndex("c", metric=metric),
        MetricDistanceIndex("c", metric=metric, origins=[[1] * size]),
    ):
        check(index, type_, predicates, rows)


def scattered(rng, shape, mode):
    """Numbers of one magnitude, of many, of few bits, close to one another, and at the edge of overflow."""
    normal = rng.standard_normal(shape)
    return {
        "plain": lambda: normal,
        "rows of every magnitude": lambda: normal * 10.0 ** rng.integers(-170, 160, (shape[0], 1)),
        "every magnitude": lambda: normal * 10.0 ** rng.integers(-300, 307, shape),
        "tenths": lambda: rng.integers(-3, 4, shape) * 0.1,
        "neighbours": lambda: 1.0 + rng.integers(-3, 4, shape) * 2.0**-52,
        "edge": lambda: 1.34078e154 * rng.choice([0, 1, -1, 0.5, 1e-4], shape) * (1 + 1e-5 * normal),
    }[mode]()


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize(
    "mode", ["plain", "rows of every magnitude", "every magnitude", "tenths", "neighbours", "edge"]
)
def test_thousands_of_triples_stay_within_reach(mode, size):
    """The bounds are held against computed distances themselves; points on a line make them tight."""
    rng = np.random.default_rng(size)
    x, o, q = (scattered(rng, (5000, size), mode) for _ in range(3))
    with np.errstate(all="ignore"):
        line = x + (q - x) * rng.random((5000, 1))
        floats = tuple(a.astype(np.float32).astype(np.float64) for a in (x, line, q))
        for name in VECTOR_METRICS:
            for triple in ((x, o, q), (x, line, q), (x, o, x)):
                metric = METRICS[name]
                within_reach(metric, metric.tolerance(size), triple, computed(metric, triple[0], triple[2]))
        total = np.zeros(5000, np.float32)
        for a, b in zip(floats[0].T, floats[2].T, strict=True):
            total += (a.astype(np.float32) - b.astype(np.float32)) ** 2
        subject = Call("staticinvoke", (), **L2)
        tolerance = METRICS["euclidean"].tolerance_of(subject, size)
        within_reach(METRICS["euclidean"], tolerance, floats, np.sqrt(total).astype(np.float64))


def computed(metric, one, other):
    return metric.between(metric.prepare(one), metric.prepare(other))


def within_reach(metric, tolerance, triple, found):
    x, o, q = triple
    usable = np.all([metric.defined(points) & np.isfinite(points).all(axis=1) for points in triple], axis=0)
    between = computed(metric, o, q)
    usable &= between < tolerance.limit
    least, greatest = tolerance.reach(computed(metric, x, o), computed(metric, x, o), between)
    assert ((least <= found) & (found <= greatest))[usable].all()


def test_vectors_far_apart_are_skipped_at_every_magnitude():
    for scale in (1e-140, 1e-3, 1.0, 1e6, 1e140):
        rows = [[[scale * x, scale * y] for x, y in ((i, i), (i + 1, i), (i, i + 1))] for i in range(0, 100, 10)]
        for metric in ("euclidean", "manhattan"):
            subject = call(f"{metric}_distance", Column("c", "array<double>"), Literal((0.0, 0.0), "array<double>"))
            predicates = [make(subject, Literal(20 * scale, "double")) for make in OPERATORS]
            outcome = check(MetricDistanceIndex("c", metric=metric), "array<double>", predicates, rows)
            assert outcome.skipped >= 0.8 * (outcome.pairs - outcome.relevant), (scale, metric)


@settings(max_examples=50, deadline=None, phases=PHASES)
@given(data=st.data())
def test_rounding_never_loses_a_point_of_the_globe(data):
    points = st.tuples(
        st.sampled_from([0.0, 90.0, -90.0, 89.9999999, 45.0, 1e-9]) | st.floats(-90, 90),
        st.sampled_from([0.0, 180.0, -180.0, 360.0, 179.9999999, 1e-9]) | st.floats(-360, 360),
    ).map(list)
    rows = data.draw(st.lists(st.lists(points, min_size=1, max_size=4), min_size=1, max_size=3))
    target = Literal(tuple(data.draw(points | st.sampled_from([v for row in rows for v in row]))), "array<double>")
    subject = call("haversine_distance", Column("c", "array<double>"), target)
    radii = {FUNCTIONS["haversine_distance"](v, target.value) for row in rows for v in row}
    predicates = [
        make(subject, Literal(r, "double"))
        for make in OPERATORS
        for radius in sorted(radii)[:2]
        for r in (math.nextafter(radius, -INF), radius, math.nextafter(radius, INF))
    ]
    check(MetricDistanceIndex("c", metric="haversine"), "array<double>", predicates, rows)


@settings(max_examples=50, deadline=None, phases=PHASES)
@given(data=st.data())
def test_sparks_own_distance_of_floats(data):
    size = data.draw(st.integers(1, 4))
    vectors = st.lists(NUMBERS["array<float>"], min_size=size, max_size=size)
    rows = data.draw(st.lists(st.lists(vectors, min_size=1, max_size=4), min_size=1, max_size=3))
    target = Literal(tuple(data.draw(vectors | st.sampled_from([v for row in rows for v in row]))), "array<float>")
    arguments = (Column("c", "array<float>"), target, Literal("vector_l2_distance", "string"))
    radii = sorted({l2_of_floats(v, target.value, "") for row in rows for v in row})
    predicates = [make(Call("staticinvoke", arguments, **L2), Literal(r, "float")) for make in OPERATORS for r in radii]
    check(MetricDistanceIndex("c"), "array<float>", predicates, rows)


def test_sparks_own_distance_skips():
    rows = [[[float(i), float(i)]] for i in range(20)]
    arguments = (
        Column("c", "array<float>"),
        Literal((3.0, 3.0), "array<float>"),
        Literal("vector_l2_distance", "string"),
    )
    predicate = tree.LessThan(Call("staticinvoke", arguments, **L2), Literal(2.0, "float"))
    assert check(MetricDistanceIndex("c"), "array<float>", [predicate], rows).skipped == 17
    other = tree.LessThan(
        Call("staticinvoke", arguments, type="float", identity="x.vectorInnerProduct"), predicate.right
    )
    (labelling,) = MetricDistanceIndex("c").filters()
    assert labelling.label_node(other) is None


@settings(max_examples=40, deadline=None, phases=PHASES)
@given(data=st.data())
def test_random_words(data):
    words = st.none() | st.text("ab😀", max_size=5) | st.text(max_size=12)
    rows = data.draw(st.lists(st.lists(words, max_size=5), min_size=1, max_size=4))
    target = Literal(data.draw(st.text("ab😀", max_size=5)), "string")
    subject = call("levenshtein", Column("c", "string"), target, **LEVENSHTEIN, kind="")
    predicates = [make(subject, Literal(r, "int")) for make in OPERATORS for r in range(6)]
    for index in (
        MetricDistanceIndex("c", metric="levenshtein"),
        MetricDistanceIndex("c", metric="levenshtein", origins=["aab"]),
    ):
        check(index, "string", predicates, rows)


# --- merging ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", UNIVERSES)
@settings(max_examples=60, deadline=None, phases=PHASES)
@given(data=st.data())
def test_parts_merge_in_any_order_to_bounds_that_hold(metric, data):
    """Whatever was kept or given up on the way, the finished bounds hold every row."""
    type_, values, *_ = UNIVERSES[metric]
    rows = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=10))
    chance = random.Random(data.draw(st.integers(0, 99)))
    kept = _balls.KEPT_BYTES
    try:
        _balls.KEPT_BYTES = data.draw(st.sampled_from([0, 60, 1 << 20]))
        index = MetricDistanceIndex("c", metric=metric)
        states = [index.collect_metadata(batch) for value in rows for batch in objects_of([[value]], type_)]
        while len(states) > 1:
            one, other = (states.pop(chance.randrange(len(states))) for _ in range(2))
            states.append(one.merge(other))
        stored = states[0].finish(OBJECT)
    finally:
        _balls.KEPT_BYTES = kept
    found = METRICS[metric].find(pa.array(rows, ARROW[type_]))
    assert stored["non_finite"] is found.non_finite
    if not found.points:
        assert stored["lower"][0] > stored["upper"][0]
        return
    points = found.points[METRICS[metric].kind(stored["origin"])]
    reached = METRICS[metric].distances(points, stored["origin"])
    assert stored["lower"][0] <= reached.min()
    assert reached.max() <= stored["upper"][0]


def test_what_is_kept_until_the_end_merges_exactly():
    rows = [[float(i), float(i * i)] for i in range(30)]
    whole = collect(MetricDistanceIndex("c"), objects_of([rows], "array<double>"), {"c": "array<double>"})
    for size in (1, 7):
        parts = collect(
            MetricDistanceIndex("c"), objects_of([rows], "array<double>"), {"c": "array<double>"}, rows_per_part=size
        )
        assert {k: v.to_pylist() for k, v in parts.fields.items()} == {
            k: v.to_pylist() for k, v in whole.fields.items()
        }


def test_balls_of_other_origins_stay_near(monkeypatch):
    """Two parts whose points are no longer kept: the bounds are those of one origin, widened, not given up."""
    index = MetricDistanceIndex("c")
    parts = objects_of([[[0.0, 0.0], [2.0, 0.0]], [[10.0, 0.0], [12.0, 0.0]]], "array<double>")
    monkeypatch.setattr(_balls, "KEPT_BYTES", 0)
    states = [index.collect_metadata(part).merge(index.collect_metadata(part)) for part in parts]
    stored = reduce(lambda a, b: a.merge(b), states).finish(OBJECT)
    assert stored["origin"] in ([1.0, 0.0], [11.0, 0.0])
    assert stored["lower"][0] == 1.0
    assert stored["upper"][0] == pytest.approx(11.0)


def test_states_travel():
    import pickle

    for metric, (type_, values, *_) in UNIVERSES.items():
        for origins in (None, ORIGINS[metric]):
            index = MetricDistanceIndex("c", metric=metric, origins=origins)
            state = index.collect_metadata(objects_of([values], type_)[0])
            again = pickle.loads(pickle.dumps(state))
            assert again.merge(state).finish(OBJECT) == state.merge(state).finish(OBJECT)


def test_many_lengths_are_unknown_and_the_most_frequent_one_is_described():
    index = MetricDistanceIndex("c")
    few = index.collect_metadata(objects_of([[[1.0], [2.0, 2.0], [4.0, 2.0], [1.0] * 3]], "array<double>")[0])
    assert few.finish(OBJECT)["origin"] == [3.0, 2.0]
    many = reduce(
        lambda a, b: a.merge(b),
        [index.collect_metadata(objects_of([[[1.0] * n]], "array<double>")[0]) for n in range(20)],
    )
    assert many.finish(OBJECT)["lower"] is None
    assert index.collect_metadata(objects_of([[[1.0] * n for n in range(20)]], "array<double>")[0]).clouds is None


@pytest.mark.parametrize("type_", ["array<bigint>", "array<int>", "array<float>"])
@pytest.mark.parametrize("metric", VECTOR_METRICS)
def test_the_stored_origin_is_the_one_that_was_used(metric, type_):
    """Also at the edge of what the column's numbers can be: the double of 2⁶³ - 1 is no long number."""
    edge = {"array<bigint>": 2**63 - 1, "array<int>": 2**31 - 1, "array<float>": float(np.float32(3.4e38))}[type_]
    least = -edge - 1 if isinstance(edge, int) else -edge
    for rows in ([[edge, edge]], [[least, least]], [[edge, 0], [least, 0]], [[edge, 1], [1, edge], [7, 8]]):
        index = MetricDistanceIndex("c", metric=metric)
        column = pa.array(rows, ARROW[type_])
        stored = index.collect_metadata(pa.record_batch({"c": column})).finish(OBJECT)
        origin = pa.array([stored["origin"]], ARROW[type_]).to_pylist()[0]
        reached = METRICS[metric].distances(METRICS[metric].find(column).points[2], origin)
        assert (stored["lower"], stored["upper"]) == ([reached.min()], [reached.max()])


def test_text_that_is_not_utf8_is_unknown():
    index = MetricDistanceIndex("c", metric="levenshtein")
    odd = pa.record_batch({"c": pa.array([b"a\xff", b"b"], pa.binary()).view(pa.string())})
    plain = pa.record_batch({"c": pa.array(["b"])})
    for state in (index.collect_metadata(odd), index.collect_metadata(plain).merge(index.collect_metadata(odd))):
        assert state.finish(OBJECT)["lower"] is None
    given_origins = MetricDistanceIndex("c", metric="levenshtein", origins=["b"])
    assert given_origins.collect_metadata(odd).finish(OBJECT)["lower"] is None


# --- what is served and what is not -----------------------------------------------------------------------------------

COLUMN = Column("c", "array<double>")
ORIGIN = Literal((0.0, 0.0), "array<double>")
ONE = Literal(1.0, "double")


def label(index, node):
    (labelling,) = index.filters()
    return labelling.label_node(node)


@pytest.mark.parametrize(
    "node",
    [
        tree.LessThan(call("euclidean_distance", Column("d", "array<double>"), ORIGIN), ONE),
        tree.LessThan(call("euclidean_distance", COLUMN, Column("d", "array<double>")), ONE),
        tree.LessThan(call("manhattan_distance", COLUMN, ORIGIN), ONE),
        tree.LessThan(call("euclidean_distance", COLUMN, ORIGIN, kind="java"), ONE),
        tree.LessThan(call("euclidean_distance", COLUMN, ORIGIN, kind=""), ONE),
        tree.LessThan(call("euclidean_distance", COLUMN, ORIGIN), Column("r", "double")),
        tree.LessThan(call("euclidean_distance", COLUMN, ORIGIN), Literal(NAN, "double")),
        tree.LessThan(call("euclidean_distance", COLUMN, ORIGIN), Literal(2**60, "bigint")),
        tree.NotEqualTo(call("euclidean_distance", COLUMN, ORIGIN), ONE),
        tree.IsNotNull(call("euclidean_distance", COLUMN, ORIGIN)),
        tree.LessThan(call("euclidean_distance", COLUMN, Literal("x", "string")), ONE),
        tree.LessThan(call("euclidean_distance", COLUMN, Literal((0.0, None), "array<double>")), ONE),
        tree.LessThan(Call("euclidean_distance", (COLUMN, ORIGIN, ORIGIN), "double", "python"), ONE),
        Not(tree.LessThan(call("euclidean_distance", COLUMN, ORIGIN), ONE)),
        And((ONE, ONE)),
    ],
)
def test_anything_else_gets_no_clause(node):
    assert label(MetricDistanceIndex("c"), node) is None
    assert label(MetricDistanceIndex("c", origins=[[0.0, 0.0]]), node) is None


def test_only_sparks_own_levenshtein_of_two_arguments():
    index, three = MetricDistanceIndex("c", metric="levenshtein"), Literal(3, "int")
    text, word = Column("c", "string"), Literal("skip", "string")
    about = {**LEVENSHTEIN, "kind": ""}
    assert label(index, tree.LessThan(call("levenshtein", text, word, **about), three)) is not None
    with_threshold = Call("levenshtein", (text, word, Literal(2, "int")), **LEVENSHTEIN)
    assert label(index, tree.LessThan(with_threshold, three)) is None
    assert label(index, tree.LessThan(call("levenshtein", text, word, type="int"), three)) is None
    users = call("levenshtein", text, word, type="int", kind="", class_name="com.example.Levenshtein")
    assert label(index, tree.LessThan(users, three)) is None
    collated = call("levenshtein", text, Literal("skip", "string collate UTF8_LCASE"), **about)
    assert label(index, tree.LessThan(collated, three)) is None


def test_a_literal_of_another_length_keeps_everything():
    rows = objects_of([[[1.0, 1.0]], [[9.0, 9.0]], [None]], "array<double>")
    index = MetricDistanceIndex("c")
    metadata = collect(index, rows, {"c": "array<double>"})
    node = tree.LessThan(call("euclidean_distance", COLUMN, Literal((1.0,), "array<double>")), ONE)
    assert kept_objects(index, node, metadata).tolist() == [True, True, False]
    assert label(MetricDistanceIndex("c", origins=[[0.0, 0.0]]), node) is None


def test_only_what_is_needed_is_read():
    def needed(index, make, radius=1.0):
        clause = label(index, make(call("euclidean_distance", COLUMN, ORIGIN), Literal(radius, "double")))
        return {name for _, name in clause.requires}

    own, shared = MetricDistanceIndex("c"), MetricDistanceIndex("c", origins=[[0.0, 0.0]])
    assert needed(own, tree.LessThan) == {"origin", "lower", "upper"}
    assert needed(shared, tree.LessThan) == {"lower", "upper"}
    assert needed(own, tree.GreaterThan) == {"origin", "lower", "upper", "non_finite"}
    assert needed(shared, tree.LessThanOrEqual, INF) == {"lower", "upper", "non_finite"}


def test_one_nan_leaves_the_bounds_of_the_others():
    """A vector that is not a number is greater than every radius, and hides nothing below one."""
    rows = objects_of([[[0.0, 0.0], [NAN, 1.0]], [[9.0, 9.0], [INF, 1.0]]], "array<double>")
    index = MetricDistanceIndex("c")
    metadata = collect(index, rows, {"c": "array<double>"})
    near, far = (make(call("euclidean_distance", COLUMN, ORIGIN), Literal(r, "double"))
                 for make, r in ((tree.LessThan, 5.0), (tree.GreaterThan, 1e9)))  # fmt: skip
    assert kept_objects(index, near, metadata).tolist() == [True, False]
    assert kept_objects(index, far, metadata).tolist() == [True, True]


# --- a metric of the user's own ---------------------------------------------------------------------------------------


def own(origins, column=("c", "double"), metric="gap"):
    index = MetricDistanceIndex(column[0], metric=metric, origins=origins)
    return index, index.inputs((column[1],))


def gap_inputs(expressions, origins, gap=lambda x, o: None if x is None else abs(x - o)):
    null, *calls = expressions
    computed = {null: lambda rows: pa.array([v is None for v in rows.column("c").to_pylist()], pa.bool_())}
    for expression, origin in zip(calls, origins, strict=True):
        computed[expression] = lambda rows, o=origin: pa.array(
            [gap(v, o) for v in rows.column("c").to_pylist()], pa.float64()
        )
    return computed


GAP_ROWS = [row for size in range(3) for row in combinations_with_replacement((None, 0.0, 1.0, 5.5, 20.0), size)]


@pytest.fixture
def vouched_gap(monkeypatch):
    def compute(calls):
        numbers = [[float(n) for n in c.split("'")[1::2]] for c in calls]
        return [abs(a - b) for a, b in numbers]

    monkeypatch.setitem(_own_metrics.vouched, "gap", _own_metrics.Vouched("id-1", compute))


def gap_predicates(targets, mirrored=False, identity="id-1", kind="scala"):
    return [
        make(
            call("gap", Column("c", "double"), Literal(q, "double"), mirrored=mirrored, identity=identity, kind=kind),
            Literal(r, "double"),
        )
        for q in targets
        for r in (0.0, 0.5, 1.0, 4.5, 20.0, -1.0)
        for make in OPERATORS
    ]


def check_gap(origins, predicates):
    index, expressions = own(origins)
    functions = {"gap": lambda a, b: None if a is None or b is None else abs(a - b)}
    return assert_represents(
        index, predicates, objects_of(GAP_ROWS, "double"), {"c": "double"},
        functions=functions, inputs=gap_inputs(expressions, origins),
    )  # fmt: skip


def test_an_own_metric_is_a_metric_like_any_other():
    assert isinstance(MetricDistanceIndex("c", metric="gap", origins=[0]).measure, Metric)
    assert MetricDistanceIndex("c", metric="gap", origins=[0]).functions == ("gap",)
    assert MetricDistanceIndex("c").measure is METRICS["euclidean"]


def test_an_own_metric_serves_its_origins_without_vouching():
    outcome = check_gap([0.0, 10.0], gap_predicates([0.0, 10.0]))
    assert outcome.skipped == outcome.pairs - outcome.relevant or outcome.skipped > 0.5 * outcome.pairs * 0.5
    assert check_gap([0.0, 10.0], gap_predicates([3.0])).skipped == 0
    assert check_gap([0.0, 10.0], gap_predicates([0.0], mirrored=True)).skipped == 0


def test_an_own_metric_that_was_vouched_for_serves_every_literal(vouched_gap):
    for mirrored in (False, True):
        outcome = check_gap([0.0, 10.0], gap_predicates([0.0, 3.0, 30.0], mirrored=mirrored))
        assert outcome.skipped > 0.3 * (outcome.pairs - outcome.relevant)
    assert check_gap([0.0, 10.0], gap_predicates([3.0], identity="id-2")).skipped == 0
    assert check_gap([0.0, 10.0], gap_predicates([3.0], kind="")).skipped == 0
    assert check_gap([0.0], gap_predicates([NAN, INF])).skipped == 0


def test_an_own_metric_that_gives_no_distance_leaves_the_object_unknown():
    index, expressions = own([0.0])
    rows = objects_of([[1.0, 2.0], [None], [1.0]], "double")
    for answer in (None, NAN, INF):
        inputs = gap_inputs(expressions, [0.0], lambda x, _, a=answer: None if x is None else a if x == 2.0 else x)
        stored = collect(index, rows, {"c": "double"}, inputs=inputs)
        assert stored.fields["lower"].to_pylist() == [None, [INF], [1.0]]
    with pytest.raises(ValueError, match="gap is not a metric: it gave the distance -1.0 from the origin 0.0"):
        collect(index, rows, {"c": "double"}, inputs=gap_inputs(expressions, [0.0], lambda x, _: -1.0))


def test_an_own_metric_asks_spark_for_exact_literals():
    _, expressions = own(["it's"], ("c", "string"))
    assert expressions == ("`c` IS NULL", "CAST(gap(`c`, CAST(X'69742773' AS STRING)) AS DOUBLE)")
    _, expressions = own([[1, 2]], ("s.`odd name`", "array<float>"), "my.gap")
    assert expressions[1] == (
        "CAST(my.gap(`s`.`odd name`, array(CAST('1' AS float), CAST('2' AS float))) AS DOUBLE)"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("origin", "value", "type_", "same"),
    [
        ("a", "a", "string", True),
        (0.1, 0.1, "double", True),
        (0.1, 0.1, "float", False),
        (0.1, float(np.float32(0.1)), "float", True),
        (0.0, -0.0, "double", False),
        ((1, 2), (1, 2), "array<int>", True),
        ((1, 2), (1, 2, 3), "array<int>", False),
        ((0.1, 2), (0.1, 2.0), "array<float>", False),
        ("1", 1, "int", False),
    ],
)
def test_which_literal_is_an_origin(origin, value, type_, same):
    assert _own_metrics._same(origin, value, type_) is same


# --- options, types, sizes, speed -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "eucledian"}, "'eucledian' is none of euclidean, manhattan"),
        ({"metric": "f(x); drop"}, "is no metric"),
        ({"metric": 3}, "is no metric"),
        ({"origins": []}, "at least one"),
        ({"origins": "ab"}, "not a list of points"),
        ({"origins": 3}, "not a list of points"),
        ({"origins": [3]}, "list of finite numbers"),
        ({"origins": [[]]}, "list of finite numbers"),
        ({"origins": [[1.0, NAN]]}, "list of finite numbers"),
        ({"origins": [[1.0, INF]]}, "list of finite numbers"),
        ({"origins": [[1.0, "2"]]}, "list of finite numbers"),
        ({"origins": [[1.0, True]]}, "list of finite numbers"),
        ({"origins": [[1.0], [1.0, 2.0]]}, "several kinds"),
        ({"metric": "angular", "origins": [[0.0, 0.0]]}, "no direction"),
        ({"metric": "haversine", "origins": [[91.0, 0.0]]}, "latitude"),
        ({"metric": "haversine", "origins": [[1.0, 0.0, 0.0]]}, "latitude"),
        ({"metric": "levenshtein", "origins": [1]}, "not text"),
        ({"metric": "own", "origins": [None]}, "not a point"),
        ({"metric": "own", "origins": ["a", 1]}, "several kinds"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(SettingError, match=message):
        MetricDistanceIndex("c", **options)


@pytest.mark.parametrize(
    ("metric", "type_", "fits"),
    [
        ("euclidean", "array<double>", True), ("euclidean", "array<tinyint>", True),
        ("euclidean", "array<float>", True), ("euclidean", "string", False),
        ("euclidean", "array<string>", False), ("euclidean", "double", False),
        ("manhattan", "array<array<int>>", False), ("angular", "array<decimal(3,1)>", False),
        ("haversine", "array<double>", True), ("haversine", "struct<lat:double,lng:double>", True),
        ("levenshtein", "string", True), ("levenshtein", "string collate UTF8_LCASE", False),
        ("levenshtein", "binary", False), ("levenshtein", "array<string>", False),
    ],
)  # fmt: skip
def test_types(metric, type_, fits):
    index = MetricDistanceIndex("c", metric=metric)
    assert index.supports((type_,)) is fits
    if not fits:
        with pytest.raises(UnsupportedTypeError, match=f"c is .* but the metric {metric} takes"):
            index.check_types((type_,))


@pytest.mark.parametrize(
    ("origins", "type_", "fits"),
    [(["a"], "string", True), (["a"], "int", False), ([1], "int", True), ([1.5], "int", False), ([1.5], "double", True),
     ([[1, 2]], "array<bigint>", True), ([[1.5, 2]], "array<int>", False), ([[1.5, 2]], "array<float>", True),
     ([[1, 2]], "string", False), ([1], "array<int>", False)],
)  # fmt: skip
def test_own_types(origins, type_, fits):
    assert MetricDistanceIndex("c", metric="own", origins=origins).supports((type_,)) is fits


@pytest.mark.parametrize("metric", UNIVERSES)
@pytest.mark.parametrize("given", [False, True])
def test_options_survive_the_manifest(metric, given):
    index = MetricDistanceIndex("c", metric=metric, origins=ORIGINS[metric] if given else None)
    again = MetricDistanceIndex.from_options(index.name, json.loads(json.dumps(index.options())))
    assert again == index
    assert hash(again) == hash(index)


@pytest.mark.parametrize("metric", ["euclidean", "own"])
def test_origins_of_any_kind_of_number(metric):
    origins = [np.array([1.5, 2.0]), (np.float32(0.5), np.int64(3)), [Decimal("0.25"), 7]]
    index = MetricDistanceIndex("c", metric=metric, origins=origins)
    assert index.origins == ((1.5, 2.0), (0.5, 3), (0.25, 7))
    assert MetricDistanceIndex.from_options(index.name, json.loads(json.dumps(index.options()))) == index


def test_names_and_functions():
    ours = f"version {FUNCTIONS_VERSION}"
    assert MetricDistanceIndex("c").functions == {"euclidean_distance": ours}
    assert MetricDistanceIndex("c", metric="angular").functions == {"angular_distance": ours, "cosine_distance": ours}
    assert MetricDistanceIndex("c", metric="levenshtein").functions == {}
    assert MetricDistanceIndex("c", metric="gap", origins=[1]).functions == ("gap",)
    long, other = (MetricDistanceIndex("c", origins=[[x] * 64]) for x in (0.25, 0.5))
    assert len(long.name) < 60
    assert long.name != other.name
    assert long.with_columns(("d",)).name.startswith("metricdistance(d, 1 origins ")


@pytest.mark.parametrize(
    ("type_", "size", "width"),
    [
        ("array<double>", 64, 8),
        ("array<float>", 64, 4),
        ("array<int>", 64, 4),
        ("array<double>", 2, 8),
        ("string", 1, 1),
    ],
)
def test_bytes_per_object(type_, size, width):
    """Table I: an origin of b bytes and two distances of m."""
    rng = np.random.default_rng(1)
    if type_ == "string":
        words = ["".join(rng.choice(list("abcdefgh"), rng.integers(5, 30))) for _ in range(2000)]
        rows, metric = [words[i : i + 20] for i in range(0, 2000, 20)], "levenshtein"
        value = float(np.mean([len(word) for word in words]))
    else:
        whole = type_ == "array<int>"
        matrix = rng.integers(0, 1000, (2000, size)).tolist() if whole else rng.random((2000, size)).tolist()
        rows, metric = [matrix[i : i + 20] for i in range(0, 2000, 20)], "euclidean"
        value = size * width
    stored = collect(MetricDistanceIndex("c", metric=metric), objects_of(rows, type_), {"c": type_})
    taken = sum(array.nbytes for array in stored.fields.values()) / len(rows)
    assert taken <= 1.2 * (2 * 8 + value) + 16


def test_thousands_of_objects_at_once():
    rng = np.random.default_rng(1)
    origins = rng.random((8192, 64))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(origins.ravel()), 64).cast(pa.list_(pa.float64()))
    bounds = pa.array([[0.5]] * 8192, pa.list_(pa.float64()))
    metadata = InMemoryMetadata(
        {"origin": lists, "lower": bounds, "upper": bounds, "non_finite": pa.array([False] * 8192)},
        pa.array([1] * 8192, pa.int64()),
    )
    target = Literal(tuple(origins[7].tolist()), "array<double>")
    for metric in VECTOR_METRICS:
        index = MetricDistanceIndex("c", metric=metric)
        clause = label(index, tree.LessThan(call(next(iter(index.functions)), COLUMN, target), Literal(0.6, "double")))
        answer = clause.might_match(metadata)
        assert len(answer) == 8192
        assert answer[7].as_py() is True


# --- mutations: each must be noticed ----------------------------------------------------------------------------------

REACH = Tolerance.reach


def exact_triangle(self, lower, upper, between):
    return np.maximum(np.maximum(lower - between, between - upper), 0.0), upper + between


def without_limit(self, lower, upper, between):
    return REACH(Tolerance(self.relative, self.absolute, INF), lower, upper, between)


MUTATIONS = {
    "lower and upper in place of each other": (
        Tolerance, "reach", lambda self, lower, upper, between: REACH(self, upper, lower, between), "small",
    ),
    "the origin taken for the literal": (
        Tolerance, "reach", lambda self, lower, upper, between: REACH(self, lower, upper, between * 0), "small",
    ),
    "upper bound by the difference": (
        Tolerance, "reach", lambda self, lower, upper, between: (lower * 0, abs(upper - between)), "small",
    ),
    "no slack for rounding": (Tolerance, "reach", exact_triangle, "awkward"),
    "an overflow taken for a distance": (Tolerance, "reach", without_limit, "huge"),
    "NaN and infinity forgotten": (metric_distance.MetricDistanceClause, "_counts_non_finite", False, "small"),
    "only the first part": (metric_distance.MetricDistanceMetadata, "merge", lambda self, _: self, "small"),
    "only the first ball": (_balls.Ball, "united", lambda self, *_: self, "parts"),
    "balls united without the way between": (
        _balls.Ball, "united",
        lambda self, o, _: _balls.Ball(self.origin, min(self.lower, o.lower), max(self.upper, o.upper)), "parts",
    ),
    "a cosine is an angle": (metric_distance, "one_less_cosine", lambda angle: angle * 2, "cosine"),
    "bounds of the globe moved inwards": (
        _vector_metrics.Haversine, "tolerance", lambda self, kind: Tolerance(-0.2), "globe",
    ),
    "the nearest point taken for all": (
        metric_distance.Ball, "holding",
        lambda self, d: _balls.Ball(self.origin, float(d.min()), float(d.min())) if len(d) else self, "small",
    ),
}  # fmt: skip


def adversaries(kind, monkeypatch):
    """Return the checks among which one must notice."""
    if kind in ("small", "cosine", "globe"):
        metric = {"small": "euclidean", "cosine": "angular", "globe": "haversine"}[kind]
        type_, rows, predicates = universe(metric)
        for origins, collecting in ((None, {"rows_per_part": 1}), (ORIGINS[metric], {})):
            yield MetricDistanceIndex("c", metric=metric, origins=origins), type_, predicates, rows, collecting
        return
    if kind == "parts":
        monkeypatch.setattr(_balls, "KEPT_BYTES", 0)
        rows = [list(order) for order in permutations(([0.0, 0.0], [2.0, 0.0], [10.0, 1.0], [12.0, 0.0]))]
        index = MetricDistanceIndex("c")
        predicates = universe("euclidean")[2]
        yield index, "array<double>", predicates, rows, {"metadata": merged_in_pairs(index, rows, "array<double>")}
        return
    numbers = (
        [1e154, 1.3407e154, -1e154, -1e150, 0.0] if kind == "huge" else [0.1, 0.2, 0.3, 1 / 3, 0.7, 0.9, 1.1, 1e-3]
    )
    rows = [[[number]] for number in numbers]
    predicates = [
        make(call("euclidean_distance", COLUMN, Literal((q,), "array<double>")), Literal(abs(q - number), "double"))
        for q in numbers for number in numbers for make in OPERATORS
    ]  # fmt: skip
    huge = Literal(1e300, "double")
    predicates += [
        tree.GreaterThan(call("euclidean_distance", COLUMN, Literal((q,), "array<double>")), huge) for q in numbers
    ]
    for number in numbers:
        yield MetricDistanceIndex("c", origins=[[number]]), "array<double>", predicates, rows, {}


def merged_in_pairs(index, rows, type_):
    """Collect each row by itself and merge two and two, so that balls of several origins meet."""
    finished = []
    for batch in objects_of(rows, type_):
        states = [index.collect_metadata(batch.slice(place, 1)) for place in range(batch.num_rows)]
        while len(states) > 1:
            states = [reduce(lambda a, b: a.merge(b), states[i : i + 2]) for i in range(0, len(states), 2)]
        finished.append(states[0].finish(OBJECT))
    types = index.metadata_type.fields((ARROW[type_],))
    fields = {name: pa.array([stored[name] for stored in finished], types[name]) for name in types}
    return InMemoryMetadata(fields, pa.array([len(row) for row in rows], pa.int64()))


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_broken_clause_is_noticed(mutation, monkeypatch):
    where, name, broken, kind = MUTATIONS[mutation]
    monkeypatch.setattr(where, name, broken)
    with pytest.raises(AssertionError, match="skips an object"):
        hold_against(adversaries(kind, monkeypatch))


def hold_against(cases):
    for index, type_, predicates, rows, collecting in cases:
        assert_represents(index, predicates, objects_of(rows, type_), {"c": type_}, functions=FUNCTIONS, **collecting)


@pytest.mark.parametrize("kind", ["awkward", "huge", "parts"])
def test_the_adversaries_are_answered(kind, monkeypatch):
    for index, type_, predicates, rows, collecting in adversaries(kind, monkeypatch):
        outcome = assert_represents(
            index, predicates, objects_of(rows, type_), {"c": type_}, functions=FUNCTIONS, **collecting
        )
        assert outcome.relevant > 0
        assert outcome.skipped > 0
