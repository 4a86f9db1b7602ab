"""What people use today on the same data and machine: plain Spark, DuckDB, Polars, Delta, Iceberg, and Skipstone.

The query counts the hours of one place in a span of time that three objects hold.  Skipstone is asked by a function on
geometries, which no other can skip by, and by ranges; the others by ranges, rewritten by hand, without the function.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import skipstone
from benchmarks.datasets import weather
from benchmarks.experiments.plots import panels
from benchmarks.experiments.record import Finding, Record
from benchmarks.measures import Subject, interleave
from benchmarks.peers import planning, readers
from benchmarks.peers.environment import JARS, PYSPARK
from benchmarks.peers.worker import linked, peer_tables
from benchmarks.session import enable, session
from skipstone import Dataset, MinMaxIndex

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.conditions import Conditions, Place
    from benchmarks.datasets.writing import Generated
    from benchmarks.experiments.record import Scale
    from benchmarks.peers.worker import PeerTables

NAME = "peers"
TITLE = "Side by side with what people use"
FIGURE = "beyond the paper"
PAPER = (
    "The paper compares with plain Spark and with the query rewritten for Parquet's own statistics. Here DuckDB, "
    "Polars, Delta and Iceberg answer the rewritten query as well, on the same files."
)
AT_SCALE = 8_192
PLANNED = {"small": 2_000, "medium": 100_000, "full": 100_000}
COLUMNS = ["count(*)", "avg(temp)", "max(wind_gust)"]
SPAN = (datetime(2024, 2, 10, tzinfo=UTC), datetime(2024, 4, 20, tzinfo=UTC))
MONTHS = (202402, 202403, 202404)
OURS, LIMIT, BY_FUNCTION = "Skipstone", "the needed files given by hand", "Skipstone, by ST_Contains"
LISTED = "Skipstone, listing included"
PLAIN, REWRITTEN, RANGES = "Spark, by ST_Contains", "Spark, ST_Contains and ranges", "Spark"
FAST_ROUNDS = 10


@dataclass(frozen=True)
class Needle:
    """The query, as each subject is asked it."""

    area: weather.Area
    given: list[str]

    @property
    def ranges(self) -> str:
        return f"{self.area.box} AND {self._span('timestamp')}"

    @property
    def in_duckdb(self) -> str:
        return f"{self.area.box} AND {self._span('timestamptz')}"

    @property
    def by_function(self) -> str:
        return f"{self.area.contains} AND {self._span('timestamp')}"

    @property
    def rewritten(self) -> str:
        return f"{self.by_function} AND {self.area.box}"

    def _span(self, kind: str) -> str:
        begin, end = (f"{kind} '{moment:%Y-%m-%d %H:%M:%S}+00:00'" for moment in SPAN)
        return f"ts BETWEEN {begin} AND {end}"


def run(scale: Scale, conditions: Conditions) -> Record:
    """Time all on the weather dataset, then planning alone on very many objects."""
    generated, shape = weather.generate(scale.weather), weather.shape(scale.weather)
    area = weather.research_triangle(shape)
    with ExitStack() as stack:
        place = stack.enter_context(conditions.place(generated))
        spark = stack.enter_context(session(settings=place.settings))
        skipstone.geo.register(spark)
        root = place.root.rstrip("/")
        leaves = weather.leaves_in(shape, area)
        needle = Needle(area, [f"{root}/month={m}/part-{leaf:05d}.parquet" for m in MONTHS for leaf in leaves])
        Dataset.for_path(spark, place.root).create_indexes(*map(MinMaxIndex, ("lat", "lng", "ts")))
        asking = _asking(spark, place.root, needle)
        asking |= _peers(stack.enter_context(peer_tables(place)), generated, place, needle, conditions)
        _agree(asking, len(needle.given), spark)
        rows = _timed(asking, place, spark, scale)
    at_scale = generated.objects >= AT_SCALE
    findings = _findings(rows, conditions, at_scale=at_scale)
    if conditions.storage == "local":
        planned = planning.measure(PLANNED[scale.name], conditions)
        rows.append({"subject": "planning", **planned})
        findings += planning.findings(planned)
    return Record(NAME, TITLE, FIGURE, _condition(generated, needle, conditions), rows, findings)


@dataclass(frozen=True)
class Asked:
    """A subject: how it answers, whether skipping is on meanwhile, and whether it is slow."""

    ask: Callable[[], list[Any]]
    skipping: bool = False
    slow: bool = False


def _asking(spark: SparkSession, root: str, needle: Needle) -> dict[str, Asked]:
    """Return what Spark and Skipstone are asked."""
    everything, given = spark.read.parquet(root), spark.read.parquet(*needle.given)

    def ask(df: DataFrame, predicate: str) -> list[Any]:
        (row,) = df.where(predicate).selectExpr(*COLUMNS).collect()
        return list(row)

    return {
        OURS: Asked(lambda: ask(everything, needle.ranges), skipping=True),
        BY_FUNCTION: Asked(lambda: ask(everything, needle.by_function), skipping=True),
        LISTED: Asked(lambda: ask(spark.read.schema(everything.schema).parquet(root), needle.ranges), skipping=True),
        LIMIT: Asked(lambda: ask(given, needle.ranges)),
        RANGES: Asked(lambda: ask(everything, needle.ranges), slow=True),
        REWRITTEN: Asked(lambda: ask(everything, needle.rewritten), slow=True),
        PLAIN: Asked(lambda: ask(everything, needle.by_function), slow=True),
    }


def _peers(
    tables: PeerTables, generated: Generated, place: Place, needle: Needle, conditions: Conditions
) -> dict[str, Asked]:
    """Return what the others are asked; DuckDB reads from object storage only with what it downloads by itself."""
    linked(generated.path, f"{place.scratch}/weather")
    delta = f"{place.scratch_root}/weather"
    tables("make_delta", path=delta, partitions="month INT")
    tables("make_iceberg", path=place.root, name="weather", partitions="month")
    remote = place.store is not None
    root, options = ("s3://data", place.store.client_options()) if place.store else (place.root, None)
    polars = readers.Polars(root, options)
    asking = {
        "Polars": Asked(lambda: polars.ask(_box(needle), SPAN), slow=remote),
        "Delta": Asked(lambda: tables("ask", table=f"delta.`{delta}`", predicate=needle.ranges, columns=COLUMNS)),
        "Iceberg": Asked(lambda: tables("ask", table="ice.db.weather", predicate=needle.ranges, columns=COLUMNS)),
    }
    if not remote:
        duckdb = readers.DuckDB(place.root, conditions.threads)
        asking["DuckDB"] = Asked(lambda: duckdb.ask(needle.in_duckdb, COLUMNS))
    return asking


def _box(needle: Needle) -> tuple[float, float, float, float]:
    area = needle.area
    return area.south, area.north, area.west, area.east


def _agree(asking: dict[str, Asked], needed: int, spark: SparkSession) -> None:
    """See that all give one answer, and that Skipstone reads the needed objects only."""
    answers: dict[str, list[Any]] = {}
    for name, asked in asking.items():
        enable(spark, asked.skipping)
        with skipstone.skipping_stats(spark) as stats:
            answers[name] = asked.ask()
        if asked.skipping and stats[-1].objects.kept != needed:
            msg = f"{name} kept {stats[-1].objects} where {needed} are needed: {stats[-1].not_used}"
            raise AssertionError(msg)
    expected = answers[LIMIT]
    for name, answer in answers.items():
        if answer[0] == 0 or not all(math.isclose(a, b, rel_tol=1e-5) for a, b in zip(answer, expected, strict=True)):
            msg = f"{name} answers {answer}, {LIMIT}: {expected}"
            raise AssertionError(msg)


def _timed(asking: dict[str, Asked], place: Place, spark: SparkSession, scale: Scale) -> list[dict[str, Any]]:
    """Time the fast ones often and all of them at least five times, in turn, and count what each reads."""
    subjects = {
        name: Subject(asked.ask, lambda asked=asked: enable(spark, asked.skipping)) for name, asked in asking.items()
    }
    fast = {name: subject for name, subject in subjects.items() if not asking[name].slow}
    taken = interleave(fast, repeats=max(FAST_ROUNDS, scale.repeats), warmups=3)
    slow = {name: subject for name, subject in subjects.items() if asking[name].slow}
    taken |= interleave(slow, repeats=scale.repeats, warmups=0)
    rows = []
    for name, subject in subjects.items():
        subject.before()
        place.traffic()
        subject.run()
        read = place.traffic()
        rows.append({"subject": name, **taken[name].described(), "rounds": list(taken[name].seconds)})
        if read.requests:
            rows[-1] |= {"bytes": read.bytes, "requests": read.requests}
    return sorted(rows, key=lambda row: row["median"])


def _findings(rows: list[dict[str, Any]], conditions: Conditions, *, at_scale: bool) -> list[Finding]:
    """Return every subject's time as a multiple of ours."""
    by_name = {row["subject"]: row for row in rows}
    ours, by_function = by_name[OURS], by_name[BY_FUNCTION]
    remote = conditions.storage == "s3"
    found = [
        Finding(f"needle query: {OURS}", ours["median"], "s", low=ours["low"], high=ours["high"]),
        _ratio(by_name[PLAIN], by_function, "x240", (240 if remote else 120) if at_scale else None),
        _ratio(by_name[REWRITTEN], by_function, "x3.6", (10 if remote else None) if at_scale else None),
    ]
    for name in ("DuckDB", "Polars", "Delta", "Iceberg", RANGES, LISTED, LIMIT):
        if name in by_name:
            target = 1.0 if at_scale and name in ("DuckDB", "Polars", "Delta", "Iceberg") else None
            found.append(_ratio(by_name[name], ours, "", target))
    return found


