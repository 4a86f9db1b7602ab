"""Queries, and how they join.

A *refutation* of a clause is a query that matches an object's document only if the clause is False of the object: only
what is written in the document can prove that no row matches.

A document without a field matches no range, no term and no ``exists`` on it.  So absent metadata refutes nothing, and
the objects that are read are those whose documents the refutation does *not* match.  ``a AND b`` is refuted where the
one or the other is, ``a OR b`` where both are; that is Kleene's logic with unknown kept, since neither join turns an
unknown term into a proof.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ALWAYS", "NEVER", "Query", "absent", "every", "exists", "extent", "one_of", "some", "within"]

Query: TypeAlias = dict[str, Any]

ALWAYS: Query = {"match_all": {}}
NEVER: Query = {"match_none": {}}


def some(queries: Iterable[Query | None]) -> Query | None:
    """Match where one of the queries does; ``None``, not known how, if one of them is ``None``."""
    found = _distinct(queries, NEVER)
    if found is None or ALWAYS in found:
        return None if found is None else ALWAYS
    if len(found) < 2:
        return found[0] if found else NEVER
    return {"bool": {"should": found, "minimum_should_match": 1}}


def every(queries: Iterable[Query | None]) -> Query | None:
    """Match where all of the queries do; ``None``, not known how, if one of them is ``None``."""
    found = _distinct(queries, ALWAYS)
    if found is None or NEVER in found:
        return None if found is None else NEVER
    if len(found) < 2:
        return found[0] if found else ALWAYS
    return {"bool": {"filter": found}}


def absent(query: Query) -> Query:
    """Match where a query does not."""
    if query in (ALWAYS, NEVER):
        return NEVER if query == ALWAYS else ALWAYS
    return {"bool": {"must_not": [query]}}


def within(slot: str, **bounds: Any) -> Query:
    """Match where a value lies within bounds (``gt``, ``gte``, ``lt``, ``lte``)."""
    return {"range": {slot: bounds}}


def one_of(slot: str, values: Sequence[Any]) -> Query:
    """Match where a value is one of these."""
    return {"terms": {slot: list(values)}} if values else NEVER


def exists(slot: str) -> Query:
    """Match where there is a value."""
    return {"exists": {"field": slot}}


def extent(query: Any) -> tuple[int, int]:
    """Return how many single queries a query has and how deep they lie: servers bound both."""
    ((kind, content),) = query.items()
    if kind == "bool":
        below = [extent(inner) for key in ("should", "filter", "must_not") for inner in content.get(key, ())]
    elif kind == "nested":
        below = [extent(content["query"])]
    else:
        return 1, 1
    return sum(leaves for leaves, _ in below), 1 + max((depth for _, depth in below), default=0)


def _distinct(queries: Iterable[Query | None], neutral: Query) -> list[Query] | None:
    """Return the queries without the neutral one, each once; ``None`` if one is ``None``."""
    found: dict[str, Query] = {}
    for query in queries:
        if query is None:
            return None
        if query != neutral:
            found.setdefault(json.dumps(query), query)
    return list(found.values())
