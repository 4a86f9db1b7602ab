"""A metadata store in the process's memory, for tests and notebooks: nothing is written anywhere."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from skipstone.errors import CommitConflictError, MetadataStoreError
from skipstone.indexing.records import split_field_column
from skipstone.stores.evaluation import BatchMetadata, FieldSource, evaluate_all
from skipstone.stores.metadata_store import Change, Evaluation, IndexRecord, MetadataStore, Snapshot, field_column
from skipstone.stores.names import normal_root
from skipstone.stores.parts.columns import IDENTITY, OBJECT_COLUMNS, presence_column
from skipstone.stores.parts.merge import NOWHERE, PartRows, gather, merge_parts
from skipstone.stores.parts.part_tables import part_table
from skipstone.stores.snapshot_reader import field_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    from pyspark.sql import SparkSession

    from skipstone.indexing.index import Index
    from skipstone.querying.clause import Clause, Metadata

__all__ = ["InMemoryStore"]


@dataclass(frozen=True)
class _State:
    """One version of a dataset: its snapshot and one table of all live objects, as a compacted part would hold it."""

    snapshot: Snapshot
    table: pa.Table


class InMemoryStore(MetadataStore):
    """Keeps metadata in memory, by the same rules as the stores that write it down: for tests and notebooks.

    ``spark.skipstone.store=memory``; it ends with the application, and other processes do not see it.
    """

    @classmethod
    def for_session(cls, spark: SparkSession, settings: Mapping[str, str]) -> Self:  # noqa: ARG003  (it has none)
        return cls()

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: dict[str, _State] = {}
        self._states: dict[str, _State] = {}

    def latest(self, root: str) -> Snapshot | None:
        found = self._newest.get(normal_root(root))
        return None if found is None else found.snapshot

    def objects(self, snapshot: Snapshot, columns: Sequence[str] | None = None) -> pa.Table:
        return self._table(snapshot).select(list(OBJECT_COLUMNS if columns is None else columns))

    def coverage(self, snapshot: Snapshot, index: IndexRecord) -> npt.NDArray[np.bool_]:
        table = self._table(snapshot)
        if presence_column(index.id) not in table.column_names:
            return np.zeros(table.num_rows, np.bool_)
        return table.column(presence_column(index.id)).to_numpy()

    def evaluate(self, snapshot: Snapshot, clause: Clause) -> Evaluation:
        kept, idle = evaluate_all(clause, self._metadata(snapshot))
        return Evaluation(kept, 0, idle=idle)

    def fields(self, snapshot: Snapshot, wanted: Sequence[tuple[Index, str]]) -> Metadata | None:  # noqa: ARG002
        return self._metadata(snapshot)

    def _metadata(self, snapshot: Snapshot) -> BatchMetadata:
        fields = {
            (record.name, name): FieldSource(field_column(record.id, name), field_type(record, name))
            for record in snapshot.indexes
            for name in record.fields
        }
        return BatchMetadata(self._table(snapshot), fields)

    def size(self, snapshot: Snapshot) -> Mapping[str, int]:
        table = self._table(snapshot)
        sizes = {record.id: 0 for record in snapshot.indexes} | {"": 0}
        for name in table.column_names:
            split = split_field_column(name)
            sizes["" if split is None else split.index_id] += table.column(name).nbytes
        return sizes

    def commit(self, root: str, base: Snapshot | None, change: Change, *, replace: bool = False) -> Snapshot:
        root = normal_root(root)
        before = self._newest.get(root)
        if not replace and (None if before is None else before.snapshot.id) != (None if base is None else base.id):
            msg = f"the metadata of {root} was changed meanwhile; nothing of this call was kept: try again"
            raise CommitConflictError(msg)
        known = None if before is None or replace else before.table
        added = part_table(change, keep_removed=known is not None)
        table = _merged([part for part in (known, added) if part is not None], change.indexes)
        version = 1 if before is None else before.snapshot.version + 1
        snapshot = Snapshot(
            id=f"memory:{root}@{version}@{uuid.uuid4().hex}",
            root=root,
            location=f"memory:{root}",
            version=version,
            indexes=change.indexes,
            object_count=table.num_rows,
        )
        with self._lock:
            if self._newest.get(root) is not before:
                msg = f"another writer committed version {version} of {root} first; nothing was kept: try again"
                raise CommitConflictError(msg)
            self._newest[root] = self._states[snapshot.id] = _State(snapshot, table)
        return snapshot

    def drop(self, root: str) -> None:
        root = normal_root(root)
        with self._lock:
            self._newest.pop(root, None)
            self._states = {key: state for key, state in self._states.items() if state.snapshot.root != root}

    def _table(self, snapshot: Snapshot) -> pa.Table:
        found = self._states.get(snapshot.id)
        if found is None:
            msg = f"version {snapshot.version} of the metadata of {snapshot.root} is gone; ask for the latest"
            raise MetadataStoreError(msg)
        return found.table


def _merged(parts: list[pa.Table], indexes: Sequence[IndexRecord]) -> pa.Table:
    """Merge tables as parts are merged, every index with a column that says which objects it covers."""
    parts = [part.combine_chunks() for part in parts]
    merge = merge_parts([_rows(part) for part in parts])
    counts = {n: part.column("row_count").is_valid().to_numpy() for n, part in enumerate(parts)}
    columns = {
        field.name: gather(
            merge.offsets,
            merge.sources(counts) if field.name == "row_count" else merge.newest,
            field.type,
            lambda n, field=field: parts[n].column(field.name),  # type: ignore[misc]
        )
        for field in IDENTITY
    }
    for record in indexes:
        names = {name: field_column(record.id, name) for name in record.fields}
        covered = {}
        for number, part in enumerate(parts):
            if presence_column(record.id) in part.column_names:
                covered[number] = part.column(presence_column(record.id)).to_numpy()
            elif any(name in part.column_names for name in names.values()):
                covered[number] = np.ones(part.num_rows, np.bool_)
        rows = merge.sources(covered)
        columns[presence_column(record.id)] = pa.array(rows != NOWHERE)
        for name, column in names.items():
            columns[column] = gather(
                merge.offsets,
                rows,
                field_type(record, name),
                lambda n, column=column: parts[n].column(column),  # type: ignore[misc]
            )
    return pa.table(columns)


def _rows(part: pa.Table) -> PartRows:
    """Take out what tells objects and their states apart."""
    whole = {n: part.column(n).combine_chunks() for n in ("digest", "etag")}
    whole = {n: pa.concat_arrays(a.chunks) if isinstance(a, pa.ChunkedArray) else a for n, a in whole.items()}
    flat = {n: part.column(n).to_numpy() for n in ("length", "modified", "trusted", "removed")}
    return PartRows(digest=whole["digest"], etag=whole["etag"], **flat)
