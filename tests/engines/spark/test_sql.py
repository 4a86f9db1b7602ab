"""Indexes in SQL: every statement on tables and paths, skipping by what they made, and bad input."""

from __future__ import annotations

import json
import re
import shutil
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException

from skipstone import Dataset, MinMaxIndex
from skipstone.indexing.describe import DESCRIBE_SCHEMA
from tests.support import assert_same_rows, conf

ROOT = Path(__file__).parents[3]
REGIONS = ("north", "south")
OBJECTS = 8


@dataclass(frozen=True)
class RoundedIndex(MinMaxIndex):
    """A plug-in's type: what MinMax keeps, with options of its own."""

    digits: int = field(default=0, kw_only=True)
    strict: bool = field(default=False, kw_only=True)


@pytest.fixture(scope="module")
def written(spark, tmp_path_factory):
    """Write eight objects of ten rows, four in each of two regions; nothing in them repeats."""
    folder = tmp_path_factory.mktemp("sql") / "logs"
    rows = spark.range(0, 80, 1, 2).selectExpr(
        "CAST(id AS INT) AS id",
        "timestamp_seconds(1767225600 + id * 3600) AS ts",
        "concat('db_', id div 10) AS db_name",
        "md5(string(id)) AS account",
        "IF(id div 10 = 3, 'ERROR', 'INFO') AS level",
        "CAST(id AS DOUBLE) AS seconds",
        "CAST(id AS DOUBLE) AS lat",
        "CAST(-id AS DOUBLE) AS lng",
        "concat('POINT(', id, ' ', id, ')') AS shape",
        "array(CAST(id AS DOUBLE), 0D) AS vec",
        "named_struct('x', CAST(id AS INT)) AS s",
        "CAST(id AS INT) AS `odd name`",
        "IF(id < 40, 'north', 'south') AS region",
    )
    rows.write.partitionBy("region").option("maxRecordsPerFile", 10).parquet(str(folder))
    return folder


@pytest.fixture
def folder(written, tmp_path):
    return shutil.copytree(written, tmp_path / "logs")  # with their times: nothing was modified just now


def create_table(spark, name, folder):
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.catalog.createTable(name, path=str(folder), source="parquet")
    spark.sql(f"MSCK REPAIR TABLE {name}")


@pytest.fixture
def logs(spark, folder):
    """A table of the catalog over the objects, partitioned."""
    create_table(spark, "logs", folder)
    yield "logs"
    spark.sql("DROP TABLE IF EXISTS logs")


@pytest.fixture(scope="module")
def untouched(spark, written):
    """A table for statements that are refused, and a view beside it."""
    create_table(spark, "untouched", written)
    spark.range(3).createOrReplaceTempView("a_view")
    yield written
    spark.sql("DROP TABLE untouched")


def shown(spark, table="logs"):
    return {row.name: row for row in spark.sql(f"SHOW INDEXES ON {table}").collect()}


def refusal(spark, statement, **arguments):
    """Run a statement that is refused; give its condition and what is said."""
    with pytest.raises(AnalysisException) as caught:
        spark.sql(statement, **arguments).collect()
    assert caught.value.getCondition(), caught.value
    assert caught.value.getSqlState(), caught.value
    return caught.value.getCondition(), str(caught.value)


def manifests(folder):
    found = Path(folder) / "_skipstone" / "_manifests"
    return list(found.iterdir()) if found.exists() else []


# --- the statements --------------------------------------------------------------------------------------------------


