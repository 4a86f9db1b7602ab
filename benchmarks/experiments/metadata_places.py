"""Metadata of several indexes on the same data, each in a place of its own, so that a query uses one of them only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCATION = "spark.skipstone.location"


def located(settings: dict[str, str], label: str) -> dict[str, str]:
    """Return the settings with which a session uses the metadata of one place."""
    return {**settings, LOCATION: f"{settings[LOCATION]}/{label}"}


def locate(spark: SparkSession, settings: dict[str, str], label: str) -> None:
    """Let what follows use the metadata of one place."""
    spark.conf.set(LOCATION, located(settings, label)[LOCATION])


def make_place(spark: SparkSession, settings: dict[str, str], label: str) -> None:
    """Make a place, on whatever file system it is, and use it."""
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(located(settings, label)[LOCATION])
    path.getFileSystem(spark._jsc.hadoopConfiguration()).mkdirs(path)
    locate(spark, settings, label)
