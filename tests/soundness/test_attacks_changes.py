"""Attacks: objects, tables and indexes that change between indexing, planning and reading."""

from __future__ import annotations

import os
import shutil
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skipstone import BloomFilterIndex, Dataset, HybridIndex, MinMaxIndex, SkipstoneError, ValueListIndex
from skipstone.engines.spark.source import SparkSource
from tests.soundness.attack import age, parquet, rows_of, same_answers, same_rows, text
from tests.soundness.campaign import SPARK_ERRORS
from tests.support import conf

pytestmark = pytest.mark.long

EVERY = (MinMaxIndex, ValueListIndex, BloomFilterIndex, HybridIndex)
PREDICATES = ["a = 1", "a = 2", "a = 3", "a > 2", "a < 2", "a <> 1", "a IS NULL", "a IN (3, 4)", "NOT a <=> 2"]


def index_all(df, *columns, types=EVERY):
    return Dataset(df).create_indexes(*(type_(column) for type_ in types for column in columns or ("*",)))


@pytest.fixture
def folder(spark, tmp_path):
    parquet(tmp_path / "d", {"a": [1]}, {"a": [2]})
    index_all(spark.read.parquet(f"{tmp_path}/d"), "a")
    return tmp_path / "d"


def swap_in(folder, name, columns, *, like=None):
    """Replace an object, with the modification time of another moment or just that of ``like``."""
    file = folder / name
    before = (like or file).stat()
    pq.write_table(pa.table(columns), file)
    if like is not None:
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_objects_that_changed_places(spark, tmp_path):
    folder = tmp_path / "d"
    parquet(folder, {"a": [1]}, {"a": [2]})
    one, two = folder / "object-000.parquet", folder / "object-001.parquet"
    os.utime(two, (time.time() - 60, time.time() - 60))  # of one length and one time, they could not be told apart
    index_all(spark.read.parquet(str(folder)), "a")
    one.rename(folder / "x")
    two.rename(one)
    (folder / "x").rename(two)
    same_answers(spark, spark.read.parquet(str(folder)), PREDICATES)


def test_object_replaced_by_a_longer_one_of_the_same_time(spark, folder):
    file = folder / "object-000.parquet"
    swap_in(folder, file.name, {"a": [3, 4, 5]}, like=file)
    same_answers(spark, spark.read.parquet(str(folder)), PREDICATES)


def test_time_that_goes_backwards(spark, folder):
    swap_in(folder, "object-000.parquet", {"a": [3]})
    os.utime(folder / "object-000.parquet", (1_000_000, 1_000_000))
    same_answers(spark, spark.read.parquet(str(folder)), PREDICATES)
    Dataset(spark.read.parquet(str(folder))).refresh()
    assert same_answers(spark, spark.read.parquet(str(folder)), PREDICATES)


def test_every_step_of_a_life(spark, tmp_path):
    folder = tmp_path / "d"
    parquet(folder, {"a": [1]}, {"a": [2]})

    def now():
        return spark.read.schema("a BIGINT, b STRING").parquet(str(folder))

    index_all(now(), "a")
    skipped = 0
    for step in range(8):
        match step:
            case 0:
                pq.write_table(pa.table({"a": [3]}), folder / "new.parquet")
            case 1:
                Dataset(now()).refresh()
            case 2:
                (folder / "object-000.parquet").unlink()
            case 3:
                pq.write_table(pa.table({"a": [None, 3], "b": ["x", None]}), folder / "object-000.parquet")
            case 4:
                age(folder, 500)
                Dataset(now()).refresh()
            case 5:
                Dataset(now()).create_indexes(ValueListIndex("b"), MinMaxIndex("b"))
            case 6:
                Dataset(now()).drop_indexes("minmax(a)")
                pq.write_table(pa.table({"b": ["y"]}), folder / "object-001.parquet")
            case 7:
                age(folder, 400)
                Dataset(now()).refresh(paths=[str(folder / "object-001.parquet")])
        skipped += same_answers(spark, now(), [*PREDICATES, "b = 'x'", "b = 'y'", "b IS NULL", "a = 3 AND b IS NULL"])
    assert skipped


def test_index_made_again_under_the_same_name_on_another_column(spark, tmp_path):
    parquet(tmp_path / "d", {"a": [1], "b": [20]}, {"a": [2], "b": [10]})
    df = spark.read.parquet(f"{tmp_path}/d")
    Dataset(df).create_indexes(MinMaxIndex("a", name="mine"))
    assert same_answers(spark, df, ["a = 1", "b = 10"])
    Dataset(df).drop_indexes("mine")
    Dataset(df).create_indexes(MinMaxIndex("b", name="mine"))
    assert same_answers(spark, df, ["a = 1", "b = 10", "b = 1"])
    Dataset(df).drop_indexes("mine")
    Dataset(df).create_indexes(ValueListIndex("a", name="mine"))
    assert same_answers(spark, df, ["a = 1", "b = 10", "a <> 1"])


