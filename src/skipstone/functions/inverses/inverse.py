"""What is stated of a function so that predicates on its results become ranges of its argument.

An *interval* is a pair ``(low, high)``: the values ``v`` with ``low <= v < high`` in Spark's order, ``None`` for no
bound. Values are physical (``expressions.tree``).  Half-open intervals need no special cases: ``f(x) = v`` is ``[v,
v⁺)`` and ``f(x) <= v`` is ``[-∞, v⁺)``, where ``v⁺`` is the least value above ``v``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from skipstone.expressions.tree import Call, Cast, Expression

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["EVERYTHING", "Interval", "Inverse", "first_argument", "intersection", "key_of", "merged", "monotone"]

Interval: TypeAlias = tuple[Any, Any]

EVERYTHING: Interval = (None, None)
"""The interval without bounds."""


@dataclass(frozen=True, slots=True)
class Inverse:
    """States of a function ``f`` where its argument lies when its result lies in an interval.

    That is all that soundness rests on: for every ``x`` within ``within`` for which ``f(x)`` is neither NULL nor an
    error, and lies in ``wanted``, ``x`` lies in one of the intervals of ``preimage(call, wanted, within)``.  They may
    be wider than need be, and need not be disjoint; none at all say that there is no such ``x``, and ``None`` that
    nothing is known.  NULL satisfies no predicate that is asked about here, so nothing need hold of an ``x`` with that
    result.

    Parameters
    ----------
    argument
        Returns the one argument of a call that is not constant, or ``None`` when the call has not the form that is
        known (a unit that is no literal, another type).
    preimage
        See above; ``call`` is the vertex, ``wanted`` an interval of results, ``within`` one that holds the arguments.
    image
        An interval that holds ``f(x)`` for all ``x`` of an interval, where other functions of ``f(x)`` may be asked
        about.
    repeats
        Whether the function comes back to its values again and again, as ``month`` does.  Nothing follows from such a
        function alone: it is asked once the other terms of an AND have bounded the column from both sides.
    hint
        What to write instead when no range follows.
    """

    argument: Callable[[Any], Expression | None]
    preimage: Callable[[Any, Interval, Interval], Sequence[Interval] | None]
    image: Callable[[Any, Interval], Interval] | None = None
    repeats: bool = False
    hint: str = ""


def first_argument(call: Any) -> Expression | None:
    """Return the only child of a call or cast, or the first when the others are literals by construction."""
    return call.children[0] if call.children else None


def monotone(
    at_least: Callable[[Any], Any],
    below: Callable[[Any], Any] | None = None,
    argument: Callable[[Any], Expression | None] = first_argument,
) -> Inverse:
    """State a function that never decreases, by what its results say of its argument.

    Parameters
    ----------
    at_least
        For a bound ``b`` a value ``a`` such that ``f(x) >= b`` implies ``x >= a``.
    below
        For a bound ``b`` a value ``a`` such that ``f(x) < b`` implies ``x < a``; by default ``at_least``, which is
        right when that gives the very least ``x`` with ``f(x) >= b``.
    argument
        As of ``Inverse``.

    Examples
    --------
    >>> tens = monotone(lambda bound: bound * 10)  # floor(x / 10) of whole numbers
    >>> tens.preimage(None, (2, 3), EVERYTHING)
    ((20, 30),)
    """
    above = below or at_least

    def preimage(_: Any, wanted: Interval, __: Interval) -> Sequence[Interval]:
        low, high = wanted
        return ((None if low is None else at_least(low), None if high is None else above(high)),)

    return Inverse(argument, preimage)


def key_of(vertex: Expression) -> str:
    """Return what a function is known by: its Catalyst class, or for a cast its two types; empty for users' functions.

    Examples
    --------
    >>> from skipstone.expressions.tree import Column
    >>> key_of(Cast(Column("ts", "timestamp"), "date"))
    'cast(timestamp as date)'
    """
    if isinstance(vertex, Call):
        return "" if vertex.kind else vertex.class_name
    if isinstance(vertex, Cast):
        inner = getattr(vertex.child, "type", "")
        return f"cast({'decimal' if inner.startswith('decimal(') else inner} as {vertex.type})"
    return ""


def intersection(one: Interval, other: Interval) -> Interval | None:
    """Return what two intervals have in common, or ``None`` when that is nothing."""
    lows = [low for low, _ in (one, other) if low is not None]
    highs = [high for _, high in (one, other) if high is not None]
    low, high = max(lows, default=None), min(highs, default=None)
    return None if low is not None and high is not None and low >= high else (low, high)


def merged(intervals: Sequence[Interval]) -> list[Interval]:
    """Return the same values as disjoint intervals in order, those that touch joined.

    Examples
    --------
    >>> merged([(5, 7), (1, 3), (3, 4)])
    [(1, 4), (5, 7)]
    """
    found: list[Interval] = []
    some = [(low, high) for low, high in intervals if low is None or high is None or low < high]
    for low, high in [i for i in some if i[0] is None] + sorted((i for i in some if i[0] is not None), key=_low):
        if found and (found[-1][1] is None or low is None or low <= found[-1][1]):
            before, end = found.pop()
            found.append((before, None if end is None or high is None else max(end, high)))
        else:
            found.append((low, high))
    return found


def _low(interval: Interval) -> Any:
    return interval[0]
