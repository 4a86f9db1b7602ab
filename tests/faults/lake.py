"""A small dataset on a local disk that is indexed, refreshed and queried by Skipstone's own code, without Spark.

Real are the data files, the indexes, the listing before and after an index job, create, refresh, repair and drop,
the planner, the store, and what prunes a listing by their answer.  Stands in for Spark: pyarrow reads the rows.  So
thousands of faults fit into a minute.
"""

from __future__ import annotations

import json
import os
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skipstone import MinMaxIndex, ValueListIndex
from skipstone.engines.spark.columns import bind_indexes
from skipstone.engines.spark.description import ScanDescription
from skipstone.engines.spark.functions import FunctionIdentities
from skipstone.errors import IndexNotFoundError
from skipstone.expressions.tree import (
    And,
    Column,
    EqualTo,
    Expression,
    GreaterThan,
    In,
    IsNull,
    LessThanOrEqual,
    Literal,
    NotEqualTo,
    Or,
)
from skipstone.indexing.collect import CollectPlan, IndexPlan
from skipstone.indexing.create import create_indexes
from skipstone.indexing.describe import describe_rows
from skipstone.indexing.drop import drop_indexes
from skipstone.indexing.failures import ReadFailedError
from skipstone.indexing.objects import DataObject
from skipstone.indexing.refresh import refresh
from skipstone.indexing.target import Target
from skipstone.querying.plan import plan_scan
from skipstone.querying.prune import prune
from skipstone.stores.absences import ABSENCES
from skipstone.stores.packed import PACKED_COLUMNS
from skipstone.stores.parquet.filesystem import LocalFileSystem
from skipstone.stores.parquet.store import ParquetStore
from skipstone.testing.truth import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from skipstone.indexing.relation import Relation
    from skipstone.indexing.report import IndexingReport
    from skipstone.indexing.source import BoundIndex
    from skipstone.querying.plan import Plan
    from skipstone.stores.metadata_store import MetadataStore
    from skipstone.stores.parquet.filesystem import FileSystem

ID, NAME, PRICE = Column("id", "bigint"), Column("name", "string"), Column("price", "double")
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64())])
INDEXES = (MinMaxIndex("id"), ValueListIndex("name"), MinMaxIndex("price"))
ROWS = 4
"""Rows of an object: number n holds the ids from 10n, and a name of its own."""


def _is(column: Column, value: Any) -> Expression:
    return EqualTo(column, Literal(value, column.type))


QUERIES: tuple[Expression, ...] = (
    _is(ID, 11),
    _is(ID, 1_000_001),
    _is(NAME, "name-2"),
    _is(NAME, "changed"),
    In(NAME, (Literal("name-0", "string"), Literal("name-3", "string"))),
    And((GreaterThan(ID, Literal(20, "bigint")), LessThanOrEqual(PRICE, Literal(21.5, "double")))),
    Or((_is(ID, 30), _is(NAME, "name-1"))),
    NotEqualTo(NAME, Literal("name-1", "string")),
    IsNull(PRICE),
)
FEW_QUERIES = (QUERIES[0], QUERIES[2], QUERIES[5])


@dataclass
class Answers:
    """What queries gave: counts of them, of the objects that they skipped, and what was said."""

    queries: int = 0
    wrong: int = 0
    failed: int = 0
    skipped: int = 0
    said: list[str] = field(default_factory=list)


def described(folder: Path) -> ScanDescription:
    """Describe a plain scan of a folder of Parquet files, as the bridge does."""
    fields = [
        {"name": f.name, "type": {"int64": "long"}.get(str(f.type), str(f.type)), "nullable": True, "metadata": {}}
        for f in SCHEMA
    ]
    said = {
        "roots": [f"file:{folder}"],
        "format": "parquet",
        "options": {},
        "conf": {"caseSensitive": "false"},
        "schema_digest": "",
        "columns": [],
        "data_schema": json.dumps({"type": "struct", "fields": fields}),
        "partition_schema": json.dumps({"type": "struct", "fields": []}),
    }
    return ScanDescription.of(said)


