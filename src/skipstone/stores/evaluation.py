"""Evaluating a clause over a snapshot: all columns at once when they fit, else part by part where they are.

Unknown keeps, everywhere: a null in a clause's answer, an object whose metadata is spread over several parts when
parts are evaluated one by one, an answer of the wrong length.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from skipstone.errors import MetadataStoreError
from skipstone.indexing.row_counts import known_counts
from skipstone.querying.clause import conjuncts, lookups_of
from skipstone.querying.lookup import Lookup, PartFilters
from skipstone.stores.metadata_store import Evaluation, field_column
from skipstone.stores.parts.buckets import filters_of, joined
from skipstone.stores.parts.merge import NOWHERE
from skipstone.stores.parts.part import Meter
from skipstone.stores.snapshot_reader import field_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from skipstone.indexing.index import Index
    from skipstone.querying.clause import Clause, Metadata
    from skipstone.querying.lookup import Filters
    from skipstone.stores.metadata_store import IndexRecord
    from skipstone.stores.parts.buckets import Buckets
    from skipstone.stores.parts.part import Part
    from skipstone.stores.snapshot_reader import SnapshotReader

__all__ = [
    "BatchMetadata",
    "DriverPartEvaluator",
    "PartEvaluator",
    "evaluate",
    "evaluate_all",
    "might_match",
    "read_fields",
]

_ROW_COUNT = "row_count"


@dataclass(frozen=True)
class FieldSource:
    """Where a field of an index is found in a part, and its type: what an executor needs to know of an index.

    ``cut`` says how it is kept in buckets; ``None`` when it is one column.
    """

    column: str
    type: pa.DataType
    cut: Buckets | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the field is kept in."""
        return (self.column,) if self.cut is None else self.cut.columns(self.column)


class PartEvaluator(Protocol):
    """Evaluates a clause row by row over parts that are too large to be held in the driver's memory."""

    by_spark: bool

    def __call__(
        self, parts: Sequence[Part], clause: Clause, fields: Mapping[tuple[str, str], FieldSource]
    ) -> list[npt.NDArray[np.bool_]]:
        """Return for each row of each part whether the clause keeps it; columns are given by (index name, field).

        All parts hold the same indexes, as far as the clause requires them.
        """
        ...


class BatchMetadata:
    """The metadata of some rows of one part, as clauses see it; a field that the part lacks is null."""

    def __init__(self, rows: pa.RecordBatch | pa.Table, fields: Mapping[tuple[str, str], FieldSource]) -> None:
        self._rows = rows
        self._names = set(rows.schema.names)
        self._fields = fields

    def __len__(self) -> int:
        return self._rows.num_rows

    def field(self, index: Index, name: str) -> pa.Array:
        source = self._fields.get((index.name, name))
        if source is None or not self._names.issuperset(source.columns):
            return pa.nulls(len(self), pa.null() if source is None else source.type)
        pieces = [self._column(column, source.type) for column in source.columns]
        return pieces[0] if source.cut is None else joined(source.cut.kind, pieces)

    def filters(self, index: Index, name: str) -> Filters:
        source = self._fields.get((index.name, name))
        if source is None or source.cut is None or not self._names.issuperset(source.columns):
            return PartFilters(self.field(index, name))
        pieces = {column: self._column(column, source.type) for column in source.columns}
        return filters_of(pieces, source.column, source.cut)

    @property
    def row_count(self) -> pa.Array:
        return known_counts(self._column(_ROW_COUNT, pa.int64()))

    def _column(self, name: str, kind: pa.DataType) -> pa.Array:
        column = self._rows.column(name)
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if isinstance(whole, pa.ChunkedArray):
            whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], kind)
        return whole if whole.type == kind else whole.cast(kind)


class _SnapshotMetadata:
    """The metadata of a whole snapshot, as clauses see it."""

    def __init__(
        self,
        reader: SnapshotReader,
        records: Mapping[tuple[str, str], IndexRecord],
        meter: Meter,
        wanted: Sequence[tuple[IndexRecord, str]],
        lookups: Mapping[tuple[str, str], Lookup],
    ) -> None:
        self._reader = reader
        self._records = records
        self._meter = meter
        self._loaded = reader.load(wanted, meter, lookups)

    def __len__(self) -> int:
        return len(self._reader)

    def field(self, index: Index, name: str) -> pa.Array:
        record = self._records.get((index.name, index.type_name))
        if record is None:
            return pa.nulls(len(self))
        known = self._loaded.fields.get((record.id, name))
        return self._reader.load([(record, name)], self._meter).fields[record.id, name] if known is None else known

    def filters(self, index: Index, name: str) -> Filters:
        record = self._records.get((index.name, index.type_name))
        known = None if record is None else self._loaded.filters.get((record.id, name))
        return PartFilters(self.field(index, name)) if known is None else known

    @cached_property
    def row_count(self) -> pa.Array:
        return known_counts(self._reader.row_count(self._meter))


