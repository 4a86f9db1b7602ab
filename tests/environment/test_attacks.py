"""Attacks: whatever else reaches a reader or a function from outside of the query."""

from __future__ import annotations

import gzip
import io
import tarfile
from contextlib import contextmanager

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import skipstone
from skipstone import BloomFilterIndex, Dataset, FeatureIndex, MinMaxIndex, ValueListIndex
from tests.environment.steps import LINE_LENGTH, ZONE, hadoop, jvm_locale, jvm_zone, same_steps
from tests.environment.ways import WAYS, as_listed_rdd, as_rdd
from tests.soundness.attack import age, parquet, same_rows, text
from tests.support import conf

POLICY = "spark.sql.legacy.timeParserPolicy"
UTC, ANGELES = {ZONE: "UTC"}, {ZONE: "America/Los_Angeles"}


def index(df, *columns):
    kinds = (MinMaxIndex, ValueListIndex, BloomFilterIndex)
    return Dataset(df).create_indexes(*(kind(name) for kind in kinds for name in columns or df.columns))


# --- the JVM ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "de"])
def test_xml_numbers_are_read_by_the_locale_of_the_jvm(spark, tmp_path, language):
    values = ("1,5", "2,5", "3.5", "x")
    text(tmp_path / "d", ".xml", *(f"<rows><row><x>{v}</x><y>1</y></row></rows>" for v in values))

    def read():
        return spark.read.schema("x DOUBLE, y INT").option("rowTag", "row").xml(f"{tmp_path}/d")

    with jvm_locale(spark, "en"):
        index(read(), "x")
    with jvm_locale(spark, language):
        skipped = [same_rows(spark, lambda p=p: read().where(p)) for p in ("x = 1.5", "x = 15", "x = 3.5", "x < 2")]
        assert all(skipped) or language != "en"


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_locale_changes_after_a_feature_was_planned(spark, tmp_path, way):
    parquet(tmp_path / "d", {"s": ["içi"]}, {"s": ["ICI"]}, {"s": ["x"]})
    feature = "upper(s) = 'İÇİ'"

    def read():
        return spark.read.parquet(f"{tmp_path}/d")

    with jvm_locale(spark, "en"):
        Dataset(read()).create_indexes(FeatureIndex({"f": feature}))
        assert same_rows(spark, lambda: read().where(feature)) == 3

        def steps():
            run = way(read().where(feature))
            with jvm_locale(spark, "tr"):
                return run()

        same_steps(spark, steps)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_zone_of_the_jvm_changes_after_planning(spark, tmp_path, way):
    with conf(spark, UTC), jvm_zone(spark, "UTC"):
        for day in ("2020-01-01", "2020-06-01", "2021-01-01"):
            spark.sql(f"SELECT TIMESTAMP'{day}' AS ts").coalesce(1).write.mode("append").orc(f"{tmp_path}/d")
        age(tmp_path / "d")
        index(spark.read.orc(f"{tmp_path}/d"))

        def steps():
            run = way(spark.read.orc(f"{tmp_path}/d").where("ts = TIMESTAMP'2020-01-01 08:00:00'"))
            with jvm_zone(spark, "America/Los_Angeles"):
                return run()

        same_steps(spark, steps)


# --- functions of a feature, whose settings tasks look up -------------------------------------------------------------


