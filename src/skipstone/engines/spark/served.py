"""A dataset of a client whose Spark Connect server is another process: its verbs are statements that the server runs.

The statements are those of ``engines/spark/sql.py``; ``skipstone_entries`` (``bridge/SessionEntries.scala``) tells a
client what happened to its own queries.
"""

from __future__ import annotations

import dataclasses
import json
import uuid
from typing import TYPE_CHECKING, Any, Final

from skipstone.engines.spark.connect import SERVER_NEEDS, find_twin, is_connect
from skipstone.errors import DatasetError, UnsupportedSparkError
from skipstone.expressions.names import parse_column, quote_parts
from skipstone.indexing.report import IndexingReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from skipstone.indexing.index import Index

__all__ = ["ServedTable", "ServerEntries", "is_served", "not_from_a_client", "served_table"]

_ENTRIES: Final = "skipstone_entries"
_LAST_QUERY: Final = -1
_NOTHING: Final = (1 << 63) - 1
_EVERY_COLUMN: Final = "*"
_FOUND_OUT: Final = frozenset({"conditions", "type"})
"""Fields that an index fills in itself when it is made."""


def is_served(spark: SparkSession) -> bool:
    """Whether a session is the client of a server in another process."""
    return is_connect(spark) and find_twin(spark) is None


def not_from_a_client(what: str, instead: str) -> UnsupportedSparkError:
    """Return the error for what needs the server's own process."""
    return UnsupportedSparkError(f"{what} is not possible from a client of a remote Spark Connect server: {instead}")


def served_table(df: DataFrame) -> ServedTable | None:
    """Return the table or folder that a remote client's DataFrame reads; ``None`` when its server is in this process.

    Raises
    ------
    DatasetError
        When the DataFrame is not what a reader or a table gives.
    UnsupportedSparkError
        When files are read with options or a schema, which SQL has no words for.
    """
    spark = df.sparkSession
    if not is_served(spark):
        return None
    client: Any = spark
    read = getattr(df, "_plan").to_proto(client.client).root.read  # noqa: B009
    match read.WhichOneof("read_type"):
        case "named_table" if not read.named_table.options:
            return ServedTable(spark, read.named_table.unparsed_identifier)
        case "data_source" if len(paths := [*read.data_source.paths, *_path_in(read.data_source.options)]) == 1:
            source = read.data_source
            options = {k: v for k, v in source.options.items() if k.lower() != "path"}
            return files(spark, paths[0], source.format or "parquet", source.schema or None, options)
    msg = "a dataset is what a reader or a table gives, of one path, with nothing applied to it"
    raise DatasetError(msg)


def _path_in(options: Mapping[str, str]) -> list[str]:
    """Return the path that a reader got as an option."""
    return [value for key, value in options.items() if key.lower() == "path"]


def files(spark: SparkSession, path: str, file_format: str, schema: object, options: Mapping[str, Any]) -> ServedTable:
    """Return files as SQL names them."""
    if schema is not None or options:
        raise not_from_a_client(
            "reading files with options or a schema of its own",
            "make a table of them (CREATE TABLE ... USING csv OPTIONS (...) LOCATION ...) and use Dataset.for_table",
        )
    return ServedTable(spark, f"{file_format}.{_ticked(path)}", path)


