"""What Spark's listing holds of a catalog table, and what has become of its files since."""

from __future__ import annotations

import os
import time

import pytest

from skipstone import Dataset, MinMaxIndex, ValueListIndex
from tests.soundness.attack import same_rows, text
from tests.support import conf

VERIFY = {"spark.skipstone.verifyListing": "true"}


@pytest.fixture
def table(spark, tmp_path):
    text(tmp_path / "d", ".csv", "1\n", "2\n", "3\n")
    spark.sql(f"CREATE TABLE listed (a INT) USING csv LOCATION '{tmp_path}/d'")
    yield "listed"
    spark.sql("DROP TABLE listed")


def _rewrite(tmp_path):
    """Write a file anew under its name with the same length, as a job beside this session would."""
    file = tmp_path / "d" / "object-000.csv"
    file.write_text("7\n")
    then = time.time() - 60
    os.utime(file, (then, then))


@pytest.mark.parametrize("when", ["queried first", "indexed first"])
def test_file_rewritten_in_place_behind_a_listed_table(spark, tmp_path, table, when):
    if when == "queried first":
        spark.table(table).collect()
    Dataset.for_table(spark, table).create_indexes(MinMaxIndex("a"), ValueListIndex("a"))
    assert same_rows(spark, f"SELECT * FROM {table} WHERE a = 2") == 2
    _rewrite(tmp_path)
    with conf(spark, VERIFY):
        same_rows(spark, f"SELECT * FROM {table} WHERE a = 7")
        same_rows(spark, f"SELECT * FROM {table} WHERE a = 1")
        assert same_rows(spark, f"SELECT * FROM {table} WHERE a = 2") == 1  # the rewritten one is not known any more


def test_verified_listing_of_unchanged_files_skips(spark, table):
    Dataset.for_table(spark, table).create_indexes(MinMaxIndex("a"), ValueListIndex("a"))
    with conf(spark, VERIFY):
        assert same_rows(spark, f"SELECT * FROM {table} WHERE a = 2") == 2


def test_the_remedy_for_a_file_rewritten_in_place(spark, tmp_path, table):
    Dataset.for_table(spark, table).create_indexes(MinMaxIndex("a"), ValueListIndex("a"))
    assert same_rows(spark, f"SELECT * FROM {table} WHERE a = 2") == 2
    _rewrite(tmp_path)
    spark.sql(f"REFRESH TABLE {table}")
    same_rows(spark, f"SELECT * FROM {table} WHERE a = 7")
    Dataset.for_table(spark, table).refresh()
    assert same_rows(spark, f"SELECT * FROM {table} WHERE a = 7") == 2


def test_verified_listing_of_files_that_are_gone(spark, tmp_path, table):
    Dataset.for_table(spark, table).create_indexes(MinMaxIndex("a"), ValueListIndex("a"))
    assert same_rows(spark, f"SELECT * FROM {table} WHERE a = 2") == 2
    (tmp_path / "d" / "object-000.csv").unlink()
    with conf(spark, {**VERIFY, "spark.sql.files.ignoreMissingFiles": "true"}):
        same_rows(spark, f"SELECT * FROM {table} WHERE a = 2")
