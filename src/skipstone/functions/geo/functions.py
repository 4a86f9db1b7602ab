"""Functions on geometries, on shapely, for columns of values at a time; geometries travel as well-known binary.

Every function gives NULL where an argument is NULL.  A geometry may be given as bytes (WKB) or as text (WKT), so that
there is no need of ``ST_GeomFromWKB`` and ``ST_AsBinary``, which Spark has of its own since 4.1.  x is the
longitude and y the latitude, as in well-known text; which of them comes first where two numbers are given for a point
is for the set to say.  A coordinate that is NaN counts as NULL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    Function = Callable[..., pd.Series]

__all__ = ["FUNCTIONS", "evaluate", "vectorised"]

_PREDICATES = (
    "contains", "within", "covers", "covered_by", "intersects", "disjoint", "touches", "overlaps", "crosses", "equals",
)  # fmt: skip


def _predicate(name: str) -> Function:
    """Make a function that holds two geometries, or a geometry and a point's coordinates, against one another."""

    def predicate(lat_first: bool, one: pd.Series, *other: pd.Series) -> pd.Series:  # noqa: FBT001
        import shapely

        found = _geometries(one), (_geometries(*other) if len(other) == 1 else _points(*_ordered(other, lat_first)))
        truths = getattr(shapely, name)(*found)
        return _nullable(truths, found, len(one))

    return predicate


def _point(lat_first: bool, *pair: pd.Series) -> pd.Series:  # noqa: FBT001
    """Make points."""
    return _bytes(_points(*_ordered(pair, lat_first)), len(pair[0]))


def _envelope(lat_first: bool, x: pd.Series, y: pd.Series, far_x: pd.Series, far_y: pd.Series) -> pd.Series:  # noqa: ARG001, FBT001
    """Make rectangles."""
    import shapely

    sides = [_numbers(side) for side in (x, y, far_x, far_y)]
    made = shapely.box(*(np.nan_to_num(side) for side in sides))
    made[np.isnan(sides).any(axis=0)] = None
    return _bytes(made, len(x))


def _from_text_or_bytes(lat_first: bool, geometries: pd.Series) -> pd.Series:  # noqa: ARG001, FBT001
    """Read geometries."""
    return _bytes(_geometries(geometries), len(geometries))


def _as_text(lat_first: bool, geometries: pd.Series) -> pd.Series:  # noqa: ARG001, FBT001
    """Write geometries."""
    import shapely

    return _repeated(shapely.to_wkt(_geometries(geometries), rounding_precision=-1, trim=True), len(geometries))


def _coordinate(name: str) -> Function:
    """Make a function that gives a point's coordinate."""

    def coordinate(lat_first: bool, geometries: pd.Series) -> pd.Series:  # noqa: ARG001, FBT001
        import shapely

        return _repeated(getattr(shapely, name)(_geometries(geometries)), len(geometries))

    return coordinate


def _buffer(lat_first: bool, geometries: pd.Series, distance: pd.Series) -> pd.Series:  # noqa: ARG001, FBT001
    """Make geometries wider."""
    import shapely

    return _bytes(shapely.buffer(_geometries(geometries), _numbers(distance)), len(geometries))


def _distance(lat_first: bool, one: pd.Series, *other: pd.Series) -> pd.Series:  # noqa: FBT001
    """Measure in the plane, in the units of the coordinates; NULL for an empty geometry."""
    import shapely

    second = _geometries(*other) if len(other) == 1 else _points(*_ordered(other, lat_first))
    return _repeated(shapely.distance(_geometries(one), second), len(one))


def _within_distance(lat_first: bool, one: pd.Series, other: pd.Series, distance: pd.Series) -> pd.Series:  # noqa: ARG001, FBT001
    """Whether geometries come within a distance of one another."""
    import shapely

    far = _numbers(distance)
    found = _geometries(one), _geometries(other)
    return _nullable(shapely.dwithin(*found, np.nan_to_num(far)), (*found, far), len(one))


