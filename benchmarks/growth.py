"""How things grow with the number of objects: ``python -m benchmarks.growth [COUNT …] [--page]``.

For each number of objects, in a process of its own: planning, the first query of a listing, a refresh that finds
nothing new (and where its time goes), a refresh of 1 % new objects, memory, bytes of metadata.  Files are hollow and
their metadata is made up, but for the new objects, which are read.  A number that these sources have measured is not
run again: what was interrupted is continued.  ``--page`` writes ``docs/experiments.md``, with table and plot.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

import skipstone
from benchmarks import data, machine, synthetic
from benchmarks.measures import Sample
from benchmarks.memory import _peak, _resident
from benchmarks.session import heap_used, optimize, session
from skipstone import Dataset
from skipstone.engines.spark.source import SparkSource
from skipstone.indexing import refresh
from skipstone.stores.parquet.store import ParquetStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure
    from pyspark.sql import SparkSession

COUNTS = (1_000, 10_000, 100_000, 1_000_000)
RESULTS = Path(__file__).parent / "results" / "growth"
REPEATS = 30
TITLE = "Growth with the number of objects"
TEXT = """Planning, the first query, refreshes, memory and bytes of metadata by the number of objects, each in a process
of its own, by `python -m benchmarks.growth --page`. Files are hollow and their metadata is made up, three MinMax
indexes; the new objects of a refresh are real and are read. A slope is that from the second largest number to the
largest: 1 is in proportion to the objects, 0 is constant."""
ROWS = {
    "planning_ms": "planning a query (median)",
    "first_ms": "first query of a listing, without Spark's listing",
    "listing_ms": "Spark's listing",
    "nothing_new_ms": "refresh that finds nothing new",
    "refresh_ms": "refresh of 1 % new objects",
    "python_mb": "memory in Python, MB",
    "jvm_mb": "memory in the JVM, MB",
    "metadata_mb": "metadata, three MinMax indexes, MB",
}


def main() -> None:
    """Run what is missing, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("counts", nargs="*", type=int, default=COUNTS)
    parser.add_argument("--page", action="store_true", help="write the page of the experiments with what was found")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        options.child.write_text(json.dumps(measure(options.counts[0]), indent=2) + "\n")
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    for count in options.counts:
        file = RESULTS / f"{count}.json"
        if not file.exists() or json.loads(file.read_text()).get("sources") != machine.sources():
            command = [sys.executable, "-m", "benchmarks.growth", str(count), "--child", str(file)]
            subprocess.run(command, check=True)
    print(table(results()))
    if options.page:
        from benchmarks.experiments import page

        print(page.write(), file=sys.stderr)


def results() -> list[dict[str, Any]]:
    """Return what was measured of each number of objects, the smallest first."""
    return [json.loads(file.read_text()) for file in sorted(RESULTS.glob("*.json"), key=lambda f: int(f.stem))]


def measure(count: int) -> dict[str, Any]:
    """Measure one number of objects."""
    load = os.getloadavg()[0]
    with (
        synthetic.many_indexed(count, 100) as (folder, (generated, few)),
        session(driver_memory="8g", metadata=folder) as spark,
    ):
        reader = spark.read.schema(data.MANY_SCHEMA)
        small = reader.parquet(few.path)
        for number in range(20):  # whatever a first query loads and compiles is not per object
            optimize(small.where(_predicate(few.objects, number)))
        started = time.perf_counter()
        df = reader.parquet(generated.path)
        listing = time.perf_counter() - started
        heap, resident = heap_used(spark), _resident()
        with skipstone.skipping_stats(spark) as stats:
            for number in range(REPEATS + 1):
                optimize(df.where(_predicate(count, number)))
        first, *planned = (entry.planning_seconds for entry in stats)
        found = {
            "objects": count,
            "load": load,
            "planning_ms": 1_000 * Sample(tuple(planned)).median,
            "first_ms": 1_000 * first,
            "listing_ms": 1_000 * listing,
            "python_mb": (_resident() - resident) / 1e6,
            "jvm_mb": (heap_used(spark) - heap) / 1e6,
        }
        dataset = Dataset.for_path(spark, generated.path, schema=data.MANY_SCHEMA)
        found["metadata_mb"] = sum(row["bytes"] for row in dataset.describe().collect()) / 1e6
        parts, taken = _nothing_new(dataset)
        found |= {"nothing_new_ms": 1_000 * taken, "nothing_new_parts_ms": parts}
        found["refresh_ms"] = 1_000 * _refreshed(spark, generated.path, count)
        found["peak_python_mb"] = _peak() / 1e6
    return found | {"machine": machine.describe_machine(), "sources": machine.sources()}


