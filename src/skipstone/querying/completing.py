"""What a plan is completed by, beyond the objects that its predicate keeps: see ``plan_top`` and ``plan_tally``.

Three questions, each of an interface that plug-ins have: which objects match wholly (``all_match``), which index bounds
a column (``Index.bounds``), what it stores (``MetadataStore.fields``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from skipstone.expressions.normalize import ALWAYS, NEVER
from skipstone.expressions.types import FLOATING
from skipstone.querying.all_match import failing
from skipstone.querying.plan import Decision, KnownFunctions, Plan, plan_scan, serving_indexes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from skipstone.expressions.tree import Column, Expression
    from skipstone.indexing.bounds import Bounds
    from skipstone.indexing.index import Index
    from skipstone.indexing.relation import Relation
    from skipstone.querying.clause import Metadata
    from skipstone.stores.metadata_store import MetadataStore

__all__ = ["CHANGED", "NONE_WHOLE", "NOT_COUNTED", "Completing"]

CHANGED = "the metadata was changed meanwhile"
NONE_WHOLE = "no object is known to match wholly"
NOT_COUNTED = "the store does not say how many rows objects have"

_FILTERING_UNFINISHED_ROWS = ("json",)
"""Formats whose reader applies a query's filter to rows of which it has read a part.

Of two fields of one name the last counts, ``{"v": 1, "v": 5}`` is 5, and the filter is asked at the first: ``v >= 5``
leaves the row out, though it satisfies it.  So an object may match wholly and have fewer rows than were counted.
"""


class Completing:
    """One plan, while it is completed: ``plan`` rests on ever more of the environment, and uses ever more indexes."""

    def __init__(
        self,
        plan: Plan,
        relation: Relation,
        store: MetadataStore,
        functions: KnownFunctions,
        chosen: Callable[[str, str], bool] | None,
    ) -> None:
        self.plan = plan
        self._relation = relation
        self._store = store
        self._functions = functions
        self._chosen = chosen

    def whole(self, predicate: Expression | None) -> list[npt.NDArray[np.bool_]] | None:
        """Return for each snapshot which of its objects match wholly, or ``None`` when metadata changed meanwhile."""
        counts = [decision.snapshot.object_count for decision in self.plan.decisions]
        if predicate is None:
            return [np.ones(count, np.bool_) for count in counts]
        if self._relation.format in _FILTERING_UNFINISHED_ROWS:
            return [np.zeros(count, np.bool_) for count in counts]
        fails = failing(predicate)
        if fails in (NEVER, ALWAYS):  # with a predicate of which no index is asked, none vouches for how rows are read
            return [np.zeros(count, np.bool_) for count in counts]
        # Nothing is said of an object unless all of its rows, as they were indexed, satisfy the predicate.
        asked = plan_scan(self._relation, fails, self._store, self._functions, self._chosen, predicate)
        if [d.snapshot.id for d in asked.decisions] != [d.snapshot.id for d in self.plan.decisions]:
            return None
        self.rests_on(asked.environment, asked.used)
        return [
            ~d.evaluation.kept if d.evaluation is not None and _asks(d) else np.zeros(count, np.bool_)
            for d, count in zip(asked.decisions, counts, strict=True)
        ]

    def bounded(
        self, decision: Decision, key: Column, *, exactly: bool = False, assumed: Expression | None = None
    ) -> tuple[Metadata, Index, Bounds] | None:
        """Find the bounds of a column in the objects of one snapshot; ``exactly``: bounds that are values."""
        column, indexes = self.serving(decision, key, assumed)
        bounding = ((index, index.bounds(column.name)) for index in indexes)
        index, bounds = next(
            ((index, b) for index, b in bounding if b is not None and (b.exact or not exactly)), (None, None)
        )
        if index is None or bounds is None:
            return None
        names = [bounds.lower, bounds.upper, bounds.nulls, *([bounds.nans] if column.type in FLOATING else [])]
        metadata = self.fields(decision, [(index, name) for name in names])
        if metadata is None:
            return None
        self.rests_on((), (index.name,))
        return metadata, index, bounds

    def serving(
        self, decision: Decision, key: Column, assumed: Expression | None = None
    ) -> tuple[Column, tuple[Index, ...]]:
        """Find the indexes that may speak of a column as this scan reads it; from now on the plan rests on that."""
        column, indexes, not_used, environment = serving_indexes(
            decision.snapshot, self._relation, key, self._store, self._functions, assumed
        )
        if indexes:
            self.rests_on(environment, ())
        self.plan = replace(self.plan, not_used=tuple(dict.fromkeys((*self.plan.not_used, *not_used))))
        return column, indexes

    def fields(self, decision: Decision, wanted: Sequence[tuple[Index, str]]) -> Metadata | None:
        """Read stored fields of the objects of a snapshot, all of them or none."""
        metadata = self._store.fields(decision.snapshot, wanted)
        return None if metadata is None or len(metadata) != decision.snapshot.object_count else metadata

    def rests_on(self, environment: tuple[str, ...], used: tuple[str, ...]) -> None:
        """Note what else the plan depends on, and uses."""
        self.plan = replace(
            self.plan,
            environment=tuple(dict.fromkeys((*self.plan.environment, *environment))),
            used=tuple(dict.fromkeys((*self.plan.used, *used))),
        )


def _asks(decision: Decision) -> bool:
    """Whether a decision rests on what an index stores."""
    clause = decision.labelled.clause if decision.labelled is not None else None
    return clause is not None and bool(clause.requires)
