"""Delta and Iceberg in their own Spark: run by that environment's Python, asked in lines of JSON.

Both take existing Parquet files as they are, with the statistics of their footers: Delta by ``CONVERT TO DELTA``,
Iceberg by ``add_files``.  Nothing of Skipstone is imported here.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession

CATALOG = "ice"


class Tables:
    """A session that knows both formats, and what it can be asked."""

    def __init__(self, folder: str, warehouse: str, jars: list[str], settings: dict[str, str]) -> None:
        builder = (
            SparkSession.builder.appName("peers")
            .config("spark.driver.memory", "4g")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
            .config("spark.driver.extraClassPath", ":".join(jars))
            .config(
                "spark.sql.extensions",
                "io.delta.sql.DeltaSparkSessionExtension,"
                "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            )
            .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
            .config("spark.databricks.delta.snapshotPartitions", "2")  # its default is made for clusters
            .config(f"spark.sql.catalog.{CATALOG}", "org.apache.iceberg.spark.SparkCatalog")
            .config(f"spark.sql.catalog.{CATALOG}.type", "hadoop")
            .config(f"spark.sql.catalog.{CATALOG}.warehouse", warehouse)
        )
        for name, value in settings.items():
            builder = builder.config(name, value)
        self._spark = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("ERROR")

    def versions(self) -> dict[str, str]:
        """Return which Spark this is."""
        return {"pyspark": self._spark.version}

    def make_delta(self, path: str, partitions: str | None) -> float:
        """Turn a folder of Parquet files into a Delta table where it is; gives seconds."""
        started = time.perf_counter()
        by = f" PARTITIONED BY ({partitions})" if partitions else ""
        self._spark.sql(f"CONVERT TO DELTA parquet.`{path}`{by}")
        return time.perf_counter() - started

    def make_iceberg(self, path: str, name: str, partitions: str | None) -> float:
        """Make an Iceberg table of a folder of Parquet files, which stay where they are; gives seconds."""
        started = time.perf_counter()
        schema = self._spark.read.parquet(path).schema
        columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in schema)
        by = f" PARTITIONED BY ({partitions})" if partitions else ""
        self._spark.sql(f"CREATE TABLE {CATALOG}.db.{name} ({columns}) USING iceberg{by}")
        self._spark.sql(
            f"CALL {CATALOG}.system.add_files(table => 'db.{name}', source_table => '`parquet`.`{path}`', "
            "parallelism => 4)"
        )
        return time.perf_counter() - started

    def ask(self, table: str, predicate: str, columns: list[str]) -> list[Any]:
        """Run a query to its answer."""
        (row,) = self._query(table, predicate).selectExpr(*columns).collect()
        return list(row)

    def plan(self, table: str, predicate: str) -> int:
        """Plan a query down to its tasks, without running any; gives their number."""
        return int(self._query(table, predicate)._jdf.queryExecution().toRdd().getNumPartitions())

    def _query(self, table: str, predicate: str) -> DataFrame:
        """Read as a user would: a table by its name, looked up for each query."""
        return self._spark.table(table).where(predicate)


def main() -> None:
    """Answer until the input ends; each answer is one line on the file descriptor that the command line names."""
    options = json.loads(sys.argv[1])
    with os.fdopen(options.pop("answers"), "w") as answers:
        tables = Tables(**options)
        print("ready", file=answers, flush=True)
        for line in sys.stdin:
            asked = json.loads(line)
            try:
                answer = {"answer": getattr(tables, asked.pop("do"))(**asked)}
            except Exception as error:  # noqa: BLE001  (told to whoever asked)
                answer = {"error": f"{type(error).__name__}: {str(error)[:2000]}"}
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
