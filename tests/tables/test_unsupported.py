"""A release of a table format that is not known: its tables are left alone, and the reason is said."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from skipstone import Dataset, ValueListIndex
from skipstone.errors import DatasetError
from tests.tables import delta, iceberg
from tests.tables.support import twins

REASON = "this release lacks a class"


@contextmanager
def unknown(spark, format_):
    """Let the check of a format have found something missing."""
    jvm = spark._jvm
    formats = getattr(jvm.org.apache.spark.sql.skipstone, "TableFormats$").__getattr__("MODULE$")
    field = formats.getClass().getDeclaredField("checked")
    field.setAccessible(True)
    checked = field.get(formats)
    before = checked.get(format_)
    checked.put(format_, jvm.scala.Option.apply(REASON))
    try:
        yield
    finally:
        checked.put(format_, before)


def test_delta(spark, table):
    delta.make(spark, table)
    dataset = delta.index(spark, table)
    query = f"SELECT * FROM {delta.t(table)} WHERE k LIKE '%123'"
    with unknown(spark, "delta"):
        found = twins(spark, query)
        assert (found.rows, found.skipped) == (1, 0)
        assert REASON in found.said
        assert REASON in str(dataset.explain("k LIKE '%123'"))
        with pytest.raises(DatasetError, match=REASON):
            Dataset.for_path(spark, table, format="delta")
    assert twins(spark, query).skipped == 3


def test_iceberg(spark):
    table = iceberg.new_table(spark)
    iceberg.append(spark, table, iceberg.numbers(0, 4))
    dataset = Dataset.for_table(spark, table)
    dataset.create_indexes(ValueListIndex("s"))
    query = f"SELECT * FROM {table} WHERE s = 's5'"
    with unknown(spark, "iceberg"):
        found = twins(spark, query)
        assert (found.rows, found.skipped) == (1, 0)
        assert REASON in found.said
        assert REASON in str(dataset.explain("s = 's5'"))
        with pytest.raises(DatasetError, match=REASON):
            Dataset.for_table(spark, table)
    assert twins(spark, query).skipped == 3
