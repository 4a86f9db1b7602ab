"""The envelopes of geometries in well-known text or well-known binary.

Everything here runs on executors with numpy and pyarrow alone; shapely, where it is installed, makes it faster.  What
is not surely understood (curves, whose envelope is not that of their corners; damaged bytes) raises.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from skipstone.errors import SkipstoneError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]

__all__ = ["Envelopes", "GeometryError", "coordinates_of", "read_envelopes"]

HAS_SHAPELY = find_spec("shapely") is not None

_POINT, _LINE, _POLYGON, _COLLECTION = 1, 2, 3, 7
_PLAIN_POINT = np.frombuffer(bytes((1, 1, 0, 0, 0)), np.uint8)  # how one of two dimensions begins, in little-endian
_PLAIN_POINT_BYTES = 21
_Z, _M, _SRID = 0x80000000, 0x40000000, 0x20000000

_WORD = re.compile(
    r"(?:MULTI)?(?:POINT|LINESTRING|POLYGON)(?:ZM|Z|M)?|LINEARRING|GEOMETRYCOLLECTION(?:ZM|Z|M)?|EMPTY|ZM|Z|M",
    re.IGNORECASE,
)
_NUMBER = r"[-+]?(?:\d+\.?\d*(?:E[-+]?\d+)?|\.\d+(?:E[-+]?\d+)?|NAN|INF(?:INITY)?)"
_TOKEN = re.compile(rf"\s*(?:({_NUMBER}(?:\s+{_NUMBER})+)|([A-Z]+)|([(),]))", re.IGNORECASE)
_WITH_SRID = re.compile(r"\s*SRID\s*=\s*\d+\s*;", re.IGNORECASE)


class GeometryError(SkipstoneError):
    """Text or bytes are not a geometry that can be read."""


@dataclass(frozen=True, slots=True)
class Envelopes:
    """What is known of some geometries.

    Parameters
    ----------
    boxes
        The envelopes, as columns of least x, least y, greatest x and greatest y: of each geometry that has coordinates,
        all of them finite.
    odd
        How many have a coordinate that is not finite.
    empty
        How many have no coordinates; a point without is written as one of NaN.
    """

    boxes: Floats
    odd: int = 0
    empty: int = 0


def read_envelopes(geometries: pa.Array) -> Envelopes:
    """Read the envelopes of a column of text or bytes; a NULL has none.

    Raises
    ------
    GeometryError
        When one of them cannot be read.
    """
    geometries = geometries.drop_null()
    if pa.types.is_string(geometries.type) or pa.types.is_large_string(geometries.type):
        points, rest = np.empty((2, 0)), geometries.to_pylist()
    else:
        points, rest = _plain_points(geometries.cast(pa.large_binary()))
    coordinates, owners = _coordinates(rest)
    boxes = np.concatenate([np.concatenate([points, points]), _bounds(coordinates, owners, len(rest))], axis=1)
    nothing = np.isnan(boxes).all(axis=0)
    finite = np.isfinite(boxes).all(axis=0)
    return Envelopes(boxes[:, finite], int((~finite & ~nothing).sum()), int(nothing.sum()))


def _plain_points(geometries: pa.LargeBinaryArray) -> tuple[Floats, list[bytes]]:
    """Read the plain points among geometries all at once; return them, and the other geometries."""
    offsets = np.frombuffer(geometries.buffers()[1] or bytes(8), np.int64)[geometries.offset :][: len(geometries) + 1]
    places = np.flatnonzero(np.diff(offsets) == _PLAIN_POINT_BYTES)
    if not len(places):
        return np.empty((2, 0)), geometries.to_pylist()
    data = np.frombuffer(geometries.buffers()[2], np.uint8)
    rows = data[offsets[places][:, None] + np.arange(_PLAIN_POINT_BYTES)]
    is_point = (rows[:, : len(_PLAIN_POINT)] == _PLAIN_POINT).all(axis=1)
    points = np.ascontiguousarray(rows[is_point, len(_PLAIN_POINT) :]).view("<f8").T.astype(np.float64)
    other = np.ones(len(geometries), np.bool_)
    other[places[is_point]] = False
    return points, geometries.filter(pa.array(other)).to_pylist() if other.any() else []


def _bounds(coordinates: Floats, owners: npt.NDArray[np.intp], count: int) -> Floats:
    """Return the envelope of each geometry; NaN for one without coordinates, infinite for one with odd coordinates."""
    boxes = np.full((4, count), np.nan)
    if len(owners):
        odd = ~np.isfinite(coordinates).all(axis=0)
        starts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1]))
        known = np.where(odd, np.inf, coordinates)
        boxes[:2, owners[starts]] = np.minimum.reduceat(known, starts, axis=1)
        boxes[2:, owners[starts]] = np.maximum.reduceat(known, starts, axis=1)
        nothing = np.isnan(coordinates).all(axis=0)
        if nothing.any():
            boxes[:, owners[starts[np.logical_and.reduceat(nothing, starts)]]] = np.nan
    return boxes


def _coordinates(geometries: list[Any]) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Return the x and y of all corners of geometries, in order, and for each the place of its geometry."""
    if HAS_SHAPELY and geometries:
        import shapely

        try:
            with np.errstate(all="ignore"):
                read = (shapely.from_wkt if isinstance(geometries[0], str) else shapely.from_wkb)(geometries)
            if (shapely.get_type_id(read) < _COLLECTION).all():
                found, owners = shapely.get_coordinates(read, return_index=True)
                return np.ascontiguousarray(found.T), owners
        except (shapely.errors.ShapelyError, NotImplementedError, ValueError):
            pass  # text with an SRID, curves, damage: read one by one, which tells them apart
    each = [coordinates_of(geometry) for geometry in geometries]
    lengths = [found.shape[1] for found in each]
    return np.concatenate([np.empty((2, 0)), *each], axis=1), np.repeat(np.arange(len(each)), lengths)


