"""Arrow, from rows or from columns, Catalyst's aggregates and footers are ways to the same metadata."""

from __future__ import annotations

import base64
import datetime as dt
import struct
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skipstone.engines.spark.aggregates import aggregates_of, collect_with_aggregates
from skipstone.engines.spark.arrow_job import collect_with_arrow
from skipstone.engines.spark.footer_values import column_bounds
from skipstone.engines.spark.footers import collect_from_footers, footer_roles
from skipstone.engines.spark.source import SparkSource
from skipstone.indexes.feature.index import FeatureIndex
from skipstone.indexes.minmax import MinMaxIndex
from skipstone.indexes.value_list import ValueListIndex
from tests.indexing.helpers import bind, rows_of, source_and_objects
from tests.support import conf

TYPES = {
    "b": "BOOLEAN",
    "i8": "TINYINT",
    "i16": "SMALLINT",
    "i32": "INT",
    "i64": "BIGINT",
    "d9": "DECIMAL(9,2)",
    "d18": "DECIMAL(18,0)",
    "d38": "DECIMAL(38,10)",
    "s": "STRING",
    "x": "BINARY",
    "d": "DATE",
    "t": "TIMESTAMP",
    "n": "TIMESTAMP_NTZ",
    "f": "FLOAT",
    "g": "DOUBLE",
}
ONLY_READ = {"ym": "INTERVAL YEAR TO MONTH", "ds": "INTERVAL DAY TO SECOND"}

moments = st.datetimes(dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29))  # noqa: DTZ001  (any zone)
VALUES = {
    "b": st.booleans(),
    "i8": st.integers(-(2**7), 2**7 - 1),
    "i16": st.integers(-(2**15), 2**15 - 1),
    "i32": st.integers(-(2**31), 2**31 - 1),
    "i64": st.integers(-(2**63), 2**63 - 1),
    "d9": st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    "d18": st.integers(-(10**18) + 1, 10**18 - 1).map(Decimal),
    "d38": st.integers(-(10**28), 10**28).map(lambda n: Decimal(n) / 4),
    "s": st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.just("\U0010ffff" * 20),
    "x": st.binary(max_size=80),
    "d": st.dates(),
    "t": moments.map(lambda m: m.replace(tzinfo=dt.UTC)),
    "n": moments,
    "f": st.floats(width=32),
    "g": st.floats() | st.sampled_from([0.0, -0.0]),
    "ym": st.integers(-100_000, 100_000),
    "ds": st.timedeltas(),
}


def rows(columns):
    return st.lists(st.tuples(*(st.none() | VALUES[c] for c in columns)), max_size=4)


def written(spark, folder, columns, objects):
    """Write each list of rows as one object; year-month intervals are made from months."""
    ddl = ", ".join(f"{c} {'INT' if c == 'ym' else {**TYPES, **ONLY_READ}[c]}" for c in columns)
    selected = ["make_ym_interval(0, ym) AS ym" if c == "ym" else c for c in columns]
    for number, content in enumerate(objects):
        frame = spark.createDataFrame(content, ddl).coalesce(1).selectExpr(*selected)
        with conf(spark, {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}):  # INT96 has no bounds
            frame.write.mode("append" if number else "overwrite").parquet(str(folder))
    return spark.read.parquet(str(folder))


@pytest.mark.slow
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_footers_and_aggregates_equal_arrow(spark, tmp_path, data):
    columns = list(TYPES)
    objects = data.draw(st.lists(rows(columns), min_size=1, max_size=3))
    df = written(spark, tmp_path / "d", columns, objects)
    bound = bind(df, *map(MinMaxIndex, columns))
    source, listed = source_and_objects(df)
    by_arrow = rows_of(collect_with_arrow(source, listed, bound))
    assert rows_of(collect_with_aggregates(source, listed, bound, aggregates_of(bound))) == by_arrow
    by_footers = rows_of(collect_from_footers(source, listed, bound))
    assert by_footers == by_arrow  # every object: none of these footers is doubtful