def test_two_indexes_of_one_kind_with_other_options(spark, tmp_path):
    parquet(tmp_path / "d", *({"a": list(range(n, n + 30))} for n in (0, 100, 200)))
    df = spark.read.parquet(f"{tmp_path}/d")
    Dataset(df).create_indexes(
        *(HybridIndex("a", threshold=threshold) for threshold in (1, 1000, "auto")),
        *(BloomFilterIndex("a", fpp=fpp) for fpp in (0.5, 0.0001)),
        *(MinMaxIndex("a", name=name) for name in ("one", "again")),
    )
    assert same_answers(spark, df, ["a = 105", "a IN (5, 205)", "a <> 5", "a = 50", "a IS NULL", "a > 150"])


@pytest.mark.parametrize("write", ["overwrite", "append", "INSERT OVERWRITE", "TRUNCATE", "recreated"])
def test_tables_written_after_they_were_indexed(spark, tmp_path, write):
    spark.sql("DROP TABLE IF EXISTS changing")
    spark.sql("CREATE TABLE changing (a BIGINT) USING parquet")
    try:
        spark.sql("INSERT INTO changing VALUES (1)")
        spark.sql("INSERT INTO changing VALUES (2)")
        time.sleep(0.2)
        Dataset.for_table(spark, "changing").create_indexes(*(t("a") for t in EVERY))
        same_answers(spark, spark.table("changing"), PREDICATES)
        before = spark.table("changing")
        match write:
            case "overwrite":
                spark.range(3, 5).toDF("a").write.mode("overwrite").saveAsTable("changing")
            case "append":
                spark.range(3, 5).toDF("a").write.mode("append").saveAsTable("changing")
            case "INSERT OVERWRITE":
                spark.sql("INSERT OVERWRITE changing SELECT a + 1 FROM VALUES (1), (2) t(a)")
            case "TRUNCATE":
                spark.sql("TRUNCATE TABLE changing")
                spark.sql("INSERT INTO changing VALUES (3)")
            case "recreated":
                spark.sql("DROP TABLE changing")
                spark.sql("CREATE TABLE changing (a STRING) USING parquet")
                spark.sql("INSERT INTO changing VALUES ('1'), ('10')")
        same_answers(spark, spark.table("changing"), [*PREDICATES, "a = 10", "a = '10'"])
        assert before is not None
    finally:
        spark.sql("DROP TABLE IF EXISTS changing")


