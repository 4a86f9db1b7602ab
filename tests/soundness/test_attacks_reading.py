"""Attacks: the same files read in another way are other data, and metadata of one way must not serve the other."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from decimal import Decimal
from itertools import permutations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from skipstone import BloomFilterIndex, Dataset, HybridIndex, MinMaxIndex, SkipstoneError, ValueListIndex
from tests.soundness.attack import age, all_of, parquet, same_answers, same_rows, same_unless_it_fails, text
from tests.support import conf

EVERY = (MinMaxIndex, ValueListIndex, BloomFilterIndex, HybridIndex)


def index_all(df, *columns, types=EVERY):
    return Dataset(df).create_indexes(*(type_(column) for type_ in types for column in columns or ("*",)))


# --- the declared schema ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_table", [True, False], ids=["indexed as a table", "indexed by its path"])
def test_column_that_old_files_lack_and_the_table_has_a_default_for(spark, tmp_path, by_table):
    parquet(tmp_path / "t", {"a": [1, 2]}, {"a": [3, 4]})
    spark.sql(f"CREATE TABLE defaulted (a BIGINT) USING parquet LOCATION '{tmp_path}/t'")
    try:
        spark.sql("ALTER TABLE defaulted ADD COLUMN b INT DEFAULT 5")
        spark.sql("INSERT INTO defaulted VALUES (5, 6)")
        age(tmp_path / "t")
        spark.sql("REFRESH TABLE defaulted")

        def by_path():
            return spark.read.schema("a BIGINT, b INT").parquet(f"{tmp_path}/t")

        index_all(spark.table("defaulted") if by_table else by_path(), "a", "b")
        for predicate in (
            "b = 5",
            "b = 6",
            "b IS NULL",
            "b IS NOT NULL",
            "b <> 5",
            "b < 6",
            "b IN (5, 7)",
            "NOT b <=> 5",
        ):
            same_rows(spark, f"SELECT * FROM defaulted WHERE {predicate}")
            same_rows(spark, lambda p=predicate: by_path().where(p))
        assert same_rows(spark, "SELECT * FROM defaulted WHERE a = 1") or same_rows(
            spark, lambda: by_path().where("a = 1")
        )
    finally:
        spark.sql("DROP TABLE defaulted")


def test_columns_found_by_field_id_instead_of_name(spark, tmp_path):
    def field(name, id_):
        return pa.field(name, pa.int32(), metadata={"PARQUET:field_id": str(id_)})

    schema = pa.schema([field("x", 1), field("y", 2)])
    parquet(tmp_path / "d", *(pa.table({"x": [n], "y": [n + 10]}, schema=schema) for n in (1, 2)))

    def asked(id_):
        return StructType([StructField("x", IntegerType(), metadata={"parquet.field.id": id_})])

    with conf(spark, {"spark.sql.parquet.fieldId.read.enabled": "true"}):
        index_all(spark.read.schema(asked(1)).parquet(f"{tmp_path}/d"), "x")
        assert same_rows(spark, lambda: spark.read.schema(asked(1)).parquet(f"{tmp_path}/d").where("x = 1"))
        same_answers(
            spark, spark.read.schema(asked(2)).parquet(f"{tmp_path}/d"), ["x = 11", "x > 5", "x <> 1", "x = 1"]
        )
    same_answers(spark, spark.read.parquet(f"{tmp_path}/d"), ["x = 1", "y = 11", "y = 1"])


def test_nested_fields_found_by_id(spark, tmp_path):
    def field(name, id_):
        return pa.field(name, pa.int32(), metadata={"PARQUET:field_id": str(id_)})

    inner = pa.struct([field("x", 2), field("y", 3)])
    schema = pa.schema([pa.field("s", inner, metadata={"PARQUET:field_id": "1"})])
    parquet(tmp_path / "d", *(pa.table({"s": [{"x": n, "y": n + 10}]}, schema=schema) for n in (1, 2)))

    def asked(id_):
        within = StructType([StructField("x", IntegerType(), metadata={"parquet.field.id": id_})])
        return StructType([StructField("s", within, metadata={"parquet.field.id": 1})])

    # Spark's own pushdown looks nested fields up by name, and so loses rows by itself.
    by_id = {"spark.sql.parquet.fieldId.read.enabled": "true", "spark.sql.parquet.filterPushdown": "false"}
    with conf(spark, by_id):
        index_all(spark.read.schema(asked(2)).parquet(f"{tmp_path}/d"), "s.x")
        assert same_answers(spark, spark.read.schema(asked(2)).parquet(f"{tmp_path}/d"), ["s.x = 1", "s.x > 1"])
        same_answers(spark, spark.read.schema(asked(3)).parquet(f"{tmp_path}/d"), ["s.x = 11", "s.x > 5", "s.x <> 1"])


@pytest.mark.parametrize("format_", ["parquet", "orc", "json"])
def test_structs_of_which_a_query_reads_a_part(spark, tmp_path, format_):
    for n in (1, 2, 3):
        row = f"{n} AS a, named_struct('x', {n}, 'y', 'y{n}', 'z', named_struct('w', {n * 10})) AS s"
        spark.sql(f"SELECT {row}").coalesce(1).write.mode("append").format(format_).save(f"{tmp_path}/d")
    age(tmp_path / "d")
    df = spark.read.format(format_).load(f"{tmp_path}/d")
    index_all(df, "a", "s.x", "s.z.w")
    for wanted in ("s.y", "s.x", "s.z.w", "a", "s"):
        assert same_answers(spark, df, ["a = 1", "s.x = 2", "s.z.w = 30", "s.x = 1 OR a = 3"], wanted), wanted


_WIDE = (
    ("int", pa.array([1, 2], pa.int32()), pa.array([2147483647, 5], pa.int32()), ["bigint", "double", "decimal(20,2)"]),
    ("float", pa.array([1.5, float("nan")], pa.float32()), pa.array([0.1, 3], pa.float32()), ["double"]),
    (
        "decimal(5,2)",
        *(pa.array([Decimal(x)], pa.decimal128(5, 2)) for x in ("1.10", "2.20")),
        ["decimal(10,4)", "decimal(20,2)"],
    ),
    ("date", *(pa.array([dt.date(2020, 1, d)], pa.date32()) for d in (1, 2)), ["timestamp_ntz"]),
    ("string", pa.array(["a", "é"]), pa.array(["b", "z"]), ["binary"]),
    ("smallint", pa.array([1, -2], pa.int16()), pa.array([300, 5], pa.int16()), ["int", "bigint", "double"]),
    ("bigint", pa.array([1], pa.int64()), pa.array([9], pa.int64()), ["decimal(20,0)"]),
)


@pytest.mark.parametrize(
    ("type_", "one", "other", "wider"),
    [
        pytest.param(*w, id=w[0], marks=[pytest.mark.long] if w[0] in ("smallint", "bigint", "string") else [])
        for w in _WIDE
    ],
)
def test_files_of_a_narrower_type_than_they_are_read_with(spark, tmp_path, type_, one, other, wider):
    parquet(tmp_path / "d", {"a": one}, {"a": other})
    literals = {"string": "'b'", "date": "DATE'2020-01-02'"}.get(type_, "2")
    predicates = [f"a {op} {literals}" for op in ("=", "<", ">", "<>", ">=")] + ["a IS NOT NULL", f"a IN ({literals})"]
    for as_, types in ((type_, EVERY), *((w, (MinMaxIndex,)) for w in wider), (wider[-1], EVERY)):
        df = spark.read.schema(f"a {as_}").parquet(f"{tmp_path}/d")
        index_all(df, "a", types=types)  # bounds alone may come from footers
        for again in {as_, type_, wider[-1]}:
            same_answers(spark, spark.read.schema(f"a {again}").parquet(f"{tmp_path}/d"), predicates)
        Dataset(df).drop_indexes()


def test_files_that_disagree_on_the_type(spark, tmp_path):
    parquet(tmp_path / "d", {"a": pa.array([1, 2], pa.int32())}, {"a": pa.array([3, 1 << 40], pa.int64())})
    df = spark.read.schema("a bigint").parquet(f"{tmp_path}/d")
    index_all(df, "a", types=(MinMaxIndex,))
    assert same_answers(spark, df, ["a = 1", "a > 5", "a = 1099511627776", "a < 2", "a <> 3"])


def test_unsigned_and_other_odd_physical_types(spark, tmp_path):
    parquet(
        tmp_path / "d",
        {
            "u8": pa.array([1, 255], pa.uint8()),
            "u32": pa.array([1, 4294967295], pa.uint32()),
            "u64": pa.array([1, 18446744073709551615], pa.uint64()),
            "ms": pa.array([0, 1], pa.timestamp("ms", "UTC")),
            "fixed": pa.array([b"ab", b"\xff\x00"], pa.binary(2)),
        },
        {
            "u8": pa.array([128], pa.uint8()),
            "u32": pa.array([2147483648], pa.uint32()),
            "u64": pa.array([9223372036854775808], pa.uint64()),
            "ms": pa.array([-1], pa.timestamp("ms", "UTC")),
            "fixed": pa.array([b"\x80\x00"], pa.binary(2)),
        },
    )
    df = spark.read.parquet(f"{tmp_path}/d")
    predicates = [
        *("u8 = 255", "u8 = 128", "u8 > 200", "u8 < 0", "u32 = 4294967295", "u32 > 2147483647", "u32 < 0"),
        *("u64 = 18446744073709551615", "u64 > 9223372036854775807", "ms < TIMESTAMP'1970-01-01 00:00:00Z'"),
        *("ms = TIMESTAMP'1970-01-01 00:00:00.001Z'", "fixed = X'ff00'", "fixed > X'80'", "fixed < X'7f'"),
    ]
    for types in ((MinMaxIndex,), EVERY):
        index_all(df, types=types)
        assert same_answers(spark, df, predicates)
        Dataset(df).drop_indexes()


def test_columns_missing_in_some_files_and_merged_schemas(spark, tmp_path):
    parquet(
        tmp_path / "d",
        {"a": [1, 2]},
        {"a": [3], "b": ["x"]},
        {"b": ["y"], "s": [{"x": 1}]},
        {"a": [4], "s": pa.array([{"y": "only y"}])},
        pa.table({"a": pa.array([], pa.int64())}),
    )
    predicates = [
        *("b IS NULL", "b IS NOT NULL", "b = 'x'", "b <> 'x'", "NOT b <=> 'x'", "a IS NULL", "a = 3", "s IS NULL"),
        *("s.x IS NULL", "s.x = 1", "s.y IS NULL", "s.y = 'only y'", "s IS NOT NULL", "s.x IS NULL AND s IS NOT NULL"),
    ]
    for types in ((MinMaxIndex,), EVERY):
        df = spark.read.option("mergeSchema", "true").parquet(f"{tmp_path}/d")
        index_all(df, "a", "b", "s.x", "s.y", types=types)
        assert same_answers(spark, df, predicates)
        narrow = spark.read.schema("a BIGINT, b STRING, s STRUCT<x: BIGINT, y: STRING, z: INT>").parquet(
            f"{tmp_path}/d"
        )
        same_answers(spark, narrow, [*predicates, "s.z IS NULL", "s.z = 1"])
        same_answers(spark, spark.read.schema("b STRING, new INT").parquet(f"{tmp_path}/d"), ["new IS NULL", "b = 'y'"])
        Dataset(df).drop_indexes()


@pytest.mark.parametrize("sensitive", ["false", "true"])
def test_names_that_differ_in_case_between_files_and_queries(spark, tmp_path, sensitive):
    parquet(tmp_path / "d", {"Abc": [1]}, {"abc": [2]}, {"ABC": [3], "other": [1]})
    for declared, other in permutations(["Abc", "abc", "ABC"], 2):
        with conf(spark, {"spark.sql.caseSensitive": "false"}):
            df = spark.read.schema(f"{declared} BIGINT").parquet(f"{tmp_path}/d")
            index_all(df, declared)
        with conf(spark, {"spark.sql.caseSensitive": sensitive}):
            for name in (declared, other):
                again = spark.read.schema(f"{name} BIGINT").parquet(f"{tmp_path}/d")
                same_answers(spark, again, [f"{name} = 2", f"{name} IS NULL", f"{name} > 1", f"{name} <> 1"])
        with conf(spark, {"spark.sql.caseSensitive": "false"}):
            assert same_answers(spark, df, ["abc = 2", "ABC > 2"])
            Dataset(df).drop_indexes()


def test_two_columns_that_differ_in_case_only(spark, tmp_path):
    parquet(tmp_path / "d", {"a": [1], "A": [10]}, {"a": [2], "A": [20]})
    with conf(spark, {"spark.sql.caseSensitive": "true"}):
        df = spark.read.parquet(f"{tmp_path}/d")
        index_all(df, "a", "A")
        assert same_answers(spark, df, ["a = 1", "A = 10", "a = 10", "A = 1", "a < A", "a = 2 OR A = 10"])
        index_free = spark.read.schema("A BIGINT").parquet(f"{tmp_path}/d")
        same_answers(spark, index_free, ["A = 10", "A = 1"])


def test_odd_column_names(spark, tmp_path):
    names = ["a.b", "a b", "tick`", "ünï", "select", "null", "*", "current_date", "a,b", "1", "x:y", "A.B"]
    with conf(spark, {"spark.sql.caseSensitive": "true"}):
        parquet(tmp_path / "d", *({name: [n * 10 + m] for m, name in enumerate(names)} for n in (1, 2)))
        df = spark.read.parquet(f"{tmp_path}/d")
        ticked = ["`" + name.replace("`", "``") + "`" for name in names]
        index_all(df, *ticked)
        skipped = same_answers(spark, df, [f"{t} = {10 + m}" for m, t in enumerate(ticked)])
        assert skipped == len(names)


def test_struct_named_like_a_dotted_column(spark, tmp_path):
    parquet(tmp_path / "d", {"a": [{"b": 1}], "a.b": [10]}, {"a": [{"b": 2}], "a.b": [20]})
    df = spark.read.parquet(f"{tmp_path}/d")
    index_all(df, "a.b", "`a.b`")
    assert same_answers(spark, df, ["a.b = 1", "`a.b` = 10", "a.b = 10", "`a.b` = 1"]) > 3


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("types", [(MinMaxIndex,), EVERY], ids=["footers or aggregates", "rows"])
def test_int96_with_conversion_reads_by_the_session_time_zone(spark, tmp_path, types):
    moments = [dt.datetime(2020, 1, 1, hour, tzinfo=dt.UTC) for hour in (0, 12)]
    parquet(
        tmp_path / "d",
        *({"ts": pa.array([m], pa.timestamp("us", "UTC"))} for m in moments),
        use_deprecated_int96_timestamps=True,
    )
    with conf(spark, {"spark.sql.parquet.int96TimestampConversion": "true", "spark.sql.session.timeZone": "UTC"}):
        index_all(spark.read.parquet(f"{tmp_path}/d"), "ts", types=types)
        for zone in ("UTC", "America/New_York", "Asia/Tokyo"):
            with conf(spark, {"spark.sql.session.timeZone": zone}):
                df = spark.read.parquet(f"{tmp_path}/d")
                same_answers(
                    spark,
                    df,
                    [f"ts = TIMESTAMP'2020-01-01 {hour:02d}:00:00{z}'" for hour in (0, 12) for z in ("", "Z")],
                )
                same_answers(
                    spark, df, ["ts > TIMESTAMP'2020-01-01 08:00:00Z'", "ts < TIMESTAMP'2020-01-01 00:00:00Z'"]
                )


@pytest.mark.parametrize(
    "kind", ["INT96", "TIMESTAMP_MICROS", pytest.param("TIMESTAMP_MILLIS", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("mode", ["LEGACY", "CORRECTED"])
def test_dates_before_1582_however_they_were_written(spark, tmp_path, kind, mode):
    settings = {
        "spark.sql.parquet.outputTimestampType": kind,
        "spark.sql.parquet.datetimeRebaseModeInWrite": mode,
        "spark.sql.parquet.int96RebaseModeInWrite": mode,
        "spark.sql.session.timeZone": "America/Los_Angeles",
    }
    with conf(spark, settings):
        for number, day in enumerate(
            ("0001-01-01", "1000-03-01", "1582-10-04", "1582-10-15", "1850-06-01", "2020-01-01")
        ):
            row = f"DATE'{day}' AS d, TIMESTAMP'{day} 10:00:00' AS t, TIMESTAMP_NTZ'{day} 10:00:00' AS n"
            spark.sql(f"SELECT {row}").coalesce(1).write.mode("append").parquet(f"{tmp_path}/d/{number}")
    age(tmp_path / "d")
    predicates = [
        *("d = DATE'1000-03-01'", "d < DATE'1582-10-10'", "d >= DATE'1582-10-10'", "d <> DATE'0001-01-01'"),
        *(
            "t < TIMESTAMP'1582-10-10 00:00:00'",
            "t = TIMESTAMP'1000-03-01 10:00:00'",
            "t > TIMESTAMP'1582-10-04 00:00:00'",
        ),
        *("n = TIMESTAMP_NTZ'1000-03-01 10:00:00'", "n < TIMESTAMP_NTZ'1582-10-05 00:00:00'", "year(d) = 1"),
    ]
    shown = [f"CAST({c} AS STRING)" for c in "dtn"]  # years before 1 are beyond Python
    for types in ((MinMaxIndex,), EVERY):
        with conf(spark, {"spark.sql.session.timeZone": "America/Los_Angeles"}):
            df = spark.read.option("recursiveFileLookup", "true").parquet(f"{tmp_path}/d")
            index_all(df, types=types)
            assert same_answers(spark, df, predicates, *shown)
            for other in ("LEGACY", "CORRECTED"):
                again = spark.read.options(recursiveFileLookup="true", datetimeRebaseMode=other, int96RebaseMode=other)
                same_answers(spark, again.parquet(f"{tmp_path}/d"), predicates, *shown)
        with conf(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
            same_answers(
                spark, spark.read.option("recursiveFileLookup", "true").parquet(f"{tmp_path}/d"), predicates, *shown
            )
        Dataset(df).drop_indexes()


@pytest.mark.parametrize("format_", ["csv", "json", "orc"])
def test_timestamps_of_formats_that_parse_by_the_session_time_zone(spark, tmp_path, format_):
    with conf(spark, {"spark.sql.session.timeZone": "UTC"}):
        for hour in (0, 6, 12, 18):
            df = spark.sql(
                f"SELECT TIMESTAMP'2020-01-01 {hour:02d}:00:00' AS ts, TIMESTAMP_NTZ'2020-01-01 {hour:02d}:00:00' AS n"
            )
            shown = df if format_ == "orc" else df.selectExpr("CAST(ts AS STRING) AS ts", "CAST(n AS STRING) AS n")
            shown.coalesce(1).write.mode("append").format(format_).save(f"{tmp_path}/d")
        age(tmp_path / "d")
        df = spark.read.format(format_).schema("ts TIMESTAMP, n TIMESTAMP_NTZ").load(f"{tmp_path}/d")
        index_all(df)
        assert same_answers(
            spark, df, ["ts = TIMESTAMP'2020-01-01 06:00:00'", "n > TIMESTAMP_NTZ'2020-01-01 07:00:00'"]
        )
    for zone in ("America/New_York", "Asia/Kolkata"):
        with conf(spark, {"spark.sql.session.timeZone": zone}):
            df = spark.read.format(format_).schema("ts TIMESTAMP, n TIMESTAMP_NTZ").load(f"{tmp_path}/d")
            utc = [f"ts {op} TIMESTAMP'2020-01-01 06:00:00{z}'" for op in ("=", "<", ">=") for z in ("", "Z")]
            same_answers(spark, df, [*utc, "n = TIMESTAMP_NTZ'2020-01-01 06:00:00'"])


# --- text formats -----------------------------------------------------------------------------------------------------

_CSV = (
    "1,a,2020-01-02\n",
    "2,,2020-02-01\n",
    "-,NA,01/02/2020\n",
    '3," b ",\n',
    "#4,c,2020-01-01\n",
    "5;d,e,2020-01-03\n",
)
_CSV_OPTIONS = (
    *(
        {},
        {"sep": ";"},
        {"nullValue": "a"},
        {"nullValue": "NA"},
        {"emptyValue": "x"},
        {"comment": "#"},
        {"header": "true"},
    ),
    *({"dateFormat": "dd/MM/yyyy"}, {"dateFormat": "MM/dd/yyyy"}, {"ignoreLeadingWhiteSpace": "true"}, {"quote": "'"}),
    *({"mode": "DROPMALFORMED"}, {"mode": "PERMISSIVE"}, {"nanValue": "1"}, {"multiLine": "true"}, {"lineSep": ","}),
    *({"encoding": "UTF-16"}, {"charToEscapeQuoteEscaping": "b"}, {"maxColumns": "2"}, {"timeZone": "Asia/Tokyo"}),
)


@pytest.mark.long
def test_csv_read_with_other_options(spark, tmp_path):
    text(tmp_path / "d", ".csv", *_CSV)
    schema = "a INT, b STRING, c DATE"
    predicates = [
        "a = 1",
        "b = 'a'",
        "b IS NULL",
        "c = DATE'2020-01-02'",
        "c = DATE'2020-02-01'",
        "b = ''",
        "b = ' b '",
        "a IS NULL",
    ]
    df = spark.read.schema(schema).csv(f"{tmp_path}/d")
    index_all(df)
    assert same_answers(spark, df, predicates)
    for options in _CSV_OPTIONS:
        again = spark.read.schema(schema).options(**options).csv(f"{tmp_path}/d")
        same_unless_it_fails(spark, lambda d=again: all_of(d, predicates))


def test_csv_columns_go_by_position(spark, tmp_path):
    text(tmp_path / "d", ".csv", "1,10\n", "2,20\n")
    df = spark.read.schema("a INT, b INT").csv(f"{tmp_path}/d")
    index_all(df)
    assert same_answers(spark, df, ["a = 1", "b = 10"])
    for schema in ("b INT, a INT", "a STRING, b INT", "x INT, a INT", "b INT", "a INT"):
        again = spark.read.schema(schema).csv(f"{tmp_path}/d")
        same_answers(spark, again, [f"{c} = {v}" for c in again.columns for v in (1, 10)])


_BAD_JSON = (
    '{"a": 1, "b": 2}\n',
    '{"a": 1, "b": "x"}\n',
    '{"a": 1, "b": \n',
    '{"b": "x", "a": 1}\n',
    '{"a": 1, "b": 2\n{"a": 7, "b": 8}\n',
    '{"a": "1", "b": 2}\n',
    '{"a": 1.0, "b": 2}\n',
    '{"a": 1, "a": 2}\n',
    '{"A": 1, "b": 2}\n',
    '{"a": 1, "b": {"c": 1}}\n',
    '[{"a": 1, "b": 2}, {"a": 3}]\n',
    "nonsense\n",
    '{"a": null}\n{}\n\n',
    '{"a": 99999999999, "b": 1}\n',
    '{"a": 1, "b": 2} {"a": 5}\n',
)


@pytest.mark.long
def test_malformed_json_however_many_columns_a_query_reads(spark, tmp_path):
    text(tmp_path / "d", ".json", *_BAD_JSON)

    def read(schema, **options):
        return spark.read.schema(schema).options(**options).json(f"{tmp_path}/d")

    df = read("a INT, b INT")
    predicates = [
        "a = 1",
        "a IS NULL",
        "b = 2",
        "b IS NULL",
        "a = 1 AND b IS NULL",
        "a = 5",
        "a = 3",
        "a <> 1",
        "a = 2",
    ]
    for indexed in (("a",), ("a", "b")):
        index_all(df, *indexed)
        for wanted in (("a",), ("b",), ("a", "b"), ("1",)):
            same_answers(spark, df, predicates, *wanted)
            same_answers(spark, read("a INT, b INT", mode="DROPMALFORMED"), predicates, *wanted)
        for schema in (
            "a INT, b INT, _corrupt_record STRING",
            "a INT, b STRING",
            "b INT, a INT",
            "a INT",
            "A INT, b INT",
        ):
            columns = [c for c in ("a", "b") if c in read(schema).columns]
            asked = [f"{c} {p}" for c in columns for p in ("= '1'", "= '2'", "IS NULL", "<> '1'")]
            same_answers(spark, read(schema), asked)
        with conf(spark, {"spark.sql.json.enablePartialResults": "false"}):
            same_answers(spark, read("a INT, b INT"), predicates)
        for predicate in predicates[:3]:
            same_unless_it_fails(spark, lambda p=predicate: read("a INT, b INT", mode="FAILFAST").where(p))
        Dataset(df).drop_indexes()


_BAD_CSV = (
    "1,2\n",
    "1,x\n",
    "1\n",
    "1,2,3\n",
    "x,2\n",
    '1,"2\n',
    "1,\n",
    ",2\n",
    '"1",2\n',
    "99999999999,2\n",
    "1.0,2\n",
)


@pytest.mark.long
def test_malformed_csv_however_many_columns_a_query_reads(spark, tmp_path):
    text(tmp_path / "d", ".csv", *_BAD_CSV)

    def read(mode):
        return spark.read.schema("a INT, b INT").option("mode", mode).csv(f"{tmp_path}/d")

    predicates = ["a = 1", "a IS NULL", "b = 2", "b IS NULL", "a = 1 AND b IS NULL", "b <> 2"]
    for indexed in (("a",), ("a", "b")):
        df = spark.read.schema("a INT, b INT").csv(f"{tmp_path}/d")
        index_all(df, *indexed)
        for pruning in ("true", "false"):
            with conf(spark, {"spark.sql.csv.parser.columnPruning.enabled": pruning}):
                for wanted in (("a", "b"), ("1",)):
                    same_answers(spark, read("PERMISSIVE"), predicates, *wanted)
                    same_answers(spark, read("DROPMALFORMED"), predicates, *wanted)
        Dataset(df).drop_indexes()


@pytest.mark.parametrize("format_", ["json", "csv"])
def test_a_reader_that_drops_rows_makes_no_metadata_that_hides_them(spark, tmp_path, format_):
    objects = ('{"a": 1, "b": "x"}\n', '{"a": 2, "b": 5}\n') if format_ == "json" else ("1,x\n", "2,5\n")
    text(tmp_path / "d", f".{format_}", *objects)
    reader = spark.read.format(format_).schema("a INT, b INT")
    with pytest.raises(SkipstoneError):
        index_all(reader.option("mode", "DROPMALFORMED").load(f"{tmp_path}/d"))
    again = spark.read.format(format_).schema("a INT, b INT").load(f"{tmp_path}/d")
    same_answers(spark, again, ["a = 1", "a = 2", "b IS NULL"])


def test_corrupt_column_chunk_read_with_ignore_corrupt_files(spark, tmp_path):
    parquet(
        tmp_path / "d",
        {"a": [1], "b": ["x" * 100]},
        {"a": [2], "b": ["y" * 100]},
        compression="none",
        use_dictionary=False,
    )
    file = tmp_path / "d" / "object-000.parquet"
    chunk = pq.ParquetFile(file).metadata.row_group(0).column(1)
    data = bytearray(file.read_bytes())
    for offset in range(chunk.data_page_offset, chunk.data_page_offset + 20):
        data[offset] = 0xFF
    file.write_bytes(bytes(data))
    age(tmp_path / "d")
    for settings in ({"spark.sql.files.ignoreCorruptFiles": "true"}, {}):
        with conf(spark, settings):
            for option in ("true", "false"):
                with suppress(SkipstoneError):
                    index_all(spark.read.option("ignoreCorruptFiles", option).parquet(f"{tmp_path}/d"), "a", "b")
            for option in ("true", "false"):
                df = spark.read.option("ignoreCorruptFiles", option).parquet(f"{tmp_path}/d")
                assert df.where("a = 1").select("a").count() == 1
                same_unless_it_fails(spark, lambda d=df: d.where("a = 1").select("a"))
                same_unless_it_fails(spark, lambda d=df: d.where("a >= 1"))


def test_text_lines_and_whole_files(spark, tmp_path):
    text(tmp_path / "d", ".txt", "apple\nbanana\n", "cherry\n", "", "\n", "déjà\x00vu")
    df = spark.read.text(f"{tmp_path}/d")
    index_all(df, "value")
    assert same_answers(
        spark, df, ["value = 'apple'", "value LIKE 'ch%'", "value = ''", "value LIKE '%vu'", "value > 'c'"]
    )
    whole = spark.read.option("wholetext", "true").text(f"{tmp_path}/d")
    same_answers(spark, whole, ["value = 'cherry\\n'", "value LIKE 'apple%'", "value = 'apple'", "value = ''"])
    same_answers(
        spark, spark.read.option("lineSep", "n").text(f"{tmp_path}/d"), ["value = 'ba'", "value = 'apple\\nba'"]
    )


def test_xml_and_binary_files(spark, tmp_path):
    text(tmp_path / "x", ".xml", "<r><row><a>1</a></row></r>", "<r><row><a>2</a></row><other><a>9</a></other></r>")
    df = spark.read.format("xml").option("rowTag", "row").schema("a INT").load(f"{tmp_path}/x")
    index_all(df, "a")
    assert same_answers(spark, df, ["a = 1", "a > 1"])
    same_answers(
        spark,
        spark.read.format("xml").option("rowTag", "other").schema("a INT").load(f"{tmp_path}/x"),
        ["a = 9", "a IS NULL"],
    )
    text(tmp_path / "b", ".bin", b"\x00\x01", b"", b"\xff" * 100)
    df = spark.read.format("binaryFile").load(f"{tmp_path}/b")
    index_all(df, "length", "content", "path")
    same_answers(spark, df, ["length = 2", "length > 50", "content = X'0001'", "path LIKE '%000.bin'", "length = 0"])


# --- strings ----------------------------------------------------------------------------------------------------------


def test_strings_that_are_not_utf8(spark, tmp_path):
    def raw(*values):
        return pa.array(values, pa.binary()).view(pa.string())

    objects = (
        (b"\xff\xfe", b"abc"),
        (b"caf\xe9",),
        (b"\xc3\x28", b"zz"),
        (b"plain",),
        (b"\xed\xa0\x80",),
        ("\ufffd".encode(),),
    )
    parquet(tmp_path / "d", *({"s": raw(*values)} for values in objects))
    df = spark.read.schema("s STRING").parquet(f"{tmp_path}/d")
    literals = [f"CAST(X'{value.hex()}' AS STRING)" for values in objects for value in values] + [
        "'caf\ufffd'",
        "'\ufffd('",
    ]
    predicates = [f"s {op} {literal}" for op in ("=", "<", ">=", "<>") for literal in literals]
    predicates += [
        "s LIKE '\ufffd%'",
        "s LIKE '%\ufffd'",
        "s LIKE 'caf_'",
        "s LIKE '_('",
        "s NOT LIKE 'caf%'",
        "s LIKE '_'",
        "s LIKE '__'",
    ]
    predicates += [f"startswith(s, {literal})" for literal in literals] + [
        f"contains(s, {literal})" for literal in literals[:4]
    ]
    for types in ((MinMaxIndex,), EVERY):
        index_all(df, "s", types=types)
        assert same_answers(spark, df, predicates)
        Dataset(df).drop_indexes()


def test_collations_of_columns_literals_and_sessions(spark, tmp_path):
    for number, word in enumerate(("abc", "ABC", "äbc", "abc ", "zzz")):
        spark.sql(f"SELECT '{word}' AS s").coalesce(1).write.parquet(f"{tmp_path}/w/{number}")
    age(tmp_path / "w")
    reader = spark.read.option("recursiveFileLookup", "true")
    plain = reader.schema("s STRING").parquet(f"{tmp_path}/w")
    index_all(plain, "s")
    assert same_answers(spark, plain, ["s = 'abc'", "s < 'B'"])
    for collation in ("UTF8_LCASE", "UNICODE", "UNICODE_CI", "UTF8_BINARY_RTRIM", "UNICODE_CI_AI"):
        asked = ["{} = 'ABC'", "{} IN ('Abc', 'x')", "{} < 'b'", "startswith({}, 'AB')", "{} <> 'abc'", "{} = 'ZZZ'"]
        asked += ["{} LIKE 'AB%'"] if collation == "UTF8_LCASE" else []
        same_answers(spark, plain, [p.format(f"(s COLLATE {collation})") for p in asked])
        same_answers(spark, plain, [p.format("s").replace("',", f"' COLLATE {collation},") for p in asked[:4]])
        same_answers(spark, plain, [f"s = 'ABC' COLLATE {collation}", f"'zZz' COLLATE {collation} = s"])
        declared = reader.schema(f"s STRING COLLATE {collation}").parquet(f"{tmp_path}/w")
        with conf(spark, {"spark.sql.parquet.filterPushdown": "false"}):
            same_answers(spark, declared, [p.format("s") for p in asked])


def test_collated_table_indexed_and_queried(spark, tmp_path):
    nested = "STRUCT<f: STRING COLLATE UTF8_LCASE>"
    spark.sql(
        f"CREATE TABLE collated (s STRING COLLATE UTF8_LCASE, n INT, st {nested}) USING parquet LOCATION '{tmp_path}/c'"
    )
    try:
        for number, word in enumerate(("abc", "ABC", "zzz")):
            spark.sql(f"INSERT INTO collated VALUES ('{word}', {number}, named_struct('f', '{word}'))")
        age(tmp_path / "c")
        spark.sql("REFRESH TABLE collated")
        for index in (MinMaxIndex("*"), ValueListIndex("*"), BloomFilterIndex("*")):
            Dataset.for_table(spark, "collated").create_indexes(index)
        with conf(spark, {"spark.sql.parquet.filterPushdown": "false"}):
            for predicate in (
                "s = 'Abc'",
                "s < 'B'",
                "s IN ('ABC')",
                "s LIKE 'aB%'",
                "st.f = 'ABC'",
                "s = 'ABC' AND n = 0",
                "s <> 'abc'",
            ):
                same_rows(spark, f"SELECT * FROM collated WHERE {predicate}")
            assert same_rows(spark, "SELECT * FROM collated WHERE n = 1")
    finally:
        spark.sql("DROP TABLE collated")


@pytest.mark.parametrize("padding", ["true", pytest.param("false", marks=pytest.mark.long)])
def test_char_and_varchar(spark, tmp_path, padding):
    with conf(spark, {"spark.sql.readSideCharPadding": padding}):
        spark.sql(f"CREATE TABLE padded (c CHAR(5), v VARCHAR(5), s STRING) USING parquet LOCATION '{tmp_path}/p'")
        try:
            for word in ("ab", "ab ", "abcde", "", "zz"):
                spark.sql(f"INSERT INTO padded VALUES ('{word}', '{word}', '{word}')")
            age(tmp_path / "p")
            # A file that was not written by way of the table has values without padding.
            pq.write_table(pa.table({"c": ["ab"], "v": ["ab"], "s": ["ab"]}), tmp_path / "p" / "foreign.parquet")
            age(tmp_path / "p")
            spark.sql("REFRESH TABLE padded")
            Dataset.for_table(spark, "padded").create_indexes(*(t("*") for t in EVERY))
            for column in ("c", "v", "s"):
                for predicate in (
                    "= 'ab'",
                    "= 'ab '",
                    "= 'ab   '",
                    "IN ('ab', 'x')",
                    "LIKE 'ab%'",
                    "LIKE 'ab'",
                    "< 'ac'",
                    "<> 'ab'",
                    "<=> 'zz'",
                ):
                    same_rows(spark, f"SELECT * FROM padded WHERE {column} {predicate}")
                    same_rows(
                        spark, lambda c=column, p=predicate: spark.read.parquet(f"{tmp_path}/p").where(f"{c} {p}")
                    )
            same_rows(spark, "SELECT * FROM padded WHERE c = v")
        finally:
            spark.sql("DROP TABLE padded")


# --- options that reach a scan in other ways --------------------------------------------------------------------------


def test_options_given_in_sql_and_to_tables(spark, tmp_path):
    text(tmp_path / "d", ".csv", "1|10\n", "2|20\n", "3,30|5\n")
    spark.sql(f"CREATE TABLE piped (a STRING, b STRING) USING csv OPTIONS (sep '|') LOCATION '{tmp_path}/d'")
    try:
        Dataset.for_table(spark, "piped").create_indexes(*(t("*") for t in EVERY))
        assert same_rows(spark, "SELECT * FROM piped WHERE a = '1'")
        for query in (
            "SELECT * FROM piped WITH (`sep` = ',') WHERE a = '3'",
            "SELECT * FROM piped WITH (`sep` = ',') WHERE a = '1|10'",
            "SELECT * FROM piped WITH (`nullValue` = '1') WHERE a IS NULL",
            f"SELECT * FROM csv.`{tmp_path}/d` WHERE _c0 = '1|10'",
        ):
            same_unless_it_fails(spark, lambda q=query: spark.sql(q))
        comma = spark.read.option("sep", ",").schema("a STRING, b STRING").csv(f"{tmp_path}/d")
        same_answers(spark, comma, ["a = '3'", "b = '30|5'", "a = '1|10'", "b IS NULL"])
        spark.sql("ALTER TABLE piped SET SERDEPROPERTIES ('sep' = ',')")
        same_rows(spark, "SELECT * FROM piped WHERE a = '1|10'")
        same_rows(spark, "SELECT * FROM piped WHERE a = '3'")
    finally:
        spark.sql("DROP TABLE piped")
