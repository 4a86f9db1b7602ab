"""What keys of joins save, and what asking for them costs where they save nothing.

A star of three dimensions whose filters leave one day, one store and a third of the products: eight objects matter.
It runs with keys of joins and without, in turn; filters alone do not reach the fact.  Then one dimension of 100, 1,000
and 100,000 keys, which every object has a value among: the time is what the rule says it took, from the broadcast to
the answer.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import skipstone
from benchmarks import data
from benchmarks.measures import Row, Sample, Subject, interleave
from benchmarks.session import session
from skipstone import Dataset, MinMaxIndex

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Targets in milliseconds, by number of keys.
TARGETS = {100: 15, 1_000: 30, 100_000: 60}

STAR = """
    select /*+ broadcast(days), broadcast(stores), broadcast(products) */ sum(amount), max(note), count(*)
    from fact join days on fact.day = days.day join stores on fact.store = stores.store
        join products on fact.product = products.product
    where days.name = 'day-5' and stores.name = 'store-3' and products.kind = 1"""


def measure(*, small: bool) -> list[Row]:
    """Measure the star, then the question alone."""
    fact = data.star(1_024 if small else 8_192)
    with session(driver_memory="2g" if small else "4g") as spark:
        columns = ("day", "store", "product")
        Dataset.for_path(spark, fact.path).create_indexes(*map(MinMaxIndex, columns))
        spark.read.parquet(fact.path).createOrReplaceTempView("fact")
        for name, count in (("day", 1_024), ("store", data.STORES), ("product", data.PRODUCTS)):
            dimension = spark.range(count).selectExpr(f"id {name}", f"concat('{name}-', id) name", "id % 3 kind")
            dimension.localCheckpoint().createOrReplaceTempView(f"{name}s")
        return [_star(spark, fact.objects, small=small), *_questions(spark, fact.objects, small=small)]


def _star(spark: SparkSession, objects: int, *, small: bool) -> Row:
    """Compare keys of joins with filters alone."""

    def use(joins: str) -> None:
        spark.conf.set("spark.skipstone.joins", joins)

    def run() -> None:
        spark.sql(STAR).collect()

    taken = interleave(
        {"keys": Subject(run, lambda: use("true")), "filters": Subject(run, lambda: use("false"))},
        repeats=3 if small else 7,
        warmups=2,
    )
    use("true")
    run()
    read = next(scan for scan in skipstone.last_query(spark) if scan.joins is not None)
    rounds = [slow / fast for fast, slow in zip(taken["keys"].seconds, taken["filters"].seconds, strict=True)]
    return Row(
        "star of 3 dimensions, keys of joins against filters alone",
        taken["filters"].median / taken["keys"].median,
        "x",
        None if small else 10,
        f"{objects:,} objects of {data.SALES} rows, {read.objects.kept} of them read; 3 MinMax columns",
        at_least=True,
        low=min(rounds),
        high=max(rounds),
        details={
            **{name: sample.described() for name, sample in taken.items()},
            "of_best": taken["filters"].low / taken["keys"].low,
            "cpu_ratio": statistics.median(taken["filters"].cpu) / statistics.median(taken["keys"].cpu),
        },
    )


def _questions(spark: SparkSession, objects: int, *, small: bool) -> list[Row]:
    """Ask for keys of which every object may have one."""
    rows = []
    spark.conf.set("spark.skipstone.joins", "true")
    for keys, target in TARGETS.items():
        dimension = spark.range(0, data.PRODUCTS, data.PRODUCTS // keys).selectExpr("id product")
        dimension.localCheckpoint().createOrReplaceTempView("asked")
        with skipstone.skipping_stats(spark) as stats:
            for _ in range(10 if small else 25):
                query = "select /*+ broadcast(asked) */ count(*) from fact join asked on fact.product = asked.product"
                spark.sql(f"{query} where fact.day = 3").collect()
        told = [scan.joins for scan in stats if scan.joins is not None]
        told = told[len(told) // 3 :]  # warm
        sample = Sample(tuple(joins.seconds for joins in told))
        rows.append(
            Row(
                f"asking for {keys:,} keys, nothing to skip",
                1_000 * sample.median,
                "ms",
                None if small else target,
                f"{objects:,} objects; reading the keys, the planner and the match; warm; {told[-1].skipped} skipped",
                low=1_000 * sample.low,
                high=1_000 * sample.high,
                details={**sample.described(), "of_best": 1_000 * sample.low},
            )
        )
    return rows
