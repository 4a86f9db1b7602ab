"""Objects come, go and change; metadata is used only for what it describes."""

from __future__ import annotations

import os
import time

import pytest
from tests.support import assert_same_rows, conf, write_objects

from skipstone import Dataset, MinMaxIndex, ValueListIndex, skipping_stats

SCHEMA = "id int"


@pytest.fixture
def folder(spark, tmp_path):
    write_objects(spark, tmp_path / "d", SCHEMA, ("(1)", "(2)", "(3)"))
    Dataset.for_path(spark, str(tmp_path / "d")).create_indexes(MinMaxIndex("id"), ValueListIndex("id"))
    return tmp_path / "d"


def planned(spark, folder, predicate):
    """Plan a fresh read; give its counts."""
    with skipping_stats(spark) as stats:
        spark.read.parquet(str(folder)).where(predicate).inputFiles()
    return stats[-1].objects


def test_added_objects_are_read(spark, folder):
    write_objects(spark, folder, SCHEMA, ("(9)",), first=3)
    counts = planned(spark, folder, "id = 9")
    assert (counts.total, counts.kept, counts.unindexed) == (4, 1, 1)
    assert spark.read.parquet(str(folder)).where("id = 9").count() == 1


def test_refresh_indexes_what_is_new_and_forgets_what_is_gone(spark, folder):
    write_objects(spark, folder, SCHEMA, ("(9)",), first=3)
    (folder / "object-0000.snappy.parquet").unlink()
    report = Dataset.for_path(spark, str(folder)).refresh()
    assert (report.indexed, report.removed) == (1, 1)
    counts = planned(spark, folder, "id = 77")
    assert (counts.total, counts.kept, counts.unindexed, counts.stale) == (3, 0, 0, 0)


def test_refresh_without_changes_writes_nothing(spark, folder):
    def written():
        return {(p, p.stat().st_mtime_ns) for p in (folder / "_skipstone").rglob("*")}

    before = written()
    report = Dataset.for_path(spark, str(folder)).refresh()
    assert (report.indexed, report.removed) == (0, 0)
    assert written() == before


def test_refresh_of_paths_only(spark, folder):
    write_objects(spark, folder, SCHEMA, ("(8)", "(9)"), first=3)
    new = str(folder / "object-0003.snappy.parquet")
    assert Dataset.for_path(spark, str(folder)).refresh(paths=[new]).indexed == 1
    counts = planned(spark, folder, "id = 77")
    assert (counts.kept, counts.unindexed) == (1, 1)


@pytest.mark.parametrize("same_time", [False, True], ids=["later", "same second"])
def test_overwritten_with_the_same_length(spark, folder, tmp_path, same_time):
    """Only a time that differs, or an e-tag, tells an overwrite of equal length."""
    write_objects(spark, tmp_path / "other", SCHEMA, ("(5)",))
    target, source = folder / "object-0001.snappy.parquet", tmp_path / "other" / "object-0000.snappy.parquet"
    before = target.stat()
    assert before.st_size == source.stat().st_size
    target.write_bytes(source.read_bytes())
    if same_time:
        os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))
    counts = planned(spark, folder, "id = 5")
    assert (counts.kept, counts.stale) == (1, 1)
    assert spark.read.parquet(str(folder)).where("id = 5").count() == 1
    Dataset.for_path(spark, str(folder)).refresh()
    assert planned(spark, folder, "id = 2").kept == 0
    assert spark.read.parquet(str(folder)).where("id = 5").count() == 1


def test_object_modified_as_it_was_indexed_is_not_trusted(spark, folder):
    young = folder / "object-0002.snappy.parquet"
    ahead = time.time_ns() + 3_600 * 10**9
    os.utime(young, ns=(ahead, ahead))
    report = Dataset.for_path(spark, str(folder)).refresh()
    assert report.untrusted == 1
    assert planned(spark, folder, "id = 77").kept == 1
    past = time.time_ns() - 10**10
    os.utime(young, ns=(past, past))
    assert Dataset.for_path(spark, str(folder)).refresh().untrusted == 0
    assert planned(spark, folder, "id = 77").kept == 0


