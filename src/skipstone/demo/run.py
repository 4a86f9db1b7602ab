"""The demo: two small datasets, their indexes, and the same queries with skipping off and on, side by side."""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skipstone.demo.data import Scale, account, database, user, write_logs, write_weather
from skipstone.errors import SkipstoneError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from rich.console import Console

    from skipstone.indexing.index import Index

__all__ = ["DatasetResult", "DemoError", "DemoResult", "QueryResult", "print_demo", "run_demo", "write_data"]


class DemoError(SkipstoneError):
    """The demo cannot go on: its folder is in use, or an answer changed with skipping, which must never happen."""


@dataclass(frozen=True)
class Query:
    """One query of the demo; the predicate is what skipping works on."""

    dataset: str
    predicate: str
    select: str = "count(*)"
    group: str = ""

    @property
    def sql(self) -> str:
        """The whole query."""
        grouped = f" GROUP BY {self.group}" if self.group else ""
        return f"SELECT {self.select} FROM {self.dataset} WHERE {self.predicate}{grouped}"  # noqa: S608  (our own text)


QUERIES = (
    Query("weather", "lat BETWEEN 8 AND 35 AND lng BETWEEN 68 AND 97", "count(*), max(temp)"),
    Query("weather", "temp > 48", "ts, city, temp"),
    Query(
        "weather",
        "city LIKE '%pur' AND ts >= '2025-08-01' AND ts < '2025-09-01'",
        "city, count(*), min(temp), max(temp)",
        "city",
    ),
    Query("weather", "city IN ('Sitapur', 'Ostham') AND feels_like(temp, wind) < -5", "city, ts, temp, wind"),
    Query("logs", f"account = '{account(200)}'", "status, count(*), max(millis)", "status"),
    Query("logs", f"user IN ('{user(40, 17)}', '{user(300, 3)}')", "account, user, ts, path"),
    Query("logs", f"(account = '{account(90)}' AND status >= 500) OR db_name = '{database(700, 1)}'"),
    Query("logs", "path = '/api/v2/login'", "count(*), max(millis)"),
)
EXPLAINED = QUERIES[3]

_NARROW = 110


@dataclass(frozen=True)
class DatasetResult:
    """What was indexed, and what that cost."""

    name: str
    objects: int
    rows: int
    bytes: int
    indexes: tuple[str, ...]
    indexing_seconds: float
    metadata_bytes: int


@dataclass(frozen=True)
class QueryResult:
    """One query with skipping off and on; seconds are medians."""

    dataset: str
    sql: str
    predicate: str
    objects_read: int
    objects_total: int
    bytes_read: int
    bytes_total: int
    seconds_off: float
    seconds_on: float
    speedup: float
    runs: int
    rows: int
    agree: bool


@dataclass(frozen=True)
class DemoResult:
    """Everything that the demo found out."""

    datasets: tuple[DatasetResult, ...]
    queries: tuple[QueryResult, ...]
    explain: str
    cores: int


def write_data(folder: Path, scale: Scale | None = None) -> None:
    """Write both datasets into a folder.

    Raises
    ------
    DemoError
        When the folder has files already: the demo overwrites nothing.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        msg = f"{folder} is not an empty folder and the demo overwrites nothing: name a new one, or leave --folder out"
        raise DemoError(msg)
    scale = scale or Scale()
    write_weather(folder / "weather", scale)
    write_logs(folder / "logs", scale)


def run_demo(
    spark: SparkSession,
    folder: Path,
    *,
    runs: int = 3,
    patience: float = 75,
    say: Callable[[str], object] = lambda _: None,
) -> DemoResult:
    """Index the datasets that ``write_data`` made, run every query with skipping off and on, and compare.

    Parameters
    ----------
    spark
        A session with Skipstone.
    folder
        Where the datasets are.
    runs
        How many runs of each kind are timed, after one with skipping that is not.
    patience
        Seconds after which no run is repeated: a slow machine shall not wait for better figures.
    say
        Told what is going on.

    Raises
    ------
    DemoError
        When an answer with skipping differs from the one without.
    """
    from skipstone.dataset import Dataset

    until = time.monotonic() + patience
    spark.udf.register("feels_like", feels_like, "double")
    handles: dict[str, Dataset] = {}
    datasets: list[DatasetResult] = []
    for name, indexes in _indexes().items():
        say(f"indexing {name} …")
        path = str(folder / name)
        handles[name] = Dataset.for_path(spark, path)
        report = handles[name].create_indexes(*indexes)
        size = sum(f.stat().st_size for f in Path(path).glob("*.parquet"))
        datasets.append(
            DatasetResult(
                name, report.objects, report.rows, size, report.indexes, report.seconds, report.metadata_bytes
            )
        )
        spark.read.parquet(path).createOrReplaceTempView(name)
    say(f"running {len(QUERIES)} queries, skipping off and on …")
    for query in QUERIES:
        spark.sql(query.sql).collect()  # to warm up
    results = [_compare(spark, query, runs, until) for query in QUERIES]
    explanation = str(handles[EXPLAINED.dataset].explain(spark.sql(EXPLAINED.sql)))
    return DemoResult(tuple(datasets), tuple(results), explanation, os.cpu_count() or 1)


def feels_like(temp: float, wind: float) -> float:
    """The wind chill in degrees Celsius: any Python function; Spark cannot look into it."""
    return 13.12 + 0.6215 * temp + (0.3965 * temp - 11.37) * max(wind, 5.0) ** 0.16


def _indexes() -> dict[str, tuple[Index, ...]]:
    """Return each dataset's indexes."""
    from skipstone import BloomFilterIndex, HybridIndex, MinMaxIndex, ValueListIndex

    return {
        "weather": (*(MinMaxIndex(c) for c in ("ts", "lat", "lng", "temp")), ValueListIndex("city")),
        "logs": (
            BloomFilterIndex("account"),
            ValueListIndex("db_name"),
            ValueListIndex("path"),
            HybridIndex("user", threshold=1_000),
        ),
    }


