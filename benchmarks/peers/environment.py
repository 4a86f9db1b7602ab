"""The environment of Delta and Iceberg, which do not run on the newest Spark."""

from __future__ import annotations

from pathlib import Path

from tests.servers import environments
from tests.servers.downloads import maven

__all__ = ["JARS", "PYSPARK", "S3A", "interpreter", "jars"]

PYSPARK = "4.1.4"
JARS = (
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "io.delta:delta-storage:4.4.0",
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
)
S3A = ("org.apache.hadoop:hadoop-aws:3.4.2", "software.amazon.awssdk:bundle:2.29.52")  # as the Hadoop of that Spark


def interpreter() -> Path:
    """Return the Python of an environment with the peers' Spark."""
    return environments.interpreter(PYSPARK)


def jars(*, s3a: bool) -> list[str]:
    """Return the files of both table formats, and of S3A where it is needed."""
    return [str(maven(coordinate)) for coordinate in (*JARS, *(S3A if s3a else ()))]
