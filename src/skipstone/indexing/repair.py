"""Making damaged metadata anew: all indexes that are still known, on every object."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from skipstone.errors import CommitConflictError, MetadataCorruptError
from skipstone.indexing.job import index_objects
from skipstone.indexing.records import Change
from skipstone.indexing.target import refuse_changed_functions, refuse_changed_reading, report_of, this_moment
from skipstone.indexing.work import rebound, sorted_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skipstone.indexing.index import Index
    from skipstone.indexing.records import IndexRecord
    from skipstone.indexing.report import IndexingReport
    from skipstone.indexing.target import Target
    from skipstone.stores.metadata_store import Recovery

__all__ = ["beyond_repair", "repair"]


def repair(target: Target, recovery: Recovery, restated: Sequence[Index], started: float) -> IndexingReport:
    """Collect known indexes again under new ids and replace whatever the store has."""
    records = recovery.indexes
    work = sorted_out(
        target, records, restated, lambda record: f"no key {record.key!r}" if _is_locked(record) else None
    )
    renewed = {r.name: r if _is_locked(r) else replace(r, id=uuid.uuid4().hex[:12], sealed="") for r in records}
    renewed |= {record.name: record for record, _ in work.renewed}
    bound = [replace(rebound(target, record), id=renewed[record.name].id) for record in work.allowed]
    bound += [b for _, b in work.renewed]
    outcome = index_objects(target.source, bound) if bound else None
    refuse_changed_reading(target)
    refuse_changed_functions(target, [*work.allowed, *(r for r, _ in work.renewed)], bound)
    now = this_moment()
    for b in bound:
        fields = outcome.fields[b.id] if outcome is not None else {}
        renewed[b.index.name] = replace(renewed[b.index.name], fields=fields, refreshed=now)
    change = Change(tuple(renewed.values()), outcome.table if outcome is not None else None)
    if {r.id for r in target.store.recovery(target.root).indexes} != {r.id for r in records}:
        msg = f"the indexes of {target.root} were changed while its damaged metadata was made anew: try again"
        raise CommitConflictError(msg)
    snapshot = target.store.commit(target.root, None, change, replace=True)
    listed = outcome.listed if outcome is not None else 0
    report = report_of(target, snapshot, list(renewed), outcome, 0, started, listed=listed, problems=work.left_out)
    repaired = f"the metadata was damaged and all of it was made anew, the indexes as {recovery.source} lists them"
    return replace(report, repaired=repaired, lost=recovery.lost)


def beyond_repair(error: MetadataCorruptError, recovery: Recovery) -> MetadataCorruptError:
    """Make the error that says that a refresh cannot help, and what can."""
    known = "; ".join(recovery.lost) or "nothing says which indexes there were"
    return MetadataCorruptError(
        f"the metadata is damaged, and `refresh()` cannot make it again: {known}; `drop_indexes()` and then "
        f"`create_indexes(...)` do ({error})"
    )


def _is_locked(record: IndexRecord) -> bool:
    """Whether a record's options are sealed and could not be opened."""
    return bool(record.sealed) and not record.options