@pytest.mark.parametrize("codegen", ["true", "false"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_policy_for_parsing_changes_after_a_feature_was_planned(spark, tmp_path, way, codegen):
    parquet(tmp_path / "d", {"s": ["2020-1-1"]}, {"s": ["2020-02-02"]}, {"s": ["x"]})
    feature = "try_to_timestamp(s, 'yyyy-MM-dd') < TIMESTAMP'2020-01-15 00:00:00'"
    generated = {"true": "FALLBACK", "false": "NO_CODEGEN"}[codegen]
    settings = {"spark.sql.codegen.wholeStage": codegen, "spark.sql.codegen.factoryMode": generated}
    with conf(spark, {POLICY: "CORRECTED", **settings}):
        Dataset(spark.read.parquet(f"{tmp_path}/d")).create_indexes(FeatureIndex({"f": feature}))

        def steps(policy):
            run = way(spark.read.parquet(f"{tmp_path}/d").where(feature))
            with conf(spark, {POLICY: policy}):
                return run()

        assert same_steps(spark, lambda: steps("CORRECTED")) or way in (as_rdd, as_listed_rdd)
        same_steps(spark, lambda: steps("LEGACY"))


@pytest.mark.parametrize("way", [as_rdd, as_listed_rdd], ids=lambda way: way.__name__)
def test_feature_of_a_session_with_settings_of_its_own_as_an_rdd(spark, tmp_path, way):
    parquet(tmp_path / "d", {"s": ["2020-1-1"]}, {"s": ["2020-02-02"]}, {"s": ["x"]})
    feature = "try_to_timestamp(s, 'yyyy-MM-dd') IS NULL"
    with conf(spark, {POLICY: "LEGACY"}):
        Dataset(spark.read.parquet(f"{tmp_path}/d")).create_indexes(FeatureIndex({"f": feature}))

        def steps():
            return way(spark.read.parquet(f"{tmp_path}/d").where(feature))()

        same_steps(spark, steps)


# --- properties of a thread, which tasks take for settings ------------------------------------------------------------


@contextmanager
def local_property(spark, name, value):
    spark.sparkContext.setLocalProperty(name, value)
    try:
        yield
    finally:
        spark.sparkContext.setLocalProperty(name, None)


@pytest.mark.parametrize("when", ["indexed", "asked"])
def test_setting_that_a_thread_brings_along(spark, tmp_path, when):
    text(tmp_path / "d", ".csv", "2020-1-1\n", "2020-02-02\n", "2020-03-03\n")

    def read():
        return spark.read.schema("d DATE").option("dateFormat", "yyyy-MM-dd").csv(f"{tmp_path}/d")

    legacy = local_property(spark, POLICY, "LEGACY")
    if when == "indexed":
        with legacy:
            index(read())
        for predicate in ("d IS NULL", "d = DATE'2020-01-01'", "d = DATE'2020-02-02'"):
            same_rows(spark, lambda p=predicate: read().where(p))
    else:
        index(read())
        with legacy:
            for predicate in ("d IS NULL", "d = DATE'2020-01-01'", "d = DATE'2020-02-02'"):
                same_rows(spark, lambda p=predicate: read().where(p))


def test_settings_of_a_stream_reach_queries_of_its_batches(spark, tmp_path):
    text(tmp_path / "d", ".csv", "2020-1-1\n", "2020-02-02\n", "2020-03-03\n")
    text(tmp_path / "ticks", ".txt", "tick\n")

    def read():
        return spark.read.schema("d DATE").option("dateFormat", "yyyy-MM-dd").csv(f"{tmp_path}/d")

    index(read())
    failures, seen = [], []

    def batch(_df, _number):
        for predicate in ("d = DATE'2020-01-01'", "d IS NULL", "d = DATE'2020-02-02'"):
            try:
                seen.append(same_rows(spark, lambda p=predicate: read().where(p)))
            except AssertionError as error:
                failures.append(error)

    with conf(spark, {POLICY: "LEGACY"}):
        stream = spark.readStream.schema("value STRING").text(f"{tmp_path}/ticks").writeStream.foreachBatch(batch)
        query = stream.option("checkpointLocation", f"{tmp_path}/checkpoint").trigger(availableNow=True).start()
        spark.conf.unset(POLICY)  # the stream keeps the settings that it was started with
        query.awaitTermination(120)
    assert not failures
    assert len(seen) == 3


def test_stream_over_an_indexed_folder(spark, tmp_path):
    text(tmp_path / "d", ".csv", *(f"{day} 00:00:00\n" for day in ("2020-01-01", "2020-06-01", "2021-01-01")))

    def run(zone, number):
        with conf(spark, {ZONE: zone}):
            stream = spark.readStream.schema("ts TIMESTAMP").csv(f"{tmp_path}/d")
            wanted = "ts = TIMESTAMP'2020-01-01 00:00:00' OR ts = TIMESTAMP'2020-01-01 08:00:00Z'"
            sink = stream.where(wanted).selectExpr("unix_micros(ts)").writeStream.format("memory")
            name = f"found_{number}"
            query = sink.queryName(name).option("checkpointLocation", f"{tmp_path}/checkpoint-{number}")
            query = query.trigger(availableNow=True).start()
            spark.conf.set(ZONE, "UTC")
            query.awaitTermination(120)
            return sorted(row[0] for row in spark.table(name).collect())

    with conf(spark, UTC):
        index(spark.read.schema("ts TIMESTAMP").csv(f"{tmp_path}/d"))
    for number, zone in enumerate(("UTC", "America/Los_Angeles")):
        with conf(spark, {"spark.skipstone.enabled": "false"}):
            expected = run(zone, f"off_{number}")
        assert run(zone, f"on_{number}") == expected


# --- partitions and defaults ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("later", ["UTC", "America/Los_Angeles"])
def test_partition_values_that_were_read_under_another_zone(spark, tmp_path, later):
    for number, hour in enumerate((0, 8, 16)):
        parquet(tmp_path / "d" / f"p=2020-01-01 {hour:02d}%3A00%3A00", {"n": [number]})

    def read():
        return spark.read.schema("n BIGINT, p TIMESTAMP").parquet(f"{tmp_path}/d")

    def steps(predicate, made, asked):
        with conf(spark, {ZONE: made}):
            df = read()
            df.inputFiles()
            with conf(spark, {ZONE: asked}):
                return df.where(predicate).selectExpr("n", "unix_micros(p)").collect()

    with conf(spark, {ZONE: later}):
        index(read(), "p", "n")
    wanted = [f"p = TIMESTAMP'2020-01-01 {hour:02d}:00:00Z'" for hour in (0, 8, 16)]
    wanted += [f"p = TIMESTAMP'2020-01-01 {hour:02d}:00:00 America/Los_Angeles'" for hour in (0, 8, 16)]
    wanted += [f"date_trunc('HOUR', p) = TIMESTAMP'2020-01-01 {hour:02d}:00:00Z' AND n >= 0" for hour in (0, 8)]
    for predicate in wanted:
        same_steps(spark, lambda p=predicate: steps(p, "UTC", later))
        same_steps(spark, lambda p=predicate: steps(p, later, "UTC"))
        same_steps(spark, lambda p=predicate: steps(p, later, later))


@pytest.mark.parametrize("format_", ["parquet", "orc", "json", "csv"])
def test_default_of_a_column_that_files_lack_is_read_by_the_zone(spark, tmp_path, format_):
    name = f"defaulted_{format_}"
    location = f"{tmp_path}/t"
    for n in (1, 2):
        spark.sql(f"SELECT {n} AS a").coalesce(1).write.mode("append").format(format_).save(location)
    with conf(spark, UTC):
        spark.sql(f"CREATE TABLE {name} (a INT) USING {format_} LOCATION '{location}'")
        try:
            spark.sql(f"ALTER TABLE {name} ADD COLUMN ts TIMESTAMP DEFAULT TIMESTAMP'2020-01-01 00:00:00'")
            spark.sql(f"INSERT INTO {name} VALUES (3, TIMESTAMP'2021-01-01 00:00:00')")
            age(tmp_path / "t")
            spark.sql(f"REFRESH TABLE {name}")
            index(spark.table(name), "a", "ts")
            assert same_rows(spark, f"SELECT a FROM {name} WHERE a = 1")
            for later in (UTC, ANGELES):
                with conf(spark, later):
                    spark.sql(f"REFRESH TABLE {name}")
                    for moment in ("2020-01-01 00:00:00Z", "2020-01-01 08:00:00Z", "2021-01-01 00:00:00Z"):
                        for op in ("=", "<>", ">="):
                            query = f"SELECT a, unix_micros(ts) FROM {name} WHERE ts {op} TIMESTAMP'{moment}'"
                            same_rows(spark, query)
        finally:
            spark.sql(f"DROP TABLE {name}")


def test_default_of_a_column_that_files_lack_is_a_text_that_is_parsed(spark, tmp_path):
    """What a back-slash in it means depends on a setting."""
    location = f"{tmp_path}/t"
    spark.sql("SELECT 1 AS a").coalesce(1).write.parquet(location)
    spark.sql(f"CREATE TABLE parsed_default (a INT) USING parquet LOCATION '{location}'")
    try:
        spark.sql(r"ALTER TABLE parsed_default ADD COLUMN c STRING DEFAULT 'x\\\\y'")
        spark.sql("INSERT INTO parsed_default VALUES (2, 'z')")
        age(tmp_path / "t")
        spark.sql("REFRESH TABLE parsed_default")
        index(spark.table("parsed_default"), "c")
        found = {}
        for escaped in ("false", "true"):
            with conf(spark, {"spark.sql.parser.escapedStringLiterals": escaped}):
                values = [row.c for row in spark.table("parsed_default").collect()]
                for value in values:
                    skipped = same_rows(spark, lambda v=value: spark.table("parsed_default").where(F.col("c") == v))
                    assert skipped or escaped == "true"
                found[escaped] = set(values)
        assert found["false"] != found["true"]
    finally:
        spark.sql("DROP TABLE parsed_default")


# --- settings and options that only newer readers look at -------------------------------------------------------------


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_texts_read_with_a_codec_that_their_names_do_not_say(spark, tmp_path, compression):
    text(tmp_path / "d", ".txt", "one\n", gzip.compress(b"two\n"), "three\n")

    def read(codec):
        return spark.read.option("compression", codec).text(f"{tmp_path}/d/object-001.txt")

    index(spark.read.option("compression", "none").text(f"{tmp_path}/d"))
    for predicate in ("value = 'two'", "length(value) > 3", "value > 'b'"):
        same_rows(spark, lambda p=predicate: read(compression).where(p))


def test_archives_that_are_opened_or_not(spark, tmp_path):
    setting = "spark.sql.files.archive.reader.enabled"
    packed = []
    for word in ("one", "two", "three"):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as archive:
            for name in ("a.txt", "_b.txt"):
                member = tarfile.TarInfo(name)
                member.size = len(word) + 1
                archive.addfile(member, io.BytesIO(f"{word}\n".encode()))
        packed.append(file.getvalue())
    text(tmp_path / "d", ".tar", *packed)

    def read():
        return spark.read.text(f"{tmp_path}/d")

    index(read())
    with conf(spark, {setting: "true"}):
        same_rows(spark, lambda: read().where("value = 'two'"))
        with conf(spark, {"spark.sql.files.ignoredPathSegmentRegex": ""}):
            same_rows(spark, lambda: read().where("value = 'two'"))


@pytest.mark.parametrize("lent", ["CORRECTED", "LEGACY"])
@pytest.mark.parametrize("asked", ["CORRECTED", "LEGACY"])
def test_view_whose_tasks_take_settings_of_the_asking_session(spark, tmp_path, lent, asked):
    text(tmp_path / "d", ".csv", "2020-1-1\n", "2020-02-02\n", "2020-03-03\n")

    def read(session):
        return session.read.schema("d DATE").option("dateFormat", "yyyy-MM-dd").csv(f"{tmp_path}/d")

    index(read(spark))
    lender, asker = spark.newSession(), spark.newSession()
    lender.conf.set(POLICY, lent)
    asker.conf.set(POLICY, asked)
    read(lender).createOrReplaceGlobalTempView("lent_days")
    try:
        for predicate in ("d IS NULL", "d = DATE'2020-01-01'", "d = DATE'2020-02-02'"):
            query = f"SELECT * FROM global_temp.lent_days WHERE {predicate}"
            skipped = same_steps(asker, lambda q=query: asker.sql(q).collect(), lender)
            assert skipped or (lent, asked) != ("CORRECTED", "CORRECTED")
    finally:
        lender.catalog.dropGlobalTempView("lent_days")


@pytest.mark.parametrize("place", ["context", "session"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_hadoops_settings_change_after_planning(spark, tmp_path, way, place):
    text(tmp_path / "d", ".txt", "short\n", "a line of some length\n", "tiny\n")

    def cut():
        return hadoop(spark, {LINE_LENGTH: "10"}) if place == "context" else conf(spark, {LINE_LENGTH: "10"})

    with cut():
        index(spark.read.text(f"{tmp_path}/d"))

    def steps(predicate):
        with cut():
            run = way(spark.read.text(f"{tmp_path}/d").where(predicate))
        return run()

    for predicate in ("value = 'a line of some length'", "value = 'short'"):
        same_steps(spark, lambda p=predicate: steps(p))


def test_refreshed_under_another_locale_and_zone_of_the_jvm(spark, tmp_path):
    parquet(tmp_path / "d", {"s": ["x"]}, {"s": ["y"]})
    feature = FeatureIndex({"f": "upper(s) = 'İÇİ'"})

    def read():
        return spark.read.parquet(f"{tmp_path}/d")

    with jvm_locale(spark, "tr"):
        Dataset(read()).create_indexes(feature)
        handle = Dataset(read())
    parquet(tmp_path / "d" / "more", {"s": ["içi"]})
    (tmp_path / "d" / "more" / "object-000.parquet").rename(tmp_path / "d" / "object-100.parquet")
    with jvm_locale(spark, "en"):
        for dataset in (handle, Dataset(read())):
            try:
                dataset.refresh(indexes=[feature])
            except skipstone.SkipstoneError:
                continue  # a refusal is as good
    with jvm_locale(spark, "tr"):
        same_rows(spark, lambda: read().where("upper(s) = 'İÇİ'"))


def test_lines_cut_by_a_setting_of_the_session_that_made_the_view(spark, tmp_path):
    text(tmp_path / "d", ".txt", "short\n", "a line of some length\n", "tiny\n")
    lender, asker = spark.newSession(), spark.newSession()
    lender.conf.set(LINE_LENGTH, "10")
    index(lender.read.text(f"{tmp_path}/d"))
    asker.conf.set(LINE_LENGTH, "10")
    spark.read.text(f"{tmp_path}/d").createOrReplaceGlobalTempView("lent_lines")  # reads without that setting
    try:
        query = "SELECT * FROM global_temp.lent_lines WHERE value = 'a line of some length'"
        same_steps(asker, lambda: asker.sql(query).collect(), spark)
    finally:
        spark.catalog.dropGlobalTempView("lent_lines")


def test_old_instants_rebased_by_the_zone_of_the_jvm(spark, tmp_path):
    parquet(tmp_path / "d", *({"ts": pa.array([us], pa.timestamp("us", "UTC"))} for us in (-(10**16), 0, 10**15)))
    with conf(spark, {"spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY"}), jvm_zone(spark, "UTC"):
        index(spark.read.parquet(f"{tmp_path}/d"))
        with jvm_zone(spark, "America/Los_Angeles"):
            for us in (-(10**16), -(10**16) + 422_000_000, 0, 10**15):
                for shift in (-28378, 28378, -25200, 0, 422, -422):
                    wanted = f"ts = timestamp_micros({us + shift * 1_000_000})"
                    same_rows(
                        spark,
                        lambda p=wanted: spark.read.parquet(f"{tmp_path}/d").where(p).selectExpr("unix_micros(ts)"),
                    )


@pytest.mark.parametrize("zones", [("UTC", "America/Los_Angeles"), ("America/Los_Angeles", "UTC")])
def test_indexed_through_a_view_of_another_session(spark, tmp_path, zones):
    text(tmp_path / "d", ".csv", *(f"{day} 00:00:00\n" for day in ("2020-01-01", "2020-06-01", "2021-01-01")))

    def read(session):
        return session.read.schema("ts TIMESTAMP").csv(f"{tmp_path}/d")

    sessions = [spark.newSession() for _ in zones]
    for session, zone in zip(sessions, zones, strict=True):
        session.conf.set(ZONE, zone)
    lender, asker = sessions
    read(lender).createOrReplaceGlobalTempView("lent_to_index")
    try:
        Dataset(asker.table("global_temp.lent_to_index")).create_indexes(MinMaxIndex("ts"), ValueListIndex("ts"))
        for moment in ("2020-01-01 00:00:00Z", "2020-01-01 08:00:00Z"):
            wanted = f"ts = TIMESTAMP'{moment}'"
            for session in sessions:
                same_rows(session, lambda s=session, w=wanted: read(s).where(w))
            same_rows(asker, lambda w=wanted: asker.table("global_temp.lent_to_index").where(w))
    finally:
        lender.catalog.dropGlobalTempView("lent_to_index")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_readers_of_rows_under_another_zone_of_the_jvm(spark, tmp_path, way, format_):
    by_rows = {f"spark.sql.{format_}.enableVectorizedReader": "false", **UTC}
    legacy = {f"spark.sql.parquet.{kind}RebaseModeInRead": "LEGACY" for kind in ("datetime", "int96")}
    moments = [pa.array([us], pa.timestamp("us", "UTC")) for us in (-(10**16), 0, 10**15)]
    parquet(tmp_path / "parquet", *({"ts": moment} for moment in moments))
    with conf(spark, {**by_rows, **legacy}), jvm_zone(spark, "UTC"):
        if format_ == "orc":
            files = spark.read.parquet(f"{tmp_path}/parquet")
            files.repartitionByRange(3, "ts").write.orc(f"{tmp_path}/orc")
            age(tmp_path / "orc")

        def read():
            return spark.read.format(format_).load(f"{tmp_path}/{format_}")

        index(read())

        def steps(predicate):
            run = way(read().where(predicate).selectExpr("unix_micros(ts)"))
            with jvm_zone(spark, "America/Los_Angeles"):
                return run()

        same_steps(spark, lambda: steps("year(ts) < 1700 AND ts < timestamp_micros(-10000000000000000)"))
        same_steps(spark, lambda: steps("ts > timestamp_micros(-10000000000000000) AND year(ts) < 1700"))
        same_steps(spark, lambda: steps("ts = timestamp_micros(28800000000)"))


@pytest.mark.parametrize("arrow", ["true", "false"])
def test_results_of_functions_that_arrow_turns_to_text_otherwise(spark, tmp_path, arrow):
    setting = "spark.sql.execution.pythonUDF.arrow.enabled"
    parquet(tmp_path / "d", {"s": ["x"]}, {"s": ["y"]}, {"s": ["z"]})

    def read():
        return spark.read.parquet(f"{tmp_path}/d")

    def is_x(s):
        return s == "x"

    with conf(spark, {setting: "false"}):
        spark.udf.register("is_x", is_x, "string")
        feature = FeatureIndex({f"{text}": f"is_x(s) = '{text}'" for text in ("true", "True")})
        Dataset(read()).create_indexes(feature)
        assert same_rows(spark, lambda: read().where("is_x(s) = 'true'"))
    with conf(spark, {setting: arrow}):
        for text_ in ("true", "True", "false", "False"):
            same_rows(spark, lambda t=text_: read().where(f"is_x(s) = '{t}'"))
        spark.udf.register("is_x", is_x, "string")
        for text_ in ("true", "True", "false", "False"):
            same_rows(spark, lambda t=text_: read().where(f"is_x(s) = '{t}'"))


_FUNCTIONS = {
    "spark.sql.legacy.sizeOfNull": ("size(a) = -1", {"spark.sql.ansi.enabled": "false"}, "false", "true"),
    "spark.sql.legacy.followThreeValuedLogicInArrayExists": (
        "coalesce(exists(a, x -> x > 5), true)",
        {},
        "false",
        "true",
    ),
    "spark.sql.icu.caseMappings.enabled": ("lower(s) = 'i\u0307'", {}, "true", "false"),
    "spark.sql.json.enablePartialResults": ("from_json(j, 'p INT, q INT').q = 1", {}, "false", "true"),
}


@pytest.mark.parametrize("setting", _FUNCTIONS)
@pytest.mark.parametrize("way", ["at once", "planned before", "run before"])
def test_settings_that_functions_of_features_look_at(spark, tmp_path, setting, way):
    feature, also, before, after = _FUNCTIONS[setting]
    schema = pa.schema({"a": pa.list_(pa.int64()), "s": pa.string(), "j": pa.string()})
    rows = (
        {"a": None, "s": "\u0130", "j": '{"p": "x", "q": 1}'},
        {"a": [1, None], "s": "x", "j": '{"p": 1, "q": 2}'},
        {"a": [9], "s": "y", "j": "x"},
    )
    parquet(tmp_path / "d", *(pa.Table.from_pylist([row], schema) for row in rows))

    def steps():
        df = spark.read.parquet(f"{tmp_path}/d").where(feature)
        if way == "planned before":
            df._jdf.queryExecution().executedPlan()
        elif way == "run before":
            df.collect()
        with conf(spark, {setting: after}):
            return (spark.read.parquet(f"{tmp_path}/d").where(feature) if way == "at once" else df).collect()

    with conf(spark, {setting: before, **also}):
        Dataset(spark.read.parquet(f"{tmp_path}/d")).create_indexes(FeatureIndex({"f": feature}))
        same_steps(spark, steps)
