"""Metrics of vectors: the distances of many points from one, the same code for the index and for functions of a query.

Of the rounding errors that each states (``Tolerance``), with ``u = 2⁻⁵³`` and ``n`` coordinates (what is stated is at
least twice as much):

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
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from skipstone.errors import SettingError
from skipstone.functions.distances.metric import FLAT_ROUNDING, ComputedMetric, Found, Points, Tolerance, is_number
from skipstone.functions.distances.vectors import NO_VECTOR, read_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from skipstone.expressions.tree import Call

    Floats = npt.NDArray[np.float64]
    Flags = npt.NDArray[np.bool_]

__all__ = [
    "EARTH_RADIUS",
    "Angular",
    "Euclidean",
    "Haversine",
    "Manhattan",
    "VectorMetric",
    "one_less_cosine",
]

EARTH_RADIUS = 6_371_008.8
"""The mean radius of the earth in metres (IUGG)."""

_NUMBER = r"(?:tinyint|smallint|int|bigint|float|double)"
_NUMBERS = re.compile(rf"array<{_NUMBER}>")
_LITERAL_NUMBERS = re.compile(rf"array<(?:{_NUMBER}|decimal\(\d+,\d+\))>")
_LAT, _LNG = r"(?i:lat|latitude)", r"(?i:lng|lon|long|longitude)"
_POINT = re.compile(rf"struct<(?:{_LAT}:{_NUMBER},{_LNG}|{_LNG}:{_NUMBER},{_LAT}):{_NUMBER}>")
_L2_DISTANCE = "org.apache.spark.sql.catalyst.expressions.VectorFunctionImplUtils.vectorL2Distance"


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
        return Tolerance((kind + 8) * FLAT_ROUNDING, math.sqrt(kind) * 2.0**-510, 2.0**500)

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
        return Tolerance((kind + 8) * FLAT_ROUNDING, kind * 2.0**-1020, 2.0**1000)


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
