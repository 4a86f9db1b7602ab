"""``ORDER BY … LIMIT`` and ``WHERE … LIMIT``: what passes a limit on to a scan, and what happens before it runs."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from tests.soundness.attack import age, parquet, text
from tests.support import conf

import skipstone
from skipstone import Dataset, MinMaxIndex
from skipstone.engines.spark import planning

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow


def _objects(count: int = 8) -> list[dict[str, list[object]]]:
    """Ten rows an object: ``v`` rises from object to object, and so does the letter of ``s``."""
    return [
        {
            "v": list(range(10 * n, 10 * n + 10)),
            "s": [f"{chr(97 + n)}{k}" for k in range(10)],
            "g": [n % 2] * 10,
        }
        for n in range(count)
    ]


@pytest.fixture
def folder(spark, tmp_path) -> Path:
    path = parquet(tmp_path / "t", *_objects())
    Dataset.for_path(spark, path, format="parquet").create_indexes(MinMaxIndex("v"), MinMaxIndex("s"))
    spark.read.parquet(path).createOrReplaceTempView("t")
    return tmp_path / "t"


def _put(folder: Path, number: int, values: list[int]) -> None:
    """Write one object, new or over what was there."""
    new = parquet(folder.parent / "new", {"v": values, "s": ["z"] * len(values), "g": [0] * len(values)})
    shutil.copyfile(f"{new}/object-000.parquet", folder / f"object-{number:03d}.parquet")


def _by_top(spark: SparkSession, make: Callable[[], DataFrame]) -> list[int]:
    """Run a query without and with skipping; compare in order, and give what top-k skipped in each scan."""
    with conf(spark, {"spark.skipstone.enabled": "false"}):
        expected = make().collect()
    with skipstone.skipping_stats(spark) as stats:
        assert make().collect() == expected
    assert not [entry.error for entry in stats if entry.error]
    return [entry.skipped_by_top for entry in stats]


PASSED_ON = {
    "SELECT * FROM t ORDER BY v LIMIT 10": 7,
    "SELECT * FROM t ORDER BY v DESC LIMIT 11": 6,
    "SELECT * FROM t ORDER BY v DESC NULLS FIRST LIMIT 3 OFFSET 30": 4,
    "SELECT s FROM t ORDER BY v LIMIT 1": 7,
    "SELECT * FROM t ORDER BY g * 0, v LIMIT 1": 0,
    "SELECT * FROM t ORDER BY s, g LIMIT 5": 7,
    "SELECT * FROM t WHERE v >= 25 ORDER BY v LIMIT 3": 4,
    "SELECT * FROM t WHERE v >= 25 AND g IS NOT NULL ORDER BY v LIMIT 3": 0,
    "SELECT * FROM (SELECT v + 1 AS w, v AS x FROM t) ORDER BY x LIMIT 3": 7,
    "SELECT * FROM (SELECT v + 1 AS w FROM t) ORDER BY w LIMIT 3": 0,
    "SELECT count(*) FROM (SELECT * FROM t WHERE v >= 20 LIMIT 15)": 4,
    "SELECT count(*) FROM (SELECT * FROM t WHERE v > 20 LIMIT 15)": 4,
    "SELECT count(*) FROM (SELECT * FROM t LIMIT 15)": 0,
    "SELECT v FROM (SELECT v, rank() OVER (ORDER BY v DESC) AS r FROM t) WHERE r < 4 ORDER BY v": 7,
    "SELECT v FROM (SELECT v, row_number() OVER (ORDER BY v) AS r FROM t) WHERE r = 4": 7,
    "SELECT v FROM (SELECT v, row_number() OVER (PARTITION BY g ORDER BY v) AS r FROM t) WHERE r < 2 ORDER BY v": 0,
    "SELECT v FROM (SELECT v, dense_rank() OVER (ORDER BY g) AS r FROM t) WHERE r < 2 ORDER BY v": 0,
    "SELECT r, m FROM (SELECT row_number() OVER (ORDER BY v) r, max(v) OVER () m FROM t) WHERE r < 2": 0,
    "SELECT * FROM t ORDER BY v LIMIT 100": 0,
    "SELECT * FROM t ORDER BY v LIMIT 80": 0,
    "SELECT * FROM t ORDER BY s COLLATE UTF8_LCASE, v LIMIT 3": 0,
    "SELECT * FROM t WHERE rand() + v >= 0 ORDER BY v LIMIT 3": 0,
    "SELECT sum(v) FROM (SELECT DISTINCT v FROM t ORDER BY v LIMIT 3)": 0,
    "SELECT max(v) m, g FROM t GROUP BY g ORDER BY m LIMIT 1": 0,
    "SELECT * FROM (SELECT * FROM t TABLESAMPLE (100 PERCENT)) ORDER BY v LIMIT 3": 0,
    "SELECT * FROM t SORT BY v LIMIT 1000": 0,
}


@pytest.mark.parametrize("sql", PASSED_ON)
def test_what_passes_a_limit_on(spark, folder, sql):
    assert _by_top(spark, lambda: spark.sql(sql)) == [PASSED_ON[sql]]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a.v FROM t a JOIN t b ON a.v = b.v + 1 ORDER BY a.v LIMIT 3", [0, 0]),
        ("SELECT * FROM (SELECT v FROM t UNION ALL SELECT v + 100 FROM t) ORDER BY v LIMIT 3", [0, 0]),
        ("(SELECT v FROM t ORDER BY v LIMIT 2) UNION ALL SELECT v FROM t WHERE v > 75 ORDER BY v", [7, 0]),
        ("SELECT v FROM t WHERE v = (SELECT max(w) FROM (SELECT v AS w FROM t ORDER BY v LIMIT 2))", [7, 0]),
        ("SELECT v FROM t WHERE v IN (SELECT v FROM t ORDER BY v LIMIT 2) ORDER BY v", [0, 7]),
    ],
)
def test_a_limit_belongs_to_its_own_scan(spark, folder, sql, expected):
    assert sorted(_by_top(spark, lambda: spark.sql(sql))) == sorted(expected)


def test_one_relation_with_and_without_a_limit(spark, folder):
    df = spark.read.parquet(str(folder))
    first = df.orderBy("v").limit(3)
    assert sorted(_by_top(spark, lambda: first.unionAll(df).orderBy("v"))) == [0, 7]
    cached = df.orderBy("v").limit(3).cache()
    try:
        assert cached.count() == 3
        assert df.count() == 80
        assert df.orderBy("v").limit(30).count() == 30
    finally:
        cached.unpersist()


def test_a_function_of_a_user_keeps_everything(spark, folder):
    spark.udf.register("is_even", lambda v: v % 2 == 0, "boolean")
    assert _by_top(spark, lambda: spark.sql("SELECT v FROM t WHERE is_even(v) ORDER BY v LIMIT 3")) == [0]
    with skipstone.skipping_stats(spark) as stats:
        spark.sql("SELECT v FROM t WHERE is_even(v) ORDER BY v LIMIT 3").collect()
    assert any("no object is known to match wholly" in said for said in stats[-1].not_used)


def test_switched_off(spark, folder):
    with conf(spark, {"spark.skipstone.topk": "false"}):
        assert _by_top(spark, lambda: spark.sql("SELECT v FROM t ORDER BY v LIMIT 3")) == [0]


def test_it_is_told(spark, folder):
    df = spark.sql("SELECT v FROM t WHERE v > 3 ORDER BY v DESC LIMIT 3")
    df.collect()
    (entry,) = skipstone.last_query(spark)
    assert (entry.objects.skipped, entry.skipped_by_top, entry.files_read) == (7, 7, 1)
    said = Dataset.for_path(spark, str(folder), format="parquet").explain(df).text
    assert "by top-k: 7 of those skipped" in said
    assert "first 3 rows by v DESC NULLS LAST" in said
    with conf(spark, {"spark.skipstone.force": "true"}):
        assert [row.v for row in spark.sql("SELECT v FROM t ORDER BY v LIMIT 2").collect()] == [0, 1]


def test_a_partition_filter_is_true_of_every_row(spark, tmp_path):
    for day in range(2):
        parquet(tmp_path / "p" / f"day={day}", *({"v": columns["v"]} for columns in _objects()[4 * day : 4 * day + 4]))
    made = spark.read.parquet(str(tmp_path / "p"))
    Dataset(made).create_indexes(MinMaxIndex("v"))
    assert _by_top(spark, lambda: made.where("day = 1").orderBy("v").limit(3).select("v")) == [3]
    assert _by_top(spark, lambda: made.where("day = 1 AND v >= 50").orderBy("v").limit(3).select("v")) == [2]


# --- between planning and running -------------------------------------------------------------------------------------


def _planned(spark: SparkSession, make: Callable[[], DataFrame], skipped: int) -> DataFrame:
    """Plan a query that leaves objects out, and run nothing."""
    df = make()
    with skipstone.skipping_stats(spark) as stats:
        df.inputFiles()
    assert [entry.skipped_by_top for entry in stats] == [skipped]
    return df


QUERIES = {
    "ordered": ("SELECT v FROM t ORDER BY v LIMIT 10", 7),
    "with WHERE": ("SELECT v FROM t WHERE v >= 0 ORDER BY v LIMIT 10", 7),
    "any rows": ("SELECT count(*) FROM (SELECT v FROM t WHERE v >= 0 LIMIT 10)", 7),
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("other", [[75], list(range(1000, 1010))])
def test_what_was_counted_is_rewritten_before_the_query_runs(spark, folder, name, other):
    sql, skipped = QUERIES[name]
    with conf(spark, {"spark.skipstone.enabled": "false"}):
        without = spark.sql(sql)
        without.inputFiles()
    df = _planned(spark, lambda: spark.sql(sql), skipped)
    for number in range(8) if name == "any rows" else (0,):
        if len(other) == 1 and number == 7:
            continue
        _put(folder, number, other)
    assert df.collect() == without.collect()


def test_what_was_counted_vanishes(spark, folder):
    df = _planned(spark, lambda: spark.sql("SELECT v FROM t ORDER BY v LIMIT 10"), 7)
    (folder / "object-000.parquet").unlink()
    with conf(spark, {"spark.sql.files.ignoreMissingFiles": "true"}):
        assert [row.v for row in df.collect()] == list(range(10, 20))


def test_a_path_that_is_read_twice_and_rewritten_before_an_rdd_runs(spark, tmp_path):
    path = parquet(tmp_path / "t", {"v": [1, 2, 3]}, {"v": [11, 12, 13, 14]})
    Dataset.for_path(spark, path, format="parquet").create_indexes(MinMaxIndex("v"))
    with skipstone.skipping_stats(spark) as stats:
        rows = spark.read.parquet(path, path).where("v > 0").limit(3)._jdf.queryExecution().toRdd()
        assert rows.getNumPartitions() == 1
    assert stats[0].skipped_by_top > 0
    parquet(tmp_path / "t", {"v": [1]}, {"v": pa.array([], pa.int64())})
    assert rows.count() == 2  # the row of the first file, once for each time that it is read


@pytest.mark.parametrize("where", ["x = 0D", "x >= 0D AND x < 1D", "x <= -0D", "x IN (0D, 7D)", "NOT x < 0D"])
def test_a_reader_that_tells_zeros_apart(spark, tmp_path, where):
    zeros = [{"x": [zero] * 3 + more} for zero, more in ((-0.0, []), (0.0, []), (0.0, [-0.0]), (5.0, []))]
    path = parquet(tmp_path / "t", *zeros)
    Dataset.for_path(spark, path, format="parquet").create_indexes(MinMaxIndex("x"))
    for limit in (3, 4, 7):
        _by_top(spark, lambda n=limit: spark.read.parquet(path).where(where).limit(n).groupBy().count())
    _by_top(spark, lambda: spark.read.parquet(path).where(where).groupBy().count())


@pytest.mark.parametrize("where", ["< {}", "<> {}", "NOT IN ({}, {})", "> timestamp'2019-01-01 00:00:00' AND t < {}"])
def test_a_reader_that_cuts_timestamps_to_milliseconds(spark, tmp_path, where):
    moments = (datetime(2020, 1, 1, 0, 0, 10, 1000 * n, tzinfo=UTC) for n in (0, 0, 1, 5))
    objects = [{"t": pa.array([t] * n, pa.timestamp("ms", tz="UTC"))} for n, t in enumerate(moments, 3)]
    path = parquet(tmp_path / "t", *objects)
    Dataset.for_path(spark, path, format="parquet").create_indexes(MinMaxIndex("t"))
    asked = "t " + where.replace("{}", "timestamp'2020-01-01 00:00:10.0005Z'")
    for limit in (3, 4, 7):
        _by_top(spark, lambda n=limit: spark.read.parquet(path).where(asked).limit(n).groupBy().count())
    _by_top(spark, lambda: spark.read.parquet(path).where(asked).groupBy().count())


@pytest.mark.parametrize(
    ("type_", "read_as", "values", "where"),
    [
        (pa.int32(), "short", [[40_000, 40_001], [50_000], [1, 2]], "v < 0"),
        (pa.int16(), "tinyint", [[200, 201], [1, 2]], "v <= -1"),
        (pa.decimal128(5, 2), "decimal(20, 2)", [["1.00", "2.00"], ["30.00"]], "v < 10000000000.00"),
        (pa.decimal128(18, 2), "decimal(38, 2)", [["1.00", "2.00"], ["30.00"]], "v < 92233720368547758.08"),
    ],
)
def test_a_reader_that_compares_other_numbers_than_it_gives(spark, tmp_path, type_, read_as, values, where):
    """It is passed the filter in the width of the file."""
    objects = [{"v": pa.array([Decimal(v) if isinstance(v, str) else v for v in of], type_)} for of in values]
    path = parquet(tmp_path / "t", *objects, store_decimal_as_integer=True)

    def read():
        return spark.read.schema(f"v {read_as}").parquet(path)

    Dataset(read()).create_indexes(MinMaxIndex("v"))
    for limit in (1, 2, 4):
        _by_top(spark, lambda n=limit: read().where(where).limit(n).groupBy().count())
    _by_top(spark, lambda: read().where(where).groupBy().agg(F.count("*"), F.count("v")))


def _written(folder: Path, form: str, *frames: DataFrame, **options: str) -> str:
    """Let Spark write each frame as one object."""
    for frame in frames:
        frame.coalesce(1).write.mode("append").options(**options).format(form).save(str(folder))
    age(folder)
    return str(folder)


@pytest.mark.parametrize("where", ["x = double('NaN')", "x <=> double('NaN')", "x IN (double('NaN'), 3D)"])
def test_a_reader_that_looks_numbers_up_by_their_bits(spark, tmp_path, where):
    """Parquet's Bloom filters know a NaN by its bits; here half of them have the sign bit."""
    bits = np.array([0xFFF8 << 48] * 3, np.uint64), np.array([0x7FF8 << 48] * 3, np.uint64)
    made = parquet(
        tmp_path / "bits", *({"v": [10 * n, 10 * n + 1], "x": x.view(np.float64)[:2]} for n, x in enumerate(bits))
    )
    frames = [spark.read.parquet(f"{made}/object-{n:03d}.parquet") for n in range(2)]
    options = {"parquet.bloom.filter.enabled#x": "true", "parquet.enable.dictionary": "false"}
    path = _written(tmp_path / "t", "parquet", *frames, **options)
    Dataset.for_path(spark, path, format="parquet").create_indexes(MinMaxIndex("v"), MinMaxIndex("x"))
    df = spark.read.parquet(path)
    for limit in (1, 2, 3):
        _by_top(spark, lambda n=limit: df.where(where).orderBy("v").limit(n).select("v"))
    _by_top(spark, lambda: df.where(where).groupBy().count())
    assert _by_top(spark, lambda: df.where("isnan(x)").orderBy("v").limit(2).select("v")) == [1]


