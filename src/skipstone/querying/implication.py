"""Implications: what must be TRUE of the columns wherever a predicate that no index understands is TRUE.

If ``e`` implies ``p`` then ``e`` and ``e AND p`` are TRUE for the same rows, and every clause that represents ``p``
represents ``e`` (paper, definition 3: a row that makes ``e`` TRUE makes ``p`` TRUE).  So a UDF needs no filter of its
own for each kind of index: say once what it implies, and every index on those columns serves it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING

from skipstone.expressions.normalize import ALWAYS, normalize
from skipstone.expressions.tree import And, Call, Cast, Column, Comparison, Expression, In, Literal, Not, NotIn, Or

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Implication", "NotTheSameFunctionError", "with_implied"]


class NotTheSameFunctionError(Exception):
    """Raised by an implication that knows a function by this name, but not this function; its text says what to do."""


class Implication(ABC):
    """Knows what some predicate implies."""

    @abstractmethod
    def implied(self, leaf: Expression) -> Expression | None:
        """Return a predicate that is TRUE for every row for which ``leaf`` is TRUE, or ``None``.

        ``leaf`` is a vertex of the normalised tree that is neither AND nor OR, and has a function in it.  The docstring
        of an implementation says why the one implies the other, for NULL, NaN and every other odd value.
        """

    def needs_company(self, leaf: Expression) -> bool:  # noqa: ARG002  (for subclasses)
        """Whether more follows from a leaf beside other terms of an AND: then ``implied_together`` is asked."""
        return False

    def implied_together(self, terms: Sequence[Expression]) -> Mapping[int, Expression]:  # noqa: ARG002  (for subclasses)
        """Return what terms of an AND imply in company, by their places: for rows for which all the terms are TRUE.

        For what follows from several leaves and from none of them alone: ``month(d) = 3`` beside ``year(d) = 2026``.
        """
        return {}

    def hint(self, leaf: Expression) -> str | None:  # noqa: ARG002  (for subclasses)
        """Return what a person might write instead of a leaf that no index serves, or ``None``."""
        return None

    def __str__(self) -> str:
        return type(self).__name__


def with_implied(
    tree: Expression,
    implications: Sequence[Implication],
    on_error: Callable[[Implication, Exception], None],
) -> tuple[Expression, dict[int, tuple[Expression, ...]]]:
    """Put beside every leaf what it implies.

    Returns
    -------
    tuple
        The tree, TRUE for the same rows, and the implied terms by the identity of the leaf that implies them.
    """
    implied: dict[int, tuple[Expression, ...]] = {}
    leaves = _leaves(tree) if implications else []
    for leaf in leaves:
        terms = _terms(leaf, implications, on_error)
        if terms:
            implied[id(leaf)] = terms
    for implication in implications if leaves else ():
        _add_implied_together(tree, leaves, implied, implication, on_error)
    return (_rebuilt(tree, implied), implied) if implied else (tree, implied)


def _add_implied_together(
    tree: Expression,
    leaves: Sequence[Expression],
    implied: dict[int, tuple[Expression, ...]],
    implication: Implication,
    on_error: Callable[[Implication, Exception], None],
) -> None:
    """Put what terms of an AND imply in company beside them.

    A row that makes the AND TRUE makes that TRUE, so the AND is TRUE for the same rows as before.  This holds in this
    AND alone: a leaf that stands in several places gets nothing.
    """
    try:
        lonely = {id(leaf) for leaf in leaves if implication.needs_company(leaf)}
        if not lonely:
            return
        vertices = [*tree.walk(_is_join)]
        places = Counter(map(id, vertices))
        for vertex in vertices:
            if isinstance(vertex, And) and not lonely.isdisjoint(map(id, vertex.terms)):
                terms = tuple(t for t in vertex.terms if not _is_join(t) and places[id(t)] == 1 and _is_fixed(t))
                said = implication.implied_together(terms)
                for key, more in [(id(terms[place]), _normal(one)) for place, one in said.items()]:
                    implied[key] = (*implied.get(key, ()), *more)
    except Exception as error:  # noqa: BLE001  anyone's code: it says nothing then, which is told
        on_error(implication, error)


def _is_fixed(leaf: Expression) -> bool:
    """Whether no part of a leaf may change its mind."""
    return _is_plain(leaf) or not any(isinstance(vertex, Call) and not vertex.deterministic for vertex in leaf.walk())


def _is_plain(leaf: Expression) -> bool:
    """Whether a leaf compares a column with literals, as most do by far; a list of them may be long."""
    match leaf:
        case Comparison(left, right):
            return type(left) is Column and type(right) is Literal
        case In(value, options) | NotIn(value, options):
            return type(value) is Column and set(map(type, options)) <= {Literal}
    return False


def _leaves(tree: Expression) -> list[Expression]:
    """Return the leaves in positive positions that have a function in them and may be relied on."""
    found = {id(v): v for v in tree.walk(_is_join) if not isinstance(v, And | Or) and _has_function(v)}
    return list(found.values())


def _is_join(vertex: Expression) -> bool:
    return isinstance(vertex, And | Or)


def _has_function(leaf: Expression) -> bool:
    """Whether a leaf has functions, all of them deterministic."""
    if _is_plain(leaf):
        return False
    some = False
    for vertex in leaf.walk():
        if isinstance(vertex, Call) and not vertex.deterministic:
            return False
        some = some or isinstance(vertex, Call | Cast | Not)
    return some


def _terms(
    leaf: Expression, implications: Sequence[Implication], on_error: Callable[[Implication, Exception], None]
) -> tuple[Expression, ...]:
    """Ask everyone what a leaf implies."""
    terms: list[Expression] = []
    for implication in implications:
        try:
            said = implication.implied(leaf)
            terms.extend(() if said is None else _normal(said))
        except Exception as error:  # noqa: BLE001  anyone's code: it says nothing then, which is told
            on_error(implication, error)
    return tuple(terms)


def _normal(said: Expression) -> tuple[Expression, ...]:
    """Return an implied predicate as normal terms; what is always TRUE says nothing."""
    if not isinstance(said, Expression):
        msg = f"implied gave {type(said).__name__} where an Expression or None is due"
        raise TypeError(msg)
    normal = normalize(said)
    if normal is ALWAYS:
        return ()
    return normal.terms if isinstance(normal, And) else (normal,)


def _rebuilt(tree: Expression, implied: dict[int, tuple[Expression, ...]]) -> Expression:
    """Put the implied terms beside their leaves, ANDs kept flat, without recursion."""
    done: dict[int, Expression] = {}
    for vertex in reversed([*tree.walk(_is_join)]):  # what is below a vertex before it
        if id(vertex) in done:
            continue
        if not isinstance(vertex, And | Or):
            terms = implied.get(id(vertex), ())
            done[id(vertex)] = And((vertex, *terms)) if terms else vertex
        else:
            below = [done[id(term)] for term in vertex.terms]
            if all(new is old for new, old in zip(below, vertex.terms, strict=True)):
                done[id(vertex)] = vertex
            elif isinstance(vertex, And):
                done[id(vertex)] = And(tuple(t for b in below for t in (b.terms if isinstance(b, And) else (b,))))
            else:
                done[id(vertex)] = Or(tuple(below))
    return done[id(tree)]
