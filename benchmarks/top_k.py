"""The latest ten events: with top-k, on the one object that has them, given by hand, and without skipping."""

from __future__ import annotations

from typing import TYPE_CHECKING

import skipstone
from benchmarks import data
from benchmarks.measures import Row, Sample, Subject, interleave, ratio
from benchmarks.session import enable, session
from skipstone import Dataset, MinMaxIndex

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SPEEDUP = 30
TARGET = 1.5


def measure(*, small: bool) -> list[Row]:
    """Run ``ORDER BY ts DESC LIMIT 10`` in the three ways, and ``WHERE … LIMIT 10`` in two."""
    generated = data.events(1_024 if small else 8_192)
    with session() as spark:
        Dataset.for_path(spark, generated.path).create_indexes(MinMaxIndex("ts"), MinMaxIndex("account"))
        everything = spark.read.parquet(generated.path)
        given = spark.read.parquet(f"{generated.path}/part-{generated.objects - 1:07d}.parquet")

        def latest(df: DataFrame) -> list[object]:
            return df.orderBy("ts", ascending=False).limit(10).collect()

        def some(df: DataFrame) -> list[object]:
            return df.where("account > 0").limit(10).collect()

        answer = latest(everything)
        with skipstone.skipping_stats(spark) as stats:
            latest(everything)
            some(everything)
        if latest(given) != answer or [s.objects.kept for s in stats] != [1, 1]:
            msg = f"the latest events are not where they should be: {stats}"
            raise AssertionError(msg)
        on, off = (lambda: enable(spark, True)), (lambda: enable(spark, False))
        taken = interleave(
            {
                "top-k": Subject(lambda: latest(everything), on),
                "by hand": Subject(lambda: latest(given), off),
                "any ten": Subject(lambda: some(everything), on),
            },
            repeats=10 if small else 30,
            warmups=5,
        )
        full = interleave(
            {
                "everything": Subject(lambda: latest(everything), off),
                "any ten of all": Subject(lambda: some(everything), off),
            },
            repeats=1 if small else 3,
        )
        with skipstone.skipping_stats(spark) as stats:
            on()
            for _ in range(20):
                latest(everything)
        planning = Sample(tuple(s.planning_seconds for s in stats))
    conditions = f"{generated}, laid out and indexed by ts; one object has the latest ten; warm"
    details = {"planning": planning.described()}
    return [
        ratio(
            "ORDER BY ts DESC LIMIT 10 with top-k / the same on the hand-given object",
            taken["top-k"],
            taken["by hand"],
            TARGET,
            conditions,
            details=details,
        ),
        Row(
            "… without skipping / with top-k",
            full["everything"].median / taken["top-k"].median,
            "x",
            None if small else SPEEDUP,
            conditions,
            at_least=True,
            details={"of_best": full["everything"].low / taken["top-k"].low},
        ),
        Row("… with top-k", taken["top-k"].median, "s", None, conditions),
        Row("… by plain Spark, without skipping", full["everything"].median, "s", None, conditions),
        Row("… planning", planning.median, "s", None, conditions),
        Row("WHERE account > 0 LIMIT 10, with top-k", taken["any ten"].median, "s", None, conditions),
        Row("… by plain Spark, without skipping", full["any ten of all"].median, "s", None, conditions),
    ]
