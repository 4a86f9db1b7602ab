"""What a plan rests on changes between planning and running, or behind a name that stays: no row is lost."""

from __future__ import annotations

import pytest

from skipstone import Dataset, FeatureIndex, FormattedIndex, MinMaxIndex, state_version, udf_filter
from skipstone.errors import IndexingError
from skipstone.expressions.ranges import between
from tests.environment.steps import LINE_LENGTH, ZONE, hadoop, same_steps
from tests.soundness.attack import age, parquet, same_rows, text
from tests.support import conf

CORRUPT = "spark.sql.columnNameOfCorruptRecord"


def planned_then(spark, make, before, after):
    """Plan under some settings, and run under others."""

    def steps():
        with conf(spark, before):
            df = make()
            df._jdf.queryExecution().executedPlan()
        with conf(spark, after):
            return df.collect()

    return lambda: same_steps(spark, steps)


@pytest.mark.parametrize("again", [False, True], ids=["planned before", "run before"])
def test_settings_for_values_of_python_functions(spark, tmp_path, again):
    setting = "spark.sql.execution.pyspark.binaryAsBytes"
    folder = parquet(tmp_path / "d", *({"b": [letter.encode()]} for letter in "abcd"))
    spark.udf.register("kind_of", lambda b: f"{type(b).__name__}:{bytes(b).decode()}", "string")
    Dataset(spark.read.parquet(folder)).create_indexes(FormattedIndex("b", extract="kind_of"))

    def steps():
        with conf(spark, {setting: "true"}):
            df = spark.read.parquet(folder).where("kind_of(b) = 'bytearray:c'")
            df._jdf.queryExecution().executedPlan()
            if again:
                df.collect()
        with conf(spark, {setting: "false"}):
            return df.collect()

    same_steps(spark, steps)
    assert same_rows(spark, lambda: spark.read.parquet(folder).where("kind_of(b) = 'bytes:c'"))


def test_settings_for_values_of_a_function_that_implies_something(spark, tmp_path):
    setting = "spark.sql.execution.pyspark.binaryAsBytes"
    rows = ({"b": [letter.encode()], "n": [number]} for number, letter in enumerate("abcd"))
    folder = parquet(tmp_path / "d", *rows)
    spark.udf.register("wanted", lambda b, n: n == (2 if isinstance(b, bytearray) else 1), "boolean")
    Dataset(spark.read.parquet(folder)).create_indexes(MinMaxIndex("n"))
    with conf(spark, {setting: "true"}):
        udf_filter(spark, "wanted", lambda b, n: between(n, 1, 1))
        assert same_rows(spark, lambda: spark.read.parquet(folder).where("wanted(b, n)"))
    planned_then(
        spark, lambda: spark.read.parquet(folder).where("wanted(b, n)"), {setting: "true"}, {setting: "false"}
    )()


def test_the_size_of_texts_for_arrow_functions(spark, tmp_path):
    setting = "spark.sql.execution.arrow.useLargeVarTypes"
    arrow_udf = pytest.importorskip("pyspark.sql.functions", reason="none").__dict__.get("arrow_udf")
    if arrow_udf is None:
        pytest.skip("this Spark has no functions of Arrow's")
    folder = parquet(tmp_path / "d", *({"s": [letter]} for letter in "abcd"))

    def kinds(s):
        import pyarrow as pa

        return pa.array([f"{s.type} {value}" for value in s.to_pylist()])

    import pyarrow as pa

    kinds.__annotations__ = {"s": pa.Array, "return": pa.Array}
    spark.udf.register("kinds", arrow_udf(kinds, "string"))
    with conf(spark, {setting: "true"}):
        state_version(spark, "kinds", "1")
        with pytest.raises(IndexingError, match="useLargeVarTypes"):
            Dataset(spark.read.parquet(folder)).create_indexes(FormattedIndex("s", extract="kinds"))
    state_version(spark, "kinds", "1")
    Dataset(spark.read.parquet(folder)).create_indexes(FormattedIndex("s", extract="kinds"))
    assert same_rows(spark, lambda: spark.read.parquet(folder).where("kinds(s) = 'string c'"))
    with conf(spark, {setting: "true"}):
        for kind in ("string", "large_string"):
            same_rows(spark, lambda k=kind: spark.read.parquet(folder).where(f"kinds(s) = '{k} c'"))