def coordinates_of(geometry: str | bytes) -> Floats:
    """Return the x and y of all corners of one geometry, read without any library.

    Raises
    ------
    GeometryError
        When it cannot be read.

    Examples
    --------
    >>> coordinates_of("LINESTRING (1 2, 3 4)").tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    try:
        if isinstance(geometry, str):
            found = list(_text_coordinates(geometry))
        else:
            found, _ = _binary_coordinates(geometry, 0)
    except (struct.error, ValueError, IndexError, KeyError, RecursionError) as error:
        shown = geometry if isinstance(geometry, str) else geometry.hex()
        msg = f"not a geometry that can be read ({error}): {shown[:80]}"
        raise GeometryError(msg) from error
    return np.concatenate([np.empty((2, 0)), *found], axis=1)


def _text_coordinates(text: str) -> Iterator[Floats]:
    """Read well-known text, leniently: whoever evaluates the query finds what is wrong with it."""
    prefix = _WITH_SRID.match(text)
    place = prefix.end() if prefix else 0
    words = 0
    end = len(text.rstrip())
    while place < end:
        token = _TOKEN.match(text, place)
        if token is None or (token[2] and not _WORD.fullmatch(token[2])):
            raise ValueError(f"at character {place + 1}")
        if token[1]:
            yield np.array([[float(number)] for number in token[1].split()[:2]])
        words += bool(token[2])
        place = token.end()
    if not words:
        raise ValueError("no geometry is named")


def _binary_coordinates(data: bytes, place: int) -> tuple[list[Floats], int]:
    """Read one geometry of well-known binary, ISO's or PostGIS's; return also where it ends."""
    order = "<" if data[place] == 1 else ">"
    if data[place] > 1:
        raise ValueError(f"byte order {data[place]}")
    (code,) = struct.unpack_from(f"{order}I", data, place + 1)
    place += 9 if code & _SRID else 5
    dimensions = 2 + bool(code & _Z) + bool(code & _M)
    plain = code & ~(_Z | _M | _SRID)
    dimensions += (0, 1, 1, 2)[plain // 1000]
    kind = plain % 1000
    if kind == _POINT:
        return [_corners(data, f"{order}f8", 1, dimensions, place)], place + 8 * dimensions
    (count,) = struct.unpack_from(f"{order}I", data, place)
    place += 4
    if kind == _LINE:
        return [_corners(data, f"{order}f8", count, dimensions, place)], place + 8 * dimensions * count
    found: list[Floats] = []
    if kind == _POLYGON:
        for _ in range(count):
            (corners,) = struct.unpack_from(f"{order}I", data, place)
            found.append(_corners(data, f"{order}f8", corners, dimensions, place + 4))
            place += 4 + 8 * dimensions * corners
    elif _POLYGON < kind <= _COLLECTION:
        for _ in range(count):
            parts, place = _binary_coordinates(data, place)
            found += parts
    else:
        raise ValueError(f"kind {kind}")
    return found, place


def _corners(data: bytes, type_: str, count: int, dimensions: int, place: int) -> Floats:
    """Read coordinates, and leave out what is neither x nor y."""
    numbers = np.frombuffer(data, type_, count * dimensions, place) if count else np.empty(0)
    return numbers.reshape(count, dimensions)[:, :2].T.astype(np.float64)
