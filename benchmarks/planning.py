"""What skipping adds to the planning of a query, at eight thousand, a hundred thousand and a million objects.

Time is taken to the end of the optimizer, with skipping on and off in turn; the figure is the larger of the difference
of the medians and what the rule itself says it took.  The DataFrame is the same throughout, so that its listing is
matched to the metadata once, before; that first match, and Spark's listing, stand beside.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import skipstone
from benchmarks import data, synthetic
from benchmarks.measures import Row, Sample, Subject, interleave
from benchmarks.session import enable, optimize, session
from skipstone import Dataset, MinMaxIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.data import Generated

# Targets in milliseconds, by number of objects.
TARGETS = {8_192: 20, 100_000: 60, 1_000_000: 300}


def measure(*, small: bool) -> list[Row]:
    """Measure each size in turn."""
    sizes = (1_024, 10_000) if small else tuple(TARGETS)
    weather = data.weather(sizes[0])
    rows: list[Row] = []
    with (
        synthetic.many_indexed(*sizes[1:]) as (folder, hollow),
        session(driver_memory="8g", metadata=folder) as spark,
    ):
        Dataset.for_path(spark, weather.path).create_indexes(*map(MinMaxIndex, ("lat", "lng", "ts")))
        rows += _measure(spark, weather, spark.read.parquet, _weather_predicates(weather.objects), small=small)
        for generated in hollow:
            reader = spark.read.schema(data.MANY_SCHEMA)
            rows += _measure(spark, generated, reader.parquet, _hollow_predicates(generated.objects), small=small)
    return rows


def _weather_predicates(objects: int) -> dict[str, str]:
    """Return predicates by what they do; ``{}`` takes a number, so that no two queries are the same."""
    return {
        "skips all but a few": data.needle(objects)[0] + " AND temp <> {}",
        "skips half": "lat > 0 AND temp <> {}",
        "skips nothing": "lat > -91 AND temp <> {}",
        "no index serves it": "temp > {}",
    }


def _hollow_predicates(objects: int) -> dict[str, str]:
    return {
        "skips all but a few": f"a = {5 * objects} AND b < 2 AND ts > timestamp'2000-01-01' AND other <> {{}}",
        "skips half": "b < 0.5 AND other <> {}",
        "skips nothing": "a >= 0 AND b > -1 AND ts > timestamp'2000-01-01' AND other <> {}",
        "no index serves it": "other > {}",
    }


def _measure(
    spark: SparkSession,
    generated: Generated,
    read: Callable[[str], DataFrame],
    predicates: dict[str, str],
    *,
    small: bool,
) -> list[Row]:
    """Measure one dataset: Spark's listing, the first match, then each kind of query."""
    started = time.perf_counter()
    df = read(generated.path)
    listing = time.perf_counter() - started
    enable(spark, False)
    for number in range(10):
        optimize(df.where(predicates["skips half"].format(-number)))
    enable(spark, True)
    with skipstone.skipping_stats(spark) as stats:
        optimize(df.where(predicates["skips all but a few"].format(-1)))
    first = stats[-1]
    on, off = (lambda: enable(spark, True)), (lambda: enable(spark, False))
    counter = iter(range(1_000_000))
    repeats = 10 if small else 30
    outcomes = {}
    for name, predicate in predicates.items():

        def run(predicate: str = predicate) -> None:
            optimize(df.where(predicate.format(next(counter))))

        with skipstone.skipping_stats(spark) as stats:
            taken = interleave({"on": Subject(run, on), "off": Subject(run, off)}, repeats=repeats, warmups=15)
        told = stats[5:]
        rule = Sample(tuple(s.planning_seconds for s in told))
        outcomes[name] = {
            "kept": told[-1].objects.kept,
            "added_ms": 1_000 * max(rule.median, taken["on"].median - taken["off"].median),
            "rule": rule.described(),
            "parts_ms": {
                part: 1_000 * Sample(tuple(s.seconds[part] for s in told)).median for part in told[-1].seconds
            },
            "on": taken["on"].described(),
            "off": taken["off"].described(),
        }
    worst = max(outcomes, key=lambda name: outcomes[name]["added_ms"])
    hollow = "" if generated.rows else "hollow files, made-up metadata; "
    conditions = f"{generated.objects:,} objects, 3 MinMax columns; {hollow}warm, listing matched; worst of 4 queries"
    return [
        Row(
            f"planning added, {generated.objects:,} objects (worst: {worst})",
            outcomes[worst]["added_ms"],
            "ms",
            TARGETS.get(generated.objects),
            conditions,
            low=1_000 * outcomes[worst]["rule"]["low"],
            high=1_000 * outcomes[worst]["rule"]["high"],
            details=outcomes,
        ),
        Row(
            "… the first query of a listing: metadata read and matched",
            1_000 * first.planning_seconds,
            "ms",
            None,
            conditions,
            details={"parts_ms": {part: 1_000 * seconds for part, seconds in first.seconds.items()}},
        ),
        Row("… Spark's own listing", 1_000 * listing, "ms", None, conditions),
    ]
