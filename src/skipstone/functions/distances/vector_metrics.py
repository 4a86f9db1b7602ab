"""Metrics: the distances of many points from one, the same code for the index and for the functions of a query.

A *point* is a row of a matrix (numbers of one dimension, as doubles) or a text.  What a metric computes carries
rounding errors, so each states its ``Tolerance``: ``|computed - exact| ≤ relative · exact + absolute`` for finite
points, unless the computation overflows.  With ``u = 2⁻⁵³`` and ``n`` coordinates (what is stated is at least twice as
much):

* Manhattan: a difference has a relative error of ``u`` (and is exact when subnormal), each of ``n - 1`` additions of
  non-negative numbers adds another: ``n u``, in any order of summation.
* Euclidean: a square of a difference has ``3 u``, the sum ``(n + 2) u``, the root halves that and adds ``u``.  A square
  that underflows loses at most ``2⁻¹⁰²²``, the sum ``n 2⁻¹⁰²²``, the root ``√n 2⁻⁵¹¹``.
* Angular: vectors are scaled to their largest coordinate, then to length 1, which leaves each within ``(n/2 + 4) u`` of
  the exact one.  The angle is ``2 atan2(|x - y|, |x + y|)`` of unit vectors; both lengths are within ``(2n + 14) u`` of
  the exact ones, and as their squares add up to 4, the angle is within ``√2`` times that.  No cosine is inverted, which
  near 0 and π would cost half of the digits.
* Haversine: the same of the points' unit vectors in space.  Degrees up to 360 become radians within ``13 u``, their
  sines and cosines and the products within ``20 u``, hence the angle within ``2⁷ u``; times the radius of the earth.
* Levenshtein: whole numbers, exact.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from skipstone.errors import SettingError
from skipstone.functions.distances.edits import edit_distances
from skipstone.functions.distances.vectors import NO_VECTOR, read_vectors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from skipstone.expressions.tree import Call, Literal

    Floats = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]

__all__ = [
    "EARTH_RADIUS",
    "FUNCTIONS_VERSION",
    "METRICS",
    "Asked",
    "ComputedMetric",
    "Measured",
    "Metric",
    "Points",
    "Tolerance",
    "VectorMetric",
    "as_points",
    "distances_between",
    "is_number",
    "one_less_cosine",
]

FUNCTIONS_VERSION = "skipstone.distances 1"
"""The stated version of the functions that give these distances in queries; changes when their results do."""

EARTH_RADIUS = 6_371_008.8
"""The mean radius of the earth in metres (IUGG)."""

_NUMBER = r"(?:tinyint|smallint|int|bigint|float|double)"
_NUMBERS = re.compile(rf"array<{_NUMBER}>")
_LITERAL_NUMBERS = re.compile(rf"array<(?:{_NUMBER}|decimal\(\d+,\d+\))>")
_LAT, _LNG = r"(?i:lat|latitude)", r"(?i:lng|lon|long|longitude)"
_POINT = re.compile(rf"struct<(?:{_LAT}:{_NUMBER},{_LNG}|{_LNG}:{_NUMBER},{_LAT}):{_NUMBER}>")
_LEVENSHTEIN = "org.apache.spark.sql.catalyst.expressions.Levenshtein"
_L2_DISTANCE = "org.apache.spark.sql.catalyst.expressions.VectorFunctionImplUtils.vectorL2Distance"
_COSINE = "cosine_distance"
_FLAT_ROUNDING = 2.0**-52
_MOST_RELATIVE = 0.1
_MOST_LETTERS = 256
_CANDIDATES, _SAMPLED = 8, 32

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
        slack = 4 * self.relative + (8 * _FLAT_ROUNDING if self.relative or self.absolute else 0.0)
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


class VectorMetric(ComputedMetric):
    """A metric on arrays of numbers of one length; arrays of two lengths have no distance (NULL)."""

    takes = "an array of numbers"

    def supports(self, spark_type: str, origins: Sequence[Any] = ()) -> bool:  # noqa: ARG002  (of every length)
        return _NUMBERS.fullmatch(spark_type) is not None

    def defined(self, points: Floats) -> Flags:
        """Return which points have distances at all; those that are not finite do."""
        return np.ones(len(points), np.bool_)

    def prepare(self, points: Floats) -> Floats:
        """Bring points into the form that ``between`` takes."""
        return points

    @abstractmethod
    def between(self, one: Floats, other: Floats) -> Floats:
        """Compute distances row by row between prepared points; a single row stands for many."""

    def find(self, column: pa.Array) -> Found | None:
        vectors = read_vectors(column)
        points: dict[int, Points] = {}
        wild = False
        for length in np.unique(vectors.lengths[vectors.lengths != NO_VECTOR]).tolist():
            matrix = vectors.matrix(np.flatnonzero(vectors.lengths == length), length)
            finite = np.isfinite(matrix).all(axis=1)
            if not finite.all():
                wild = True
                matrix = matrix[finite]
            defined = self.defined(matrix)
            matrix = matrix if defined.all() else matrix[defined]
            if len(matrix):
                points[length] = np.array(matrix, copy=True)
        return Found(points, wild)

    def origin(self, given: Any) -> tuple[float, ...]:
        numbers = given.tolist() if isinstance(given, np.ndarray) else given
        if not isinstance(numbers, list | tuple) or not numbers or not all(map(is_number, numbers)):
            msg = f"the origin {given!r} is not a point: give a list of finite numbers"
            raise SettingError(msg)
        point = tuple(float(number) for number in numbers)
        if not self.defined(np.array([point]))[0]:
            msg = f"the origin {given!r} has no {self.name} distance: {self.undefined}"
            raise SettingError(msg)
        return point

    undefined: ClassVar[str] = ""

    def literal(self, value: Any, spark_type: str) -> tuple[float, ...] | None:
        if not isinstance(value, tuple) or _LITERAL_NUMBERS.fullmatch(spark_type) is None:
            return None
        if any(number is None for number in value):
            return None
        point = tuple(float(number) for number in value)
        defined = self.defined(np.array([point], np.float64).reshape(1, len(point)))[0]
        return point if defined and all(map(math.isfinite, point)) else None

    def kind(self, point: Any) -> int:
        return len(point)

    def distances(self, points: Points, origin: Any) -> Floats:
        other = np.array(origin, np.float64).reshape(1, len(origin))
        return self.between(self.prepare(points), self.prepare(other))

    def from_origins(self, origins: pa.Array, point: Any) -> Floats:
        vectors = read_vectors(origins)
        rows = np.flatnonzero(vectors.lengths == len(point))
        found = np.full(len(origins), np.nan)
        found[rows] = self.distances(vectors.matrix(rows, len(point)), point)
        return found

    def candidates(self, points: Floats) -> list[Floats]:
        """Return points that may be near the middle: halfway between the extremes, and the mean."""
        lowest, highest = points.min(axis=0), points.max(axis=0)
        mean = np.clip((points / len(points)).sum(axis=0), lowest, highest)
        return [lowest / 2 + highest / 2, mean]

    def centre(self, points: Points, element: np.dtype[Any]) -> tuple[float, ...]:
        """Take the candidate from which the farthest point is least far, in numbers that the column could hold."""
        candidates = [as_element(middle, element) for middle in self.candidates(points)]
        defined = [point for point in candidates if self.defined(point.reshape(1, -1))[0]]
        if not defined:
            return tuple(as_element(points[0], element).tolist())
        return tuple(min(defined, key=lambda point: self.distances(points, point).max()).tolist())


class Euclidean(VectorMetric):
    """The length of the difference."""

    name = "euclidean"
    functions = ("euclidean_distance",)

    def between(self, one: Floats, other: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return _length(one - other)

    def tolerance(self, kind: int) -> Tolerance:
        return Tolerance((kind + 8) * _FLAT_ROUNDING, math.sqrt(kind) * 2.0**-510, 2.0**500)

    def tolerance_of(self, call: Call, kind: int) -> Tolerance | None:
        """Know Spark's ``vector_l2_distance``, too, which computes with numbers of 24 bits."""
        if not call.kind and call.name == "staticinvoke" and call.identity == _L2_DISTANCE:
            return Tolerance((kind + 8) * 2.0**-22, math.sqrt(kind) * 2.0**-60, 2.0**60)
        return super().tolerance_of(call, kind)


