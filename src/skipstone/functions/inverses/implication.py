"""What a predicate on functions of one column implies of the column itself, by the table of inverses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skipstone import registry
from skipstone.expressions.tree import Call, Cast, Column, Comparison, Expression, Literal
from skipstone.functions.inverses.inverse import EVERYTHING, intersection, key_of, merged
from skipstone.functions.inverses.parts import PARTS
from skipstone.functions.inverses.predicates import intervals_of, ranges
from skipstone.functions.inverses.texts import TEXTS
from skipstone.functions.inverses.times import TIMES
from skipstone.querying.implication import Implication

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skipstone.functions.inverses.inverse import Interval, Inverse

__all__ = ["BUILT_IN", "InverseImplication"]

BUILT_IN: Mapping[str, Inverse] = {**TIMES, **PARTS, **TEXTS}
"""The table: functions of Spark's whose results bound their argument.  Plug-ins add theirs by ``register_inverse``."""

_Step = tuple[Expression, "Inverse"]


class InverseImplication(Implication):
    """Turns ``f(g(column)) = v`` and its kin into ranges of the column.

    The leaf says that ``f(…)`` lies in some intervals (``intervals_of``).  Each function on the way down to the column
    says where its argument lies then (``Inverse``).  What arrives at the column holds for every row that makes the leaf
    TRUE: on such a row no function on the way is NULL, since all of them give NULL for NULL.

    A function that repeats (``month``) needs bounds on its argument.  They come from the other terms of an AND: a row
    that makes the AND TRUE makes each of them TRUE, so the column lies within what each of them implies.
    """

    def implied(self, leaf: Expression) -> Expression | None:
        """Return the ranges of the column, or ``None`` when the leaf is of no known function."""
        said = _asked(leaf)
        if said is None:
            return None
        column, steps, wanted = said
        found = None if any(step.repeats for _, step in steps) else _inverted(steps, wanted, EVERYTHING)
        return None if found is None else ranges(column, found)

    def needs_company(self, leaf: Expression) -> bool:
        """Whether a leaf is of a function that repeats."""
        said = _asked(leaf)
        return said is not None and any(step.repeats for _, step in said[1])

    def implied_together(self, terms: Sequence[Expression]) -> Mapping[int, Expression]:
        """Return what functions that repeat imply of a column that the other terms bound."""
        asked = {place: said for place, term in enumerate(terms) if (said := _asked(term)) is not None}
        repeating = [(place, said) for place, said in asked.items() if any(step.repeats for _, step in said[1])]
        found: dict[int, Expression] = {}
        for name in dict.fromkeys(said[0].name for _, said in repeating):
            within = _within(name, terms, asked.values())
            mine = [(place, said) for place, said in repeating if said[0].name == name]
            # The coarsest first: what it leaves bounds the others.
            for place, (column, steps, wanted) in sorted(mine, key=lambda one: _rank(one[1][1])):
                inverted = None if within is None else _inverted(steps, wanted, within)
                if inverted is None or within is None:
                    continue
                kept = merged([both for i in inverted if (both := intersection(i, within)) is not None])
                found[place] = ranges(column, kept)
                within = (kept[0][0], kept[-1][1]) if kept else None
        return found

    def hint(self, leaf: Expression) -> str | None:
        """Return what to write instead of a predicate on a known function from which nothing follows."""
        read = intervals_of(leaf)
        subject = leaf.left if isinstance(leaf, Comparison) else read[0] if read else None
        while isinstance(subject, Call | Cast):
            inverse = _known(subject)
            if inverse is None:
                return None
            if inverse.hint:
                column = next((str(v) for v in subject.walk() if isinstance(v, Column)), "")
                return inverse.hint.format(column=column) if column else None
            subject = next((child for child in subject.children if not isinstance(child, Literal)), None)
        return None

    def __str__(self) -> str:
        return "functions of one column"


_RANK = {key: rank for rank, key in enumerate(PARTS)}


def _rank(steps: Sequence[_Step]) -> int:
    """Return the place of a function among those that repeat: months before days before hours."""
    return next((_RANK.get(key_of(vertex), 0) for vertex, inverse in steps if inverse.repeats), 0)


def _known(vertex: Expression) -> Inverse | None:
    """Look a function up: first Spark's own, then those of plug-ins."""
    key = key_of(vertex)
    return BUILT_IN.get(key) or registry.find_inverse(key)


def _asked(leaf: Expression) -> tuple[Column, list[_Step], list[Interval]] | None:
    """Take a leaf apart: the column, the functions from the outermost to the one of the column, and what is wanted."""
    subject = leaf.left if isinstance(leaf, Comparison) else getattr(leaf, "value", None)
    if not isinstance(subject, Call | Cast) or _known(subject) is None:
        return None  # nearly every leaf: no more than a look into the table
    steps: list[_Step] = []
    while isinstance(subject, Call | Cast):
        inverse = _known(subject)
        argument = inverse.argument(subject) if inverse is not None else None
        if inverse is None or argument is None:
            return None
        steps.append((subject, inverse))
        subject = argument
    read = intervals_of(leaf)
    return (subject, steps, read[1]) if read is not None and isinstance(subject, Column) and subject.type else None


def _inverted(steps: Sequence[_Step], wanted: Sequence[Interval], within: Interval) -> list[Interval] | None:
    """Take intervals of results back to the column, one function at a time; ``within`` bounds the column."""
    bounds: list[Interval] = [within]  # of the argument of each function, innermost first
    for vertex, inverse in reversed(steps[1:]):
        known = inverse.image is not None and bounds[-1] != EVERYTHING
        bounds.append(inverse.image(vertex, bounds[-1]) if known and inverse.image is not None else EVERYTHING)
    intervals = list(wanted)
    for (vertex, inverse), bound in zip(steps, reversed(bounds), strict=True):
        taken: list[Interval] = []
        for interval in intervals:
            found = inverse.preimage(vertex, interval, bound)
            if found is None:
                return None
            taken.extend(found)
        intervals = taken
    return intervals


def _within(
    name: str, terms: Sequence[Expression], asked: Iterable[tuple[Column, list[_Step], list[Interval]]]
) -> Interval | None:
    """Return the interval that the terms leave of a column; ``None`` when they leave nothing."""
    known = [
        (inverted[0][0], inverted[-1][1])
        for column, steps, wanted in asked
        if column.name == name
        and not any(step.repeats for _, step in steps)
        and (inverted := merged(_inverted(steps, wanted, EVERYTHING) or ()))
    ]
    for term in terms:
        read = intervals_of(term)
        if read is not None and isinstance(read[0], Column) and read[0].name == name and read[1]:
            known.append((read[1][0][0], read[1][-1][1]))
    within: Interval | None = EVERYTHING
    for interval in known:
        within = None if within is None else intersection(within, interval)
    return within
