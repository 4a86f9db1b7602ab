"""Rows that skipping lost, each by the smallest steps that an adversary found."""

from __future__ import annotations

import os
import time
from contextlib import suppress

import pyarrow as pa
import pytest

from skipstone import Dataset, FeatureIndex, MinMaxIndex, ValueListIndex
from skipstone.errors import IndexingError, SkipstoneError
from tests.environment.steps import ZONE, jvm_zone, same_steps
from tests.soundness.attack import age, parquet, same_rows, text
from tests.support import conf

POLICY = "spark.sql.legacy.timeParserPolicy"
SPLIT, OPEN = "spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes"


def indexed(df, *indexes):
    """Make indexes; a refusal is as good, for then nothing is skipped."""
    with suppress(SkipstoneError):
        Dataset(df).create_indexes(*indexes)


# --- what is read of a column depends on the columns that are read with it --------------------------------------------


@pytest.mark.parametrize("bad", ['{"x":tru}', '{"x":"\\q"}', '{"x":1 2}', '{"x":01}', '{"x":.5}'])
@pytest.mark.parametrize("type_", ["STRUCT<x INT>", "MAP<STRING,STRING>", "STRING"])
def test_json_whose_damage_lies_in_another_column(spark, tmp_path, bad, type_):
    """Read with `a`, the damage is in a field and b is 1; read alone, it is in the record and b is NULL."""
    text(tmp_path / "d", ".json", f'{{"b":1,"a":{bad}}}\n', '{"b":2}\n', '{"b":3}\n')

    def read():
        return spark.read.schema(f"a {type_}, b INT").json(f"{tmp_path}/d")

    indexed(read(), MinMaxIndex("b"))
    for predicate in ("b = 1", "b IS NULL"):
        same_steps(spark, lambda p=predicate: read().where(p).collect())
        same_steps(spark, lambda p=predicate: read().where(p).select("b").collect())


@pytest.mark.parametrize("row", ["<b>1</b><a><b>2</b></a>", "<a><b>2</b></a>", "<b>1</b><a>x<b>2</b>y</a>"])
def test_xml_with_an_element_inside_of_another_column(spark, tmp_path, row):
    """Read with `a`, which is a number, b is the inner element; read alone, it is the outer one."""
    text(tmp_path / "d", ".xml", f"<r>{row}</r>", "<r><b>5</b></r>", "<r><b>6</b></r>")

    def read():
        return spark.read.schema("a INT, b INT").option("rowTag", "r").xml(f"{tmp_path}/d")

    indexed(read(), MinMaxIndex("b"))
    for predicate in ("b = 1", "b = 2", "b IS NULL"):
        same_steps(spark, lambda p=predicate: read().where(p).collect())


def test_csv_with_quotes_that_end_nowhere(spark, tmp_path):
    text(tmp_path / "d", ".csv", 'xx\n","xx\n', "p,q,r\n", "s,t,u\n")

    def read():
        quoted = spark.read.schema("a STRING, b STRING, c STRING").option("unescapedQuoteHandling", "BACK_TO_DELIMITER")
        return quoted.csv(f"{tmp_path}/d")

    indexed(read(), ValueListIndex("b"))
    for predicate in ("b = 'xx'", "b IS NULL"):
        same_steps(spark, lambda p=predicate: read().where(p).collect())


def test_csv_whose_quote_is_its_own_escape(spark, tmp_path):
    """The usual way of RFC 4180; a record that is not quite by it."""
    text(tmp_path / "d", ".csv", 'x\n"",#", \n', "p,q,r\n", "s,t,u\n")

    def read():
        return spark.read.schema("a STRING, b STRING, c STRING").option("escape", '"').csv(f"{tmp_path}/d")

    indexed(read(), ValueListIndex("b"), ValueListIndex("c"))
    for predicate in ("b = '#\"'", "b = ' '", "c = ' '", "c IS NULL"):
        same_steps(spark, lambda p=predicate: read().where(p).collect())
        same_steps(spark, lambda p=predicate: read().where(p).select(p[0]).collect())


def test_json_with_a_field_twice_inside_of_a_variant(spark, tmp_path):
    """Read with `a`, the reader goes on inside of the variant: b is 9; read alone, the record is sound: b is 1."""
    text(tmp_path / "d", ".json", '{"a":{"n":{"k":1,"k":2},"b":9},"b":1}\n', '{"b":5}\n', '{"b":6}\n')

    def read():
        return spark.read.schema("a VARIANT, b INT").json(f"{tmp_path}/d")

    indexed(read(), MinMaxIndex("b"))
    for predicate in ("b = 9", "b = 1"):
        same_steps(spark, lambda p=predicate: read().where(p).selectExpr("b", "CAST(a AS STRING)").collect())


