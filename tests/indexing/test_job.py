"""The index job: every format, parts that merge, rowless objects, objects that change, plug-ins that raise."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time

import pytest
from pyspark.sql import functions as F

from skipstone.engines.spark.arrow_job import OBJECT_COLUMN, collect_with_arrow
from skipstone.engines.spark.source import SparkSource
from skipstone.errors import IndexingError
from skipstone.indexes.bloom_filter import BloomFilterIndex
from skipstone.indexes.hybrid import HybridIndex
from skipstone.indexes.minmax import MinMaxIndex
from skipstone.indexes.value_list import ValueListIndex
from skipstone.indexing import job
from skipstone.indexing.job import index_objects
from skipstone.indexing.records import field_column
from tests.indexing.helpers import bind, by_file, rows_of, run, source_and_objects, source_of
from tests.indexing.plugins import LongestIndex, RaisingIndex, TouchingIndex
from tests.support import conf, write_objects

SMALL_SPLITS = {"spark.sql.files.maxPartitionBytes": "4096", "spark.sql.files.openCostInBytes": "1024"}


def age(folder, seconds=60):
    """Make the files of a folder look older than the clock's granularity."""
    then = time.time() - seconds
    for file in folder.rglob("*"):
        if file.is_file():
            os.utime(file, (then, then))


@pytest.mark.parametrize("fmt", ["parquet", "orc", "json", "csv"])
def test_every_format_with_columns(spark, tmp_path, fmt):
    path = write_objects(
        spark,
        tmp_path / "d",
        "n INT, t STRING, d DATE",
        ["(1, 'a', '2020-01-01'), (3, NULL, '2020-01-02')", "(NULL, 'z', NULL)", "(5, 'é', '1970-01-02')"],
        fmt,
    )
    df = spark.read.format(fmt).schema("n INT, t STRING, d DATE").load(path)
    outcome, found = run(df, MinMaxIndex("n"), MinMaxIndex("d"), ValueListIndex("t"))
    first, second, third = (found[name] for name in sorted(found))
    assert (outcome.listed, outcome.left_out) == (3, 0)
    assert [o["rows"] for o in (first, second, third)] == [2, 1, 1]
    assert first["minmax(n)"] == {"lower": 1, "upper": 3, "null_count": 0}
    assert first["minmax(d)"] == {"lower": 18262, "upper": 18263, "null_count": 0}
    assert second["minmax(n)"] == {"lower": None, "upper": None, "null_count": 1}
    assert first["valuelist(t)"]["null_count"] == 1
    assert third["valuelist(t)"]["values"] in (["é"], ["é".encode()])


