"""Creating, refreshing and dropping the indexes of a dataset: index time's side of the flow, indexing → stores."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from skipstone import registry
from skipstone.engines.spark.columns import resolve_indexes
from skipstone.engines.spark.functions import recorded_functions, shown
from skipstone.engines.spark.job import BoundIndex, Outcome, index_objects, list_objects
from skipstone.engines.spark.preparation import Preparation
from skipstone.engines.spark.visible_metadata import refuse_visible_folder
from skipstone.errors import (
    CommitConflictError,
    DatasetError,
    IndexExistsError,
    IndexingError,
    IndexNotFoundError,
    MetadataCorruptError,
    PluginError,
)
from skipstone.indexing.relation import Relation, profile_difference
from skipstone.reporting.indexing import IndexingReport
from skipstone.stores.metadata_store import Change, IndexRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from skipstone.indexing.index import Index
    from skipstone.indexing.objects import DataObject
    from skipstone.indexing.records import ColumnRecord, ReadProfile
    from skipstone.stores.metadata_store import MetadataStore, Recovery, Snapshot

__all__ = ["IndexingReport", "Target", "create_indexes", "drop_indexes", "refresh"]

_COMMIT_TRIES = 4


@dataclass(frozen=True)
class Target:
    """A dataset as maintenance needs it: how to read it, where it lies, where its metadata is kept."""

    spark: SparkSession
    scan: Any
    relation: Relation
    root: str
    store: MetadataStore


def create_indexes(target: Target, indexes: Sequence[Index]) -> IndexingReport:
    """Collect and commit new indexes on every object of a dataset."""
    started = time.monotonic()
    if not indexes:
        msg = "create_indexes needs at least one index, for example MinMaxIndex('ts')"
        raise IndexingError(msg)
    target.store.check_keys([index.key for index in indexes if index.key is not None])
    _refuse_visible_metadata(target)
    target.store.check_newest(target.root)
    base = target.store.latest(target.root)
    existing = base.indexes if base is not None else ()
    preparation = Preparation(target.spark, target.scan)
    resolved = resolve_indexes(target.spark, target.scan, [index.prepare(preparation) for index in indexes])
    _refuse_existing(existing, [bound.index.name for bound in resolved])
    _refuse_outside_files(target)
    records = tuple(_record(target, bound) for bound in resolved)
    outcome = index_objects(target.spark, target.scan, resolved)
    _refuse_changed_reading(target)
    _refuse_changed_functions(target, records, resolved)
    if not outcome.listed:
        msg = f"{target.root} holds no objects to index: it is empty, or all its files are"
        raise DatasetError(msg)
    records = tuple(replace(r, fields=outcome.fields[r.id]) for r in records)

    def change(current: Snapshot | None) -> Change:
        present = current.indexes if current is not None else ()
        _refuse_existing(present, [r.name for r in records])
        return Change((*present, *records), outcome.table)

    snapshot = _commit(target, base, change)
    return _report(target, snapshot, [r.name for r in records], outcome, 0, started)


def _refuse_visible_metadata(target: Target) -> None:
    """Raise, before anything is written, when the dataset's metadata would be read as data."""
    refuse_visible_folder(target.spark, json.loads(target.scan.describe()), target.store.folder(target.root))


def _record(target: Target, bound: BoundIndex) -> IndexRecord:
    """Make the record of an index that is about to be collected."""
    now = _now()
    return IndexRecord(
        id=bound.id,
        name=bound.index.name,
        type_name=bound.index.type_name,
        options=dict(bound.index.options()),
        columns=_as_read(target, bound),
        profile=_profile(target, bound),
        fields={},
        key=bound.index.key,
        created=now,
        refreshed=now,
        functions=_functions(target, bound),
        lookups=dict(bound.index.metadata_type.lookups),
    )


