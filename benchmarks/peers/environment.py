"""The environment of Delta and Iceberg, which do not run on the newest Spark: made once, kept in the tests' cache."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

from tests.servers.downloads import CACHE, maven

__all__ = ["JARS", "PYSPARK", "S3A", "interpreter", "jars"]

PYSPARK = "4.1.4"
JARS = (
    "io.delta:delta-spark_4.1_2.13:4.4.0",
    "io.delta:delta-storage:4.4.0",
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
)
S3A = ("org.apache.hadoop:hadoop-aws:3.4.2", "software.amazon.awssdk:bundle:2.29.52")  # as the Hadoop of that Spark


def interpreter() -> Path:
    """Give the Python of an environment with the peers' Spark."""
    home = CACHE / "environments" / f"pyspark-{PYSPARK}"
    if not home.exists():
        fresh = home.with_name(f"{home.name}-{uuid.uuid4().hex}")
        _run(sys.executable, "-m", "venv", str(fresh))
        _run(str(fresh / "bin" / "python"), "-m", "pip", "install", "--quiet", f"pyspark=={PYSPARK}")
        try:
            fresh.rename(home)  # its interpreter is a link, and nothing else of it is used by path
        except OSError:  # another run was first
            if not home.exists():
                raise
    return home / "bin" / "python"


def jars(*, s3a: bool) -> list[str]:
    """Give the files of both table formats, and of S3A where it is needed."""
    return [str(maven(coordinate)) for coordinate in (*JARS, *(S3A if s3a else ()))]


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=1_800)
    if done.returncode:
        msg = f"{' '.join(command[1:])} failed: {done.stderr[-1000:]}"
        raise RuntimeError(msg)