class DriverPartEvaluator:
    """Evaluates row group by row group in the driver: slow, but in little memory and without Spark."""

    by_spark = False

    def __call__(
        self, parts: Sequence[Part], clause: Clause, fields: Mapping[tuple[str, str], FieldSource]
    ) -> list[npt.NDArray[np.bool_]]:
        wanted = [_ROW_COUNT, *(source.column for source in fields.values())]
        answers = []
        for part in parts:
            columns = [name for name in dict.fromkeys(wanted) if name in part.column_names()]
            groups = range(len(part.row_group_rows()))
            tables = (part.read(columns, [group]) for group in groups)
            kept = [might_match(clause, BatchMetadata(table, fields)) for table in tables]
            answers.append(np.concatenate(kept) if kept else np.zeros(0, np.bool_))
        return answers


def might_match(clause: Clause, metadata: Any) -> npt.NDArray[np.bool_]:
    """Run a clause; null and nonsense keep."""
    answer = clause.might_match(metadata)
    if isinstance(answer, pa.ChunkedArray):
        answer = pa.concat_arrays(answer.chunks) if answer.num_chunks else pa.array([], answer.type)
    if isinstance(answer, pa.Scalar):  # a clause that does not depend on the object
        answer = pa.repeat(answer, len(metadata))
    if len(answer) != len(metadata) or not (pa.types.is_boolean(answer.type) or pa.types.is_null(answer.type)):
        msg = f"{type(clause).__name__} gave {len(answer)} values of type {answer.type} for {len(metadata)} objects"
        raise MetadataStoreError(msg)
    if pa.types.is_null(answer.type):
        return np.ones(len(metadata), np.bool_)
    return answer.fill_null(True).to_numpy(zero_copy_only=False)


def evaluate(reader: SnapshotReader, clause: Clause, bound: int, evaluator: PartEvaluator) -> Evaluation:
    """Evaluate a clause for every object of a snapshot, in memory when its columns take at most ``bound`` bytes."""
    records = {(record.name, record.type_name): record for record in reader.manifest.indexes}
    requires = tuple(dict.fromkeys(clause.requires))
    wanted = [
        (record, name) for index, name in requires if (record := records.get((index.name, index.type_name))) is not None
    ]
    meter = Meter()
    if not len(reader):
        return Evaluation(np.zeros(0, np.bool_), 0)
    lookups = _lookups(clause, requires, records)
    reader.open(wanted, meter)
    if reader.arrow_bytes(wanted, lookups) > bound:
        return _by_parts(reader, clause, wanted, DriverPartEvaluator() if _encrypted(reader, wanted) else evaluator)
    metadata = _SnapshotMetadata(reader, records, meter, wanted, lookups)
    kept, idle = evaluate_all(clause, metadata)
    return Evaluation(kept, meter.bytes, idle=idle)


def evaluate_all(clause: Clause, metadata: Any) -> tuple[npt.NDArray[np.bool_], frozenset[str]]:
    """Run a clause over all objects; return what is kept, and which terms of a conjunction are false of no object.

    Kleene's AND is False where some term is, whatever the others say, and everything else keeps; so the terms may be
    run one by one.
    """
    kept = np.ones(len(metadata), np.bool_)
    idle = []
    for text, terms in conjuncts(clause).items():
        answers = [might_match(term, metadata) for term in terms]
        for answer in answers:
            kept &= answer
        if all(answer.all() for answer in answers):
            idle.append(text)
    return kept, frozenset(idle) if len(kept) else frozenset()