def test_a_table_from_the_first_statement_to_the_last(spark, logs):
    (report,) = spark.sql("CREATE INDEX ids ON logs USING minmax (id)").collect()
    assert (report.indexes, report.objects, report.indexed, report.rows) == (["ids"], OBJECTS, OBJECTS, 80)
    assert assert_same_rows(spark, spark.sql("SELECT * FROM logs WHERE id = 5")) == OBJECTS - 1

    frame = spark.sql("-- what is there?\nSHOW INDEXES FROM default.logs /* all */")
    assert frame.schema.simpleString() == spark.createDataFrame([], DESCRIBE_SCHEMA).schema.simpleString()
    (row,) = frame.collect()
    assert (row.name, row.type, row.columns, row.covered, row.missing) == ("ids", "minmax", ["id"], OBJECTS, 0)
    assert [*row][:8] == [*Dataset.for_table(spark, "logs").describe().first()][:8]

    (again,) = spark.sql("refresh indexes on logs").collect()
    assert (again.indexed, again.removed, again.version) == (0, 0, report.version)

    lines = [line.plan for line in spark.sql("EXPLAIN SKIPPING SELECT * FROM logs WHERE id = 5").collect()]
    assert lines[0].endswith("logs (parquet)")
    assert "reads 1 of 8 objects; skips 7 (87.5%)" in lines[1]
    assert "  clause: ids[id = 5]" in lines

    assert spark.sql("DROP INDEX ids ON logs").collect() == []
    assert shown(spark) == {}
    assert assert_same_rows(spark, spark.sql("SELECT * FROM logs WHERE id = 5")) == 0


def test_a_path(spark, folder):
    place = f"parquet.`{folder}`"
    spark.sql(f"CREATE INDEX ids ON {place} USING minmax (id, seconds)")
    assert set(shown(spark, place)) == {"ids.minmax(id)", "ids.minmax(seconds)"}
    assert assert_same_rows(spark, spark.sql(f"SELECT * FROM {place} WHERE seconds > 71")) == OBJECTS - 1
    (row,) = spark.sql(f"REFRESH INDEX ON {place} PARTITION (region = 'north')").collect()
    assert row.objects == OBJECTS / 2
    (row,) = spark.sql(f"REFRESH INDEX ON {place} PATH '{folder}/region=south', '{folder}/region=north'").collect()
    assert row.objects == OBJECTS
    spark.sql(f"DROP INDEX ids ON TABLE {place}")
    assert shown(spark, place) == {}


def test_other_formats_are_read_by_their_name(spark, tmp_path):
    spark.range(0, 20, 1, 4).selectExpr("CAST(id AS STRING) AS word").write.csv(str(tmp_path / "words"))
    place = f"csv.`{tmp_path / 'words'}`"
    spark.sql(f"CREATE INDEX w ON {place} USING valuelist (_c0)")
    assert assert_same_rows(spark, spark.sql(f"SELECT * FROM {place} WHERE _c0 = '7'")) == 3


def test_new_objects_of_a_partition_are_refreshed(spark, logs, folder):
    spark.sql("CREATE INDEX ids ON logs USING minmax (id)")
    for region in REGIONS:
        spark.sql(f"INSERT INTO logs SELECT * EXCEPT (region), '{region}' FROM logs WHERE id = 5 LIMIT 1")
    (row,) = spark.sql("REFRESH INDEXES ON logs PARTITION (REGION = 'south')").collect()
    assert (row.objects, row.indexed) == (OBJECTS / 2 + 1, 1)
    assert shown(spark)["ids"].missing == 1
    spark.sql("REFRESH INDEXES ON logs")
    assert shown(spark)["ids"].missing == 0


def test_columns_are_written_as_in_spark(spark, logs):
    spark.sql("CREATE INDEX `my index` ON `logs` USING minmax (`odd name`, S.X, ID)")
    assert set(shown(spark)) == {f"my index.minmax({c})" for c in ("`odd name`", "s.x", "id")}
    assert assert_same_rows(spark, spark.table("logs").where("`odd name` = 3 OR s.x = 77")) == OBJECTS - 2
    spark.sql("DROP INDEX `my index.minmax(s.x)` ON logs")
    assert len(shown(spark)) == 2
    spark.sql("DROP INDEX `MY INDEX` ON logs")
    assert shown(spark) == {}


