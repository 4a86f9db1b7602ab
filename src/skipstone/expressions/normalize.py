"""Normalisation: one canonical form per predicate, so that filters need to know only that form.

The tree that comes out is TRUE for exactly the rows for which the tree that went in is TRUE.  It may be FALSE where the
other is NULL: a query keeps the rows that are TRUE and no others.  That is why constants may be folded and ``<=>`` be
simplified *after* NOT has been pushed to the leaves: AND and OR are monotone, so a term that is never TRUE may as well
be FALSE.  Only vertices in such a position are rewritten; the arguments of functions stay as Spark wrote them.

====================================  ==============================================================
original                              canonical
====================================  ==============================================================
``3 < x``                             ``x > 3``
``NOT (a AND b)``                     ``NOT a OR NOT b``, then each NOT further down
``NOT x < 3``, ``NOT x = 3``          ``x >= 3``, ``x <> 3``
``NOT x IN (…)``, ``NOT x IS NULL``   ``x NOT IN (…)``, ``x IS NOT NULL``
``(a AND b) AND c``, ``a AND a``      ``AND(a, b, c)``, ``a``
``x = NULL``, ``x NOT IN (1, NULL)``  ``FALSE``: never TRUE
``x IN (1, NULL)``, ``x IN (1)``      ``x = 1``
``x IN (1, 2, y)``                    ``x IN (1, 2) OR x = y``
``x <=> NULL``, ``x <=> 3``           ``x IS NULL``, ``x = 3``
``NOT x <=> 3``                       ``x IS NULL OR x <> 3``
``flag``, ``NOT flag``                ``flag = true``, ``flag = false``
``f(x) = true``, ``f(x) = false``     ``f(x)``, ``NOT f(x)``
``x = -0.0``                          ``x = 0.0``
====================================  ==============================================================

A comparison whose sides differ in type, or are compared by a collation, becomes an opaque call.  The rules themselves
are in ``rules``.
"""

from __future__ import annotations

from typing import Any

from skipstone.expressions.rules import ALWAYS, NEVER, literal_key, settle
from skipstone.expressions.tree import (
    UNKNOWN_PARAMETERS,
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Contains,
    Element,
    EndsWith,
    EqualNullSafe,
    Expression,
    In,
    IsNaN,
    IsNotNull,
    Like,
    Literal,
    Not,
    NotIn,
    Or,
    StartsWith,
)

__all__ = ["ALWAYS", "NEVER", "normalize"]


def normalize(expression: Expression) -> Expression:
    """Return the canonical form of a predicate.

    Time and memory are linear in the size of the tree, and nothing recurses: a predicate may have thousands of terms or
    be thousands of levels deep.

    Examples
    --------
    >>> from skipstone.expressions.tree import EqualNullSafe, LessThan, Not
    >>> x = Column("x", "int")
    >>> print(normalize(Not(Or((LessThan(Literal(3, "int"), x), EqualNullSafe(x, Literal(None, "int")))))))
    x <= 3
    """
    numbers = _Numbers()
    root = settle(expression)
    if not isinstance(root, And | Or):
        return root
    frames = [_Frame(root, numbers)]
    while True:
        frame = frames[-1]
        if frame.waiting:
            term = settle(frame.waiting.pop())
            if type(term) is frame.connective:
                frame.waiting.extend(reversed(term.terms))
            elif isinstance(term, And | Or):
                frames.append(_Frame(term, numbers))
            else:
                frame.take(term)
        else:
            frames.pop()
            if not frames:
                return frame.joined()
            frames[-1].take(frame.joined())


