"""Envelopes of geometries in text and bytes, with and without shapely."""

import math

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from skipstone.functions.geo import envelopes
from skipstone.functions.geo.envelopes import GeometryError, coordinates_of, read_envelopes

SHAPES = [
    "POINT (1 2)",
    "LINESTRING (1 2, 3 4, -5 6)",
    "POLYGON ((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))",
    "MULTIPOINT ((1 2), (3 4))",
    "MULTILINESTRING ((1 2, 3 4), (5 6, 7 8))",
    "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((10 10, 11 10, 11 11, 10 10)))",
    "GEOMETRYCOLLECTION (POINT (1 2), LINESTRING (-7 -8, 9 9), GEOMETRYCOLLECTION (POINT (50 60)))",
    "POINT (1.5e3 -2.25E-2)",
    "POINT Z (1 2 99)",
    "LINESTRING ZM (1 2 99 98, 3 4 97 96)",
    "LINEARRING (0 0, 1 0, 1 1, 0 0)",
]
EMPTY = ["POINT EMPTY", "POLYGON EMPTY", "GEOMETRYCOLLECTION EMPTY", "MULTIPOINT EMPTY"]


@pytest.fixture(params=[True, False], ids=["shapely", "alone"])
def library(request, monkeypatch):
    monkeypatch.setattr(envelopes, "HAS_SHAPELY", request.param)


def boxes(column):
    return [tuple(box) for box in read_envelopes(column).boxes.T.tolist()]


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize("text", SHAPES)
def test_one_geometry_in_every_form(text):
    shape = shapely.from_wkt(text)
    wanted = [tuple(shapely.bounds(shape).tolist())]
    assert boxes(pa.array([text])) == wanted
    assert boxes(pa.array([text.lower(), None])) == wanted
    for order in (0, 1):
        for flavor in ("extended", "iso"):
            written = shapely.to_wkb(shape, byte_order=order, flavor=flavor)
            assert boxes(pa.array([None, written])) == wanted
    assert boxes(pa.array([shapely.to_wkb(shapely.set_srid(shape, 4326), include_srid=True)])) == wanted


@pytest.mark.usefixtures("library")
def test_all_at_once():
    shapes = shapely.from_wkt(SHAPES + EMPTY)
    wanted = [tuple(found) for found in shapely.bounds(shapes[: len(SHAPES)]).tolist()]
    for column in (pa.array(SHAPES + EMPTY), pa.array(shapely.to_wkb(shapes)), pa.array(SHAPES + EMPTY).slice(0)):
        found = read_envelopes(column)
        assert sorted(map(tuple, found.boxes.T.tolist())) == sorted(wanted)
        assert (found.odd, found.empty) == (0, len(EMPTY))
    sliced = read_envelopes(pa.array(shapely.to_wkb(shapes)).slice(1, 2))
    assert sliced.boxes.T.tolist() == [list(box) for box in wanted[1:3]]


@pytest.mark.usefixtures("library")
def test_coordinates_that_are_not_finite_are_counted():
    rows = [shapely.to_wkb(shapely.Point(1, 2)), shapely.to_wkb(shapely.Point(math.inf, 2))]
    with np.errstate(all="ignore"):
        lines = shapely.linestrings(
            [[(0, 0), (math.nan, 1)], [(0, 0), (-math.inf, 1)], [(0, 0), (1, 1)]], handle_nan="allow"
        )
    found = read_envelopes(pa.array(rows + list(shapely.to_wkb(lines))))
    assert found.odd == 3
    assert sorted(found.boxes.T.tolist()) == [[0, 0, 1, 1], [1, 2, 1, 2]]
    nan = b"\x01\x01\x00\x00\x00" + np.array([math.nan, 5.0]).tobytes()
    assert read_envelopes(pa.array([nan])).odd == 1
    assert read_envelopes(pa.array(["POINT (NaN 1)"])).odd == 1


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(
    "wrong",
    ["", "nonsense", "CIRCULARSTRING (0 0, 1 1, 2 0)", "COMPOUNDCURVE ((0 0, 1 1))", "POINT (1 2", "1 2", "POINT [1 2]",
     b"", b"\x01", b"\x02" + bytes(20), b"\x01\x08\x00\x00\x00" + bytes(40), b"\x01\x03\x00\x00\x00\xff\xff\xff\xff",
     b"\x01\x07\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00" + bytes(40)],
)  # fmt: skip
def test_what_cannot_be_read_raises_or_is_never_a_wrong_envelope(wrong):
    if wrong == "POINT (1 2":  # a query that reads it fails, so that any envelope will do
        assert boxes(pa.array([wrong])) == [(1, 2, 1, 2)]
        return
    with pytest.raises(GeometryError):
        read_envelopes(pa.array([wrong]))


def test_text_with_a_reference_system():
    assert boxes(pa.array(["SRID=4326;POINT (1 2)", "POINT (3 4)"])) == [(1, 2, 1, 2), (3, 4, 3, 4)]


@settings(max_examples=60, deadline=None)
@given(corners=st.lists(st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 2), min_size=2, max_size=6))
def test_both_readers_find_the_same_corners(corners):
    line = shapely.LineString(corners)
    for written, read in (
        (shapely.to_wkb(line), shapely.from_wkb),
        (shapely.to_wkt(line, rounding_precision=-1), shapely.from_wkt),
    ):
        assert coordinates_of(written).T.tolist() == shapely.get_coordinates(read(written)).tolist()