def test_text(spark, tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    with gzip.open(tmp_path / "b.txt.gz", "wt") as file:
        file.write("three\n")
    _, found = run(spark.read.text(str(tmp_path)), MinMaxIndex("value"))
    assert found["a.txt"]["minmax(value)"] == {"lower": b"one", "upper": b"two", "null_count": 0}
    assert found["b.txt.gz"]["rows"] == 1


def test_parts_of_an_object_merge_to_the_same_as_the_whole(spark, tmp_path):
    folder = tmp_path / "d"
    folder.mkdir()
    for number, rows in enumerate((3_000, 10, 1_500)):
        lines = (f"{number * 10_000 + i},{'x' * (i % 50)},{i / 7}" for i in range(rows))
        (folder / f"{number}.csv").write_text("\n".join(lines) + "\n")
    df = spark.read.schema("n INT, t STRING, f DOUBLE").csv(str(folder))
    bound = bind(
        df,
        MinMaxIndex("n"),
        ValueListIndex("t"),
        BloomFilterIndex("n"),
        HybridIndex("f", threshold=1_000),
        LongestIndex("t"),
    )
    source, objects = source_and_objects(df)
    whole = collect_with_arrow(source, objects, bound)
    with conf(spark, SMALL_SPLITS):
        source, objects = source_and_objects(df)
        frame, whole_up_to = source.read(objects)
        assert sum(o.length > whole_up_to for o in objects) == 2
        assert frame.rdd.getNumPartitions() > 3
        parts = collect_with_arrow(source, objects, bound)
    assert rows_of(parts) == rows_of(whole)
    assert sorted(parts.column("row_count").to_pylist()) == [10, 1_500, 3_000]


def test_a_batch_with_many_objects_is_cut_at_their_borders(spark, tmp_path):
    spark.range(0, 1_000, 1, 40).selectExpr("id", "id % 7 AS k").write.orc(str(tmp_path / "d"))
    _, found = run(spark.read.orc(str(tmp_path / "d")), ValueListIndex("id"), MinMaxIndex("k"))
    values = sorted(v for o in found.values() for v in o["valuelist(id)"]["values"])
    assert values == list(range(1_000))
    assert {o["rows"] for o in found.values()} == {25}


def test_objects_without_rows_have_an_entry(spark, tmp_path):
    spark.range(3).write.parquet(str(tmp_path / "d"))
    spark.range(0).write.mode("append").parquet(str(tmp_path / "d"))
    df = spark.read.parquet(str(tmp_path / "d"))
    _, found = run(df, MinMaxIndex("id"), ValueListIndex("id"), BloomFilterIndex("id"), LongestIndex("id"))
    rowless = [o for o in found.values() if o["rows"] == 0]
    assert rowless
    assert sum(o["rows"] for o in found.values()) == 3
    assert rowless[0]["minmax(id)"] == {"lower": None, "upper": None, "null_count": 0}
    assert rowless[0]["valuelist(id)"]["values"] == []
    assert rowless[0]["longest(id)"]["rows"] == 0


def test_nested_odd_and_partition_columns(spark, tmp_path):
    df = spark.sql(
        "SELECT named_struct('x', id, 'in ner', named_struct('y', cast(id AS STRING))) AS s, id AS `odd.name`, "
        "id AS `null`, id AS `tick```, id % 2 AS `p q` FROM range(10)"
    )
    df.coalesce(1).write.partitionBy("p q").json(str(tmp_path / "d"))
    read = spark.read.schema(df.schema).json(str(tmp_path / "d"))
    columns = ("s.x", "s.`in ner`.y", "`odd.name`", "`null`", "`tick```", "`p q`")
    _, found = run(read, *map(ValueListIndex, columns), *map(MinMaxIndex, columns), LongestIndex("`p q`"))
    for stored in found.values():
        remainder = stored["minmax(`p q`)"]["lower"]
        expected = [n for n in range(10) if n % 2 == remainder]
        for column in ("s.x", "`odd.name`", "null", "`tick```"):  # the canonical spellings
            assert sorted(stored[f"valuelist({column})"]["values"]) == expected
        assert stored["valuelist(`p q`)"]["values"] == [remainder]
        assert stored["minmax(s.`in ner`.y)"]["upper"] == str(expected[-1]).encode()


def test_odd_paths(spark, tmp_path):
    folder = tmp_path / "a b%20c"
    for name in ("k=ä +1", "k=x%2Fy", "k=__HIVE_DEFAULT_PARTITION__"):
        (folder / name).mkdir(parents=True)
        (folder / name / "f #1.csv").write_text("1\n")
    df = spark.read.schema("n INT").csv(str(folder))
    source = source_of(df)
    bound = bind(df, MinMaxIndex("n"), ValueListIndex("k"), LongestIndex("k"))
    outcome = index_objects(source, bound)
    assert outcome.table.num_rows == 3
    column = field_column(bound[1].id, "values")
    assert sorted(v for values in outcome.table.column(column).to_pylist() for v in values) == ["x/y", "ä +1"]
    wanted = [o for o in source.list_objects() if "ä" in o.path]
    assert index_objects(source, bound, wanted).table.column("path").to_pylist() == [wanted[0].path]


def test_the_table_is_what_the_store_wants(spark, tmp_path):
    spark.range(5).coalesce(1).write.parquet(str(tmp_path / "d"))
    age(tmp_path)
    df = spark.read.parquet(str(tmp_path / "d"))
    bound = bind(df, MinMaxIndex("id"))
    source = source_of(df)
    outcome = index_objects(source, bound)
    (data_object,) = source.list_objects()
    (row,) = outcome.table.to_pylist()
    assert row["digest"] == data_object.digest
    assert (row["path"], row["length"], row["modified"]) == (data_object.path, data_object.length, data_object.modified)
    assert row["trusted"] is True
    assert row[field_column(bound[0].id, "upper")] == 4
    assert outcome.fields == {bound[0].id: {"lower": "int64", "upper": "int64", "null_count": "int64"}}


def test_an_object_that_changes_meanwhile_is_left_out(spark, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("row\n")
    age(tmp_path)
    df = spark.read.text(str(tmp_path))
    outcome, found = run(df, TouchingIndex("value", file=str(tmp_path / "a.txt")))
    assert set(found) == {"b.txt"}
    assert (outcome.listed, outcome.left_out) == (2, 1)


def test_an_object_that_vanishes_meanwhile_is_left_out(spark, tmp_path, monkeypatch):
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("row\n")
    age(tmp_path)
    df = spark.read.text(str(tmp_path))
    collect = SparkSource.collect

    def late(source, objects, bound):
        (tmp_path / "1.txt").unlink(missing_ok=True)
        return collect(source, objects, bound)

    monkeypatch.setattr(SparkSource, "collect", late)
    outcome, found = run(df, LongestIndex("value"))
    assert set(found) == {"0.txt", "2.txt"}
    assert (outcome.listed, outcome.left_out) == (3, 1)


@pytest.mark.parametrize("index", [MinMaxIndex("id"), LongestIndex("id")])
def test_a_damaged_object_is_a_clear_error_whatever_the_session_ignores(spark, tmp_path, index):
    spark.range(4).coalesce(1).write.parquet(str(tmp_path / "d"))
    (tmp_path / "d" / "damaged.parquet").write_bytes(b"PAR1 this is not one PAR1")
    df = spark.read.schema("id LONG").parquet(str(tmp_path / "d"))
    ignoring = {"spark.sql.files.ignoreCorruptFiles": "true", "spark.sql.files.ignoreMissingFiles": "true"}
    with conf(spark, ignoring), pytest.raises(IndexingError, match=r"damaged\.parquet"):
        run(df, index)


@pytest.mark.parametrize(
    "options", [{"mode": "DROPMALFORMED"}, {"ignoreCorruptFiles": "true"}, {"badRecordsPath": "/nowhere"}]
)
def test_readers_that_leave_out_rows_are_refused(spark, tmp_path, options):
    (tmp_path / "a.csv").write_text("1\n")
    df = spark.read.schema("n INT").options(**options).csv(str(tmp_path))
    with pytest.raises(IndexingError, match="cannot be indexed"):
        run(df, MinMaxIndex("n"))


@pytest.mark.parametrize(("step", "said"), [("collect", "ValueError: the last line"), ("finish", "raised")])
def test_a_plugin_that_raises_is_named(spark, tmp_path, step, said):
    (tmp_path / "a.txt").write_text("row\n")
    with pytest.raises(IndexingError) as caught:
        run(spark.read.text(str(tmp_path)), MinMaxIndex("value"), RaisingIndex("value", step=step))
    assert "raising(value" in str(caught.value)
    assert said in str(caught.value)
    assert ("a.txt" if step == "collect" else "its field longest") in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_just_written_objects_are_waited_for_and_those_from_the_future_not_trusted(spark, tmp_path):
    for name in ("now", "future"):
        (tmp_path / f"{name}.txt").write_text("row\n")
    later = time.time() + 3_600
    os.utime(tmp_path / "future.txt", (later, later))
    outcome, found = run(spark.read.text(str(tmp_path)), LongestIndex("value"))
    assert found["now.txt"]["trusted"] is True
    assert found["future.txt"]["trusted"] is False
    assert outcome.untrusted == 1


def test_only_wanted_objects_are_indexed(spark, tmp_path):
    spark.range(0, 30, 1, 3).write.parquet(str(tmp_path / "d"))
    df = spark.read.parquet(str(tmp_path / "d"))
    source = source_of(df)
    bound = bind(df, MinMaxIndex("id"))
    wanted = source.list_objects()[1:2]
    outcome = index_objects(source, bound, wanted)
    assert outcome.table.column("path").to_pylist() == [wanted[0].path]
    assert (outcome.listed, outcome.left_out) == (1, 0)
    assert index_objects(source, bound, []).table.num_rows == 0


def test_many_wanted_objects_are_listed_by_their_folders(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(job, "_MOST_SINGLE_PATHS", 2)
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text("row\n")
    df = spark.read.text(str(tmp_path))
    source = source_of(df)
    bound = bind(df, LongestIndex("value"))
    wanted = source.list_objects()[:4]
    outcome = index_objects(source, bound, wanted)
    assert sorted(outcome.table.column("path").to_pylist()) == sorted(o.path for o in wanted)
    assert by_file(outcome, bound)


def test_the_users_session_keeps_its_settings(spark, tmp_path):
    spark.range(4).write.parquet(str(tmp_path / "d"))
    before = {row.key: row.value for row in spark.sql("SET").collect()}
    run(spark.read.parquet(str(tmp_path / "d")), ValueListIndex("id"))
    assert {row.key: row.value for row in spark.sql("SET").collect()} == before
    assert "skipstone" not in " ".join(p for p in sys.path if p.endswith(".zip"))


def test_workers_import_only_what_they_need():
    script = (
        "import sys, skipstone.indexing.collect, skipstone.indexes\n"
        "from skipstone import BloomFilterIndex, HybridIndex, MinMaxIndex, ValueListIndex\n"
        "heavy = {'typer', 'rich', 'xxhash', 'pandas', 'pyspark', 'hypothesis'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


ODD = ["a.txt", "b c.txt", "d%20e.txt", "ä#1.txt", "k=x%2Fy.txt"]


def test_looking_at_local_objects_tells_what_a_listing_tells(spark, tmp_path):
    def rewritten(file):
        file.write_text("other\n")

    def with_its_time(file):
        before = file.stat().st_mtime
        file.write_text("longer than before\n")
        os.utime(file, (before, before))

    def touched(file):
        os.utime(file, (1_600_000_000, 1_600_000_000.5))

    def gone(file):
        file.unlink()

    def a_folder(file):
        file.unlink()
        file.mkdir()

    def replaced_by_its_like(file):
        stat = file.stat()
        content = file.read_bytes()
        file.unlink()
        file.write_bytes(content)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def left(file):
        assert file.exists()

    ways = (rewritten, with_its_time, touched, gone, a_folder, replaced_by_its_like, left)
    for way in ways:
        (tmp_path / way.__name__).mkdir()
        for name in ODD:
            (tmp_path / way.__name__ / name).write_text("row\n")
    df = spark.read.option("recursiveFileLookup", value=True).text(str(tmp_path))
    source, objects = source_and_objects(df)
    assert source.changed(objects) == frozenset()
    for way in ways:
        for name in ODD:
            way(tmp_path / way.__name__ / name)
    changed = source.changed(objects)
    by_listing = set(source.list_objects())
    assert changed == {o.path for o in objects if o not in by_listing}
    assert len(changed) == 5 * len(ODD)


def test_local_objects_are_listed_once_and_partitions_of_catalogs_anew(spark, tmp_path, monkeypatch):
    listings = []
    list_objects = SparkSource.list_objects
    monkeypatch.setattr(SparkSource, "list_objects", lambda *asked: listings.append(1) or list_objects(*asked))
    spark.range(6).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(str(tmp_path / "d"))
    age(tmp_path)
    run(spark.read.parquet(str(tmp_path / "d")), MinMaxIndex("id"))
    assert len(listings) == 1
    spark.sql(f"CREATE TABLE left_partition (id LONG, p LONG) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/d'")
    try:
        spark.sql("MSCK REPAIR TABLE left_partition")
        source, objects = source_and_objects(spark.table("left_partition"))
        assert len(objects) == len(list((tmp_path / "d").rglob("*.parquet")))
        assert source.changed(objects) is None
    finally:
        spark.sql("DROP TABLE left_partition")


def test_small_objects_share_tasks_and_none_is_split_for_it(spark, tmp_path):
    (tmp_path / "small").mkdir()
    for number in range(100):
        (tmp_path / "small" / f"{number}.txt").write_text("row\n" * 100)
    source, objects = source_and_objects(spark.read.text(str(tmp_path / "small")))
    frame, _ = source.read(objects)
    assert spark.read.text(str(tmp_path / "small")).rdd.getNumPartitions() > 3
    assert frame.rdd.getNumPartitions() <= spark.sparkContext.defaultParallelism + 1
    (tmp_path / "uneven").mkdir()
    for number, rows in enumerate((1, 1_000_000)):
        (tmp_path / "uneven" / f"{number}.txt").write_text("row\n" * rows)
    source, objects = source_and_objects(spark.read.text(str(tmp_path / "uneven")))
    frame, whole_up_to = source.read(objects)
    assert whole_up_to >= max(o.length for o in objects)
    assert frame.rdd.getNumPartitions() == spark.read.text(str(tmp_path / "uneven")).rdd.getNumPartitions()


def test_what_is_read_whole_stays_so_when_executors_come(spark, tmp_path):
    for number in range(10):
        (tmp_path / f"{number}.txt").write_text("row\n" * 5_000)
    with conf(spark, {"spark.sql.files.openCostInBytes": "1"}):
        source, objects = source_and_objects(spark.read.text(str(tmp_path)))
    frame, whole_up_to = source.read(objects)
    assert whole_up_to >= max(o.length for o in objects)
    with conf(frame.sparkSession, {"spark.sql.leafNodeDefaultParallelism": "64"}):
        found = frame.select(OBJECT_COLUMN, F.spark_partition_id()).distinct().count()
    assert found == len(objects)