def test_a_reader_that_orders_text_by_utf_16(spark, tmp_path):
    """To that of ORC, U+1F600 is less than U+FF01."""
    texts = ("\U0001f600", "\uff01")
    frames = (spark.range(3).selectExpr(f"10 * {n} + id AS v", f"'{s}' AS s") for n, s in enumerate(texts))
    path = _written(tmp_path / "t", "orc", *frames)
    Dataset.for_path(spark, path, format="orc").create_indexes(MinMaxIndex("v"), MinMaxIndex("s"))
    df = spark.read.orc(path)
    for where in ("s >= '\uff00'", "s > '\uff00'", "s < '\U0010ffff'", "s IN ('\U0001f600', '\uff01')"):
        _by_top(spark, lambda where=where: df.where(where).orderBy("v").limit(3))
        _by_top(spark, lambda where=where: df.where(where).limit(3).groupBy().count())
    assert _by_top(spark, lambda: df.where("s > 'z'").orderBy("v").limit(3)) == [1]


def test_a_reader_that_filters_rows_of_which_it_has_read_a_part(spark, tmp_path):
    """Of two fields of one name the last counts, and JSON's reader filters by the first."""
    lines = ('{"v": 1, "v": 5}\n', '{"v": 5, "s": "a longer one"}\n', '{"v": 9}\n')
    path = text(tmp_path / "j", ".json", *(line * 3 for line in lines))

    def read():
        return spark.read.schema("v INT, s STRING").json(path)

    Dataset(read()).create_indexes(MinMaxIndex("v"))
    for limit in (3, 6):
        _by_top(spark, lambda n=limit: read().where("v >= 5").limit(n).groupBy().count())
        _by_top(spark, lambda n=limit: read().where("v >= 5").orderBy("v").limit(n).select("v"))
    assert _by_top(spark, lambda: read().orderBy(F.asc_nulls_last("v")).limit(3).select("v")) == [1]


