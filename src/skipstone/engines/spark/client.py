"""The one door to the JVM: every call of the bridge, typed, and what Java's errors say in one line.

Lists and bytes travel in local files: a long string from the JVM to Python is slow (8 KB or more stall for 44 ms), and
a list of a million objects is long.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException

from skipstone.engines.spark.connect import classic_session
from skipstone.engines.spark.description import ScanDescription
from skipstone.errors import DatasetError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark import SparkContext
    from pyspark.sql import Column, DataFrame, SparkSession
    from typing_extensions import TypeIs

__all__ = [
    "SPARK_ERRORS",
    "Client",
    "JavaCause",
    "Scan",
    "all_said_by",
    "is_predicate",
    "is_query",
    "java_causes",
    "said_by",
]

_MOST_CAUSES = 10
SPARK_ERRORS = (PySparkException,)
"""What Spark raises for a query that it cannot analyse or run."""

_bridges: WeakKeyDictionary[SparkContext, Any] = WeakKeyDictionary()


class Client:
    """What the bridge does for a session.

    Parameters
    ----------
    spark
        A session that has the bridge (see ``bridge.presence.require_bridge``), or a Connect client of one here.
    """

    def __init__(self, spark: SparkSession) -> None:
        spark = classic_session(spark)
        self.spark = spark
        self.jvm: Any = spark._jvm
        self._session: Any = spark._jsparkSession
        self._bridge = _bridge_of(spark)

    # --- scans ---------------------------------------------------------------------------------------------------

    def scan(self, df: DataFrame) -> Scan:
        """Find the file scan that a DataFrame is.

        Raises
        ------
        DatasetError
            When it is anything else.
        """
        try:
            return Scan(self, self._bridge.scan(df._jdf))
        except Exception as error:
            raise DatasetError(said_by(error)) from error

    def parts(self, paths: Sequence[str]) -> DataFrame:
        """Return a DataFrame over Parquet files of metadata."""
        from pyspark.sql import DataFrame

        return DataFrame(self._bridge.parts(self._session, list(paths)), self.spark)

    def collect_silently(self, frame: DataFrame, file: Path) -> None:
        """Write the values of a DataFrame's only column to a file, by a job whose plan is in no event log."""
        self._bridge.collectSilently(frame._jdf, str(file))

    def column_batches(self, frame: DataFrame) -> DataFrame | None:
        """Return the columns of a scan in bytes (see ``column_batches``), ``None`` where its reader gives rows."""
        from pyspark.sql import DataFrame

        made = self._bridge.columnBatches(frame._jdf)
        return None if made is None else DataFrame(made, frame.sparkSession)

    def add_to_session(self, archive: Path) -> None:
        """Let the Python workers of the session's jobs find an archive that the application has."""
        self._bridge.addToSession(self._session, str(archive))

    def register(self, planner: object) -> None:
        """Let a planner answer the optimizer rule."""
        self._start_callbacks()
        self._bridge.register(planner)

    def warm_up(self) -> None:
        """Load in the background what the first query of this JVM would wait for."""
        self._bridge.warmUp(self._session)

    def register_companion(self, number: int, planner: object) -> bool:
        """Let the planner of a companion answer the optimizer rule; return whether the companion is still wanted."""
        self._start_callbacks()
        return bool(self.jvm.org.apache.spark.sql.skipstone.Companion.attach(number, planner))

    def _start_callbacks(self) -> None:
        from pyspark import java_gateway

        start: Any = java_gateway.ensure_callback_server_started
        start(self.spark.sparkContext._gateway)

    def interrupted(self) -> bool:
        """Whether the JVM's thread that serves this one was interrupted, as a cancelled statement's is."""
        return bool(self._bridge.interrupted())

    def zone_rules(self, zone: str) -> str:
        """Return the offsets of a time zone in the JVM, as JSON: ``first``, ``transitions``, ``until``."""
        return str(self._bridge.zoneRules(zone))

    # --- what happened to queries --------------------------------------------------------------------------------

    def thread(self) -> int:
        """Return the id of the JVM's thread that serves this one."""
        return int(self._bridge.threadId())

    def last_entry(self) -> int:
        """Return the number of the newest entry."""
        return int(self._bridge.lastSeq())

    def last_change(self) -> int:
        """Return the number of the newest change of an entry."""
        return int(self._bridge.lastChange())

    def entries_changed_since(self, change: int) -> list[dict[str, Any]]:
        """Return entries that are new, or whose query has run, since a change; waits for queries that just ended."""
        self._bridge.settle()
        return list(json.loads(self._bridge.entriesChangedSince(change)))

    def session_id(self) -> str:
        """Return what entries tell their session by."""
        return str(self._session.sessionUUID())

    def entries_of_last_query(self, session: str | None = None) -> list[dict[str, Any]]:
        """Return the entries of the latest query that this thread planned, or that any thread did for a session."""
        self._bridge.settle()
        asked = self._bridge.entriesOfLastQuery() if session is None else self._bridge.entriesOfLastQuery(session)
        return list(json.loads(asked))

    def entries_of(self, plan: Callable[[], object]) -> list[dict[str, Any]]:
        """Return the entries of what this thread plans in a call."""
        before, thread = self.last_entry(), self.thread()
        plan()
        return [e for e in json.loads(self._bridge.entriesSince(before)) if e["thread"] == thread]

    def plan_anew(self, df: DataFrame) -> list[dict[str, Any]]:
        """Plan a query without running it; a DataFrame is planned once, the same rows under a new projection anew."""
        return self.entries_of(lambda: df.select("*")._jdf.queryExecution().optimizedPlan())

    def replanner(self, df: DataFrame) -> Callable[[Mapping[str, str]], list[dict[str, Any]]]:
        """Return what plans a query again, in a clone of its session that gets the given settings besides."""
        clone: Any = self._session.cloneSession()
        analyzed = df._jdf.queryExecution().analyzed()
        modes = getattr(self.jvm.org.apache.spark.sql.execution, "CommandExecutionMode")  # noqa: B009
        skip_commands = modes.SKIP()
        state = clone.sessionState()

        def replan(settings: Mapping[str, str]) -> list[dict[str, Any]]:
            for name, value in settings.items():
                clone.conf().set(name, value)
            return self.entries_of(lambda: state.executePlan(analyzed, skip_commands).optimizedPlan())

        return replan

    def is_query(self, text: str) -> bool:
        """Whether Spark's parser takes a text for a query."""
        return self._parses("parseQuery", text)

    def is_statement(self, text: str) -> bool:
        """Whether Spark's parser takes a text for a statement of any kind."""
        return self._parses("parsePlan", text)

    def _parses(self, method: str, text: str) -> bool:
        from pyspark.errors import ParseException

        try:
            getattr(self._session.sessionState().sqlParser(), method)(text)
        except ParseException:
            return False
        return True

    # --- users' functions ----------------------------------------------------------------------------------------

    def function(self, name: str) -> dict[str, Any] | None:
        """Look up a user's function by its registered name."""
        text = self._bridge.function(self._session, name)
        return None if text is None else next(iter(json.loads(text)), None)

    def functions(self) -> list[dict[str, Any]]:
        """Return the users' functions that the session has registered."""
        return list(json.loads(self._bridge.functions(self._session)))

    def function_command(self, raw: str) -> bytes | None:
        """Return the pickled function of a raw id."""
        found = self._bridge.functionCommand(raw)
        return None if found is None else bytes(found)

    # --- files ---------------------------------------------------------------------------------------------------

    def read_ranges(self, path: str, length: int, ranges: str, file: Path) -> list[int]:
        """Write ranges of a file, one after the other, to a local file; return how long each was."""
        found = str(self._bridge.readRanges(self._session, path, length, ranges, str(file)))
        return [int(count) for count in found.split(",")]

    def list_folder(self, folder: str, file: Path) -> None:
        """Write a folder's entries to a local file, a line of JSON each."""
        self._bridge.listFolder(self._session, folder, str(file))

    def hadoop_settings(self) -> Any:
        """Return Hadoop's settings with the session's own in them; in a planner's call, the query's session's."""
        return self._bridge.hadoopSettings(self._session)

    def pattern(self, regex: str) -> Callable[[str], bool]:
        """Return what tells whether one of Java's regular expressions finds something in a text."""
        compiled = self.jvm.java.util.regex.Pattern.compile(regex)
        return lambda text: bool(compiled.matcher(text).find())

    def matches_glob(self, glob: str, name: str) -> bool:
        """Whether one of Hadoop's patterns matches a file's name."""
        return bool(self.jvm.org.apache.hadoop.fs.GlobPattern(glob).matches(name))


