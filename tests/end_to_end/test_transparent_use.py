"""Queries are pruned without being rewritten: every way of reading an indexed dataset."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import functions as F
from tests.support import assert_same_rows, conf, skipping_off, write_objects

from skipstone import Dataset, MinMaxIndex, ValueListIndex, last_query, skipping_stats

SCHEMA = "id int, name string"
OBJECTS = tuple(", ".join(f"({10 * n + i}, 'name {n}')" for i in range(10)) for n in range(8))


@pytest.fixture(scope="module")
def dataset(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("transparent") / "some data"
    path = write_objects(spark, folder, SCHEMA, OBJECTS)
    Dataset.for_path(spark, path).create_indexes(MinMaxIndex("id"), ValueListIndex("name"))
    return path


def objects_of(spark, df):
    """Plan and run a query; give the counts of its only scan."""
    with skipping_stats(spark) as stats:
        df.collect()
    assert len(stats) == 1
    return stats[0].objects


@pytest.mark.parametrize("format", ["parquet", "orc", "json", "csv", "text"])
def test_every_format(spark, tmp_path, format):  # noqa: A002
    schema, objects, predicate = SCHEMA, OBJECTS[:4], "id = 25"
    if format == "text":
        schema, objects, predicate = "value string", tuple(f"('line {n}')" for n in range(4)), "value = 'line 2'"
    path = write_objects(spark, tmp_path / "d", schema, objects, format)
    df = spark.read.format(format).schema(schema).load(path)
    kinds = (MinMaxIndex, ValueListIndex)
    Dataset(df).create_indexes(*(kind("*") for kind in kinds))
    counts = objects_of(spark, df.where(predicate))
    assert (counts.total, counts.kept, counts.skipped) == (4, 1, 3)
    assert assert_same_rows(spark, df.where(predicate)) == 3


def test_sql_on_a_path_and_a_view(spark, dataset):
    assert objects_of(spark, spark.sql(f"SELECT * FROM parquet.`{dataset}` WHERE id = 33")).kept == 1
    spark.read.parquet(dataset).createOrReplaceTempView("transparent")
    assert objects_of(spark, spark.sql("SELECT name FROM transparent WHERE id BETWEEN 33 AND 44")).kept == 2
    spark.sql("CREATE OR REPLACE TEMP VIEW narrowed AS SELECT id AS key FROM transparent WHERE id > 20")
    assert objects_of(spark, spark.sql("SELECT * FROM narrowed WHERE key < 30")).kept == 1


def test_input_files_agree_with_kept(spark, dataset):
    df = spark.read.parquet(dataset).where("id IN (5, 71)")
    assert len(df.inputFiles()) == objects_of(spark, df.select("id")).kept == 2


def test_explain_names_the_file_index(spark, dataset):
    text = spark.read.parquet(dataset).where("id = 5")._jdf.queryExecution().toString()
    assert "SkipstoneFileIndex" in text


def test_one_file_a_glob_and_several_paths(spark, dataset):
    one = f"{dataset}/object-0003.snappy.parquet"
    assert objects_of(spark, spark.read.parquet(one).where("id = 5")).skipped == 1
    assert objects_of(spark, spark.read.parquet(f"{dataset}/object-000[0-3]*").where("id = 5")).skipped == 3
    several = spark.read.parquet(*(f"{dataset}/object-000{n}.snappy.parquet" for n in (1, 2, 5)))
    counts = objects_of(spark, several.where("id = 25"))
    assert (counts.total, counts.kept) == (3, 1)


def test_two_datasets_in_one_read(spark, tmp_path):
    first = write_objects(spark, tmp_path / "first", SCHEMA, OBJECTS[:3])
    second = write_objects(spark, tmp_path / "second", SCHEMA, OBJECTS[3:6])
    Dataset.for_path(spark, first).create_indexes(MinMaxIndex("id"))
    Dataset.for_path(spark, second).create_indexes(ValueListIndex("name"))
    both = spark.read.parquet(first, second)
    assert objects_of(spark, both.where("id = 15")).skipped == 2
    assert objects_of(spark, both.where("id = 15 AND name = 'name 1'")).skipped == 5


def test_partition_columns_and_indexed_columns_together(spark, tmp_path):
    folder = tmp_path / "d"
    for day in ("2024-01-01", "2024-01-02", "a b#%+ü"):
        write_objects(
            spark, folder / f"day={day.replace('%', '%25').replace('#', '%23')}", "id int", ("(1)", "(2)", "(3)")
        )
    df = spark.read.parquet(str(folder))
    Dataset(df).create_indexes(MinMaxIndex("id"), ValueListIndex("day"))
    counts = objects_of(spark, df.where("day = '2024-01-02' AND id = 2"))
    assert (counts.total, counts.kept, counts.skipped) == (3, 1, 2)
    assert objects_of(spark, df.where("id = 3")).kept == 3
    assert assert_same_rows(spark, df.where("day LIKE 'a%' AND id > 1")) == 1
    assert objects_of(spark, df.where("concat(day, 'x') = '2024-01-01x' AND id = 1")).kept in (1, 3)
    below = spark.read.parquet(str(folder / "day=2024-01-01"))
    assert objects_of(spark, below.where("id = 3")).skipped == 2


@pytest.mark.parametrize("partitioned", [False, True], ids=["plain", "partitioned"])
@pytest.mark.parametrize("by_table", [False, True], ids=["indexed by path", "indexed by table"])
def test_catalog_table(spark, tmp_path, partitioned, by_table):
    location = tmp_path / "a table"
    by = "PARTITIONED BY (p)" if partitioned else ""
    spark.sql(f"CREATE TABLE things (id INT, name STRING, p INT) USING parquet {by} LOCATION '{location}'")
    try:
        for n in range(4):
            spark.sql(f"INSERT INTO things VALUES ({n}, 'n{n}', {n % 2})")
        handle = Dataset.for_table(spark, "things") if by_table else Dataset.for_path(spark, str(location))
        handle.create_indexes(MinMaxIndex("id"), ValueListIndex("name"))
        assert objects_of(spark, spark.table("things").where("id = 2")).kept == 1
        counts = objects_of(spark, spark.sql("SELECT * FROM things WHERE p = 0 AND name = 'n2'"))
        assert counts.kept == 1
        assert counts.total == (2 if partitioned else 4)
        assert objects_of(spark, spark.read.parquet(str(location)).where("id = 1")).kept == 1
        assert assert_same_rows(spark, spark.table("things").where("id >= 2")) == 2
    finally:
        spark.sql("DROP TABLE things")


def test_a_pruned_side_becomes_a_broadcast(spark, dataset, tmp_path):
    other = spark.read.parquet(write_objects(spark, tmp_path / "other", SCHEMA, OBJECTS))
    spark.sql(f"CREATE TABLE analyzed USING parquet LOCATION '{dataset}'")
    try:
        spark.sql("ANALYZE TABLE analyzed COMPUTE STATISTICS")
        size = int(spark.sql("DESCRIBE EXTENDED analyzed").where("col_name = 'Statistics'").first()[1].split(" ")[0])
        query = "SELECT /*+ NO_HINT */ * FROM analyzed a JOIN other o ON a.id = o.id + 0 WHERE a.id < 10"
        other.createOrReplaceTempView("other")
        limit = {"spark.sql.autoBroadcastJoinThreshold": str(size // 2), "spark.sql.adaptive.enabled": "false"}
        with conf(spark, limit):
            assert (
                "BroadcastHashJoin" in spark.sql(query.replace("/*+ NO_HINT */", ""))._jdf.queryExecution().toString()
            )
            with skipping_off(spark):
                plan = spark.sql(query.replace("/*+ NO_HINT */", ""))._jdf.queryExecution().toString()
                assert "BroadcastHashJoin" not in plan
    finally:
        spark.sql("DROP TABLE analyzed")


def test_self_join_with_two_filters_is_two_decisions(spark, dataset):
    df = spark.read.parquet(dataset)
    joined = df.where("id < 10").alias("a").join(df.where("id >= 60").alias("b"), F.expr("a.id + 60 = b.id"))
    with conf(spark, {"spark.skipstone.joins": "false"}), skipping_stats(spark) as stats:
        assert joined.count() == 10
    assert sorted(s.objects.kept for s in stats) == [1, 2]
    with skipping_stats(spark) as stats:  # and the keys of the one side leave out an object of the other
        assert joined.count() == 10
    assert sorted(s.objects.kept for s in stats) == [1, 1]
    assert assert_same_rows(spark, joined) > 0


def test_exchanges_of_different_decisions_are_not_shared(spark, dataset):
    df = spark.read.parquet(dataset)
    few, many = (df.where(p).groupBy("name").agg(F.count("*").alias("n")) for p in ("id < 10", "id < 40"))
    assert few.union(many).count() == 5
    assert assert_same_rows(spark, few.union(many).union(few)) > 0


def test_subqueries_unions_and_ctes(spark, dataset):
    spark.read.parquet(dataset).createOrReplaceTempView("t")
    for query in (
        "SELECT * FROM t WHERE id = (SELECT max(id) FROM t WHERE id < 25)",
        "SELECT * FROM t WHERE id IN (SELECT id + 10 FROM t WHERE id < 5)",
        "SELECT * FROM t a WHERE id > 60 AND EXISTS (SELECT 1 FROM t b WHERE b.id = a.id - 60 AND b.id < 10)",
        "SELECT * FROM t WHERE id < 5 UNION ALL SELECT * FROM t WHERE id > 75",
        "WITH c AS (SELECT * FROM t WHERE id < 30) SELECT a.id FROM c a JOIN c b ON a.id = b.id WHERE a.id > 20",
        "SELECT (SELECT count(*) FROM t WHERE id > 70), (SELECT count(*) FROM t WHERE id < 10)",
        "SELECT name, count(*) FROM t WHERE id > 50 GROUP BY name HAVING count(*) > 1",
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY name ORDER BY id) r FROM t) "
        "WHERE name = 'name 3' AND r = 2",
        "SELECT * FROM (SELECT * FROM t ORDER BY id LIMIT 15) WHERE id > 12",
    ):
        assert_same_rows(spark, spark.sql(query))
    assert assert_same_rows(spark, spark.sql("SELECT * FROM t WHERE id = (SELECT max(id) FROM t WHERE id < 25)")) >= 5


def test_udfs_stay_in_the_condition(spark, dataset):
    odd = F.udf(lambda x: x % 2 == 1, "boolean")
    df = spark.read.parquet(dataset).where(odd("id") & (F.col("id") < 10))
    assert assert_same_rows(spark, df) == 7


def test_nondeterministic_terms_are_never_labelled(spark, dataset):
    df = spark.read.parquet(dataset)
    assert df.where("id = 5 OR rand() >= 0").count() == 80
    assert df.where("NOT (id = 5 AND rand() < 0)").count() == 80
    assert assert_same_rows(spark, df.where("id = 5 AND rand() >= 0")) == 7


def test_metadata_columns_in_the_filter(spark, dataset):
    df = spark.read.parquet(dataset).where("_metadata.file_name LIKE 'object-0003%' AND id < 35")
    assert assert_same_rows(spark, df) > 0


def test_caching_before_and_after(spark, dataset):
    df = spark.read.parquet(dataset).where("id = 12").cache()
    try:
        assert df.count() == 1
        assert df.where("id = 12").count() == 1
    finally:
        df.unpersist()


def test_streaming_reads(spark, dataset):
    out = []
    stream = spark.readStream.schema(SCHEMA).parquet(dataset).where("id = 42")
    query = (
        stream.writeStream.foreachBatch(lambda batch, _: out.extend(batch.collect())).trigger(availableNow=True).start()
    )
    query.awaitTermination(60)
    assert [row.id for row in out] == [42]


def test_insert_overwrite_from_itself_keeps_its_rows(spark, tmp_path):
    spark.sql(f"CREATE TABLE own (id INT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path / 'own'}'")
    try:
        for n in range(3):
            spark.sql(f"INSERT INTO own VALUES ({n}, {n})")
        Dataset.for_table(spark, "own").create_indexes(MinMaxIndex("id"))
        spark.sql("INSERT INTO own SELECT id + 10, 5 FROM own WHERE id = 1")
        assert sorted(r.id for r in spark.table("own").collect()) == [0, 1, 2, 11]
        assert spark.table("own").where("id = 11").count() == 1
    finally:
        spark.sql("DROP TABLE own")


def test_threads_plan_at_the_same_time_and_see_their_own(spark, dataset):
    problems = []

    def work(n):
        try:
            for i in range(5):
                value = 10 * n + i
                with skipping_stats(spark) as stats:
                    assert spark.read.parquet(dataset).where(f"id = {value}").count() == 1
                assert [s.objects.kept for s in stats] == [1]
                assert f"{value}" in last_query(spark)[0].condition
        except Exception as error:  # noqa: BLE001
            problems.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_large_predicates(spark, dataset):
    df = spark.read.parquet(dataset)
    values = ", ".join(str(10_000 + i) for i in range(10_000))
    assert objects_of(spark, df.where(f"id IN ({values}, 7)")).kept == 1
    wide = " OR ".join(f"(id = {1000 + i} AND name = 'x{i}')" for i in range(1000))
    assert objects_of(spark, df.where(wide)).skipped == 8
    deep = "id = 3"
    for i in range(100):
        deep = f"({deep} {'OR' if i % 2 else 'AND'} id {'=' if i % 2 else '<'} {3 if i % 2 else 1000 + i})"
    assert objects_of(spark, df.where(deep)).kept == 1


def test_what_is_nested_too_deep_is_said_and_the_rest_still_skips(spark, dataset):
    df = spark.read.parquet(dataset)
    for _ in range(250):
        df = df.select("id", F.reverse("name").alias("name"))
    query = df.where("id = 3 AND name <> 'x'")
    assert_same_rows(spark, query)
    query.count()
    (scan,) = last_query(spark)
    assert scan.objects.kept == 1
    assert any("nested deeper than 200 levels" in reason for reason in scan.not_used)
