"""Refreshing indexes: collect what is new, changed or not covered, and forget what is gone."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any

from skipstone.errors import IndexNotFoundError, MetadataCorruptError
from skipstone.indexing.job import index_objects
from skipstone.indexing.objects import recorded_states
from skipstone.indexing.records import Change
from skipstone.indexing.repair import beyond_repair, repair
from skipstone.indexing.row_counts import agreed
from skipstone.indexing.target import (
    commit,
    refuse_changed_functions,
    refuse_changed_reading,
    refuse_visible_metadata,
    report_of,
    this_moment,
)
from skipstone.indexing.work import rebound, sorted_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skipstone.indexing.index import Index
    from skipstone.indexing.objects import DataObject, State
    from skipstone.indexing.records import IndexRecord
    from skipstone.indexing.report import IndexingReport
    from skipstone.indexing.source import Outcome
    from skipstone.indexing.target import Target
    from skipstone.stores.metadata_store import MetadataStore, Snapshot

__all__ = ["refresh"]


def refresh(target: Target, paths: tuple[str, ...] | None = None, restated: Sequence[Index] = ()) -> IndexingReport:
    """Bring a dataset's indexes up to date, collecting only what is new, changed or not covered.

    Metadata that turns out to be damaged is made anew, all of it; the report says so, and what is lost.  An index with
    SQL of its own is refreshed only if it is among the restated ones: a manifest is data from outside, and SQL in it is
    not run on its word.
    """
    started = time.monotonic()
    refuse_visible_metadata(target)
    paths = None if paths is None else tuple(below(target.root, path) for path in paths)
    try:
        target.store.check_newest(target.root)
        return _refresh(target, paths, restated, started)
    except MetadataCorruptError as error:
        recovery = target.store.recovery(target.root)
        if not recovery.indexes:
            raise beyond_repair(error, recovery) from error
        return repair(target, recovery, restated, started)


def _refresh(
    target: Target, paths: tuple[str, ...] | None, restated: Sequence[Index], started: float
) -> IndexingReport:
    """Refresh sound metadata."""
    base = target.store.latest(target.root)
    if base is None or not base.indexes:
        msg = (
            f"{target.root} has no index to refresh; make one with create_indexes(MinMaxIndex(…)).  If it had one, it "
            "was perhaps overwritten: mode('overwrite') deletes what lies beside the data, unless "
            "spark.skipstone.location is set; ensure_indexes(…) makes indexes anew where they are missing"
        )
        raise IndexNotFoundError(msg)
    work = sorted_out(target, base.indexes, restated, partial(target.store.refusal, base))
    records = [*work.allowed, *(record for record, _ in work.renewed)]
    bound = [*(rebound(target, record) for record in work.allowed), *(b for _, b in work.renewed)]
    listed = target.source.list_objects(paths)
    known = target.store.objects(base)
    current = _current_objects(target.store, base, records, known)
    wanted = [o for o in listed if current.get(o.path) != o.state] if bound else []
    removed = _vanished(known.column("path").to_pylist(), listed, paths)
    if removed and target.source.relation.is_table:  # an older snapshot may still name it, and be asked for
        removed = tuple(target.source.gone(removed))
    names = [r.name for r in base.indexes]
    outcome = index_objects(target.source, bound, wanted) if wanted else None
    refuse_changed_reading(target)
    refuse_changed_functions(target, records, bound)
    if not removed and (outcome is None or _nothing_new(target.store, base, records, known, outcome)):
        target.store.clean(target.root)
        return report_of(target, base, names, outcome, 0, started, listed=len(listed), problems=work.left_out)
    now = this_moment()
    made = {r.name: replace(r, fields=outcome.fields[r.id]) for r, _ in work.renewed} if outcome is not None else {}

    def change(current_snapshot: Snapshot | None) -> Change:
        present = current_snapshot.indexes if current_snapshot is not None else ()
        lookups = {b.id: dict(b.index.metadata_type.lookups) for b in bound}  # of the release that collected
        return Change(
            tuple(
                made.get(r.name) or (replace(r, refreshed=now, lookups=lookups[r.id]) if r.id in lookups else r)
                for r in present
            ),
            agreed(target.store, current_snapshot, outcome.table) if outcome is not None else None,
            removed,
        )

    snapshot = commit(target, base, change)
    return report_of(
        target, snapshot, names, outcome, len(removed), started, listed=len(listed), problems=work.left_out
    )


def _current_objects(
    store: MetadataStore, base: Snapshot, records: Sequence[IndexRecord], known: Any
) -> dict[str, State]:
    """Return the recorded states, by path, of the objects that all these indexes cover."""
    covered = known.column("trusted").to_numpy(zero_copy_only=False).astype(bool)
    for record in records:
        covered = covered & store.coverage(base, record)
    return dict(compress(recorded_states(known), covered))


def _nothing_new(
    store: MetadataStore, base: Snapshot, records: Sequence[IndexRecord], known: Any, outcome: Outcome
) -> bool:
    """Whether all that was collected is known: objects on which an index raised before, and raised again."""
    before, after = (
        set(zip(recorded_states(table), table.column("trusted").to_pylist(), strict=True))
        for table in (known, outcome.table)
    )
    missing = {
        (record.id, path)
        for record in records
        for path, covered in zip(known.column("path").to_pylist(), store.coverage(base, record), strict=True)
        if not covered
    }
    return after <= before and missing <= outcome.failures.keys()


def _vanished(known: Sequence[str], listed: Sequence[DataObject], paths: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the known objects that are gone, among those that were looked for."""
    present = {o.path for o in listed}
    if paths is None:
        return tuple(p for p in known if p not in present)
    looked_for = tuple(_bare(p) for p in paths)
    return tuple(
        p
        for p in known
        if p not in present and any(_bare(p) == x or _bare(p).startswith(f"{x.rstrip('/')}/") for x in looked_for)
    )


def below(root: str, path: str) -> str:
    """Return a path that is absolute, or relative to a dataset's root."""
    is_absolute = path.startswith("/") or re.match(r"[a-zA-Z][\w+.-]*:", path)
    return path if is_absolute else f"{root.rstrip('/')}/{path}"


def _bare(path: str) -> str:
    """Return a path without the ways of writing the local scheme."""
    return path.removeprefix("file://").removeprefix("file:")
