"""A count of a day: from metadata, by skipping alone, without skipping, and what planning the query alone takes.

Beside it what Spark takes for the least that there is: ten rows that it makes itself, in one task, and their count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import skipstone
from benchmarks import data
from benchmarks.measures import Row, Subject, interleave, ratio
from benchmarks.session import enable, plan, session
from skipstone import Dataset, MinMaxIndex

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TARGET = 2.0
_DAY = 86_400
_ROWS = 1_000  # an object, one for each second
_COUNT = "count(*) of a day"


def measure(*, small: bool) -> list[Row]:
    """Count the rows of a day, of everything, and by day's hours."""
    generated = data.events(1_024 if small else 8_192)
    with session() as spark:
        Dataset.for_path(spark, generated.path).create_indexes(MinMaxIndex("ts"), MinMaxIndex("account"))
        spark.read.parquet(generated.path).createOrReplaceTempView("events")
        spark.range(0, 10, 1, 1).createOrReplaceTempView("ten")
        start = data.YEAR_2024 + _DAY
        whole = data.YEAR_2024 + 100 * _ROWS

        def counted(start: int, seconds: int) -> DataFrame:
            span = f"ts >= timestamp_seconds({start}) AND ts < timestamp_seconds({start + seconds})"
            return spark.sql(f"SELECT count(*) FROM events WHERE {span}")

        def of_a_day() -> DataFrame:
            return counted(start, _DAY)

        def of_whole_objects() -> DataFrame:
            return counted(whole, 86 * _ROWS)

        def extremes() -> list[object]:
            return spark.sql("SELECT count(*), min(ts), max(ts), max(account) FROM events").collect()

        with skipstone.skipping_stats(spark) as stats:
            if of_a_day().collect()[0][0] != _DAY:
                msg = "a day has as many events as seconds"
                raise AssertionError(msg)
            extremes()
            of_whole_objects().collect()
        taken = interleave(
            {
                "metadata": Subject(lambda: of_a_day().collect(), lambda: _use(spark, "true")),
                "planning": Subject(lambda: plan(of_a_day()), lambda: _use(spark, "true")),
                "whole": Subject(lambda: of_whole_objects().collect(), lambda: _use(spark, "true")),
                "planning whole": Subject(lambda: plan(of_whole_objects()), lambda: _use(spark, "true")),
                "filters": Subject(lambda: of_a_day().collect(), lambda: _use(spark, "false")),
                "all": Subject(extremes, lambda: _use(spark, "true")),
                "rows": Subject(lambda: spark.sql("SELECT id FROM ten").collect()),
                "counted": Subject(lambda: spark.sql("SELECT count(*) FROM ten").collect()),
            },
            repeats=10 if small else 30,
            warmups=5,
        )
        plain = interleave(
            {
                "day": Subject(lambda: of_a_day().collect(), lambda: enable(spark, False)),
                "all": Subject(extremes, lambda: enable(spark, False)),
            },
            repeats=1 if small else 3,
        )
    told = [s.aggregates.answered for s in stats if s.aggregates is not None]
    conditions = f"{generated}, laid out and indexed by ts; {told[0]} objects answered, the ends of the day read; warm"
    everything = f"{generated}; {told[1]} objects answered"
    return [
        ratio(f"{_COUNT} / planning alone", taken["metadata"], taken["planning"], TARGET, conditions),
        ratio(
            "count(*) of 86 whole objects / planning alone",
            taken["whole"],
            taken["planning whole"],
            TARGET,
            f"{generated}; {told[2]} objects answered, none read",
        ),
        Row(
            "… by filters alone / from metadata",
            taken["filters"].median / taken["metadata"].median,
            "x",
            None,
            conditions,
        ),
        Row(
            "… without skipping / from metadata", plain["day"].median / taken["metadata"].median, "x", None, conditions
        ),
        *(
            Row(what, taken[name].median, "s", None, conditions, details={"of_best": taken[name].low})
            for what, name in (
                (f"{_COUNT}, from metadata", "metadata"),
                ("… planning alone", "planning"),
                ("count(*) of 86 whole objects", "whole"),
                ("ten rows that Spark makes itself, planned and run", "rows"),
                ("… their count", "counted"),
            )
        ),
        Row("count, min and max of everything", taken["all"].median, "s", None, everything),
        Row("… without skipping / from metadata", plain["all"].median / taken["all"].median, "x", None, everything),
    ]


def _use(spark: SparkSession, aggregates: str) -> None:
    """Skip, and let metadata answer or not."""
    enable(spark, True)
    spark.conf.set("spark.skipstone.aggregates", aggregates)
