"""What functions on geometries imply, held against shapely row by row."""

import itertools
import math

import numpy as np
import pytest
import shapely
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skipstone.engines.spark.register_geo import _evaluated
from skipstone.expressions import tree
from skipstone.expressions.tree import Call, Cast, Column, EqualTo, LessThan, LessThanOrEqual, Literal, Not
from skipstone.functions.geo import functions
from skipstone.functions.geo.implications import (
    SEDONA_CLASSES,
    SEDONA_TYPE,
    GeoFunction,
    RegisteredFunctions,
    SedonaFunctions,
)
from skipstone.functions.geo.shapes import MEETS
from skipstone.querying.generate_clause import generate_clause
from skipstone.querying.implication import NotTheSameFunctionError
from skipstone.testing import evaluate

LAT, LNG = Column("lat", "double"), Column("lng", "double")
PREDICATES = ("Contains", "Within", "Covers", "CoveredBy", "Intersects", "Touches", "Overlaps", "Crosses", "Equals")
RING = "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (2 2, 6 2, 6 6, 2 6, 2 2))"


def registered(*, lat_first=True):
    """Return the set as ``register`` would, with made-up identities."""
    known = {f"id {name}": GeoFunction(found[0], lat_first, name) for name, found in functions.FUNCTIONS.items()}
    return RegisteredFunctions(known, frozenset(name.lower() for name in functions.FUNCTIONS), _evaluated)


def ours(name, *arguments, identity=None):
    return Call(name, arguments, kind="python", identity=identity or f"id {name}")


def sedona(name, *arguments):
    return Call(name.lower(), arguments, class_name=f"{SEDONA_CLASSES}{name}")


def text(wkt):
    return Literal(wkt, "string")


def constant(wkt):
    return Literal(wkt, SEDONA_TYPE)


def real(value):
    return Literal(value, "double")


def row_functions(*, lat_first=True):
    """Return the functions of the set for one row, and the canonical predicate, for the row-level truth."""
    made = {
        name: lambda *values, name=name: plain(functions.evaluate(name, values, lat_first=lat_first))
        for name in functions.FUNCTIONS
    }
    return {**made, MEETS: meets}


def plain(value):
    return bool(value) if isinstance(value, np.bool_) else value


def meets(x, y, geometry, distance):
    read = shapely.from_wkt if isinstance(geometry, str) else shapely.from_wkb
    if x is None or y is None:
        return None
    return not (abs(x) < 1e40 and abs(y) < 1e40) or bool(
        shapely.distance(read(geometry), shapely.Point(x, y)) <= distance
    )


POINTS = [
    {"lat": lat, "lng": lng}
    for lat, lng in itertools.product([None, math.nan, -1.0, 0.0, 1.0, 4.0, 7.5, 8.0, 90.0], repeat=2)
] + [
    {"lat": 1.0, "lng": -math.inf},
    {"lat": math.inf, "lng": 1.0},
    {"lat": 1.0, "lng": 179.5},
    {"lat": -90.0, "lng": -180.0},
    {"lat": 1.0, "lng": 181.0},
]