@dataclass(frozen=True)
class Scan:
    """The bridge's handle on a plain file scan."""

    client: Client
    handle: Any

    def describe(self) -> ScanDescription:
        """Describe what is read and how, as it is now."""
        return ScanDescription.of(json.loads(self.handle.describe()))

    def pinned(self, settings: Mapping[str, str]) -> Scan:
        """Return the scan in a clone of its session that nobody else has, with these settings besides."""
        if self.handle.isPinned():
            return self
        return Scan(self.client, self.client._bridge.pinned(self.handle, dict(settings)))

    def type_of(self, expression: str) -> str:
        """Return the type of a SQL expression over the scan's columns, as a catalog string."""
        return str(self.client._bridge.typeOf(self.handle, expression))

    def functions_in(self, expressions: Sequence[str]) -> list[dict[str, Any]]:
        """Return the users' functions that SQL expressions over the scan's columns call."""
        return list(json.loads(self.client._bridge.functionsIn(self.handle, list(expressions))))

    def condition(self, predicate: str) -> dict[str, Any] | None:
        """Return a SQL predicate as a query's condition; ``None`` when it is the same for every row."""
        text = self.client._bridge.condition(self.handle, predicate)
        return None if text is None else dict(json.loads(text))

    def listing(self, paths: Iterable[str] | None, file: Path) -> None:
        """Write the objects, all or those of some paths, to a local file, a line of JSON each."""
        if paths is None:
            self.client._bridge.listing(self.handle, str(file))
        else:
            self.client._bridge.listing(self.handle, self._list(paths), str(file))

    def changed(self, named: Path, file: Path) -> bool:
        """Write those of the named objects that are not as they were listed; whether that can be told."""
        return int(self.client._bridge.changed(self.handle, str(named), str(file))) >= 0

    def gone(self, named: Path, file: Path) -> None:
        """Write those of the named objects that are not there any more to a local file, a line of JSON each."""
        self.client._bridge.gone(self.handle, str(named), str(file))

    def read(self, named: Path) -> tuple[DataFrame, int]:
        """Return a DataFrame over objects that a file names, and the length up to which one is read whole."""
        from pyspark.sql import DataFrame, SparkSession

        made = self.client._bridge.scanObjects(self.handle, str(named))
        whole_up_to = int(self.client._bridge.maxSplitBytes(self.handle, str(named)))
        return DataFrame(made, SparkSession(self.client.spark.sparkContext, made.sparkSession())), whole_up_to

    def unreadable(self) -> str | None:
        """Name the column that shows records which cannot be read, if the format has such."""
        found = self.client._bridge.unreadable(self.handle)
        return None if found is None else str(found)

    def footers(self, named: Path, columns: Sequence[Sequence[str]], file: Path) -> None:
        """Write what the Parquet footers of the named objects say of some columns, a line of JSON each."""
        self.client._bridge.footers(self.handle, str(named), json.dumps(columns), str(file))

    def indicators(self, root: str, queries: Sequence[DataFrame]) -> list[list[dict[str, Any]]]:
        """Count relevant rows and objects, for each scan of this dataset in each query.

        Raises
        ------
        DatasetError
            When an object cannot be read, or has changed since a query listed it.
        """
        return self._of_queries("indicators", "the indicators cannot be measured", root, queries)

    def audit(
        self, root: str, queries: Sequence[DataFrame], objects: int, size: int, seed: int
    ) -> list[list[dict[str, Any]]]:
        """Look for rows that queries ask for in objects that they leave out, at most so many objects and bytes a scan.

        Raises
        ------
        DatasetError
            When an object cannot be read, or has changed since a query listed it.
        """
        return self._of_queries("audit", "the queries cannot be audited", root, queries, objects, size, seed)

    def _of_queries(
        self, method: str, problem: str, root: str, queries: Sequence[DataFrame], *more: int
    ) -> list[list[dict[str, Any]]]:
        """Ask the bridge about queries: a list for each, with an entry for each of its scans of this dataset."""
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import IllegalArgumentException

        planned = self._list(query._jdf for query in queries)
        try:
            return list(json.loads(getattr(self.client._bridge, method)(self.handle, root, planned, *more)))
        except (IllegalArgumentException, Py4JJavaError) as error:
            msg = f"{problem}: {said_by(error)}"
            raise DatasetError(msg) from error

    def _list(self, items: Iterable[Any]) -> Any:
        made = self.client.jvm.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made


