"""The first query of a new process: what planning takes while nothing is in memory, at 8,192 objects.

Each index is stored alone, with the paper's distinct values in every object.  Then new processes take turns, one for
each index in every round: a session starts, Spark lists the files, and one query for a value is planned at once.  The
figure is what the rule says that it took, without Spark's listing; the next query of the process stands beside.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import skipstone
from benchmarks import data
from benchmarks.datasets import database_logs
from benchmarks.experiments.workloads import column_of, objects
from benchmarks.measures import Row, Sample
from benchmarks.session import in_new_process, optimize, session
from skipstone import BloomFilterIndex, Dataset, Index, MinMaxIndex, ValueListIndex

if TYPE_CHECKING:
    from collections.abc import Sequence

OBJECTS = 8_192
ROUNDS = 7
TARGET = 150
"""Milliseconds."""
INDEXES: tuple[Index, ...] = (MinMaxIndex("db_name"), ValueListIndex("db_name"), BloomFilterIndex("db_name"))


def measure(*, small: bool) -> list[Row]:
    """Store the indexes, then let new processes ask in turn."""
    generated = database_logs.flat(512 if small else OBJECTS)
    files = objects(generated)
    value = column_of(files[len(files) // 2], "db_name")[0].as_py()
    asked: dict[str, list[dict[str, Any]]] = {index.name: [] for index in INDEXES}
    with tempfile.TemporaryDirectory(prefix="skipstone-metadata-", dir=data.folder()) as folder:
        stored = in_new_process(_store, generated.path, folder)
        for number in range(2 if small else ROUNDS):
            for index in INDEXES if number % 2 == 0 else reversed(INDEXES):
                asked[index.name].append(in_new_process(_ask, generated.path, _place(folder, index), value))
    conditions = (
        f"{generated}, the paper's distinct values in each; one index on db_name, one equality; a new process for each "
        "figure, asked as soon as its session has started and Spark has listed; files in the page cache"
    )
    rows: list[Row] = []
    for name, answers in asked.items():
        rows += _rows(name, answers, stored[name], conditions)
    return rows


def _place(folder: str, index: Index) -> str:
    """Return where the metadata of an index lies."""
    place = Path(folder, index.type_name)
    place.mkdir(exist_ok=True)
    return str(place)


def _store(root: str, folder: str) -> dict[str, int]:
    """Build the indexes, each in a place of its own; give the bytes that each keeps."""
    stored = {}
    for index in INDEXES:
        with session(metadata=_place(folder, index)) as spark:
            dataset = Dataset.for_path(spark, root)
            dataset.create_indexes(index)
            stored[index.name] = int(dataset.describe().first()["bytes"])
    return stored


def _ask(root: str, metadata: str, value: str) -> dict[str, Any]:
    """Plan two queries for a value, the first with nothing in memory."""
    with session(metadata=metadata) as spark:
        started = time.perf_counter()
        df = spark.read.parquet(root)
        listing = time.perf_counter() - started
        with skipstone.skipping_stats(spark) as stats:
            started = time.perf_counter()
            optimize(df.where(df.db_name == value))
            elapsed = time.perf_counter() - started
            optimize(df.where(df.db_name == value))
        first, second = stats
    if not first.used:
        msg = f"the index was not used: {first.not_used}"
        raise AssertionError(msg)
    return {
        "planning": first.planning_seconds,
        "parts": first.seconds,
        "bytes_read": first.metadata_bytes_read,
        "optimizer": elapsed,
        "listing": listing,
        "second": second.planning_seconds,
        "objects": first.objects.total,
        "kept": first.objects.kept,
    }


def _rows(name: str, asked: Sequence[dict[str, Any]], stored: int, conditions: str) -> list[Row]:
    """Make a row of the first query of all processes, and one of the second."""
    first, second, optimizer, listing = (
        Sample(tuple(answer[what] for answer in asked)) for what in ("planning", "second", "optimizer", "listing")
    )
    last = asked[-1]
    parts = {part: 1_000 * Sample(tuple(a["parts"][part] for a in asked)).median for part in last["parts"]}
    details = {
        "processes": len(asked),
        "parts_ms": parts,
        "optimizer_ms": 1_000 * optimizer.median,
        "sparks_listing_ms": 1_000 * listing.median,
        "metadata_bytes": stored,
        "bytes_read": last["bytes_read"],
        "kept": last["kept"],
    }
    return [
        _row(f"{name}: planning the first query of a process", first, conditions, TARGET, details),
        _row(f"{name}: … the next", second, conditions, None, {}),
    ]


def _row(what: str, taken: Sample, conditions: str, target: float | None, details: dict[str, Any]) -> Row:
    low, high = 1_000 * taken.low, 1_000 * taken.high
    return Row(what, 1_000 * taken.median, "ms", target, conditions, low=low, high=high, details=details)