@pytest.mark.parametrize("lat_first", [True, False])
def test_what_is_implied_is_true_wherever_the_function_is(lat_first):
    implication, known = registered(lat_first=lat_first), row_functions(lat_first=lat_first)
    pair = (LAT, LNG) if lat_first else (LNG, LAT)
    point = ours("ST_Point", *pair)
    shape = ours("ST_GeomFromWKT", text(RING))
    place = ours("ST_Point", real(1.0), Literal(4, "int"))
    far = [real(0.0), Literal(2, "int"), real(3.5)]
    leaves = [ours(f"ST_{name}", *sides) for name in PREDICATES for sides in ((shape, point), (point, shape))]
    leaves += [ours(f"ST_{name}", text(wkt), *pair) for name in ("Contains", "Intersects", "Touches") for wkt in (
        RING, "LINESTRING (0 0, 8 8)", "MULTIPOINT ((1 1), (181 1))", "POINT (4 4)",
        "POLYGON ((179 -2, 181 -2, 181 2, 179 -2))",
    )]  # fmt: skip
    leaves += [ours("ST_DWithin", *sides, r) for sides in ((shape, point), (point, place)) for r in far]
    distances = [ours("ST_Distance", *sides) for sides in ((shape, point), (point, place), (text(RING), *pair))]
    leaves += [
        make(d, real(float(r.value))) for make in (LessThan, LessThanOrEqual, EqualTo) for d in distances for r in far
    ]
    leaves += [Not(ours("ST_Disjoint", point, shape))]
    refuted = true = 0
    for leaf in leaves:
        implied = implication.implied(leaf)
        assert implied is not None, leaf
        for row in POINTS:
            holds = evaluate(leaf, row, known) is True
            allowed = evaluate(implied, row, known) is True
            assert allowed or not holds, (leaf, row)
            true += holds
            refuted += not allowed
    assert true > 300
    assert refuted > len(leaves) * len(POINTS) * 0.5


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 1e308, -1e308])
def test_nothing_is_relied_on_of_coordinates_with_which_libraries_overflow(odd):
    implied = registered().implied(ours("ST_Contains", text(RING), LAT, LNG))
    for row in ({"lat": odd, "lng": 1.0}, {"lat": 1.0, "lng": odd}, {"lat": odd, "lng": odd}):
        assert evaluate(implied, row, row_functions()) is True
    assert evaluate(implied, {"lat": 1.0, "lng": 9.0}, row_functions()) is False


numbers = st.floats(-200, 200) | st.integers(-20, 20).map(lambda n: n / 2)


@settings(max_examples=200, deadline=None)
@given(corners=st.lists(st.tuples(numbers, numbers), min_size=2, max_size=5), x=numbers, y=numbers)
def test_a_distance_that_is_found_is_never_refuted(corners, x, y):
    """The distance of a point is what the library computes; being at most that must be implied to the last digit."""
    line, point = shapely.LineString(corners), shapely.Point(x, y)
    with np.errstate(all="ignore"):
        distance = float(shapely.distance(line, point))
    assume(math.isfinite(distance))
    leaf = LessThanOrEqual(
        ours("ST_Distance", text(shapely.to_wkt(line, rounding_precision=-1)), ours("ST_Point", LAT, LNG)),
        real(distance),
    )
    implied = registered().implied(leaf)
    without = [term for term in implied.terms if not isinstance(term, Call)]
    assert len(without) == 2
    assert all(evaluate(term, {"lat": y, "lng": x}) for term in without)


def test_sedona_is_known_by_its_classes_and_has_x_first():
    implication = SedonaFunctions()
    point = sedona("ST_Point", LNG, LAT)
    both = [
        implication.implied(sedona("ST_Contains", constant(RING), point)),
        implication.implied(sedona("ST_Within", sedona("ST_SetSRID", point, Literal(4326, "int")), constant(RING))),
        implication.implied(registered_leaf := sedona("ST_Contains", sedona("ST_GeomFromWKT", text(RING)), point)),
    ]
    assert both[0] == both[1] == both[2]
    assert str(registered_leaf)
    of_columns = {str(column) for term in both[0].terms for column in columns(term)}
    assert of_columns == {"lat", "lng"}
    assert both[0].terms[-1].arguments[:2] == (LNG, LAT)
    assert (
        implication.implied(Call("st_contains", (constant(RING), point), class_name="org.example.ST_Contains")) is None
    )
    assert implication.implied(Call("st_contains", (constant(RING), point), kind="python")) is None
    assert implication.implied(sedona("ST_ContainsProperly", constant(RING), point)) is None
    assert implication.implied(sedona("ST_Contains", text(RING), point)) is None  # text is no geometry to Sedona


def columns(node):
    return [node] if isinstance(node, Column) else [found for child in node.children for found in columns(child)]


