"""Arrays and maps through Spark's own optimizer: the same rows with and without skipping, and objects skipped."""

from __future__ import annotations

import math

import pytest
from tests.indexes.element_trees import (
    array_contains,
    arrays_overlap,
    constant_array,
    exists,
    item,
    leaves,
    map_part,
    map_value,
    truth,
)

import skipstone
from skipstone import BloomFilterIndex, Dataset, HybridIndex, ValueListIndex
from skipstone.errors import UnsupportedTypeError
from skipstone.expressions.tree import Column, Literal

OBJECTS = 12

# An object in twelve has what the query asks for: each has elements of its own, NULL and NaN in some only.
ROWS = """
SELECT id, part,
       CASE WHEN id % 5 = 0 THEN NULL WHEN id % 5 = 1 THEN array()
            ELSE array(concat('t', part), IF(part % 4 = 3, NULL, concat('u', part, '_', id))) END AS tags,
       CASE WHEN id % 5 = 0 THEN NULL ELSE array(int(part * 10), int(part * 10 + id % 5), IF(part = 7, NULL, 0)) END
         AS nums,
       array(CASE WHEN part = 2 THEN double('NaN') WHEN part = 5 THEN -0.0D ELSE part + 0.5D END) AS doubles,
       array(float(part + 0.5)) AS floats,
       array(part % 3 = 0) AS flags,
       array(cast(part + 0.25 AS DECIMAL(10,2))) AS decimals,
       array(date_add(DATE'2020-01-01', int(part))) AS dates,
       array(timestamp_micros(part * 1000001)) AS instants,
       array(TIMESTAMP_NTZ'2020-01-01 00:00:00' + make_dt_interval(int(part), 0, 0, 0.000001)) AS walls,
       array(make_dt_interval(int(part), 0, 0, 0.000001)) AS spans,
       array(cast(concat('b', part) AS BINARY)) AS bytes,
       map(concat('k', part), int(part), 'all', IF(part % 2 = 0, NULL, 100 + int(part))) AS attrs,
       map(int(part), concat('v', part)) AS by_number,
       map(concat('f', part), part % 2 = 0) AS switches,
       named_struct('tags', array(concat('s', part)), 'x', 1) AS s,
       array(named_struct('f', int(part))) AS structs,
       int(part * 10) AS n, concat('t', part) AS w
FROM (SELECT id, id DIV 20 AS part FROM range(0, {rows}, 1, {objects}))
"""

