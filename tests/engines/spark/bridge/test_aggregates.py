"""``count``, ``min`` and ``max`` from metadata: which aggregations are answered, and what happens before they run."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pyspark
import pytest
from pyspark.sql import functions as F
from tests.engines.spark.bridge.running import jobs_of
from tests.soundness.attack import parquet, text
from tests.support import conf

import skipstone
from skipstone import BloomFilterIndex, Dataset, MinMaxIndex

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

OBJECTS = 8


def _objects() -> list[dict[str, list[object]]]:
    """Ten rows an object: ``v`` rises from object to object, ``g`` and ``s`` are one value in each, ``n`` has NULLs."""
    return [
        {
            "v": list(range(10 * n, 10 * n + 10)),
            "g": [n // 2] * 10,
            "s": [f"s{n}"] * 10,
            "n": [None if k % 3 == 0 else k + n for k in range(10)],
            "d": [float(k) for k in range(10)],
            "w": list(range(10)),
        }
        for n in range(OBJECTS)
    ]


@pytest.fixture
def folder(spark, tmp_path) -> Path:
    path = parquet(tmp_path / "t", *_objects())
    indexes = [MinMaxIndex(column) for column in ("v", "g", "s", "n", "d")]
    Dataset.for_path(spark, path, format="parquet").create_indexes(*indexes)
    spark.read.parquet(path).createOrReplaceTempView("t")
    return tmp_path / "t"


def _put(folder: Path, number: int, rows: int) -> None:
    """Write one object of so many rows, new or over what was there."""
    new = parquet(folder.parent / "new", {k: (v * 10)[:rows] for k, v in _objects()[number % OBJECTS].items()})
    shutil.copyfile(f"{new}/object-000.parquet", folder / f"object-{number:03d}.parquet")


def _answered(spark: SparkSession, make: Callable[[], DataFrame]) -> int:
    """Run a query without and with skipping; compare, and return how many objects metadata answered for."""
    with conf(spark, {"spark.skipstone.enabled": "false"}):
        expected = sorted(make().collect(), key=repr)
    with skipstone.skipping_stats(spark) as stats:
        assert sorted(make().collect(), key=repr) == expected
    assert not [entry.error for entry in stats if entry.error]
    return sum(entry.aggregates.answered for entry in stats if entry.aggregates is not None)


ANSWERED = {
    "SELECT count(*) FROM t": 8,
    "SELECT count(1), count(n), count(s), min(v), max(v), min(n), max(n) FROM t": 8,
    "SELECT count(*) FROM t WHERE v < 35": 3,
    "SELECT count(*), max(n) FROM t WHERE v BETWEEN 10 AND 49": 4,
    "SELECT count(*) FROM t WHERE v >= 20 OR s = 's1'": 7,
    "SELECT count(*) FROM t WHERE n IS NOT NULL": 0,
    "SELECT count(*) FROM t WHERE v IS NOT NULL AND v <> 100": 8,
    "SELECT count(*) FROM t WHERE v > 1000": 0,
    "SELECT g, count(*), max(v) FROM t GROUP BY g": 8,
    "SELECT g, count(*) FROM t WHERE v < 25 GROUP BY g HAVING count(*) > 1": 2,
    "SELECT DISTINCT g FROM t": 8,
    "SELECT count(DISTINCT g) FROM t": 8,
    "SELECT s, count(*) FROM t GROUP BY s": 0,
    "SELECT v, count(*) FROM t GROUP BY v": 0,
    "SELECT g, n, count(*) FROM t GROUP BY g, n": 0,
    "SELECT renamed, count(*) FROM (SELECT g AS renamed, v + 1 AS more FROM t) GROUP BY renamed": 8,
    "SELECT max(more) FROM (SELECT v + 1 AS more FROM t)": 0,
    "SELECT min(s), max(s) FROM t": 0,
    "SELECT min(d), max(d) FROM t": 0,
    "SELECT count(w) FROM t": 0,  # no index is on it
    "SELECT sum(v), count(*) FROM t": 0,
    "SELECT count(*) FILTER (WHERE v < 5) FROM t": 0,
    "SELECT count(n, v) FROM t": 0,
    "SELECT count(NULL) FROM t": 0,
    "SELECT count(*) FROM t WHERE v < 100 AND spark_partition_id() >= 0": 0,
    "SELECT count(*) FROM t TABLESAMPLE (50 PERCENT) REPEATABLE (3)": 0,
    "SELECT count(*) FROM (SELECT * FROM t LIMIT 15)": 0,
    "SELECT count(*) FROM t JOIN (SELECT 3 AS w) USING (w)": 0,
    "SELECT count(*) FROM t WHERE v < (SELECT max(v) FROM t)": 8,
    "SELECT count(*) FROM t UNION ALL SELECT max(v) FROM t WHERE v < 20": 10,
    "SELECT (SELECT max(v) FROM t) AS m, count(*) FROM t": 16,
}


@pytest.mark.parametrize("sql", ANSWERED)
def test_what_metadata_answers(spark, folder, sql):
    assert _answered(spark, lambda: spark.sql(sql)) == ANSWERED[sql]


@pytest.mark.skipif(pyspark.__version__.startswith(("4.0", "4.1", "4.2")), reason="no scan is put into a single task")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(DISTINCT g), count(*) FROM t WHERE v < 35",
        "SELECT count(DISTINCT g), max(v) FROM t WHERE v < 35",
        "SELECT g, count(*), max(v) FROM t WHERE v < 35 GROUP BY g",
    ],
)
def test_a_plan_that_rests_on_a_scan_in_one_partition_is_left_alone(spark, folder, sql):
    setting = "spark.sql.optimizer.singleTaskExecution."
    with conf(spark, {f"{setting}enabled": "true", f"{setting}maxNumFiles": "100"}):
        assert _answered(spark, lambda: spark.sql(sql)) == 0


def test_it_is_told_and_can_be_turned_off(spark, folder):
    df = spark.sql("SELECT count(*) FROM t WHERE v < 35")
    assert df.collect()[0][0] == 35
    (entry,) = skipstone.last_query(spark)
    assert entry.aggregates is not None
    assert (entry.aggregates.answered, entry.objects.kept, entry.objects.skipped, entry.files_read) == (3, 1, 7, 1)
    assert entry.bytes_skipped > entry.aggregates.bytes_skipped > 0
    assert entry.aggregates.used == ("minmax(v)",)
    assert "answers 3 of 4 objects from metadata" in df._jdf.queryExecution().toString()
    with conf(spark, {"spark.skipstone.aggregates": "false"}):
        assert _answered(spark, lambda: spark.sql("SELECT count(*) FROM t")) == 0


def test_why_nothing_is_answered_is_said(spark, folder):
    spark.sql("SELECT count(*) FROM t WHERE n > 4").collect()
    (entry,) = skipstone.last_query(spark)
    assert entry.aggregates is not None
    assert entry.aggregates.answered == 0
    assert "counts and extremes: no object is known to match wholly" in entry.aggregates.not_used


def test_objects_that_changed_or_came_are_read(spark, folder):
    _put(folder, 2, 3)
    _put(folder, 9, 4)
    (folder / "object-005.parquet").unlink()
    df = spark.read.parquet(str(folder))
    assert _answered(spark, lambda: df.groupBy().count()) == 6
    assert df.count() == 67
    Dataset.for_path(spark, str(folder), format="parquet").refresh()
    assert _answered(spark, lambda: df.groupBy().count()) == 8


@pytest.mark.parametrize("again", [False, True])
def test_an_object_that_is_rewritten_after_it_was_listed_is_read(spark, folder, again):
    """Spark keeps a listing for as long as the DataFrame lives, and reads files as they are."""
    df = spark.read.parquet(str(folder))
    if again:
        assert df.count() == 80
    whole = (folder / "object-003.parquet").read_bytes()
    _put(folder, 3, 40)
    stamp = (folder / "object-003.parquet").stat()
    assert len(whole) != stamp.st_size
    with conf(spark, {"spark.skipstone.enabled": "false"}):
        plain = spark.read.parquet(str(folder)).groupBy().agg(F.count("*"), F.max("v")).collect()
    with skipstone.skipping_stats(spark) as stats:
        made = spark.read.parquet(str(folder)).groupBy().agg(F.count("*"), F.max("v")).collect()
        old = df.groupBy().agg(F.count("*")).collect()
    assert made == plain
    assert old[0][0] == 110
    assert [e.aggregates.answered for e in stats if e.aggregates] == [7, 0]


def test_a_file_that_is_gone_is_missed(spark, folder):
    df = spark.read.parquet(str(folder))
    df.count()
    (folder / "object-003.parquet").unlink()
    with pytest.raises(Exception, match="object-003"):
        df.groupBy().count().collect()


def test_a_plan_that_runs_again(spark, folder):
    """Its stages have run: like Spark, it has the answer of the first run."""
    df = spark.read.parquet(str(folder)).groupBy("g").agg(F.count("*"))
    first = sorted(df.collect())
    _put(folder, 3, 40)
    assert sorted(df.collect()) == first


def _plan(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().executedPlan())


def test_next_to_nothing_is_left_to_read(spark, folder):
    """No exchange then, and the driver reads what is left; the plan that was made tells it."""
    query = "SELECT count(*), max(n) FROM t WHERE v BETWEEN 5 AND 62"
    assert "Exchange" not in _plan(spark.sql(query))
    assert _answered(spark, lambda: spark.sql(query)) == 5
    assert jobs_of(spark, spark.sql(query).collect, "two left") == 0
    (entry,) = skipstone.last_query(spark)
    assert (entry.files_read, entry.rows_read) == (2, 20), entry
    assert jobs_of(spark, lambda: spark.sql(query).toPandas(), "one stage") == 1
    # Later releases of Spark make one of the two.
    assert _answered(spark, lambda: spark.sql(f"SELECT a.*, b.* FROM ({query}) a, ({query}) b")) in (5, 10)
    assert spark.sql(query).rdd.collect() == spark.sql(query).collect()


def test_nothing_is_left_to_read(spark, folder):
    """Whoever asks for the rows gets them without a job, first or again; other tasks get them by one."""
    df = spark.sql("SELECT count(*) + 1 AS n, max(v) AS v FROM t WHERE v < 50 HAVING max(v) > 3")
    assert jobs_of(spark, df.collect, "none left") == 0
    (entry,) = skipstone.last_query(spark)
    assert (entry.aggregates.answered, entry.objects.kept) == (5, 0)
    assert df.collect() == df.take(3) == df.tail(3) == [df.first()] == [(51, 49)]
    assert df.rdd.collect() == list(df.toLocalIterator()) == [(51, 49)]
    assert df.where("v < 3").collect() == df.tail(0) == []
    assert spark.table("t").where("v < 50").count() == 50
    other = spark.sql("SELECT count(*) AS n FROM t WHERE v < 50 HAVING count(*) > rand()")
    assert jobs_of(spark, other.collect, "random") == 1
    assert [tuple(row) for row in df.toPandas().to_numpy().tolist()] == [(51, 49)]


@pytest.mark.parametrize("where", ["v BETWEEN 5 AND 62", "v < 50"])
def test_what_the_driver_cannot_do_a_task_does(spark, folder, where):
    """An aggregation whose generated code is too long needs a task's memory."""
    query = f"SELECT count(*), max(n) FROM t WHERE {where}"
    with conf(spark, {"spark.sql.codegen.hugeMethodLimit": "1"}):
        assert _answered(spark, lambda: spark.sql(query)) == 5
        df = spark.sql(query)
        assert jobs_of(spark, df.collect, where) == 1
        assert df.collect() == df.collect()


