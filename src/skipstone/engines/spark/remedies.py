"""What to do about a predicate that no index serves: the indexes that would, tried out on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skipstone import registry
from skipstone.expressions.tree import And, Call, Column, Expression, Not, Or
from skipstone.indexes.affix import SuffixIndex
from skipstone.indexes.bloom_filter import BloomFilterIndex
from skipstone.indexes.minmax import MinMaxIndex
from skipstone.indexes.value_list import ValueListIndex
from skipstone.querying.generate_clause import generate_clause
from skipstone.querying.plan import unserved, unserved_sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from skipstone.indexing.index import Index
    from skipstone.querying.generate_clause import Labelled
    from skipstone.querying.plan import Decision

__all__ = ["advice", "held_up", "remedy", "would_serve"]

_TRIED: Final[dict[str, Callable[[str], Index]]] = {
    "MinMaxIndex({})": MinMaxIndex,
    "ValueListIndex({})": ValueListIndex,
    "BloomFilterIndex({})": BloomFilterIndex,
    "SuffixIndex({}, length=8)": lambda column: SuffixIndex(column, length=8),
}
_MOST_NAMED = 3


def would_serve(leaf: Expression, there: Collection[str] = ()) -> tuple[str, ...]:
    """Name the indexes that would serve a predicate on one column, as one writes them in Python.

    Each is made and asked for clauses, with what is known of what predicates imply, so that this says what planning
    would do.  An index that serves only whether there are NULLs says nothing of values, and is not among them.

    Parameters
    ----------
    leaf
        The predicate.
    there
        The names of indexes that the dataset has: why they do not serve it is said elsewhere.
    """
    columns = {vertex.name: vertex for vertex in leaf.walk() if isinstance(vertex, Column)}
    if len(columns) != 1:
        return ()
    ((name, column),) = columns.items()
    found = []
    for written, make in _TRIED.items():
        index = make(name)
        if index.name not in there and index.supports((column.type,)) and _serves(leaf, index):
            found.append(written.format(repr(name)))
    # Short values are kept whole, so that suffixes serve nearly anything; they are made for what bounds do not serve.
    return tuple(found[:-1] if len(found) > 1 and found[0].startswith("MinMax") and "Suffix" in found[-1] else found)


def _serves(leaf: Expression, index: Index) -> bool:
    """Whether an index would put a clause that looks at values on a predicate, or on what that implies."""
    labelled = generate_clause(leaf, tuple(index.filters()), registry.implications())
    clause = labelled.clause
    return clause is not None and any(not field.endswith("_count") for _, field in clause.requires)


def remedy(leaf: Expression, there: Collection[str] = ()) -> str:
    """Return what would serve a predicate that no index serves, as the end of a sentence; empty when nothing is known.

    Examples
    --------
    >>> from skipstone.expressions.tree import Column, Comparison, Literal
    >>> remedy(Comparison("=", Column("status", "int"), Literal(500, "int")))
    "; MinMaxIndex('status'), ValueListIndex('status') or BloomFilterIndex('status') would"
    """
    found = would_serve(leaf, there)[:_MOST_NAMED]
    if found:
        return f"; {' or '.join(filter(None, [', '.join(found[:-1]), found[-1]]))} would"
    calls = [vertex for vertex in leaf.walk() if isinstance(vertex, Call)]
    if any(not call.deterministic for call in calls):
        return "; its result changes from one run to the next, so that no index can"
    users = next((call for call in calls if call.kind), None)
    if users is not None and len(users.arguments) == 1 and isinstance(users.arguments[0], Column):
        column, name = users.arguments[0].name, users.name
        return f"; FormattedIndex({column!r}, extract={name!r}) would, or a udf_filter that says what it implies"
    return ""


def advice(decision: Decision) -> dict[str, str]:
    """Return what would serve the predicates that nothing serves, by the sentence that says so."""
    if decision.labelled is None:
        return {}
    there = {record.name for record in decision.snapshot.indexes}
    return {unserved_sentence(leaf): remedy(leaf, there) for leaf in unserved(decision.labelled)}


def held_up(labelled: Labelled) -> Iterator[tuple[Expression, list[Expression]]]:
    """Yield each OR of which indexes serve some terms and others not, with those others: it cannot skip for them."""
    for vertex in labelled.tree.walk(lambda node: isinstance(node, And | Or | Not)):
        if isinstance(vertex, Or) and not labelled.labels.get(vertex):
            missing = [term for term in vertex.terms if not _has_clause(term, labelled)]
            if missing and len(missing) < len(vertex.terms):
                yield vertex, missing


def _has_clause(node: Expression, labelled: Labelled) -> bool:
    """Whether something represents a vertex: a label, one term of an AND, or all of an OR."""
    if labelled.labels.get(node):
        return True
    if isinstance(node, And):
        return any(_has_clause(term, labelled) for term in node.terms)
    return isinstance(node, Or) and all(_has_clause(term, labelled) for term in node.terms)
