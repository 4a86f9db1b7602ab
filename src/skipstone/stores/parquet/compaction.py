"""Compaction: many parts become one that holds only live objects and live indexes, with the same answers.

Works in slices of as many objects as a row group holds, so that it takes little memory whatever the metadata's size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from skipstone.stores.metadata_store import field_column
from skipstone.stores.parts.buckets import buckets_for
from skipstone.stores.parts.columns import IDENTITY, presence_column, rows_per_group
from skipstone.stores.parts.merge import NOWHERE, gather
from skipstone.stores.parts.part import Meter
from skipstone.stores.snapshot_reader import field_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from skipstone.stores.manifest import PartRecord
    from skipstone.stores.metadata_store import IndexRecord
    from skipstone.stores.parquet.part_writer import PartWriter
    from skipstone.stores.parts.buckets import Buckets
    from skipstone.stores.snapshot_reader import SnapshotReader

    Rows = npt.NDArray[np.int64]
    MakePart = Callable[[Path, pa.Schema, Mapping[str, Buckets]], PartWriter]

__all__ = ["compact"]


def compact(
    reader: SnapshotReader,
    indexes: Sequence[IndexRecord],
    path: Path,
    making: MakePart,
    *,
    sequence: int,
    file: str,
) -> PartRecord:
    """Write the merged view of a snapshot as one part, begun by ``making``; rows keep their order.

    Raises
    ------
    KeyUnavailableError
        When a key cannot be had: nothing is written then that could not be read before.
    """
    meter = Meter()
    merged = reader.merge(meter)
    sources: dict[str, tuple[pa.Field, Rows]] = {}
    for field in IDENTITY:
        rows = reader.row_count_sources(meter) if field.name == "row_count" else merged.newest
        sources[field.name] = (field, rows)
    presences: dict[str, Rows] = {}
    for record in indexes:
        rows = reader.sources(record.id, meter)
        if not np.any(rows != NOWHERE):
            continue
        if np.any(rows == NOWHERE):
            presences[presence_column(record.id)] = rows
        for name in record.fields:
            column = field_column(record.id, name)
            sources[column] = (pa.field(column, field_type(record, name)), rows)
    fields = [field for field, _ in sources.values()] + [pa.field(name, pa.bool_()) for name in presences]
    live = set().union(*(part.record.indexes for part in reader.parts)) & {record.id for record in indexes}
    size = sum(part.record.indexes[i][1] for part in reader.parts for i in live & set(part.record.indexes))
    step = rows_per_group(len(merged), size, cut=any(record.lookups for record in indexes))
    writer: PartWriter | None = None
    try:
        for start in range(0, len(merged), step):
            here = slice(start, start + step)
            slices = {id(rows): rows[here] for _, rows in sources.values()}  # many columns share few sources
            columns = _columns(reader, {name: (f.type, slices[id(rows)]) for name, (f, rows) in sources.items()})
            columns += [pa.array(rows[here] != NOWHERE) for rows in presences.values()]
            table = pa.table(columns, schema=pa.schema(fields))
            writer = writer or making(path, table.schema, buckets_for(table, indexes))
            writer.write(table)
        writer = writer or making(path, pa.schema(fields), {})
    except BaseException:
        if writer is not None:
            writer.close()
        raise
    return writer.finish(sequence, file)


def _columns(reader: SnapshotReader, wanted: dict[str, tuple[pa.DataType, Rows]]) -> list[pa.Array]:
    """Read the row groups that some global rows lie in, each part's once, and take the rows from them."""
    offsets = reader.merge(Meter()).offsets
    distinct = {id(rows): rows for _, rows in wanted.values()}
    needed = np.unique(np.concatenate(list(distinct.values())))
    tables: list[pa.Table | None] = []
    places = np.full(len(needed), NOWHERE, np.int64)
    starts = [0]
    for number, part in enumerate(reader.parts):
        inside = (needed >= offsets[number]) & (needed < offsets[number + 1])
        local = needed[inside] - offsets[number]
        if not len(local):
            tables.append(None)
            starts.append(starts[-1])
            continue
        ends = np.cumsum(part.row_group_rows())
        group_of = np.searchsorted(ends, local, side="right")
        groups = np.unique(group_of)
        table = part.read([name for name in wanted if name in part.column_names()], groups.tolist())
        lengths = np.diff(ends, prepend=0)
        base = np.zeros(len(ends), np.int64)
        base[groups] = np.cumsum(lengths[groups]) - lengths[groups] - (ends - lengths)[groups]
        places[inside] = local + base[group_of] + starts[-1]
        tables.append(table)
        starts.append(starts[-1] + table.num_rows)
    virtual = np.array(starts, np.int64)
    moved = {
        key: np.where(rows == NOWHERE, NOWHERE, places[np.searchsorted(needed, rows)]) for key, rows in distinct.items()
    }
    return [
        gather(virtual, moved[id(rows)], kind, lambda n, name=name: tables[n].column(name))  # type: ignore[misc, union-attr]
        for name, (kind, rows) in wanted.items()
    ]