def test_columns_of_geometries():
    own, known = Column("g", SEDONA_TYPE), Column("b", "binary")
    leaf = SedonaFunctions().implied(sedona("ST_Intersects", constant(RING), own))
    assert leaf == Call(MEETS, (own, text(RING), real(0.0)), "boolean")
    assert SedonaFunctions().implied(sedona("ST_Intersects", constant(RING), known)) is None
    read = sedona("ST_GeomFromWKB", known)
    assert SedonaFunctions().implied(sedona("ST_Intersects", constant(RING), read)).arguments[0] == known
    assert SedonaFunctions().implied(sedona("ST_DWithin", read, constant(RING), real(2.0))).arguments[2] == real(2.0)
    assert registered().implied(ours("ST_Within", known, text(RING))).arguments[0] == known
    assert (
        registered().implied(ours("ST_Within", ours("ST_GeomFromWKT", Column("t", "string")), text(RING))) is not None
    )
    assert registered().implied(ours("ST_Within", Column("n", "int"), text(RING))) is None


@pytest.mark.parametrize(
    "leaf",
    [
        sedona("ST_Contains", constant("POLYGON EMPTY"), sedona("ST_Point", LNG, LAT)),
        sedona("ST_Contains", constant("nonsense"), sedona("ST_Point", LNG, LAT)),
        sedona("ST_Contains", constant("POINT (NaN 1)"), sedona("ST_Point", LNG, LAT)),
        sedona("ST_Contains", sedona("ST_Point", LNG, LAT), sedona("ST_Point", LAT, LNG)),
        sedona("ST_Contains", constant(RING), sedona("ST_Centroid", Column("g", SEDONA_TYPE))),
        sedona("ST_Disjoint", constant(RING), sedona("ST_Point", LNG, LAT)),
        Not(sedona("ST_Contains", constant(RING), sedona("ST_Point", LNG, LAT))),
        sedona("ST_DWithin", sedona("ST_Point", LNG, LAT), constant(RING), real(1.0), Literal(True, "boolean")),
        sedona("ST_DWithin", sedona("ST_Point", LNG, LAT), constant(RING), Column("r", "double")),
        tree.GreaterThan(sedona("ST_Distance", sedona("ST_Point", LNG, LAT), constant(RING)), real(1.0)),
        LessThan(sedona("ST_Distance", sedona("ST_Point", LNG, LAT), constant(RING)), real(math.nan)),
        LessThan(sedona("ST_Distance", sedona("ST_Point", LNG, LAT), constant(RING)), real(math.inf)),
        LessThan(sedona("ST_Distance", sedona("ST_Point", LNG, LAT), constant(RING)), real(-1.0)),
        LessThan(sedona("ST_DistanceSphere", sedona("ST_Point", LNG, LAT), constant(RING)), real(1.0)),
        LessThan(sedona("ST_Distance", sedona("ST_Point", LNG, LAT), constant(RING)), Literal(None, "double")),
        LessThan(LAT, real(1.0)),
    ],
    ids=str,
)
def test_nothing_is_implied_of_what_is_not_known(leaf):
    assert SedonaFunctions().implied(leaf) is None


@pytest.mark.parametrize(
    ("column", "bounds"),
    [
        (Column("n", "int"), "((n >= 0) AND (n <= 8))"),
        (Cast(Column("n", "int"), "double"), "((n >= 0) AND (n <= 8))"),
        (Column("n", "decimal(6,2)"), "((n >= -0.00) AND (n <= 8.00))"),
        (Column("n", "float"), "n > 1.32922799"),
        (Cast(Column("n", "float"), "double"), "n < -1.32922799"),
        (Cast(Column("n", "string"), "double"), None),
        (Cast(Column("n", "double"), "int"), None),
        (Column("n", "string"), None),
    ],
    ids=str,
)
def test_coordinates_of_every_type(column, bounds):
    implied = str(registered().implied(ours("ST_Contains", text("POLYGON ((0 0, 8 0, 8 8, 0 0))"), column, LNG)))
    if bounds is None:
        assert "n >=" not in implied
    else:
        assert bounds.replace("((", "(").replace("))", ")") in implied.replace("((", "(").replace("))", ")")