def test_names_made_in_python_are_dropped_in_sql_and_the_other_way_round(spark, logs):
    handle = Dataset.for_table(spark, "logs")
    handle.create_indexes(MinMaxIndex("id"), MinMaxIndex("seconds"))
    spark.sql("DROP INDEX `minmax(id)` ON logs")
    assert set(shown(spark)) == {"minmax(seconds)"}
    spark.sql("CREATE INDEX ids ON logs USING minmax (id OPTIONS (name = 'minmax(id)'), lat)")
    assert set(shown(spark)) == {"minmax(seconds)", "minmax(id)", "ids.minmax(lat)"}
    handle.drop_indexes("ids.minmax(lat)")
    spark.sql("DROP INDEX `*` ON logs")
    assert not handle.is_indexed


def test_if_exists_and_if_not_exists(spark, logs):
    spark.sql("CREATE INDEX IF NOT EXISTS a ON logs USING minmax (id, lat)")
    assert spark.sql("CREATE INDEX IF NOT EXISTS a ON logs USING minmax (seconds)").collect() == []
    assert spark.sql("CREATE INDEX IF NOT EXISTS A ON logs USING minmax (seconds)").collect() == []
    condition, said = refusal(spark, "CREATE INDEX a ON logs USING minmax (seconds)")
    assert condition == "INDEX_ALREADY_EXISTS"
    assert "a.minmax(id)" in said
    spark.sql("DROP INDEX IF EXISTS b ON logs")
    condition, said = refusal(spark, "DROP INDEX b ON logs")
    assert condition == "INDEX_NOT_FOUND"
    assert "it has: a.minmax(id), a.minmax(lat)" in said
    assert len(shown(spark)) == 2


EVERY_TYPE = """
    CREATE INDEX every ON logs USING skipstone (
      id OPTIONS (type = 'minmax'),
      db_name OPTIONS (type = 'ValueList'),
      account OPTIONS (type = 'bloomfilter', FPP = 0.001),
      level OPTIONS (type = 'hybrid', threshold = 3),
      db_name OPTIONS (type = 'hybrid', threshold = 'auto'),
      ts OPTIONS (type = 'gaplist', gaps = 4),
      id OPTIONS (type = 'gaplist', workload = '[[10, 20], [50, null, 2.5]]'),
      account OPTIONS (type = 'prefix', length = 3),
      account OPTIONS (type = 'suffix', length = 3),
      lat OPTIONS (type = 'geobox', boxes = 2), lng OPTIONS (type = 'geobox'),
      shape OPTIONS (type = 'geobox'),
      vec OPTIONS (type = 'metricdistance'),
      db_name OPTIONS (type = 'metricdistance', metric = 'levenshtein', origins = '["db_0", "db_7"]'),
      db_name OPTIONS (type = 'formatted', extract = 'last_letter'),
      errors OPTIONS (type = 'feature', predicate = "level = 'ERROR'"),
      few OPTIONS (type = 'feature', predicate = 'id < 10'),
      seconds OPTIONS (type = 'rounded', digits = 2, strict = true))
    """


@pytest.mark.long
def test_every_index_type_in_one_statement(spark, logs):
    spark.udf.register("last_letter", lambda text: text[-1], "string")
    (report,) = spark.sql(EVERY_TYPE).collect()
    assert report.version == 1
    found = shown(spark)
    assert len(found) == 16
    assert {row.type for row in found.values()} == {
        *("minmax", "valuelist", "bloomfilter", "hybrid", "gaplist", "prefix", "suffix", "geobox", "metricdistance"),
        *("formatted", "feature", "rounded"),
    }
    options = {row.name.removeprefix("every."): json.loads(row.options) for row in found.values()}
    assert options["bloomfilter(account, fpp=0.001)"]["fpp"] == 0.001
    assert options["hybrid(db_name, threshold='auto')"]["threshold"] == "auto"
    assert options["hybrid(level, threshold=3)"]["threshold"] == 3
    assert options["geobox(lat, lng, boxes=2)"]["boxes"] == 2
    assert options["geobox(shape)"]["geometry"] == "shape"
    assert options["rounded(seconds, digits=2, strict=True)"] == {"digits": 2, "strict": True}
    assert options["feature(errors, few)"]["features"] == [["errors", "level = 'ERROR'"], ["few", "id < 10"]]
    for predicate in (
        "id = 5",
        "db_name LIKE '%3'",
        "account = md5('41')",
        "ts < '2026-01-01 03:00:00'",
        "lat BETWEEN 11 AND 12 AND lng BETWEEN -12 AND -11",
        "levenshtein(db_name, 'db_7') = 0",
        "last_letter(db_name) = '2'",
        "level = 'ERROR'",
    ):
        assert assert_same_rows(spark, spark.table("logs").where(predicate)) >= 4, predicate