@pytest.mark.parametrize("mode", ["CORRECTED", "LEGACY"])
def test_a_reader_whose_calendar_lacks_days(spark, tmp_path, mode):
    """In that of ``java.sql.Date``, 1582-10-10 is 1582-10-15."""
    days = ("1582-10-15", "1600-01-01", "1700-01-01")
    frames = (spark.range(3).selectExpr(f"10 * {n} + id AS v", f"DATE'{day}' AS d") for n, day in enumerate(days))
    with conf(spark, {"spark.sql.parquet.datetimeRebaseModeInWrite": mode}):
        path = _written(tmp_path / "t", "parquet", *frames)
    Dataset.for_path(spark, path, format="parquet").create_indexes(MinMaxIndex("v"), MinMaxIndex("d"))
    df = spark.read.parquet(path)
    for where in ("d > DATE'1582-10-10'", "d <> DATE'1582-10-10'", "d NOT IN (DATE'1582-10-10', DATE'2000-01-01')"):
        _by_top(spark, lambda where=where: df.where(where).orderBy("v").limit(3).select("v"))
        _by_top(spark, lambda where=where: df.where(where).groupBy().count())
    assert _by_top(spark, lambda: df.where("d > DATE'1582-10-15'").orderBy("v").limit(3).select("v")) == [1]
    assert _by_top(spark, lambda: df.where("d > DATE'1500-01-01'").orderBy("v").limit(3).select("v")) == [2]


