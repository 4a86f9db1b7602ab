"""Four queries for a database name: time and bytes by index type, split into metadata and data, and the payback."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from statistics import mean, median
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

import skipstone
from benchmarks.datasets import database_logs
from benchmarks.datasets.database_accounts import Shape
from benchmarks.experiments import plots, workloads
from benchmarks.experiments.metadata_places import locate, make_place
from benchmarks.experiments.record import Finding, Record
from benchmarks.measures import Subject, interleave
from benchmarks.session import enable, session
from skipstone import BloomFilterIndex, Dataset, HybridIndex, ValueListIndex

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyspark.sql import SparkSession

    from benchmarks.conditions import Conditions, Place
    from benchmarks.datasets.writing import Generated
    from benchmarks.experiments.record import Scale
    from skipstone.reporting.stats import ScanStats

NAME = "fig8_breakdown"
TITLE = "Metadata against data: time, bytes and payback"
FIGURE = "Figure 8"
PAPER = (
    "Four queries for different db_name values that retrieve 8 columns, with ValueList, BloomFilter and Hybrid. "
    "Skipping makes them 3 to 20 times faster; metadata takes a small fraction of the time, with Hybrid the least; "
    "false positives cost BloomFilter and Hybrid some data in two queries; indexing is paid back after about 3 queries "
    "in time, and after one in bytes scanned."
)
COLUMNS = (
    "ts", "account_name", "db_name", "http_request", "user_agent", "http_status", "response_bytes", "total_seconds",
)  # fmt: skip
PRESENCE = {"Q1": 0.33, "Q2": 0.10, "Q3": 0.03, "Q4": 0.0}  # of the objects have the value; the last is in one only
NONE = "none"
CACHE_BYTES = 1 << 30
_uses = count()
PARTS = ("listing", "planner", "metadata", "match")


def run(scale: Scale, conditions: Conditions) -> Record:
    """Index db_name in three ways, each with metadata of its own, and run the queries with each in turn."""
    generated = database_logs.generate(scale.database_logs)
    threshold = Shape(generated.objects).threshold
    indexes = {
        "ValueList": ValueListIndex("db_name"),
        "BloomFilter": BloomFilterIndex("db_name"),
        "Hybrid": HybridIndex("db_name", threshold=threshold),
    }
    values = values_by_presence(generated)
    with conditions.place(generated) as place, session(settings=place.settings) as spark:
        builds = {label: _build(spark, place, label, index) for label, index in indexes.items()}
        rows = _query(spark, place, values, [*indexes, NONE], scale.repeats)
    condition = (
        f"Database logs: {generated}. Hybrid's threshold is {threshold:,}, which stands to these objects as 10,000 to "
        f"the paper's. Metadata read anew by every query, listing made once and excluded. "
        f"Storage: {conditions.described}."
    )
    scanned = column_bytes(generated, "db_name")
    rows += [{"index": label, **build, "column_bytes": scanned} for label, build in builds.items()]
    return Record(NAME, TITLE, FIGURE, condition, rows, _findings(rows))


def values_by_presence(generated: Generated) -> dict[str, str]:
    """Choose the database names whose shares of objects are nearest to the wanted ones."""
    objects: Counter[str] = Counter()
    for file in workloads.objects(generated):
        objects.update(pc.unique(workloads.column_of(file, "db_name")).to_pylist())
    ordered = sorted(objects.items())
    share = {name: count / generated.objects for name, count in ordered}
    return {query: min(share, key=lambda name: abs(share[name] - wanted)) for query, wanted in PRESENCE.items()}


def column_bytes(generated: Generated, column: str) -> int:
    """Sum up the compressed bytes of a column, from the footers."""
    total = 0
    for file in workloads.objects(generated):
        footer = pq.read_metadata(file)
        place = footer.schema.names.index(column)
        total += sum(footer.row_group(g).column(place).total_compressed_size for g in range(footer.num_row_groups))
    return total


def _use(spark: SparkSession, place: Place, label: str) -> None:
    """Let the query that follows use the metadata of one index, or none, and nothing that is in memory.

    Settings that differ make another store, with a cache of its own: the size of the cache differs by a byte each time.
    """
    enable(spark, label != NONE)
    spark.conf.set("spark.skipstone.cacheBytes", str(CACHE_BYTES + next(_uses)))
    if label != NONE:
        locate(spark, place.settings, label)


def _build(spark: SparkSession, place: Place, label: str, index: Any) -> dict[str, Any]:
    """Build one index; give its seconds and bytes."""
    make_place(spark, place.settings, label)
    dataset = Dataset.for_path(spark, place.root)
    started = time.perf_counter()
    dataset.create_indexes(index)
    seconds = time.perf_counter() - started
    return {"build_seconds": seconds, "metadata_bytes": dataset.describe().first()["bytes"]}


def _query(
    spark: SparkSession, place: Place, values: dict[str, str], labels: list[str], repeats: int
) -> list[dict[str, Any]]:
    """Time every query with every index, in turn, and count the bytes of one more run."""
    df = spark.read.parquet(place.root)
    planned: dict[str, list[ScanStats]] = {}

    def ask(name: str) -> None:
        df.where(df.db_name == values[name]).select(*COLUMNS).write.format("noop").mode("overwrite").save()

    def asked(key: str, name: str) -> Callable[[], None]:
        def run_and_note() -> None:
            with skipstone.skipping_stats(spark) as stats:
                ask(name)
            planned.setdefault(key, []).extend(stats[-1:])

        return run_and_note

    keys = {f"{name} {label}": (name, label) for name in values for label in labels}
    subjects = {
        key: Subject(asked(key, name), lambda label=label: _use(spark, place, label))
        for key, (name, label) in keys.items()
    }
    taken = interleave(subjects, repeats=repeats)
    rows = []
    for key, (name, label) in keys.items():
        _use(spark, place, label)
        place.traffic()
        with skipstone.skipping_stats(spark) as stats:
            ask(name)
        row = {"query": name, "index": label, "seconds": taken[key].described()}
        row |= _planning(planned[key][-repeats:] if label != NONE else [])
        row["metadata_bytes_read"] = stats[-1].metadata_bytes_read if label != NONE else 0
        traffic = place.traffic()  # of the local disk, what the JVM read: the objects, not the metadata
        row["bytes_scanned"] = traffic.bytes + (0 if traffic.by_kind else row["metadata_bytes_read"])
        rows.append(row)
    return rows


def _planning(scans: list[ScanStats]) -> dict[str, Any]:
    """Return the medians of planning and of its parts, and the objects kept."""
    if not scans:
        return {"planning_seconds": 0.0, "planning_parts": {}, "kept_objects": None}
    parts = {part: median(scan.seconds.get(part, 0.0) for scan in scans) for part in PARTS}
    kept = scans[-1].objects.kept
    return {
        "planning_seconds": median(scan.planning_seconds for scan in scans),
        "planning_parts": parts,
        "kept_objects": kept,
    }


def _findings(rows: list[dict[str, Any]]) -> list[Finding]:
    """Hold speed-ups, the share of metadata and the payback against the paper's."""
    timed = [row for row in rows if "query" in row]
    none = {row["query"]: row for row in timed if row["index"] == NONE}
    findings = []
    for query in none:
        with_index = [row for row in timed if row["query"] == query and row["index"] != NONE]
        best = min(with_index, key=lambda row: row["seconds"]["median"])
        slow = none[query]["seconds"]
        findings.append(
            Finding(
                f"{query}: without skipping / with {best['index']}",
                slow["median"] / best["seconds"]["median"],
                "x",
                "3x to 20x",
                low=slow["low"] / best["seconds"]["high"],
                high=slow["high"] / best["seconds"]["low"],
            )
        )
    for build in (row for row in rows if "build_seconds" in row):
        own = [row for row in timed if row["index"] == build["index"]]
        share = sum(row["planning_seconds"] for row in own) / sum(row["seconds"]["median"] for row in own)
        saved = sum(none[row["query"]]["seconds"]["median"] - row["seconds"]["median"] for row in own) / len(own)
        fewer = sum(none[row["query"]]["bytes_scanned"] - row["bytes_scanned"] for row in own) / len(own)
        label = build["index"]
        findings += [
            Finding(f"{label}: planning with metadata, share of the time", 100 * share, "%", '"a small fraction"'),
            Finding(
                f"{label}: time that a query saves / time of indexing",
                saved / build["build_seconds"],
                "x",
                "0.3x: paid back after about 3 queries",
            ),
            Finding(
                f"{label}: bytes that a query saves / bytes of the indexed column",
                fewer / build["column_bytes"],
                "x",
                "over 15x: paid back after one query",
                1.0,
                True,
            ),
        ]
    return findings


