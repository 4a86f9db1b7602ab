"""What is said of a plan: why an index or a predicate was not used, and which terms of a clause skipped nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from skipstone.expressions.tree import TOO_DEEP, And, Call, Expression, IsNotNull, Literal, Or
from skipstone.querying.clause import conjuncts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skipstone.querying.clause import Clause
    from skipstone.querying.generate_clause import Labelled
    from skipstone.querying.implication import Implication

__all__ = [
    "LONGEST_SENTENCE",
    "NO_METADATA",
    "NO_PREDICATE",
    "SKIPS_NOTHING",
    "marked",
    "say_once",
    "shortened",
    "unserved",
    "unserved_sentence",
]

NO_PREDICATE = "no predicate reaches this scan"
SKIPS_NOTHING = "skips nothing"
NO_METADATA = "no metadata: the dataset is not indexed"
LONGEST_SENTENCE = 2_000

_SUBQUERY = "scalarsubquery"
_MOST_WARNINGS = 1_000

_log = logging.getLogger("skipstone")


def marked(clause: Clause, idle: frozenset[str]) -> str:
    """Write a clause with a mark on the terms that skipped nothing."""
    return " AND ".join(f"{term} ({SKIPS_NOTHING})" if term in idle else term for term in conjuncts(clause))


def unserved(labelled: Labelled) -> Iterator[Expression]:
    """Yield the leaf predicates that no filter labelled, without Spark's own ``IS NOT NULL`` guards.

    A leaf is served where a term that it implies is, and such a term is not a predicate of the query's.
    """
    implied = [term for terms in labelled.implied.values() for term in terms]
    for node in labelled.tree.walk(lambda vertex: isinstance(vertex, And | Or) and not labelled.labels.get(vertex)):
        if isinstance(node, And | Or | IsNotNull | Literal) or labelled.labels.get(node):
            continue
        if id(node) not in labelled.implied:
            if not any(node is term for term in implied):
                yield node
        elif not any(_is_labelled(term, labelled) for term in labelled.implied[id(node)]):
            yield node


def _is_labelled(term: Expression, labelled: Labelled) -> bool:
    """Whether a clause stands on an implied term, or on a part of one that is a disjunction of ranges."""
    return any(map(labelled.labels.get, term.walk(lambda vertex: isinstance(vertex, And | Or))))


def unserved_sentence(leaf: Expression, implications: tuple[Implication, ...] | None = None) -> str:
    """Return that nothing serves a predicate; given what is known of it, also why, and what to write instead."""
    said = f"no index serves {shortened(str(leaf))}"
    return said if implications is None else f"{said}{_too_deep(leaf)}{_later(leaf)}{_hint(leaf, implications)}"


def _too_deep(leaf: Expression) -> str:
    """Return a remark on a predicate of which a part was not looked into, or nothing."""
    names = (vertex.name for vertex in leaf.walk() if isinstance(vertex, Call) and vertex.name.startswith(TOO_DEEP))
    name = next(names, None)
    return "" if name is None else f": what is {name.strip('<>')} is not looked into"


def _later(leaf: Expression) -> str:
    """Return a remark on a predicate whose value is not there when a query is planned, or nothing."""
    subqueries = (isinstance(vertex, Call) and vertex.name == _SUBQUERY for vertex in leaf.walk())
    return ": its value is asked for when the query runs" if any(subqueries) else ""


def _hint(leaf: Expression, implications: tuple[Implication, ...]) -> str:
    """Return what to write instead of a predicate, if anybody knows."""
    for implication in implications:
        try:
            said = implication.hint(leaf)
        except Exception as error:  # noqa: BLE001  a plug-in's own code: said, the query goes on
            say_once(f"a hint of {implication}: {type(error).__name__}: {error}")
            continue
        if said:
            return f": {said}"
    return ""


def shortened(text: str, limit: int = 200) -> str:
    """Cut a long expression for a sentence."""
    return text if len(text) <= limit else f"{text[:limit]}…"


_said: set[str] = set()


def say_once(problem: str) -> None:
    """Log a plug-in's failure the first time it is met in this process."""
    if problem not in _said and len(_said) < _MOST_WARNINGS:
        _said.add(problem)
        _log.warning("Skipstone does not use %s", problem)
