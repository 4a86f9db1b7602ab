"""What Spark's listing holds of a catalog table, and what has become of its files since."""

from __future__ import annotations

import os
import time

import pytest

from skipstone import Dataset, MinMaxIndex, ValueListIndex
from tests.environment.steps import same_steps
from tests.environment.ways import as_rdd, planned
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


@pytest.mark.parametrize("anew", ["INSERT", "REFRESH"])
@pytest.mark.parametrize("partitions", ["", "PARTITIONED BY (p)"])
@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_table_is_listed_anew_between_planning_and_running(spark, tmp_path, format_, partitions, anew):
    """A scan reads what is listed when it first runs, whoever had it listed."""
    rounds = iter(range(2))

    def steps():
        location = f"{tmp_path}/d{next(rounds)}"
        spark.sql(f"CREATE TABLE grown (a INT, b STRING, p INT) USING {format_} {partitions} LOCATION '{location}'")
        try:
            for n in (1, 2, 3):
                spark.sql(f"INSERT INTO grown VALUES ({n}, 'old', {n})")
            Dataset.for_table(spark, "grown").create_indexes(MinMaxIndex("a"))
            run = planned(spark.table("grown").where("a = 2"))
            if anew == "INSERT":
                spark.sql("INSERT INTO grown VALUES (2, 'new', 4), (2, 'new', 1)")
            else:
                folder = f"{location}/p=1" if partitions else location
                added = spark.sql("SELECT 2 AS a, 'new' AS b" + ("" if partitions else ", 1 AS p"))
                added.write.mode("append").format(format_).save(folder)
                spark.sql("REFRESH TABLE grown")
            return run()
        finally:
            spark.sql("DROP TABLE grown")

    assert same_steps(spark, steps)


def test_view_is_written_to_between_planning_and_running(spark, tmp_path):
    rounds = iter(range(2))

    def steps():
        folder = f"{tmp_path}/d{next(rounds)}"
        for n in (1, 2, 3):
            spark.sql(f"SELECT {n} AS a").coalesce(1).write.mode("append").parquet(folder)
        Dataset.for_path(spark, folder).create_indexes(MinMaxIndex("a"))
        df = spark.read.parquet(folder)
        df.createOrReplaceTempView("grown_view")
        runs = [planned(df.where("a = 2")), as_rdd(df.where("a = 2"))]
        spark.sql("INSERT INTO grown_view VALUES (2)")
        return [row for run in runs for row in run()]

    assert same_steps(spark, steps)


def test_run_again_after_the_table_has_grown(spark, tmp_path):
    """A second run reads what the first one did, also where it reads all of it."""
    rounds = iter(range(2))
    policy = "spark.sql.legacy.timeParserPolicy"

    def steps():
        location = text(tmp_path / f"d{next(rounds)}", ".csv", "2020-1-1\n", "2020-02-02\n", "2020-03-03\n")
        options = "OPTIONS (dateFormat 'yyyy-MM-dd')"
        spark.sql(f"CREATE TABLE grown_days (d DATE) USING csv {options} LOCATION '{location}'")
        try:
            Dataset.for_table(spark, "grown_days").create_indexes(MinMaxIndex("d"))
            df = spark.table("grown_days").where("d <= DATE'2020-01-01'")
            first = df.collect()
            spark.sql("INSERT INTO grown_days VALUES (DATE'2020-01-01')")
            with conf(spark, {policy: "LEGACY"}):
                return [*first, *df.collect()]
        finally:
            spark.sql("DROP TABLE grown_days")

    assert same_steps(spark, steps)
