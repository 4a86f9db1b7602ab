"""Evaluating a clause: queries for what the server can refute, Arrow for the rest, joined by their bits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skipstone.stores.elasticsearch.part import load_directories
from skipstone.stores.elasticsearch.plan import ByArrow, ByServer, Joined, Plan, plan_clause
from skipstone.stores.elasticsearch.search import kept_rows
from skipstone.stores.evaluation import DriverPartEvaluator, evaluate
from skipstone.stores.metadata_store import Evaluation
from skipstone.stores.parts.merge import NOWHERE
from skipstone.stores.parts.part import Meter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from skipstone.querying.clause import Clause
    from skipstone.stores.elasticsearch.client import Client
    from skipstone.stores.elasticsearch.part import SearchPart
    from skipstone.stores.snapshot_reader import SnapshotReader

    Truths = npt.NDArray[np.bool_]

__all__ = ["SnapshotSearch"]

_MOST_SEARCHES = 32
"""Queries in one request at most; a clause that needs more is evaluated by Arrow."""


class SnapshotSearch:
    """Evaluates clauses over one snapshot.

    Parameters
    ----------
    client, index
        The server, and its index of searchable documents.
    reader, parts
        The snapshot, and its parts.
    bound
        Columns that take at most so many bytes are evaluated in memory at once.
    """

    def __init__(
        self, client: Client, index: str, reader: SnapshotReader, parts: Sequence[SearchPart], bound: int
    ) -> None:
        self._client = client
        self._index = index
        self._reader = reader
        self._parts = parts
        self._bound = bound

    def evaluate(self, clause: Clause) -> Evaluation:
        """Return for every object whether a clause keeps it; unknown keeps."""
        if not len(self._reader):
            return Evaluation(np.zeros(0, np.bool_), 0)
        meter = Meter()
        load_directories(self._parts, meter)
        records = {(record.name, record.type_name): record for record in self._reader.manifest.indexes}
        directories = [part.directory() for part in self._parts]
        plan = plan_clause(self._reader, directories, records, clause, meter)
        searches = list(_searches(plan))
        if not searches or len(searches) > _MOST_SEARCHES:
            return self._by_arrow(clause, meter)
        answers = kept_rows(
            self._client,
            self._index,
            [part.record for part in self._parts],
            [search.refutations for search in searches],
            meter,
        )
        kept = {id(s): self._by_object(s, rows) for s, rows in zip(searches, answers, strict=True)}
        return Evaluation(self._bits(plan, kept, meter), meter.bytes)

    def _by_object(self, search: ByServer, rows: Sequence[Truths]) -> Truths:
        """Turn answers by row into answers by object; an object without a row is kept."""
        if search.rows is None:
            return rows[0]
        kept = np.ones(len(self._reader), np.bool_)
        known = search.rows != NOWHERE
        kept[known] = np.concatenate(rows)[search.rows[known]]
        return kept

    def _bits(self, plan: Plan, kept: Mapping[int, Truths], meter: Meter) -> Truths:
        """Join answers from the leaves up; what cannot change the answer any more is not evaluated."""
        if isinstance(plan, ByServer):
            return kept[id(plan)]
        if isinstance(plan, ByArrow):
            return self._by_arrow(plan.clause, meter).kept
        first, *rest = plan.terms
        found = self._bits(first, kept, meter)
        for term in rest:
            if not found.any() if plan.every else found.all():
                break
            other = self._bits(term, kept, meter)
            found = found & other if plan.every else found | other
        return found

    def _by_arrow(self, clause: Clause, meter: Meter) -> Evaluation:
        """Evaluate on the driver, from the chunks."""
        found = evaluate(self._reader, clause, self._bound, DriverPartEvaluator())
        meter.bytes += found.bytes_read
        return Evaluation(found.kept, meter.bytes)


def _searches(root: Plan) -> Iterator[ByServer]:
    """Yield the queries of a plan."""
    if isinstance(root, ByServer):
        yield root
    elif isinstance(root, Joined):
        for term in root.terms:
            yield from _searches(term)
