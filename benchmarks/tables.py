"""Tables of Delta and Iceberg: what skipping by a function gains, and what it costs where their own statistics serve.

Beside it planning on very many files, and indexing against plain files.  All runs in a process with a Spark that both
have a release for.  The files of the tables are the plain ones: Delta converts a folder of links, Iceberg adds them.
Shapes, not sizes, are compared: every object has 100 rows.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.tables.environment import jars, run

from benchmarks import data
from benchmarks.measures import Row, Sample, Subject, interleave
from benchmarks.session import enable, session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from skipstone import Dataset

ROWS = 100
OBJECTS = {True: 512, False: 8_192}
MANY_OBJECTS = {True: 2_048, False: 100_000}
SETTINGS = {
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


def measure(*, small: bool) -> list[Row]:
    """Measure in the environment of the table formats."""
    with tempfile.TemporaryDirectory(prefix="tables-", dir=data.folder()) as folder:
        out = Path(folder, "rows.json")
        arguments = ("-m", "benchmarks.tables", str(out), "small" if small else "full")
        code, said = run(*arguments, folder=Path(folder), timeout=7_200)
        if code:
            msg = f"the process with the table formats failed: {said[-2000:]}"
            raise RuntimeError(msg)
        return [Row(**row) for row in json.loads(out.read_text())]


def _measured(*, small: bool) -> list[Row]:
    """Make the tables and ask."""
    with tempfile.TemporaryDirectory(prefix="tables-", dir=data.folder()) as folder:
        settings = {
            **SETTINGS,
            "spark.jars": ",".join(jars()),
            "spark.sql.catalog.ice.warehouse": f"{folder}/ice",
        }
        rows: list[Row] = []
        with session(driver_memory="2g" if small else "6g", settings=settings) as spark:
            plain = f"{folder}/plain"
            _write(plain, OBJECTS[small])
            for make in (_delta, _iceberg):
                table = make(spark, plain, "few")
                rows += _indexing(spark, plain, table, OBJECTS[small], small=small)
                rows += _needles(spark, table, OBJECTS[small], small=small)
            many = f"{folder}/many"
            _write(many, MANY_OBJECTS[small])
            for make in (_delta, _iceberg):
                rows += _planning(spark, make(spark, many, "many"), MANY_OBJECTS[small], small=small)
        return rows


def _write(plain: str, objects: int) -> None:
    """Write objects of ids in order."""
    Path(plain).mkdir()
    for number in range(objects):
        ids = range(number * ROWS, (number + 1) * ROWS)
        columns = {"id": ids, "mail": [f"user-{id_}@example.org" for id_ in ids], "m": [id_ % 997 for id_ in ids]}
        pq.write_table(pa.table(columns), f"{plain}/part-{number:06d}.parquet")


def _delta(spark: SparkSession, plain: str, name: str) -> Table:
    """Make a table of links to the files."""
    from skipstone import Dataset

    path = f"{plain}-{name}-delta"
    shutil.copytree(plain, path, copy_function=os.link, ignore=shutil.ignore_patterns("_*", ".*"))
    spark.sql(f"CONVERT TO DELTA parquet.`{path}`")
    return Table("Delta", f"delta.`{path}`", Dataset.for_path(spark, path, format="delta"))


def _iceberg(spark: SparkSession, plain: str, name: str) -> Table:
    """Make a table that takes the files as they are."""
    from skipstone import Dataset

    spark.sql(f"CREATE TABLE ice.db.{name} (id BIGINT, mail STRING, m BIGINT) USING iceberg")
    files = f"table => 'db.{name}', source_table => '`parquet`.`{plain}`', parallelism => 4"
    spark.sql(f"CALL ice.system.add_files({files})")
    return Table("Iceberg", f"ice.db.{name}", Dataset.for_table(spark, f"ice.db.{name}"))


def _indexing(spark: SparkSession, plain: str, table: Table, objects: int, *, small: bool) -> list[Row]:
    """Compare indexing the table with indexing the same files as Parquet."""
    from skipstone import BloomFilterIndex, Dataset, PrefixIndex

    def subject(dataset: Dataset) -> Subject:
        def before() -> None:
            if dataset.is_indexed:
                dataset.drop_indexes()

        return Subject(lambda: dataset.create_indexes(BloomFilterIndex("mail"), PrefixIndex("mail", length=12)), before)

    subjects = {"table": subject(table.dataset), "parquet": subject(Dataset.for_path(spark, plain))}
    taken = interleave(subjects, repeats=2 if small else 3, warmups=1)
    rounds = [d / p for d, p in zip(taken["table"].seconds, taken["parquet"].seconds, strict=True)]
    return [
        Row(
            f"{table.format}: create_indexes against the same files as plain Parquet",
            taken["table"].median / taken["parquet"].median,
            "x",
            None if small else 1.3,
            f"{objects:,} objects of {ROWS} rows; a Bloom filter and a prefix of a text",
            low=min(rounds),
            high=max(rounds),
            details={name: sample.described() for name, sample in taken.items()},
        )
    ]


def _needles(spark: SparkSession, table: Table, objects: int, *, small: bool) -> list[Row]:
    """Ask for one object by a function, then by a range that the format's own statistics serve."""
    import skipstone
    from skipstone import MinMaxIndex
    from skipstone.expressions.ranges import between

    wanted = objects * ROWS // 2
    spark.udf.register("is_wanted", lambda number: wanted <= number <= wanted + 1, "boolean")
    skipstone.udf_filter(spark, "is_wanted", lambda number: between(number, wanted, wanted + 1))
    table.dataset.create_indexes(MinMaxIndex("id"))

    def asked(condition: str) -> Callable[[], None]:
        return lambda: spark.sql(f"SELECT id, mail FROM {table.sql} WHERE {condition}").collect()

    def both(condition: str, repeats: int) -> tuple[dict[str, Sample], str]:
        taken = interleave(_on_and_off(spark, asked(condition)), repeats=repeats, warmups=2)
        enable(spark, on=True)
        asked(condition)()
        (scan,) = skipstone.last_query(spark)
        left = f"{table.format}'s statistics leave {scan.objects.total:,}, {scan.objects.kept:,} read"
        return taken, f"{objects:,} objects; {left}"

    function, read = both("is_wanted(id)", 3 if small else 5)
    ratios = [slow / fast for fast, slow in zip(function["on"].seconds, function["off"].seconds, strict=True)]
    served, read_too = both(f"id BETWEEN {wanted} AND {wanted + 1}", 7 if small else 15)
    return [
        Row(
            f"{table.format}: needle by a Python function, against no skipping",
            function["off"].median / function["on"].median,
            "x",
            None if small else 50,
            read,
            at_least=True,
            low=min(ratios),
            high=max(ratios),
            details={name: sample.described() for name, sample in function.items()},
        ),
        _added(f"{table.format}: needle by a range that its statistics serve, time added", served, read_too, 10, small),
    ]