def _compare(spark: SparkSession, query: Query, runs: int, until: float) -> QueryResult:
    """Run one query without and with skipping, in turn, and hold the answers against each other."""
    from skipstone.reporting.stats import skipping_stats

    seconds: dict[bool, list[float]] = {False: [], True: []}
    answers: dict[bool, list[Any]] = {}
    before = spark.conf.get("spark.skipstone.enabled", "true")
    try:
        with skipping_stats(spark) as stats:
            for turn in range(runs):
                if turn and time.monotonic() > until:
                    break
                for enabled in (True, False):  # what the first run still warms up, skipping pays
                    spark.conf.set("spark.skipstone.enabled", str(enabled).lower())
                    started = time.perf_counter()
                    rows = spark.sql(query.sql).collect()
                    seconds[enabled].append(time.perf_counter() - started)
                    answers[enabled] = sorted(rows, key=repr)
                _require_equal(answers, query)
            scan = stats[-1]
    finally:
        spark.conf.set("spark.skipstone.enabled", before or "true")
    off, on = statistics.median(seconds[False]), statistics.median(seconds[True])
    return QueryResult(
        dataset=query.dataset,
        sql=query.sql,
        predicate=query.predicate,
        objects_read=scan.objects.kept,
        objects_total=scan.objects.total,
        bytes_read=scan.bytes_total - scan.bytes_skipped,
        bytes_total=scan.bytes_total,
        seconds_off=off,
        seconds_on=on,
        speedup=off / on,
        runs=len(seconds[True]),
        rows=len(answers[True]),
        agree=True,
    )


def _require_equal(answers: dict[bool, list[Any]], query: Query) -> None:
    """Fail loudly when skipping changed an answer."""
    if answers[True] != answers[False]:
        msg = (
            f"the answers differ with skipping ({len(answers[True])} rows) and without ({len(answers[False])}): "
            f"{query.sql}; this is a bug in Skipstone, please report it"
        )
        raise DemoError(msg)


def print_demo(console: Console, result: DemoResult) -> None:
    """Print the demo's outcome for people."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    for data in result.datasets:
        console.print(
            f"[bold]{data.name}[/]: {data.objects:,} Parquet objects, {data.rows:,} rows, {data.bytes / 1e6:,.1f} MB; "
            f"indexed in {data.indexing_seconds:.1f} s, {data.metadata_bytes / 1e3:,.0f} kB of metadata",
            highlight=False,
        )
        console.print(f"  {', '.join(data.indexes)}", style="dim", markup=False, highlight=False)
    narrow = console.width < _NARROW  # there the predicates stand below the figures
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("" if narrow else "WHERE", overflow="fold")
    for heading in ("objects read", "MB read", "off", "on", "speed-up", "same answer"):
        table.add_column(heading, justify="right", no_wrap=True)
    for number, q in enumerate(result.queries, 1):
        table.add_row(
            str(number) if narrow else escape(q.predicate),
            f"{q.objects_read:,} of {q.objects_total:,}",
            f"{q.bytes_read / 1e6:,.1f} of {q.bytes_total / 1e6:,.1f}",
            f"{q.seconds_off:.2f} s",
            f"{q.seconds_on:.2f} s",
            f"{q.speedup:.1f}x",
            "yes" if console.options.ascii_only else "✓",
        )
    console.print("\n[bold]The same queries with skipping off and on[/]")
    console.print(table)
    for number, q in enumerate(result.queries, 1) if narrow else ():
        console.print(f"{number}  {q.predicate}", markup=False, highlight=False)
    console.print(
        f"Times: {_span([q.runs for q in result.queries])} after a warm-up; local files, {result.cores} cores. "
        "MB: size of the objects that are opened; of those Spark reads the columns it needs, in both cases.",
        style="dim",
        highlight=False,
    )
    console.print(f"\n[bold]explain[/] of: {escape(EXPLAINED.predicate)}\n", highlight=False)
    console.print(result.explain, markup=False, highlight=False, soft_wrap=True)


def _span(runs: list[int]) -> str:
    """Return how many runs were timed."""
    least, most = min(runs), max(runs)
    counted = f"{most} runs" if least == most else f"{least} to {most} runs"
    return f"median of {counted}" if most > 1 else "one run"