def test_json_indexed_without_the_void_that_is_read_later(spark, tmp_path):
    """The reader does not leave a void that is an object: it takes the fields inside for columns."""
    folder = text(tmp_path / "d", ".json", *(f'{{"b": {{"a": {n + 7}}}, "a": {n}}}\n' for n in (1, 2, 3)))
    indexed(spark.read.schema("a INT").json(folder), MinMaxIndex("a"))
    read = spark.read.schema("a INT, b VOID").json(folder)
    for n in (1, 2, 8, 9):
        same_rows(spark, lambda n=n: read.where(f"a = {n}"))
        same_rows(spark, lambda n=n: read.where(f"a = {n}").select("a"))
    assert same_rows(spark, lambda: spark.read.schema("a INT").json(folder).where("a = 2"))
    with pytest.raises(IndexingError, match="VOID"):
        Dataset(spark.read.schema("a INT, m MAP<STRING, VOID>").json(folder)).create_indexes(ValueListIndex("a"))


def test_json_indexed_without_the_variant_that_is_read_later(spark, tmp_path):
    """Columns of JSON are found by name, and schemas are not compared: but the other columns decide what b is."""
    text(tmp_path / "d", ".json", '{"a":{"n":{"k":1,"k":2},"b":9},"b":1}\n', '{"b":5}\n', '{"b":6}\n')
    indexed(spark.read.schema("b INT").json(f"{tmp_path}/d"), MinMaxIndex("b"))

    def read():
        return spark.read.schema("a VARIANT, b INT").json(f"{tmp_path}/d")

    for predicate in ("b = 9", "b = 1"):
        same_steps(spark, lambda p=predicate: read().where(p).selectExpr("b", "CAST(a AS STRING)").collect())


@pytest.mark.parametrize("legacy", ["false", "true"])
def test_struct_of_which_a_file_lacks_the_field_that_is_read(spark, tmp_path, legacy):
    """With the old rule a struct is NULL where none of its fields that are read is in the file."""
    kind = pa.struct([("a", pa.int64())])
    parquet(tmp_path / "d", *({"s": pa.array([value], kind)} for value in ({"a": 1}, {"a": 2}, None)))

    def read():
        return spark.read.schema("s STRUCT<a BIGINT, b BIGINT>").parquet(f"{tmp_path}/d")

    with conf(spark, {"spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": legacy}):
        indexed(read(), FeatureIndex({"f": "s IS NULL"}))
        for column in ("s", "s.a", "s.b"):
            same_steps(spark, lambda c=column: read().where("s IS NULL").select(c).collect())


# --- what is read depends on where a file is split ---------------------------------------------------------------


def test_separator_that_overlaps_itself_where_a_file_is_split(spark, tmp_path):
    """A file is split or not by the size of what is read with it; no setting changes."""
    body = "g" * 59 + "\n\n\nTARGET\n\n"
    text(tmp_path / "d", ".txt", body + "h" * (118 - len(body)) + "\n\n", "z\n\n" * 40, "z\n\n" * 40)

    def read(path):
        return spark.read.option("lineSep", "\n\n").text(str(path))

    with conf(spark, {OPEN: "1"}):
        indexed(read(tmp_path / "d"), ValueListIndex("value"))
        one = tmp_path / "d" / "object-000.txt"
        for value in ("TARGET", "\\nTARGET"):
            same_steps(spark, lambda v=value: read(one).where(f"value = '{v}'").collect())
            same_steps(spark, lambda v=value: read(tmp_path / "d").where(f"value = '{v}'").collect())


@pytest.mark.parametrize("size", ["1", "2", "3", "4"])
def test_separator_that_overlaps_itself_in_smaller_parts(spark, tmp_path, size):
    text(tmp_path / "d", ".txt", "x\n\n\ny", "a\n\nb\n\n", "q\n\n")

    def read():
        return spark.read.option("lineSep", "\n\n").text(f"{tmp_path}/d")

    indexed(read(), ValueListIndex("value"), MinMaxIndex("value"))
    with conf(spark, {SPLIT: size, OPEN: "0"}):
        for value in ("x", "y", "\\ny", "b"):
            same_steps(spark, lambda v=value: read().where(f"value = '{v}'").collect())


def test_header_that_comes_after_comments_and_a_split(spark, tmp_path):
    text(tmp_path / "d", ".csv", "#c\n#d\n#e\na,b\n1,2\n", "#c\na,b\n3,4\n")

    def read():
        commented = spark.read.schema("a STRING, b STRING").option("header", "true").option("comment", "#")
        return commented.csv(f"{tmp_path}/d")

    indexed(read(), ValueListIndex("a"))
    with conf(spark, {SPLIT: "4", OPEN: "0"}):
        same_steps(spark, lambda: read().where("a = 'a'").collect())