FUNCTIONS: Mapping[str, tuple[str, str, Function]] = {
    **{f"ST_{_spelled}": (_spelled.lower(), "boolean", _predicate(_name)) for _name, _spelled in zip(
        _PREDICATES,
        ("Contains", "Within", "Covers", "CoveredBy", "Intersects", "Disjoint", "Touches", "Overlaps", "Crosses",
         "Equals"),
        strict=True,
    )},
    "ST_DWithin": ("dwithin", "boolean", _within_distance),
    "ST_Distance": ("distance", "double", _distance),
    "ST_Point": ("point", "binary", _point),
    "ST_MakePoint": ("point", "binary", _point),
    "ST_MakeEnvelope": ("envelope", "binary", _envelope),
    "ST_PolygonFromEnvelope": ("envelope", "binary", _envelope),
    "ST_GeomFromWKT": ("geomfromwkt", "binary", _from_text_or_bytes),
    "ST_GeomFromText": ("geomfromwkt", "binary", _from_text_or_bytes),
    "ST_WKTToSQL": ("geomfromwkt", "binary", _from_text_or_bytes),
    "ST_Buffer": ("buffer", "binary", _buffer),
    "ST_AsText": ("astext", "string", _as_text),
    "ST_X": ("x", "double", _coordinate("get_x")),
    "ST_Y": ("y", "double", _coordinate("get_y")),
}  # fmt: skip
"""By registered name: what it does (aliases do the same), the Spark type that it gives, and the function itself."""


def vectorised(name: str, *, lat_first: bool) -> Callable[..., pd.Series]:
    """Return a function of columns for Spark."""

    def function(*columns: pd.Series) -> pd.Series:
        with np.errstate(all="ignore"):  # of coordinates that are very large or infinite
            return FUNCTIONS[name][2](lat_first, *columns)

    return function


def evaluate(name: str, values: Sequence[Any], *, lat_first: bool) -> Any:
    """Evaluate a function on constants; ``None`` is NULL."""
    found = vectorised(name, lat_first=lat_first)(*(pd.Series([value], dtype=object) for value in values)).iloc[0]
    return None if pd.isna(found) else found


def _ordered(pair: Sequence[pd.Series], lat_first: bool) -> tuple[pd.Series, pd.Series]:  # noqa: FBT001
    """Return x before y."""
    first, second = pair
    return (second, first) if lat_first else (first, second)


def _numbers(values: pd.Series) -> npt.NDArray[np.float64]:
    """Return numbers as doubles, NULL as NaN."""
    return values.to_numpy(dtype=np.float64, na_value=np.nan)


def _points(x: pd.Series, y: pd.Series) -> Any:
    """Make points, none where a coordinate is missing."""
    import shapely

    across, up = _numbers(x), _numbers(y)
    made = shapely.points(across, up)
    made[np.isnan(across) | np.isnan(up)] = None
    return made


def _geometries(values: pd.Series) -> Any:
    """Read geometries; a constant, which Spark repeats as a column, is read once and prepared for many questions."""
    import shapely

    raw = values.to_numpy(dtype=object)
    if len(raw) and raw[0] is not None and raw[0] == raw[-1] and (raw == raw[0]).all():
        made = _read(raw[:1])[0]
        shapely.prepare(made)
        return made
    return _read(raw)


def _read(raw: npt.NDArray[np.object_]) -> Any:
    """Read bytes or text, or some of each."""
    import shapely

    is_text = np.fromiter((isinstance(value, str) for value in raw), np.bool_, len(raw))
    if not is_text.any():
        return shapely.from_wkb(raw)
    if is_text.all():
        return shapely.from_wkt(raw)
    made = np.empty(len(raw), object)
    made[is_text], made[~is_text] = shapely.from_wkt(raw[is_text]), shapely.from_wkb(raw[~is_text])
    return made


def _bytes(geometries: Any, count: int) -> pd.Series:
    """Write geometries as bytes."""
    import shapely

    return _repeated(shapely.to_wkb(geometries), count)


def _repeated(values: Any, count: int) -> pd.Series:
    """Return a column; one value of constants stands for all."""
    if np.ndim(values) == 0:
        values = [values] * count
    return pd.Series(values)


def _nullable(truths: Any, arguments: Sequence[Any], count: int) -> pd.Series:
    """Return truth values, NULL where an argument is NULL."""
    missing = np.zeros(count, np.bool_)
    for argument in arguments:
        missing |= argument is None if np.ndim(argument) == 0 else pd.isna(argument)
    return pd.Series(pd.arrays.BooleanArray(np.broadcast_to(truths, (count,)).copy(), missing))