def test_much_is_left_to_read(spark, tmp_path):
    path = parquet(tmp_path / "t", *({"v": [n, n + 100]} for n in range(10)), {"v": [50, 60]})
    Dataset.for_path(spark, path, format="parquet").create_indexes(MinMaxIndex("v"))
    df = spark.read.parquet(path).where("v < 100").agg(F.count("*"))
    assert "SkipstoneAggregate" not in _plan(df)
    assert _answered(spark, lambda: df.select("*")) == 1


@pytest.mark.parametrize("number", [3, 6])
def test_a_plan_without_exchange_that_runs_again(spark, folder, number):
    """What is read, and what is answered, are those of the first run, as with an exchange."""
    df = spark.read.parquet(str(folder)).where("v < 65").agg(F.count("*"), F.max("v"))
    first = df.collect()
    assert first == [(65, 64)]
    _put(folder, number, 40)
    assert df.collect() == first


def test_a_plan_that_first_runs_after_objects_changed(spark, folder):
    read = spark.read.parquet(str(folder))
    df, other = (read.where("v < 65").agg(F.count("*")) for _ in range(2))
    assert "SkipstoneAggregate" in _plan(df)
    _put(folder, 3, 40)  # answered
    _put(folder, 6, 4)  # read
    with conf(spark, {"spark.skipstone.enabled": "false"}):
        plain = other.collect()
    with skipstone.skipping_stats(spark) as stats:
        assert df.collect() == plain
    assert not [entry.aggregates.answered for entry in stats if entry.aggregates and entry.aggregates.answered]


