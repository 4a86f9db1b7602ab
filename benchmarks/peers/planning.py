"""Planning alone on very many objects, down to the tasks and before any of them runs: Iceberg, Spark, Skipstone.

Both plan on the same small files.  Iceberg reads its manifests for each query; Spark lists files once for a DataFrame,
which is measured beside, and Skipstone matches that listing to its metadata at the first query.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import skipstone
from benchmarks.experiments.record import Finding
from benchmarks.measures import Subject, interleave
from benchmarks.peers.small_files import predicate, small_files
from benchmarks.peers.worker import peer_tables
from benchmarks.session import enable, session
from skipstone import Dataset, MinMaxIndex

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from benchmarks.conditions import Conditions, Place
    from benchmarks.peers.worker import PeerTables

__all__ = ["findings", "measure"]

TARGET, TARGET_OBJECTS = 5, 100_000
ROUNDS = 10


def measure(objects: int, conditions: Conditions) -> dict[str, Any]:
    """Time planning alone, down to the tasks, in Iceberg and in Spark with and without Skipstone."""
    generated = small_files(objects)
    with conditions.place(generated) as place, _both(place) as (spark, tables):
        started = time.perf_counter()
        everything = spark.read.parquet(place.root)
        listing = time.perf_counter() - started
        numbers = itertools.count()

        def plan() -> None:
            df = everything.where(predicate(objects, next(numbers)))
            df._jdf.queryExecution().toRdd().getNumPartitions()

        def plan_iceberg() -> None:
            tables("plan", table="ice.db.small", predicate=predicate(objects, next(numbers)))

        with skipstone.skipping_stats(spark) as stats:
            started = time.perf_counter()
            plan()
            first = time.perf_counter() - started
        tasks = tables("plan", table="ice.db.small", predicate=predicate(objects, 0))
        if (stats[-1].objects.kept, tasks) != (1, 1):
            msg = f"one object is enough: {stats[-1].objects}, and Iceberg plans {tasks} tasks"
            raise AssertionError(msg)
        taken = interleave(
            {
                "Skipstone": Subject(plan, lambda: enable(spark, True)),
                "Iceberg": Subject(plan_iceberg),
                "Spark": Subject(plan, lambda: enable(spark, False)),
            },
            repeats=ROUNDS,
            warmups=5,
        )
    described = {name: sample.described() for name, sample in taken.items()}
    return {"objects": objects, "listing": listing, "first": first, "seconds": described}


@contextmanager
def _both(place: Place) -> Iterator[tuple[SparkSession, PeerTables]]:
    """Return both Sparks, with the files indexed in one and taken in by the other."""
    with session(settings=place.settings) as spark, peer_tables(place) as tables:
        Dataset.for_path(spark, place.root).create_indexes(*map(MinMaxIndex, ("a", "b", "ts")))
        tables("make_iceberg", path=place.root, name="small", partitions=None)
        yield spark, tables


def findings(planned: dict[str, Any]) -> list[Finding]:
    """Return planning as ratios."""
    objects, seconds = planned["objects"], planned["seconds"]
    ours = seconds["Skipstone"]
    note = (
        f"{seconds['Iceberg']['median']:.3f} s against {ours['median']:.3f} s; Spark's own listing, made once "
        f"({planned['listing']:.1f} s), and the first query of a listing ({planned['first']:.1f} s) excluded"
    )
    target = TARGET if objects >= TARGET_OBJECTS else None
    spread = seconds["Iceberg"]["low"] / ours["high"], seconds["Iceberg"]["high"] / ours["low"]
    what = f"planning alone, {objects:,} objects, one needed"
    return [
        Finding(
            f"{what}: Iceberg / Skipstone",
            seconds["Iceberg"]["median"] / ours["median"],
            "x",
            target=target,
            at_least=True,
            low=spread[0],
            high=spread[1],
            note=note,
        ),
        Finding(f"{what}: Skipstone", 1_000 * ours["median"], "ms", low=1_000 * ours["low"], high=1_000 * ours["high"]),
        Finding(f"{what}: Spark without skipping", 1_000 * seconds["Spark"]["median"], "ms"),
    ]
