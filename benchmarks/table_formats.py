"""Delta and Iceberg tables over plain Parquet files, in a process with a Spark that both formats have a release for.

The files of the tables are the plain ones: Delta converts a folder of links, Iceberg adds them.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
from tests.tables.environment import jars, run

from benchmarks import data
from benchmarks.measures import Row
from benchmarks.session import session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from skipstone import Dataset

_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",  # its default is made for clusters
    "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.ice.type": "hadoop",
}


@dataclass(frozen=True)
class Table:
    """A table over the plain files: how it is spelled in SQL, and what may be indexed."""

    format: str
    sql: str
    dataset: Dataset


def measured_there(module: str, *, small: bool) -> list[Row]:
    """Measure in the environment of the table formats; the module calls ``answer`` when it is run."""
    with tempfile.TemporaryDirectory(prefix="tables-", dir=data.folder()) as folder:
        out = Path(folder, "rows.json")
        code, said = run("-m", module, str(out), "small" if small else "full", folder=Path(folder), timeout=7_200)
        if code:
            msg = f"the process with the table formats failed: {said[-2000:]}"
            raise RuntimeError(msg)
        return [Row(**row) for row in json.loads(out.read_text())]


def answer(measured: Callable[..., list[Row]]) -> None:
    """Write what was measured to the file that the command line names, and on which Spark: it is not the runner's."""
    out, scale = sys.argv[1:]
    rows = [
        replace(row, conditions=f"{row.conditions}; on Spark {pyspark.__version__}").described()
        for row in measured(small=scale == "small")
    ]
    Path(out).write_text(json.dumps([{key: value for key, value in row.items() if key != "met"} for row in rows]))


@contextmanager
def table_session(*, small: bool) -> Iterator[tuple[SparkSession, str]]:
    """Return a session that knows both formats, and a folder for tables."""
    with tempfile.TemporaryDirectory(prefix="tables-", dir=data.folder()) as folder:
        settings = {**_SETTINGS, "spark.jars": ",".join(jars()), "spark.sql.catalog.ice.warehouse": f"{folder}/ice"}
        with session(driver_memory="2g" if small else "6g", settings=settings) as spark:
            yield spark, folder


def linked(plain: str, path: str) -> None:
    """Make a folder of links to the files of another."""
    shutil.copytree(plain, path, copy_function=os.link, ignore=shutil.ignore_patterns("_*", ".*"))


def delta(spark: SparkSession, plain: str, name: str) -> Table:
    """Make a table of links to the files."""
    from skipstone import Dataset

    path = f"{plain}-{name}-delta"
    linked(plain, path)
    spark.sql(f"CONVERT TO DELTA parquet.`{path}`")
    return Table("Delta", f"delta.`{path}`", Dataset.for_path(spark, path, format="delta"))


def iceberg(spark: SparkSession, plain: str, name: str, properties: str = "") -> Table:
    """Make a table that takes the files as they are."""
    from skipstone import Dataset

    columns = spark.read.parquet(plain).schema.toDDL()
    spark.sql(f"CREATE TABLE ice.db.{name} ({columns}) USING iceberg{properties}")
    files = f"table => 'db.{name}', source_table => '`parquet`.`{plain}`', parallelism => 4"
    spark.sql(f"CALL ice.system.add_files({files})")
    return Table("Iceberg", f"ice.db.{name}", Dataset.for_table(spark, f"ice.db.{name}"))
