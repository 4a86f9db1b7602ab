"""Tables of Delta and Iceberg: what skipping by a function gains, and what it costs where their own statistics serve.

Beside it planning on very many files, and indexing against plain files.  Shapes, not sizes, are compared: every object
has 100 rows.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measures import Row, Sample, Subject, interleave
from benchmarks.session import enable
from benchmarks.table_formats import Table, answer, delta, iceberg, measured_there, table_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from skipstone import Dataset

ROWS = 100
OBJECTS = {True: 512, False: 8_192}
MANY_OBJECTS = {True: 2_048, False: 100_000}


def measure(*, small: bool) -> list[Row]:
    """Measure in the environment of the table formats."""
    return measured_there("benchmarks.tables", small=small)


def _measured(*, small: bool) -> list[Row]:
    """Make the tables and ask."""
    rows: list[Row] = []
    with table_session(small=small) as (spark, folder):
        plain = f"{folder}/plain"
        _write(plain, OBJECTS[small])
        for make in (delta, iceberg):
            table = make(spark, plain, "few")
            rows += _indexing(spark, plain, table, OBJECTS[small], small=small)
            rows += _needles(spark, table, OBJECTS[small], small=small)
        many = f"{folder}/many"
        _write(many, MANY_OBJECTS[small])
        for make in (delta, iceberg):
            rows += _planning(spark, make(spark, many, "many"), MANY_OBJECTS[small], small=small)
    return rows


def _write(plain: str, objects: int) -> None:
    """Write objects of ids in order."""
    Path(plain).mkdir()
    for number in range(objects):
        ids = range(number * ROWS, (number + 1) * ROWS)
        columns = {"id": ids, "mail": [f"user-{id_}@example.org" for id_ in ids], "m": [id_ % 997 for id_ in ids]}
        pq.write_table(pa.table(columns), f"{plain}/part-{number:06d}.parquet")


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
    """Return what skipping adds to the time of a query."""
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


if __name__ == "__main__":
    answer(_measured)
