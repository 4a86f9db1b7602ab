"""``Dataset.describe`` and ``SHOW INDEXES``: a row per index."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from skipstone.errors import KeyUnavailableError
from skipstone.indexing.objects import recorded_states

if TYPE_CHECKING:
    from skipstone.indexing.target import Target
    from skipstone.stores.metadata_store import IndexRecord

__all__ = ["DESCRIBE_COLUMNS", "DESCRIBE_SCHEMA", "describe_rows"]

DESCRIBE_SCHEMA = (
    "name string, type string, columns array<string>, options string, covered bigint, stale bigint, missing bigint, "
    "bytes bigint, key string, created string, refreshed string, not_used string"
)
DESCRIBE_COLUMNS = tuple(part.split()[0] for part in DESCRIBE_SCHEMA.split(", "))


def describe_rows(target: Target) -> list[tuple[Any, ...]]:
    """Return a row per index of a dataset.

    ``covered`` counts the present objects that the index describes in their present state, ``stale`` those that have
    changed since (or were modified too shortly before to be trusted), ``missing`` those it never saw.  ``not_used``
    says why this user's queries cannot use the index, such as a missing key; its options are not shown then.
    """
    target.store.check_newest(target.root)
    try:
        snapshot = target.store.latest(target.root)
    except KeyUnavailableError as error:
        return [_row(record, (None,) * 4, str(error)) for record in target.store.recoverable_indexes(target.root)]
    if snapshot is None:
        return []
    known = target.store.objects(snapshot)
    states = {path: (row, state) for row, (path, state) in enumerate(recorded_states(known))}
    listed = target.source.list_objects()
    same = np.zeros(len(states), dtype=bool)
    changed = 0
    for data_object in listed:
        row, state = states.get(data_object.path, (-1, None))
        if state == data_object.state:
            same[row] = True
        elif state is not None:
            changed += 1
    sizes = target.store.size(snapshot)
    rows: list[tuple[Any, ...]] = []
    for record in snapshot.indexes:
        covered = int((same & target.store.coverage(snapshot, record)).sum())
        stale = changed + int((same & ~known.column("trusted").to_numpy(zero_copy_only=False).astype(bool)).sum())
        missing = len(listed) - covered - stale
        counts = (covered, stale, missing, sizes.get(record.id, 0))
        rows.append(_row(record, counts, target.store.refusal(snapshot, record)))
    return rows


def _row(record: IndexRecord, counts: tuple[int | None, ...], not_used: str | None) -> tuple[Any, ...]:
    """Make one row of what is recorded of an index and what was counted."""
    return (
        record.name,
        record.type_name,
        [c.name for c in record.columns],
        json.dumps({k: v for k, v in record.options.items() if k not in ("column", "key")}),
        *counts,
        record.key,
        record.created,
        record.refreshed,
        not_used,
    )