class Source:
    """The objects of a folder without Spark: what index jobs read in these tests."""

    preparation: Any = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.relation = described(folder).relation

    def relation_now(self) -> Relation:
        return self.relation

    def refuse_visible_folder(self, folder: str | None) -> None:
        """Nothing but Parquet files is listed."""

    def refuse_unsteady_rows(self) -> None:
        """Every row is read."""

    def bind(self, indexes: Iterable[Any]) -> list[BoundIndex]:
        return bind_indexes(described(self.folder), indexes)

    def list_objects(self, paths: Iterable[str] | None = None) -> list[DataObject]:
        return [o for o in listing(self.folder).values() if paths is None or o.path in set(paths)]

    def changed(self, objects: Sequence[DataObject]) -> None:
        """Only a listing tells."""

    def functions(self, bound: BoundIndex, when: str) -> dict[str, str]:
        return {}

    def progress(self, objects: Sequence[DataObject], *, wanted: bool | None) -> AbstractContextManager[None]:
        return nullcontext()

    def collect(self, objects: Sequence[DataObject], bound: Sequence[BoundIndex]) -> pa.Table:
        """Collect metadata with the indexes' own code, rows read by pyarrow."""
        columns = [tuple(SCHEMA.get_field_index(name) for name in b.index.columns) for b in bound]
        plans = [
            IndexPlan(b.index, places, b.index.metadata_type.fields(tuple(SCHEMA.types[i] for i in places)))
            for b, places in zip(bound, columns, strict=True)
        ]
        finished = CollectPlan(tuple(plans), tuple(SCHEMA.types), 1 << 62).finished_objects()
        for number, data_object in enumerate(objects):
            rows = read_rows(data_object.path)
            stored = []
            for plan in plans:
                batch = rows.select([SCHEMA.names[i] for i in plan.inputs])
                stored.append(plan.index.collect_metadata(batch).finish(data_object))
            finished.add(number, rows.num_rows, stored)
        return finished.take_table()


def read_rows(path: str) -> pa.RecordBatch:
    """Read an object's rows."""
    try:
        table = pq.ParquetFile(path.removeprefix("file:")).read()
    except (OSError, pa.ArrowException) as error:
        msg = f"{path} cannot be read: {error}"
        raise ReadFailedError(msg) from error
    return table.combine_chunks().to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], SCHEMA)


def _rows_as_they_are(path: str) -> list[dict[str, Any]]:
    """Read an object's rows, once for each file that was ever put there."""
    status = Path(path.removeprefix("file:")).stat()
    return _read_once(path, status.st_ino, status.st_ctime_ns, status.st_size)


