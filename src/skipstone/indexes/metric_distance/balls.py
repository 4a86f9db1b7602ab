"""Balls around origins: what stays of an object's points when they are too many to keep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skipstone.functions.distances.metric import as_points

if TYPE_CHECKING:
    import numpy.typing as npt

    from skipstone.functions.distances.metric import ComputedMetric, Points

__all__ = ["KEPT_BYTES", "Ball", "Cloud"]

KEPT_BYTES = 8 << 20
"""While an object's points take no more than this, they are kept, and the origin is chosen from all of them."""

_MOST_BALLS = 32


@dataclass(frozen=True, slots=True)
class Ball:
    """Every point lies between two distances from the origin, as computed; none when ``lower > upper``."""

    origin: Any
    lower: float = math.inf
    upper: float = -math.inf

    def holding(self, distances: npt.NDArray[np.float64]) -> Ball:
        """Let points in at these distances."""
        if not len(distances):
            return self
        return Ball(self.origin, min(self.lower, float(distances.min())), max(self.upper, float(distances.max())))

    def united(self, other: Ball, metric: ComputedMetric) -> Ball:
        """Let another ball's points in, by the triangle inequality where its origin is another."""
        if other.lower > other.upper:
            return self
        lower, upper = other.lower, other.upper
        if other.origin != self.origin:
            tolerance = metric.tolerance(metric.kind(self.origin))
            lower, upper = 0.0, math.inf
            between = metric.distances(as_points(other.origin), self.origin)[0]
            if between < tolerance.limit:
                near, far = tolerance.reach(np.array([other.lower]), np.array([other.upper]), between)
                lower, upper = float(near[0]), float(far[0])
        return Ball(self.origin, min(self.lower, lower), max(self.upper, upper))


@dataclass(frozen=True, slots=True)
class Cloud:
    """Some points that have distances from one another: the points themselves while they are few, else balls."""

    count: int
    kept: tuple[Points, ...] = ()
    balls: tuple[Ball, ...] = ()

    def merge(self, other: Cloud, metric: ComputedMetric, element: np.dtype[Any]) -> Cloud:
        """Put two clouds together."""
        merged = Cloud(self.count + other.count, (*self.kept, *other.kept), (*self.balls, *other.balls))
        if len(merged.balls) <= _MOST_BALLS and sum(map(metric.size, merged.kept)) <= KEPT_BYTES:
            return merged
        return Cloud(merged.count, (), (merged.ball(metric, element),))

    def ball(self, metric: ComputedMetric, element: np.dtype[Any]) -> Ball:
        """Return one ball that holds all points: around their centre, or around the best of the balls' origins."""
        points = metric.join(self.kept) if self.kept else None
        origins = dict.fromkeys(ball.origin for ball in self.balls) or (metric.centre(points, element),)
        found = []
        for origin in origins:
            ball = Ball(origin)
            if points is not None:
                ball = ball.holding(metric.distances(points, origin))
            for other in self.balls:
                ball = ball.united(other, metric)
            found.append(ball)
        return min(found, key=lambda ball: ball.upper)
