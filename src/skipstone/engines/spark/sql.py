"""Statements on indexes as the bridge hands them over: CREATE, DROP, SHOW and REFRESH INDEX, EXPLAIN SKIPPING.

A statement comes as JSON, with the session of whoever asked, and is carried out by the jobs that ``Dataset`` uses.  The
answer is JSON too: rows, or an error with a condition and an SQL state, as Spark's own errors have them.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skipstone import registry
from skipstone.engines.spark.client import Client, said_by
from skipstone.engines.spark.scan_stats import ScanStats
from skipstone.engines.spark.scan_text import scans_text
from skipstone.engines.spark.source import SparkSource
from skipstone.engines.spark.sql_indexes import UnknownIndexTypeError, indexes_of
from skipstone.errors import (
    ColumnNotFoundError,
    CommitConflictError,
    DatasetError,
    IndexExistsError,
    IndexingError,
    IndexNotFoundError,
    MetadataStoreError,
    PluginError,
    SettingError,
    SkipstoneError,
    UnsupportedTypeError,
)
from skipstone.indexing.create import create_indexes
from skipstone.indexing.describe import describe_rows
from skipstone.indexing.drop import drop_indexes
from skipstone.indexing.refresh import refresh
from skipstone.indexing.target import Target
from skipstone.settings import get_setting, own_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from skipstone.indexing.index import Index
    from skipstone.indexing.records import IndexRecord
    from skipstone.indexing.relation import Relation
    from skipstone.indexing.report import IndexingReport
    from skipstone.querying.plan import Plan
    from skipstone.stores.metadata_store import MetadataStore

__all__ = ["Answerer", "answer"]

_EVERY_INDEX = "*"
_NO_SCAN = (
    "This query has no file scan that Skipstone can see: it reads no files, its result is cached, its source is a "
    "DataSource V2 reader or has a listing of its own, or spark.skipstone.enabled is not true."
)


class StatementCancelledError(IndexingError):
    """The statement was cancelled before anything was committed."""


# What an error is called in SQL: Spark's own conditions where it has them.  Subclasses before their bases.
_CONDITIONS: tuple[tuple[type[SkipstoneError], str, str], ...] = (
    (StatementCancelledError, "OPERATION_CANCELED", "HY008"),
    (IndexExistsError, "INDEX_ALREADY_EXISTS", "42710"),
    (IndexNotFoundError, "INDEX_NOT_FOUND", "42704"),
    (ColumnNotFoundError, "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "42703"),
    (UnknownIndexTypeError, "SKIPSTONE_UNKNOWN_INDEX_TYPE", "42704"),
    (UnsupportedTypeError, "SKIPSTONE_UNSUPPORTED_TYPE", "42K09"),
    (DatasetError, "SKIPSTONE_NOT_A_DATASET", "42809"),
    (SettingError, "SKIPSTONE_INVALID_OPTION", "22023"),
    (PluginError, "SKIPSTONE_PLUGIN", "58000"),
    (CommitConflictError, "SKIPSTONE_CONFLICT", "40001"),
    (MetadataStoreError, "SKIPSTONE_METADATA_STORE", "58030"),
    (IndexingError, "SKIPSTONE_INDEXING_FAILED", "58000"),
    (SkipstoneError, "SKIPSTONE_ERROR", "58000"),
)
_UNFORESEEN = ("SKIPSTONE_INTERNAL_ERROR", "XX000")


@dataclass(frozen=True)
class Answerer:
    """What the planner brings to a statement.

    ``store_for`` gives the store that settings choose, ``explained`` the plan of a scan that was just planned.
    """

    store_for: Callable[[Mapping[str, str]], MetadataStore]
    explained: Callable[[int], Plan | None]


def answer(answerer: Answerer, spark: SparkSession, text: str) -> bytes:
    """Carry a statement out by a session; whatever goes wrong is part of the answer."""
    try:
        rows = _rows(answerer, spark, json.loads(text))
        return json.dumps({"rows": rows}).encode()
    except Exception as error:  # noqa: BLE001  (the bridge raises it in the statement, as one of Spark's own kind)
        return json.dumps({"error": _told(error)}).encode()


def _rows(answerer: Answerer, spark: SparkSession, request: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
    """Return what a statement answers."""
    if request["verb"] == "explain":
        scans = [ScanStats.of(entry) for entry in request["scans"]]
        told = scans_text(scans, answerer.explained) if scans else _NO_SCAN
        return [(line,) for line in told.splitlines()]
    # Not the session's own setting: a client of a server must not choose what the server imports.
    registry.load_plugins(_names(spark.sparkContext.getConf().get("spark.skipstone.plugins", "") or ""))
    statement = request["statement"]
    wanted = indexes_of(statement) if request["verb"] == "create" else []
    target = _target(answerer, spark, request)
    match request["verb"]:
        case "create":
            return _create(target, statement, wanted)
        case "drop":
            return _drop(target, statement)
        case "refresh":
            paths = request.get("paths")
            return [_row(refresh(target, None if paths is None else tuple(paths)))]
        case "show":
            return describe_rows(target)
    msg = f"{request['verb']} is not a statement that this version of Skipstone knows; is the bridge another version's?"
    raise SkipstoneError(msg)


class StatementSource(SparkSource):
    """A source whose job ends, before it commits, when the statement has been cancelled meanwhile.

    A job that runs at that moment is cancelled by Spark itself; between two jobs only the thread is interrupted.
    """

    def relation_now(self) -> Relation:
        """Return how the dataset is read at this moment: what every job asks once it has collected."""
        if self.scan.client.interrupted():
            msg = "the statement was cancelled; nothing was committed"
            raise StatementCancelledError(msg)
        return super().relation_now()


def _target(answerer: Answerer, spark: SparkSession, request: Mapping[str, Any]) -> Target:
    """Return what the statement is on, read by the session of whoever asked."""
    for name in ("location", "store", "cacheBytes"):
        get_setting(spark, name)  # raises for one that makes no sense
    scan = Client(spark).scan(_frame(spark, request))
    source = StatementSource(scan)
    return Target(source, source.relation.root, answerer.store_for(own_settings(spark)))


def _frame(spark: SparkSession, request: Mapping[str, Any]) -> DataFrame:
    """Read the table or the folder."""
    table = request.get("table")
    try:
        return spark.table(table) if table else spark.read.format(request["format"]).load(request["path"])
    except Exception as error:
        what = f"the table {table}" if table else f"{request['path']} as {request['format']}"
        msg = f"{what} cannot be read: {said_by(error)}"
        raise DatasetError(msg) from error


def _create(target: Target, statement: Mapping[str, Any], indexes: Sequence[Index]) -> list[tuple[Any, ...]]:
    """Create the indexes in one job; they are named after the statement."""
    name, lenient = statement["name"], statement["if_not_exists"]
    taken = _called(target, name)
    if taken:
        if lenient:
            return []
        msg = f"there is already an index {name} on {target.root}: {', '.join(taken)}; drop it first"
        raise IndexExistsError(msg)
    try:
        return [_row(create_indexes(target, _named(target, statement, indexes)))]
    except IndexExistsError:
        if lenient and _called(target, name):  # another statement was faster
            return []
        raise


def _named(target: Target, statement: Mapping[str, Any], indexes: Sequence[Index]) -> list[Index]:
    """Name the indexes of a statement: a single one the name itself, of several each ``name.type(column)``."""
    name = statement["name"]
    chosen = {v for column in statement["columns"] for k, v in column["options"].items() if k.lower() == "name"}
    bound = [b.index for b in target.source.bind(indexes)]
    if len(bound) == 1 and not chosen:
        return [dataclasses.replace(bound[0], name=name)]
    return [b if b.name in chosen else dataclasses.replace(b, name=f"{name}.{b.name}") for b in bound]


def _drop(target: Target, statement: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Drop what was created under a name, the index that has it, or everything."""
    name = statement["name"]
    names = () if name == _EVERY_INDEX else _called(target, name) or (name,)
    try:
        drop_indexes(target, names)
    except IndexNotFoundError:
        if not statement["if_exists"]:
            raise
    return []


