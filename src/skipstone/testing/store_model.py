"""Two tiny index types, changes made of them, and the naive model that every metadata store is held against."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.indexing.index import Index
from skipstone.indexing.metadata_type import MetadataType
from skipstone.querying.clause import Clause
from skipstone.querying.lookup import SET, Lookup
from skipstone.stores.metadata_store import Change, ColumnRecord, IndexRecord, ReadProfile, field_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skipstone.indexing.objects import DataObject
    from skipstone.querying.clause import Metadata
    from skipstone.querying.filter import Filter
    from skipstone.stores.metadata_store import MetadataStore, Snapshot

__all__ = [
    "RANGE_FIELDS",
    "ROOT",
    "TAG_FIELDS",
    "HasRows",
    "HasTag",
    "HasValue",
    "Model",
    "Row",
    "StoredRangeIndex",
    "StoredTagsIndex",
    "added",
    "assert_same",
    "commit",
    "digest",
    "record",
    "rows_of",
]

ROOT = "file:/data/logs of 2024%20#1+x"
RANGE_FIELDS = {"low": pa.int64(), "high": pa.int64()}
TAG_FIELDS = {"tags": pa.list_(pa.string())}
_TYPES = RANGE_FIELDS | TAG_FIELDS


class _NoMetadata(MetadataType):
    """Nothing: the tests make the stored fields themselves."""

    @classmethod
    def fields(cls, inputs: Sequence[pa.DataType]) -> Mapping[str, pa.DataType]:  # noqa: ARG003  (the contract's)
        return {}

    def merge(self, other: Self) -> Self:  # noqa: ARG002  (the contract's)
        return self

    def finish(self, data_object: DataObject) -> Mapping[str, Any]:  # noqa: ARG002  (the contract's)
        return {}


@dataclass(frozen=True)
class StoredRangeIndex(Index):
    """The least and greatest value of a column; only the stored form matters here."""

    column: str
    metadata_type = _NoMetadata

    def collect_metadata(self, rows: pa.RecordBatch) -> _NoMetadata:  # noqa: ARG002  (the contract's)
        return _NoMetadata()

    def filters(self) -> tuple[Filter, ...]:
        return ()


@dataclass(frozen=True)
class StoredTagsIndex(StoredRangeIndex):
    """The distinct tags of an object, as a list."""


@dataclass(frozen=True)
class HasValue(Clause):
    """The object's range holds a value."""

    index: StoredRangeIndex
    value: int

    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        low, high = metadata.field(self.index, "low"), metadata.field(self.index, "high")
        return pc.and_kleene(pc.less_equal(low, self.value), pc.greater_equal(high, self.value))

    @property
    def requires(self) -> tuple[tuple[Index, str], ...]:
        return ((self.index, "low"), (self.index, "high"))


@dataclass(frozen=True)
class HasTag(Clause):
    """The object's tags hold a text; written the slow way on purpose."""

    index: StoredTagsIndex
    tag: str

    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        lists = metadata.field(self.index, "tags").to_pylist()
        return pa.array([None if tags is None else self.tag in tags for tags in lists], pa.bool_())

    @property
    def requires(self) -> tuple[tuple[Index, str], ...]:
        return ((self.index, "tags"),)

    @property
    def lookups(self) -> Mapping[tuple[Index, str], Lookup]:
        return {(self.index, "tags"): Lookup(values=(self.tag,))}


@dataclass(frozen=True)
class HasRows(Clause):
    """The object has rows at all: reads nothing but row counts."""

    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        return pc.greater(metadata.row_count, 0)

    @property
    def requires(self) -> tuple[tuple[Index, str], ...]:
        return ()


def record(index: Index, index_id: str, fields: Mapping[str, pa.DataType] | None = None) -> IndexRecord:
    """Make the record of an index as a commit takes it."""
    fields = fields or (TAG_FIELDS if isinstance(index, StoredTagsIndex) else RANGE_FIELDS)
    return IndexRecord(
        id=index_id,
        name=index.name,
        type_name=index.type_name,
        options=index.options(),
        columns=tuple(ColumnRecord(c, "bigint") for c in index.columns),
        profile=ReadProfile("parquet", {"mergeSchema": "true"}, {"zone": "UTC"}, "abc"),
        fields={name: str(kind) for name, kind in fields.items()},
        created="2024-01-01T00:00:00Z",
        lookups={"tags": SET} if isinstance(index, StoredTagsIndex) else {},
    )


@dataclass
class Row:
    """One object as an index job would hand it over."""

    path: str
    length: int = 1
    modified: int = 1
    etag: str = ""
    row_count: int | None = 10
    trusted: bool = True
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def state(self) -> tuple[int, int, str]:
        """What tells two states of the object apart."""
        return (self.length, self.modified, self.etag)