@pytest.mark.parametrize("setting", ["ignoreMissingFiles", "ignoreCorruptFiles"])
def test_rows_may_be_dropped(spark, folder, setting):
    with conf(spark, {f"spark.sql.files.{setting}": "true"}):
        assert _by_top(spark, lambda: spark.sql("SELECT v FROM t ORDER BY v LIMIT 3")) == [0]
    df = spark.read.option(setting, "true").parquet(str(folder))
    assert _by_top(spark, lambda: df.orderBy("v").limit(3)) == [0]


def test_a_file_that_was_counted_is_damaged_and_ignored(spark, folder):
    df = _planned(spark, lambda: spark.sql("SELECT v FROM t ORDER BY v LIMIT 10"), 7)
    size = (folder / "object-000.parquet").stat()
    (folder / "object-000.parquet").write_bytes(b"x" * size.st_size)
    os.utime(folder / "object-000.parquet", ns=(size.st_atime_ns, size.st_mtime_ns))
    with conf(spark, {"spark.sql.files.ignoreCorruptFiles": "true"}):
        assert [row.v for row in df.collect()] == list(range(10, 20))


def test_stale_objects_are_not_counted_and_read(spark, folder):
    _put(folder, 0, [-5, 75])
    _put(folder, 10, [-5, 75])
    df = spark.read.parquet(str(folder))
    # Ten rows are sure in the second object: the third and those after it are not needed.
    assert _by_top(spark, lambda: df.orderBy("v").limit(10)) == [6]
    # Any rows: what no metadata describes is not needed either.
    assert _by_top(spark, lambda: df.where("v >= 10").limit(10).groupBy().count()) == [8]
    (entry,) = skipstone.last_query(spark)
    assert (entry.objects.stale, entry.objects.unindexed, entry.objects.kept) == (0, 0, 1)


