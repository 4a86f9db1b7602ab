"""Reports of the catalogue that need more than one way of reading, a table, or a second commit."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skipstone import BloomFilterIndex, Dataset, HybridIndex, MinMaxIndex, ValueListIndex, skipping_stats
from tests.support import EVERY_TYPE, assert_same_rows, assert_sound, conf, write_objects


def index_all(df, *columns):
    """Build every index type on the columns."""
    return Dataset(df).create_indexes(*(kind(c) for kind in EVERY_TYPE for c in (columns or ("*",))))


@pytest.mark.parametrize("statistics", [True, False, ["a"]], ids=["all", "none", "only a"])
def test_footers_without_statistics_prove_nothing(spark, tmp_path, statistics):
    """Reports 4, 6, 12: a column chunk without statistics is unknown, whatever its neighbour has."""
    folder = tmp_path / "d"
    folder.mkdir()
    for n, values in enumerate(([10, 20, None], [None, None, None], [1, 1, 1])):
        table = pa.table({"a": pa.array([1, 2, 3], pa.int32()), "v": pa.array(values, pa.int32())})
        pq.write_table(table, folder / f"{n}.parquet", write_statistics=statistics)
    df = spark.read.parquet(str(folder))
    Dataset(df).create_indexes(MinMaxIndex("a"), MinMaxIndex("v"))
    predicates = ("v IS NULL", "v IS NOT NULL", "v IN (1, NULL)", "v = 1", "v <> 1", "v > 5")
    assert assert_sound(spark, df, predicates) > 0


def test_row_groups_with_and_without_bounds_in_one_file(spark, tmp_path):
    """Report 11: bounds of the row groups that have them are not the file's bounds."""
    folder = tmp_path / "d"
    folder.mkdir()
    table = pa.table({"s": ["a"] * 100 + ["z" * 10_000] * 100})
    pq.write_table(table, folder / "0.parquet", row_group_size=100, use_dictionary=False)
    pq.write_table(pa.table({"s": ["b", "c"]}), folder / "1.parquet")
    df = spark.read.parquet(str(folder))
    Dataset(df).create_indexes(MinMaxIndex("s"))
    assert assert_sound(spark, df, ("s > 'y'", "s = 'a'", f"s = '{'z' * 10_000}'", "s = 'b'", "s > 'q'")) > 0


def test_dictionary_that_falls_back_to_plain_pages(spark, tmp_path):
    """Report 94: later pages without a dictionary hold values too."""
    folder = tmp_path / "d"
    folder.mkdir()
    values = ["k"] * 10 + [f"value-{i:06d}" for i in range(20_000)]
    pq.write_table(pa.table({"s": values}), folder / "0.parquet", dictionary_pagesize_limit=1024, data_page_size=1024)
    pq.write_table(pa.table({"s": ["other"]}), folder / "1.parquet")
    df = spark.read.parquet(str(folder))
    index_all(df)
    assert assert_sound(spark, df, ("s = 'value-019999'", "s = 'k'", "s = 'other'", "s LIKE 'value-01%'")) > 0


def test_column_that_some_files_lack(spark, tmp_path):
    """Reports 2, 19, 20, 26, 131: a column missing in a file reads as NULL there."""
    folder = tmp_path / "d"
    write_objects(spark, folder, "a int", ("(1), (2)",))
    write_objects(spark, folder, "a int, b int", ("(3, 7)", "(4, NULL)"), first=1)
    df = spark.read.option("mergeSchema", "true").parquet(str(folder))
    index_all(df)
    assert (
        assert_sound(spark, df, ("b IS NULL", "b IS NOT NULL", "b = 7", "b <=> NULL", "a = 1", "b <> 7 OR a < 2")) > 0
    )


def test_column_read_under_another_type(spark, tmp_path):
    """Reports 21, 22, 84: metadata of an int column says nothing of the same column read as bigint or string."""
    path = write_objects(spark, tmp_path / "d", "c int", ("(9), (10)", "(100), (2)"))
    index_all(spark.read.parquet(path))
    wide = spark.read.schema("c bigint").parquet(path)
    assert_sound(spark, wide, ("c = 9", f"c < {2**63 - 1}", "c > 50"))
    with skipping_stats(spark) as stats:
        wide.where("c = 9").inputFiles()
    assert stats[-1].objects.skipped == 0
    assert any("bigint here, was int" in reason for reason in stats[-1].not_used)