# --- plans that run later, and in parts --------------------


@pytest.mark.parametrize("rows", [1])
def test_cached_in_part_before_a_setting_changed(spark, tmp_path, rows):
    """What `take` does not compute is computed later, by the settings of then."""
    days = ("2020-01-01", "2020-3-3", "2020-3-3", "2020-3-3", "2020-01-01", "2020-1-1")
    text(tmp_path / "d", ".csv", *(f"{day}\n" for day in days))

    def read():
        return spark.read.schema("d DATE").option("dateFormat", "yyyy-MM-dd").csv(f"{tmp_path}/d")

    indexed(read(), MinMaxIndex("d"))

    def steps():
        with conf(spark, {SPLIT: "11", OPEN: "11"}):
            df = read().where("d = DATE'2020-01-01'").cache()
            try:
                df.take(rows)
                with conf(spark, {POLICY: "LEGACY"}):
                    return df.collect()
            finally:
                df.unpersist(blocking=True)

    same_steps(spark, steps)


@pytest.mark.parametrize("as_rdd", [False, True])
@pytest.mark.parametrize("format_", ["orc", "parquet"])
def test_zone_of_the_jvm_changes_between_two_runs(spark, tmp_path, format_, as_rdd):
    """Readers of columns look at it in their tasks, too."""
    legacy = {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY", "spark.sql.parquet.filterPushdown": "false"}
    folder, moment = f"{tmp_path}/d", {"orc": 1_577_865_600_000_000, "parquet": -10_000_000_422_000_000}[format_]
    with conf(spark, {ZONE: "UTC", **legacy}), jvm_zone(spark, "UTC"):
        if format_ == "orc":
            for day in ("2020-01-01", "2020-06-01", "2021-01-01"):
                spark.sql(f"SELECT TIMESTAMP'{day}' AS ts").coalesce(1).write.mode("append").orc(folder)
            age(tmp_path / "d")
        else:
            moments = (-(10**16), 0, 10**15)
            parquet(tmp_path / "d", *({"ts": pa.array([us], pa.timestamp("us", "UTC"))} for us in moments))
        indexed(spark.read.format(format_).load(folder), MinMaxIndex("ts"))

        def steps():
            df = spark.read.format(format_).load(folder).where(f"ts = timestamp_micros({moment})")
            run = (df.selectExpr("unix_micros(ts)").rdd if as_rdd else df.selectExpr("unix_micros(ts)")).collect
            run()
            with jvm_zone(spark, "America/Los_Angeles"):
                return run()

        same_steps(spark, steps)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_order_of_the_kept_files_of_a_bucketed_table(spark, tmp_path, adaptive):
    """One kept file a bucket is in order; all files, which are read when the zone has changed, are not."""
    settings = {
        ZONE: "UTC",
        "spark.sql.adaptive.enabled": adaptive,
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.legacy.bucketedTableScan.outputOrdering": "true",
    }
    clustered = (
        "USING csv OPTIONS (timestampFormat 'yyyy-MM-dd HH:mm:ss') CLUSTERED BY (k) SORTED BY (k) INTO 2 BUCKETS"
    )
    with conf(spark, settings):
        try:
            spark.sql(f"CREATE TABLE ordered_a (k INT, ts TIMESTAMP) {clustered} LOCATION '{tmp_path}/a'")
            spark.sql(f"CREATE TABLE ordered_b (k INT, m INT) {clustered} LOCATION '{tmp_path}/b'")
            for first, hour in ((10, 8), (0, 0)):
                spark.sql(
                    f"INSERT INTO ordered_a SELECT /*+ COALESCE(1) */ int(id), TIMESTAMP'2020-01-01 0{hour}:00:00' "
                    f"FROM range({first}, {first + 10})"
                )
            spark.sql("INSERT INTO ordered_b SELECT /*+ COALESCE(1) */ int(id), int(id) FROM range(20)")
            for file in tmp_path.rglob("part-*"):
                os.utime(file, (time.time() - 3600,) * 2)
            for table in ("ordered_a", "ordered_b"):
                spark.sql(f"REFRESH TABLE {table}")
            indexed(spark.table("ordered_a"), MinMaxIndex("ts"))

            def steps():
                df = spark.sql(
                    "SELECT a.k, m FROM ordered_a a JOIN ordered_b b ON a.k = b.k "
                    "WHERE ts >= TIMESTAMP'2020-01-01 08:00:00Z'"
                )
                df._jdf.queryExecution().executedPlan()
                with conf(spark, {ZONE: "America/Los_Angeles"}):
                    return df.collect()

            same_steps(spark, steps)
        finally:
            for table in ("ordered_a", "ordered_b"):
                spark.sql(f"DROP TABLE IF EXISTS {table}")


# --- expressions, other types, verified listings and single tasks -----------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{}, {"spark.sql.codegen.hugeMethodLimit": "1"}, {"spark.sql.codegen.wholeStage": "false"}],
    ids=["default", "huge", "interpreted"],
)
@pytest.mark.parametrize("way", ["planned", "again"])
def test_policy_of_a_feature_changes(spark, tmp_path, settings, way):
    parquet(tmp_path / "d", *({"s": [value]} for value in ("2020-1-1", "2020-02-02", "x", "2020-01-02")))
    feature = "try_to_timestamp(s, 'yyyy-MM-dd') < TIMESTAMP'2020-01-15 00:00:00'"
    with conf(spark, {POLICY: "CORRECTED", **settings}):
        indexed(spark.read.parquet(f"{tmp_path}/d"), FeatureIndex({"f": feature}))

        def steps():
            df = spark.read.parquet(f"{tmp_path}/d").where(feature)
            if way == "again":
                df.collect()
            df._jdf.queryExecution().executedPlan()
            with conf(spark, {POLICY: "LEGACY"}):
                return df.collect()

        same_steps(spark, steps)