def test_a_plan_that_first_runs_after_an_insert(spark, tmp_path):
    """Spark lists anew then, and so does the plan."""
    spark.sql(f"CREATE TABLE counted (v INT) USING parquet LOCATION '{tmp_path / 'counted'}'")
    try:
        spark.range(0, 40, 1, 4).selectExpr("CAST(id AS INT) v").write.insertInto("counted")
        Dataset.for_table(spark, "counted").create_indexes(MinMaxIndex("v"))
        df = spark.table("counted").agg(F.count("*"), F.max("v"))
        assert "SkipstoneAggregate" in _plan(df)
        spark.sql("INSERT INTO counted VALUES (100)")
        assert df.collect() == [(41, 100)]
        assert _answered(spark, lambda: spark.table("counted").agg(F.count("*"), F.max("v"))) == 4
    finally:
        spark.sql("DROP TABLE counted")


@pytest.mark.parametrize("setting", ["spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles"])
def test_readers_that_leave_out_rows(spark, folder, setting):
    with conf(spark, {setting: "true"}):
        assert _answered(spark, lambda: spark.sql("SELECT count(*) FROM t")) == 0


def test_readers_that_look_up_settings_in_their_tasks(spark, folder):
    with conf(spark, {"spark.sql.parquet.enableVectorizedReader": "false"}):
        assert _answered(spark, lambda: spark.sql("SELECT count(*) FROM t")) == 0


