"""What several test modules share: datasets of a few objects, and the comparison with and without skipping."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from skipstone import BloomFilterIndex, HybridIndex, MinMaxIndex, ValueListIndex, skipping_stats

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

_OBJECT = "_object_"
EVERY_TYPE = (MinMaxIndex, ValueListIndex, BloomFilterIndex, HybridIndex)


def write_objects(
    spark: SparkSession,
    folder: Path,
    schema: str,
    objects: Iterable[str],
    format: str = "parquet",  # noqa: A002
    first: int = 0,
    **options: str,
) -> str:
    """Write each text of ``VALUES`` rows as one object, in order; give the folder's path.

    All are written by one job, each as a partition: jobs are most of what it would cost.
    """
    names, fields = ", ".join(_names(schema)), spark.createDataFrame([], schema).schema.fields
    columns = [F.col(f"`{f.name.replace('`', '``')}`").cast(f.dataType).alias(f.name) for f in fields]
    written = [
        spark.sql(f"SELECT * FROM VALUES {rows} AS t({names})").select(*columns, F.lit(number).alias(_OBJECT))
        for number, rows in enumerate(objects, first)
    ]
    parts = folder.with_name(f".{folder.name}-parts")
    writer = reduce(DataFrame.unionAll, written).coalesce(1).write.format(format).options(**options)
    writer.partitionBy(_OBJECT).mode("overwrite").save(str(parts))
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts.glob(f"{_OBJECT}=*"):
        (file,) = part.glob("part-*")
        suffixes = "".join(file.suffixes).removeprefix(".c000")
        file.rename(folder / f"object-{int(part.name.partition('=')[2]):04d}{suffixes}")
    shutil.rmtree(parts)
    return str(folder)


def _names(schema: str) -> list[str]:
    """Return the column names of a DDL schema as they stand in it, back-ticks kept."""
    names, depth, text, ticked = [], 0, "", False
    for letter in schema + ",":
        ticked ^= letter == "`"
        depth += (letter in "<(") - (letter in ">)") if not ticked else 0
        if letter == "," and depth == 0 and not ticked:
            text = text.strip()
            names.append(text[: text.rindex("`") + 1] if text.startswith("`") else text.split(" ")[0])
            text = ""
        else:
            text += letter
    return names


@contextmanager
def settings(spark: SparkSession, **values: str) -> Iterator[None]:
    """Set some settings for a block (``__`` stands for a dot)."""
    names = {name.replace("__", "."): value for name, value in values.items()}
    with conf(spark, names):
        yield


@contextmanager
def conf(spark: SparkSession, values: dict[str, str]) -> Iterator[None]:
    """Set some settings for a block."""
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, value)


@contextmanager
def skipping_off(spark: SparkSession) -> Iterator[None]:
    """Plan without skipping inside the block."""
    with conf(spark, {"spark.skipstone.enabled": "false"}):
        yield


def relevant(spark: SparkSession, df: DataFrame, predicates: Sequence[str]) -> list[set[str]]:
    """Return for each predicate the objects that hold a row for which it is TRUE, from one scan without skipping."""
    with skipping_off(spark):
        marks = [F.max(F.expr(f"coalesce(({p}), false)").cast("int")).alias(f"p{n}") for n, p in enumerate(predicates)]
        rows = df.groupBy(F.col("_metadata.file_path").alias("path")).agg(*marks).collect()
    return [{_bare(row["path"]) for row in rows if row[f"p{n}"]} for n in range(len(predicates))]


def _bare(path: str) -> str:
    """Return a local path in one of the two ways in which Spark writes it."""
    return path.replace("file:///", "file:/")


def assert_sound(spark: SparkSession, df: DataFrame, predicates: Sequence[str]) -> int:
    """Check that every relevant object is kept, and count the objects that were skipped."""
    skipped = 0
    everything = set(map(_bare, df.inputFiles()))
    for predicate, needed in zip(predicates, relevant(spark, df, predicates), strict=True):
        kept = set(map(_bare, df.where(predicate).inputFiles()))
        assert kept <= everything
        lost = needed - kept
        assert not lost, f"{predicate}: skipped {sorted(lost)}, which hold matching rows"
        skipped += len(everything) - len(kept)
    return skipped


def assert_same_rows(spark: SparkSession, df: DataFrame) -> int:
    """Check that a query gives the same rows with and without skipping; give the number of objects it skipped."""
    with skipping_off(spark):
        expected = Counter(map(repr, df.select("*").collect()))
    with skipping_stats(spark) as stats:
        found = Counter(map(repr, df.select("*").collect()))
    assert found == expected
    return sum(entry.objects.skipped for entry in stats)
