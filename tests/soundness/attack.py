"""What the attacks share: make objects quickly, and hold a query against itself without skipping."""

from __future__ import annotations

import os
import time
from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import skipstone
from tests.soundness.campaign import SPARK_ERRORS
from tests.support import conf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

HOUR = 3600


def age(folder: Path, seconds: float = HOUR) -> None:
    """Make the files look old: one that was modified just now is not trusted yet."""
    then = time.time() - seconds
    for file in folder.rglob("*"):
        if file.is_file() and "_skipstone" not in file.parts:
            os.utime(file, (then, then))


def parquet(folder: Path, *objects: dict[str, Any] | pa.Table, **options: Any) -> str:
    """Write each table (or columns by name) as one Parquet object that is an hour old."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, columns in enumerate(objects):
        table = columns if isinstance(columns, pa.Table) else pa.table(columns)
        pq.write_table(table, folder / f"object-{number:03d}.parquet", **options)
    age(folder)
    return str(folder)


def text(folder: Path, suffix: str, *objects: str | bytes) -> str:
    """Write each text as one object that is an hour old."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(objects):
        data = content.encode() if isinstance(content, str) else content
        (folder / f"object-{number:03d}{suffix}").write_bytes(data)
    age(folder)
    return str(folder)


def rows_of(df: DataFrame) -> Counter[str]:
    """Collect rows so that they compare as multisets, NaN included."""
    return Counter(map(repr, df.collect()))


def same_rows(spark: SparkSession, query: str | Callable[[], DataFrame]) -> int:
    """Run a query without and with skipping; assert that the rows agree and give the number of objects skipped.

    The query is made anew each time, since a DataFrame is planned only once.
    """
    make = (lambda: spark.sql(query)) if isinstance(query, str) else query
    with conf(spark, {"spark.skipstone.enabled": "false"}):
        expected = rows_of(make())
    with skipstone.skipping_stats(spark) as stats:
        found = rows_of(make())
    problems = [entry.error for entry in stats if entry.error]
    clauses = [entry.clause for entry in stats]
    assert found == expected, f"lost {expected - found}, made up {found - expected}; clauses {clauses}"
    assert not problems, problems
    return sum(entry.objects.skipped for entry in stats)


def all_of(df: DataFrame, predicates: Sequence[str], *wanted: str) -> DataFrame:
    """Return the rows of each predicate, numbered, as one query with a scan for each."""
    answers = [df.where(p).selectExpr(f"{n} AS predicate", *(wanted or ("*",))) for n, p in enumerate(predicates)]
    return reduce(lambda one, other: one.unionAll(other), answers)


def same_answers(spark: SparkSession, df: DataFrame, predicates: Sequence[str], *wanted: str) -> int:
    """Compare the answers to several predicates; give the number of objects skipped in all."""
    return same_rows(spark, lambda: all_of(df, predicates, *wanted))


def same_unless_it_fails(spark: SparkSession, make: Callable[[], DataFrame]) -> None:
    """Compare, unless the query fails without skipping: then there is nothing to compare with."""
    with conf(spark, {"spark.skipstone.enabled": "false"}):
        try:
            make().collect()
        except SPARK_ERRORS:
            return
    same_rows(spark, make)