def test_insert_overwrite_of_partitions_from_the_same_table(spark, tmp_path):
    spark.sql("DROP TABLE IF EXISTS itself")
    spark.sql(f"CREATE TABLE itself (a INT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}/t'")
    try:
        spark.sql("INSERT INTO itself SELECT id, id % 3 FROM range(30)")
        age(tmp_path / "t")
        spark.sql("REFRESH TABLE itself")
        index_all(spark.table("itself"), "a")
        with conf(spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
            before = rows_of(spark.table("itself").where("NOT (p = 1 AND a > 10)"))
            spark.sql("INSERT OVERWRITE itself PARTITION (p) SELECT * FROM itself WHERE p = 1 AND a <= 10")
            assert rows_of(spark.table("itself")) == before
            same_answers(spark, spark.table("itself"), ["a = 1", "a = 13", "p = 1", "a > 20", "a < 5 AND p = 1"])
            spark.sql("INSERT INTO itself SELECT a + 100, p FROM itself WHERE a = 1 OR a = 2")
        same_answers(spark, spark.table("itself"), ["a = 101", "a = 102", "a > 100", "a = 1"])
    finally:
        spark.sql("DROP TABLE IF EXISTS itself")


def test_dataframe_listed_before_its_files_changed(spark, folder):
    old = spark.read.parquet(str(folder))
    planned = old.where("a = 2")
    planned._jdf.queryExecution().optimizedPlan()
    pq.write_table(pa.table({"a": [2]}), folder / "new.parquet")
    age(folder, 300)
    Dataset(spark.read.parquet(str(folder))).refresh()
    with conf(spark, {"spark.sql.files.ignoreMissingFiles": "true"}):
        same_rows(spark, lambda: old.where("a = 2"))
    assert planned.count() == 1


def test_refresh_and_queries_at_the_same_time(spark, folder):
    wrong: list[str] = []
    stop = threading.Event()

    def ask() -> None:
        try:
            while not stop.is_set():
                df = spark.read.parquet(str(folder))
                listed = len(df.inputFiles())
                found = df.where("a >= 100").count()
                if found != listed - 2:
                    wrong.append(f"{found} of {listed - 2}")
        except Exception as error:  # noqa: BLE001  a thread's failure must reach the test
            wrong.append(repr(error))

    asking = [threading.Thread(target=ask) for _ in range(2)]
    for thread in asking:
        thread.start()
    try:
        for n in range(5):
            scratch = folder.parent / "scratch.parquet"
            pq.write_table(pa.table({"a": [100 + n]}), scratch)
            os.utime(scratch, (time.time() - 100, time.time() - 100))
            scratch.rename(folder / f"added-{n}.parquet")
            Dataset(spark.read.parquet(str(folder))).refresh()
            if n == 2:
                Dataset(spark.read.parquet(str(folder))).drop_indexes("minmax(a)")
    finally:
        stop.set()
        for thread in asking:
            thread.join()
    assert not wrong
    assert same_answers(spark, spark.read.parquet(str(folder)), [*PREDICATES, "a = 103"])


def test_indexes_made_by_several_threads(spark, tmp_path):
    parquet(tmp_path / "d", *({"a": [n], "b": [n], "c": [n], "d": [n]} for n in range(4)))
    failures: list[Exception] = []

    def make(index) -> None:
        try:
            Dataset(spark.read.parquet(f"{tmp_path}/d")).create_indexes(index)
        except SkipstoneError as error:  # "try again" is an honest answer
            failures.append(error)

    threads = [threading.Thread(target=make, args=(t(c),)) for t, c in zip(EVERY, "abcd", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failures) < 4
    df = spark.read.parquet(f"{tmp_path}/d")
    assert same_answers(spark, df, [f"{c} {p}" for c in "abcd" for p in ("= 1", "IS NULL", "IN (2, 3)")])


def test_damaged_metadata_is_not_believed(spark, folder):
    files = [f for f in (folder / "_skipstone").rglob("*") if f.is_file() and not f.name.endswith(".crc")]
    assert files
    for file in files:
        whole = file.read_bytes()
        for damage in (
            whole[: len(whole) // 2],
            b"",
            whole[:10] + bytes(b ^ 0xFF for b in whole[10:40]) + whole[40:],
            whole + b"x",
        ):
            file.write_bytes(damage)
            fresh = folder.parent / f"copy-{abs(hash((file.name, damage))) % 10**8}"
            shutil.copytree(folder, fresh, copy_function=shutil.copy2)
            rows = spark.read.parquet(str(folder)).where("a = 2").collect()
            assert [row.a for row in rows] == [2]
            shutil.rmtree(fresh)
        file.write_bytes(whole)


def test_appended_and_truncated_text(spark, tmp_path):
    text(tmp_path / "d", ".csv", "1\n", "2\n")

    def now():
        return spark.read.schema("a INT").csv(f"{tmp_path}/d")

    index_all(now(), "a")
    assert same_answers(spark, now(), PREDICATES)
    with (tmp_path / "d" / "object-000.csv").open("a") as file:
        file.write("3\n")
    same_answers(spark, now(), PREDICATES)
    (tmp_path / "d" / "object-001.csv").write_text("3\n")
    same_answers(spark, now(), PREDICATES)
    age(tmp_path / "d", 200)
    Dataset(now()).refresh()
    assert same_answers(spark, now(), PREDICATES)


def test_column_that_changes_its_type_between_refreshes(spark, tmp_path):
    parquet(tmp_path / "d", {"a": pa.array([1], pa.int32())}, {"a": pa.array([2], pa.int32())})
    index_all(spark.read.schema("a INT").parquet(f"{tmp_path}/d"), "a")
    pq.write_table(pa.table({"a": pa.array([3, 1 << 40], pa.int64())}), tmp_path / "d" / "wide.parquet")
    age(tmp_path / "d", 300)
    wide = spark.read.schema("a BIGINT").parquet(f"{tmp_path}/d")
    same_answers(spark, wide, [*PREDICATES, "a = 1099511627776"])
    with pytest.raises(SkipstoneError):
        Dataset(wide).refresh()
    same_answers(spark, wide, [*PREDICATES, "a = 1099511627776"])


def test_overwriting_what_is_being_read_fails_as_it_does_without_skipping(spark, tmp_path):
    failed = {}
    for enabled in ("false", "true"):
        folder = tmp_path / enabled
        parquet(folder, {"a": [1]}, {"a": [2]}, {"a": [3]})
        index_all(spark.read.parquet(str(folder)), "a")
        with conf(spark, {"spark.skipstone.enabled": enabled}):
            try:
                spark.read.parquet(str(folder)).where("a = 2").write.mode("overwrite").parquet(str(folder))
                failed[enabled] = False
            except SPARK_ERRORS:
                failed[enabled] = True
    assert failed["true"] == failed["false"]


def test_object_rewritten_while_it_is_indexed(spark, tmp_path, monkeypatch):
    folder = tmp_path / "d"
    parquet(folder, {"a": [1]}, {"a": [2]})
    collected = SparkSource.collect

    def meddled(source, objects, bound):
        found = collected(source, objects, bound)
        swap_in(folder, "object-000.parquet", {"a": [3]})
        return found

    monkeypatch.setattr(SparkSource, "collect", meddled)
    report = index_all(spark.read.parquet(str(folder)), "a")
    monkeypatch.undo()
    assert report.left_out == 1
    assert same_answers(spark, spark.read.parquet(str(folder)), PREDICATES)
    age(folder, 100)
    Dataset(spark.read.parquet(str(folder))).refresh()
    assert same_answers(spark, spark.read.parquet(str(folder)), PREDICATES)