@pytest.mark.slow
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_aggregates_equal_arrow_where_footers_prove_nothing(spark, tmp_path, data):
    columns = list(ONLY_READ)
    objects = data.draw(st.lists(rows(columns), min_size=1, max_size=3))
    df = written(spark, tmp_path / "d", columns, objects)
    bound = bind(df, *map(MinMaxIndex, columns))
    source, listed = source_and_objects(df)
    by_arrow = rows_of(collect_with_arrow(source, listed, bound))
    assert rows_of(collect_with_aggregates(source, listed, bound, aggregates_of(bound))) == by_arrow
    assert all(footer_roles(b) is None for b in bound)
    assert collect_from_footers(source, listed, bound) is None


def footers_serve(spark, df, *columns):
    """Return how many objects' footers suffice, after checking them against what reading gives."""
    bound = bind(df, *map(MinMaxIndex, columns))
    source, listed = source_and_objects(df)
    found = collect_from_footers(source, listed, bound)
    if found is None:
        return None
    by_reading = {row["object"]: row for row in rows_of(collect_with_arrow(source, listed, bound))}
    for row in rows_of(found):
        assert row == by_reading[row["object"]]
    return found.num_rows


def test_row_groups_nested_fields_and_other_writers(spark, tmp_path):
    table = pa.table(
        {
            "n": pa.array([None, None, 3, 4, None, 5], pa.int32()),
            "s": pa.array(
                [{"x": "a"}, None, {"x": None}, {"x": "z"}, {"x": "b"}, {"x": "c"}], pa.struct([("x", pa.string())])
            ),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    df = spark.read.parquet(str(tmp_path))
    assert footers_serve(spark, df, "n", "s.x") == 1


def test_what_a_footer_does_not_prove_is_read(spark, tmp_path):
    spark.sql("SELECT 1 AS a, 2 AS b").write.parquet(str(tmp_path / "whole"))
    spark.sql("SELECT 1 AS a").write.parquet(str(tmp_path / "missing"))
    spark.sql("SELECT 1 AS A, 2 AS B").write.parquet(str(tmp_path / "case"))
    spark.sql("SELECT 1L AS a, 2 AS b").write.parquet(str(tmp_path / "wide"))
    paths = [str(tmp_path / name) for name in ("whole", "missing", "case")]
    assert footers_serve(spark, spark.read.schema("a INT, b INT").parquet(*paths), "a", "b") == 1
    assert footers_serve(spark, spark.read.schema("a LONG, b INT").parquet(*paths[:1]), "a", "b") is None
    assert footers_serve(spark, spark.read.schema("a DOUBLE").parquet(*paths[:1]), "a") is None
    with conf(spark, {"spark.sql.parquet.fieldId.read.enabled": "true"}):
        assert footers_serve(spark, spark.read.parquet(*paths[:1]), "a") is None


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize("type_", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize("dictionary", [False, True], ids=["plain", "dictionary"])
def test_floating_values_are_read_beside_the_footer(spark, tmp_path, type_, dictionary):
    contents = [
        [1.5, NAN, -2.0, None, 0.0, -0.0],
        [NAN, NAN, None],
        [None, None],
        [INFINITY, INFINITY],
        [-INFINITY, None, -INFINITY],
        [NAN, -INFINITY, 7.0],
        *([float(n)] for n in range(4)),  # the driver reads a few footers, executors as many as these
        [],
    ]
    for number, content in enumerate(contents):
        table = pa.table({"g": pa.array(content, type_), "n": range(len(content))})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=2, use_dictionary=dictionary)
    df = spark.read.parquet(str(tmp_path))
    assert footers_serve(spark, df, "g", "n") == len([c for c in contents if c])  # Spark leaves the last out
    bound = bind(df, MinMaxIndex("g"))
    source, listed = source_and_objects(df)
    names = ("0:lower", "0:upper", "0:null_count", "0:nan_count")
    assert (-2.0, 1.5, 1, 1) in [
        tuple(row[name] for name in names) for row in rows_of(collect_from_footers(source, listed, bound))
    ]


def test_floating_values_of_other_types_and_nested_ones_are_read_by_spark(spark, tmp_path):
    spark.sql("SELECT CAST(1 AS FLOAT) AS g, named_struct('x', 2.5D) AS s").write.parquet(str(tmp_path / "d"))
    assert footers_serve(spark, spark.read.parquet(str(tmp_path / "d")), "g") == 1
    assert footers_serve(spark, spark.read.schema("g DOUBLE").parquet(str(tmp_path / "d")), "g") is None
    assert footers_serve(spark, spark.read.parquet(str(tmp_path / "d")), "s.x") is None


@pytest.mark.parametrize(
    ("column", "objects", "asked"),
    [("n", 20, [20]), ("g", 20, [8, 20]), ("g", 3, [3]), ("n", 70, [8, 70])],
    ids=["few", "values", "values of few", "many"],
)
def test_footers_of_few_objects_are_read_once(spark, tmp_path, monkeypatch, column, objects, asked):
    for number in range(objects):
        pq.write_table(pa.table({"n": [number], "g": [number / 2]}), tmp_path / f"{number}.parquet")
    footers, found = SparkSource.footers, []
    monkeypatch.setattr(
        SparkSource, "footers", lambda s, some, *rest: found.append(len(some)) or footers(s, some, *rest)
    )
    assert footers_serve(spark, spark.read.parquet(str(tmp_path)), column) == objects
    assert found == asked


def test_many_floating_values_are_left_to_several_tasks(spark, tmp_path):
    table = pa.table({"g": pa.array(range(9 << 20), pa.float64())})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False, compression="zstd")
    assert footers_serve(spark, spark.read.parquet(str(tmp_path)), "g") is None


def test_old_dates_of_an_unknown_writer_are_read(spark, tmp_path):
    for name, year in (("old", 1500), ("new", 1950)):
        pq.write_table(pa.table({"d": [dt.date(year, 1, 1)]}), tmp_path / f"{name}.parquet")
    assert footers_serve(spark, spark.read.parquet(str(tmp_path)), "d") == 1


def test_a_file_of_another_calendar_is_read(spark, tmp_path):
    legacy = {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"}
    with conf(spark, legacy):
        spark.sql("SELECT DATE'1500-01-01' AS d").write.parquet(str(tmp_path / "d"))
    assert footers_serve(spark, spark.read.parquet(str(tmp_path / "d")), "d") is None


def test_int96_and_partition_columns_are_read(spark, tmp_path):
    with conf(spark, {"spark.sql.parquet.outputTimestampType": "INT96"}):
        spark.sql("SELECT current_timestamp() AS t, 1 AS p").write.partitionBy("p").parquet(str(tmp_path / "d"))
    df = spark.read.parquet(str(tmp_path / "d"))
    assert footers_serve(spark, df, "t") is None
    assert footers_serve(spark, df, "p") is None


FOOTER = {"created_by": "parquet-mr version 1.15.0", "meta": {"org.apache.spark.version": "4.0.0"}, "rows": 5}


def int_facts(**changes):
    low, high = (base64.b64encode(struct.pack("<i", n)).decode() for n in (1, 9))
    group = {"rows": 5, "values": 5, "nulls": 1, "min": low, "max": high}
    return {"physical": "INT32", "logical": None, "groups": [{**group, **changes}]}


def test_sound_facts_are_used():
    bounds = column_bounds(int_facts(), "int", FOOTER)
    assert (bounds.lower, bounds.upper, bounds.nulls, bounds.rows) == (1, 9, 1, 5)


@pytest.mark.parametrize(
    "changes",
    [
        {"nulls": None},
        {"nulls": -1},
        {"nulls": 6},
        {"values": 4},
        {"min": None},
        {"max": None},
        {"min": base64.b64encode(b"\1\0").decode()},
        {"min": "no base64!"},
        {"min": base64.b64encode(struct.pack("<i", 10)).decode()},
    ],
    ids=str,
)
def test_doubtful_facts_are_not(changes):
    assert column_bounds(int_facts(**changes), "int", FOOTER) is None


def test_bounds_of_floating_numbers_prove_nothing_without_their_values():
    low, high = (base64.b64encode(struct.pack("<d", n)).decode() for n in (1, 9))
    group = {"rows": 5, "values": 5, "nulls": 1, "min": low, "max": high}
    facts = {"physical": "DOUBLE", "logical": None, "groups": [group]}
    assert column_bounds(facts, "double", FOOTER) is None
    read = column_bounds({**facts, "groups": [{**group, "nans": 2}]}, "double", FOOTER)
    assert (read.lower, read.upper, read.nulls, read.nans) == (1.0, 9.0, 1, 2)
    assert column_bounds({**facts, "groups": [{**group, "nans": 5}]}, "double", FOOTER) is None


@pytest.mark.parametrize("created_by", [None, "", "parquet-mr version 1.8.0", "parquet-mr", "impala version 2.0"])
def test_bytes_of_writers_that_ordered_them_wrongly_are_read(created_by):
    text = base64.b64encode(b"a").decode()
    facts = {
        "physical": "BINARY",
        "logical": "STRING",
        "groups": [{"rows": 1, "values": 1, "nulls": 0, "min": text, "max": text}],
    }
    assert column_bounds(facts, "string", {**FOOTER, "rows": 1}).lower == b"a"
    assert column_bounds(facts, "string", {**FOOTER, "rows": 1, "created_by": created_by}) is None


@pytest.mark.parametrize(
    ("physical", "logical", "type_"),
    [
        ("INT32", None, "tinyint"),
        ("INT32", "INTEGER(8,false)", "smallint"),
        ("INT32", "INTEGER(32,false)", "int"),
        ("INT32", None, "date"),
        ("INT32", None, "bigint"),
        ("INT32", "DECIMAL(9,2)", "decimal(9,3)"),
        ("INT32", "DATE", "int"),
    ],
)
def test_another_type_in_the_file_proves_nothing(physical, logical, type_):
    assert column_bounds({**int_facts(), "physical": physical, "logical": logical}, type_, FOOTER) is None


@pytest.mark.parametrize("most", ["128m", "64"])
def test_a_silent_job_reads_as_any_other(spark, tmp_path, most):
    """Executors see the session's settings, also before the shuffle that merges objects which were read in parts."""
    folder = tmp_path / "d"
    folder.mkdir()
    for number in range(3):
        lines = [f"{number}{n},2024-0{number + 1}-11 0{n}:30:00,{n}" for n in range(9)]
        (folder / f"{number}.csv").write_text("\n".join(lines) + "\n")
    feature = "hour(t) = 3 AND date_format(t, 'a h') = 'AM 3' OR cast(s AS int) = 7"
    settings_ = {
        "spark.sql.session.timeZone": "Asia/Kathmandu",
        "spark.sql.files.maxPartitionBytes": most,
        "spark.sql.files.openCostInBytes": "1",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
    }
    with conf(spark, settings_):
        df = spark.read.schema("i int, t timestamp, s string").csv(str(folder))
        source, listed = source_and_objects(df)

        def collected(key):
            kinds = [MinMaxIndex("t", key=key), ValueListIndex("s", key=key), FeatureIndex({"f": feature}, key=key)]
            prepared = [index.prepare(source.preparation) for index in kinds]
            return rows_of(collect_with_arrow(source, listed, bind(df, *prepared)))

        told, silent = collected(None), collected("k")
    assert silent == told
    assert len(told) == 3
    assert told[0]["row_count"] == 9