def refresh(target: Target, paths: tuple[str, ...] | None = None, restated: Sequence[Index] = ()) -> IndexingReport:
    """Bring a dataset's indexes up to date, collecting only what is new, changed or not covered.

    Metadata that turns out to be damaged is made anew, all of it; the report says so, and what is lost.  An index with
    SQL of its own is refreshed only if it is among the restated ones: a manifest is data from outside, and SQL in it is
    not run on its word.
    """
    started = time.monotonic()
    _refuse_visible_metadata(target)
    try:
        target.store.check_newest(target.root)
        return _refresh(target, paths, restated, started)
    except MetadataCorruptError as error:
        recovery = target.store.recovery(target.root)
        if not recovery.indexes:
            raise _beyond_repair(error, recovery) from error
        return _make_anew(target, recovery, restated, started)


def _beyond_repair(error: MetadataCorruptError, recovery: Recovery) -> MetadataCorruptError:
    """Make the error that says that a refresh cannot help, and what can."""
    known = "; ".join(recovery.lost) or "nothing says which indexes there were"
    return MetadataCorruptError(
        f"the metadata is damaged, and `refresh()` cannot make it again: {known}; `drop_indexes()` and then "
        f"`create_indexes(...)` do ({error})"
    )


def _make_anew(target: Target, recovery: Recovery, restated: Sequence[Index], started: float) -> IndexingReport:
    """Collect known indexes again under new ids and replace whatever the store has."""
    records = recovery.indexes
    work = _work(target, records, restated, lambda record: f"no key {record.key!r}" if _is_locked(record) else None)
    renewed = {r.name: r if _is_locked(r) else replace(r, id=uuid.uuid4().hex[:12], sealed="") for r in records}
    renewed |= {record.name: record for record, _ in work.renewed}
    bound = [replace(_rebound(target, record), id=renewed[record.name].id) for record in work.allowed]
    bound += [b for _, b in work.renewed]
    outcome = index_objects(target.spark, target.scan, bound) if bound else None
    _refuse_changed_reading(target)
    _refuse_changed_functions(target, [*work.allowed, *(r for r, _ in work.renewed)], bound)
    now = _now()
    for b in bound:
        fields = outcome.fields[b.id] if outcome is not None else {}
        renewed[b.index.name] = replace(renewed[b.index.name], fields=fields, refreshed=now)
    change = Change(tuple(renewed.values()), outcome.table if outcome is not None else None)
    if {r.id for r in target.store.recovery(target.root).indexes} != {r.id for r in records}:
        msg = f"the indexes of {target.root} were changed while its damaged metadata was made anew: try again"
        raise CommitConflictError(msg)
    snapshot = target.store.commit(target.root, None, change, replace=True)
    listed = outcome.listed if outcome is not None else 0
    report = _report(target, snapshot, list(renewed), outcome, 0, started, listed=listed, problems=work.left_out)
    repaired = f"the metadata was damaged and all of it was made anew, the indexes as {recovery.source} lists them"
    return replace(report, repaired=repaired, lost=recovery.lost)


def _refresh(
    target: Target, paths: tuple[str, ...] | None, restated: Sequence[Index], started: float
) -> IndexingReport:
    """Refresh sound metadata."""
    base = target.store.latest(target.root)
    if base is None or not base.indexes:
        msg = f"{target.root} has no index to refresh; make one with create_indexes(MinMaxIndex(…))"
        raise IndexNotFoundError(msg)
    work = _work(target, base.indexes, restated, partial(target.store.refusal, base))
    records = [*work.allowed, *(record for record, _ in work.renewed)]
    bound = [*(_rebound(target, record) for record in work.allowed), *(b for _, b in work.renewed)]
    listed = list_objects(target.spark, target.scan, paths)
    known = target.store.objects(base)
    current = _current_objects(target.store, base, records, known)
    wanted = [o for o in listed if o not in current] if bound else []
    removed = _vanished(known.column("path").to_pylist(), listed, paths)
    names = [r.name for r in base.indexes]
    outcome = index_objects(target.spark, target.scan, bound, wanted) if wanted else None
    _refuse_changed_reading(target)
    _refuse_changed_functions(target, records, bound)
    if not removed and (outcome is None or _nothing_new(target.store, base, records, known, outcome)):
        target.store.clean(target.root)
        return _report(target, base, names, outcome, 0, started, listed=len(listed), problems=work.left_out)
    now = _now()
    made = {r.name: replace(r, fields=outcome.fields[r.id]) for r, _ in work.renewed} if outcome is not None else {}

    def change(current_snapshot: Snapshot | None) -> Change:
        present = current_snapshot.indexes if current_snapshot is not None else ()
        refreshed = {b.id for b in bound}
        return Change(
            tuple(made.get(r.name) or (replace(r, refreshed=now) if r.id in refreshed else r) for r in present),
            outcome.table if outcome is not None else None,
            removed,
        )

    snapshot = _commit(target, base, change)
    return _report(target, snapshot, names, outcome, len(removed), started, listed=len(listed), problems=work.left_out)


