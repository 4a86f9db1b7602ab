"""Metadata that one query for one value reads, against all that is stored: in a new process, nothing cached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import skipstone
from benchmarks.datasets import database_logs
from benchmarks.experiments import plots, workloads
from benchmarks.experiments.metadata_places import located, make_place
from benchmarks.experiments.record import Finding, Record
from benchmarks.session import in_new_process, optimize, session
from skipstone import BloomFilterIndex, Dataset, HybridIndex, Index, ValueListIndex

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.conditions import Conditions
    from benchmarks.experiments.record import Scale

NAME = "metadata_read"
TITLE = "Metadata read by one equality query"
FIGURE = "beyond the paper"
PAPER = (
    "The paper reads all metadata of an index for every query. Here a query for one value should read at most 5 % of "
    "what is stored, for BloomFilter, ValueList and Hybrid at 4,000 objects."
)
INDEXES: tuple[Index, ...] = (ValueListIndex("db_name"), BloomFilterIndex("db_name"), HybridIndex("db_name"))
MOST_READ = 5.0  # percent


def run(scale: Scale, conditions: Conditions) -> Record:
    """Store each index alone, then ask for a value in a process that has read nothing yet."""
    generated = database_logs.flat(scale.flat)
    files = workloads.objects(generated)
    value = workloads.column_of(files[len(files) // 2], "db_name")[0].as_py()
    rows = []
    with conditions.place(generated) as place:
        stored = in_new_process(_store, place.root, place.settings)
        for index in INDEXES:
            asked = in_new_process(_ask, place.root, located(place.settings, index.type_name), value)
            rows.append({"index": index.name, "bytes_stored": stored[index.name], **asked})
    condition = (
        f"db_name with the paper's distinct values in {generated}, few more rows than these. One equality query in a "
        f"new process, right after the session has started. Storage: {conditions.described}."
    )
    return Record(NAME, TITLE, FIGURE, condition, rows, _findings(rows))


def _store(root: str, settings: dict[str, str]) -> dict[str, int]:
    """Build the indexes, each by itself; give the bytes that each keeps."""
    stored = {}
    with session(settings=settings) as spark:
        for index in INDEXES:
            make_place(spark, settings, index.type_name)
            dataset = Dataset.for_path(spark, root)
            dataset.create_indexes(index)
            stored[index.name] = int(dataset.describe().first()["bytes"])
    return stored


def _ask(root: str, settings: dict[str, str], value: str) -> dict[str, Any]:
    """Plan two queries for a value, the first with nothing in memory."""
    with session(settings=settings) as spark:
        df = spark.read.parquet(root)
        with skipstone.skipping_stats(spark) as stats:
            optimize(df.where(df.db_name == value))
            optimize(df.where(df.db_name == value))
        cold, warm = stats
    return {
        "metadata_bytes_read": cold.metadata_bytes_read,
        "planning_seconds": cold.planning_seconds,
        "seconds": cold.seconds,
        "again_bytes_read": warm.metadata_bytes_read,
        "again_planning_seconds": warm.planning_seconds,
        "objects": cold.objects.total,
        "kept": cold.objects.kept,
    }


def _findings(rows: list[dict[str, Any]]) -> list[Finding]:
    """Hold the share that was read against the target."""
    findings = []
    for row in rows:
        share = 100 * row["metadata_bytes_read"] / row["bytes_stored"]
        findings += [
            Finding(f"{row['index']}: metadata read / stored", share, "%", "100 %", MOST_READ),
            Finding(f"{row['index']}: metadata stored", row["bytes_stored"] / 1e6, "MB"),
            Finding(f"{row['index']}: planning the first query", 1_000 * row["planning_seconds"], "ms"),
            Finding(f"{row['index']}: planning the next", 1_000 * row["again_planning_seconds"], "ms"),
        ]
    return findings


def plot(record: Record) -> Figure:
    """Draw bytes stored and bytes read."""
    figure, (axis,) = plots.panels(width=6)
    series = {
        "stored": [row["bytes_stored"] / 1e6 for row in record.rows],
        "read by one query": [row["metadata_bytes_read"] / 1e6 for row in record.rows],
    }
    plots.bars(axis, [row["index"] for row in record.rows], series, log=True)
    axis.set_ylabel("metadata in MB")
    axis.legend()
    return figure
