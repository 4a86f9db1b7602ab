"""The Spark session of a benchmark, and what several of them do with it."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import skipstone
from benchmarks import data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession


@contextmanager
def session(
    *, driver_memory: str = "4g", metadata: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Return a session on all cores, with Skipstone and otherwise Spark's defaults; ``settings`` win over these.

    Metadata goes to a folder of its own, gone afterwards unless it is given: two runs at once, or the leavings of one
    that was killed, must not meet in the generated data, which is kept.
    """
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[*]")
        .appName("skipstone-benchmarks")
        .config("spark.driver.memory", driver_memory)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
    )
    with tempfile.TemporaryDirectory(prefix="skipstone-metadata-", dir=data.folder()) as folder:
        builder = builder.config("spark.skipstone.location", f"file:{metadata or folder}")
        for name, value in (settings or {}).items():
            builder = builder.config(name, value)
        spark = skipstone.configure(builder).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield spark
        finally:
            spark.stop()


def in_new_process(task: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function gives in a new process of its own, which has nothing in memory and a JVM of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(task, *arguments).result()


def enable(spark: SparkSession, on: bool) -> None:
    """Turn skipping on or off for the queries that follow."""
    spark.conf.set("spark.skipstone.enabled", str(on).lower())


def optimize(df: DataFrame) -> None:
    """Plan a query up to and with the optimizer, where skipping is decided."""
    df._jdf.queryExecution().optimizedPlan()


def plan(df: DataFrame) -> None:
    """Plan a query completely, without running it."""
    df._jdf.queryExecution().executedPlan()


def heap_used(spark: SparkSession) -> int:
    """Return the bytes that live in the JVM's heap after a collection."""
    jvm: Any = spark._jvm
    for _ in range(3):
        gc.collect()
        jvm.System.gc()
    return int(jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed())
