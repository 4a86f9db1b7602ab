"""A needle in many objects: a query that three objects can answer, against the same query on those three, by hand."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import skipstone
from benchmarks import data
from benchmarks.measures import Row, Sample, Subject, interleave, ratio
from benchmarks.session import enable, session
from skipstone import Dataset, MinMaxIndex

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TARGET = 1.3


def measure(*, small: bool) -> list[Row]:
    """Run the query over all objects with skipping, over the three, and over all without skipping."""
    generated = data.weather(1_024 if small else 8_192)
    predicate, numbers = data.needle(generated.objects)
    given_paths = [f"{generated.path}/part-{number:07d}.parquet" for number in numbers]
    with session() as spark:
        dataset = Dataset.for_path(spark, generated.path)
        dataset.create_indexes(MinMaxIndex("lat"), MinMaxIndex("lng"), MinMaxIndex("ts"))
        started = time.perf_counter()
        everything = spark.read.parquet(generated.path)
        listing = time.perf_counter() - started
        given = spark.read.parquet(*given_paths)

        def query(df: DataFrame) -> list[object]:
            return df.where(predicate).selectExpr("count(*)", "avg(temp)", "max(wind_gust)").collect()

        started = time.perf_counter()
        answer = query(everything)
        first = time.perf_counter() - started
        with skipstone.skipping_stats(spark) as stats:
            query(everything)
        if query(given) != answer or stats[-1].objects.kept != len(numbers):
            msg = f"the needle is not where it should be: {stats[-1]}"
            raise AssertionError(msg)
        on, off = (lambda: enable(spark, True)), (lambda: enable(spark, False))
        taken = interleave(
            {
                "skipping": Subject(lambda: query(everything), on),
                "by hand": Subject(lambda: query(given), off),
            },
            repeats=10 if small else 30,
            warmups=5,
        )
        full = interleave({"everything": Subject(lambda: query(everything), off)}, repeats=1 if small else 3)
        with skipstone.skipping_stats(spark) as stats:
            on()
            for _ in range(20):
                query(everything)
        planning = Sample(tuple(s.planning_seconds for s in stats))
    conditions = (
        f"{generated}, 33 columns, indexed by lat, lng and ts; {len(numbers)} objects match; warm; "
        f"listing (made once, {listing:.2f} s) and first query ({first:.2f} s) excluded"
    )
    details = {
        "listing_seconds": listing,
        "first_query_seconds": first,
        "planning": planning.described(),
        "without_skipping": full["everything"].described(),
    }
    skipping = taken["skipping"]
    return [
        ratio(
            "needle query with skipping / the same on the hand-given files",
            skipping,
            taken["by hand"],
            TARGET,
            conditions,
            details=details,
        ),
        Row("… with skipping", skipping.median, "s", None, conditions, low=skipping.low, high=skipping.high),
        Row("… by plain Spark, without skipping", full["everything"].median, "s", None, conditions),
        Row("… Spark's listing, made once", listing, "s", None, conditions),
    ]