def is_query(what: object) -> TypeIs[DataFrame]:
    """Whether something is a DataFrame."""
    from pyspark.sql import DataFrame

    return isinstance(what, DataFrame)


def is_predicate(what: object) -> TypeIs[str | Column]:
    """Whether something is a condition, in SQL or as a column."""
    from pyspark.sql import Column

    return isinstance(what, str | Column)


class JavaCause(NamedTuple):
    """One of Java's exceptions: its class, and the first line of its message."""

    kind: str
    said: str


def java_causes(error: BaseException) -> list[JavaCause]:
    """Return Java's exception that an error tells of and its causes, from the outermost in; none of other errors."""
    found: list[JavaCause] = []
    cause = _thrown(error)
    while cause is not None and len(found) < _MOST_CAUSES:
        said = str(cause.getMessage() or "").split("\n", 1)[0]
        found.append(JavaCause(cause.getClass().getName(), said))
        cause = cause.getCause()
    return found


def all_said_by(error: BaseException) -> str:
    """Return all that an error says; Py4J keeps the Java side's text apart."""
    java = _thrown(error)
    return str(error) if java is None else f"{error}\n{java}"


def said_by(error: BaseException) -> str:
    """Return the first line of what an error says; of one of Java's, of what the Java exception says."""
    java = _thrown(error)
    text = str(error) if java is None else str(java.getMessage() or java.toString())
    return (text.strip().splitlines() or [type(error).__name__])[0]


def _thrown(error: BaseException) -> Any:
    """Return the Java exception that Py4J made an error of, if it did."""
    return getattr(error, "java_exception", None)


def _bridge_of(spark: SparkSession) -> Any:
    """Return the bridge's static methods, looked up once for an application: each part of the name is a call."""
    context = spark.sparkContext
    found = _bridges.get(context)
    if found is None:
        jvm: Any = spark._jvm
        found = _bridges[context] = jvm.org.apache.spark.sql.skipstone.Bridge
    return found