def test_options_of_the_whole_statement(spark, logs):
    columns = "account, db_name OPTIONS (fpp = 0.5), id OPTIONS (type = 'minmax')"
    spark.sql(f"CREATE INDEX b ON logs USING bloomfilter ({columns}) OPTIONS (fpp = 0.1)")
    assert set(shown(spark)) == {"b.bloomfilter(account, fpp=0.1)", "b.bloomfilter(db_name, fpp=0.5)", "b.minmax(id)"}


def test_every_fitting_column(spark, logs):
    spark.sql("CREATE INDEX every ON logs USING prefix (`*`) OPTIONS (length = 2)")
    assert {row.columns[0] for row in shown(spark).values()} == {"db_name", "account", "level", "shape", "region"}


def test_explain_tells_every_scan_of_the_query(spark, logs, folder):
    spark.sql("CREATE INDEX ids ON logs USING minmax (id)")
    query = f"SELECT * FROM logs a JOIN parquet.`{folder}` b USING (id) WHERE a.id = 5"
    told = "\n".join(
        row.plan for row in spark.sql(f"EXPLAIN SKIPPING WITH q AS ({query}) SELECT count(*) FROM q").collect()
    )
    assert "Scan 1 of 2" in told
    assert told.count("reads 1 of 8 objects") == 2
    (line,) = spark.sql("EXPLAIN SKIPPING SELECT 1").collect()
    assert "no file scan" in line.plan
    with conf(spark, {"spark.skipstone.enabled": "false"}):
        (line,) = spark.sql("EXPLAIN SKIPPING SELECT * FROM logs").collect()
        assert "spark.skipstone.enabled" in line.plan


def test_parameters_variables_scripts_and_execute_immediate(spark, logs):
    spark.sql("CREATE INDEX ids ON IDENTIFIER(:t) USING minmax (id)", args={"t": "logs"})
    assert spark.sql("SHOW INDEXES IN IDENTIFIER(:t)", args={"t": "logs"}).first().name == "ids"
    named = spark.sql("EXPLAIN SKIPPING SELECT * FROM logs WHERE id = :x", args={"x": 5}).collect()
    assert "reads 1 of 8" in named[1].plan
    placed = spark.sql("EXPLAIN SKIPPING SELECT * FROM logs WHERE id IN (?, ?)", args=[5, 77]).collect()
    assert "reads 2 of 8" in placed[1].plan
    with conf(spark, {"the.table": "logs"}):
        assert spark.sql("SHOW INDEXES ON ${the.table}").first().name == "ids"
    assert spark.sql("EXECUTE IMMEDIATE 'SHOW INDEXES ON logs'").first().name == "ids"
    spark.sql("EXECUTE IMMEDIATE 'CREATE INDEX f ON logs USING feature (few OPTIONS (predicate = ''id < 10''))'")
    spark.sql(
        """BEGIN
             DECLARE wanted INT DEFAULT 1;
             IF wanted = 1 THEN
               DROP INDEX f ON logs; -- SHOW INDEXES ON nothing;
               REFRESH INDEXES ON logs PARTITION (region = 'north');
               CREATE INDEX made ON logs USING minmax (seconds);
             END IF;
             SHOW INDEXES ON logs;
             EXPLAIN SKIPPING SELECT * FROM logs WHERE id = wanted;
           END"""
    )
    assert set(shown(spark)) == {"ids", "made"}
    assert refusal(spark, "BEGIN SHOW INDEXES ON no_such_table; END")[0] == "TABLE_OR_VIEW_NOT_FOUND"


