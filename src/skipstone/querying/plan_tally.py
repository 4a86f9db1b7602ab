"""The planner's answer for ``count``, ``min`` and ``max``: what objects hold that match wholly, exactly.

Which objects are still as they were indexed only the engine knows, which lists them.  So the planner tells of each
object how many rows it has, and of each column asked for how many NULLs, the least and the greatest value; the bridge
adds up (``Tally.scala``).  The proof is in docs/adr/0016-aggregates.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from skipstone.expressions.from_spark import read_expression
from skipstone.expressions.tree import Column
from skipstone.querying.completing import CHANGED, NONE_WHOLE, NOT_COUNTED, Completing
from skipstone.querying.sentences import NO_PREDICATE
from skipstone.querying.timestamps import MODERN, modern

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from skipstone.expressions.tree import Expression
    from skipstone.indexing.bounds import Bounds
    from skipstone.indexing.index import Index
    from skipstone.indexing.relation import Relation
    from skipstone.querying.clause import Metadata
    from skipstone.querying.plan import Decision, KnownFunctions, Plan
    from skipstone.stores.metadata_store import MetadataStore

    Facts = npt.NDArray[np.int64]

__all__ = ["FIELDS", "UNKNOWN", "Tally", "exact_numbers", "plan_tally"]

FIELDS = ("nulls", "valued", "lower", "upper")
"""What is said of a column in an object, each in 64 bits; see ``plan_tally``."""
UNKNOWN = -1
"""In place of a count that is not known."""
_MOST_DIGITS = 18
"""A decimal of as many digits is a number of 64 bits."""


@dataclass(frozen=True)
class Tally:
    """What a query asks of the rows of objects.

    Parameters
    ----------
    whole
        What holds of every row that is counted, where that is not true of all rows anyway.
    columns
        The columns of the files of which NULLs are counted, or the least and the greatest value asked for.
    vouchers
        Columns of which some index may be: one that serves the scan vouches that its rows are those that were counted.
    """

    whole: Expression | None
    columns: tuple[Column, ...]
    vouchers: tuple[Column, ...] = ()

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Self:
        """Read what the bridge says of it."""
        whole = None if said["whole"] is None else read_expression(said["whole"])
        return cls(whole, _columns(said["columns"]), _columns(said["vouchers"]))


def plan_tally(
    plan: Plan,
    tally: Tally,
    relation: Relation,
    store: MetadataStore,
    functions: KnownFunctions,
    chosen: Callable[[str, str], bool] | None = None,
) -> Plan:
    """Add to a plan what its objects hold; the plan with a sentence more when that cannot be said.

    ``Plan.tally`` has an array for each decision, or ``None``.  A row is an object.  The first column says how many
    rows the object has, `UNKNOWN` unless that is known and all of them satisfy ``tally.whole``; then come `FIELDS` for
    each column asked for: how many NULLs, `UNKNOWN` when that is not known; whether ``lower`` and ``upper`` are the
    least and the greatest of the other values (1), there is no other value (0), or neither is known (`UNKNOWN`).
    """
    if not plan.decisions:
        return plan
    question = _Question(plan, relation, store, functions, chosen)
    try:
        facts = question.facts(tally)
    except Exception as error:  # noqa: BLE001  an index may be a plug-in's: the query reads its objects
        facts = f"{type(error).__name__}: {error}"
    said = tuple(reason for reason in question.plan.not_used if reason != NO_PREDICATE)
    if isinstance(facts, str):
        return replace(question.plan, not_used=(*said, f"counts and extremes: {facts}"))
    return replace(question.plan, tally=facts, not_used=said)


class _Question(Completing):
    """One plan, while it is completed by what objects hold."""

    def facts(self, tally: Tally) -> tuple[Facts | None, ...] | str:
        """Answer, or say why there is no answer."""
        if all(self.fields(decision, []) is None for decision in self.plan.decisions):
            return NOT_COUNTED
        whole = self.whole(tally.whole)
        if whole is None:
            return CHANGED
        if not any(matching.any() for matching in whole):
            return NONE_WHOLE
        found = tuple(
            self.held(decision, tally, matching) for decision, matching in zip(self.plan.decisions, whole, strict=True)
        )
        return found if any(part is not None for part in found) else NOT_COUNTED

    def held(self, decision: Decision, tally: Tally, whole: npt.NDArray[np.bool_]) -> Facts | None:
        """Return what the objects of one snapshot hold."""
        # An index that serves this scan was made by reading files as the scan does, and its rows were counted. With a
        # predicate, one was asked; otherwise one must be found. How many rows there are depends on no zone.
        if tally.whole is None and not any(
            self.serving(decision, voucher, modern(voucher))[1] for voucher in (*tally.columns, *tally.vouchers)
        ):
            return None
        metadata = self.fields(decision, [])
        if metadata is None:
            return None
        rows = np.where(whole, _counts(metadata.row_count), UNKNOWN)
        return np.column_stack([rows, *(self.column(decision, column, rows) for column in tally.columns)])

    def column(self, decision: Decision, column: Column, rows: Facts) -> Facts:
        """Return what is known of a column: `FIELDS`.

        Of timestamps the extremes are said only where the least is modern, so that no zone moves any of them; a zone
        does not make a NULL.
        """
        assumed = modern(column)
        found = self.bounded(decision, column, exactly=True, assumed=assumed)
        if found is None:
            return np.full((len(rows), len(FIELDS)), UNKNOWN, np.int64)
        facts = held_by(*found, rows)
        if assumed is not None:
            facts[(facts[:, 1] == 1) & (facts[:, 2] < MODERN), 1] = UNKNOWN
        return facts


def held_by(metadata: Metadata, index: Index, bounds: Bounds, rows: Facts) -> Facts:
    """Return what an index knows of a column of objects that have so many rows.

    Counts that contradict each other say nothing, nor does one bound without the other.  No bounds at all are right
    only where every row is NULL.
    """
    nulls = _counts(metadata.field(index, bounds.nulls))
    nulls = np.where((rows >= 0) & (nulls <= rows), nulls, UNKNOWN)
    lower, upper = (exact_numbers(metadata.field(index, name)) for name in (bounds.lower, bounds.upper))
    valued = np.full(len(rows), UNKNOWN, np.int64)
    nothing = np.zeros(len(rows), np.int64)
    if lower is not None and upper is not None:
        (least, has_least), (most, has_most) = lower, upper
        valued[(nulls >= 0) & (nulls < rows) & has_least & has_most & (least <= most)] = 1
    else:
        least = most = nothing
    valued[(nulls >= 0) & (nulls == rows)] = 0
    return np.column_stack([nulls, valued, least, most])


def exact_numbers(array: pa.Array | pa.ChunkedArray) -> tuple[Facts, npt.NDArray[np.bool_]] | None:
    """Return stored bounds as the numbers of 64 bits by which Spark holds such values, and which of them are known.

    ``None`` for what is not such a number: text is cut; of 0.0 and -0.0 either may be the least.
    """
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    known = array.is_valid().to_numpy(zero_copy_only=False)
    kind = array.type
    if pa.types.is_decimal128(kind) and kind.precision <= _MOST_DIGITS:
        words = np.frombuffer(array.buffers()[1], "<i8").reshape(-1, 2)[array.offset : array.offset + len(array), 0]
        return np.where(known, words, 0), known
    micros = pa.types.is_timestamp(kind) and kind.unit == "us"
    if not (pa.types.is_signed_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_date32(kind) or micros):
        return None
    array = array.cast(pa.int32()) if pa.types.is_date32(kind) else array
    return array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), known


def _counts(array: pa.Array | pa.ChunkedArray) -> Facts:
    """Return counts, `UNKNOWN` where they are not known."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    counts: Facts = array.cast(pa.int64()).fill_null(UNKNOWN).to_numpy(zero_copy_only=False)
    return np.maximum(counts, UNKNOWN)


def _columns(said: list[Any]) -> tuple[Column, ...]:
    """Read columns."""
    columns = tuple(map(read_expression, said))
    for column in columns:
        if not isinstance(column, Column):
            msg = f"{column} is no column"
            raise TypeError(msg)
    return tuple(column for column in columns if isinstance(column, Column))