def test_a_table_gets_rows_between_planning_and_running(spark, tmp_path):
    parquet(tmp_path / "first", *_objects())
    spark.sql("DROP TABLE IF EXISTS top_table")
    spark.sql(f"CREATE TABLE top_table (v BIGINT, s STRING, g BIGINT) USING parquet LOCATION '{tmp_path / 'first'}'")
    try:
        Dataset.for_table(spark, "top_table").create_indexes(MinMaxIndex("v"))
        sql = "SELECT v FROM top_table ORDER BY v LIMIT 3"
        df = _planned(spark, lambda: spark.sql(sql), 7)
        with conf(spark, {"spark.skipstone.enabled": "false"}):
            without = spark.sql(sql)
            without.inputFiles()
        spark.sql("INSERT INTO top_table VALUES (-1, 'x', 0)")
        assert df.collect() == without.collect()
        df = _planned(spark, lambda: spark.sql(sql), 7)
        (tmp_path / "first" / "object-000.parquet").unlink()
        spark.sql("REFRESH TABLE top_table")
        assert [row.v for row in df.collect()] == [-1, 10, 11]
        assert [row.v for row in spark.sql(sql).collect()] == [-1, 10, 11]
    finally:
        spark.sql("DROP TABLE top_table")


def test_a_partition_is_dropped_and_its_files_stay(spark, tmp_path):
    for n, columns in enumerate(_objects(4)):
        parquet(tmp_path / "p" / f"day={n}", {"v": columns["v"]})
    spark.sql("DROP TABLE IF EXISTS top_parts")
    spark.sql(
        f"CREATE TABLE top_parts (v BIGINT, day INT) USING parquet PARTITIONED BY (day) LOCATION '{tmp_path / 'p'}'"
    )
    try:
        spark.sql("MSCK REPAIR TABLE top_parts")
        Dataset.for_table(spark, "top_parts").create_indexes(MinMaxIndex("v"))
        sql = "SELECT v FROM top_parts WHERE v >= 0 ORDER BY v LIMIT 3"
        df = _planned(spark, lambda: spark.sql(sql), 3)
        spark.sql("ALTER TABLE top_parts DROP PARTITION (day = 0)")
        with conf(spark, {"spark.skipstone.enabled": "false"}):
            expected = spark.sql(sql).collect()
        assert [row.v for row in expected] == [10, 11, 12]
        assert spark.sql(sql).collect() == expected
        assert df.collect() == expected
    finally:
        spark.sql("DROP TABLE top_parts")