def test_without_adaptive_execution_objects_are_read(spark, folder):
    with conf(spark, {"spark.sql.adaptive.enabled": "false"}):
        assert _answered(spark, lambda: spark.sql("SELECT count(*) FROM t")) == 0


def test_partitions_are_constant(spark, tmp_path):
    path = str(tmp_path / "t")
    for day in (1, 2, None):
        rows = parquet(tmp_path / "new", {"v": [1, 2, None]}, {"v": [4]}, {"v": []})
        name = "__HIVE_DEFAULT_PARTITION__" if day is None else str(day)
        shutil.copytree(rows, f"{path}/day={name}")
    df = spark.read.parquet(path)
    Dataset.for_path(spark, path, format="parquet").create_indexes(MinMaxIndex("v"))
    assert _answered(spark, lambda: df.groupBy("day").agg(F.count("*"), F.count("v"), F.max("v"))) == 9
    assert _answered(spark, lambda: df.agg(F.min("day"), F.max("day"), F.count("day"))) == 9
    assert _answered(spark, lambda: df.where("day = 1").agg(F.count("*"))) == 3
    assert _answered(spark, lambda: df.where("day = 1 OR v = 4").agg(F.count("*"))) == 6  # all 4, or empty
    assert _answered(spark, lambda: df.where("day IS NULL AND v >= 4").groupBy("day").count()) == 1


def test_decimals_of_partitions_are_left_as_they_are(spark, tmp_path):
    """Spark's own values have the scale of the folder's name."""
    path = str(tmp_path / "t")
    for day in (1, 2, 10):
        shutil.copytree(parquet(tmp_path / "new", {"v": [1, 2]}), f"{path}/day={day}")
    Dataset.for_path(spark, path, format="parquet").create_indexes(MinMaxIndex("v"))
    df = spark.read.schema("v BIGINT, day DECIMAL(5,1)").parquet(path)
    with conf(spark, {"spark.skipstone.enabled": "false"}):
        before = sorted(df.select("day").collect())
    assert _answered(spark, lambda: df.agg(F.min("day"), F.max("day"))) == 0
    assert _answered(spark, lambda: df.groupBy("day").count()) == 0
    assert _answered(spark, lambda: df.agg(F.count("day"))) == 3
    with conf(spark, {"spark.skipstone.enabled": "false"}):
        assert sorted(df.select("day").collect()) == before


def test_a_null_that_a_projection_makes_is_not_counted(spark, folder):
    rules = ("FoldablePropagation", "CollapseProject")
    excluded = ",".join(f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in rules)
    with conf(spark, {"spark.sql.optimizer.excludedRules": excluded}):
        for made in ("CAST(NULL AS INT)", "NULL", "7"):
            sql = f"SELECT count(c), max(v) FROM (SELECT {made} AS c, v FROM t)"
            assert _answered(spark, lambda sql=sql: spark.sql(sql)) == (8 if made == "7" else 0)
        sql = "SELECT c, count(*) FROM (SELECT 7 AS c, v FROM t) GROUP BY c"
        _answered(spark, lambda: spark.sql(sql))