def _predicate(count: int, number: int) -> str:
    return f"a = {5 * count} AND b < 2 AND ts > timestamp'2000-01-01' AND other <> {number}"


def _nothing_new(dataset: Dataset) -> tuple[dict[str, float], float]:
    """Refresh twice, and say of the second where its time goes, in milliseconds."""
    dataset.refresh()
    spent: dict[str, float] = {}
    places = {
        "listing": (SparkSource, "list_objects"),
        "metadata read": (ParquetStore, "latest"),
        "object table read": (ParquetStore, "objects"),
        "states compared": (refresh, "_current_objects"),
        "vanished looked for": (refresh, "_vanished"),
    }
    with _timed(places, spent):
        started = time.perf_counter()
        report = dataset.refresh()
        taken = time.perf_counter() - started
    if report.indexed:
        raise AssertionError(report)
    return {**spent, "other": 1_000 * taken - sum(spent.values())}, taken


@contextmanager
def _timed(places: dict[str, tuple[Any, str]], spent: dict[str, float]) -> Iterator[None]:
    """Add up what calls take, in milliseconds; none of these calls another."""
    if not places:
        yield
        return
    rest = dict(places)
    name, (owner, attribute) = rest.popitem()
    real = getattr(owner, attribute)

    def timed(*args: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return real(*args, **named)
        finally:
            spent[name] = spent.get(name, 0.0) + 1_000 * (time.perf_counter() - started)

    with mock.patch.object(owner, attribute, timed), _timed(rest, spent):
        yield


def _refreshed(spark: SparkSession, folder: str, count: int) -> float:
    """Refresh with one object in a hundred new; the new ones are taken away again."""
    new = [Path(folder) / f"new-{number:07d}.parquet" for number in range(max(1, count // 100))]
    columns = {"a": [1, 2], "b": [0.5, 1.5], "ts": pa.array([0, 1], pa.timestamp("us", tz="UTC")), "other": [3, 4]}
    try:
        for path in new:
            pq.write_table(pa.table(columns), path)
            os.utime(path, (data.WRITTEN, data.WRITTEN))
        dataset = Dataset.for_path(spark, folder, schema=data.MANY_SCHEMA)
        started = time.perf_counter()
        report = dataset.refresh()
        taken = time.perf_counter() - started
        if report.indexed != len(new):
            raise AssertionError(report)
        return taken
    finally:
        for path in new:
            path.unlink(missing_ok=True)


def table(found: list[dict[str, Any]]) -> str:
    """Write what was found as a table, with the slope of each row: 1 is in proportion to the objects, 0 is constant."""
    heads = [f"{one['objects']:,}" for one in found]
    lines = ["| | " + " | ".join(heads) + " | slope |", "|---|" + "---|" * (len(heads) + 1)]
    for key, what in ROWS.items():
        unit = "" if key.endswith("_mb") else ", ms"
        values = " | ".join(f"{one[key]:,.3g}" if one[key] < 100 else f"{one[key]:,.0f}" for one in found)
        lines.append(f"| {what}{unit} | {values} | {_slope(found, key)} |")
    last = found[-1]
    parts = ", ".join(f"{what} {ms:,.0f} ms" for what, ms in last["nothing_new_parts_ms"].items())
    loads = ", ".join(f"{one['load']:.1f}" for one in found)
    here, commits = last["machine"], ", ".join(dict.fromkeys(one["machine"]["commit"] for one in found))
    told = (
        f"Nothing new at {last['objects']:,} objects: {parts}. {here['cores']} cores ({here['processor']}), "
        f"{here['memory_gb']:.0f} GB, Spark {here['pyspark']}; loads at the start {loads}; commit {commits}."
    )
    return "\n".join([*lines, "", told])


def _slope(found: list[dict[str, Any]], key: str) -> str:
    """Return the exponent by which a row grows from the second largest number to the largest."""
    values = [(one["objects"], one[key]) for one in found if one[key] > 0][-2:]
    if len(values) < len(found[-2:]) or len(values) < 2:
        return ""
    (fewer, less), (most, more) = values
    return f"{math.log(more / less) / math.log(most / fewer):.2f}"


def plot(found: list[dict[str, Any]]) -> Figure:
    """Draw the rows that are times, on logarithmic axes."""
    from benchmarks.experiments import plots

    figure, (axis,) = plots.panels(width=6)
    for key, what in ROWS.items():
        if key.endswith("_ms"):
            axis.plot([one["objects"] for one in found], [one[key] for one in found], marker="o", label=what)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("objects")
    axis.set_ylabel("milliseconds")
    axis.legend(fontsize="small")
    return figure


if __name__ == "__main__":
    main()
