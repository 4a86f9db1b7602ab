"""GeoBox held against the truth: every small object on a grid, random ones, and the choice of boxes itself."""

import itertools
import math
import pickle
import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.expressions.depth import DEEPEST

from skipstone.errors import SettingError, UnsupportedTypeError
from skipstone.expressions import tree
from skipstone.expressions.tree import And, Call, Column, In, IsNaN, IsNotNull, IsNull, Literal, Not, Or
from skipstone.functions.geo import shapes
from skipstone.functions.geo.shapes import MEETS, Shape
from skipstone.indexes.geo_box import boxes as _boxes
from skipstone.indexes.geo_box import regions as _regions
from skipstone.indexes.geo_box.boxes import best_boxes, coarser
from skipstone.indexes.geo_box.index import GeoBoxIndex
from skipstone.indexes.minmax import MinMaxIndex
from skipstone.indexing.objects import DataObject
from skipstone.querying.generate_clause import generate_clause
from skipstone.stores.parquet.part_writer import PartWriter
from skipstone.testing import (
    InMemoryMetadata,
    assert_merges,
    assert_monotone,
    assert_represents,
    collect,
    kept_objects,
    physical_type,
    values_of,
)

OBJECT = DataObject("o", 1, 0)
LAT, LNG, GEOMETRY = Column("lat", "double"), Column("lng", "double"), Column("g", "binary")
TYPES = {"lat": "double", "lng": "double"}
RANGES = (tree.LessThan, tree.LessThanOrEqual, tree.GreaterThan, tree.GreaterThanOrEqual, tree.EqualTo)


def points(rows, type_="double"):
    lat, lng = zip(*rows, strict=True) if rows else ((), ())
    return pa.record_batch({"lat": pa.array(lat, physical_type(type_)), "lng": pa.array(lng, physical_type(type_))})


def geometries(shapes, *, text=False):
    write = shapely.to_wkt if text else shapely.to_wkb
    return pa.record_batch({"g": pa.array([None if s is None else write(s) for s in shapes])})


def number(value):
    return Literal(value, "double")


def box(low, high, other_low, other_high):
    """Return the predicate that both coordinates lie between bounds."""
    return And((
        tree.GreaterThanOrEqual(LAT, number(low)), tree.LessThanOrEqual(LAT, number(high)),
        tree.GreaterThanOrEqual(LNG, number(other_low)), tree.LessThanOrEqual(LNG, number(other_high)),
    ))  # fmt: skip


def meets(geometry, distance=0.0, subject=(LNG, LAT)):
    return Call(MEETS, (*subject, Literal(shapely.to_wkb(geometry), "binary"), number(distance)), "boolean")


def truth(*arguments):
    """Whether a place, given by x and y or as bytes, is within a distance of a geometry: NULL for NULL."""
    *place, geometry, distance = arguments
    if None in place:
        return None
    if len(place) == 1:
        made = shapely.from_wkb(place[0])
    elif not all(abs(number) < 1e40 for number in place):
        return True  # nothing is said of NaN, of what is infinite or very far, so that a library may find what it likes
    else:
        made = shapely.Point(*place)
    if made.is_empty:
        return distance > 0
    with np.errstate(all="ignore"):  # of what is very far or infinite
        return bool(shapely.dwithin(shapely.from_wkb(geometry), made, distance))


def stored(rows, boxes=4, type_="double"):
    """Return the boxes of one object, as tuples in order."""
    found = collect(GeoBoxIndex("lat", "lng", boxes=boxes), [points(rows, type_)], dict.fromkeys(TYPES, type_))
    numbers = found.fields["boxes"][0].as_py()
    return sorted(zip(*(numbers[i::4] for i in range(4)), strict=True))


# --- against the truth -----------------------------------------------------------------------------------------------

GRID = [None, math.nan, -1.0, 0.0, 1.0, math.inf]
SINGLE = [points([pair]) for pair in itertools.product(GRID, GRID)]
PAIRS = [points(list(rows)) for rows in itertools.combinations(itertools.product(GRID[1:5], GRID[:5]), 2)][::2]


