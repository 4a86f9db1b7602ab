"""What a metric is: a distance of points, what indexes ask of it, and how far its rounding errors go.

A *point* is a row of a matrix (numbers of one dimension, as doubles) or a text.  What a metric computes carries
rounding errors, so each states its ``Tolerance``: ``|computed - exact| ≤ relative · exact + absolute`` for finite
points, unless the computation overflows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from skipstone.expressions.tree import Call, Literal

    Floats = npt.NDArray[np.float64]

__all__ = [
    "FLAT_ROUNDING",
    "FUNCTIONS_VERSION",
    "Asked",
    "ComputedMetric",
    "Found",
    "Measured",
    "Metric",
    "Points",
    "Tolerance",
    "as_points",
    "is_number",
]

FUNCTIONS_VERSION = "skipstone.distances 1"
"""The stated version of the functions that give these distances in queries; changes when their results do."""

FLAT_ROUNDING = 2.0**-52
"""Twice the relative error of one operation on doubles."""

_COSINE = "cosine_distance"
_MOST_RELATIVE = 0.1

Points = Any
"""A matrix of doubles with a row for each point, or a list of texts."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a computed distance may be from the exact one, and from where on it may be infinite instead."""

    relative: float = 0.0
    absolute: float = 0.0
    limit: float = 2.0**1000

    @property
    def is_small(self) -> bool:
        """Whether the errors are small enough for the reasoning in ``reach``."""
        return self.relative <= _MOST_RELATIVE

    def reach(self, lower: Floats, upper: Floats, between: Floats) -> tuple[Floats, Floats]:
        """Bound the computed distances from ``q`` of points whose computed distances from ``o`` lie in given bounds.

        With ``between`` the computed, finite distance of ``o`` and ``q``, relative error ``a``, absolute error ``b``:

        * ``d(x,q) ≤ d(x,o) + d(o,q) ≤ (upper + between + 2b) / (1 - a)``, computed at most
          ``(upper + between)(1 + 3a) + 4b``, as ``a ≤ 0.1``;
        * ``d(x,q) ≥ d(x,o) - d(o,q) ≥ (lower - b) / (1 + a) - (between + b) / (1 - a)``, computed at least
          ``lower - between - 2a lower - 3b``, and the same with ``between - upper``.

        The slack below is ``4a`` and ``8b`` and eight roundings of the sums here.  A distance that overflowed is only
        known to be beyond ``limit``: as a lower bound it counts as that, as an upper bound as infinity.
        """
        lower = np.minimum(lower, self.limit)
        slack = 4 * self.relative + (8 * FLAT_ROUNDING if self.relative or self.absolute else 0.0)
        near = lower - between - slack * (lower + between) - 8 * self.absolute
        far = between - upper - slack * (upper + between) - 8 * self.absolute
        greatest = upper + between + slack * (upper + between) + 8 * self.absolute
        return np.maximum(np.maximum(near, far), 0.0), np.where(greatest < self.limit, greatest, np.inf)


@dataclass(frozen=True, slots=True)
class Found:
    """What a column holds: points by their kind (those of one kind have distances), and what else.

    ``non_finite`` says that there are rows with NaN or infinite coordinates, whose distance from any finite point is
    NaN or infinite.  Rows whose distance from every point is NULL are left out.
    """

    points: Mapping[int, Points]
    non_finite: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """The finite distances of some rows from given origins, an array for each, and whether others are not finite."""

    distances: tuple[Floats, ...]
    non_finite: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """The distances of a column's values from a literal, as a call in a query computes them.

    ``between`` has the literal's distances from the given origins, ``None`` where it is not known; it is ``None``
    itself when no origins were given, and then the literal is the ``point``.  ``cosine`` says that the call gives
    ``1 - cos`` of the distance, an angle.
    """

    tolerance: Tolerance
    between: tuple[float | None, ...] | None
    point: Any = None
    cosine: bool = False


class Metric(ABC):
    """A distance that is symmetric, zero only between equals, and obeys the triangle inequality.

    ``takes`` says in words which columns have such distances.
    """

    name: str
    takes: str

    @property
    @abstractmethod
    def identities(self) -> tuple[str, ...] | Mapping[str, str]:
        """The users' functions in a query that give these distances, as ``Index.functions`` has them."""

    @abstractmethod
    def supports(self, spark_type: str, origins: Sequence[Any] = ()) -> bool:
        """Whether a column of this type holds points, which have distances from the origins."""

    @abstractmethod
    def origin(self, given: Any) -> Any:
        """Check a point that a user gave and make it canonical; ``SettingError`` when it is none."""

    @abstractmethod
    def kind(self, point: Any) -> int:
        """Return a number that tells which points this one has distances from."""

    @abstractmethod
    def inputs(self, column: str, spark_type: str, origins: Sequence[Any]) -> tuple[str, ...]:
        """Return the SQL that Spark computes for ``measured``."""

    @abstractmethod
    def measured(self, columns: Sequence[pa.Array], origins: Sequence[Any]) -> Measured | None:
        """Return the distances of rows from origins, or ``None`` when they are not known of every row."""

    @abstractmethod
    def asked(
        self, call: Call, spark_type: str, literal: Literal, origins: Sequence[Any] | None, *, mirrored: bool
    ) -> Asked | None:
        """Read a call of a column of a type and a literal, which comes first where it is ``mirrored``.

        ``None`` when it does not compute this metric, or nothing can be said of the literal.
        """