@dataclass(frozen=True)
class _Work:
    """What a refresh collects: known indexes, restated ones to be made anew, and a line for each that is left out."""

    allowed: tuple[IndexRecord, ...]
    renewed: tuple[tuple[IndexRecord, BoundIndex], ...]
    left_out: tuple[str, ...]


def _work(
    target: Target,
    records: Sequence[IndexRecord],
    restated: Sequence[Index],
    refusal: Callable[[IndexRecord], str | None],
) -> _Work:
    """Sort out the indexes: left out are those that this user cannot read, and SQL that nobody restated.

    One that this user cannot read is made anew when it is restated: its key may be lost, or another's.
    """
    preparation = Preparation(target.spark, target.scan)
    prepared = {index.name: index.prepare(preparation) for index in restated}
    said = {name: _as_kept(index.options()) for name, index in prepared.items()}
    unknown = sorted(said.keys() - {record.name for record in records})
    if unknown:
        msg = f"{target.root} has no index named {', '.join(unknown)} to restate; it has: {_listed(records)}"
        raise IndexNotFoundError(msg)
    allowed: list[IndexRecord] = []
    again: list[Index] = []
    left_out: list[str] = []
    for record in records:
        refused = refusal(record)
        if refused is not None and record.name in prepared:
            again.append(prepared[record.name])
            continue
        if refused is not None:
            left_out.append(
                f"{record.name}: {refused}; it learns of no new objects until someone who has its key refreshes it, or "
                "it is restated, which makes it anew: refresh(indexes=[…])"
            )
            continue
        index_type = registry.find_index(record.type_name)
        runs_sql = index_type is not None and _made_again(record, index_type).runs_sql
        if record.name in said and said[record.name] != _as_kept(record.options):
            msg = f"{record.name} is not as it was made; drop it and create it as it should be"
            raise IndexingError(msg)
        if runs_sql and record.name not in said:
            left_out.append(
                f"{record.name} keeps SQL, which is run again only when it is restated: refresh(indexes=[…])"
            )
        else:
            allowed.append(record)
    target.store.check_keys([index.key for index in again if index.key is not None])
    renewed = tuple((_record(target, bound), bound) for bound in resolve_indexes(target.spark, target.scan, again))
    return _Work(tuple(allowed), renewed, tuple(left_out))


def _is_locked(record: IndexRecord) -> bool:
    """Say whether a record's options are sealed and could not be opened."""
    return bool(record.sealed) and not record.options


def _as_kept(options: Mapping[str, Any]) -> Any:
    """Give options as a manifest gives them back: tuples are lists there."""
    return json.loads(json.dumps(dict(options)))


def _listed(records: Sequence[IndexRecord]) -> str:
    """Name indexes."""
    return ", ".join(r.name for r in records) or "none"


def drop_indexes(target: Target, names: tuple[str, ...]) -> None:
    """Drop indexes by name, or everything that the store has of the dataset."""
    if not names:
        target.store.drop(target.root)
        return
    target.store.check_newest(target.root)
    base = target.store.latest(target.root)
    present = base.indexes if base is not None else ()
    unknown = [name for name in names if name not in {r.name for r in present}]
    if unknown:
        msg = f"{target.root} has no index named {', '.join(unknown)}; it has: {_listed(present)}"
        raise IndexNotFoundError(msg)
    if all(r.name in names for r in present):
        target.store.drop(target.root)
        return
    _commit(
        target,
        base,
        lambda current: Change(tuple(r for r in (current.indexes if current else ()) if r.name not in names)),
    )


