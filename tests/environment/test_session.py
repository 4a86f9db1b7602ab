"""Settings of a session that change between indexing, planning and running, and sessions that lend their views."""

from __future__ import annotations

from contextlib import nullcontext, suppress

import pytest

from skipstone import Dataset, MinMaxIndex, SkipstoneError, ValueListIndex
from skipstone.engines.spark.source import SparkSource
from tests.environment.steps import LINE_LENGTH, ZONE, hadoop, same_steps
from tests.environment.ways import WAYS, again, as_listed_rdd, as_rdd, cached, planned
from tests.soundness.attack import age, same_rows, text
from tests.support import conf

UTC, ANGELES = {ZONE: "UTC"}, {ZONE: "America/Los_Angeles"}
POLICY = "spark.sql.legacy.timeParserPolicy"
DAYS = ("2020-01-01 00:00:00", "2020-06-01 00:00:00", "2021-01-01 00:00:00")
WANTED = [f"ts = TIMESTAMP'{day}'" for day in DAYS]


@pytest.fixture
def moments(spark, tmp_path):
    """Return what reads a CSV of wall-clock times, an object a day."""
    text(tmp_path / "moments", ".csv", *(f"{day}\n" for day in DAYS))
    return lambda session=spark: session.read.schema("ts TIMESTAMP").csv(f"{tmp_path}/moments")


def index(df):
    return Dataset(df).create_indexes(MinMaxIndex("ts"), ValueListIndex("ts"))


# --- the age of the handle --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("later", [UTC, ANGELES], ids=["the same zone", "another zone"])
def test_indexed_with_a_handle_from_before_the_zone_changed(spark, moments, later):
    with conf(spark, UTC):
        handle = Dataset(moments())
        with conf(spark, later):
            handle.create_indexes(MinMaxIndex("ts"), ValueListIndex("ts"))
        skipped = [same_rows(spark, lambda p=p: moments().where(p)) for p in WANTED]
        assert all(skipped) or later == ANGELES
        with conf(spark, ANGELES):
            assert all(same_rows(spark, lambda p=p: moments().where(p)) for p in WANTED) or later == UTC


@pytest.mark.parametrize("later", [UTC, ANGELES], ids=["the same zone", "another zone"])
@pytest.mark.parametrize("anew", [True, False], ids=["a new handle", "the old handle"])
def test_refreshed_after_the_zone_changed(spark, moments, tmp_path, later, anew):
    with conf(spark, UTC):
        handle = Dataset(moments())
        index(moments())
        (tmp_path / "moments" / "object-100.csv").write_text("2022-01-01 00:00:00\n")
        age(tmp_path / "moments", 1800)
        with conf(spark, later), suppress(SkipstoneError) if later == ANGELES else nullcontext():
            (Dataset(moments()) if anew else handle).refresh()  # a refusal is as good
        for predicate in (*WANTED, "ts = TIMESTAMP'2022-01-01 00:00:00'"):
            skipped = same_rows(spark, lambda p=predicate: moments().where(p))
            assert skipped or later == ANGELES


def test_the_zone_changes_and_changes_back_while_a_job_runs(spark, moments, monkeypatch):
    real = SparkSource.list_objects

    def listed(*args, **kwargs):
        spark.conf.set(ZONE, "America/Los_Angeles")
        return real(*args, **kwargs)

    with conf(spark, UTC):
        monkeypatch.setattr(SparkSource, "list_objects", listed)
        with suppress(SkipstoneError):  # a refusal is as good
            index(moments())
        monkeypatch.undo()
        spark.conf.set(ZONE, "UTC")
        for predicate in WANTED:
            same_rows(spark, lambda p=predicate: moments().where(p))


# --- planned under one zone, run under another ------------------------------------------------------------------------


