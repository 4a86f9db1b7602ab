"""Two tiny index types, changes made of them, and the naive model that every store is held against."""

from __future__ import annotations

import hashlib
import operator
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.indexing.index import Index
from skipstone.indexing.metadata_type import MetadataType
from skipstone.querying.clause import Clause
from skipstone.stores.metadata_store import Change, ColumnRecord, IndexRecord, ReadProfile, field_column

ROOT = "file:/data/logs of 2024%20#1+x"


class NoMetadata(MetadataType):
    @classmethod
    def fields(cls, inputs):
        return {}

    def merge(self, other):
        return self

    def finish(self, data_object):
        return {}


@dataclass(frozen=True)
class StoredRangeIndex(Index):
    """The least and greatest value of a column; only the stored form matters here."""

    column: str
    metadata_type = NoMetadata

    def collect_metadata(self, rows):
        return NoMetadata()

    def filters(self):
        return ()


@dataclass(frozen=True)
class StoredTagsIndex(StoredRangeIndex):
    """The distinct tags of an object, as a list."""


@dataclass(frozen=True)
class HasValue(Clause):
    """The object's range holds a value."""

    index: StoredRangeIndex
    value: int

    def might_match(self, metadata):
        low, high = metadata.field(self.index, "low"), metadata.field(self.index, "high")
        return pc.and_kleene(pc.less_equal(low, self.value), pc.greater_equal(high, self.value))

    @property
    def requires(self):
        return ((self.index, "low"), (self.index, "high"))


@dataclass(frozen=True)
class HasTag(Clause):
    """The object's tags hold a text; written the slow way on purpose."""

    index: StoredTagsIndex
    tag: str

    def might_match(self, metadata):
        lists = metadata.field(self.index, "tags").to_pylist()
        return pa.array([None if tags is None else self.tag in tags for tags in lists], pa.bool_())

    @property
    def requires(self):
        return ((self.index, "tags"),)


@dataclass(frozen=True)
class HasRows(Clause):
    """The object has rows at all: reads nothing but row counts."""

    def might_match(self, metadata):
        return pc.greater(metadata.row_count, 0)

    @property
    def requires(self):
        return ()


RANGE_FIELDS = {"low": pa.int64(), "high": pa.int64()}
TAG_FIELDS = {"tags": pa.list_(pa.string())}


def record(index: Index, index_id: str, fields: dict[str, pa.DataType] | None = None) -> IndexRecord:
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
    fields: dict[str, dict] = field(default_factory=dict)

    @property
    def state(self):
        return (self.length, self.modified, self.etag)


def digest(path: str) -> bytes:
    return hashlib.md5(path.encode("utf-8", "surrogatepass")).digest()


def added(rows: list[Row], records: list[IndexRecord]) -> pa.Table | None:
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
    types = RANGE_FIELDS | TAG_FIELDS
    for r in records:
        for name in r.fields:
            values = [row.fields.get(r.id, {}).get(name) for row in rows]
            columns[field_column(r.id, name)] = pa.array(values, types[name])
    return pa.table(columns)


class Model:
    """What a store must know, the naive way: one dictionary, one object at a time."""

    def __init__(self):
        self.indexes: tuple[IndexRecord, ...] = ()
        self.objects: dict[str, Row] = {}

    def apply(self, indexes: tuple[IndexRecord, ...], rows: list[Row], collected: list[IndexRecord], removed: tuple):
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
        self.indexes = indexes
        live = {r.id for r in indexes}
        for row in self.objects.values():
            row.fields = {i: f for i, f in row.fields.items() if i in live}

    def metadata(self, paths: list[str]):
        return _ModelMetadata(self, paths)


class _ModelMetadata:
    def __init__(self, model, paths):
        self.model, self.paths = model, paths

    def __len__(self):
        return len(self.paths)

    def field(self, index, name):
        types = RANGE_FIELDS | TAG_FIELDS
        index_id = next((r.id for r in self.model.indexes if r.name == index.name), None)
        values = [self.model.objects[path].fields.get(index_id, {}).get(name) for path in self.paths]
        return pa.array(values, types[name])

    @property
    def row_count(self):
        return pa.array([self.model.objects[path].row_count for path in self.paths], pa.int64())


def commit(store, base, model: Model | None, indexes, rows=(), collected=None, removed=(), root=ROOT):
    """Commit the same change to a store and to a model."""
    collected = list(indexes) if collected is None else collected
    change = Change(tuple(indexes), added(list(rows), collected), tuple(removed))
    snapshot = store.commit(root, base, change)
    if model is not None:
        model.apply(tuple(indexes), list(rows), collected, tuple(removed))
    return snapshot


def assert_same(store, snapshot, model: Model, clauses) -> int:
    """Compare all that a store says with the model; gives the number of objects that clauses skipped."""
    table = store.objects(snapshot)
    paths = table.column("path").to_pylist()
    assert snapshot.object_count == len(paths) == len(set(paths))
    assert set(paths) == set(model.objects)
    expected = [model.objects[path] for path in paths]
    assert table.column("digest").to_pylist() == [digest(path) for path in paths]
    for name in ("length", "modified", "etag", "row_count", "trusted"):
        assert table.column(name).to_pylist() == [getattr(row, name) for row in expected], name
    assert [r.id for r in snapshot.indexes] == [r.id for r in model.indexes]
    for r in snapshot.indexes:
        covered = store.coverage(snapshot, r)
        assert covered.tolist() == [r.id in row.fields for row in expected]
    skipped = 0
    for clause in clauses:
        kept = store.evaluate(snapshot, clause).kept
        assert kept.dtype == np.bool_
        truth = clause.might_match(model.metadata(paths)).fill_null(True).to_pylist()
        assert kept.tolist() == truth, clause
        skipped += truth.count(False)
    sizes = store.size(snapshot)
    assert set(sizes) == {r.id for r in snapshot.indexes} | {""}
    assert all(size >= 0 for size in sizes.values())
    return skipped


def rows_of(count: int, index_id: str = "a", start: int = 0, **options) -> list[Row]:
    """Make objects number ``start`` onwards, each with its own range of ten values."""
    return [
        Row(f"{ROOT}/p={n}/ä%20 {n}.csv", fields={index_id: {"low": 10 * n, "high": 10 * n + 9}}, **options)
        for n in range(start, start + count)
    ]


def union(bits) -> np.ndarray:
    return reduce(operator.or_, bits)