@lru_cache(maxsize=10_000)
def _read_once(path: str, *_: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_rows(path).to_pylist()
    return rows


def listing(folder: Path) -> dict[str, DataObject]:
    """List a folder's objects by path."""
    found: dict[str, DataObject] = {}
    for path in sorted(folder.glob("*.parquet")):
        with suppress(FileNotFoundError):
            status = path.stat()
            found[f"file:{path}"] = DataObject(f"file:{path}", status.st_size, status.st_mtime_ns // 1_000_000)
    return found


def write_object(path: Path, number: int, name: str | None = None, *, modified: float | None = 1_700_000_000) -> None:
    """Write (or replace, at once) an object; its name and number decide its rows."""
    rows = {
        "id": [10 * number + n for n in range(ROWS)],
        "name": [name or f"name-{number}"] * ROWS,
        "price": [None if number == 4 else 10.0 * number + n / 2 for n in range(ROWS)],
    }
    fresh = path.with_name(f".{path.name}.{os.getpid()}.fresh")
    pq.write_table(pa.table(rows, schema=SCHEMA), fresh, compression="none")
    if modified is not None:
        os.utime(fresh, (modified + number, modified + number + 0.5))
    fresh.rename(path)


class Lake:
    """A dataset of a few objects with metadata beside it.

    Parameters
    ----------
    folder
        Where to make it.
    file_systems
        What the store sees of the disk: where faults are put.
    objects
        How many objects to write; none for a lake that is there already.
    """

    def __init__(
        self,
        folder: Path,
        file_systems: Callable[[str], FileSystem] = lambda path: LocalFileSystem(),
        *,
        objects: int = 6,
        max_parts: int = 8,
    ) -> None:
        self.folder = folder
        self.file_systems, self._max_parts = file_systems, max_parts
        self.store: MetadataStore = self.open()
        if objects:
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(objects):
                write_object(self.path(number), number)

    @property
    def root(self) -> str:
        return f"file:{self.folder}"

    @property
    def metadata(self) -> Path:
        return self.folder / "_skipstone"

    def path(self, number: int) -> Path:
        return self.folder / f"object-{number}.parquet"

    def open(self, file_systems: Callable[[str], FileSystem] | None = None) -> ParquetStore:
        """Return a store that remembers nothing."""
        ABSENCES.forget(f"{self.root}/_skipstone")
        return ParquetStore(file_systems or self.file_systems, max_parts=self._max_parts, absent_seconds=0)

    def reopened(self) -> Lake:
        """Return the same lake as another process on a sound disk sees it."""
        return Lake(self.folder, objects=0, max_parts=self._max_parts)

    @property
    def target(self) -> Target:
        return Target(Source(self.folder), self.root, self.store)

    def create(self, *indexes: Any) -> IndexingReport:
        return create_indexes(self.target, indexes or INDEXES)

    def refresh(self) -> IndexingReport:
        return refresh(self.target)

    def drop(self, *names: str) -> None:
        drop_indexes(self.target, names)

    def describe(self) -> list[tuple[Any, ...]]:
        return describe_rows(self.target)

    def metadata_files(self) -> dict[str, Path]:
        """Return everything under the metadata folder that is no folder."""
        return {str(p.relative_to(self.metadata)): p for p in sorted(self.metadata.rglob("*")) if not p.is_dir()}

    def age(self, seconds: int = 7200) -> None:
        """Make every metadata file older, as if nobody had come by for that long."""
        for path in self.metadata_files().values():
            status = path.lstat()
            os.utime(path, (status.st_atime - seconds, status.st_mtime - seconds), follow_symlinks=False)

    def plan(self, query: Expression, store: MetadataStore | None = None) -> Plan:
        relation = self.target.source.relation
        return plan_scan(relation, query, store or self.store, FunctionIdentities({}, lambda _: None))

    def skipped(self, query: Expression, listed: Mapping[str, DataObject], said: list[str]) -> set[str]:
        """Plan a query, and name the objects of a listing that it skips."""
        plan = self.plan(query)
        said.extend(plan.not_used)
        try:
            pruned = prune(plan, listed.values(), lambda snapshot: self.store.objects(snapshot, PACKED_COLUMNS))
        except Exception as error:  # noqa: BLE001  the bridge reads everything then
            said.append(str(error))
            return set()
        return {o.path for o in pruned.skipped}

    def ask(self, queries: Sequence[Expression] = QUERIES) -> Answers:
        """Ask queries, each with and without skipping, and count."""
        answers = Answers()
        listed = listing(self.folder)
        rows = {path: _rows_as_they_are(path) for path in listed}
        for query in queries:
            answers.queries += 1
            try:
                skipped = self.skipped(query, listed, answers.said)
            except Exception as error:  # noqa: BLE001  counted: it would have to be caught further out
                answers.failed += 1
                answers.said.append(f"{type(error).__name__}: {error}")
                continue
            lost = [row for path in skipped for row in rows[path] if evaluate(query, row) is True]
            answers.wrong += bool(lost)
            answers.skipped += len(skipped)
        return answers


def make_indexed(folder: Path, *, versions: int = 3, max_parts: int = 8) -> Lake:
    """Make a lake whose metadata has a history: created, then refreshed after a change of each kind."""
    lake = Lake(folder, max_parts=max_parts)
    lake.create()
    for number in range(versions - 1):
        write_object(lake.path(5 - number), 5 - number, modified=1_700_001_000 + number)
        lake.refresh()
    return lake


def settle(lake: Lake) -> IndexingReport:
    """Bring the metadata up to date whatever a fault left, as a user would: refresh, or create where there is none."""
    try:
        return lake.refresh()
    except IndexNotFoundError:
        return lake.create()


def needed_files(lake: Lake) -> set[str]:
    """Name the files that the newest version consists of, and the manifests that are kept for readers of older ones."""
    store = lake.open()
    snapshot = store.latest(lake.root)
    if snapshot is None:
        return set()
    manifest = store._manifest(snapshot)
    versions = [
        f"{kind}/_{manifest.version - back:020d}.json" for kind in ("_manifests", "_definitions") for back in range(10)
    ]
    return {f"_parts/{part.file}" for part in (*manifest.parts, *manifest.retired)} | set(versions)


def fraction_true(bits: np.ndarray) -> float:
    """Return the share of objects that are kept."""
    return float(bits.mean()) if len(bits) else 1.0
