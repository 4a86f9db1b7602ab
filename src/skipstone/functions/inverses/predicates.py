"""Predicates as intervals, both ways: a leaf on a function's result, and the ranges of a column that come of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skipstone.expressions.rules import NEVER
from skipstone.expressions.tree import (
    And,
    Column,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    Like,
    Literal,
    NotEqualTo,
    NotIn,
    Or,
    StartsWith,
)
from skipstone.expressions.types import BITS
from skipstone.functions.inverses.inverse import merged
from skipstone.functions.inverses.ordering import after_prefix, successor
from skipstone.toolkit.like import literal_prefix, parse_like

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skipstone.functions.inverses.inverse import Interval

__all__ = ["MOST_RANGES", "intervals_of", "ranges"]

MOST_RANGES = 64
"""More ranges than this become the one that holds them all."""


def intervals_of(leaf: Expression) -> tuple[Expression, list[Interval]] | None:
    """Return a leaf's subject and the intervals that it must lie in for the leaf to be TRUE; ``None`` if not known.

    A NULL subject makes none of these leaves TRUE.  Of ``NOT`` only ``<>`` and NOT IN come here: normalisation has made
    the mirror image of every other comparison.

    Examples
    --------
    >>> intervals_of(NotEqualTo(Column("n", "int"), Literal(3, "int")))[1]
    [(None, 3), (4, None)]
    """
    match leaf:
        case EqualTo(subject, Literal(value, type_)):
            return _pieces(subject, [value], type_, negated=False)
        case NotEqualTo(subject, Literal(value, type_)):
            return _pieces(subject, [value], type_, negated=True)
        case In(subject, options) | NotIn(subject, options) if all(isinstance(o, Literal) for o in options) and options:
            values = [option.value for option in options if isinstance(option, Literal)]
            return _pieces(subject, values, options[0].type, negated=isinstance(leaf, NotIn))  # type: ignore[attr-defined]
        case LessThan(subject, Literal(value, type_)) if successor(value, type_) is not None:
            return subject, [(None, value)]
        case LessThanOrEqual(subject, Literal(value, type_)) if (above := successor(value, type_)) is not None:
            return subject, [(None, above)]
        case GreaterThan(subject, Literal(value, type_)) if (above := successor(value, type_)) is not None:
            return subject, [(above, None)]
        case GreaterThanOrEqual(subject, Literal(value, type_)) if successor(value, type_) is not None:
            return subject, [(value, None)]
        case StartsWith(subject, Literal(str(prefix), "string")):
            return subject, [(prefix, after_prefix(prefix))]
        case Like(subject, Literal(str(pattern), "string"), escape):
            tokens = parse_like(pattern, escape)
            prefix = literal_prefix(tokens) if tokens is not None else ""
            return (subject, [(prefix, after_prefix(prefix))]) if prefix else None
    return None


def _pieces(
    subject: Expression, values: list[Any], type_: str, *, negated: bool
) -> tuple[Expression, list[Interval]] | None:
    """Return the intervals of some values alone, or of all but those."""
    above = [successor(value, type_) for value in values]
    if None in above:
        return None
    points = merged([*zip(values, above, strict=True)])
    if not negated:
        return subject, points
    lows = [None, *(high for _, high in points)]
    return subject, [*zip(lows, [*(low for low, _ in points), None], strict=True)]


def ranges(column: Column, intervals: Sequence[Interval]) -> Expression:
    """Return the predicate that a column's value lies in one of the intervals.

    Examples
    --------
    >>> print(ranges(Column("n", "int"), [(3, 4), (6, None)]))
    (n = 3) OR (n >= 6)
    """
    some = merged([clipped for interval in intervals if (clipped := _clipped(interval, column.type)) is not None])
    if len(some) > MOST_RANGES and not all(high == successor(low, column.type) for low, high in some):
        some = [(some[0][0], some[-1][1])]
    points = [low for low, high in some if low is not None and high == successor(low, column.type)]
    others = [i for i in some if i[0] is None or i[1] != successor(i[0], column.type)]
    terms = [_range(column, interval) for interval in others]
    if len(points) > 1:
        terms.insert(0, In(column, tuple(Literal(point, column.type) for point in points)))
    elif points:
        terms.insert(0, EqualTo(column, Literal(points[0], column.type)))
    return Or(tuple(terms)) if len(terms) > 1 else (terms[0] if terms else NEVER)


def _clipped(interval: Interval, type_: str) -> Interval | None:
    """Leave out what the type cannot hold: bounds that bound nothing, and intervals beyond all values."""
    low, high = interval
    if type_ in BITS:
        limit = 1 << (BITS[type_] - 1)
        if (low is not None and low >= limit) or (high is not None and high <= -limit):
            return None
        return (None if low is None or low <= -limit else low, None if high is None or high >= limit else high)
    return low, high


def _range(column: Column, interval: Interval) -> Expression:
    """Return the predicate that a column's value lies in an interval."""
    low, high = interval
    if column.type == "string" and low and high is not None and high == after_prefix(low):
        return StartsWith(column, Literal(low, "string"))
    terms: list[Expression] = []
    if low is not None:
        terms.append(GreaterThanOrEqual(column, Literal(low, column.type)))
    if high is not None:
        terms.append(LessThan(column, Literal(high, column.type)))
    return And(tuple(terms)) if len(terms) > 1 else (terms[0] if terms else Literal(value=True, type="boolean"))
