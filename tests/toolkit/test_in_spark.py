"""What the indexes assume of Spark, asked of Spark itself."""

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from skipstone.expressions.tree import Column, Like, Literal
from skipstone.indexes.minmax import MinMaxIndex, MinMaxMetadata
from skipstone.indexing.objects import DataObject
from skipstone.testing import evaluate
from skipstone.toolkit.hashing import hash_expression, spark_hash

OBJECT = DataObject("o", 1, 0)

# SQL literal, Spark type, physical value
LITERALS = [
    ("true", "boolean", True),
    ("false", "boolean", False),
    ("-7Y", "tinyint", -7),
    ("-300S", "smallint", -300),
    ("-70000", "int", -70000),
    ("-5000000000L", "bigint", -5000000000),
    ("CAST('1.5' AS FLOAT)", "float", 1.5),
    ("CAST('-0.0' AS FLOAT)", "float", -0.0),
    ("CAST('NaN' AS FLOAT)", "float", math.nan),
    ("CAST('-Infinity' AS FLOAT)", "float", -math.inf),
    ("CAST('0.1' AS DOUBLE)", "double", 0.1),
    ("CAST('-0.0' AS DOUBLE)", "double", -0.0),
    ("CAST('0.0' AS DOUBLE)", "double", 0.0),
    ("CAST('NaN' AS DOUBLE)", "double", math.nan),
    ("CAST('-12.30' AS DECIMAL(10,2))", "decimal(10,2)", Decimal("-12.3")),
    ("CAST('1' AS DECIMAL(18,0))", "decimal(18,0)", Decimal(1)),
    ("CAST('0' AS DECIMAL(38,10))", "decimal(38,10)", Decimal(0)),
    ("CAST('-1' AS DECIMAL(19,0))", "decimal(19,0)", Decimal(-1)),
    ("CAST('-128' AS DECIMAL(19,0))", "decimal(19,0)", Decimal(-128)),
    ("CAST('128' AS DECIMAL(19,0))", "decimal(19,0)", Decimal(128)),
    ("CAST('-99999999999999999999999999999999999999' AS DECIMAL(38,0))", "decimal(38,0)", Decimal("-" + "9" * 38)),
    ("CAST('1234567890123456789012345678.0123456789' AS DECIMAL(38,10))", "decimal(38,10)",
     Decimal("1234567890123456789012345678.0123456789")),
    ("''", "string", ""),
    ("'Spark, é and 😀, more than thirty-two bytes long'", "string",
     "Spark, é and 😀, more than thirty-two bytes long"),
    ("X''", "binary", b""),
    ("X'00FF61'", "binary", b"\x00\xffa"),
    ("DATE'0001-01-01'", "date", -719162),
    ("DATE'9999-12-31'", "date", 2932896),
    ("TIMESTAMP'1969-12-31 23:59:59.999999Z'", "timestamp", -1),
    ("TIMESTAMP_NTZ'2024-03-31 02:30:00.123456'", "timestamp_ntz", 1711852200123456),
    ("INTERVAL '-1-2' YEAR TO MONTH", "interval year to month", -14),
    ("INTERVAL '3' MONTH", "interval month", 3),
    ("INTERVAL '1 02:03:04.000005' DAY TO SECOND", "interval day to second", 93784000005),
    ("INTERVAL '-9' MINUTE", "interval minute", -540000000),
]  # fmt: skip


def test_literals_hash_as_in_spark(spark):
    columns = ", ".join(f"{sql} AS c{n}" for n, (sql, _, _) in enumerate(LITERALS))
    table = spark.sql(f"SELECT {columns}")
    expressions = [f"{hash_expression(f'c{n}')} AS h{n}" for n in range(len(LITERALS))]
    row = table.selectExpr(*expressions).first()
    types = [field.dataType.simpleString() for field in table.schema.fields]
    for (sql, type_, value), actual, found in zip(LITERALS, types, row, strict=True):
        assert actual == type_, sql
        assert spark_hash(value, type_) == found, sql


def test_times_hash_as_in_spark(spark):
    if not hasattr(pytest.importorskip("pyspark.sql.types"), "TimeType"):
        pytest.skip("this Spark has no TIME")
    row = spark.sql("SELECT xxhash64(TIME'12:34:56.789012') AS h, typeof(TIME'12:34:56.789012') AS t").first()
    assert spark_hash(45296789012000, row.t) == row.h