def test_appended_text_file(spark, tmp_path):
    file = tmp_path / "d" / "a.csv"
    file.parent.mkdir()
    file.write_text("1\n2\n")
    (tmp_path / "d" / "b.csv").write_text("7\n")
    df = spark.read.schema(SCHEMA).csv(str(tmp_path / "d"))
    Dataset(df).create_indexes(MinMaxIndex("id"))
    with file.open("a") as out:
        out.write("99\n")
    again = spark.read.schema(SCHEMA).csv(str(tmp_path / "d"))
    assert again.where("id = 99").count() == 1


def test_overwrite_of_the_whole_dataset_is_noticed(spark, folder):
    assert planned(spark, folder, "id = 77").kept == 0
    spark.createDataFrame([(77,)], SCHEMA).write.mode("overwrite").parquet(str(folder))
    assert spark.read.parquet(str(folder)).where("id = 77").count() == 1
    assert not Dataset.for_path(spark, str(folder)).is_indexed


def test_dataframe_made_before_a_change_answers_as_spark_listed(spark, folder):
    df = spark.read.parquet(str(folder))
    assert df.where("id = 3").count() == 1
    write_objects(spark, folder, SCHEMA, ("(3)",), first=7)
    assert_same_rows(spark, df.where("id = 3"))


def test_refresh_table_and_by_path(spark, tmp_path):
    location = tmp_path / "t"
    spark.sql(f"CREATE TABLE refreshed (id INT) USING parquet LOCATION '{location}'")
    try:
        spark.sql("INSERT INTO refreshed VALUES (1)")
        spark.sql("INSERT INTO refreshed VALUES (2)")
        Dataset.for_table(spark, "refreshed").create_indexes(MinMaxIndex("id"))
        assert spark.table("refreshed").where("id = 5").count() == 0
        spark.sql("INSERT INTO refreshed VALUES (5)")
        assert spark.table("refreshed").where("id = 5").count() == 1
        spark.catalog.refreshByPath(str(location))
        assert spark.table("refreshed").where("id = 5").count() == 1
    finally:
        spark.sql("DROP TABLE refreshed")


@pytest.mark.parametrize(
    ("options", "served"),
    [
        ({}, True),
        ({"sep": ";"}, False),
        ({"nullValue": "2"}, False),
        ({"header": "true"}, False),
        ({"mode": "FAILFAST"}, False),
    ],
    ids=str,
)
def test_read_options_that_change_values(spark, tmp_path, options, served):
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "a.csv").write_text("1,x\n2,y\n")
    (folder / "b.csv").write_text("3,z\n4,z\n")
    Dataset(spark.read.schema("id int, s string").csv(str(folder))).create_indexes(MinMaxIndex("id"))
    df = spark.read.options(**options).schema("id int, s string").csv(str(folder))
    with skipping_stats(spark) as stats:
        df.where("id > 2").inputFiles()
    assert (stats[-1].objects.skipped == 1) is served
    if not served:
        assert any("when indexed" in reason for reason in stats[-1].not_used)
    for predicate in ("id > 2", "id IS NULL", "id = 1", "s = 'y'"):
        if options != {"mode": "FAILFAST"}:
            assert_same_rows(spark, df.where(predicate))


def test_same_files_under_another_schema(spark, tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "a.csv").write_text("1,20\n")
    (folder / "b.csv").write_text("10,2\n")
    Dataset(spark.read.schema("a int, b int").csv(str(folder))).create_indexes(MinMaxIndex("a"), MinMaxIndex("b"))
    swapped = spark.read.schema("b int, a int").csv(str(folder))
    for predicate in ("a = 20", "b = 1", "a = 2", "b = 10"):
        assert assert_same_rows(spark, swapped.where(predicate)) == 0
    as_json = spark.read.schema("a int, b int").json(str(folder))
    assert_same_rows(spark, as_json.where("a IS NULL"))


def test_time_zone_of_the_session_changes_what_text_says(spark, tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "a.csv").write_text("2024-01-01 00:30:00\n")
    (folder / "b.csv").write_text("2024-01-01 12:00:00\n")
    with conf(spark, {"spark.sql.session.timeZone": "UTC"}):
        Dataset(spark.read.schema("ts timestamp").csv(str(folder))).create_indexes(MinMaxIndex("ts"))
    with conf(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        df = spark.read.schema("ts timestamp").csv(str(folder))
        for predicate in ("ts = timestamp'2024-01-01 00:30:00'", "ts > timestamp'2024-01-01 11:00:00'"):
            assert df.where(predicate).count() == 1