def pairs_of_ranges():
    """Every range on the one column beside every range on the other, in either order."""
    literals = [number(v) for v in (-1.0, -0.0, 0.5, math.inf, math.nan)]
    of_lat = [make(LAT, v) for make in RANGES for v in literals]
    of_lng = [make(LNG, v) for make in RANGES for v in literals]
    of_lng += [In(LNG, (number(-1.0), number(math.nan), number(1.0))), IsNaN(LNG)]
    found = [And(pair) for pair in itertools.product(of_lat, of_lng)]
    return found + [And(tuple(reversed(term.terms))) for term in found[::7]]


def test_every_small_object_and_every_pair_of_ranges():
    predicates = pairs_of_ranges()
    index = GeoBoxIndex("lat", "lng")
    outcome = assert_represents(index, predicates, SINGLE + PAIRS, TYPES)
    assert outcome.relevant > 20_000
    assert outcome.skipped > (outcome.pairs - outcome.relevant) * 0.6  # `<= NaN` bounds nothing, NaN is in no box
    assert outcome == assert_represents(index, predicates, SINGLE + PAIRS, TYPES, rows_per_part=1)
    metadata = collect(index, SINGLE + PAIRS, TYPES)
    assert_monotone(index, predicates[::9], metadata)


def test_without_nan_every_irrelevant_object_is_skipped():
    values = [-1.0, 0.0, 1.0, 2.0]
    rows = list(itertools.product(values, values))
    objects = [points(list(pair)) for pair in itertools.combinations(rows, 2)]
    sides = [(low, high) for low in (-1.0, 0.5, 1.0) for high in (0.0, 1.0, 3.0)]
    predicates = [box(*one, *other) for one, other in itertools.product(sides, sides)]
    outcome = assert_represents(GeoBoxIndex("lat", "lng"), predicates, objects, TYPES)
    assert outcome.relevant > 1000
    assert outcome.skipped == outcome.pairs - outcome.relevant


SHAPES = [
    shapely.box(-0.5, -0.5, 0.5, 0.5),
    shapely.box(0, 0, 1, 1),
    shapely.Polygon([(-2, -2), (2, -2), (2, 2), (-2, 2)], [[(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)]]),
    shapely.Point(1, -1),
    shapely.LineString([(-1, -1), (1, 1)]),
    shapely.MultiPoint([(-1, 0), (1, 1)]),
    shapely.MultiPolygon([shapely.box(-3, -3, -0.9, 5), shapely.box(0.9, 0.9, 5, 5)]),
    shapely.GeometryCollection([shapely.Point(0, 0), shapely.box(1, 1, 2, 2)]),
    shapely.Polygon([(-1, -1), (1, 1), (1, -1), (-1, 1)]),  # a bow-tie, which is not valid
]


def test_every_small_object_against_shapes():
    predicates = [meets(shape, distance) for shape in SHAPES for distance in (0.0, 0.75, 1.0)]
    index = GeoBoxIndex("lat", "lng", boxes=2)
    outcome = assert_represents(index, predicates, SINGLE + PAIRS, TYPES, functions={MEETS: truth})
    assert outcome.relevant > 2000
    assert outcome.skipped > (outcome.pairs - outcome.relevant) * 0.9
    assert_monotone(index, predicates, collect(index, SINGLE + PAIRS, TYPES))


def test_shapes_with_columns_in_the_other_order():
    predicates = [meets(shape) for shape in SHAPES]
    swapped = assert_represents(GeoBoxIndex("lng", "lat"), predicates, PAIRS, TYPES, functions={MEETS: truth})
    assert swapped == assert_represents(GeoBoxIndex("lat", "lng"), predicates, PAIRS, TYPES, functions={MEETS: truth})
    assert swapped.skipped > 150


def test_small_objects_of_geometries():
    parts = [None, shapely.Point(), shapely.Polygon(), *SHAPES[:6], shapely.Point(7, 7), shapely.box(5, 5, 6, 9)]
    objects = [geometries(list(found)) for found in itertools.combinations_with_replacement(parts, 2)]
    predicates = [meets(shape, distance, (GEOMETRY,)) for shape in SHAPES for distance in (0.0, 1.5)]
    index = GeoBoxIndex.of_geometry("g")
    outcome = assert_represents(index, predicates, objects, {"g": "binary"}, functions={MEETS: truth})
    assert outcome.relevant > 500
    assert outcome.skipped > (outcome.pairs - outcome.relevant) * 0.8
    assert_monotone(index, predicates, collect(index, objects, {"g": "binary"}))