def read_fields(reader: SnapshotReader, wanted: Sequence[tuple[Index, str]], bound: int) -> Metadata | None:
    """Read fields of indexes for every object of a snapshot; ``None`` when they take more than ``bound`` bytes."""
    records = {(record.name, record.type_name): record for record in reader.manifest.indexes}
    found = [
        (record, name) for index, name in wanted if (record := records.get((index.name, index.type_name))) is not None
    ]
    meter = Meter()
    if not len(reader):
        return None
    reader.open(found, meter)
    return None if reader.arrow_bytes(found, {}) > bound else _SnapshotMetadata(reader, records, meter, found, {})


def _lookups(
    clause: Clause, requires: Sequence[tuple[Index, str]], records: Mapping[tuple[str, str], IndexRecord]
) -> dict[tuple[str, str], Lookup]:
    """Return what a clause looks for in stored fields of which no part of it needs all.

    Indexes that are not equal may have one name, and are then the same to the store.
    """
    asked = lookups_of(clause)
    found: dict[tuple[str, str], list[Lookup]] = {}
    whole: set[tuple[str, str]] = set()
    for index, name in requires if asked else ():
        record = records.get((index.name, index.type_name))
        if record is None:
            continue
        key, lookup = (record.id, name), asked.get((index, name))
        if lookup is None or name not in record.lookups:
            whole.add(key)
        else:
            found.setdefault(key, []).append(lookup)
    return {key: Lookup.of_all(lookups) for key, lookups in found.items() if key not in whole}


def _encrypted(reader: SnapshotReader, wanted: Sequence[tuple[IndexRecord, str]]) -> bool:
    """Whether some of the columns are encrypted: keys do not leave the driver."""
    columns = {field_column(record.id, name) for record, name in wanted}
    sections = (section for part in reader.parts for section in part.record.sections.values())
    return any(part.record.key for part in reader.parts) or any(not columns.isdisjoint(s.columns) for s in sections)


def _by_parts(
    reader: SnapshotReader, clause: Clause, wanted: Sequence[tuple[IndexRecord, str]], evaluator: PartEvaluator
) -> Evaluation:
    """Evaluate where the columns are, a row at a time.

    A row's answer is used for an object if the row is where the object's newest metadata of the first index lies: then
    all of that row describes the object's present state.  Objects whose row lies in a part that lacks another of the
    indexes are kept.
    """
    held = frozenset[str]().union(*(part.record.indexes for part in reader.parts))
    ids = [index_id for index_id in dict.fromkeys(record.id for record, _ in wanted) if index_id in held]
    parts = [part for part in reader.parts if part.record.indexes.keys() >= set(ids)]
    meter = Meter()
    found: dict[str, npt.NDArray[np.bool_]] = {}
    for fields, alike in _by_layout(parts, wanted, cut=evaluator.by_spark):
        columns = [_ROW_COUNT, *(source.column for source in fields.values())]
        meter.bytes += sum(part.stored_bytes(columns) for part in alike)
        found |= dict(zip((part.record.file for part in alike), evaluator(alike, clause, fields), strict=True))
    nothing_known = {part.record.file: np.ones(part.record.rows, np.bool_) for part in reader.parts}
    answers = [found.get(file, keep) for file, keep in nothing_known.items()]
    if [len(answer) for answer in answers] != [part.record.rows for part in reader.parts]:
        msg = "the metadata changed while it was evaluated"
        raise MetadataStoreError(msg)
    if reader.is_plain:
        return Evaluation(answers[0], meter.bytes, by_spark=evaluator.by_spark)
    rows = reader.sources(ids[0], meter)
    kept = np.ones(len(reader), np.bool_)
    kept[rows != NOWHERE] = np.concatenate(answers)[rows[rows != NOWHERE]]
    return Evaluation(kept, meter.bytes, by_spark=evaluator.by_spark)


def _by_layout(
    parts: Sequence[Part], wanted: Sequence[tuple[IndexRecord, str]], *, cut: bool
) -> list[tuple[dict[tuple[str, str], FieldSource], list[Part]]]:
    """Group parts that keep the fields alike; without ``cut``, buckets make no difference."""
    groups: list[tuple[dict[tuple[str, str], FieldSource], list[Part]]] = []
    for part in parts:
        fields = {}
        for record, name in wanted:
            column = field_column(record.id, name)
            buckets = part.buckets(column) if cut else None
            fields[record.name, name] = FieldSource(column, field_type(record, name), buckets)
        alike = next((members for known, members in groups if known == fields), None)
        if alike is None:
            groups.append((fields, [part]))
        else:
            alike.append(part)
    return groups
