"""One session with the table formats; these tests run in an environment of their own (see ``environment``)."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from skipstone.engines.spark.session import configure
from tests.tables.environment import FLAG, has_iceberg, jars

if TYPE_CHECKING:
    from collections.abc import Iterator

if not os.environ.get(FLAG):
    collect_ignore_glob = ["test_*.py"]  # tests/end_to_end/test_tables.py runs them
elif not has_iceberg():
    collect_ignore_glob = ["test_iceberg*.py"]

DELTA = "io.delta.sql.DeltaSparkSessionExtension"
ICEBERG = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    folder = tempfile.mkdtemp(prefix="skipstone-tables-")
    builder = (
        configure(SparkSession.builder)
        .master("local[2]")
        .config("spark.driver.memory", "3g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.ui.retainedExecutions", "20")  # each keeps its plan
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.sources.parallelPartitionDiscovery.parallelism", "1")
        .config("spark.databricks.delta.snapshotPartitions", "1")
        .config("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        .config("spark.jars", ",".join(jars()))
        .config("spark.sql.extensions", f"{DELTA},{ICEBERG}" if has_iceberg() else DELTA)
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.ice.type", "hadoop")
        .config("spark.sql.catalog.ice.warehouse", f"{folder}/ice")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}")
    )
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _without_noise() -> None:
    """Predicates that do not analyse are part of the plan; PySpark would log each with its stack trace."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Return a folder for a table, as the URI that its snapshot names files by."""
    return str(tmp_path / "t")