def test_null_has_no_hash_and_equal_floats_have_equal_hashes(spark):
    rows = spark.sql("SELECT * FROM VALUES (NULL), (0.0D), (-0.0D), (double('NaN')) AS t(c)")
    null, zero, minus, nan = (row[0] for row in rows.selectExpr(hash_expression("c")).collect())
    assert null is None
    assert zero == minus != nan


def test_like_matches_as_in_spark(spark):
    texts = ["a😀b", "😀", "a\nb", "é", "a.b", "", "a%b", "a_b", "a\\b", "ab", "e\u0301", "a\r\nb", "\u2028"]
    patterns = ["a_b", "_", "__", "a%", "%b", "", "a\\%b", "a\\_b", "a\\\\b", "a.b", "%\n%", "a__b"]
    frame = spark.createDataFrame([(text,) for text in texts], "c string")
    sql = [f"c LIKE '{p.replace(chr(92), chr(92) * 2).replace(chr(10), chr(92) + 'n')}'" for p in patterns]
    for row in frame.selectExpr("c", *sql).collect():
        expected = [evaluate(Like(Column("c"), Literal(p)), {"c": row[0]}) for p in patterns]
        assert list(row[1:]) == expected, row[0]


def test_like_reads_invalid_bytes_as_the_replacement_character(spark):
    row = spark.sql("SELECT CAST(X'61FF62' AS STRING) LIKE 'a\ufffd_%', CAST(X'61FF' AS STRING) = 'a\ufffd'").first()
    assert tuple(row) == (True, False)


def test_long_lists_know_nan_and_both_zeros(spark):
    """Above ten options Spark uses a hash set."""
    options = ", ".join(f"{n}.0D" for n in range(12))
    rows = spark.sql(
        f"SELECT c NOT IN ({options}), c IN ({options}, double('NaN')) FROM VALUES (-0.0D), (double('NaN')) AS t(c)"
    ).collect()
    assert [tuple(row) for row in rows] == [(False, True), (True, True)]


AGGREGATED = {
    "boolean": ["true", "false", "NULL"],
    "bigint": ["-9223372036854775808L", "7L", "NULL"],
    "double": ["double('NaN')", "-1.5D", "double('Infinity')", "NULL"],
    "float": ["float('NaN')", "float('NaN')"],
    "decimal(38,10)": ["CAST('-1.5' AS DECIMAL(38,10))", "CAST('7' AS DECIMAL(38,10))"],
    "string": ["'b'", f"'{'p' * 70}'", "CAST(X'FF' AS STRING)", "NULL"],
    "binary": ["X'00'", "X'FF'"],
    "date": ["DATE'0001-01-01'", "DATE'9999-12-31'"],
    "timestamp": ["TIMESTAMP'0001-01-01 00:00:00.000001Z'", "TIMESTAMP'9999-12-31 23:59:59.999999Z'"],
    "timestamp_ntz": ["TIMESTAMP_NTZ'0001-01-01 00:00:00.000001'", "TIMESTAMP_NTZ'2024-03-31 02:30:00.123456'"],
    "interval year to month": ["INTERVAL '-178956970-8' YEAR TO MONTH", "INTERVAL '1-1' YEAR TO MONTH"],
    "interval day to second": ["INTERVAL '-106751991 04:00:54.775808' DAY TO SECOND", "NULL"],
    "int": ["CAST(NULL AS INT)"],
}


@pytest.mark.parametrize("type_", AGGREGATED)
def test_aggregates_give_what_collecting_gives(spark, type_):
    rows = ", ".join(f"({sql})" for sql in AGGREGATED[type_])
    frame = spark.sql(f"SELECT CAST(c AS {type_}) AS c FROM VALUES {rows} AS t(c)")
    aggregates = MinMaxIndex("c").aggregates((type_,))
    by_spark = frame.selectExpr(*(f"{sql} AS {name}" for name, sql in aggregates.items())).toArrow().to_pylist()[0]
    if type_.startswith("interval year"):  # which PySpark cannot send as it is
        frame = frame.selectExpr("CAST(CAST(c AS INTERVAL MONTH) AS INT) AS c")
    column = frame.toArrow().column("c").combine_chunks()
    if type_ == "string":
        column = column.view(pa.binary())
    elif pa.types.is_temporal(column.type):
        column = column.view(pa.int32() if pa.types.is_date(column.type) else pa.int64())
    assert MinMaxMetadata.from_aggregates(by_spark).finish(OBJECT) == MinMaxMetadata.of(column).finish(OBJECT)
