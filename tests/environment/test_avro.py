"""Avro: columns found by position, and settings of its reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skipstone import Dataset, MinMaxIndex, ValueListIndex
from tests.environment.avro import avro
from tests.soundness.attack import age, same_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _avro(spark):
    avro(spark)


@pytest.fixture
def pairs(spark, tmp_path):
    """Return a folder of three objects with a pair of numbers each."""
    for n in (1, 2, 3):
        row = spark.sql(f"SELECT {n} AS a, {n * 10} AS b")
        row.coalesce(1).write.mode("append").format("avro").save(f"{tmp_path}/d")
    age(tmp_path / "d")
    return tmp_path / "d"


def _read(spark: SparkSession, folder: Path, schema: str, *, by_position: bool) -> DataFrame:
    reader = spark.read.format("avro").schema(schema).option("positionalFieldMatching", str(by_position).lower())
    return reader.load(str(folder))


@pytest.mark.parametrize("by_position", [True, False], ids=["by position", "by name"])
@pytest.mark.parametrize("schema", ["a INT, b INT", "b INT, a INT", "b INT", "x INT, a INT"])
def test_columns_in_another_order(spark, pairs, schema, by_position):
    indexed = _read(spark, pairs, "a INT, b INT", by_position=by_position)
    Dataset(indexed).create_indexes(MinMaxIndex("a"), ValueListIndex("a"), MinMaxIndex("b"), ValueListIndex("b"))
    skipped = 0
    for column in _read(spark, pairs, schema, by_position=by_position).columns:
        for value in (1, 10, 20):
            skipped += same_rows(
                spark,
                lambda c=column, v=value: _read(spark, pairs, schema, by_position=by_position).where(f"{c} = {v}"),
            )
    assert skipped or schema != "a INT, b INT"
    for other in (True, False):
        again = _read(spark, pairs, schema, by_position=other)
        same_rows(spark, lambda d=again: d.where(f"{d.columns[0]} = 10"))
