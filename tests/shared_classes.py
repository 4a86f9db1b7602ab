"""Spark's classes, loaded once: an archive that the JVMs of tests map into memory rather than read from 300 jars.

A JVM with Spark takes nine seconds of processor time until its first query has run, and four with the archive (two
cores, Java 17); the tests start more than a hundred.  The archive is made on first use, and again for another Java or
another pyspark.  Without it, tests are slower and the same.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pyspark

from skipstone.engines.spark.bridge.build import find_java
from tests.servers.downloads import CACHE

__all__ = ["OPTIONS", "archive_options"]

# Sessions of tests live for minutes, several on two cores: the optimising compiler and a parallel garbage collector
# take more time than they give (a third of the JVM's processor time, measured on tests/soundness).  Without that
# compiler Java has 48 MB for compiled code, which thousands of queries fill: then a thread that sweeps it takes a fifth
# of all the time.
OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"

_USES = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
for kind in ("parquet", "orc", "json", "csv"):
    folder = f"{sys.argv[1]}/{kind}"
    spark.range(10).selectExpr("id", "string(id) s").write.format(kind).save(folder)
    df = spark.read.format(kind).schema("id long, s string").load(folder)
    df.where("id = 3 AND s LIKE '3%'").groupBy("s").count().collect()
df.mapInArrow(lambda batches: batches, df.schema).collect()
jvm = spark.sparkContext._gateway.proc
try:
    spark._jvm.java.lang.Runtime.getRuntime().exit(0)
except Exception:
    jvm.wait(300)  # it writes the archive now
"""


def archive_options() -> str:
    """Return the options by which a JVM uses the archive, made if need be; none where it cannot be made."""
    jars = Path(pyspark.__file__).parent / "jars"
    java = subprocess.run([str(find_java()), "-version"], capture_output=True, text=True, check=False).stderr
    key = hashlib.sha256(f"{OPTIONS} {java} {jars} {pyspark.__version__}".encode()).hexdigest()[:16]
    archive = CACHE / "classes" / f"spark-{key}.jsa"
    if not archive.exists():
        _make(archive)
    # A JVM with other jars does without, and must not say so on standard output.
    return f"-XX:SharedArchiveFile={archive} -Xlog:disable" if archive.exists() else ""


def _make(archive: Path) -> None:
    """Let a JVM write the archive as it ends; the last of several makers wins."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    fresh = archive.with_name(f"{archive.stem}-{uuid.uuid4().hex}")
    folder = fresh.with_suffix(".data")
    options = f"{OPTIONS} -XX:ArchiveClassesAtExit={fresh} -Xlog:disable"
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_SUBMIT_OPTS": options}
    subprocess.run(
        [sys.executable, "-c", _USES, str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env=environment,
        timeout=600,
        check=False,
    )
    if fresh.exists():
        fresh.replace(archive)
    shutil.rmtree(folder, ignore_errors=True)