def test_two_snapshots_know_an_object(spark, tmp_path):
    """Rows are counted once, and each snapshot may say that an object comes too late."""
    parquet(tmp_path / "n" / "day=0", *({"v": columns["v"]} for columns in _objects()[:4]))
    parquet(tmp_path / "n" / "day=1", *({"v": columns["v"]} for columns in _objects()[4:]))
    Dataset.for_path(spark, str(tmp_path / "n" / "day=1"), format="parquet").create_indexes(MinMaxIndex("v"))
    Dataset.for_path(spark, str(tmp_path / "n"), format="parquet").create_indexes(MinMaxIndex("v"))
    both = spark.read.parquet(str(tmp_path / "n"))
    assert _by_top(spark, lambda: both.orderBy("v").limit(15)) == [6]
    assert _by_top(spark, lambda: both.orderBy(F.desc("v")).limit(15)) == [6]
    inner = spark.read.parquet(str(tmp_path / "n" / "day=1"))
    assert _by_top(spark, lambda: inner.orderBy(F.desc("v")).limit(15)) == [2]


def test_nulls_that_no_filter_lets_pass(spark, tmp_path):
    path = parquet(tmp_path / "t", *({"v": [None, *columns["v"]]} for columns in _objects(4)), {"v": list(range(10))})
    Dataset.for_path(spark, path, format="parquet").create_indexes(MinMaxIndex("v"))
    df = spark.read.parquet(path)
    assert _by_top(spark, lambda: df.orderBy("v").limit(3)) == [1]
    assert _by_top(spark, lambda: df.where("v < 500").orderBy("v").limit(3)) == [3]
    assert _by_top(spark, lambda: df.where("v < 500 OR v IS NULL").orderBy("v").limit(3)) == [0]