def test_a_statement_is_carried_out_by_the_session_that_asks(spark, logs, tmp_path):
    other = spark.newSession()
    (tmp_path / "elsewhere").mkdir()
    other.sql(f"SET spark.skipstone.location = {tmp_path / 'elsewhere'}")
    other.udf.register("only_here", lambda text: text[-1], "string")
    other.sql("CREATE INDEX mine ON logs USING formatted (db_name) OPTIONS (extract = 'only_here')")
    assert set(shown(other)) == {"mine"}
    assert shown(spark) == {}
    assert assert_same_rows(other, other.sql("SELECT * FROM logs WHERE only_here(db_name) = '2'")) == OBJECTS - 1


# --- cancelling ------------------------------------------------------------------------------------------------------


@pytest.mark.long  # the workers of a cancelled job are waited for
@pytest.mark.parametrize("way", ["job group", "tag"])
def test_cancelling_commits_nothing(spark, logs, folder, way):
    """The statement's jobs run on its own thread: what cancels these ends it, and no version is written."""
    spark.udf.register("slowly", lambda text: time.sleep(15) or text, "string")
    raised = []

    def create():
        if way == "tag":
            spark.addTag("to-be-cancelled")
        else:
            spark.sparkContext.setJobGroup("to-be-cancelled", "a slow index", interruptOnCancel=True)
        try:
            spark.sql("CREATE INDEX slow ON logs USING formatted (db_name) OPTIONS (extract = 'slowly')")
        except AnalysisException as error:
            raised.append(error)
        finally:
            spark.clearTags()

    tracker = spark.sparkContext.statusTracker()
    thread = threading.Thread(target=create)
    thread.start()
    deadline = time.monotonic() + 240
    while not any(s.numActiveTasks for s in map(tracker.getStageInfo, tracker.getActiveStageIds()) if s):
        assert time.monotonic() < deadline, "the job did not start"
        time.sleep(0.05)
    while thread.is_alive() and time.monotonic() < deadline + 60:  # small jobs come before the long one
        if way == "tag":
            spark.interruptTag("to-be-cancelled")
        else:
            spark.sparkContext.cancelJobGroup("to-be-cancelled")
        thread.join(0.5)
    assert not thread.is_alive()
    assert [error.getCondition() for error in raised] == ["OPERATION_CANCELED"], raised
    assert manifests(folder) == []
    assert shown(spark) == {}


def test_a_statement_that_is_interrupted_between_its_jobs_commits_nothing(spark, logs, folder, monkeypatch):
    from skipstone.engines.spark.client import Client

    monkeypatch.setattr(Client, "interrupted", lambda self: True)
    assert refusal(spark, "CREATE INDEX ids ON logs USING minmax (id)")[0] == "OPERATION_CANCELED"
    assert manifests(folder) == []


