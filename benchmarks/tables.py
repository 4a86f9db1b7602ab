"""Delta tables: a needle that its statistics cannot find, one that they can, and indexing against plain files.

Runs in a process with a Spark that Delta has a release for.  The files of the table are the same as the plain ones:
``CONVERT TO DELTA`` over links to them.  Shapes, not sizes, are compared: every object has 100 rows.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.tables.environment import jars, run

from benchmarks import data
from benchmarks.measures import Row, Sample, Subject, interleave
from benchmarks.session import enable, session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

ROWS = 100
OBJECTS = {True: 512, False: 8_192}
EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"


def measure(*, small: bool) -> list[Row]:
    """Measure in the environment of the table formats."""
    with tempfile.TemporaryDirectory(prefix="tables-", dir=data.folder()) as folder:
        out = Path(folder, "rows.json")
        arguments = ("-m", "benchmarks.tables", str(out), "small" if small else "full")
        code, said = run(*arguments, folder=Path(folder), timeout=7_200)
        if code:
            msg = f"the process with Delta failed: {said[-2000:]}"
            raise RuntimeError(msg)
        return [Row(**row) for row in json.loads(out.read_text())]


def _measured(*, small: bool) -> list[Row]:
    """Make the table and ask."""
    objects = OBJECTS[small]
    settings = {
        "spark.jars": ",".join(jars(iceberg=False)),
        "spark.sql.extensions": EXTENSION,
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    with tempfile.TemporaryDirectory(prefix="tables-", dir=data.folder()) as folder:
        plain, table = f"{folder}/plain", f"{folder}/table"
        with session(driver_memory="2g" if small else "4g", settings=settings) as spark:
            _make(spark, plain, table, objects)
            indexed = _indexing(spark, plain, table, objects, small=small)
            return [*indexed, *_needles(spark, table, objects, small=small)]


def _make(spark: SparkSession, plain: str, table: str, objects: int) -> None:
    """Write objects of ids in order, and make a table of links to them."""
    rows = spark.range(0, objects * ROWS, 1, objects)
    rows.selectExpr("id", "concat('user-', id, '@example.org') AS mail", "id % 997 AS m").write.parquet(plain)
    shutil.copytree(plain, table, copy_function=os.link, ignore=shutil.ignore_patterns("_*", ".*"))
    spark.sql(f"CONVERT TO DELTA parquet.`{table}`")


def _indexing(spark: SparkSession, plain: str, table: str, objects: int, *, small: bool) -> list[Row]:
    """Compare indexing the table with indexing the same files as Parquet."""
    from skipstone import BloomFilterIndex, Dataset, PrefixIndex

    def subject(path: str, name: str) -> Subject:
        dataset = Dataset.for_path(spark, path, format=name)

        def before() -> None:
            if dataset.is_indexed:
                dataset.drop_indexes()

        return Subject(lambda: dataset.create_indexes(BloomFilterIndex("mail"), PrefixIndex("mail", length=12)), before)

    subjects = {"delta": subject(table, "delta"), "parquet": subject(plain, "parquet")}
    taken = interleave(subjects, repeats=2 if small else 3, warmups=1)
    rounds = [d / p for d, p in zip(taken["delta"].seconds, taken["parquet"].seconds, strict=True)]
    return [
        Row(
            "create_indexes on a Delta table against the same files as plain Parquet",
            taken["delta"].median / taken["parquet"].median,
            "x",
            None if small else 1.3,
            f"{objects:,} objects of {ROWS} rows; a Bloom filter and a prefix of a text",
            low=min(rounds),
            high=max(rounds),
            details={name: sample.described() for name, sample in taken.items()},
        )
    ]


def _needles(spark: SparkSession, table: str, objects: int, *, small: bool) -> list[Row]:
    """Ask for one object by a function, then by a range that Delta's own statistics serve."""
    import skipstone
    from skipstone import Dataset, MinMaxIndex
    from skipstone.expressions.ranges import between

    wanted = objects * ROWS // 2
    spark.udf.register("is_wanted", lambda number: wanted <= number <= wanted + 1, "boolean")
    skipstone.udf_filter(spark, "is_wanted", lambda number: between(number, wanted, wanted + 1))
    Dataset.for_path(spark, table, format="delta").create_indexes(MinMaxIndex("id"))

    def asked(condition: str) -> Callable[[], None]:
        return lambda: spark.sql(f"SELECT id, mail FROM delta.`{table}` WHERE {condition}").collect()

    def both(condition: str, repeats: int) -> tuple[dict[str, Sample], str]:
        subjects = {
            "on": Subject(asked(condition), lambda: enable(spark, on=True)),
            "off": Subject(asked(condition), lambda: enable(spark, on=False)),
        }
        taken = interleave(subjects, repeats=repeats, warmups=2)
        enable(spark, on=True)
        asked(condition)()
        (scan,) = skipstone.last_query(spark)
        left = scan.objects.total
        return taken, f"{objects:,} objects; Delta's statistics leave {left:,}, {scan.objects.kept:,} read"

    function, read = both("is_wanted(id)", 3 if small else 5)
    ratios = [slow / fast for fast, slow in zip(function["on"].seconds, function["off"].seconds, strict=True)]
    served, read_too = both(f"id BETWEEN {wanted} AND {wanted + 1}", 7 if small else 15)
    added = [1_000 * (on - off) for on, off in zip(served["on"].seconds, served["off"].seconds, strict=True)]
    return [
        Row(
            "needle by a Python function over a Delta table, against no skipping",
            function["off"].median / function["on"].median,
            "x",
            None if small else 50,
            read,
            at_least=True,
            low=min(ratios),
            high=max(ratios),
            details={name: sample.described() for name, sample in function.items()},
        ),
        Row(
            "needle by a range that Delta's statistics serve, time added",
            1_000 * (served["on"].median - served["off"].median),
            "ms",
            None if small else 10,
            read_too,
            low=min(added),
            high=max(added),
            details={name: sample.described() for name, sample in served.items()},
        ),
    ]


def _main(out: str, scale: str) -> None:
    rows: list[dict[str, Any]] = [
        {key: value for key, value in row.described().items() if key != "met"}
        for row in _measured(small=scale == "small")
    ]
    Path(out).write_text(json.dumps(rows))


if __name__ == "__main__":
    _main(*sys.argv[1:])