@dataclasses.dataclass(frozen=True)
class ServedTable:
    """A table, or files, by the name that SQL has for them."""

    spark: SparkSession
    name: str
    path: str | None = None

    def check(self) -> None:
        """Raise when the server has no Skipstone, or the table cannot be read."""
        from skipstone.engines.spark.bridge.presence import EXTENSION

        if EXTENSION not in (self.spark.conf.get("spark.sql.extensions", "") or ""):
            raise not_from_a_client("this", SERVER_NEEDS)
        self.rows()

    def rows(self) -> list[Any]:
        """Return a row per index."""
        return list(self.describe().collect())

    def describe(self) -> DataFrame:
        """Return a row per index, as a DataFrame."""
        return self._run(f"SHOW INDEXES ON {self.name}")

    def create_indexes(self, indexes: Sequence[Index]) -> IndexingReport:
        """Create indexes by one statement."""
        entries = ", ".join(entry for index in indexes for entry in _entries(index))
        statement = _ticked(f"made_{uuid.uuid4().hex}")
        return self._report(f"CREATE INDEX {statement} ON {self.name} USING skipstone ({entries})")

    def ensure_indexes(self, indexes: Sequence[Index]) -> IndexingReport:
        """Create the indexes that are missing, by one statement, or else refresh those that are there."""
        for index in indexes:
            if _EVERY_COLUMN in index.columns:
                raise not_from_a_client(f"ensuring {index.name}", "name the columns")
        there = {row["name"] for row in self.rows()}
        missing = [index for index in indexes if index.name not in there]
        refreshed = self.refresh(None, ()) if there else None
        if missing or refreshed is None:
            return self.create_indexes(missing or indexes)
        return refreshed

    def refresh(self, paths: Sequence[str] | None, indexes: Sequence[Index]) -> IndexingReport:
        """Refresh the indexes, of all objects or of some folders."""
        if indexes:
            raise not_from_a_client("stating indexes in a refresh", "drop and create those that keep SQL")
        if paths is not None and not paths:
            msg = "refresh(paths=[]) names nothing: name objects or folders, or leave paths out"
            raise DatasetError(msg)
        only = "" if paths is None else f" PATH {', '.join(map(_text, paths))}"
        return self._report(f"REFRESH INDEXES ON {self.name}{only}")

    def drop_indexes(self, names: Sequence[str]) -> None:
        """Drop indexes by name, or all of them."""
        for name in names or (_EVERY_COLUMN,):
            self._run(f"DROP INDEX {_ticked(name)} ON {self.name}").collect()

    def explain(self, df: DataFrame) -> str:
        """Explain a query of this session, which the server sees as a view for that moment."""
        view = f"skipstone_{uuid.uuid4().hex}"
        df.createTempView(view)
        try:
            return "\n".join(row[0] for row in self._run(f"EXPLAIN SKIPPING SELECT * FROM {view}").collect())  # noqa: S608
        finally:
            self.spark.catalog.dropTempView(view)

    def root(self) -> str:
        """Return the folder of the objects."""
        if self.path is not None:
            return self.path
        told = self._run(f"DESCRIBE TABLE EXTENDED {self.name}").collect()
        return next((str(row[1]) for row in told if row[0] == "Location"), self.name)

    def _report(self, statement: str) -> IndexingReport:
        row = self._run(statement).collect()[0].asDict()
        told: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
        return IndexingReport(**told)

    def _run(self, statement: str) -> DataFrame:
        from pyspark.errors import PySparkException

        try:
            return self.spark.sql(statement)
        except PySparkException as error:
            raise DatasetError(str(error).strip().splitlines()[0]) from error


class ServerEntries:
    """What a server records of a client's queries, asked by the client; the methods are those of ``Client``."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def thread(self) -> int:
        """Return the number of a thread that no query was planned by."""
        return -1

    def session_id(self) -> str:
        """Return what entries tell their session by."""
        self._ask(_NOTHING)  # the server says it with every answer
        client: Any = getattr(self._spark, "client")  # noqa: B009
        return str(client._server_session_id)

    def last_entry(self) -> int:
        """Return the number of the newest entry."""
        return int(self._ask(_NOTHING)["entry"])

    def last_change(self) -> int:
        """Return the number of the newest change of an entry."""
        return int(self._ask(_NOTHING)["change"])

    def entries_changed_since(self, change: int) -> list[dict[str, Any]]:
        """Return entries of this session that are new, or whose query has run, since a change."""
        return list(self._ask(change)["entries"])

    def entries_of_last_query(self, session: str | None = None) -> list[dict[str, Any]]:  # noqa: ARG002
        """Return the entries of the latest query of this session."""
        return list(self._ask(_LAST_QUERY)["entries"])

    def _ask(self, change: int) -> dict[str, Any]:
        from pyspark.errors import AnalysisException

        try:
            row = self._spark.sql(f"SELECT {_ENTRIES}({change}L) AS told").first()
        except AnalysisException as error:
            raise not_from_a_client("asking what was skipped", SERVER_NEEDS) from error
        return dict(json.loads(row["told"])) if row is not None else {}


def _entries(index: Index) -> Iterable[str]:
    """Return an index as entries of a statement's list: its columns, the first of which has all its options."""
    fields = [f for f in dataclasses.fields(index) if f.init and f.name not in _FOUND_OUT]
    columns = [getattr(index, f.name) for f in fields if not f.kw_only or f.name == "geometry"]
    options = {"type": type(index).type_name, "name": index.name}
    for field in fields:
        value = getattr(index, field.name)
        known = field.name in {"name", "geometry"} or value is None or value == field.default
        if field.kw_only and not known:
            options[field.name] = value if isinstance(value, str) else json.dumps(value)
    features = columns[0] if len(columns) == 1 and not isinstance(columns[0], str) else None
    if features is not None:
        named = [(_ticked(name), {"predicate": predicate}) for name, predicate in dict(features).items()]
    else:
        named = [(_column(column), {}) for column in columns if column]
    for place, (name, own) in enumerate(named):
        given = {**({"type": options["type"]} if place else options), **own}
        spelled = ", ".join(f"{_ticked(key)} = {_text(value)}" for key, value in given.items())
        yield f"{name} OPTIONS ({spelled})"


def _column(name: str) -> str:
    return _ticked(name) if name == _EVERY_COLUMN else quote_parts(parse_column(name))


def _ticked(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