def test_feature_as_an_rdd_without_generated_code(spark, tmp_path):
    parquet(tmp_path / "d", *({"s": [value]} for value in ("2020-1-1", "2020-02-02", "x", "2020-01-02")))
    feature = "try_to_timestamp(s, 'yyyy-MM-dd') IS NULL"
    interpreted = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    with conf(spark, {POLICY: "LEGACY", **interpreted}):
        indexed(spark.read.parquet(f"{tmp_path}/d"), FeatureIndex({"f": feature}))
        same_steps(spark, lambda: list(spark.read.parquet(f"{tmp_path}/d").where(feature).rdd.collect()))


def test_timestamps_of_orc_read_as_numbers(spark, tmp_path):
    with conf(spark, {ZONE: "UTC", "spark.sql.orc.filterPushdown": "false"}):
        with jvm_zone(spark, "UTC"):
            for day in ("2020-01-01", "2020-06-01", "2021-01-01"):
                spark.sql(f"SELECT TIMESTAMP'{day}' AS ts").coalesce(1).write.mode("append").orc(f"{tmp_path}/d")
            age(tmp_path / "d")
            indexed(spark.read.schema("ts BIGINT").orc(f"{tmp_path}/d"), MinMaxIndex("ts"))
        with jvm_zone(spark, "America/Los_Angeles"):
            same_steps(
                spark, lambda: spark.read.schema("ts BIGINT").orc(f"{tmp_path}/d").where("ts = 1577865600").collect()
            )


@pytest.mark.parametrize("way", ["planned", "again", "rdd"])
def test_file_rewritten_between_planning_and_running_of_a_verified_listing(spark, tmp_path, way):
    text(tmp_path / "d", ".csv", "1\n", "2\n", "3\n")
    file = tmp_path / "d" / "object-001.csv"

    def read():
        return spark.read.schema("n INT").csv(f"{tmp_path}/d")

    indexed(read(), MinMaxIndex("n"))

    def steps():
        file.write_text("2\n")
        os.utime(file, (1.6e9, 1.6e9))
        Dataset(read()).refresh()
        with conf(spark, {"spark.skipstone.verifyListing": "true"}):
            df = read().where("n = 3")
            run = (df.rdd if way == "rdd" else df).collect
            if way == "again":
                run()
            df._jdf.queryExecution().executedPlan()
            file.write_text("3\n")
            return run()

    same_steps(spark, steps)


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_aggregates_of_a_scan_in_a_single_task(spark, tmp_path, zone):
    text(tmp_path / "d", ".csv", "5,1\n" * 225, *(f"{n},2\n" * 2 for n in range(10, 18)))
    single = {"spark.sql.optimizer.singleTaskExecution.enabled": "true", SPLIT: "1000", OPEN: "40", ZONE: "UTC"}
    with conf(spark, single):
        indexed(spark.read.schema("n INT, m INT").csv(f"{tmp_path}/d"), MinMaxIndex("n"))

        def steps():
            df = spark.read.schema("n INT, m INT").csv(f"{tmp_path}/d").where("n = 5").groupBy("m").count()
            df._jdf.queryExecution().executedPlan()
            with conf(spark, {ZONE: zone}):
                return df.collect()

        same_steps(spark, steps)