def _refuse_existing(existing: Sequence[IndexRecord], names: Sequence[str]) -> None:
    """Raise when an index of one of these names is there already."""
    taken = sorted({r.name for r in existing} & set(names))
    if taken:
        msg = f"there is already an index named {', '.join(taken)}; drop it first, or give the new one another name="
        raise IndexExistsError(msg)


def _rebound(target: Target, record: IndexRecord) -> BoundIndex:
    """Make a recorded index again for collecting, and check that the dataset is still read as it was."""
    index_type = registry.find_index(record.type_name)
    if index_type is None:
        msg = (
            f"{record.name} cannot be refreshed: its type {record.type_name!r} is not loaded; import the module that "
            "defines it or name that in spark.skipstone.plugins, or drop the index"
        )
        raise PluginError(msg)
    index = _made_again(record, index_type)
    (bound,) = resolve_indexes(target.spark, target.scan, [index])
    difference = profile_difference(record.profile, _profile(target, bound))
    if _as_read(target, bound) != record.columns:
        difference = f"its columns are {_spelled(bound)} now"
    if difference is None:
        difference = _unidentified(record, index) or _function_difference(record.functions, _functions(target, bound))
    if difference is not None:
        msg = (
            f"{record.name} cannot be refreshed: {difference}; read the dataset as before, or drop and create the index"
        )
        raise IndexingError(msg)
    return replace(bound, id=record.id)


def _profile(target: Target, bound: BoundIndex) -> ReadProfile:
    """Return how the dataset is read by the session of this job, which is pinned."""
    columns = _as_read(target, bound)
    (profile,) = target.relation.profiles(columns, bound.index.environment_groups(columns))
    return profile


def _refuse_changed_reading(target: Target) -> None:
    """Raise when files are read otherwise now than when the job began: which of them were read how is not known.

    The job's session is its own, but settings of Hadoop's and the zone and locale of the JVM are everyone's.
    """
    now = Relation.of(json.loads(target.scan.describe()))
    if tuple(e.known() for e in now.environments) != tuple(e.known() for e in target.relation.environments):
        msg = (
            f"{target.root} cannot be indexed: a setting of Hadoop's, or the zone or locale of the JVM, changed while "
            "its objects were read; try again"
        )
        raise IndexingError(msg)


def _refuse_outside_files(target: Target) -> None:
    """Raise when an option names a file elsewhere that decides on values: nothing would tell when it changes."""
    option = target.relation.outside_file()
    if option is not None:
        msg = (
            f"a dataset that is read with {option} cannot be indexed: values depend on a file that may change "
            "unnoticed; read it without that option (a schema can be given as avroSchema)"
        )
        raise IndexingError(msg)


def _made_again(record: IndexRecord, index_type: type[Index]) -> Index:
    """Make an index from what the metadata says of it, which may be anything."""
    try:
        return index_type.from_options(record.name, record.options)
    except Exception as error:
        msg = (
            f"{record.name[:200]} cannot be made from the options that the metadata has for it "
            f"({type(error).__name__}: {str(error)[:200]}); drop it and create it again"
        )
        raise IndexingError(msg) from error


def _as_read(target: Target, bound: BoundIndex) -> tuple[ColumnRecord, ...]:
    """Give an index's columns with what the declared schema says of their values."""
    return tuple(target.relation.column(column) for column in bound.columns)


def _functions(
    target: Target, bound: BoundIndex, when: Literal["collecting", "collected"] = "collecting"
) -> dict[str, str]:
    """Give the identities of the users' functions whose results an index holds."""
    index = bound.index
    computed = [e for e in index.inputs(bound.types) if e not in index.columns]
    aggregated = list((index.aggregates(bound.types) or {}).values())
    return recorded_functions(target.spark, target.scan, index.name, (computed, aggregated), index.functions, when)


