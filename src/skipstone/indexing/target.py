"""What index jobs work on, and what they all do: record, check, commit, report."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from skipstone.errors import CommitConflictError, IndexingError
from skipstone.indexing.records import IndexRecord, shown
from skipstone.indexing.report import IndexingReport

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skipstone.indexing.records import ColumnRecord, ReadProfile
    from skipstone.indexing.source import BoundIndex, Source
    from skipstone.stores.metadata_store import MetadataStore, Snapshot

__all__ = [
    "Target",
    "as_read",
    "commit",
    "function_difference",
    "named",
    "profile_of",
    "record_of",
    "refuse_changed_functions",
    "refuse_changed_reading",
    "refuse_outside_files",
    "refuse_visible_metadata",
    "report_of",
    "this_moment",
]

_COMMIT_TRIES = 4


@dataclass(frozen=True)
class Target:
    """A dataset as index jobs need it: what reads it, where it lies, where its metadata is kept."""

    source: Source
    root: str
    store: MetadataStore


def record_of(target: Target, bound: BoundIndex) -> IndexRecord:
    """Make the record of an index that is about to be collected."""
    now = this_moment()
    return IndexRecord(
        id=bound.id,
        name=bound.index.name,
        type_name=bound.index.type_name,
        options=dict(bound.index.options()),
        columns=as_read(target, bound),
        profile=profile_of(target, bound),
        fields={},
        key=bound.index.key,
        created=now,
        refreshed=now,
        functions=target.source.functions(bound, "collecting"),
        lookups=dict(bound.index.metadata_type.lookups),
    )


def profile_of(target: Target, bound: BoundIndex) -> ReadProfile:
    """Return how the dataset is read by the session of this job, which is pinned."""
    columns = as_read(target, bound)
    (profile,) = target.source.relation.profiles(columns, bound.index.environment_groups(columns))
    return profile


def as_read(target: Target, bound: BoundIndex) -> tuple[ColumnRecord, ...]:
    """Return an index's columns with what the declared schema says of their values."""
    return tuple(target.source.relation.column(column) for column in bound.columns)


def refuse_visible_metadata(target: Target) -> None:
    """Raise, before anything is written, when the dataset's metadata would be read as data."""
    target.source.refuse_visible_folder(target.store.folder(target.root))


def refuse_outside_files(target: Target) -> None:
    """Raise when an option names a file elsewhere that decides on values: nothing would show that it changed."""
    option = target.source.relation.outside_file()
    if option is not None:
        msg = (
            f"a dataset that is read with {option} cannot be indexed: values depend on a file that may change "
            "unnoticed; read it without that option (a schema can be given as avroSchema)"
        )
        raise IndexingError(msg)


def refuse_changed_reading(target: Target) -> None:
    """Raise when files are read differently now than when the job began: it is not known which were read in which way.

    The job's session is its own, but settings of Hadoop's and the zone and locale of the JVM are everyone's.
    """
    now = target.source.relation_now()
    if tuple(e.known() for e in now.environments) != tuple(e.known() for e in target.source.relation.environments):
        msg = (
            f"{target.root} cannot be indexed: a setting of Hadoop's, or the zone or locale of the JVM, changed while "
            "its objects were read; try again"
        )
        raise IndexingError(msg)


def refuse_changed_functions(target: Target, records: Sequence[IndexRecord], bound: Sequence[BoundIndex]) -> None:
    """Raise when a function was registered anew while its results were collected: they may be of either function."""
    for record, b in zip(records, bound, strict=True):
        difference = None
        if record.functions:
            difference = function_difference(record.functions, target.source.functions(b, "collected"))
        if difference is not None:
            msg = f"{record.name} cannot be built: while it was collected a function changed: {difference}"
            raise IndexingError(msg)


def function_difference(then: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Return which function is not the one that was indexed; results of two functions must not meet in one index."""
    for name in sorted(then.keys() & now.keys()):
        if then[name] != now[name]:
            return f"{name} is {shown(now[name])} now, was {shown(then[name])} when indexed"
    return None


def commit(target: Target, base: Snapshot | None, change: Any) -> Snapshot:
    """Commit on top of whatever is newest: what was collected stays true of the objects in the state that was read."""
    for attempt in range(_COMMIT_TRIES):
        try:
            return target.store.commit(target.root, base, change(base))
        except CommitConflictError:
            if attempt == _COMMIT_TRIES - 1:
                raise
            base = target.store.latest(target.root)
    raise AssertionError  # the loop returns or raises


def report_of(
    target: Target,
    snapshot: Snapshot,
    names: Sequence[str],
    outcome: Any,
    removed: int,
    started: float,
    listed: int | None = None,
    problems: tuple[str, ...] = (),
) -> IndexingReport:
    """Sum up what was done."""
    table = outcome.table if outcome is not None else None
    ended = time.monotonic()
    return IndexingReport(
        root=target.root,
        indexes=tuple(names),
        objects=listed if listed is not None else outcome.listed,
        indexed=table.num_rows if table is not None else 0,
        removed=removed,
        left_out=outcome.left_out if outcome is not None else 0,
        untrusted=outcome.untrusted if outcome is not None else 0,
        rows=sum(filter(None, table.column("row_count").to_pylist())) if table is not None else 0,
        metadata_bytes=sum(target.store.size(snapshot).values()),
        seconds=ended - started,
        version=snapshot.version,
        problems=(*(outcome.failures.values() if outcome is not None else ()), *problems),
        phases=_phases(started, outcome.laps, ended) if outcome is not None else {},
    )


def _phases(started: float, laps: Sequence[tuple[str, float]], ended: float) -> dict[str, float]:
    """Return the seconds of each phase; what comes after the last lap is the commit."""
    begins = (started, *(at for _, at in laps))
    return {name: end - begin for begin, (name, end) in zip(begins, (*laps, ("commit", ended)), strict=True)}


def named(records: Sequence[IndexRecord]) -> str:
    """Name indexes."""
    return ", ".join(r.name for r in records) or "none"


def this_moment() -> str:
    """Return the present moment as the manifest writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