class Manhattan(VectorMetric):
    """The sum of the absolute differences."""

    name = "manhattan"
    functions = ("manhattan_distance",)

    def between(self, one: Floats, other: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return np.abs(one - other).sum(axis=1)

    def tolerance(self, kind: int) -> Tolerance:
        return Tolerance((kind + 8) * _FLAT_ROUNDING, kind * 2.0**-1020, 2.0**1000)


class Angular(VectorMetric):
    """The angle between two directions, in radians from 0 to π; the zero vector has none (NULL)."""

    name = "angular"
    functions = ("angular_distance", "cosine_distance")
    undefined = "a vector of zeros has no direction"

    def defined(self, points: Floats) -> Flags:
        return np.asarray(points.any(axis=1), np.bool_)

    def prepare(self, points: Floats) -> Floats:
        with np.errstate(all="ignore"):
            scaled = points / np.abs(points).max(axis=1, initial=0.0, keepdims=True)
            scaled /= _length(scaled)[:, np.newaxis]
            return scaled

    def between(self, one: Floats, other: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return 2 * np.arctan2(_length(one - other), _length(one + other))

    def candidates(self, points: Floats) -> list[Floats]:
        return super().candidates(self.prepare(points))

    def centre(self, points: Points, element: np.dtype[Any]) -> tuple[float, ...]:
        """Take the point nearest to the middle where numbers are whole: these have no direction of length 1."""
        if element.kind == "f":
            return super().centre(points, element)
        middle = super().centre(points, np.dtype(np.float64))
        return tuple(as_element(points[int(np.argmin(self.distances(points, middle)))], element).tolist())

    def tolerance(self, kind: int) -> Tolerance:
        return Tolerance(0.0, (kind + 32) * 2.0**-49, 2.0**10)


class Haversine(VectorMetric):
    """Metres along the surface of a sphere the size of the earth, between points ``[latitude, longitude]`` in degrees.

    The haversine of the central angle is the square of half the chord; here the chord is taken in space, where neither
    the poles nor the meridian of 180 degrees is special.
    """

    name = "haversine"
    functions = ("haversine_distance",)
    takes = "an array [latitude, longitude] or a struct of lat and lng"
    undefined = "a latitude lies in -90 … 90, a longitude in -360 … 360"

    def supports(self, spark_type: str, origins: Sequence[Any] = ()) -> bool:
        return super().supports(spark_type, origins) or _POINT.fullmatch(spark_type) is not None

    def defined(self, points: Floats) -> Flags:
        if points.shape[1] != 2:
            return np.zeros(len(points), np.bool_)
        within = np.asarray((np.abs(points) <= (90.0, 360.0)).all(axis=1), np.bool_)
        return within | ~np.isfinite(points).all(axis=1)

    def prepare(self, points: Floats) -> Floats:
        if points.shape[1] != 2:
            return np.full((len(points), 3), np.nan)
        usable = np.where(np.isfinite(points), points, np.nan)
        latitude, longitude = np.radians(usable).T
        flat = np.cos(latitude)
        return np.stack((flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)), axis=1)

    def between(self, one: Floats, other: Floats) -> Floats:
        return EARTH_RADIUS * 2 * np.arctan2(_length(one - other), _length(one + other))

    def candidates(self, points: Floats) -> list[Floats]:
        x, y, z = self.prepare(points).mean(axis=0)
        over_mean = np.degrees(np.array([np.arctan2(z, np.hypot(x, y)), np.arctan2(y, x)]))
        return [*super().candidates(points), over_mean]

    def tolerance(self, kind: int) -> Tolerance:  # noqa: ARG002  (a point has two coordinates)
        return Tolerance(2.0**-50, EARTH_RADIUS * 2.0**-44, 2.0**40)


class Levenshtein(ComputedMetric):
    """The least number of characters to insert, delete or replace, as Spark's own function counts them."""

    name = "levenshtein"
    functions = ()
    takes = "a string"

    def supports(self, spark_type: str, origins: Sequence[Any] = ()) -> bool:  # noqa: ARG002  (every text)
        return spark_type == "string"

    def find(self, column: pa.Array) -> Found | None:
        """Text that is not valid UTF-8 is not read: who counts its characters in which way is not known."""
        once = column.unique().drop_null()
        try:
            once.validate(full=True)
        except pa.ArrowInvalid:
            return None
        return Found({0: once.to_pylist()} if len(once) else {})

    def origin(self, given: Any) -> str:
        if not isinstance(given, str):
            msg = f"the origin {given!r} is not text: the Levenshtein distance is one of strings"
            raise SettingError(msg)
        return given

    def literal(self, value: Any, spark_type: str) -> str | None:
        return value if isinstance(value, str) and spark_type in ("string", "") else None

    def kind(self, point: Any) -> int:  # noqa: ARG002  (every text has a distance from every other)
        return 0

    def distances(self, points: Points, origin: Any) -> Floats:
        return edit_distances(points, origin).astype(np.float64)

    def centre(self, points: Points, element: np.dtype[Any]) -> str:  # noqa: ARG002  (there are no coordinates)
        """Take, of a few texts that are not longer than most, the one whose farthest companion is least far."""
        sample = points[:: max(1, len(points) // _SAMPLED)][:_SAMPLED]
        sizes = [len(text.encode()) for text in sample]
        short = [text for text, size in zip(sample, sizes, strict=True) if size * len(sizes) <= sum(sizes)]
        candidates = [text[:_MOST_LETTERS] for text in short[:: max(1, len(short) // _CANDIDATES)][:_CANDIDATES]]
        return min(candidates, key=lambda text: float(self.distances(sample, text).max()))

    def tolerance(self, kind: int) -> Tolerance:  # noqa: ARG002  (whole numbers are exact)
        return Tolerance(limit=2.0**52)

    def tolerance_of(self, call: Call, kind: int) -> Tolerance | None:
        """Know Spark's ``levenshtein`` of two arguments; with a third it gives -1 for what is farther."""
        is_sparks = not call.kind and call.class_name == _LEVENSHTEIN and len(call.arguments) == 2
        return self.tolerance(kind) if is_sparks else super().tolerance_of(call, kind)

    def from_origins(self, origins: pa.Array, point: Any) -> Floats:
        rows = np.flatnonzero(origins.is_valid().to_numpy(zero_copy_only=False))
        found = np.full(len(origins), np.nan)
        found[rows] = self.distances(origins.drop_null().to_pylist(), point)
        return found


METRICS: Mapping[str, ComputedMetric] = {
    metric.name: metric for metric in (Euclidean(), Manhattan(), Haversine(), Angular(), Levenshtein())
}
"""The metrics that come with Skipstone, by name."""


def distances_between(metric: VectorMetric, one: pa.Array, other: pa.Array) -> pa.Array:
    """Compute the distances of two columns row by row: what the functions of a query give.

    NULL where either is NULL, has a NULL in it, is of another length than the other or has no distance at all; NaN or
    infinite where a coordinate is, or where the distance is beyond what a double holds.

    Examples
    --------
    >>> points = pa.array([[0.0, 0.0], [1.0], None])
    >>> distances_between(METRICS["euclidean"], points, pa.array([[3, 4]] * 3)).to_pylist()
    [5.0, None, None]
    """
    left, right = read_vectors(one), read_vectors(other)
    found = np.zeros(len(one))
    known = np.zeros(len(one), np.bool_)
    same = np.where(left.lengths == right.lengths, left.lengths, NO_VECTOR)
    for length in np.unique(same[same != NO_VECTOR]).tolist():
        rows = np.flatnonzero(same == length)
        constant = right.matrix(rows, length)
        if (constant == constant[0]).all():  # a literal comes once for every row
            constant = constant[:1]
        points = left.matrix(rows, length)
        found[rows] = metric.between(metric.prepare(points), metric.prepare(constant))
        known[rows] = metric.defined(points) & metric.defined(constant)
    return pa.array(found, pa.float64(), mask=~known)


def as_points(origin: Any) -> Points:
    """Return one point as points."""
    return [origin] if isinstance(origin, str) else np.array(origin, np.float64).reshape(1, len(origin))


def one_less_cosine(angle: Floats) -> Floats:
    """Return ``1 - cos`` of angles from 0 to π; it grows with the angle."""
    half: Floats = np.sin(angle / 2)
    return 2 * half * half


def as_element(point: Floats, element: np.dtype[Any]) -> Floats:
    """Round coordinates to what a type of number can hold; the doubles that stand for these.

    The double nearest to the greatest of the long numbers is beyond all of them.
    """
    if element.kind == "f":
        return point.astype(element).astype(np.float64)
    bounds = np.iinfo(element)
    least, most = float(bounds.min), np.nextafter(float(bounds.max), 0.0) if element.itemsize == 8 else bounds.max
    return np.rint(np.clip(point, least, most))


def _length(vectors: Floats) -> Floats:
    """Return the Euclidean length of each row."""
    return np.sqrt(np.einsum("ij,ij->i", vectors, vectors))


def is_number(value: Any) -> bool:
    """Whether a coordinate is a finite number."""
    number = isinstance(value, int | float | Decimal | np.integer | np.floating) and not isinstance(value, bool)
    return number and math.isfinite(value)
