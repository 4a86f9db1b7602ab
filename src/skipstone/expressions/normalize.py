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

    Time and memory are linear in the size of the tree.

    Examples
    --------
    >>> from skipstone.expressions.tree import EqualNullSafe, LessThan, Not
    >>> x = Column("x", "int")
    >>> print(normalize(Not(Or((LessThan(Literal(3, "int"), x), EqualNullSafe(x, Literal(None, "int")))))))
    x <= 3
    """
    root = settle(expression)
    return _joined(root, _Numbers()) if isinstance(root, And | Or) else root


def _joined(vertex: And | Or, numbers: _Numbers) -> Expression:
    """Settle the terms of an AND or OR: each stands once, nested ones of its kind are taken apart, constants fold."""
    connective = type(vertex)
    neutral, decisive = (ALWAYS, NEVER) if connective is And else (NEVER, ALWAYS)
    found: dict[int, Expression] = {}
    waiting = list(reversed(vertex.terms))
    while waiting:
        term = settle(waiting.pop())
        if type(term) is connective:
            waiting.extend(reversed(term.terms))
            continue
        if isinstance(term, And | Or):
            term = _joined(term, numbers)
        if term is decisive:
            return term
        if term is not neutral:
            for one in term.terms if isinstance(term, connective) else (term,):
                found.setdefault(numbers.of(one), one)
    terms = tuple(found.values())
    if connective is And:
        terms = _without_implied_guards(terms)
    return connective(terms) if len(terms) > 1 else (terms[0] if terms else neutral)


class _Numbers:
    """Numbers trees: equal ones get equal numbers."""

    def __init__(self) -> None:
        self._by_key: dict[Any, int] = {}
        self._by_identity: dict[int, tuple[Expression, int]] = {}

    def of(self, vertex: Expression) -> int:
        """Return a tree's number, numbering what is below it first."""
        if isinstance(vertex, Comparison) and type(vertex.left) is Column and type(vertex.right) is Literal:
            flat = (type(vertex), vertex.left, *literal_key(vertex.right))  # most terms by far: a short cut
            return self._by_key.setdefault(flat, len(self._by_key))
        known = self._by_identity.get(id(vertex))
        if known is None:
            key = self._key(vertex, tuple([self.of(child) for child in vertex.children]))
            known = self._by_identity[id(vertex)] = (vertex, self._by_key.setdefault(key, len(self._by_key)))
        return known[1]

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