def plot(record: Record) -> Figure:
    """Draw time and bytes as stacked bars, metadata below and data above, and the parts of planning."""
    figure, (left, right, planning_axis) = plots.panels(3, width=5.2, height=4.2)
    timed = [row for row in record.rows if "query" in row]
    labels = list(dict.fromkeys(row["index"] for row in timed))
    queries = list(dict.fromkeys(row["query"] for row in timed))
    found = {(row["query"], row["index"]): row for row in timed}
    width = 0.8 / len(labels)
    for number, label in enumerate(labels):
        places = [group + (number - (len(labels) - 1) / 2) * width for group in range(len(queries))]
        of_label = [found[query, label] for query in queries]
        planning = [row["planning_seconds"] for row in of_label]
        rest = [row["seconds"]["median"] - row["planning_seconds"] for row in of_label]
        left.bar(places, planning, width, color=plots.GREY, label="metadata" if number == 0 else None)
        left.bar(places, rest, width, bottom=planning, label=label, color=plots.COLOURS[number])
        metadata = [row["metadata_bytes_read"] / 1e6 for row in of_label]
        data = [max(row["bytes_scanned"] / 1e6 - m, 0) for row, m in zip(of_label, metadata, strict=True)]
        right.bar(places, metadata, width, color=plots.GREY)
        right.bar(places, data, width, bottom=metadata, color=plots.COLOURS[number])
    for axis, title in ((left, "seconds (median)"), (right, "MB scanned")):
        axis.set_xticks(range(len(queries)), queries)
        axis.set_ylabel(title)
        axis.grid(visible=False, axis="x")
    plots.legend_below(left, 3)
    bottom = [0.0] * (len(labels) - 1)
    for part in PARTS:
        own = [1e3 * mean(found[query, label]["planning_parts"][part] for query in queries) for label in labels[:-1]]
        planning_axis.bar(labels[:-1], own, 0.6, bottom=bottom, label=part)
        bottom = [a + b for a, b in zip(bottom, own, strict=True)]
    planning_axis.set_ylabel("planning in ms (mean of the queries)")
    planning_axis.grid(visible=False, axis="x")
    plots.legend_below(planning_axis)
    return figure
