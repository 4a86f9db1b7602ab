"""The index job as a whole: list, collect by the cheapest sound path, look again, keep what did not change."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import IndexingError
from skipstone.indexing.failures import ReadFailedError
from skipstone.indexing.records import field_column, split_field_column
from skipstone.indexing.source import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skipstone.indexing.objects import DataObject
    from skipstone.indexing.source import BoundIndex, Source

__all__ = ["index_objects"]

# How far apart, in milliseconds, two writes must be for their modification times to differ for certain.
_LOCAL_MARGIN = 100
_REMOTE_MARGIN = 3_000
_COLLECT_TRIES = 3
# More single objects than this are looked up by listing the folders that they lie in.
_MOST_SINGLE_PATHS = 256


def index_objects(
    source: Source,
    bound: Sequence[BoundIndex],
    wanted: Sequence[DataObject] | None = None,
    *,
    progress: bool | None = None,
) -> Outcome:
    """Collect the metadata of a dataset's objects, or of the wanted ones of them, in the state in which they were read.

    Objects are listed before and looked at after, and only what is equal in both is kept: the reader does not say which
    state of a file it read.  An object written within the clock's granularity of the first listing could be written
    once more without its time changing; it is kept, but marked as not to be trusted yet.  The objects of a table format
    are never written twice: one listing will do, and one that has left the snapshot meanwhile is as good as before.

    Parameters
    ----------
    progress
        Show a bar; by default when standard error is a terminal.

    Raises
    ------
    IndexingError
        When an index raises on every object, or an object that did not change cannot be read.
    """
    laps = [("preparing", time.monotonic())]
    source.refuse_unsteady_rows()
    before, paths, listed_at = _settled_listing(source, wanted)
    laps.append(("listing", time.monotonic()))
    with source.progress(before, wanted=progress):
        selected, collected = _collect_what_stays(source, before, paths, bound)
    laps.append(("collecting", time.monotonic()))
    immutable = source.relation.is_table
    kept = set(selected if immutable else _still_there(source, selected, paths))
    laps.append(("listing again", time.monotonic()))
    table, fields = _named_by_index(collected, selected, bound)
    failures = _failures(collected, selected, bound)
    if wanted is None:
        _refuse_useless(collected, failures, bound)
    trusted = [immutable or _is_trusted(o, listed_at) for o in selected]
    table = table.append_column("trusted", _at(collected, trusted, pa.bool_()))
    table = table.filter(_at(collected, [o in kept for o in selected], pa.bool_()))
    untrusted = table.num_rows - sum(table.column("trusted").to_pylist())
    listed = len(before if wanted is None else wanted)
    return Outcome(table, fields, listed, listed - table.num_rows, untrusted, failures, tuple(laps))


def _collect_what_stays(
    source: Source, objects: list[DataObject], paths: list[str] | None, bound: Sequence[BoundIndex]
) -> tuple[list[DataObject], pa.Table]:
    """Collect, and when an object cannot be read, once more without those that changed or vanished meanwhile."""
    tries_left = _COLLECT_TRIES
    while True:
        tries_left -= 1
        try:
            return objects, source.collect(objects, bound)
        except ReadFailedError:
            unchanged = _still_there(source, objects, paths)
            if len(unchanged) == len(objects) or not tries_left:
                raise
            objects = unchanged


def _settled_listing(
    source: Source, wanted: Sequence[DataObject] | None
) -> tuple[list[DataObject], list[str] | None, float]:
    """List what is to be indexed, once its youngest object is old enough for its time to tell states apart.

    Returns
    -------
    tuple
        The objects, the paths by which they are listed (``None``: all), and when that was, in milliseconds.
    """
    paths = None if wanted is None else _paths(wanted)
    chosen = None if wanted is None else {o.path for o in wanted}
    waited = False
    while True:
        listed_at = time.time() * 1000
        found = [o for o in source.list_objects(paths) if chosen is None or o.path in chosen]
        missing = (o.modified + _margin(o) - listed_at for o in found if not o.etag)
        wait = max((w for w in missing if 0 < w <= _REMOTE_MARGIN), default=0)
        if waited or not wait or source.relation.is_table:
            return found, paths, listed_at
        time.sleep(wait / 1000)
        waited = True


def _paths(objects: Sequence[DataObject]) -> list[str]:
    """Return paths that list objects without the rest of the dataset: themselves, or the folders of many."""
    if len(objects) <= _MOST_SINGLE_PATHS:
        return [o.path for o in objects]
    return sorted({o.path.rpartition("/")[0] for o in objects})


def _still_there(source: Source, objects: Sequence[DataObject], paths: list[str] | None) -> list[DataObject]:
    """Return those objects of the last listing that are in the same state now.

    What counts is the state of each object, not what else is there: an engine that can look at the states alone need
    not list.
    """
    if not objects:
        return []
    changed = source.changed(objects)
    if changed is not None:
        return [o for o in objects if o.path not in changed]
    now = set(source.list_objects(paths))
    return [o for o in objects if o in now]


def _margin(data_object: DataObject) -> int:
    """Return the clock's granularity of an object's file system.

    A local path may be a mount whose times are whole seconds; an object whose time is one is taken to be on such.
    """
    fine = data_object.path.startswith("file:") and data_object.modified % 1000
    return _LOCAL_MARGIN if fine else _REMOTE_MARGIN


def _is_trusted(data_object: DataObject, listed_at: float) -> bool:
    """Whether a later write of an object would show: by its e-tag, or by a time that lies back far enough."""
    return bool(data_object.etag) or data_object.modified + _margin(data_object) <= listed_at


def _named_by_index(
    collected: pa.Table, objects: Sequence[DataObject], bound: Sequence[BoundIndex]
) -> tuple[pa.Table, dict[str, dict[str, str]]]:
    """Put the objects' states before what was collected, and name the fields by their index's id."""
    columns = {
        "path": _at(collected, [o.path for o in objects], pa.string()),
        "digest": _at(collected, [o.digest for o in objects], pa.binary(16)),
        "length": _at(collected, [o.length for o in objects], pa.int64()),
        "modified": _at(collected, [o.modified for o in objects], pa.int64()),
        "etag": _at(collected, [o.etag for o in objects], pa.string()),
        "row_count": collected.column("row_count"),
    }
    fields: dict[str, dict[str, str]] = {b.id: {} for b in bound}
    for column in collected.column_names:
        if (split := split_field_column(column)) is not None:
            place, name = split
            index_id = bound[int(place)].id
            values = collected.column(column)
            if name:
                columns[field_column(index_id, name)] = values
                fields[index_id][name] = str(values.type)
            elif values.null_count < len(values):
                columns[field_column(index_id, "")] = values.is_null()
    return pa.table(columns), fields


def _failures(
    collected: pa.Table, objects: Sequence[DataObject], bound: Sequence[BoundIndex]
) -> dict[tuple[str, str], str]:
    """Return which index has nothing of which object, and why."""
    failures: dict[tuple[str, str], str] = {}
    for place, b in enumerate(bound):
        why = field_column(str(place), "")
        reasons = collected.column(why)
        failed = collected.filter(reasons.is_valid())
        numbers, said = (failed.column(name).to_pylist() for name in ("object", why))
        failures |= {(b.id, objects[number].path): reason for number, reason in zip(numbers, said, strict=True)}
    return failures


def _refuse_useless(collected: pa.Table, failures: Mapping[tuple[str, str], str], bound: Sequence[BoundIndex]) -> None:
    """Raise when an index has nothing of any object that has rows: then the cause is not in one object's data."""
    with_rows = pc.sum(pc.not_equal(collected.column("row_count"), 0)).as_py() or 0
    for b in bound:
        reasons = [reason for (index_id, _), reason in failures.items() if index_id == b.id]
        if reasons and len(reasons) >= with_rows:
            msg = f"{reasons[0]}; nothing was indexed"
            raise IndexingError(msg)


def _at(collected: pa.Table, values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Return the objects' values in the order of what was collected."""
    return pa.array(values, type_).take(pa.array(collected.column("object").to_numpy().astype(np.int64)))
