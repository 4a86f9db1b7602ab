"""Distances as functions of a query, registered by one call; the index of metric distances knows them by name.

==================================== ==================================================================================
function of two arrays of numbers    gives
==================================== ==================================================================================
``euclidean_distance(v, w)``         the length of the difference
``manhattan_distance(v, w)``         the sum of the absolute differences
``angular_distance(v, w)``           the angle between the directions, in radians from 0 to π
``cosine_distance(v, w)``            1 - cos of that angle, from 0 to 2
``haversine_distance(p, q)``         metres on a sphere the size of the earth; points are ``array(latitude, longitude)``
                                     in degrees, or structs of ``lat`` and ``lng``
==================================== ==================================================================================

All give NULL where an argument is NULL, has a NULL in it, or is of another length than the other, and where there is no
distance: a vector of zeros has no direction, a latitude beyond 90 or a longitude beyond 360 is no point.  NaN and
infinite coordinates give NaN or infinity.  Numbers of every type are taken as doubles.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from skipstone.functions.distances.metrics import METRICS
from skipstone.functions.distances.vector_metrics import VectorMetric, one_less_cosine
from skipstone.functions.distances.vectors import NO_VECTOR, read_vectors

__all__ = ["FUNCTIONS", "distances_between"]


def euclidean_distance(one: pa.Array, other: pa.Array) -> pa.Array:
    """Return the lengths of the differences."""
    return _between("euclidean", one, other)


def manhattan_distance(one: pa.Array, other: pa.Array) -> pa.Array:
    """Return the sums of the absolute differences."""
    return _between("manhattan", one, other)


def haversine_distance(one: pa.Array, other: pa.Array) -> pa.Array:
    """Return the metres between points on the globe."""
    return _between("haversine", one, other)


def angular_distance(one: pa.Array, other: pa.Array) -> pa.Array:
    """Return the angles between directions."""
    return _between("angular", one, other)


def cosine_distance(one: pa.Array, other: pa.Array) -> pa.Array:
    """Return 1 - cos of the angles between directions."""
    angles = _between("angular", one, other)
    cosines = one_less_cosine(angles.fill_null(0.0).to_numpy())
    return pa.array(cosines, pa.float64(), mask=angles.is_null().to_numpy(zero_copy_only=False))


FUNCTIONS = (euclidean_distance, manhattan_distance, haversine_distance, angular_distance, cosine_distance)
"""What is registered, each under its own name."""


def _between(metric: str, one: pa.Array, other: pa.Array) -> pa.Array:
    """Compute by a metric on vectors."""
    found = METRICS[metric]
    assert isinstance(found, VectorMetric)  # noqa: S101  (for the type checker: the names above are theirs)
    return distances_between(found, one, other)


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
