"""The planner's answer for ``ORDER BY … LIMIT`` and ``WHERE … LIMIT``: where objects' rows stand in a query's order.

Three questions, each of an interface that plug-ins have: which objects match wholly (``all_match``), which index bounds
the key (``Index.bounds``), what it stores (``MetadataStore.fields``).  What has no answer leaves a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from skipstone.querying.completing import CHANGED, NONE_WHOLE, NOT_COUNTED, Completing
from skipstone.querying.plan import Decision, KnownFunctions, Plan
from skipstone.querying.sentences import NO_PREDICATE
from skipstone.querying.top_k import Ordered, standings

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from skipstone.expressions.tree import Column
    from skipstone.indexing.relation import Relation
    from skipstone.querying.top_k import Top
    from skipstone.stores.metadata_store import MetadataStore

__all__ = ["TopStanding", "plan_top"]


@dataclass(frozen=True)
class TopStanding:
    """Where rows stand: an array for each decision of a plan (see ``standings``), and the ranks of NULL and NaN."""

    question: Top
    ranks: tuple[npt.NDArray[np.int32] | None, ...]
    places: dict[str, int]


def plan_top(
    plan: Plan,
    top: Top,
    relation: Relation,
    store: MetadataStore,
    functions: KnownFunctions,
    chosen: Callable[[str, str], bool] | None = None,
) -> Plan:
    """Add to a plan where the rows of its objects stand; the plan with a sentence more when that cannot be said."""
    if not plan.decisions:
        return plan
    question = _Question(plan, top, relation, store, functions, chosen)
    try:
        standing = question.standing()
    except Exception as error:  # noqa: BLE001  an index may be a plug-in's: what its filter keeps stands all the same
        return _without(plan, f"{top}: {type(error).__name__}: {error}")
    if isinstance(standing, str):
        return _without(question.plan, f"{top}: {standing}")
    said = tuple(reason for reason in question.plan.not_used if reason != NO_PREDICATE)
    return replace(question.plan, top=standing, not_used=said)


def _without(plan: Plan, reason: str) -> Plan:
    """Return a plan that says why nothing is known of an order."""
    return replace(plan, not_used=(*plan.not_used, reason))


class _Question(Completing):
    """One plan, while it is completed by where rows stand."""

    def __init__(
        self,
        plan: Plan,
        top: Top,
        relation: Relation,
        store: MetadataStore,
        functions: KnownFunctions,
        chosen: Callable[[str, str], bool] | None,
    ) -> None:
        super().__init__(plan, relation, store, functions, chosen)
        self._top = top

    def standing(self) -> TopStanding | str:
        """Answer, or say why there is no answer."""
        top, decisions = self._top, self.plan.decisions
        whole = self.whole(top.whole)
        if whole is None:
            return CHANGED
        if not any(matching.any() for matching in whole):
            return NONE_WHOLE
        if top.key is None:
            counts = tuple(self.rows(decision, matching) for decision, matching in zip(decisions, whole, strict=True))
            if all(count is None for count in counts):
                return NOT_COUNTED
            return TopStanding(top, counts, {"nulls": 0, "nans": 0})
        parts = [self.ordered(d, top.key, matching) for d, matching in zip(decisions, whole, strict=True)]
        if all(part is None for part in parts):
            return f"no index bounds {top.key}"
        ranks, places = standings(top, parts)
        return TopStanding(top, tuple(ranks), places)

    def ordered(self, decision: Decision, key: Column, whole: npt.NDArray[np.bool_]) -> Ordered | None:
        """Find what one snapshot knows of the order of its objects."""
        found = self.bounded(decision, key)
        return None if found is None else Ordered(*found, whole)

    def rows(self, decision: Decision, whole: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32] | None:
        """Return how many rows the objects of one snapshot have that match wholly, in the form of ``standings``."""
        metadata = self.fields(decision, [])
        if metadata is None:
            return None
        count = np.where(
            whole, np.clip(metadata.row_count.fill_null(0).to_numpy(zero_copy_only=False), 0, self._top.rows), 0
        )
        nothing = np.zeros(len(count), np.int32)
        return np.column_stack([nothing, nothing, count, nothing, nothing]).astype(np.int32)
