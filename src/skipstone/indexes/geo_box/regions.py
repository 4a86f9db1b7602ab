"""Predicates on two coordinates, or on a geometry, as regions of the plane that a box meets or does not."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skipstone.expressions.tree import And, Call, Column, Expression, Literal, Or
from skipstone.functions.geo.shapes import MEETS, Shape
from skipstone.toolkit.leaf import Among, Compare, Leaf, read_leaf

if TYPE_CHECKING:
    import numpy.typing as npt

    from skipstone.indexes.geo_box.boxes import Boxes

    Truths = npt.NDArray[np.bool_]

__all__ = ["Joined", "Meets", "Region", "Side", "read_region", "rounded_down", "rounded_up"]

_DEEPEST = 12
_MOST_PARTS = 512
_BOTH = frozenset((0, 1))


class Region(ABC):
    """Where a predicate may be TRUE."""

    @property
    @abstractmethod
    def bounds(self) -> frozenset[int]:
        """The axes on which the predicate is never TRUE for NULL."""

    @abstractmethod
    def passes(self, boxes: Boxes) -> Truths:
        """Return for each box, a column of the array, whether the predicate may be TRUE for a place in it."""

    @abstractmethod
    def on_nan(self, axis: int) -> bool:
        """Whether the predicate may be TRUE where this axis is NaN, whatever the other is."""

    @property
    @abstractmethod
    def on_empty(self) -> bool:
        """Whether the predicate may be TRUE of an empty geometry."""

    @property
    def parts(self) -> int:
        """The number of single predicates."""
        return 1


@dataclass(frozen=True, slots=True)
class Side(Region):
    """A predicate on one axis."""

    axis: int
    leaf: Leaf

    @property
    def bounds(self) -> frozenset[int]:
        return frozenset((self.axis,))

    def passes(self, boxes: Boxes) -> Truths:
        low, high = boxes[self.axis], boxes[self.axis + 2]
        match self.leaf.test:
            case Compare("<", value):
                return low < rounded_up(value)
            case Compare("<=", value):
                return low <= rounded_up(value)
            case Compare(">", value):
                return high > rounded_down(value)
            case Compare(">=", value):
                return high >= rounded_down(value)
            case Among(values):
                least, greatest = np.sort([rounded_down(v) for v in values]), np.sort([rounded_up(v) for v in values])
                found: Truths = np.searchsorted(greatest, low, "left") < np.searchsorted(least, high, "right")
                return found
        return np.ones(boxes.shape[1], np.bool_)

    def on_nan(self, axis: int) -> bool:
        return axis != self.axis or self.leaf.on_nan

    @property
    def on_empty(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Meets(Region):
    """Being within a distance of a geometry; ``swapped`` where the first axis is y."""

    shape: Shape
    distance: float
    swapped: bool = False

    @property
    def bounds(self) -> frozenset[int]:
        return _BOTH

    def passes(self, boxes: Boxes) -> Truths:
        return self.shape.might_meet(boxes[[1, 0, 3, 2]] if self.swapped else boxes, self.distance)

    def on_nan(self, axis: int) -> bool:  # noqa: ARG002  (neither axis is relied on)
        return True

    @property
    def on_empty(self) -> bool:
        return self.distance > 0


@dataclass(frozen=True, slots=True)
class Joined(Region):
    """Several regions, of which all (``every``) or some must be met."""

    terms: tuple[Region, ...]
    every: bool

    @property
    def bounds(self) -> frozenset[int]:
        join = frozenset.union if self.every else frozenset.intersection
        return join(*(term.bounds for term in self.terms))

    def passes(self, boxes: Boxes) -> Truths:
        join = np.logical_and if self.every else np.logical_or
        passing: Truths = join.reduce([term.passes(boxes) for term in self.terms])
        return passing

    def on_nan(self, axis: int) -> bool:
        return (all if self.every else any)(term.on_nan(axis) for term in self.terms)

    @property
    def on_empty(self) -> bool:
        return (all if self.every else any)(term.on_empty for term in self.terms)

    @property
    def parts(self) -> int:
        return sum(term.parts for term in self.terms)


def read_region(node: Expression, columns: tuple[str, ...], depth: int = 0) -> Region | None:
    """Read a predicate on two columns of coordinates, or on one of geometries; ``None`` for everything else.

    Predicates that are very deep or very large are not read: the terms that they are made of are labelled anyhow.
    """
    match node:
        case Call(name):
            return _meets(node, columns) if name == MEETS else None
        case And(terms) | Or(terms):
            if depth > _DEEPEST or len(terms) > _MOST_PARTS:
                return None
            found: list[Region] = []
            for term in terms:
                region = read_region(term, columns, depth + 1)
                if region is not None:
                    found.append(region)
                elif isinstance(node, Or):
                    return None
            joined = Joined(tuple(found), isinstance(node, And)) if found else None
            return joined if joined is not None and joined.parts <= _MOST_PARTS else None
    leaf = read_leaf(node)
    if leaf is None or leaf.on_null or not isinstance(leaf.subject, Column) or leaf.subject.name not in columns:
        return None
    if len(columns) < len(_BOTH) or not _is_bound(leaf.test):
        return None
    return Side(columns.index(leaf.subject.name), leaf)


def _is_bound(test: Any) -> bool:
    """Whether a test on ordinary values is one that a range of numbers can answer."""
    match test:
        case Compare(_, value):
            return _is_number(value)
        case Among(values, False):
            return all(map(_is_number, values))
    return False


def _is_number(value: Any) -> bool:
    """Whether a literal is a number, as ``float`` takes it."""
    try:
        return not isinstance(value, bool | str | bytes) and not math.isnan(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def _meets(call: Call, columns: tuple[str, ...]) -> Region | None:
    """Read what functions on geometries imply; a call that Spark wrote has a class, and is not that."""
    if call.class_name or call.kind:
        return None
    match call.arguments:
        case (Column(x), Column(y), Literal(geometry), Literal(float(distance))) if {x, y} == set(columns):
            swapped = x != columns[0]
        case (Column(one), Literal(geometry), Literal(float(distance))) if (one,) == columns:
            swapped = False
        case _:
            return None
    shape = Shape.of(geometry)
    return None if shape is None else Meets(shape, distance, swapped)


def rounded_up(value: Any) -> float:
    """Return a double that is not below a number."""
    near = float(value)
    return near if near == value else math.nextafter(near, math.inf)


def rounded_down(value: Any) -> float:
    """Return a double that is not above a number."""
    near = float(value)
    return near if near == value else math.nextafter(near, -math.inf)