def _called(target: Target, name: str) -> tuple[str, ...]:
    """Return the indexes that a name means: the one so called, and those that one statement made under it."""
    target.store.check_newest(target.root)
    snapshot = target.store.latest(target.root)
    present: tuple[IndexRecord, ...] = tuple(snapshot.indexes) if snapshot is not None else ()
    exact = tuple(r.name for r in present if r.name == name or r.name.startswith(f"{name}."))
    folded = name.lower()
    return exact or tuple(
        r.name for r in present if r.name.lower() == folded or r.name.lower().startswith(f"{folded}.")
    )


def _row(report: IndexingReport) -> tuple[Any, ...]:
    """Return a report as a row, its fields in their order; the statement's columns have no phases."""
    return tuple(getattr(report, field.name) for field in dataclasses.fields(report) if field.name != "phases")


def _names(setting: str) -> list[str]:
    return [name.strip() for name in setting.split(",") if name.strip()]


def _told(error: Exception) -> dict[str, str]:
    """Return an error as SQL tells it."""
    if _cancelled(error):
        error = StatementCancelledError("the statement was cancelled; nothing was committed")
    for kind, condition, state in _CONDITIONS:
        if isinstance(error, kind):
            return {"condition": condition, "state": state, "message": _sentence(str(error))}
    condition, state = _UNFORESEEN
    return {"condition": condition, "state": state, "message": _sentence(f"{type(error).__name__}: {said_by(error)}")}


def _cancelled(error: BaseException | None) -> bool:
    """Whether a job was cancelled beneath an error."""
    while error is not None:
        if any(word in str(error) for word in ("SPARK_JOB_CANCELLED", "java.lang.InterruptedException")):
            return True
        error = error.__cause__ or error.__context__
    return False


def _sentence(text: str) -> str:
    """Return a message as a sentence."""
    text = text.strip()
    if text.partition(" ")[0].isalpha():  # not a path
        text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else f"{text}."
