"""The GeoBox index: a few boxes that cover the points or geometries of each object (paper, table I, figure 4)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import SettingError
from skipstone.expressions.tree import And, Call
from skipstone.functions.geo.envelopes import read_envelopes
from skipstone.functions.geo.shapes import MEETS
from skipstone.indexes.geo_box import boxes as _boxes
from skipstone.indexes.geo_box.regions import read_region
from skipstone.indexing.index import Index
from skipstone.indexing.metadata_type import MetadataType
from skipstone.querying.clause import Clause
from skipstone.querying.filter import Filter
from skipstone.toolkit.values import quoted, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skipstone.expressions.tree import Expression
    from skipstone.indexes.geo_box.boxes import Boxes
    from skipstone.indexing.objects import DataObject
    from skipstone.querying.clause import Metadata

__all__ = ["GeoBoxClause", "GeoBoxFilter", "GeoBoxIndex", "GeoBoxMetadata"]

_NUMBERS = re.compile(r"tinyint|smallint|int|bigint|float|double|decimal\(\d+,\s?-?\d+\)")
_GEOMETRIES = re.compile(r"string|binary|udt:org\.apache\.spark\.sql\.sedona_sql\.UDT\.GeometryUDT\w*")
_EXACT_WHOLE = 2.0**53
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class GeoBoxMetadata(MetadataType):
    """Boxes that cover some rows, and how many rows are in none of them.

    Stored are ``boxes``, four numbers each: the low ends of both axes, then the high ends.  The axes are those of the
    index's columns, or x and y.  ``nan_count`` rows have a coordinate that is NaN (of a geometry: not finite), and
    ``empty_count`` are empty geometries.  A row with a NULL is not counted at all.
    """

    parts: tuple[Boxes, ...]
    nan_count: int
    empty_count: int | None
    stored: pa.DataType
    index: GeoBoxIndex

    @classmethod
    def of_points(cls, first: pa.Array, second: pa.Array, index: GeoBoxIndex) -> Self:
        """Collect from two columns of numbers."""
        stored = pa.float32() if first.type == second.type == pa.float32() else pa.float64()
        if first.null_count or second.null_count:
            both = pc.and_(first.is_valid(), second.is_valid())
            first, second = first.filter(both), second.filter(both)
        (low, high), (other_low, other_high) = _as_doubles(first), _as_doubles(second)
        boxes = np.stack([low, other_low, high, other_high])
        is_nan = np.isnan(low) | np.isnan(other_low)
        nans = int(is_nan.sum())
        return cls((_boxes.coarser(boxes[:, ~is_nan] if nans else boxes),), nans, None, stored, index)

    @classmethod
    def of_geometries(cls, geometries: pa.Array, index: GeoBoxIndex) -> Self:
        """Collect from a column of geometries."""
        found = read_envelopes(geometries)
        return cls((_boxes.coarser(found.boxes),), found.odd, found.empty, pa.float64(), index)

    @classmethod
    def fields(cls, inputs: tuple[pa.DataType, ...]) -> Mapping[str, pa.DataType]:
        single = len(inputs) > 1 and all(type_ == pa.float32() for type_ in inputs)
        stored = {"boxes": pa.list_(pa.float32() if single else pa.float64()), "nan_count": pa.int64()}
        return stored if len(inputs) > 1 else {**stored, "empty_count": pa.int64()}

    def merge(self, other: Self) -> Self:
        parts = (*self.parts, *other.parts)
        if sum(part.shape[1] for part in parts) > 4 * _boxes.STATE_BOXES:
            parts = (_boxes.coarser(np.concatenate(parts, axis=1)),)
        empty = None if self.empty_count is None or other.empty_count is None else self.empty_count + other.empty_count
        return type(self)(parts, self.nan_count + other.nan_count, empty, self.stored, self.index)

    def finish(self, data_object: DataObject) -> Mapping[str, Any]:  # noqa: ARG002  (part of the contract)
        chosen = _boxes.best_boxes(np.concatenate(self.parts, axis=1), self.index.boxes)
        stored = {"boxes": pa.array(chosen.T.ravel(), self.stored), "nan_count": self.nan_count}
        return stored if self.empty_count is None else {**stored, "empty_count": self.empty_count}


def _as_doubles(numbers: pa.Array) -> tuple[Any, Any]:
    """Return doubles not above and not below numbers without NULLs, with the nearest double between them."""
    if pa.types.is_floating(numbers.type):
        exact = numbers.to_numpy().astype(np.float64, copy=False)
        return exact, exact
    near = numbers.cast(pa.float64(), safe=False).to_numpy()
    if pa.types.is_integer(numbers.type):
        rounded = np.abs(near) >= _EXACT_WHOLE
        if not rounded.any():
            return near, near
        return np.where(rounded, np.nextafter(near, -np.inf), near), np.where(rounded, np.nextafter(near, np.inf), near)
    wide = np.abs(near) * 2.0**-50  # the conversion of decimals is not said to be the nearest
    return near - wide, near + wide


@dataclass(frozen=True)
class GeoBoxIndex(Index):
    """A few boxes that cover the places of each object: of two columns of coordinates, or of one of geometries.

    Parameters
    ----------
    lat, lng
        The columns of coordinates, of any numeric type; which is which does not matter.
    boxes
        The number *x* of boxes to keep of each object.
    geometry
        The column of geometries, in place of the other two: see ``of_geometry``.

    Notes
    -----
    How the boxes are found, and why they are close to the best ones, is said at ``_boxes.best_boxes``.  While rows come
    in, an even grid over them holds the extent of what is in each of its cells; parts of an object merge by joining
    their cells, and a new grid where these become too many.

    Examples
    --------
    >>> GeoBoxIndex("lat", "lng", boxes=8).name
    'geobox(lat, lng, boxes=8)'
    >>> GeoBoxIndex.of_geometry("shape").name
    'geobox(shape)'
    """

    metadata_type = GeoBoxMetadata

    lat: str = ""
    lng: str = ""
    boxes: int = field(default=4, kw_only=True)
    geometry: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        _check_boxes(self.boxes)
        if bool(self.geometry) == bool(self.lat or self.lng) or bool(self.lat) != bool(self.lng):
            msg = (
                "a geobox index has two columns of coordinates, GeoBoxIndex('lat', 'lng'), "
                "or one of geometries, GeoBoxIndex.of_geometry('column')"
            )
            raise SettingError(msg)
        if self.lat == self.lng and not self.geometry:
            msg = f"{self.lat!r} is given for both coordinates: name two columns, GeoBoxIndex('lat', 'lng')"
            raise SettingError(msg)
        super().__post_init__()

    @classmethod
    def of_geometry(cls, column: str, *, boxes: int = 4, key: str | None = None, name: str = "") -> Self:
        """Index a column of geometries: text (WKT), bytes (WKB, EWKB), or Apache Sedona's own type."""
        return cls(boxes=boxes, geometry=column, key=key, name=name)

    def _column_fields(self) -> tuple[str, ...]:
        return ("geometry",) if self.geometry else ("lat", "lng")

    @property
    def functions(self) -> tuple[str, ...]:
        """None: boxes hold no function's results."""
        return ()

    def supports(self, types: tuple[str, ...]) -> bool:
        return all((_GEOMETRIES if self.geometry else _NUMBERS).fullmatch(type_) for type_ in types)

    @property
    def evaluated(self) -> tuple[str, ...]:
        return ()  # what Sedona writes of a geometry is the same everywhere

    def inputs(self, types: tuple[str, ...]) -> tuple[str, ...]:
        if types[0].startswith("udt:"):  # Sedona's own form has no reader here: let Sedona write what has
            return (f"ST_AsEWKB({quoted(self.geometry)})",)
        return self.columns

    def collect_metadata(self, rows: pa.RecordBatch) -> GeoBoxMetadata:
        if self.geometry:
            return GeoBoxMetadata.of_geometries(rows.column(0), self)
        return GeoBoxMetadata.of_points(rows.column(0), rows.column(1), self)

    def filters(self) -> tuple[Filter, ...]:
        return (GeoBoxFilter(self),)