@pytest.mark.parametrize("running", [UTC, ANGELES], ids=["the same zone", "another zone"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_planned_under_one_zone_and_run_under_another(spark, moments, way, running):
    with conf(spark, UTC):
        index(moments())

        def steps(predicate):
            run = way(moments().where(predicate).selectExpr("CAST(ts AS DOUBLE)"))
            with conf(spark, running):
                return run()

        wanted = [*WANTED, *(f"ts = TIMESTAMP'{day} America/Los_Angeles'" for day in DAYS)]
        skipped = [same_steps(spark, lambda p=p: steps(p)) for p in wanted]
        assert all(skipped) or running != UTC


@pytest.mark.parametrize("policy", ["CORRECTED", "LEGACY"])
@pytest.mark.parametrize("format_", ["csv", "json", "xml"])
@pytest.mark.parametrize("way", [again, planned, as_rdd, as_listed_rdd, cached], ids=lambda way: way.__name__)
def test_run_again_under_another_policy_for_parsing(spark, tmp_path, way, format_, policy):
    shown = {"csv": "{}\n", "json": '{{"d": "{}"}}\n', "xml": "<rows><row><d>{}</d></row></rows>"}[format_]
    text(tmp_path / "d", f".{format_}", *(shown.format(day) for day in ("2020-1-1", "2020-02-02", "2020-03-03")))

    def read():
        reader = spark.read.schema("d DATE").options(dateFormat="yyyy-MM-dd", rowTag="row")
        return reader.format(format_).load(f"{tmp_path}/d")

    with conf(spark, {POLICY: "CORRECTED"}):
        Dataset(read()).create_indexes(MinMaxIndex("d"), ValueListIndex("d"))

        def steps(predicate):
            run = way(read().where(predicate))
            with conf(spark, {POLICY: policy}):
                return run()

        skipped = [same_steps(spark, lambda p=p: steps(p)) for p in ("d = DATE'2020-01-01'", "d = DATE'2020-02-02'")]
        assert all(skipped) or policy != "CORRECTED"


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_tasks_of_an_rdd_see_no_settings_of_the_session(spark, tmp_path, way):
    """Nothing changes here but the reader: it takes the policy from the task, which has it only in a SQL execution."""
    text(tmp_path / "d", ".csv", "2020-1-1\n", "2020-02-02\n", "2020-03-03\n")

    def read():
        return spark.read.schema("d DATE").option("dateFormat", "yyyy-MM-dd").csv(f"{tmp_path}/d")

    with conf(spark, {POLICY: "LEGACY"}):
        Dataset(read()).create_indexes(MinMaxIndex("d"), ValueListIndex("d"))
        for predicate in ("d IS NULL", "d = DATE'2020-01-01'", "d = DATE'2020-02-02'"):
            skipped = same_steps(spark, lambda p=predicate: way(read().where(p))())
            assert skipped or way in (as_rdd, as_listed_rdd)


def _handed_over(df, other):
    """Make an RDD, which a query of another session reads."""
    rdd = df.rdd
    return lambda: other.createDataFrame(rdd, df.schema).collect()


def _checkpointed(df, other):
    """Ask for a checkpoint, which a query of another session makes."""
    found = df.localCheckpoint(eager=False)
    return lambda: other.range(0).selectExpr("CAST(NULL AS DATE) AS d").union(found).collect()


def _with_a_local_property(df, other):
    """Make an RDD, and run it in a thread that brings the other session's setting along."""
    rdd = df.rdd

    def collect():
        context = df.sparkSession.sparkContext
        context.setLocalProperty(POLICY, other.conf.get(POLICY))
        try:
            return rdd.collect()
        finally:
            context.setLocalProperty(POLICY, None)

    return collect


def _cached_in_part(df, other):
    """Cache, and compute some of it; the rest is computed when another session asks the same."""
    df.cache()
    df.take(1)

    def collect():
        try:
            return other.sql("SELECT * FROM global_temp.asked_elsewhere").collect()
        finally:
            other.catalog.dropGlobalTempView("asked_elsewhere")
            df.unpersist(blocking=True)

    df.createOrReplaceGlobalTempView("asked_elsewhere")
    return collect


@pytest.mark.parametrize("policy", ["CORRECTED", "LEGACY"])
@pytest.mark.parametrize(
    "way",
    [_handed_over, _with_a_local_property, _checkpointed, _cached_in_part],
    ids=lambda way: way.__name__.strip("_"),
)
def test_run_inside_of_another_sessions_query(spark, tmp_path, way, policy):
    """Tasks look settings up that are those of the query which they are part of."""
    days = ("2020-03-03", "2020-3-3", "2020-3-3", "2020-3-3", "2020-03-03", "2020-1-1")
    text(tmp_path / "d", ".csv", *(f"{day}\n" for day in days))
    other = spark.newSession()
    other.conf.set(POLICY, policy)

    def read():
        return spark.read.schema("d DATE").option("dateFormat", "yyyy-MM-dd").csv(f"{tmp_path}/d")

    parts = {"spark.sql.files.maxPartitionBytes": "11", "spark.sql.files.openCostInBytes": "11"}
    with conf(spark, {POLICY: "CORRECTED"}):
        Dataset(read()).create_indexes(MinMaxIndex("d"), ValueListIndex("d"))
        with conf(spark, parts):
            for predicate in ("d = DATE'2020-03-03'", "d = DATE'2020-01-01'"):
                assert same_steps(spark, lambda p=predicate: way(read().where(p), other)(), other)


@pytest.mark.parametrize("way", [planned, as_rdd, again], ids=lambda way: way.__name__)
def test_objects_that_were_skipped_are_not_opened(spark, tmp_path, way):
    """A task that reads as planned asks for nothing."""
    text(tmp_path / "d", ".csv", "2020-01-01\n", "2020-02-02\n", "2020-03-03\n")
    df = spark.read.schema("d DATE").option("dateFormat", "yyyy-MM-dd").csv(f"{tmp_path}/d")
    Dataset(df).create_indexes(MinMaxIndex("d"))
    run = way(df.where("d = DATE'2020-02-02'"))
    (tmp_path / "d" / "object-000.csv").unlink()
    assert len(run()) == 1


# --- views of another session -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_sql", [False, True], ids=["of a DataFrame", "of a SELECT"])
@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_view_of_another_session(spark, moments, tmp_path, zone, by_sql):
    with conf(spark, UTC):
        index(moments())
        lender, asker = spark.newSession(), spark.newSession()
    lender.conf.set(ZONE, "America/Los_Angeles")
    asker.conf.set(ZONE, zone)
    if by_sql:
        lender.sql(f"CREATE TABLE IF NOT EXISTS lent (ts TIMESTAMP) USING csv LOCATION '{tmp_path}/moments'")
        lender.sql("CREATE OR REPLACE GLOBAL TEMPORARY VIEW lent_moments AS SELECT * FROM lent")
    else:
        moments(lender).createOrReplaceGlobalTempView("lent_moments")
    try:
        wanted = [*WANTED, *(f"ts = TIMESTAMP'{day} America/Los_Angeles'" for day in DAYS)]
        for predicate in wanted:
            query = f"SELECT CAST(ts AS DOUBLE) FROM global_temp.lent_moments WHERE {predicate}"
            same_steps(asker, lambda q=query: asker.sql(q).collect(), lender)
    finally:
        lender.catalog.dropGlobalTempView("lent_moments")
        lender.sql("DROP TABLE IF EXISTS lent")


def test_view_of_another_session_with_the_same_settings_skips(spark, moments):
    lender, asker = spark.newSession(), spark.newSession()
    for session in (spark, lender, asker):
        session.conf.set(ZONE, "UTC")
    try:
        index(moments())
        moments(lender).createOrReplaceGlobalTempView("lent_moments")
        for predicate in WANTED:
            query = f"SELECT * FROM global_temp.lent_moments WHERE {predicate}"
            assert same_steps(asker, lambda q=query: asker.sql(q).collect())
    finally:
        lender.catalog.dropGlobalTempView("lent_moments")
        spark.conf.unset(ZONE)


# --- Hadoop's settings ------------------------------------------------------------------------------------------------

_LINES = ("short\n", "a line of some length\n", "tiny\n")
_LONG = "value = 'a line of some length'"


def _lines(spark, tmp_path):
    text(tmp_path / "lines", ".txt", *_LINES)
    return lambda: spark.read.text(f"{tmp_path}/lines")


@pytest.mark.parametrize("place", ["session", "context"])
def test_lines_indexed_while_hadoop_cuts_long_ones(spark, tmp_path, place):
    read = _lines(spark, tmp_path)
    with conf(spark, {LINE_LENGTH: "10"}) if place == "session" else hadoop(spark, {LINE_LENGTH: "10"}):
        Dataset(read()).create_indexes(MinMaxIndex("value"), ValueListIndex("value"))
    for predicate in (_LONG, "value = 'short'", "length(value) > 6", "value LIKE 'a line%'"):
        same_rows(spark, lambda p=predicate: read().where(p))


@pytest.mark.parametrize("place", ["session", "context"])
def test_lines_asked_for_while_hadoop_cuts_long_ones(spark, tmp_path, place):
    read = _lines(spark, tmp_path)
    Dataset(read()).create_indexes(MinMaxIndex("value"), ValueListIndex("value"))
    assert same_rows(spark, lambda: read().where(_LONG))
    with conf(spark, {LINE_LENGTH: "10"}) if place == "session" else hadoop(spark, {LINE_LENGTH: "10"}):
        for predicate in (_LONG, "value = 'short'"):
            same_rows(spark, lambda p=predicate: read().where(p))


def test_lines_indexed_and_asked_for_with_the_same_settings_of_hadoops(spark, tmp_path):
    read = _lines(spark, tmp_path)
    with hadoop(spark, {LINE_LENGTH: "1000"}):
        Dataset(read()).create_indexes(MinMaxIndex("value"), ValueListIndex("value"))
        assert same_rows(spark, lambda: read().where(_LONG)) == 2