def test_a_single_precision_value_is_not_told_from_a_rounded_one():
    """A cast to float moves a value: no box of the column may be held against the geometry."""
    moved = Cast(Column("n", "double"), "float")
    assert MEETS not in str(registered().implied(ours("ST_Contains", text(RING), moved, LNG)))
    exact = Cast(Column("n", "decimal(9,3)"), "double")
    assert MEETS in str(registered().implied(ours("ST_Contains", text(RING), exact, LNG)))


def test_another_function_of_the_name_is_not_ours():
    point = ours("ST_Point", LAT, LNG)
    for leaf in (
        ours("ST_Contains", text(RING), point, identity="theirs"),
        ours("st_contains", text(RING), ours("ST_Point", LAT, LNG, identity="theirs")),
        ours("ST_Contains", ours("ST_GeomFromWKT", text(RING), identity="theirs"), point),
        Not(ours("ST_Disjoint", text(RING), point, identity="theirs")),
    ):
        with pytest.raises(NotTheSameFunctionError, match=r"skipstone\.geo\.register"):
            registered().implied(leaf)
    assert registered().implied(ours("ST_Other", text(RING), point, identity="theirs")) is None
    assert registered().implied(Call("ST_Contains", (text(RING), point))) is None
    labelled = generate_clause(ours("ST_Contains", text(RING), point, identity="theirs"), (), (registered(),))
    assert labelled.clause is None
    assert "skipstone.geo: ST_Contains is not the function" in labelled.problems[0]


def test_the_order_of_a_pair_is_the_sets():
    first = registered(lat_first=True).implied(ours("ST_Contains", text(RING), LAT, LNG))
    second = registered(lat_first=False).implied(ours("ST_Contains", text(RING), LNG, LAT))
    assert first == second
    assert registered(lat_first=False).implied(ours("ST_Contains", text(RING), LAT, LNG)) != first


# --- the functions themselves ----------------------------------------------------------------------------------------


def test_functions_on_constants():
    def value(name, *arguments, lat_first=True):
        return plain(functions.evaluate(name, arguments, lat_first=lat_first))

    assert value("ST_AsText", value("ST_Point", 1, 2)) == "POINT (2 1)"
    assert value("ST_AsText", value("ST_Point", 1, 2, lat_first=False)) == "POINT (1 2)"
    assert value("ST_AsText", value("ST_MakeEnvelope", 0, 0, 1, 2)).startswith("POLYGON ((1 0, 1 2")
    assert value("ST_X", "POINT (3 4)") == 3
    assert value("ST_Distance", "POINT (0 0)", "POINT (3 4)") == 5
    assert value("ST_Distance", "POINT (0 0)", "POINT EMPTY") is None
    assert value("ST_DWithin", "POINT (0 0)", "POINT (3 4)", 5) is True
    assert value("ST_DWithin", "POINT (0 0)", "POINT (3 4)", None) is None
    assert value("ST_Contains", RING, 1, 1) is True
    assert value("ST_Contains", RING, 4, 4) is False
    assert value("ST_Contains", RING, None, 4) is None
    assert value("ST_Contains", None, "POINT (1 1)") is None
    assert value("ST_Contains", RING, "POINT EMPTY") is False
    assert value("ST_Point", 1, math.nan) is None
    assert value("ST_Buffer", "POINT (1 1)", 1) is not None


def test_functions_on_columns():
    import pandas as pd

    point = functions.vectorised("ST_Point", lat_first=True)
    contains = functions.vectorised("ST_Contains", lat_first=True)
    lat, lng = pd.Series([1.0, 4.0, math.nan, 7.0]), pd.Series([1, 4, 5, 7])
    ring, two = pd.Series([RING] * 4), pd.Series([RING, "POINT (4 4)", None, RING])
    for shapes, wanted in ((ring, [True, False, None, True]), (two, [True, True, None, True])):
        for found in (contains(shapes, lat, lng), contains(shapes, point(lat, lng))):
            assert [None if v is pd.NA else bool(v) for v in found] == wanted
    mixed = pd.Series([shapely.to_wkb(shapely.from_wkt(RING)), RING, None, RING])
    assert [None if v is pd.NA else bool(v) for v in contains(mixed, lat, lng)] == [True, False, None, True]
    assert len(contains(ring[:0], lat[:0], lng[:0])) == 0