def _ratio(theirs: dict[str, Any], ours: dict[str, Any], paper: str, target: float | None) -> Finding:
    spread = theirs["low"] / ours["high"], theirs["high"] / ours["low"]
    note = f"{theirs['median']:.2f} s against {ours['median']:.3f} s"
    if "bytes" in theirs:
        note += f"; {theirs['requests']:,} requests and {theirs['bytes'] / 1e6:,.1f} MB against "
        note += f"{ours['requests']:,} and {ours['bytes'] / 1e6:,.2f} MB"
    what = f"needle query: {theirs['subject']} / {ours['subject']}"
    measured = theirs["median"] / ours["median"]
    return Finding(
        what, measured, "x", paper=paper, target=target, at_least=True, low=spread[0], high=spread[1], note=note
    )


def _condition(generated: Generated, needle: Needle, conditions: Conditions) -> str:
    """Return what was compared."""
    engines = ", ".join(f"{name} {version}" for name, version in readers.versions().items())
    tables = ", ".join(
        coordinate.split(":", 1)[1].replace(":", " ") for coordinate in JARS if "storage" not in coordinate
    )
    return (
        f"{generated}, 33 columns and a partition column; {len(needle.given)} objects needed; indexed by minmax(lat), "
        f"minmax(lng) and minmax(ts); {conditions.described}; warm; Spark's listing made once unless said; "
        f"{engines}; {tables} on Spark {PYSPARK}, taking the same files with the statistics of their footers"
    )


def plot(record: Record) -> Figure:
    """Draw a bar for every subject."""
    rows = [row for row in record.rows if row["subject"] != "planning"]
    figure, (axis,) = panels(1, width=8)
    medians = [row["median"] for row in rows]
    errors = [[row["median"] - row["low"] for row in rows], [row["high"] - row["median"] for row in rows]]
    axis.barh([row["subject"] for row in rows], medians, xerr=errors, capsize=3)
    axis.set_xscale("log")
    axis.invert_yaxis()
    axis.set_xlabel("seconds of the needle query (median, least, greatest)")
    axis.grid(visible=False, axis="y")
    return figure