class ComputedMetric(Metric):
    """A metric that comes with Skipstone: what it computes here is what the functions of a query compute."""

    functions: ClassVar[tuple[str, ...]]

    @property
    def identities(self) -> Mapping[str, str]:
        """The functions of ``skipstone.distances``, at their stated version; Spark's own are not among them."""
        return dict.fromkeys(self.functions, f"version {FUNCTIONS_VERSION}")

    def inputs(self, column: str, spark_type: str, origins: Sequence[Any]) -> tuple[str, ...]:  # noqa: ARG002  (as inherited)
        """Return the column itself."""
        return (column,)

    def measured(self, columns: Sequence[pa.Array], origins: Sequence[Any]) -> Measured | None:
        """Compute the distances of the points that have any from the origins."""
        found = self.find(columns[0])
        if found is None:
            return None
        points = found.points.get(self.kind(origins[0]))
        distances = (np.empty(0) if points is None else self.distances(points, origin) for origin in origins)
        return Measured(tuple(distances), found.non_finite)

    def asked(
        self,
        call: Call,
        spark_type: str,  # noqa: ARG002  (``supports`` has seen it)
        literal: Literal,
        origins: Sequence[Any] | None,
        *,
        mirrored: bool,  # noqa: ARG002  (the distance is the same)
    ) -> Asked | None:
        """Compute the literal's distances from the origins."""
        point = self.literal(literal.value, literal.type)
        if point is None:
            return None
        tolerance = self.tolerance_of(call, self.kind(point))
        if tolerance is None or not tolerance.is_small:
            return None
        between: tuple[float, ...] | None = None
        if origins is not None:
            if self.kind(point) != self.kind(origins[0]):
                return None
            between = tuple(float(self.distances(as_points(origin), point)[0]) for origin in origins)
        return Asked(tolerance, between, point, cosine=call.name.lower() == _COSINE)

    def tolerance_of(self, call: Call, kind: int) -> Tolerance | None:
        """Return the error of what a call computes, or ``None`` when it does not compute this metric."""
        is_ours = call.kind == "python" and call.name.lower() in self.functions and len(call.arguments) == 2
        return self.tolerance(kind) if is_ours else None

    @abstractmethod
    def find(self, column: pa.Array) -> Found | None:
        """Read a column's points; ``None`` when they cannot be read."""

    @abstractmethod
    def literal(self, value: Any, spark_type: str) -> Any:
        """Read a query's literal as a point, or ``None`` when it is not a finite one that has distances."""

    @abstractmethod
    def from_origins(self, origins: pa.Array, point: Any) -> Floats:
        """Compute the distances of a point from stored origins; NaN where there is none of its kind."""

    @abstractmethod
    def distances(self, points: Points, origin: Any) -> Floats:
        """Compute the distances of points from one of their kind; infinite when they overflow."""

    @abstractmethod
    def centre(self, points: Points, element: np.dtype[Any]) -> Any:
        """Choose an origin for some points, with coordinates of a type."""

    @abstractmethod
    def tolerance(self, kind: int) -> Tolerance:
        """Return the error of computed distances between points of a kind."""

    @staticmethod
    def size(points: Points) -> int:
        """Estimate the bytes that points take."""
        return points.nbytes if isinstance(points, np.ndarray) else sum(map(len, points)) + 64 * len(points)

    @staticmethod
    def join(parts: Sequence[Points]) -> Points:
        """Put points together."""
        if isinstance(parts[0], np.ndarray):
            return parts[0] if len(parts) == 1 else np.concatenate(parts)
        return list(dict.fromkeys(text for part in parts for text in part))


def as_points(origin: Any) -> Points:
    """Return one point as points."""
    return [origin] if isinstance(origin, str) else np.array(origin, np.float64).reshape(1, len(origin))


def is_number(value: Any) -> bool:
    """Whether a coordinate is a finite number."""
    number = isinstance(value, int | float | Decimal | np.integer | np.floating) and not isinstance(value, bool)
    return number and math.isfinite(value)