def test_column_added_with_a_default(spark, tmp_path):
    """Reports 23, 131: files without the column read as its default, in the table that declares it."""
    name = "with_default"
    spark.sql(f"CREATE TABLE {name} (a INT) USING parquet LOCATION '{tmp_path / 'd'}'")
    try:
        spark.sql(f"INSERT INTO {name} VALUES (1)")
        spark.sql(f"ALTER TABLE {name} ADD COLUMN b INT DEFAULT 5")
        spark.sql(f"INSERT INTO {name} VALUES (2, 6)")
        by_path = spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "d"))
        Dataset(by_path).create_indexes(*(kind("b") for kind in EVERY_TYPE))
        table = spark.table(name)
        assert table.where("b = 5").count() == 1
        assert table.where("b IS NULL").count() == 0
        assert_sound(spark, by_path, ("b IS NULL", "b = 5", "b = 6"))
        Dataset(by_path).drop_indexes()
        Dataset.for_table(spark, name).create_indexes(*(kind("b") for kind in EVERY_TYPE))
        assert assert_sound(spark, spark.table(name), ("b = 5", "b = 6", "b IS NULL")) > 0
        assert_same_rows(
            spark, spark.read.option("mergeSchema", "true").parquet(str(tmp_path / "d")).where("b IS NULL")
        )
        bare = spark.read.schema("a int, b int").parquet(str(tmp_path / "d"))
        assert bare.where("b IS NULL").count() == 1
    finally:
        spark.sql(f"DROP TABLE {name}")


def test_partition_column_with_the_name_of_a_file_column(spark, tmp_path):
    """Report 16: the path's value wins over the file's, whatever the case of the name."""
    folder = tmp_path / "d"
    write_objects(spark, folder / "col=1", "COL int, a int", ("(11, 1)", "(12, 2)"))
    write_objects(spark, folder / "col=20", "COL int, a int", ("(3, 3)",))
    df = spark.read.parquet(str(folder))
    index_all(df)
    assert_sound(spark, df, ("col > 10", "col = 1", "col = 12", "a = 3", "col = 1 AND a = 2"))
    below = spark.read.parquet(str(folder / "col=1"))
    assert_sound(spark, below, ("COL > 10", "COL = 11", "COL = 1"))


def test_file_column_of_another_case(spark, tmp_path):
    """Report 17: a file's COL is the table's col only while the session does not mind case."""
    path = write_objects(spark, tmp_path / "d", "COL string", ("('41'), ('42')", "('51')"))
    df = spark.read.schema("col string").parquet(path)
    index_all(df, "col")
    assert assert_sound(spark, df, ("col LIKE '4%'", "col = '51'", "col IS NULL")) > 0
    with conf(spark, {"spark.sql.caseSensitive": "true"}):
        assert_sound(
            spark, spark.read.schema("col string").parquet(path), ("col LIKE '4%'", "col IS NULL", "col = '51'")
        )


@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UNICODE_CI"])
def test_collated_column_is_not_served_by_bytes(spark, tmp_path, collation):
    """Reports 50, 51: equality under a collation is not equality of bytes."""
    path = write_objects(spark, tmp_path / "d", "s string", ("('abc'), ('XYZ')", "('Abd')", "('ABC')"))
    index_all(spark.read.parquet(path))
    df = spark.read.schema(f"s string collate {collation}").parquet(path)
    assert df.where("s = 'ABC'").count() == 2
    plain = spark.read.parquet(path)
    assert plain.where(f"s COLLATE {collation} = 'abc'").count() == 2
    assert plain.where(f"s = 'abc' COLLATE {collation}").count() == 2


@pytest.mark.parametrize("kind", ["CHAR(5)", "VARCHAR(5)"])
@pytest.mark.parametrize("padding", ["true", "false"])
def test_char_and_varchar(spark, tmp_path, kind, padding):
    """Report 55: padding is a matter of reading, not of what the file holds."""
    spark.sql(f"CREATE TABLE padded (c {kind}, a INT) USING parquet LOCATION '{tmp_path / 'd'}'")
    try:
        spark.sql("INSERT INTO padded VALUES ('ab', 1)")
        spark.sql("INSERT INTO padded VALUES ('abc', 2)")
        spark.sql("INSERT INTO padded VALUES ('xyz', 3)")
        Dataset.for_table(spark, "padded").create_indexes(*(kind("*") for kind in EVERY_TYPE))
        with conf(spark, {"spark.sql.readSideCharPadding": padding}):
            for predicate in ("c = 'ab'", "c = 'ab   '", "c LIKE 'ab%'", "c > 'abc'", "c <> 'ab'", "c IN ('abc', 'q')"):
                assert_same_rows(spark, spark.table("padded").where(predicate))
    finally:
        spark.sql("DROP TABLE padded")


def test_int96_and_legacy_dates(spark, tmp_path):
    """Reports 76, 77: files of the old calendar and INT96 instants are read as Spark reads them."""
    modes = {
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    }
    rows = (
        "(timestamp'1000-06-14 08:28:53.123', date'1000-06-14')",
        "(timestamp'2020-01-01 00:00:00', date'2020-01-01')",
    )
    with conf(spark, modes):
        path = write_objects(spark, tmp_path / "d", "ts timestamp, d date", rows)
    df = spark.read.parquet(path)
    index_all(df)
    predicates = (
        "ts = timestamp'1000-06-14 08:28:53.123'",
        "d = date'1000-06-14'",
        "d < date'1500-01-01'",
        "ts > timestamp'2019-01-01'",
    )
    assert assert_sound(spark, df, predicates) > 0