SERVED = [
    "array_contains(tags, 't3')",
    "array_contains(tags, 'u4_84')",
    "array_contains(nums, 31)",
    "array_contains(nums, 31L)",
    "array_contains(doubles, double('NaN'))",
    "array_contains(doubles, 0.0D)",
    "array_contains(doubles, -0.0D)",
    "array_contains(doubles, 3.5)",
    "array_contains(floats, 3.5D)",
    "array_contains(flags, true)",
    "array_contains(decimals, 3.25)",
    "array_contains(decimals, CAST(3.25 AS DECIMAL(12,3)))",
    "array_contains(dates, DATE'2020-01-04')",
    "array_contains(instants, TIMESTAMP'1970-01-01 00:00:03.000003Z')",
    "array_contains(walls, TIMESTAMP_NTZ'2020-01-04 00:00:00.000001')",
    "array_contains(spans, INTERVAL '3 00:00:00.000001' DAY TO SECOND)",
    "array_contains(bytes, cast('b3' AS BINARY))",
    "array_contains(s.tags, 's3')",
    "arrays_overlap(tags, array('t3', 'nowhere', NULL))",
    "arrays_overlap(array('t3', 't4'), tags)",
    "arrays_overlap(nums, array(31L, 7L))",
    "arrays_overlap(doubles, array(double('NaN'), 77.0D))",
    "arrays_overlap(bytes, array(cast('b3' AS BINARY)))",
    "exists(tags, x -> x = 't3')",
    "exists(tags, x -> x IN ('t3', 't4'))",
    "exists(tags, x -> x LIKE 't_')",
    "exists(tags, x -> x LIKE 'u4%')",
    "exists(tags, x -> x LIKE '%4_8%4' OR x = 't7')",
    "exists(tags, x -> x IS NULL)",
    "exists(nums, x -> x IS NULL)",
    "exists(nums, x -> x > 30 AND x < 34)",
    "exists(nums, x -> x BETWEEN 30 AND 34 AND n = 30)",
    "exists(nums, x -> 100 < x)",
    "exists(nums, x -> NOT (x <= 100))",
    "exists(nums, x -> x IN (1, 2, 3, 4, 5, 6, 31, 8, 9, 11, 12, 13))",
    "exists(nums, x -> exists(tags, y -> y = 't3' AND x > 0))",
    "exists(doubles, x -> isnan(x))",
    "exists(doubles, x -> x > 10)",
    "exists(flags, x -> x)",
    "exists(flags, x -> NOT x)",
    "exists(dates, x -> x >= DATE'2020-01-10')",
    "map_contains_key(attrs, 'k3')",
    "array_contains(map_keys(attrs), 'k3')",
    "array_contains(map_values(attrs), 103)",
    "arrays_overlap(map_keys(attrs), array('k3', 'k4'))",
    "exists(map_keys(attrs), k -> k LIKE 'k1%')",
    "exists(map_values(attrs), v -> v IS NULL)",
    "exists(map_values(attrs), v -> v > 108)",
    "map_contains_key(by_number, 3)",
    "map_contains_key(by_number, 3L)",
    "attrs['k3'] = 3",
    "attrs['all'] = 103",
    "attrs['all'] > 108",
    "attrs['k3'] IS NOT NULL",
    "attrs['k3'] IN (3, 4)",
    "attrs[concat('k', n DIV 10)] = 3",
    "element_at(attrs, 'k3') = 3",
    "try_element_at(attrs, 'k3') = 3",
    "by_number[3] LIKE '%3'",
    "switches['f4']",
    "NOT switches['f3']",
    "get(tags, 0) = 't3'",
    "get(tags, 0) LIKE 't3%'",
    "get(tags, 0) <=> 't3'",
    "get(tags, 1) LIKE 'u4%'",
    "try_element_at(tags, -1) LIKE 'u4%'",
    "get(tags, int(id % 5) - 2) = 't3'",
    "s.tags[0] = 's3'",
    "array_max(nums) > 110",
    "array_min(dates) >= DATE'2020-01-10'",
    "array_contains(tags, 't3') OR array_contains(nums, 50)",
    "array_contains(tags, 't3') AND NOT array_contains(nums, 31)",
    "NOT (array_contains(tags, 't3') IS DISTINCT FROM true)",
]
NOT_SERVED = [
    "NOT array_contains(tags, 't3')",
    "NOT exists(tags, x -> x = 't3')",
    "forall(tags, x -> x = 't3')",
    "get(tags, 0) IS NULL",
    "attrs['k3'] IS NULL",
    "NOT map_contains_key(attrs, 'k3')",
    "tags IS NULL",
    "tags IS NOT NULL",
    "size(tags) = 0",
    "tags = array('t1', 'u1_22')",
    "exists(structs, x -> x.f = 3)",
    "array_contains(structs.f, 3)",
    "exists(tags, x -> upper(x) = 'T3')",
    "exists(transform(tags, x -> upper(x)), y -> y = 't3')",
    "exists(nums, x -> x = n)",
    "coalesce(attrs['k3'], 0) = 0",
    "array_contains(tags, 't3') IS NULL",
    "array_contains(tags, 't3') OR size(tags) = 0",
    "array_contains(array('t3', 't4'), w)",
]
INDEXED = {
    "arrays": (
        "tags", "nums", "doubles", "floats", "flags", "decimals", "dates", "instants", "walls", "spans", "bytes",
        "s.tags",
    ),
    "keys": ("attrs", "by_number", "switches"),
    "values": ("attrs", "by_number", "switches"),
}  # fmt: skip
MAKERS = {
    "valuelist": ValueListIndex,
    "bloomfilter": lambda column, **of: BloomFilterIndex(column, fpp=0.0001, **of),
    "hybrid": lambda column, **of: HybridIndex(column, threshold=3, **of),
}
# What a Bloom filter, also that of a hybrid index, cannot say: orders, patterns and NaN as such.
ONLY_LISTED = (" > ", " < ", "LIKE", "BETWEEN", ">=", "<=", "isnan", "NOT x")


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory):
    place = str(tmp_path_factory.mktemp("elements") / "data")
    spark.sql(ROWS.format(rows=20 * OBJECTS, objects=OBJECTS)).write.parquet(place)
    return place


def indexed(kind):
    make = MAKERS[kind]
    found = [make(column) for column in INDEXED["arrays"]]
    return found + [make(column, of=of) for of in ("keys", "values") for column in INDEXED[of]]


def asked(spark, folder, predicate):
    """Return the rows of a query with skipping, and how many objects were skipped."""
    with skipstone.skipping_stats(spark) as stats:
        found = sorted(row.id for row in spark.read.parquet(folder).where(predicate).select("id").collect())
    return found, stats[-1].objects


@pytest.fixture(scope="module")
def truths(spark, folder):
    """Every row's object and number, and what Spark says of it, predicate by predicate; nothing is skipped."""
    names = {predicate: f"p{number}" for number, predicate in enumerate(SERVED + NOT_SERVED)}
    columns = [f"{predicate} AS {name}" for predicate, name in names.items()]
    rows = spark.read.parquet(folder).selectExpr("_metadata.file_name AS file", "id", *columns).collect()
    return {predicate: [(row.file, row.id) for row in rows if row[name]] for predicate, name in names.items()}


def test_every_query_that_is_served_selects_something(truths):
    assert [predicate for predicate in SERVED if not truths[predicate]] == []