def _check_boxes(boxes: Any) -> None:
    """Raise unless ``boxes`` is a number of boxes."""
    if not isinstance(boxes, int) or isinstance(boxes, bool) or boxes < 1:
        msg = f"boxes={boxes!r} is not a number of boxes: give a positive whole number"
        raise SettingError(msg)


@dataclass(frozen=True, slots=True)
class GeoBoxClause(Clause):
    """Some box of the object might hold a place that satisfies the predicate, which must be one that is a region."""

    index: GeoBoxIndex
    predicate: Expression

    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        """Join by Kleene's OR what boxes, NaN and empty geometries each make possible."""
        region = read_region(self.predicate, self.index.columns)
        lists = metadata.field(self.index, "boxes")
        if region is None or pa.types.is_null(lists.type):
            return unknown(len(metadata))
        offsets = lists.offsets.to_numpy().astype(np.int64)
        first, count = offsets[0], offsets[-1] - offsets[0]
        if ((offsets - first) % 4).any():  # not what was stored
            return unknown(len(metadata))
        numbers = lists.values.slice(first, count).to_numpy(zero_copy_only=False).astype(np.float64)
        boxes = np.ascontiguousarray(numbers.reshape(-1, 4).T)
        places = np.flatnonzero(region.passes(boxes) | np.isnan(numbers).reshape(-1, 4).any(axis=1))
        ends = np.searchsorted(places, (offsets - first) // 4)
        found = pc.if_else(lists.is_valid(), pa.array(ends[:-1] < ends[1:]), None)
        for _, name in self.requires[1:]:
            found = pc.or_kleene(found, pc.greater(metadata.field(self.index, name), 0))
        return found

    @property
    def requires(self) -> tuple[tuple[Index, str], ...]:
        """The boxes, and the counts of rows outside of them that might match."""
        region = read_region(self.predicate, self.index.columns)
        names = ["boxes"]
        if region is not None and (region.on_nan(0) or region.on_nan(1)):
            names.append("nan_count")
        if region is not None and self.index.geometry and region.on_empty:
            names.append("empty_count")
        return tuple((self.index, name) for name in names)

    def __str__(self) -> str:
        text = str(self.predicate)  # a geometry may have a million corners
        return f"{self.index.name}[{text if len(text) <= _LONGEST else f'{text[:_LONGEST]}…'}]"


@dataclass(frozen=True, slots=True)
class GeoBoxFilter(Filter):
    """Labels conjunctions that bound both coordinates, and what functions on geometries imply, with ``GeoBoxClause``.

    Every row of an object whose coordinates are neither NULL nor NaN lies, as a point, in one of its boxes: merging and
    rounding make boxes larger, never smaller.  Every geometry that is neither NULL, empty nor odd (with a coordinate
    that is not finite) lies wholly in one.  So if such a row satisfies a predicate, its box *passes*:

    ============================== =====================================================================================
    predicate                      a box with the sides ``[L, U]`` (one for each column) passes when
    ============================== =====================================================================================
    ``c < v``, ``c <= v``          ``L < v`` (``L ≤ v``) on the side of ``c``
    ``c > v``, ``c >= v``          ``U > v`` (``U ≥ v``)
    ``c = v``, ``c IN (…)``        some ``v`` lies in ``[L, U]``
    ``isnan(c)``                   never: no box holds a NaN
    ``meets(x, y, G, r)``          its distance from the geometry ``G`` is at most ``r``, with a margin for rounding, or
                                   it reaches beyond ``shapes.TRUSTED``
    ``meets(g, G, r)``             the same: the box holds ``g``, so it is as near to ``G`` as ``g`` is, or nearer
    ``a AND b AND …``              it passes each term that is one of these; the others can only make fewer rows match
    ``a OR b OR …``                it passes some term, and all of them are of these
    ============================== =====================================================================================

    By induction: the row's *one* box passes every term that the row satisfies.  A literal ``v`` that is not a double is
    rounded outwards.

    *NULL.*  Labelled is a conjunction only if, for each column, some term of it is never TRUE where the column is NULL:
    a comparison, or an OR of such.  So no row with a NULL satisfies it, and rows with a NULL, which are in no box, do
    not matter.  ``meets`` is NULL or FALSE for NULL by its definition: functions on geometries are.

    *NaN.*  Rows with a NaN are in no box but counted.  NaN satisfies ``c > v``, ``c >= v``, equality with NaN and
    ``isnan(c)``; nothing is relied on for ``meets``.  If the predicate may be TRUE where the one or the other column is
    NaN, every term on the other column taken to be TRUE, objects with such rows are kept.

    *Empty geometries* are within no distance of anything, but for libraries which say that their distance is 0; so
    objects with one are kept for a distance greater than 0, and they meet nothing.
    """

    index: GeoBoxIndex

    def label_node(self, node: Expression) -> Clause | None:
        columns = self.index.columns
        if isinstance(node, Call):
            is_served = node.name == MEETS and read_region(node, columns) is not None
            return GeoBoxClause(self.index, node) if is_served else None
        if not isinstance(node, And):
            return None
        terms = tuple(term for term in node.terms if read_region(term, columns) is not None)
        if len(terms) < 2:
            return None
        joined = And(terms)
        region = read_region(joined, columns)
        return GeoBoxClause(self.index, joined) if region is not None and region.bounds == {0, 1} else None