coordinates = st.floats(-180, 180) | st.sampled_from([-180.0, 180.0, 90.0, -90.0, 0.0]) | values_of("double")
near = st.integers(-8, 8).map(lambda n: n / 2)


@st.composite
def polygons(draw):
    """Return a rectangle, a hole in it now and then, or a star around some place; now and then far out."""
    x, y = draw(near), draw(near)
    x += draw(st.sampled_from([0, 0, 0, 178, -178]))
    y += draw(st.sampled_from([0, 0, 0, 88, -88]))
    width, height = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    if draw(st.booleans()):
        corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
        inside = [(x + width * a, y + height * b) for a, b in ((0.25, 0.25), (0.75, 0.25), (0.75, 0.75), (0.25, 0.75))]
        return shapely.Polygon(corners, [inside] if draw(st.booleans()) else [])
    turns = np.linspace(0, 2 * np.pi, draw(st.integers(4, 9)))[:-1]
    reach = [draw(st.integers(1, 4)) for _ in turns]
    return shapely.Polygon([(x + r * np.cos(t), y + r * np.sin(t)) for r, t in zip(reach, turns, strict=True)])


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_random_points_and_polygons(data):
    rows = st.lists(st.tuples(st.none() | near | coordinates, st.none() | near | coordinates), max_size=12)
    objects = [points(found) for found in data.draw(st.lists(rows, min_size=1, max_size=5))]
    asked = [meets(data.draw(polygons()), data.draw(st.sampled_from([0.0, 0.5, 3.0]))) for _ in range(3)]
    sides = st.tuples(near, near).map(sorted)
    asked += [box(*data.draw(sides), *data.draw(sides)) for _ in range(2)]
    asked.append(And((asked[0], asked[-1])))
    asked.append(Or((asked[1], asked[-2])))
    index = GeoBoxIndex("lat", "lng", boxes=data.draw(st.integers(1, 4)))
    metadata = collect(index, objects, TYPES, rows_per_part=data.draw(st.none() | st.integers(1, 4)))
    assert_represents(index, asked, objects, TYPES, metadata=metadata, functions={MEETS: truth})
    assert_monotone(index, asked, metadata)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_random_geometries(data):
    some = st.none() | polygons() | st.builds(shapely.Point, near, near) | st.just(shapely.Point())
    objects = [geometries(found) for found in data.draw(st.lists(st.lists(some, max_size=6), min_size=1, max_size=4))]
    asked = [meets(data.draw(polygons()), distance, (GEOMETRY,)) for distance in (0.0, 0.5)]
    index = GeoBoxIndex.of_geometry("g", boxes=data.draw(st.integers(1, 3)))
    assert_represents(index, asked, objects, {"g": "binary"}, functions={MEETS: truth})