class _Numbers:
    """Gives equal trees equal numbers, without recursion, whatever their depth."""

    def __init__(self) -> None:
        self._by_key: dict[Any, int] = {}
        self._by_identity: dict[int, tuple[Expression, int]] = {}

    def of(self, root: Expression) -> int:
        """Return a tree's number, numbering what is below it first."""
        if isinstance(root, Comparison) and type(root.left) is Column and type(root.right) is Literal:
            flat = (type(root), root.left, *literal_key(root.right))  # most terms by far: a short cut
            return self._by_key.setdefault(flat, len(self._by_key))
        known = self._by_identity
        waiting = [root]
        while waiting:
            vertex = waiting[-1]
            if id(vertex) in known:
                waiting.pop()
                continue
            children = vertex.children
            unknown = [child for child in children if id(child) not in known]
            if unknown:
                waiting.extend(unknown)
                continue
            key = self._key(vertex, tuple([known[id(child)][1] for child in children]))
            known[id(vertex)] = (vertex, self._by_key.setdefault(key, len(self._by_key)))
            waiting.pop()
        return known[id(root)][1]

    @staticmethod
    def _key(vertex: Expression, below: tuple[int, ...]) -> Any:
        """Return what makes a vertex what it is: its class, its children's numbers, and its own plain fields."""
        match vertex:
            case Column(name, spark_type, partition):
                return (Column, name, spark_type, partition)
            case Element(_, of, spark_type):
                return (Element, below, of, spark_type)
            case Literal():
                return (Literal, *literal_key(vertex))
            case Call(name, _, spark_type, kind, class_name, identity, deterministic, parameters):
                alone = not deterministic or parameters == UNKNOWN_PARAMETERS  # two draws of rand() are two things
                own = (id(vertex),) if alone else (parameters,)
                return (Call, below, name, spark_type, kind, class_name, identity, *own)
            case Cast(_, spark_type, mode, zone):
                return (Cast, below, spark_type, mode, zone)
            case Like(escape=escape):
                return (Like, below, escape)
        return (type(vertex), below)


class _Frame:
    """An AND or OR under construction: the terms still to be settled, and those that will stay."""

    def __init__(self, vertex: And | Or, numbers: _Numbers) -> None:
        self.connective = type(vertex)
        self.waiting = list(reversed(vertex.terms))
        self._neutral, self._decisive = (ALWAYS, NEVER) if self.connective is And else (NEVER, ALWAYS)
        self._numbers = numbers
        self._terms: dict[int, Expression] = {}

    def take(self, term: Expression) -> None:
        """Add a canonical term: once, without the neutral constant, and alone if it is the decisive one."""
        if term is self._neutral:
            return
        if term is self._decisive:
            self.waiting.clear()
            self._terms = {-1: term}
        elif isinstance(term, self.connective):
            for inner in term.terms:
                self._terms.setdefault(self._numbers.of(inner), inner)
        else:
            self._terms.setdefault(self._numbers.of(term), term)

    def joined(self) -> Expression:
        """Return the finished vertex; no term at all leaves the neutral constant, one stands for itself."""
        terms = tuple(self._terms.values())
        if self.connective is And:
            terms = _without_implied_guards(terms)
        return self.connective(terms) if len(terms) > 1 else (terms[0] if terms else self._neutral)


def _without_implied_guards(terms: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Drop ``c IS NOT NULL`` beside a term that cannot be TRUE when ``c`` is NULL.

    Spark infers such a guard for nearly every predicate; it says nothing that the predicate does not, so the rows for
    which the conjunction is TRUE are the same without it.
    """
    guarded = {term.value.name for term in terms if isinstance(term, IsNotNull) and isinstance(term.value, Column)}
    if not guarded:
        return terms
    implied = {subject.name for term in terms if isinstance(subject := _rejects_null_of(term), Column)}
    return tuple(
        term
        for term in terms
        if not (isinstance(term, IsNotNull) and isinstance(term.value, Column) and term.value.name in implied)
    )


def _rejects_null_of(term: Expression) -> Expression | None:
    """Return what must not be NULL for a leaf to be TRUE, as far as the leaf alone tells."""
    match term:
        case EqualNullSafe():
            return None
        case Comparison(subject) | In(subject) | NotIn(subject) | IsNaN(subject):
            return subject
        case Like(subject) | StartsWith(subject) | EndsWith(subject) | Contains(subject):
            return subject
        case Not(Like(subject) | StartsWith(subject) | EndsWith(subject) | Contains(subject)):
            return subject
    return None
