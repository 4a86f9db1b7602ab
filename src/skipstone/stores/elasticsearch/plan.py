"""Splitting a clause: the largest parts of it that a query can refute go to the server, the rest is Arrow's.

Terms of an AND or OR can share a query if each object has the metadata of all their indexes in one and the same row;
after indexes were added one by one that need not be so, and then each gets a query of its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from skipstone.querying.clause import AndClause, Clause, OrClause
from skipstone.stores.elasticsearch import boxes as _boxes  # noqa: F401  (importing registers its translations)
from skipstone.stores.elasticsearch import clauses as _clauses  # noqa: F401
from skipstone.stores.elasticsearch.queries import NEVER, Query, every, extent, some
from skipstone.stores.elasticsearch.translation import Slot, translate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from skipstone.indexing.index import Index
    from skipstone.stores.elasticsearch.directory import Directory
    from skipstone.stores.metadata_store import IndexRecord
    from skipstone.stores.parts.part import Meter
    from skipstone.stores.snapshot_reader import SnapshotReader

__all__ = ["ByArrow", "ByServer", "Joined", "Plan", "plan_clause"]

_MOST_LEAVES = 400
_DEEPEST = 14
"""Servers refuse queries that are larger or deeper than their settings allow: 1,024 clauses, a range counted twice."""


@dataclass(frozen=True, slots=True, eq=False)
class ByServer:
    """What a query refutes: by part (its number), and for each object the row of the parts that describes it.

    ``rows`` is ``None`` when objects and rows are the same.
    """

    refutations: Mapping[int, Query]
    rows: npt.NDArray[np.int64] | None


@dataclass(frozen=True, slots=True, eq=False)
class ByArrow:
    """What the driver evaluates."""

    clause: Clause


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Terms of which all (``every``) or some must hold; what costs least comes first."""

    terms: tuple[ByServer | ByArrow | Joined, ...]
    every: bool


Plan: TypeAlias = ByServer | ByArrow | Joined


@dataclass(frozen=True, slots=True)
class _PartFields:
    """The searchable fields of one part, found by the names of indexes."""

    directory: Directory
    records: Mapping[tuple[str, str], IndexRecord]

    def slot(self, index: Index, name: str) -> Slot | None:
        record = self.records.get((index.name, index.type_name))
        return None if record is None else self.directory.search.get((record.id, name))


@dataclass(frozen=True, slots=True)
class _Planner:
    reader: SnapshotReader
    directories: Sequence[Directory]
    records: Mapping[tuple[str, str], IndexRecord]
    meter: Meter

    def plan(self, clause: Clause) -> Plan:
        """Plan from the leaves up."""
        if isinstance(clause, AndClause | OrClause) and clause.terms:
            return self._joined([self.plan(term) for term in clause.terms], is_every=isinstance(clause, AndClause))
        return self._leaf(clause)

    def _leaf(self, clause: Clause) -> Plan:
        """Return a leaf to the server if every part that describes objects can answer it."""
        found = [self.records.get((index.name, index.type_name)) for index, _ in clause.requires]
        ids = {record.id for record in found if record is not None}
        parts = [n for n, part in enumerate(self.reader.parts) if not ids.isdisjoint(part.record.indexes)]
        if not ids or None in found or not parts:
            return ByArrow(clause)
        rows = None
        if not self.reader.is_plain:
            sources = [self.reader.sources(index_id, self.meter) for index_id in sorted(ids)]
            rows = sources[0]
            if not all(np.array_equal(rows, other) for other in sources[1:]):
                return ByArrow(clause)
        refutations: dict[int, Query] = {}
        for part in parts:
            if not self.directories[part].search:  # it has no documents to search
                return ByArrow(clause)
            query = translate(clause, _PartFields(self.directories[part], self.records))
            if query is None:
                return ByArrow(clause)
            refutations[part] = query
        return ByServer(refutations, rows) if _fits(refutations) else ByArrow(clause)

    def _joined(self, plans: Sequence[Plan], *, is_every: bool) -> Plan:
        """Join plans: queries with queries, what is left to Arrow with each other, and the results by their bits."""
        by_server = _united([plan for plan in plans if isinstance(plan, ByServer)], is_every=is_every)
        by_arrow = [plan.clause for plan in plans if isinstance(plan, ByArrow)]
        others = [plan for plan in plans if isinstance(plan, Joined)]
        arrow: list[Plan] = []
        if by_arrow:
            joined = (AndClause if is_every else OrClause)(tuple(by_arrow)) if len(by_arrow) > 1 else by_arrow[0]
            arrow.append(ByArrow(joined))
        terms = (*by_server, *others, *arrow)
        return terms[0] if len(terms) == 1 else Joined(terms, is_every)


def plan_clause(
    reader: SnapshotReader,
    directories: Sequence[Directory],
    records: Mapping[tuple[str, str], IndexRecord],
    clause: Clause,
    meter: Meter,
) -> Plan:
    """Split a clause between the server and the driver."""
    return _Planner(reader, directories, records, meter).plan(clause)


def _united(plans: Sequence[ByServer], *, is_every: bool) -> list[ByServer]:
    """Make as few queries of several as the server takes; those that describe objects by different rows stay apart."""
    groups: list[list[ByServer]] = []
    for plan in plans:
        for group in groups:
            if _same_rows(group[0], plan):
                group.append(plan)
                break
        else:
            groups.append([plan])
    return [_one_query(chunk, is_every=is_every) for group in groups for chunk in _chunks(group)]


def _same_rows(one: ByServer, other: ByServer) -> bool:
    if one.rows is None or other.rows is None or one.rows is other.rows:
        return one.rows is other.rows
    return np.array_equal(one.rows, other.rows)


def _chunks(plans: Sequence[ByServer]) -> Iterator[list[ByServer]]:
    """Cut plans into runs that the server takes as one query."""
    run: list[ByServer] = []
    total = 0
    for plan in plans:
        leaves, depth = _extent(plan.refutations)
        if depth >= _DEEPEST:  # by itself it still fits
            yield [plan]
            continue
        if run and total + leaves > _MOST_LEAVES:
            yield run
            run, total = [], 0
        run.append(plan)
        total += leaves
    if run:
        yield run


def _one_query(plans: Sequence[ByServer], *, is_every: bool) -> ByServer:
    """Join the queries of plans, part by part: of terms that must all hold, one refuted is enough."""
    join: Any = some if is_every else every
    parts = sorted({part for plan in plans for part in plan.refutations})
    return ByServer(
        {part: join([plan.refutations.get(part, NEVER) for plan in plans]) for part in parts}, plans[0].rows
    )


def _extent(refutations: Mapping[int, Query]) -> tuple[int, int]:
    """Return how many single queries there are for all parts, and how deep; parts with equal queries share one."""
    extents = [extent(query) for query in {json.dumps(q): q for q in refutations.values()}.values()]
    return sum(leaves for leaves, _ in extents), max(depth for _, depth in extents)


def _fits(refutations: Mapping[int, Query]) -> bool:
    leaves, depth = _extent(refutations)
    return leaves <= _MOST_LEAVES and depth <= _DEEPEST