@pytest.mark.parametrize("type_", ["tinyint", "int", "bigint", "float", "double", "decimal(10,2)", "decimal(38,10)"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_columns_of_every_numeric_type(type_, data):
    lat, lng = Column("lat", type_), Column("lng", type_)
    rows = data.draw(st.lists(st.tuples(values_of(type_), values_of(type_)), min_size=1, max_size=5))
    literals = st.sampled_from([v for pair in rows for v in pair if v is not None] or [1]) | values_of(
        type_, nulls=False
    )
    asked = [
        And((data.draw(st.sampled_from(RANGES))(lat, Literal(data.draw(literals), type_)),
             data.draw(st.sampled_from(RANGES))(lng, Literal(data.draw(literals), type_))))
        for _ in range(6)
    ]  # fmt: skip
    objects = [points(rows[:1], type_), points(rows, type_)]
    assert_represents(GeoBoxIndex("lat", "lng"), asked, objects, dict.fromkeys(TYPES, type_))


def test_numbers_that_are_no_doubles_are_covered():
    whole = 2**53 + 1
    ((low, _, high, _),) = stored([(whole, 1)], type_="bigint")
    assert low < whole < high
    ((low, _, high, _),) = stored([(Decimal("0.1"), Decimal(1))], type_="decimal(10,2)")
    assert Decimal(low) < Decimal("0.1") < Decimal(high)
    assert low <= 0.1 <= high
    assert high - low < 1e-15


# --- which predicates ------------------------------------------------------------------------------------------------


def labelled(predicate, index=None):
    return generate_clause(predicate, (index or GeoBoxIndex("lat", "lng")).filters()).clause


def test_both_columns_must_be_bounded():
    over = tree.GreaterThan(LAT, number(1.0))
    assert labelled(over) is None
    assert labelled(And((over, tree.LessThan(LAT, number(5.0))))) is None
    assert labelled(And((over, IsNotNull(LNG)))) is None
    assert labelled(And((over, IsNull(LNG)))) is None
    assert labelled(And((over, tree.NotEqualTo(LNG, number(0.0))))) is None
    assert labelled(And((over, Not(IsNaN(LNG))))) is None
    assert labelled(And((over, Or((tree.LessThan(LNG, number(1.0)), IsNull(LNG)))))) is None
    assert labelled(And((over, tree.LessThan(LNG, number(1.0))))) is not None


def test_terms_on_other_columns_are_left_out():
    other = Column("n", "int")
    nested = And((tree.EqualTo(other, Literal(1, "int")), *box(0, 1, 0, 1).terms, IsNotNull(other)))
    assert set(labelled(nested).predicate.terms) == set(box(0, 1, 0, 1).terms)
    assert labelled(Or((nested, tree.EqualTo(other, Literal(2, "int"))))) is None


def test_a_range_across_the_antimeridian_is_two():
    east, west, middle = points([(0, 179)]), points([(0, -179)]), points([(0, 0), (1, 1)])
    across = And((
        tree.GreaterThanOrEqual(LAT, number(-10.0)), tree.LessThanOrEqual(LAT, number(10.0)),
        Or((tree.GreaterThanOrEqual(LNG, number(175.0)), tree.LessThanOrEqual(LNG, number(-175.0)))),
    ))  # fmt: skip
    index = GeoBoxIndex("lat", "lng")
    both = points([(0, 179), (0, -179)])
    metadata = collect(index, [east, west, middle, both], TYPES)
    assert kept_objects(index, across, metadata).tolist() == [True, True, False, True]


def test_one_box_must_pass_all_terms():
    """Each bound is met by some point, all of them by none: bounds of each column alone cannot tell."""
    rows = points([(0, 0), (0, 10), (10, 0), (10, 10)])
    index = GeoBoxIndex("lat", "lng")
    assert kept_objects(index, box(4, 6, 4, 6), collect(index, [rows], TYPES)).tolist() == [False]
    assert kept_objects(index, box(0, 6, 4, 10), collect(index, [rows], TYPES)).tolist() == [True]
    for column in ("lat", "lng"):
        bounds = MinMaxIndex(column)
        assert kept_objects(bounds, box(4, 6, 4, 6), collect(bounds, [rows], TYPES)).tolist() == [True]


def test_a_box_in_a_hole_is_skipped():
    rows = points([(1.0, 1.0), (1.2, 1.3)])
    ring = shapely.Polygon([(0, 0), (3, 0), (3, 3), (0, 3)], [[(0.5, 0.5), (2, 0.5), (2, 2), (0.5, 2)]])
    index = GeoBoxIndex("lat", "lng")
    metadata = collect(index, [rows], TYPES)
    assert not kept_objects(index, meets(ring), metadata)[0]
    assert not kept_objects(index, meets(ring, 0.49), metadata)[0]
    assert kept_objects(index, meets(ring, 0.51), metadata)[0]
    assert kept_objects(index, meets(shapely.Polygon(ring.exterior)), metadata)[0]


def test_without_shapely_the_bounds_are_used(monkeypatch):
    monkeypatch.setattr(shapes, "HAS_SHAPELY", False)
    Shape.of.cache_clear()
    ring = shapely.Polygon([(0, 0), (3, 0), (3, 3), (0, 3)], [[(0.5, 0.5), (2, 0.5), (2, 2), (0.5, 2)]])
    index = GeoBoxIndex("lat", "lng")
    metadata = collect(index, [points([(1, 1)]), points([(4, 4)])], TYPES)
    assert kept_objects(index, meets(ring), metadata).tolist() == [True, False]
    Shape.of.cache_clear()


def test_a_call_that_spark_wrote_is_not_what_functions_imply():
    place = meets(shapely.box(0, 0, 1, 1))
    assert labelled(place) is not None
    for theirs in ({"kind": "python"}, {"class_name": "org.apache.spark.sql.catalyst.expressions.PythonUDF"}):
        assert labelled(Call(place.name, place.arguments, "boolean", **theirs)) is None


def test_very_large_predicates_are_left_to_others():
    many = Or(tuple(tree.EqualTo(LNG, number(float(n))) for n in range(2000)))
    assert labelled(And((tree.GreaterThan(LAT, number(1.0)), many, tree.LessThan(LNG, number(3.0))))).predicate.terms[
        1:
    ] == (tree.LessThan(LNG, number(3.0)),)
    deep = box(0, 1, 0, 1)
    for level in range(DEEPEST):
        deep = (Or if level % 2 else And)((deep, tree.LessThan(LNG, number(float(level)))))
    labelled(deep)


def test_what_was_not_stored_is_unknown():
    index = GeoBoxIndex("lat", "lng")
    for lists in ([[1.0, 2.0, 3.0]], [None], [[None, None, None, None]]):
        metadata = InMemoryMetadata(
            {"boxes": pa.array(lists, pa.list_(pa.float64())), "nan_count": pa.array([0])}, pa.array([9])
        )
        assert kept_objects(index, box(50, 60, 50, 60), metadata).tolist() == [True]
    nothing = InMemoryMetadata({"boxes": pa.nulls(1), "nan_count": pa.array([0])}, pa.array([9]))
    assert kept_objects(index, box(50, 60, 50, 60), nothing).tolist() == [True]


def test_slices_of_metadata_are_read_where_they_begin():
    index = GeoBoxIndex("lat", "lng")
    metadata = collect(index, [points([(n, n), (n, n + 9)]) for n in range(9)], TYPES)
    sliced = InMemoryMetadata({k: v.slice(3, 4) for k, v in metadata.fields.items()}, metadata.row_count.slice(3, 4))
    assert kept_objects(index, box(5, 5, 0, 20), sliced).tolist() == [False, False, True, False]


# --- which boxes -----------------------------------------------------------------------------------------------------


def test_clusters_get_a_box_each():
    rows = [(a + x, b + y) for a, b in ((0, 0), (50, 50), (0, 60)) for x, y in ((0, 0), (1, 0), (0, 2))]
    assert stored(rows, 3) == [(0, 0, 1, 2), (0, 60, 1, 62), (50, 50, 51, 52)]
    assert stored(rows, 1) == [(0, 0, 51, 62)]
    assert stored([(1, 1), (1, 1)]) == [(1, 1, 1, 1)]
    assert stored([(1, None), (None, None), (math.nan, 1)]) == []
    assert stored([]) == []


def test_a_place_far_out_does_not_hide_the_rest():
    rng = np.random.default_rng(3)
    rows = [tuple(rng.normal(place, 0.1)) for place in ((0, 0), (10, 3), (5, 8)) for _ in range(2000)]
    rows += [(1e300, -1e300), (math.inf, 3.0), (9999.0, -9999.0)]
    found = stored(rows, 6)
    assert len(found) == 6
    assert all((a == b or b - a < 2) and (c == d or d - c < 2) for a, c, b, d in found)


@settings(max_examples=100, deadline=None)
@given(data=st.data(), boxes=st.integers(1, 5), most=st.sampled_from([3, 8, 20]))
def test_every_point_is_in_a_box_however_few_there_may_be(data, boxes, most):
    ends = st.floats(allow_nan=False)
    rows = data.draw(st.lists(st.tuples(ends, ends), min_size=1, max_size=60))
    low = np.array(rows).T
    covered = np.concatenate([low, low])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_boxes, "STATE_BOXES", most)
        fewer = coarser(covered, most)
        found = best_boxes(covered, boxes)
    assert fewer.shape[1] <= most
    assert found.shape[1] <= boxes
    for few in (fewer, found):
        inside = (few[:2, :, None] <= low[:, None]).all(axis=0) & (few[2:, :, None] >= low[:, None]).all(axis=0)
        assert inside.any(axis=0).all()


def partitions(items, most):
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for parts in partitions(rest, most):
        for place in range(len(parts)):
            yield [*parts[:place], [first, *parts[place]], *parts[place + 1 :]]
        if len(parts) < most:
            yield [[first], *parts]


def test_the_choice_is_close_to_the_best():
    """All partitions of nine points into three are tried; the sum that is to be small is within a few percent."""
    rng = np.random.default_rng(7)
    worse, single = [], []
    for trial in range(24):
        low = rng.integers(0, 12, (2, 9)).astype(float) if trial % 2 else rng.random((2, 9))
        boxes = np.unique(np.concatenate([low, low]), axis=1)
        extent = np.tile(boxes[2:].max(axis=1) - boxes[:2].min(axis=1), 2)[:, None]
        ends = boxes * [[1], [1], [-1], [-1]] / extent

        def total(parts, ends=ends):
            return sum(float(_boxes._cost(ends[:, part].min(axis=1))) for part in parts)

        best = min(map(total, partitions(list(range(boxes.shape[1])), 3)))
        found = best_boxes(boxes, 3) * [[1], [1], [-1], [-1]] / extent
        worse.append(float(_boxes._cost(found).sum()) / best)
        single.append(total([list(range(boxes.shape[1]))]) / best)
    assert np.mean(worse) < 1.03
    assert np.max(worse) < 1.35
    assert np.mean(single) > 3


# --- parts -----------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.tuples(values_of("double"), values_of("double")), max_size=10), boxes=st.integers(1, 4))
def test_parts_merge_to_the_whole(rows, boxes):
    assert_merges(GeoBoxIndex("lat", "lng", boxes=boxes), points(rows), TYPES)


@settings(max_examples=30, deadline=None)
@given(rows=st.lists(st.tuples(near, near), min_size=1, max_size=15), seed=st.integers(0, 99))
def test_parts_merge_in_any_order_and_grouping(rows, seed):
    index, chance = GeoBoxIndex("lat", "lng", boxes=2), random.Random(seed)
    states = [index.collect_metadata(points([row])) for row in rows]
    whole = index.collect_metadata(points(rows)).finish(OBJECT)
    chance.shuffle(states)
    while len(states) > 1:
        one, other = (pickle.loads(pickle.dumps(states.pop(chance.randrange(len(states))))) for _ in range(2))
        states.append(one.merge(other))
    assert states[0].finish(OBJECT)["boxes"].equals(whole["boxes"])


def test_a_state_that_runs_over_stays_sound_and_bounded(monkeypatch):
    monkeypatch.setattr(_boxes, "STATE_BOXES", 8)
    rng = np.random.default_rng(1)
    rows = [tuple(rng.integers(-20, 20, 2).astype(float)) for _ in range(300)]
    index = GeoBoxIndex("lat", "lng", boxes=3)
    asked = [box(a, a + 3, b, b + 3) for a, b in itertools.product(np.arange(-22.0, 22, 4).tolist(), repeat=2)]
    for parts in (None, 1, 13):
        metadata = collect(index, [points(rows)], TYPES, rows_per_part=parts)
        assert len(metadata.fields["boxes"][0]) <= 12
        assert_represents(index, asked, [points(rows)], TYPES, metadata=metadata)
    state = index.collect_metadata(points(rows[:100]))
    for row in rows[100:]:
        state = state.merge(index.collect_metadata(points([row])))
        assert sum(part.shape[1] for part in state.parts) <= 4 * 8 + 1


# --- bytes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("type_", "width"), [("double", 8), ("float", 4)])
@pytest.mark.parametrize("boxes", [1, 4, 16])
def test_bytes_per_object_are_those_of_the_formula(tmp_path, type_, width, boxes):
    """2xb bytes, a fifth and sixteen more: x boxes of two corners, each b bytes for its two coordinates."""
    rng = np.random.default_rng(5)
    objects = [points([tuple(rng.uniform(-90, 90, 2)) for _ in range(60)], type_) for _ in range(300)]
    metadata = collect(GeoBoxIndex("lat", "lng", boxes=boxes), objects, dict.fromkeys(TYPES, type_))
    columns = {"removed": pa.array([False] * len(metadata)), **{f"i:{name}": v for name, v in metadata.fields.items()}}
    writer = PartWriter(tmp_path / "part", pa.table(columns).schema)
    writer.write(pa.table(columns))
    size = writer.finish(1, "part").indexes["i"][0] / len(metadata)
    assert size <= 1.2 * 2 * boxes * 2 * width + 16
    assert {len(found) for found in metadata.fields["boxes"]} == {4 * boxes}


# --- options and types -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("boxes", [0, -1, 1.5, True, "4"])
def test_a_number_of_boxes_is_needed(boxes):
    with pytest.raises(SettingError, match="give a positive whole number"):
        GeoBoxIndex("lat", "lng", boxes=boxes)


def test_columns_are_checked():
    with pytest.raises(SettingError, match="both coordinates"):
        GeoBoxIndex("lat", "lat")
    for wrong in (GeoBoxIndex, lambda: GeoBoxIndex("lat"), lambda: GeoBoxIndex("lat", "lng", geometry="g")):
        with pytest.raises(SettingError, match="of_geometry"):
            wrong()
    GeoBoxIndex("lat", "lng").check_types(("decimal(9,6)", "float"))
    for types in (("string", "double"), ("double", "boolean"), ("double", "date"), ("interval day", "double")):
        with pytest.raises(UnsupportedTypeError, match="geobox"):
            GeoBoxIndex("lat", "lng").check_types(types)
    for type_ in ("binary", "string", "udt:org.apache.spark.sql.sedona_sql.UDT.GeometryUDT"):
        GeoBoxIndex.of_geometry("g").check_types((type_,))
    with pytest.raises(UnsupportedTypeError):
        GeoBoxIndex.of_geometry("g").check_types(("double",))


@pytest.mark.parametrize("index", [GeoBoxIndex("lat", "lng", boxes=7), GeoBoxIndex.of_geometry("g", key="k")])
def test_an_index_is_made_again_from_its_options(index):
    assert GeoBoxIndex.from_options(index.name, dict(index.options())) == index


def test_columns_are_respelled():
    assert GeoBoxIndex("LAT", "lng").with_columns(("lat", "lng")).name == "geobox(lat, lng)"
    assert GeoBoxIndex.of_geometry("G", boxes=2).with_columns(("g",)).name == "geobox(g, boxes=2)"


# --- broken on purpose -----------------------------------------------------------------------------------------------


def break_side(patch, **changes):
    for name, value in changes.items():
        patch.setattr(_regions.Side, name, value)


MUTATIONS = {
    "bounds of the other axis": lambda patch: patch.setattr(
        _regions.Side,
        "passes",
        lambda self, boxes, old=_regions.Side.passes: old(self, boxes[[1, 0, 3, 2]]),
    ),
    "no NaN": lambda patch: break_side(patch, on_nan=lambda self, axis: False),
    "NaN of one axis only": lambda patch: break_side(patch, on_nan=lambda self, axis: self.leaf.on_nan),
    "OR read as AND": lambda patch: patch.setattr(
        _regions, "Joined", lambda terms, every, made=_regions.Joined: made(terms, True)
    ),
    "NULL is bounded": lambda patch: break_side(patch, bounds=property(lambda self: frozenset((0, 1)))),
    "x and y the wrong way round": lambda patch: patch.setattr(
        _regions, "Meets", lambda shape, distance, swapped, made=_regions.Meets: made(shape, distance, not swapped)
    ),
    "NaN meets nothing": lambda patch: patch.setattr(_regions.Meets, "on_nan", lambda self, axis: False),
    "distance left out": lambda patch: patch.setattr(
        _regions, "Meets", lambda shape, distance, swapped, made=_regions.Meets: made(shape, 0.0, swapped)
    ),
    "a box that is too small": lambda patch: patch.setattr(
        _boxes, "best_boxes", lambda boxes, count: best_boxes(boxes[:, 1:], count) if boxes.size > 4 else boxes
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_mistakes_are_noticed(mutation, monkeypatch):
    MUTATIONS[mutation](monkeypatch)
    predicates = pairs_of_ranges()[::11]
    predicates += [meets(shape, distance) for shape in SHAPES for distance in (0.0, 1.0)]
    predicates += [
        And(
            (tree.LessThan(LAT, number(2.0)), Or((tree.LessThan(LNG, number(0.0)), tree.GreaterThan(LNG, number(0.0)))))
        )
    ]
    predicates += [And((tree.GreaterThan(LAT, number(0.0)), tree.GreaterThan(LAT, number(-1.0)), IsNotNull(LAT)))]
    with pytest.raises(AssertionError, match="skips an object"):
        assert_represents(GeoBoxIndex("lat", "lng"), predicates, SINGLE + PAIRS, TYPES, functions={MEETS: truth})
