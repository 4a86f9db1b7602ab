"""The constant geometry of a query, held against many boxes at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from skipstone.functions.geo.envelopes import HAS_SHAPELY, coordinates_of

if TYPE_CHECKING:
    import numpy.typing as npt

    Boxes: TypeAlias = npt.NDArray[np.float64]

__all__ = ["MEETS", "TRUSTED", "Shape"]

MEETS = "skipstone:meets"
"""The name of the predicate that functions on geometries come down to: the subject meets a constant geometry, or comes
within a distance of it.  Its arguments are a geometry column, or a column of x and one of y; the geometry, as text or
bytes; the distance."""

_MARGIN = 1e-9
"""How far computed coordinates and distances are off at most, relative to the numbers they are made of.

Distances between points and lines are made of a dozen operations, each off by 2⁻⁵³ of the greatest number in it, which
is a difference of coordinates or a coordinate: some 10⁻¹⁵ in all.  This is a million times that.
"""

TRUSTED = 2.0**120
"""Coordinates beyond this, infinite ones and NaN are not relied on.

Libraries multiply coordinates with one another; where that overflows, a point may be found to be on a line far away.
"""

_TOO_LARGE = 1e15
_SIMPLE_TYPES = 7  # shapely's numbers of those that are not collections of any kind of geometry


@dataclass(frozen=True)
class Shape:
    """A geometry that is not empty, all of whose coordinates are finite.

    ``bounds`` are least x, least y, greatest x and greatest y.  ``exact`` is the geometry itself, for shapely, where
    that is installed and the geometry is valid and not a collection of several kinds: of all others only the bounds are
    used, since libraries differ on what is inside of them.
    """

    bounds: tuple[float, float, float, float]
    exact: Any = None

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, geometry: str | bytes) -> Self | None:
        """Read text or bytes; ``None`` for a geometry that is empty or has a coordinate that is not finite.

        Raises
        ------
        GeometryError
            When it cannot be read.
        """
        corners = coordinates_of(geometry)
        if not corners.shape[1] or not np.isfinite(corners).all():
            return None
        (x, y), (far_x, far_y) = corners.min(axis=1), corners.max(axis=1)
        return cls((float(x), float(y), float(far_x), float(far_y)), _exact(geometry))

    def margin(self, distance: float) -> float:
        """Return how far from the bounds something may be that is found to be within a distance of the geometry."""
        return distance * (1 + _MARGIN) + _MARGIN * max(1.0, *map(abs, self.bounds))

    def might_meet(self, boxes: Boxes, distance: float = 0.0) -> npt.NDArray[np.bool_]:
        """Return for each box, a column of the array, whether something in it may be within this distance of the shape.

        The boxes are made a little larger first: no point that a library finds to be inside of the geometry, on its
        edge or within the distance, whatever its rounding, is in a box that is refused.
        """
        margin = self.margin(distance)
        x, y, far_x, far_y = self.bounds
        near: npt.NDArray[np.bool_] = (
            (boxes[0] <= far_x + margin)
            & (boxes[1] <= far_y + margin)
            & (boxes[2] >= x - margin)
            & (boxes[3] >= y - margin)
        )
        reach = np.abs(boxes).max(axis=0, initial=0)
        near |= ~(reach <= TRUSTED)
        if self.exact is None:
            return near
        asked = np.flatnonzero(near & (reach < _TOO_LARGE))
        if len(asked):
            near[asked] = self._meets(boxes[:, asked], margin)
        return near

    def _meets(self, boxes: Boxes, margin: float) -> npt.NDArray[np.bool_]:
        """Ask shapely whether boxes come within the margin; where it has no answer, they might."""
        import shapely

        wider = _MARGIN * np.maximum(1.0, np.abs(boxes).max(axis=0))
        made = shapely.box(boxes[0] - wider, boxes[1] - wider, boxes[2] + wider, boxes[3] + wider)
        try:
            with np.errstate(all="ignore"):
                found: npt.NDArray[np.bool_] = shapely.dwithin(self.exact, made, margin)
        except shapely.errors.ShapelyError:
            return np.ones(boxes.shape[1], np.bool_)
        return found


def _exact(geometry: str | bytes) -> Any:
    """Return the geometry itself for shapely, if it may be used."""
    if not HAS_SHAPELY:
        return None
    import shapely

    try:
        found = shapely.from_wkt(geometry) if isinstance(geometry, str) else shapely.from_wkb(geometry)
    except (shapely.errors.ShapelyError, NotImplementedError):
        return None
    if shapely.get_type_id(found) >= _SIMPLE_TYPES or not shapely.is_valid(found):
        return None
    shapely.prepare(found)
    return found