def _planning(spark: SparkSession, table: Table, objects: int, *, small: bool) -> list[Row]:
    """Plan down to the tasks, on very many files, a query that the format's statistics serve."""
    from skipstone import MinMaxIndex

    table.dataset.create_indexes(MinMaxIndex("id"))
    numbers = itertools.count()

    def planned() -> None:
        df = spark.sql(f"SELECT id FROM {table.sql} WHERE id = {objects * ROWS // 2} AND m <> {-next(numbers)}")
        df._jdf.queryExecution().toRdd().getNumPartitions()

    taken = interleave(_on_and_off(spark, planned), repeats=5 if small else 10, warmups=3)
    own = f"{table.format} alone plans in {1_000 * taken['off'].median:.0f} ms; {objects:,} objects, one needed"
    what = f"{table.format}: planning down to the tasks, {objects:,} files, time added"
    return [_added(what, taken, own, None, small)]


def _on_and_off(spark: SparkSession, run: Callable[[], None]) -> dict[str, Subject]:
    """With skipping and without, in turn."""
    return {
        "on": Subject(run, lambda: enable(spark, on=True)),
        "off": Subject(run, lambda: enable(spark, on=False)),
    }


def _added(what: str, taken: dict[str, Sample], conditions: str, target: float | None, small: bool) -> Row:
    """Tell what skipping adds to the time of a query."""
    added = [1_000 * (on - off) for on, off in zip(taken["on"].seconds, taken["off"].seconds, strict=True)]
    return Row(
        what,
        1_000 * (taken["on"].median - taken["off"].median),
        "ms",
        None if small else target,
        conditions,
        low=min(added),
        high=max(added),
        details={name: sample.described() for name, sample in taken.items()},
    )


def _main(out: str, scale: str) -> None:
    rows: list[dict[str, Any]] = [
        {key: value for key, value in row.described().items() if key != "met"}
        for row in _measured(small=scale == "small")
    ]
    Path(out).write_text(json.dumps(rows))


if __name__ == "__main__":
    _main(*sys.argv[1:])