def test_times(spark, tmp_path):
    """A day's count, and extremes of times that no zone moves."""
    path = str(tmp_path / "t")
    old = "IF(id < 10, TIMESTAMP'1850-01-01 00:00:00', TIMESTAMP'2026-01-01 00:00:00')"
    columns = ["TIMESTAMP'2026-01-01 00:00:00' + make_interval(0, 0, 0, 0, CAST(id AS INT)) AS ts", f"{old} AS old"]
    spark.range(0, 80, 1, 8).selectExpr("id", *columns).write.parquet(path)
    df = spark.read.parquet(path)
    Dataset.for_path(spark, path, format="parquet").create_indexes(MinMaxIndex("ts"), MinMaxIndex("old"))
    day = df.where("ts >= '2026-01-02' AND ts < '2026-01-03'")
    assert _answered(spark, lambda: day.groupBy().count()) == 1
    assert _answered(spark, lambda: day.agg(F.count("*"), F.min("ts"), F.max("ts"))) == 1
    assert _answered(spark, lambda: df.agg(F.count("*"), F.min("ts"), F.max("ts"))) == 8
    assert _answered(spark, lambda: df.agg(F.count("old"), F.min("old"))) == 7
    assert _answered(spark, lambda: df.agg(F.count("old"))) == 8
    assert _answered(spark, lambda: df.where("old < '1900-01-01'").groupBy().count()) == 0
    assert _answered(spark, lambda: df.groupBy().count()) == 8


def test_rows_counted_by_another_reading_are_not_trusted(spark, tmp_path):
    """As text the files have other rows than as Parquet."""
    path = parquet(tmp_path / "t", *_objects())
    Dataset(spark.read.text(path)).create_indexes(BloomFilterIndex("value"))
    assert _answered(spark, lambda: spark.read.parquet(path).groupBy().count()) == 0
    Dataset(spark.read.parquet(path)).create_indexes(MinMaxIndex("v"))
    assert _answered(spark, lambda: spark.read.parquet(path).groupBy().count()) == 0
    assert _answered(spark, lambda: spark.read.text(path).groupBy().count()) == 0


def test_text_files_are_read(spark, tmp_path):
    path = text(tmp_path / "t", "csv", "v\n1\n2\n", "v\n3\n")
    reader = spark.read.option("header", "true").schema("v INT")
    Dataset(reader.csv(path)).create_indexes(MinMaxIndex("v"))
    assert _answered(spark, lambda: reader.csv(path).groupBy().count()) == 0


def test_orc_is_read(spark, tmp_path):
    """Its tasks look up the zone of their JVM."""
    path = str(tmp_path / "t")
    spark.range(100).repartitionByRange(5, "id").write.orc(path)
    Dataset.for_path(spark, path, format="orc").create_indexes(MinMaxIndex("id"))
    df = spark.read.orc(path)
    assert _answered(spark, lambda: df.agg(F.count("*"), F.max("id"))) == 0
    (entry,) = skipstone.last_query(spark)
    assert entry.aggregates is not None
    assert "counts and extremes: tasks look up settings by which orc files are read" in entry.aggregates.not_used


def test_a_condition_on_files_is_not_of_their_rows(spark, folder):
    df = spark.read.parquet(str(folder))
    assert _answered(spark, lambda: df.where("_metadata.file_size > 0").agg(F.count("*"))) == 0
    some = "v < 100 AND _metadata.file_name < 'object-003'"
    assert _answered(spark, lambda: df.where(some).agg(F.count("*"), F.max("v"))) == 0


def test_old_dates_are_as_they_are_read(spark, tmp_path):
    """Another rebase mode reads other dates; neither answers for the other."""
    path = str(tmp_path / "t")
    mode = "spark.sql.parquet.datetimeRebaseModeInRead"
    with conf(spark, {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"}):
        spark.sql("SELECT DATE'1001-01-01' AS d UNION ALL SELECT DATE'1500-03-01'").write.parquet(path)
    with conf(spark, {mode: "CORRECTED"}):
        Dataset.for_path(spark, path, format="parquet").create_indexes(MinMaxIndex("d"))
        _answered(spark, lambda: spark.read.parquet(path).agg(F.min("d"), F.max("d")))
    with conf(spark, {mode: "LEGACY"}):
        _answered(spark, lambda: spark.read.parquet(path).agg(F.min("d"), F.max("d")))


def test_a_time_that_is_set_back_does_not_fool_a_newer_size(spark, folder):
    df = spark.read.parquet(str(folder))
    before = (folder / "object-004.parquet").stat()
    _put(folder, 4, 40)
    os.utime(folder / "object-004.parquet", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert df.groupBy().count().collect()[0][0] == 110
