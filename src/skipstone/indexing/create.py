"""Creating indexes: collect on every object, and commit together."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from skipstone.errors import DatasetError, IndexExistsError, IndexingError
from skipstone.indexing.job import index_objects
from skipstone.indexing.reading import reader_of, with_reader
from skipstone.indexing.records import Change
from skipstone.indexing.row_counts import agreed
from skipstone.indexing.target import (
    commit,
    record_of,
    refuse_changed_functions,
    refuse_changed_reading,
    refuse_outside_files,
    refuse_visible_metadata,
    report_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skipstone.indexing.index import Index
    from skipstone.indexing.records import IndexRecord
    from skipstone.indexing.report import IndexingReport
    from skipstone.indexing.target import Target
    from skipstone.stores.metadata_store import Snapshot

__all__ = ["create_indexes"]


def create_indexes(target: Target, indexes: Sequence[Index]) -> IndexingReport:
    """Collect and commit new indexes on every object of a dataset."""
    started = time.monotonic()
    if not indexes:
        msg = "create_indexes needs at least one index, for example MinMaxIndex('ts')"
        raise IndexingError(msg)
    target.store.check_keys([index.key for index in indexes if index.key is not None])
    refuse_visible_metadata(target)
    target.store.check_newest(target.root)
    base = target.store.latest(target.root)
    existing = base.indexes if base is not None else ()
    preparation = target.source.preparation
    resolved = target.source.bind([index.prepare(preparation) for index in indexes])
    _refuse_existing(existing, [bound.index.name for bound in resolved])
    refuse_outside_files(target)
    records = tuple(record_of(target, bound) for bound in resolved)
    outcome = index_objects(target.source, resolved)
    refuse_changed_reading(target)
    refuse_changed_functions(target, records, resolved)
    if not outcome.listed:
        msg = f"{target.root} holds no objects to index: it is empty, or all its files are"
        raise DatasetError(msg)
    records = tuple(replace(r, fields=outcome.fields[r.id]) for r in records)
    reader = reader_of(target.source.relation)

    def change(current: Snapshot | None) -> Change:
        present = current.indexes if current is not None else ()
        _refuse_existing(present, [r.name for r in records])
        return Change(with_reader((*present, *records), reader), agreed(target.store, current, outcome.table))

    snapshot = commit(target, base, change)
    return report_of(target, snapshot, [r.name for r in records], outcome, 0, started)


def _refuse_existing(existing: Sequence[IndexRecord], names: Sequence[str]) -> None:
    """Raise when an index of one of these names is there already."""
    taken = sorted({r.name for r in existing} & set(names))
    if taken:
        msg = f"there is already an index named {', '.join(taken)}; drop it first, or give the new one another name="
        raise IndexExistsError(msg)