def test_malformed_rows(spark, tmp_path):
    path = text(tmp_path / "c", ".csv", "1\n2\nx\n", "5\n6\n7\n", "8\n9\n")
    reader = spark.read.schema("v INT")
    Dataset(reader.csv(path)).create_indexes(MinMaxIndex("v"))
    assert _by_top(spark, lambda: reader.csv(path).orderBy(F.asc_nulls_last("v")).limit(2)) == [2]
    dropping = reader.option("mode", "DROPMALFORMED")
    assert _by_top(spark, lambda: dropping.csv(path).orderBy(F.asc_nulls_last("v")).limit(2)) == [0]


def test_a_bucketed_table_is_left_alone(spark, folder):
    spark.sql("DROP TABLE IF EXISTS top_buckets")
    spark.read.parquet(str(folder)).write.bucketBy(4, "g").sortBy("v").saveAsTable("top_buckets")
    try:
        Dataset.for_table(spark, "top_buckets").create_indexes(MinMaxIndex("v"))
        assert _by_top(spark, lambda: spark.sql("SELECT v FROM top_buckets ORDER BY v LIMIT 3")) == [0]
    finally:
        spark.sql("DROP TABLE top_buckets")


def test_planner_that_says_nonsense_of_ranks(spark, folder, monkeypatch):
    real = planning._response

    def cut(key, plan, seconds):
        return real(key, plan, seconds)[:-4]

    monkeypatch.setattr(planning, "_response", cut)
    assert [row.v for row in spark.sql("SELECT v FROM t ORDER BY v LIMIT 2").collect()] == [0, 1]
    assert "cut short" in (skipstone.last_query(spark)[-1].error or "")