def test_every_function_gives_its_rows_and_skips(spark, folder, truths):
    dataset = Dataset.for_path(spark, folder)
    dataset.create_indexes(*indexed("valuelist"))
    try:
        for predicate in SERVED + NOT_SERVED:
            found, objects = asked(spark, folder, predicate)
            assert found == sorted(number for _, number in truths[predicate]), predicate
            assert objects.total == OBJECTS
            assert objects.skipped > 0 or predicate in NOT_SERVED, predicate
    finally:
        dataset.drop_indexes()


@pytest.mark.parametrize("kind", ["bloomfilter", "hybrid"])
def test_hashed_elements_lose_no_object_and_skip(spark, folder, truths, kind):
    dataset = Dataset.for_path(spark, folder)
    dataset.create_indexes(*indexed(kind))
    try:
        for predicate in SERVED + NOT_SERVED:
            kept = {file.rpartition("/")[2] for file in spark.read.parquet(folder).where(predicate).inputFiles()}
            assert kept >= {file for file, _ in truths[predicate]}, predicate
            if predicate in SERVED and not any(word in predicate for word in ONLY_LISTED):
                assert len(kept) < OBJECTS, predicate
    finally:
        dataset.drop_indexes()


def test_what_is_stored_is_exact(spark, folder):
    dataset = Dataset.for_path(spark, folder)
    report = dataset.create_indexes(*indexed("valuelist"))
    try:
        names = [row["name"] for row in dataset.describe().collect()]
        assert "valuelist(tags)" in names
        assert "valuelist(attrs, of='keys')" in names
        assert not report.problems
        for micros, kept in ((3000003, 1), (3000002, 0)):  # an instant is in one object, to the microsecond
            query = spark.read.parquet(folder).where(f"array_contains(instants, timestamp_micros({micros}))")
            assert len(query.inputFiles()) == kept
    finally:
        dataset.drop_indexes()


def test_star_takes_arrays_and_leaves_maps(spark, folder):
    dataset = Dataset.for_path(spark, folder)
    dataset.create_indexes(ValueListIndex("*"), ValueListIndex("*", of="keys"))
    try:
        names = {row["name"] for row in dataset.describe().collect()}
    finally:
        dataset.drop_indexes()
    assert {"valuelist(tags)", "valuelist(id)", "valuelist(attrs, of='keys')"} <= names
    assert not names & {"valuelist(attrs)", "valuelist(structs)", "valuelist(s)", "valuelist(tags, of='keys')"}


def test_a_map_needs_a_part(spark, folder):
    with pytest.raises(UnsupportedTypeError, match='of="keys" or of="values"'):
        Dataset.for_path(spark, folder).create_indexes(ValueListIndex("attrs"))
    with pytest.raises(UnsupportedTypeError, match="is for maps"):
        Dataset.for_path(spark, folder).create_indexes(BloomFilterIndex("tags", of="keys"))


def test_the_oracle_is_spark(spark):
    """The truth that the exhaustive tests go by is what Spark says, for NULL, NaN, and both zeros."""
    rows = [None, [], [None], [1.0], [math.nan], [-0.0], [0.0, None], [math.nan, 2.0]]
    frame = spark.createDataFrame([(row,) for row in rows], "c array<double>")
    column = Column("c", "array<double>")
    pairs = [
        ("array_contains(c, 1.0D)", array_contains(column, Literal(1.0, "double"))),
        ("array_contains(c, 0.0D)", array_contains(column, Literal(0.0, "double"))),
        ("array_contains(c, double('NaN'))", array_contains(column, Literal(math.nan, "double"))),
        ("arrays_overlap(c, array(1.0D, NULL))", arrays_overlap(column, constant_array("double", 1.0, None))),
        ("arrays_overlap(c, array(double('NaN')))", arrays_overlap(column, constant_array("double", math.nan))),
        ("get(c, 0) >= 1", leaves(item(column, 0, "double"), "double")[26]),
        ("exists(c, x -> x > 1)", exists(column, lambda x: leaves(x, "double")[22], "double")),
        ("exists(c, x -> x IS NULL)", exists(column, lambda x: leaves(x, "double")[34], "double")),
    ]
    for row in frame.selectExpr("c", *(sql for sql, _ in pairs)).collect():
        for (sql, node), said in zip(pairs, row[1:], strict=True):
            assert truth(node, {"c": row.c}) is said, (sql, str(node), row.c)


def test_the_oracle_of_maps_is_spark(spark):
    frame = spark.sql("SELECT * FROM VALUES (map('k', 1)), (map('k', NULL)), (map('j', 1)), (map()), (NULL) AS t(c)")
    column = Column("c", "map<string,int>")
    key = Literal("k", "string")
    pairs = [
        ("c['k'] = 1", leaves(map_value(column, key, "int"), "int")[0]),
        ("map_contains_key(c, 'k')", array_contains(map_part(column, "keys", "string"), key)),
        ("array_contains(map_values(c), 1)", array_contains(map_part(column, "values", "int"), Literal(1, "int"))),
    ]
    for row in frame.selectExpr("c", *(sql for sql, _ in pairs)).collect():
        value = None if row.c is None else list(row.c.items())
        for (sql, node), said in zip(pairs, row[1:], strict=True):
            assert truth(node, {"c": value}) is said, (sql, row.c)
