"""What the statistics tell of a query's time: the parts of its planning, and its run once it has run."""

from __future__ import annotations

import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from skipstone import Dataset, MinMaxIndex, last_query, skipping_stats
from skipstone.stores.parquet.filesystem import LocalFileSystem
from skipstone.stores.timing import reading_time, timed_read
from tests.support import conf

OBJECTS = 5


@pytest.fixture(scope="module")
def df(spark, tmp_path_factory):
    """Five objects of ten numbers, indexed."""
    folder = tmp_path_factory.mktemp("runs") / "data"
    folder.mkdir()
    for number in range(OBJECTS):
        values = list(range(number * 10, number * 10 + 10))
        pq.write_table(pa.table({"n": values, "m": [v % 3 for v in values]}), folder / f"{number}.parquet")
    Dataset.for_path(spark, str(folder)).create_indexes(MinMaxIndex("n"))
    return spark.read.parquet(str(folder))


def told(scan):
    return scan.rows_read, scan.files_read


def test_a_query_that_has_run_tells_so(spark, df):
    with skipping_stats(spark) as stats:
        query = df.where("n = 12")
        query.inputFiles()
        assert (stats[-1].run_seconds, stats[-1].scan_seconds, *told(stats[-1])) == (None,) * 4
        started = time.perf_counter()
        query.collect()
        elapsed = time.perf_counter() - started
        assert len(stats) == 1
        scan = stats[-1]
        assert 0 <= scan.run_seconds <= elapsed + 0.001
        assert scan.scan_seconds >= 0
        assert told(scan) == (10, 1)
        assert last_query(spark)[-1] == scan


def test_the_parts_of_planning_add_up(spark, df):
    with skipping_stats(spark) as stats:
        df.where("n > 12").collect()
    seconds = stats[-1].seconds
    assert list(seconds) == ["listing", "planner", "metadata", "match"]
    assert all(part >= 0 for part in seconds.values())
    assert 0 < sum(seconds.values()) <= stats[-1].planning_seconds


def test_a_slow_file_system_is_seen_in_the_time_for_metadata(spark, df, tmp_path, monkeypatch):
    ordinary = LocalFileSystem.read_ranges

    @timed_read
    def slow(*arguments):
        time.sleep(0.05)
        return ordinary(*arguments)

    with conf(spark, {"spark.skipstone.location": str(tmp_path)}):
        Dataset(df).create_indexes(MinMaxIndex("n"))
        monkeypatch.setattr(LocalFileSystem, "read_ranges", slow)
        # Another cache bound is another store, which has read nothing yet.
        with conf(spark, {"spark.skipstone.cacheBytes": "1000003"}), skipping_stats(spark) as stats:
            df.where("n = 13").inputFiles()
    scan = stats[-1]
    assert scan.objects.kept == 1
    assert scan.seconds["metadata"] >= 0.05
    assert scan.seconds["planner"] < scan.planning_seconds - 0.05


def test_each_scan_of_a_query_has_its_own_counts(spark, df):
    low, high = df.where("n < 10").alias("a"), df.where("n >= 20").alias("b")
    with skipping_stats(spark) as stats:
        low.join(high, F.col("a.m") == F.col("b.m")).collect()
    assert sorted(map(told, stats)) == [(10, 1), (30, 3)]
    assert {scan.objects.kept: scan.files_read for scan in stats} == {1: 1, 3: 3}


def test_scans_of_the_same_objects_are_told_apart_by_their_filters(spark, df):
    df.createOrReplaceTempView("runs")
    with conf(spark, {"spark.skipstone.joins": "false"}), skipping_stats(spark) as stats:
        spark.sql("SELECT * FROM runs WHERE n > (SELECT max(n) - 5 FROM runs WHERE m = 1)").collect()
    by_condition = {"m = " in scan.condition: scan for scan in stats}
    assert len(by_condition) == 2
    assert by_condition[True].rows_read == OBJECTS * 10
    assert by_condition[False].files_read == OBJECTS
    assert len({scan.run_seconds for scan in stats}) == 1


def test_a_query_that_fails_has_not_run(spark, df):
    with skipping_stats(spark) as stats:
        with pytest.raises(Exception, match="no such number"):
            df.where("n = 12 AND assert_true(n > 100, 'no such number') IS NULL").collect()
        assert stats[-1].run_seconds is None


def test_what_runs_after_the_block_is_told_too(spark, df):
    with skipping_stats(spark) as stats:
        query = df.where("n = 14")
        query.inputFiles()
    assert stats[-1].run_seconds is None
    query.collect()
    assert stats[-1].rows_read == 10
    df.where("n = 15").collect()
    assert len(stats) == 1


def test_writes_and_formats_without_columns(spark, df, tmp_path):
    with skipping_stats(spark) as stats:
        df.where("n < 20").write.csv(str(tmp_path / "out"))
        spark.read.schema("n INT, m INT").csv(str(tmp_path / "out")).where("n = 3").collect()
    assert told(stats[0]) == (20, 2)
    assert stats[1].scan_seconds is None
    assert stats[1].run_seconds is not None


def test_reads_inside_reads_count_once():
    @timed_read
    def inner():
        time.sleep(0.02)

    @timed_read
    def outer():
        inner()
        inner()

    with reading_time() as spent:
        started = time.perf_counter()
        outer()
        elapsed = time.perf_counter() - started
    assert 0.04 <= spent.seconds <= elapsed
    inner()
    assert spent.seconds <= elapsed