def test_the_thread_of_the_statement_is_the_one_that_is_asked(spark):
    from skipstone.engines.spark.client import Client

    thread = spark._jvm.java.lang.Thread
    assert not Client(spark).interrupted()
    thread.currentThread().interrupt()
    try:
        assert Client(spark).interrupted()
    finally:
        thread.interrupted()


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "condition", "words"),
    [
        ("CREATE INDEX a ON logs USING minmaxx (id)", "SKIPSTONE_UNKNOWN_INDEX_TYPE", "did you mean minmax?"),
        ("CREATE INDEX a ON logs USING zebra (id)", "SKIPSTONE_UNKNOWN_INDEX_TYPE", "there are .*bloomfilter, "),
        ("CREATE INDEX a ON logs (id)", "SKIPSTONE_UNKNOWN_INDEX_TYPE", "Id has no index type: write USING type"),
        ("CREATE INDEX a ON logs USING minmax (idd)", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "did you mean id"),
        ("CREATE INDEX a ON logs USING minmax (s.y)", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", "s.y"),
        ("CREATE INDEX a ON logs USING minmax (vec)", "SKIPSTONE_UNSUPPORTED_TYPE", "vec is array<double>"),
        ("CREATE INDEX a ON logs USING prefix (id) OPTIONS (length = 2)", "SKIPSTONE_UNSUPPORTED_TYPE", "id is int"),
        ("CREATE INDEX a ON logs USING prefix (account)", "SKIPSTONE_INVALID_OPTION", "needs the option length"),
        (
            "CREATE INDEX a ON logs USING bloomfilter (id OPTIONS (fpq = 0.1))",
            "SKIPSTONE_INVALID_OPTION",
            "has no option 'fpq', it has fpp, key, name, of, type",
        ),
        (
            "CREATE INDEX a ON logs USING minmax (id) OPTIONS (fpp = 0.1)",
            "SKIPSTONE_INVALID_OPTION",
            r"no index of this statement \(minmax\) has an option 'fpp'; there are key, type",
        ),
        (
            "CREATE INDEX a ON logs USING bloomfilter (id OPTIONS (fpp = 'many'))",
            "SKIPSTONE_INVALID_OPTION",
            "fpp of a bloomfilter index is 'many', allowed is a number",
        ),
        ("CREATE INDEX a ON logs USING bloomfilter (id OPTIONS (fpp = 7))", "SKIPSTONE_INVALID_OPTION", "fpp"),
        ("CREATE INDEX a ON logs USING rounded (id OPTIONS (strict = 7))", "SKIPSTONE_INVALID_OPTION", "true or false"),
        (
            "CREATE INDEX a ON logs USING metricdistance (vec OPTIONS (origins = 'here'))",
            "SKIPSTONE_INVALID_OPTION",
            "a list in JSON",
        ),
        ("CREATE INDEX a ON logs USING geobox (lat, lng, id, seconds, s)", "SKIPSTONE_UNSUPPORTED_TYPE", "s is struct"),
        (
            "CREATE INDEX a ON logs USING feature (few)",
            "SKIPSTONE_INVALID_OPTION",
            "has no predicate: write few OPTIONS",
        ),
        (
            "CREATE INDEX a ON logs USING feature (x OPTIONS (predicate = 'id <'))",
            "SKIPSTONE_INDEXING_FAILED",
            "feature x",
        ),
        (
            "CREATE INDEX a ON logs USING formatted (db_name) OPTIONS (extract = 'no_such')",
            "SKIPSTONE_INDEXING_FAILED",
            "no_such",
        ),
        ("CREATE INDEX a ON logs USING minmax (id, ID)", "INDEX_ALREADY_EXISTS", "twice"),
        ("CREATE INDEX a ON logs USING minmax (id OPTIONS (key = 'k'))", "SKIPSTONE_METADATA_STORE", "no key 'k'"),
        ("CREATE INDEX a ON no_such_table USING minmax (id)", "TABLE_OR_VIEW_NOT_FOUND", "no_such_table"),
        ("CREATE INDEX a ON parquet.`/no/where` USING minmax (id)", "SKIPSTONE_NOT_A_DATASET", "/no/where"),
        ("CREATE INDEX a ON jdbc.`/no/where` USING minmax (id)", "TABLE_OR_VIEW_NOT_FOUND", "/no/where"),
        ("CREATE INDEX a ON a_view USING minmax (id)", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "is a view"),
        ("SHOW INDEXES ON a_view", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "'SHOW INDEXES' expects a table"),
        ("REFRESH INDEXES ON a_view", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE", "'REFRESH INDEXES' expects a table"),
        ("REFRESH INDEXES ON logs", "INDEX_NOT_FOUND", "no index to refresh"),
        ("REFRESH INDEXES ON logs PARTITION (zone = 'north')", "PARTITIONS_NOT_FOUND", "not partitioned by zone"),
        ("REFRESH INDEXES ON logs PARTITION (region = 'west')", "PARTITIONS_NOT_FOUND", "no partition"),
        ("REFRESH INDEXES ON logs PARTITION (region)", "PARSE_SYNTAX_ERROR", "REFRESH INDEXES takes a table"),
        ("REFRESH INDEXES ON logs PATH", "PARSE_SYNTAX_ERROR", "REFRESH INDEXES takes a table"),
        ("REFRESH INDEXES ON logs PATH here", "PARSE_SYNTAX_ERROR", "REFRESH INDEXES takes a table"),
        ("SHOW INDEXES ON", "PARSE_SYNTAX_ERROR", "SHOW INDEXES ON needs a table"),
        ("SHOW INDEXES ON a b", "PARSE_SYNTAX_ERROR", "extra input 'b'"),
        ("EXPLAIN SKIPPING", "PARSE_SYNTAX_ERROR", "EXPLAIN SKIPPING needs a query"),
        ("EXPLAIN SKIPPING SELEC 1", "PARSE_SYNTAX_ERROR", "at or near 'SELEC'"),
        ("EXPLAIN SKIPPING SELECT nothing FROM logs", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nothing"),
        ("DROP INDEX a ON logs", "INDEX_NOT_FOUND", "has no index named a; it has: none"),
    ],
)
def test_bad_input_has_a_condition_and_a_sentence(spark, untouched, statement, condition, words):
    found, said = refusal(spark, re.sub(r"\blogs\b", "untouched", statement))
    assert found == condition, said
    assert re.search(words, said, re.IGNORECASE), said
    assert manifests(untouched) == []


def test_a_view_by_the_name_of_a_table_does_not_stand_in_for_it(spark, logs):
    spark.range(3).createOrReplaceTempView("logs")
    try:
        assert refusal(spark, "CREATE INDEX a ON logs USING minmax (id)")[0].startswith("EXPECT_TABLE_NOT_VIEW")
        (report,) = spark.sql("CREATE INDEX a ON default.logs USING minmax (seconds)").collect()
        assert report.rows == 80
        assert set(shown(spark, "spark_catalog.default.logs")) == {"a"}
    finally:
        spark.catalog.dropTempView("logs")


def test_a_table_without_files(spark):
    spark.sql("DROP TABLE IF EXISTS empty")
    spark.sql("CREATE TABLE empty (id INT) USING parquet")
    try:
        assert shown(spark, "empty") == {}
        condition, said = refusal(spark, "CREATE INDEX a ON empty USING minmax (id)")
        assert condition == "SKIPSTONE_NOT_A_DATASET"
        assert "no objects to index" in said
    finally:
        spark.sql("DROP TABLE empty")


def test_no_permission_to_write(spark, untouched):
    with conf(spark, {"spark.skipstone.location": "/proc/nowhere"}):
        condition, said = refusal(spark, "CREATE INDEX a ON untouched USING minmax (id)")
    assert condition == "SKIPSTONE_METADATA_STORE"
    assert "/proc/nowhere" in said


def test_switched_off(spark, untouched):
    with conf(spark, {"spark.skipstone.sql.enabled": "false"}):
        for statement in (
            "CREATE INDEX a ON untouched USING minmax (id)",
            "DROP INDEX IF EXISTS a ON untouched",
            "SHOW INDEXES ON untouched",
            "REFRESH INDEXES ON untouched",
            "EXPLAIN SKIPPING SELECT * FROM untouched",
        ):
            condition, said = refusal(spark, statement)
            assert condition == "SKIPSTONE_SQL_DISABLED"
            assert "spark.skipstone.sql.enabled" in said
    assert manifests(untouched) == []


def test_nothing_plans_here(spark, untouched):
    bridge = spark._jvm.org.apache.spark.sql.skipstone.Bridge
    planner = bridge.registered()
    bridge.register(None)
    try:
        assert refusal(spark, "SHOW INDEXES ON untouched")[0] == "SKIPSTONE_NO_PLANNER"
    finally:
        bridge.register(planner)


def test_a_plug_in_is_not_loaded_because_a_session_says_so(spark, untouched, tmp_path, monkeypatch):
    (tmp_path / "hostile_plugin.py").write_text(f"open({str(tmp_path / 'was here')!r}, 'w')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with conf(spark, {"spark.skipstone.plugins": "hostile_plugin"}):
        assert shown(spark, "untouched") == {}
    assert not (tmp_path / "was here").exists()


# --- what only looks like ours ---------------------------------------------------------------------------------------


def test_what_only_looks_like_ours_is_spark_s(spark):
    spark.sql("DROP TABLE IF EXISTS indexes")
    spark.sql("CREATE TABLE indexes USING parquet AS SELECT 1 AS skipping, 2 AS index")
    try:
        assert spark.sql("SELECT skipping, index FROM indexes WHERE skipping = 1").first() == (1, 2)
        assert (
            spark.sql("SELECT 'SHOW INDEXES ON logs' AS s, \"EXPLAIN SKIPPING\" AS t").first().s
            == "SHOW INDEXES ON logs"
        )
        assert "Physical Plan" in spark.sql("EXPLAIN SELECT skipping FROM indexes").first().plan
        assert shown(spark, "indexes") == {}
        spark.sql("REFRESH TABLE indexes")
        assert {row.tableName for row in spark.sql("SHOW TABLES LIKE 'indexes'").collect()} == {"indexes"}
    finally:
        spark.sql("DROP TABLE indexes")


@pytest.mark.parametrize(
    "statement",
    [
        "SELEC 1",
        "SHOW INDEXES",
        "SHOW INDEX ON logs",
        "REFRESH INDEX logs",
        "SELECT 1 SHOW INDEXES ON logs",
        "REFRESH INDEXES",
        "DESCRIBE anything AS JSON",  # an error that is not of syntax
    ],
)
def test_what_spark_refuses_is_refused_in_spark_s_words(spark, statement):
    parser = spark._jsparkSession.sessionState().sqlParser()
    plain = spark._jvm.org.apache.spark.sql.execution.SparkSqlParser()

    def said(by):
        try:
            return str(by.parsePlan(statement).getClass())
        except ParseException as error:
            return str(error)

    assert said(parser) == said(plain)


def test_tables_with_indexes_of_their_own_keep_them(spark):
    settings = {
        "spark.sql.catalog.derby": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        "spark.sql.catalog.derby.url": "jdbc:derby:memory:skipstone;create=true",
        "spark.sql.catalog.derby.driver": "org.apache.derby.jdbc.EmbeddedDriver",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    spark.sql("CREATE TABLE derby.APP.people (id INT)")
    for statement in (
        "CREATE INDEX a ON derby.APP.people USING minmax (id)",
        "CREATE INDEX a ON derby.APP.people USING minmax (nobody)",
        "DROP INDEX a ON derby.APP.people",
    ):
        with pytest.raises((PySparkException, Py4JJavaError)) as caught:
            spark.sql(statement)
        assert "SKIPSTONE" not in str(caught.value)
        assert "index" in str(caught.value).lower() or "nobody" in str(caught.value)
    condition, said = refusal(spark, "SHOW INDEXES ON derby.APP.people")
    assert condition == "SKIPSTONE_NOT_A_DATASET"
    assert "not a table of plain files" in said


# --- the page --------------------------------------------------------------------------------------------------------


def test_every_statement_of_the_page_runs(spark, logs, folder):
    page = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    statements = [s.strip() for block in blocks for s in re.split(r";\n(?!  |END)", block) if s.strip()]
    assert len(statements) >= 20
    for statement in statements:
        spark.sql(statement.replace("/lake/logs", str(folder))).collect()
    assert set(shown(spark)) == {"again"}


def test_every_condition_of_the_page_is_one_of_the_code(spark):
    page = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
    from skipstone.engines.spark.sql import _CONDITIONS, _UNFORESEEN

    named = set(re.findall(r"`(SKIPSTONE_\w+)`", page))
    scala = "".join(p.read_text() for p in (ROOT / "src/skipstone/engines/spark/bridge").glob("*.scala"))
    raised = {c for _, c, _ in _CONDITIONS if c.startswith("SKIPSTONE")} | set(
        re.findall(r'Exception\(\s*"(SKIPSTONE_\w+)"', scala)
    )
    assert named == raised - {"SKIPSTONE_ERROR", _UNFORESEEN[0]}
