"""What Spark's columnar readers give comes to Python as columns, and is what comes as rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skipstone import BloomFilterIndex, HybridIndex, MinMaxIndex, PrefixIndex, ValueListIndex
from skipstone.engines.spark.arrow_job import collect_with_arrow, plan_inputs
from skipstone.engines.spark.client import Client
from tests.engines.spark.test_paths_agree import TYPES, VALUES
from tests.indexing.helpers import bind, rows_of, source_and_objects
from tests.support import conf

AS_ROWS = {"spark.sql.parquet.enableVectorizedReader": "false", "spark.sql.orc.enableVectorizedReader": "false"}
ARRAYS = {"al": ("ARRAY<BIGINT>", "i64"), "as": ("ARRAY<STRING>", "s"), "ag": ("ARRAY<DOUBLE>", "g")}
KINDS = {**TYPES, **{name: type_ for name, (type_, _) in ARRAYS.items()}, "st": "STRUCT<x: STRING>"}
CONTENT = {
    **{name: VALUES[name] for name in TYPES},
    **{name: st.lists(st.none() | VALUES[element], max_size=3) for name, (_, element) in ARRAYS.items()},
    "st": st.tuples(st.none() | VALUES["s"]),
}


def carried(df, *indexes):
    """Whether the columns that indexes ask for come as columns."""
    source, listed = source_and_objects(df)
    frame, whole_up_to = source.read(listed)
    selected, _ = plan_inputs(frame, bind(df, *indexes), whole_up_to)
    return Client(selected.sparkSession).column_batches(selected) is not None


def collected(df, *indexes):
    source, listed = source_and_objects(df)
    return rows_of(collect_with_arrow(source, listed, bind(df, *indexes)))


def assert_equal_as_rows(read, *indexes):
    """Collect both ways; the reader gives rows when it is told to."""
    spark = read().sparkSession
    assert carried(read(), *indexes)
    in_columns = collected(read(), *indexes)
    with conf(spark, AS_ROWS):
        assert not carried(read(), *indexes)
        assert in_columns == collected(read(), *indexes)
    return in_columns


def all_indexes():
    bounds = [MinMaxIndex(name) for name in TYPES]
    lists = [ValueListIndex(name) for name in (*TYPES, *ARRAYS)]
    filters = [BloomFilterIndex(name) for name in (*TYPES, *ARRAYS)]
    return [*bounds, *lists, *filters, HybridIndex("s"), HybridIndex("st.x", threshold=1), PrefixIndex("s", length=2)]


def row():
    return st.tuples(*(st.none() | CONTENT[name] for name in KINDS))


@pytest.mark.slow
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    objects=st.lists(st.lists(row(), max_size=7), min_size=1, max_size=3),
    file_format=st.sampled_from(["parquet", "parquet", "orc"]),
    dictionary=st.booleans(),
    rows_at_once=st.sampled_from([1, 3, 4096]),
    off_heap=st.booleans(),
)
def test_columns_equal_rows(spark, tmp_path, objects, file_format, dictionary, rows_at_once, off_heap):
    folder = str(tmp_path / "d")
    ddl = ", ".join(f"{name} {type_}" for name, type_ in KINDS.items())
    for number, content in enumerate(objects):
        frame = spark.createDataFrame(content, ddl).coalesce(1).write.mode("append" if number else "overwrite")
        frame.option("parquet.enable.dictionary", str(dictionary).lower()).format(file_format).save(folder)
    reading = {
        "spark.sql.parquet.columnarReaderBatchSize": str(rows_at_once),
        "spark.sql.orc.columnarReaderBatchSize": str(rows_at_once),
        "spark.sql.columnVector.offheap.enabled": str(off_heap).lower(),
    }
    with conf(spark, reading):
        assert_equal_as_rows(lambda: spark.read.schema(ddl).format(file_format).load(folder), *all_indexes())


def test_more_rows_than_go_at_once(spark, tmp_path):
    """Values carry over from one batch to the next, NULLs and arrays among them.

    Boxes are not among the indexes: which of them merge depends on the parts in which the rows come.
    """
    frame = spark.range(0, 200_000, 1, 1).selectExpr(
        "id",
        "nullif(id % 7, 0) AS n",
        "if(id % 5 = 0, NULL, concat('text ', id)) AS s",
        "if(id % 3 = 0, NULL, array(id, NULL, id % 11)) AS a",
        "id % 2 = 0 AS b",
        "CAST(id AS DOUBLE) / 1e4 AS g",
    )
    frame.write.parquet(str(tmp_path / "d"))
    kinds = [MinMaxIndex("id"), ValueListIndex("n"), ValueListIndex("s"), ValueListIndex("a"), ValueListIndex("b")]
    others = [BloomFilterIndex("s"), BloomFilterIndex("a"), MinMaxIndex("g")]
    (found,) = assert_equal_as_rows(lambda: spark.read.parquet(str(tmp_path / "d")), *kinds, *others)
    assert found["row_count"] == 200_000
    assert len(found["2:values"]) == 160_000


@pytest.mark.parametrize("off_heap", ["false", "true"])
def test_elements_that_are_null_beside_a_small_dictionary(spark, tmp_path, off_heap):
    """Where an element is NULL the reader has the number of an entry of the last row group's larger dictionary."""
    (tmp_path / "d").mkdir()
    arrays = [[n, n + 1, n + 2] for n in range(900)] + [[None, 1, None]] * 900
    pq.write_table(
        pa.table({"a": pa.array(arrays, pa.list_(pa.int32()))}), tmp_path / "d" / "x.parquet", row_group_size=900
    )
    with conf(spark, {"spark.sql.columnVector.offheap.enabled": off_heap}):
        (found,) = assert_equal_as_rows(
            lambda: spark.read.parquet(str(tmp_path / "d")), BloomFilterIndex("a"), ValueListIndex("a")
        )
    assert found["row_count"] == 1_800
    assert sorted(found["1:values"]) == list(range(902))


def test_columns_that_a_file_does_not_have(spark, tmp_path):
    """A missing column is NULL, or what the table says that it is; a partition's value is the same for all rows."""
    spark.sql("SELECT 1 AS a, 'x' AS s, 1 AS p").write.partitionBy("p").parquet(str(tmp_path / "d"))
    spark.sql("SELECT 2 AS a, 2 AS p").write.partitionBy("p").mode("append").parquet(str(tmp_path / "d"))
    kinds = [ValueListIndex(name) for name in ("a", "s", "p")]
    found = assert_equal_as_rows(
        lambda: spark.read.schema("a INT, s STRING, p INT").parquet(str(tmp_path / "d")), *kinds
    )
    assert sorted((r["0:values"], r["1:values"], r["2:values"]) for r in found) == [([1], ["x"], [1]), ([2], [], [2])]


@pytest.mark.parametrize(
    ("reader", "index"),
    [
        (lambda spark, folder: spark.read.schema("n INT").csv(folder), ValueListIndex("n")),
        (lambda spark, folder: spark.read.schema("n INT").json(folder), ValueListIndex("n")),
    ],
    ids=["csv", "json"],
)
def test_other_readers_give_rows(spark, tmp_path, reader, index):
    (tmp_path / "a").write_text('{"n": 1}\n')
    assert not carried(reader(spark, str(tmp_path)), index)