def _unidentified(record: IndexRecord, index: Index) -> str | None:
    """Say which function the metadata names without saying which one it was: it is not called on its name alone."""
    known = {_unqualified(name) for name in record.functions}
    missing = [name for name in index.functions or () if _unqualified(name) not in known]
    return f"the metadata does not say which function {missing[0]} was" if missing else None


def _unqualified(name: str) -> str:
    """Give a function's name without the schema it may be in, in one spelling."""
    return name.rpartition(".")[2].lower()


def _function_difference(then: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Say which function is not the one that was indexed; results of two functions must not meet in one index."""
    for name in sorted(then.keys() & now.keys()):
        if then[name] != now[name]:
            return f"{name} is {shown(now[name])} now, was {shown(then[name])} when indexed"
    return None


def _refuse_changed_functions(target: Target, records: Sequence[IndexRecord], bound: Sequence[BoundIndex]) -> None:
    """Raise when a function was registered anew while its results were collected: which ones they are is not known."""
    for record, b in zip(records, bound, strict=True):
        difference = None
        if record.functions:
            difference = _function_difference(record.functions, _functions(target, b, "collected"))
        if difference is not None:
            msg = f"{record.name} cannot be built: while it was collected a function changed: {difference}"
            raise IndexingError(msg)


def _spelled(bound: BoundIndex) -> str:
    """Spell an index's columns with their types."""
    return ", ".join(f"{c.name} {c.type}" for c in bound.columns)


def _current_objects(
    store: MetadataStore, base: Snapshot, records: Sequence[IndexRecord], known: Any
) -> set[DataObject]:
    """Give the objects that all these indexes cover in their recorded state."""
    from skipstone.indexing.objects import DataObject

    covered = known.column("trusted").to_numpy(zero_copy_only=False).astype(bool)
    for record in records:
        covered = covered & store.coverage(base, record)
    rows = zip(
        *(known.column(name).to_pylist() for name in ("path", "length", "modified", "etag")), covered, strict=True
    )
    return {DataObject(path, length, modified, etag) for path, length, modified, etag, ok in rows if ok}


def _nothing_new(
    store: MetadataStore, base: Snapshot, records: Sequence[IndexRecord], known: Any, outcome: Outcome
) -> bool:
    """Say whether all that was collected is known: objects on which an index raised before, and raised again."""
    states = ("path", "length", "modified", "etag", "trusted")
    before = set(zip(*(known.column(name).to_pylist() for name in states), strict=True))
    after = set(zip(*(outcome.table.column(name).to_pylist() for name in states), strict=True))
    missing = {
        (record.id, path)
        for record in records
        for path, covered in zip(known.column("path").to_pylist(), store.coverage(base, record), strict=True)
        if not covered
    }
    return after <= before and missing <= outcome.failures.keys()


def _vanished(known: Sequence[str], listed: Sequence[DataObject], paths: tuple[str, ...] | None) -> tuple[str, ...]:
    """Give the known objects that are gone, among those that were looked for."""
    present = {o.path for o in listed}
    if paths is None:
        return tuple(p for p in known if p not in present)
    looked_for = tuple(_bare(p) for p in paths)
    return tuple(
        p
        for p in known
        if p not in present and any(_bare(p) == x or _bare(p).startswith(f"{x.rstrip('/')}/") for x in looked_for)
    )


def _bare(path: str) -> str:
    """Give a path without the ways of writing the local scheme."""
    return path.removeprefix("file://").removeprefix("file:")


def _commit(target: Target, base: Snapshot | None, change: Any) -> Snapshot:
    """Commit on top of whatever is newest: what was collected stays true of the objects in the state that was read."""
    for attempt in range(_COMMIT_TRIES):
        try:
            return target.store.commit(target.root, base, change(base))
        except CommitConflictError:
            if attempt == _COMMIT_TRIES - 1:
                raise
            base = target.store.latest(target.root)
    raise AssertionError  # the loop returns or raises


def _report(
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
        seconds=time.monotonic() - started,
        version=snapshot.version,
        problems=(*(outcome.failures.values() if outcome is not None else ()), *problems),
    )


def _now() -> str:
    """Give the present moment as the manifest writes it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