def test_timestamps_in_variants(spark, tmp_path):
    rows = [f"{n},2020-01-0{n + 1} 00:00:00\n" for n in range(4)]
    folder = text(tmp_path / "d", ".csv", *rows)

    def read():
        return spark.read.format("csv").option("singleVariantColumn", "v").load(folder)

    where = "schema_of_variant(v) = 'OBJECT<_c0: BIGINT, _c1: TIMESTAMP_NTZ>'"
    Dataset(read()).create_indexes(FeatureIndex({"ntz": where}))
    planned_then(
        spark,
        lambda: read().where(where).selectExpr("to_json(v)"),
        {"spark.sql.timestampType": "TIMESTAMP_LTZ"},
        {"spark.sql.timestampType": "TIMESTAMP_NTZ"},
    )()


def test_what_is_inferred_of_xml_in_variants(spark, tmp_path):
    folder = text(tmp_path / "d", ".xml", *(f"<rows><row><x>{n}</x></row></rows>" for n in range(3)))

    def read(inferring):
        reader = spark.read.format("xml").option("rowTag", "row").option("singleVariantColumn", "v")
        return reader.option("inferSchema", inferring).load(folder)

    where = "schema_of_variant(v) = 'OBJECT<x: STRING>'"
    Dataset(read("true")).create_indexes(FeatureIndex({"text": where}))
    same_rows(spark, lambda: read("false").where(where).selectExpr("to_json(v)"))


@pytest.mark.parametrize("refers", ["${system:skipstone.bad}", "${spark.told.bad}"])
def test_a_setting_that_refers_to_others(spark, tmp_path, refers):
    def tell(value):
        spark._jvm.java.lang.System.setProperty("skipstone.bad", value)
        spark.conf.set("spark.told.bad", value)

    folder = text(tmp_path / "d", ".csv", "1,a\n", "x,b\n", "3,c\n")

    def read():
        return spark.read.schema("a INT, b STRING, bad STRING").csv(folder)

    try:
        tell("elsewhere")
        with conf(spark, {CORRUPT: refers}):
            Dataset(read()).create_indexes(MinMaxIndex("bad"))
            tell("bad")
            same_rows(spark, lambda: read().where("bad IS NOT NULL"))
    finally:
        spark.conf.unset("spark.told.bad")
        spark._jvm.java.lang.System.clearProperty("skipstone.bad")


def test_a_setting_of_hadoops_that_refers_to_one_that_is_harmless(spark, tmp_path):
    folder = text(tmp_path / "d", ".txt", "aaaaaaaaaa\n", "bbbbbbbbbbbbbbbbbbbb\n", "c\n")
    settings = spark._jsc.hadoopConfiguration()
    try:
        settings.set("fs.told.length", "15")
        with hadoop(spark, {LINE_LENGTH: "${fs.told.length}"}):
            Dataset(spark.read.text(folder)).create_indexes(MinMaxIndex("value"))
            settings.set("fs.told.length", "100")
            same_rows(spark, lambda: spark.read.text(folder).where("value LIKE 'b%'"))
    finally:
        settings.unset("fs.told.length")


def test_a_zone_of_another_offset_under_the_same_name(spark, tmp_path):
    zones = spark._jvm.java.util.TimeZone
    before = zones.getDefault()
    with conf(spark, {ZONE: "UTC"}):
        for n in range(4):
            row = spark.sql(f"SELECT TIMESTAMP'2020-01-0{n + 1} 00:00:00' AS ts, {n} AS n")
            row.coalesce(1).write.mode("append").orc(f"{tmp_path}/d")
        age(tmp_path / "d")
        Dataset(spark.read.orc(f"{tmp_path}/d")).create_indexes(MinMaxIndex("ts"))
        assert same_rows(spark, lambda: spark.read.orc(f"{tmp_path}/d").where("ts = '2020-01-02 00:00:00'"))
        try:
            zones.setDefault(spark._jvm.java.util.SimpleTimeZone(5 * 3_600_000, before.getID()))
            for hour in ("2020-01-01 19:00:00", "2020-01-02 00:00:00", "2020-01-01 05:00:00"):
                same_rows(spark, lambda h=hour: spark.read.orc(f"{tmp_path}/d").where(f"ts = '{h}'"))
        finally:
            zones.setDefault(before)


def test_answers_from_partitions_alone(spark, tmp_path):
    for p in range(3):
        parquet(tmp_path / "d" / f"p={p}", {"n": [] if p == 1 else [10 * p]})
    Dataset.for_path(spark, f"{tmp_path}/d").create_indexes(MinMaxIndex("p"))
    with conf(spark, {"spark.sql.optimizer.metadataOnly": "true"}):
        same_rows(spark, lambda: spark.read.parquet(f"{tmp_path}/d").where("p >= 1").select("p").distinct())
        same_rows(spark, lambda: spark.read.parquet(f"{tmp_path}/d").where("p < 2").selectExpr("max(p)"))