def digest(path: str) -> bytes:
    """Return an object's digest: the MD5 of its path."""
    return hashlib.md5(path.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()


def added(rows: Sequence[Row], records: Sequence[IndexRecord]) -> pa.Table | None:
    """Make the table of ``Change.added``; ``records`` are the indexes that were collected."""
    if not rows:
        return None
    columns = {
        "path": pa.array([r.path for r in rows], pa.string()),
        "digest": pa.array([digest(r.path) for r in rows], pa.binary(16)),
        "length": pa.array([r.length for r in rows], pa.int64()),
        "modified": pa.array([r.modified for r in rows], pa.int64()),
        "etag": pa.array([r.etag for r in rows], pa.string()),
        "row_count": pa.array([r.row_count for r in rows], pa.int64()),
        "trusted": pa.array([r.trusted for r in rows], pa.bool_()),
    }
    for r in records:
        for name in r.fields:
            values = [row.fields.get(r.id, {}).get(name) for row in rows]
            columns[field_column(r.id, name)] = pa.array(values, _TYPES[name])
    return pa.table(columns)


def rows_of(count: int, index_id: str = "a", start: int = 0, **options: Any) -> list[Row]:
    """Make objects number ``start`` onwards, each with its own range of ten values."""
    return [
        Row(f"{ROOT}/p={n}/ä%20 {n}.csv", fields={index_id: {"low": 10 * n, "high": 10 * n + 9}}, **options)
        for n in range(start, start + count)
    ]


class Model:
    """What a store must know, the naive way: one dictionary, one object at a time."""

    def __init__(self) -> None:
        self.indexes: tuple[IndexRecord, ...] = ()
        self.objects: dict[str, Row] = {}

    def apply(
        self,
        indexes: Sequence[IndexRecord],
        rows: Sequence[Row],
        collected: Sequence[IndexRecord],
        removed: Sequence[str],
    ) -> None:
        """Do what a commit of these does."""
        for path in removed:
            if path not in {row.path for row in rows}:
                self.objects.pop(path, None)
        for row in rows:
            fields = {r.id: row.fields.get(r.id, {}) for r in collected}
            known = self.objects.get(row.path)
            if not row.trusted:
                self.objects[row.path] = replace(row, fields={}, row_count=None)
            elif known is not None and known.state == row.state:
                count = known.row_count if row.row_count is None else row.row_count
                self.objects[row.path] = replace(row, fields={**known.fields, **fields}, row_count=count)
            else:
                self.objects[row.path] = replace(row, fields=fields)
        self.indexes = tuple(indexes)
        live = {r.id for r in indexes}
        for row in self.objects.values():
            row.fields = {i: f for i, f in row.fields.items() if i in live}

    def metadata(self, paths: Sequence[str]) -> Metadata:
        """Return the metadata of some objects, as clauses see it."""
        return _ModelMetadata(self, paths)


class _ModelMetadata:
    """The metadata of a model's objects."""

    def __init__(self, model: Model, paths: Sequence[str]) -> None:
        self._model = model
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths)

    def field(self, index: Index, name: str) -> pa.Array:
        index_id = next((r.id for r in self._model.indexes if r.name == index.name), "")
        values = [self._model.objects[path].fields.get(index_id, {}).get(name) for path in self._paths]
        return pa.array(values, _TYPES[name])

    @property
    def row_count(self) -> pa.Array:
        return pa.array([self._model.objects[path].row_count for path in self._paths], pa.int64())


def commit(
    store: MetadataStore,
    base: Snapshot | None,
    model: Model | None,
    indexes: Sequence[IndexRecord],
    rows: Sequence[Row] = (),
    collected: Sequence[IndexRecord] | None = None,
    removed: Sequence[str] = (),
    *,
    root: str = ROOT,
) -> Snapshot:
    """Commit the same change to a store and to a model."""
    collected = indexes if collected is None else collected
    snapshot = store.commit(root, base, Change(tuple(indexes), added(rows, collected), tuple(removed)))
    if model is not None:
        model.apply(indexes, rows, collected, removed)
    return snapshot


def assert_same(store: MetadataStore, snapshot: Snapshot, model: Model, clauses: Iterable[Clause]) -> int:
    """Compare all that a store says with the model; return the number of objects that clauses skipped.

    Raises
    ------
    AssertionError
        When anything differs: objects, their states, coverage, the answers to clauses, fields, sizes.
    """
    table = store.objects(snapshot)
    paths = table.column("path").to_pylist()
    _equal("the number of objects", snapshot.object_count, len(paths))
    _equal("the paths", sorted(paths), sorted(model.objects))
    expected = [model.objects[path] for path in paths]
    _equal("the digests", table.column("digest").to_pylist(), [digest(path) for path in paths])
    for name in ("length", "modified", "etag", "row_count", "trusted"):
        _equal(f"the column {name}", table.column(name).to_pylist(), [getattr(row, name) for row in expected])
    _equal("the indexes", [r.id for r in snapshot.indexes], [r.id for r in model.indexes])
    for r in snapshot.indexes:
        covered = store.coverage(snapshot, r)
        _equal(f"the coverage of {r.name}", covered.tolist(), [r.id in row.fields for row in expected])
    skipped = 0
    for clause in clauses:
        kept = store.evaluate(snapshot, clause).kept
        _equal("the type of an answer", kept.dtype, np.dtype(np.bool_))
        truth = clause.might_match(model.metadata(paths)).fill_null(True).to_pylist()
        _equal(f"what {clause} keeps", kept.tolist(), truth)
        fields = store.fields(snapshot, clause.requires)
        if fields is not None:
            answer = clause.might_match(fields)
            _equal(
                f"the answer of {clause} from fields",
                answer.to_pylist(),
                clause.might_match(model.metadata(paths)).to_pylist(),
            )
            _equal("the rows in fields", fields.row_count.to_pylist(), [row.row_count for row in expected])
        skipped += truth.count(False)
    sizes = store.size(snapshot)
    _equal("the indexes with a size", set(sizes), {r.id for r in snapshot.indexes} | {""})
    _equal("sizes below zero", [size for size in sizes.values() if size < 0], [])
    return skipped


def _equal(what: str, found: object, expected: object) -> None:
    if found != expected:
        msg = f"{what}: the store has {found}, where {expected} was committed"
        raise AssertionError(msg)