def test_milliseconds_and_nanoseconds_in_files(spark, tmp_path):
    """Report 83: the unit in the file is not the unit of the comparison."""
    folder = tmp_path / "d"
    folder.mkdir()
    instants = [1_500, 2_500_000]
    for n, (unit, instant) in enumerate((u, i) for u in ("ms", "us") for i in instants):
        array = pa.array([instant], pa.timestamp(unit, tz="UTC"))
        pq.write_table(pa.table({"ts": array}), folder / f"{n}.parquet", coerce_timestamps=None)
    df = spark.read.parquet(str(folder))
    index_all(df)
    predicates = (
        "ts = timestamp_millis(1500)",
        "ts > timestamp_millis(3000)",
        "ts = timestamp_micros(1500)",
        "ts < timestamp_micros(1501)",
    )
    assert assert_sound(spark, df, predicates) > 0


def test_index_added_later_and_refreshed(spark, tmp_path):
    """Reports 10, 13, 118, 119, 128, 130: what an index has not seen is unknown to it, before and after each commit."""
    folder = tmp_path / "d"
    write_objects(spark, folder, "a int, b int", ("(1, 1)", "(2, 2)"))
    Dataset(spark.read.parquet(str(folder))).create_indexes(MinMaxIndex("a"))
    write_objects(spark, folder, "a int, b int", ("(3, 3)",), first=2)
    Dataset(spark.read.parquet(str(folder))).create_indexes(ValueListIndex("b"))
    write_objects(spark, folder, "a int, b int", ("(4, 4)",), first=3)
    predicates = ("a = 3", "b = 3", "a = 4", "b = 4", "a = 1 AND b = 1", "a = 9 OR b = 4")
    assert assert_sound(spark, spark.read.parquet(str(folder)), predicates) > 0
    Dataset(spark.read.parquet(str(folder))).refresh()
    df = spark.read.parquet(str(folder))
    assert assert_sound(spark, df, predicates) > 0
    assert df.where("a = 9").inputFiles() == []
    (folder / "object-0000.snappy.parquet").unlink()
    write_objects(spark, folder, "a int, b int", ("(9, 9)",), first=0)
    df = spark.read.parquet(str(folder))
    assert df.where("a = 9").count() == 1
    Dataset(df).refresh()
    assert df.where("a = 9").count() == 1


def test_parameters_and_prepared_values(spark, tmp_path):
    """Report 28: a parameter is a literal by the time files are chosen."""
    path = write_objects(spark, tmp_path / "d", "batch int", ("(1)", "(2)", "(3)"))
    index_all(spark.read.parquet(path))
    spark.read.parquet(path).createOrReplaceTempView("batches")
    for value, expected in ((2, 1), (4, 0)):
        assert spark.sql("SELECT * FROM batches WHERE batch = :b", args={"b": value}).count() == expected


def test_dynamic_partition_pruning_beside_literals(spark, tmp_path):
    """Reports 126, 127: filters found at run time prune partitions after, and beside, Skipstone."""
    folder = tmp_path / "d"
    for p in (1, 2, 3):
        write_objects(spark, folder / f"p={p}", "a int", (f"({p})", f"({p + 10})"))
    df = spark.read.parquet(str(folder))
    index_all(df, "a")
    small = spark.createDataFrame([(2, "x")], "p int, t string").where("t = 'x'")
    joined = (
        df.where("a < 10")
        .join(small, "p")
        .union(df.where("a > 10").selectExpr("a", "1 as p", "'y' as t").select("p", "a", "t"))
    )
    assert assert_same_rows(spark, joined) > 0


def test_hybrid_over_its_threshold_and_bloom_of_every_width(spark, tmp_path):
    """Reports 86, 87, 107: an overflowing set is not an empty one; every width hashes as its column does."""
    schema = "t tinyint, s smallint, i int, l bigint, d decimal(19,2), w string"
    rows = tuple(
        ", ".join(f"({v}Y, {v}S, {v}, {v}L, {v}.50, 'w{v}')" for v in range(start, start + 20)) for start in (0, 40, 80)
    )
    path = write_objects(spark, tmp_path / "d", schema, rows)
    df = spark.read.parquet(path)
    columns = ("t", "s", "i", "l", "d", "w")
    Dataset(df).create_indexes(*(HybridIndex(c, threshold=5) for c in columns), *(BloomFilterIndex(c) for c in columns))
    predicates = [f"{c} = {v}" for c in "tsil" for v in (3, 45, 99, 70)] + [
        "d = 3.50",
        "d = 5",
        "w = 'w45'",
        "w IN ('w1', 'nope')",
    ]
    assert assert_sound(spark, df, predicates) > 0
