"""Ways to plan a query now and to run it later."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    Run = Callable[[], list[Any]]


def fresh(df: DataFrame) -> Run:
    """Plan nothing yet."""
    return df.collect


def planned(df: DataFrame) -> Run:
    """Build the executed plan."""
    df._jdf.queryExecution().executedPlan()
    return df.collect


def as_rdd(df: DataFrame) -> Run:
    """Make an RDD, whose partitions nobody has asked for."""
    rdd = df.rdd
    return rdd.collect


def as_listed_rdd(df: DataFrame) -> Run:
    """Make an RDD, files listed."""
    rdd = df.rdd
    rdd.getNumPartitions()
    return rdd.collect


def iterated(df: DataFrame) -> Run:
    """Build the executed plan, run it a partition at a time."""
    df._jdf.queryExecution().executedPlan()
    return lambda: list(df.toLocalIterator())


def cached(df: DataFrame) -> Run:
    """Cache what the first run finds."""
    df.cache()

    def collect() -> list[Any]:
        try:
            return df.collect()
        finally:
            df.unpersist(blocking=True)

    return collect


def again(df: DataFrame) -> Run:
    """Run once before."""
    df.collect()
    return df.collect


def files_asked(df: DataFrame) -> Run:
    """Ask for the files that a query reads, which is planned for that."""
    df.inputFiles()
    return df.collect


def checkpointed(df: DataFrame) -> Run:
    """Ask for a checkpoint that the first run makes."""
    return df.localCheckpoint(eager=False).collect


def exchanged(df: DataFrame) -> Run:
    """Plan an exchange, which is adapted as it runs."""
    query = df.repartition(2)
    query._jdf.queryExecution().executedPlan()
    return query.collect


def exchanged_again(df: DataFrame) -> Run:
    """Run a query with an exchange once before."""
    query = df.repartition(2)
    query.collect()
    return query.collect


def by_workers(df: DataFrame) -> Run:
    """Send rows through Python workers."""
    query = df.mapInArrow(lambda batches: batches, df.schema)
    query._jdf.queryExecution().executedPlan()
    return query.collect


def by_workers_again(df: DataFrame) -> Run:
    """Send rows through Python workers, for the second time."""
    query = df.mapInArrow(lambda batches: batches, df.schema)
    query.collect()
    return query.collect


WAYS = (
    *(fresh, planned, as_rdd, as_listed_rdd, iterated, cached, again, files_asked),
    *(checkpointed, exchanged, exchanged_again, by_workers, by_workers_again),
)
