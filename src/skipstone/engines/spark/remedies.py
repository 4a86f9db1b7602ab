"""What to do about a predicate that no index serves: the indexes that would, tried out on it.

What to do about everything else is in the table of ``reasons``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from skipstone import registry
from skipstone.engines.spark.reasons import reason_of
from skipstone.expressions.tree import And, Call, Column, Expression, Not, Or
from skipstone.indexes.affix import SuffixIndex
from skipstone.indexes.bloom_filter import BloomFilterIndex
from skipstone.indexes.geo_box.regions import read_region
from skipstone.indexes.hybrid import HybridIndex
from skipstone.indexes.minmax import MinMaxIndex
from skipstone.indexes.value_list import ValueListIndex
from skipstone.querying.generate_clause import generate_clause
from skipstone.querying.sentences import unserved, unserved_sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from skipstone.indexing.index import Index
    from skipstone.indexing.records import IndexRecord
    from skipstone.querying.generate_clause import Labelled
    from skipstone.querying.plan import Decision, Plan

__all__ = ["Lack", "advice", "held_up", "lacks", "remedies", "remedy", "would_serve"]

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


def remedies(reasons: Iterable[str], plan: Plan | None) -> list[str]:
    """Return what to do about each reason, as the end of its sentence: empty where that says so itself.

    ``plan`` is what the reasons come from, as long as the planner remembers it.
    """
    found: dict[str, str] = {}
    for decision in plan.decisions if plan is not None else ():
        found |= advice(decision)
    return [found[reason] if reason in found else _from_the_table(reason) for reason in reasons]


def _from_the_table(reason: str) -> str:
    """Return what the table has for a reason."""
    known = reason_of(reason)
    return "" if known is None or known.said or known.name == "unserved" else f"; {known.remedy}"


def advice(decision: Decision) -> dict[str, str]:
    """Return what would serve the predicates that nothing serves, by the sentence that says so."""
    if decision.labelled is None:
        return {}
    there = {record.name for record in decision.snapshot.indexes}
    records = decision.snapshot.indexes
    return {
        unserved_sentence(leaf): f"{_half_a_place(leaf, records)}{remedy(leaf, there)}"
        for leaf in unserved(decision.labelled)
    }


def _half_a_place(leaf: Expression, records: Iterable[IndexRecord]) -> str:
    """Return that an index of places needs the other coordinate, where a predicate bounds one of two."""
    for record in records:
        columns = tuple(column.name for column in record.columns)
        region = read_region(leaf, columns) if record.type_name == "geobox" and len(columns) == 2 else None
        if region is not None and len(region.bounds) == 1:
            other = columns[1 - next(iter(region.bounds))]
            return f"; {record.name} needs ranges on both columns: add one on {other}"
    return ""


@dataclass(frozen=True, slots=True)
class Lack:
    """A predicate that no index serves: its column, and the index to make for it."""

    predicate: str
    column: str
    index: Index


def lacks(plan: Plan | None) -> list[Lack]:
    """Return the predicates of a planned scan that nothing serves and an index would, with the index to choose.

    Where several would serve, it is the one that does most without knowing the data: bounds for what only they and
    value lists serve (ranges), else lists that become filters where there are too many values (equality), else lists.
    """
    if plan is None or plan.condition is None:
        return []
    there = {record.name for decision in plan.decisions for record in decision.snapshot.indexes}
    trees = [decision.labelled for decision in plan.decisions if decision.labelled is not None]
    if not plan.decisions:
        trees = [generate_clause(plan.condition, (), registry.implications())]
    chosen = {str(leaf): _chosen(leaf, there) for labelled in trees for leaf in unserved(labelled)}
    found = [Lack(text, index.columns[0], index) for text, index in chosen.items() if index is not None]
    return [lack for lack in found if lack.column not in _refused(plan)]


def _refused(plan: Plan) -> set[str]:
    """Return the columns of indexes that are there but are not used: another index would be refused like them."""
    records = [record for decision in plan.decisions for record in decision.snapshot.indexes]
    refused = [r for r in records if any(sentence.startswith(f"{r.name}: ") for sentence in plan.not_used)]
    return {column.name for record in refused for column in record.columns}


def _chosen(leaf: Expression, there: Collection[str]) -> Index | None:
    """Return the index to make for a predicate."""
    columns = {vertex.name: vertex for vertex in leaf.walk() if isinstance(vertex, Column)}
    if len(columns) != 1:
        return None
    ((name, column),) = columns.items()

    def serves(index: Index) -> bool:
        return index.name not in there and index.supports((column.type,)) and _serves(leaf, index)

    equality = serves(BloomFilterIndex(name))
    order: list[Index] = [HybridIndex(name)] if equality else [MinMaxIndex(name), ValueListIndex(name)]
    return next(filter(serves, order), None)


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
