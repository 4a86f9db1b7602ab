"""Attacks: everything a query can put between a filter and its files, and everything that plans at the same time."""

from __future__ import annotations

import threading
from functools import reduce

import pyarrow as pa
import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, LongType

import skipstone
from skipstone import BloomFilterIndex, Dataset, HybridIndex, MinMaxIndex, ValueListIndex
from tests.soundness.attack import parquet, rows_of, same_answers, same_rows
from tests.support import conf, skipping_off

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def facts(spark, tmp_path_factory):
    """Twelve objects of ten rows: n rises, k is 0 … 3, v has NULL and NaN, s is text, arr and m are nested."""
    folder = tmp_path_factory.mktemp("facts") / "facts"
    struct = pa.struct([("x", pa.int64()), ("y", pa.string())])
    objects = []
    for o in range(12):
        n = [o * 10 + i for i in range(10)]
        objects.append(
            {
                "n": n,
                "k": [o % 4] * 10,
                "v": [None if x % 7 == 0 else float("nan") if x % 11 == 0 else x / 2 for x in n],
                "s": [f"o{o:02d}-{x:03d}" for x in n],
                "flag": pa.array([None if o == 5 else o % 2 == 0] * 10, pa.bool_()),
                "arr": [[{"x": x}, {"x": -x}] for x in n],
                "st": pa.array([{"x": x, "y": None if o == 3 else f"y{o}"} for x in n], struct),
            }
        )
    path = parquet(folder, *objects)
    df = spark.read.parquet(path)
    Dataset(df).create_indexes(
        *(t(c) for t in (MinMaxIndex, ValueListIndex, BloomFilterIndex, HybridIndex) for c in ("*", "st.x", "st.y"))
    )
    df.createOrReplaceTempView("facts")
    return path


QUERIES = """
SELECT count(DISTINCT k), count(*) FROM facts WHERE n < 35
SELECT * FROM facts WHERE n = 17
SELECT * FROM (SELECT * FROM facts LIMIT 200) WHERE n = 115
SELECT count(*) FROM (SELECT * FROM facts WHERE n > 50 LIMIT 1000) WHERE n < 60
SELECT * FROM (SELECT *, row_number() OVER (ORDER BY n) r FROM facts) WHERE n = 55
SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY n) r FROM facts) WHERE k = 2 AND r <= 3
SELECT * FROM (SELECT *, lag(n) OVER (PARTITION BY k ORDER BY n) l FROM facts) WHERE n = 40
SELECT k, max(n) m FROM facts GROUP BY k HAVING m > 115
SELECT k, max(n) m FROM facts WHERE n < 30 GROUP BY k HAVING k = 1
SELECT max(n) FILTER (WHERE n < 20), min(n) FILTER (WHERE n > 100), count(*) FROM facts
SELECT (SELECT max(n) FROM facts WHERE n < 20) a, (SELECT max(n) FROM facts WHERE n < 90) b, (SELECT max(k) FROM facts)
SELECT * FROM facts WHERE n = (SELECT max(n) FROM facts WHERE k = 1)
SELECT * FROM facts WHERE n IN (SELECT n FROM facts WHERE s LIKE 'o03%') AND k = 3
SELECT * FROM facts WHERE n NOT IN (SELECT n FROM facts WHERE n > 5)
SELECT * FROM facts a WHERE EXISTS (SELECT 1 FROM facts b WHERE b.n = a.n + 100 AND b.k = 2)
SELECT * FROM facts a WHERE NOT EXISTS (SELECT 1 FROM facts b WHERE b.n = a.n + 1)
SELECT * FROM facts a WHERE n > (SELECT avg(n) FROM facts b WHERE b.k = a.k) AND n < 70
SELECT a.n, b.n FROM facts a JOIN facts b ON a.n = b.n WHERE a.n < 15 AND b.n > 10
SELECT a.n, b.n FROM facts a LEFT JOIN facts b ON a.n = b.n AND b.n > 10 WHERE a.n < 15
SELECT a.n, b.n FROM facts a RIGHT JOIN facts b ON a.n = b.n AND a.n > 112 WHERE b.n > 110
SELECT a.n, b.n FROM facts a FULL JOIN facts b ON a.n = b.n + 115 WHERE a.n > 112 OR a.n IS NULL AND b.n < 3
SELECT a.n FROM facts a LEFT SEMI JOIN facts b ON a.n = b.n AND b.k = 1 WHERE a.n < 60
SELECT a.n FROM facts a LEFT ANTI JOIN facts b ON a.n = b.n AND b.n > 3 WHERE a.n < 60
SELECT a.n, b.n FROM facts a, facts b WHERE a.n = 5 AND b.n = 105
SELECT n FROM facts WHERE n < 5 UNION ALL SELECT n FROM facts WHERE n > 115 UNION SELECT k FROM facts WHERE k = 2
SELECT n FROM facts EXCEPT SELECT n FROM facts WHERE n > 4
SELECT n FROM facts WHERE n < 40 INTERSECT SELECT n FROM facts WHERE n > 35
WITH c AS (SELECT * FROM facts) SELECT * FROM c x JOIN c y ON x.n = y.n WHERE x.n = 7 AND y.k = 0
WITH c AS (SELECT k, sum(n) t FROM facts WHERE n > 20 GROUP BY k) SELECT * FROM c a JOIN c b ON a.t = b.t WHERE a.k = 1
SELECT * FROM (SELECT n + 1 AS n, k FROM facts) WHERE n = 10
SELECT * FROM (SELECT k AS n, n AS k FROM facts) WHERE n = 2 AND k > 100
SELECT * FROM (SELECT coalesce(flag, true) AS flag, n FROM facts) WHERE flag
SELECT n, e.x FROM facts LATERAL VIEW explode(arr) t AS e WHERE e.x = -45
SELECT n, e.x FROM facts LATERAL VIEW OUTER explode(arr) t AS e WHERE n = 45
SELECT n FROM facts WHERE arr[0].x = 45
SELECT n FROM facts WHERE arr.x[1] = -45
SELECT n FROM facts WHERE exists(arr, e -> e.x = 33)
SELECT st FROM facts WHERE st.x = 45
SELECT st.y FROM facts WHERE st.y IS NULL
SELECT n FROM facts WHERE st = named_struct('x', 45L, 'y', 'y4')
SELECT n FROM facts WHERE st IS NULL OR st.y = 'y7'
SELECT n FROM facts WHERE struct(n, k) = struct(45L, 0L)
SELECT n FROM facts WHERE struct(n, k) IN (named_struct('n', 45L, 'k', 0L), named_struct('n', 46L, 'k', 1L))
SELECT n FROM facts WHERE flag
SELECT n FROM facts WHERE NOT flag
SELECT n FROM facts WHERE flag IS NULL
SELECT n FROM facts WHERE flag IS NOT TRUE
SELECT n FROM facts WHERE flag = (n > 50)
SELECT n FROM facts WHERE (n > 50) = (n < 60)
SELECT n FROM facts WHERE (n > 50) <=> NULL
SELECT n FROM facts WHERE (v > 50) IS NULL
SELECT n FROM facts WHERE NOT (v > 50 AND v < 55)
SELECT n FROM facts WHERE v > 58
SELECT n FROM facts WHERE v = double('NaN')
SELECT n FROM facts WHERE v <> 1.5
SELECT n FROM facts WHERE v NOT IN (1.5, 2.5)
SELECT n FROM facts WHERE v NOT IN (1.5, NULL)
SELECT n FROM facts WHERE v BETWEEN 55 AND double('NaN')
SELECT n FROM facts WHERE n = 5 AND rand() >= 0
SELECT n FROM facts WHERE n = 5 OR rand() < 0
SELECT n FROM facts WHERE n = 5 AND input_file_name() LIKE '%object-000%'
SELECT n FROM facts WHERE n > 5 AND _metadata.file_name = 'object-003.parquet'
SELECT n FROM facts WHERE n = 5 OR _metadata.file_name = 'object-003.parquet'
SELECT n FROM facts WHERE _metadata.file_size > 0 AND n = 5
SELECT n FROM facts WHERE _metadata.row_index = 3 AND n < 20
SELECT n, _metadata.row_index FROM facts WHERE n IN (5, 105)
SELECT n FROM facts WHERE n = 5 AND current_date() > DATE'2000-01-01'
SELECT n FROM facts WHERE if(n > 50, k = 1, k = 2) AND n BETWEEN 45 AND 75
SELECT n FROM facts WHERE CASE WHEN k = 1 THEN n > 100 WHEN k = 2 THEN NULL ELSE n < 3 END
SELECT n FROM facts WHERE coalesce(v, n) = 7
SELECT n FROM facts WHERE nullif(n, 5) IS NULL
SELECT n FROM facts WHERE s ILIKE 'O05%' OR s LIKE '%9'
SELECT n FROM facts WHERE s LIKE 'o0_-0_5'
SELECT n FROM facts WHERE s RLIKE '^o1'
SELECT n FROM facts WHERE substr(s, 1, 3) = 'o07'
SELECT n FROM facts WHERE CAST(n AS STRING) = '77'
SELECT n FROM facts WHERE CAST(n AS TINYINT) = 5
SELECT n FROM facts WHERE n = '77'
SELECT n FROM facts WHERE n = 77.0 OR n = 78.5D
SELECT n FROM facts WHERE n > 114.5
SELECT n FROM facts WHERE n < 18446744073709551616
SELECT n FROM facts WHERE n % 50 = 7
SELECT n FROM facts TABLESAMPLE (100 PERCENT) WHERE n = 5
SELECT * FROM (SELECT n, k FROM facts) PIVOT (sum(n) FOR k IN (0, 1)) WHERE `0` > 0
SELECT k, n FROM facts WHERE n < 13 ORDER BY n DESC LIMIT 2
SELECT DISTINCT k FROM facts WHERE n > 100
SELECT * FROM (SELECT DISTINCT n, k FROM facts) WHERE k = 3 AND n > 110
SELECT first(n) OVER (PARTITION BY k ORDER BY n) f, n FROM facts WHERE n > 110
SELECT n FROM facts WHERE n IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 114, NULL)
SELECT n FROM facts WHERE n NOT IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 114) AND n < 16
SELECT n FROM facts WHERE FALSE
SELECT n FROM facts WHERE CAST(NULL AS BOOLEAN)
SELECT count(*) FROM facts WHERE TRUE
SELECT count(*) FROM facts WHERE n = n
SELECT count(*) FROM facts WHERE v <=> v
SELECT x.n FROM facts x JOIN (SELECT k, min(n) m FROM facts WHERE n > 30 GROUP BY k) y ON x.n = y.m WHERE x.k = 2
SELECT grouping_id(), k, flag, count(*) FROM facts WHERE n < 25 GROUP BY CUBE (k, flag)
VALUES (1), (2)
FROM facts |> WHERE n > 115 |> SELECT n
SELECT n FROM facts, LATERAL (SELECT max(b.n) m FROM facts b WHERE b.k = facts.k AND b.n < 30) WHERE n = m
WITH RECURSIVE r(m) AS (SELECT 1L UNION ALL SELECT m + 40 FROM r WHERE m < 100) SELECT n FROM facts JOIN r ON n = m
SELECT n FROM facts WHERE flag > false AND n < 30
SELECT n FROM facts WHERE flag < true OR flag >= NULL
SELECT * FROM range(3) r JOIN facts f ON f.n = r.id * 40
""".strip().splitlines()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"spark.sql.adaptive.enabled": "false", "spark.sql.autoBroadcastJoinThreshold": "-1"},
        {
            "spark.sql.optimizer.runtime.bloomFilter.enabled": "true",
            "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
        },
        {"spark.sql.planMerge.enabled": "true", "spark.sql.ansi.enabled": "false"},
        {
            "spark.sql.optimizer.singleTaskExecution.enabled": "true",
            "spark.sql.optimizer.singleTaskExecution.maxNumFiles": "100",
        },
    ],
    ids=["default", "sort-merge joins", "runtime filters", "not ANSI", "single tasks"],
)
def test_every_shape_of_query(spark, facts, settings):
    skipped = 0
    with conf(spark, settings):
        for query in QUERIES if not settings else QUERIES[:40:2]:
            # A view does not pass hidden columns on.
            asked = query.replace("facts", f"parquet.`{facts}`") if "_metadata" in query else query
            skipped += same_rows(spark, asked)
    assert skipped > 100 if not settings else skipped > 20


def test_dataframe_operations(spark, facts):
    def df():
        return spark.read.parquet(facts)

    window = Window.partitionBy("k").orderBy("n")
    recipes = {
        "dropDuplicates": lambda: df().dropDuplicates(["k"]).select("k").where("k = 2"),
        "dropDuplicates on another column": lambda: df().orderBy("n").dropDuplicates(["k"]).select("k").where("k > 1"),
        "fillna": lambda: df().fillna({"v": -1.0}).where("v = -1"),
        "na.drop": lambda: df().na.drop(subset=["v"]).where("n < 20"),
        "replace": lambda: df().replace({17: 18}, subset=["n"]).where("n = 18"),
        "withColumn over it": lambda: df().withColumn("n", F.col("n") % 10).where("n = 3"),
        "withColumnRenamed": lambda: (
            df().withColumnRenamed("n", "m").withColumnRenamed("k", "n").where("n = 3 AND m > 70")
        ),
        "drop and add": lambda: df().drop("n").withColumn("n", F.lit(5)).where("n = 5").select("k", "n"),
        "unpivot": lambda: df().select("s", "n", "k").unpivot("s", ["n", "k"], "which", "what").where("what = 3"),
        "window": lambda: df().withColumn("r", F.rank().over(window)).where("r = 1 AND k = 3"),
        "limit then filter": lambda: df().orderBy("n").limit(20).where("n > 15"),
        "offset": lambda: df().orderBy("n").offset(100).where("n < 105"),
        "sample all": lambda: df().sample(1.0, seed=1).where("n = 7"),
        "repartition": lambda: df().repartition(3, "k").where("n = 7"),
        "coalesce": lambda: df().coalesce(1).where("n = 7"),
        "hint": lambda: df().hint("broadcast").where("n = 7").join(df().where("k = 0"), "n"),
        "union by name": lambda: (
            df().select("n", "k").where("n = 1").unionByName(df().select("k", "n").where("n > 117"))
        ),
        "cross join": lambda: df().where("n = 1").select("n").crossJoin(df().where("n = 119").select("k")),
        "transform": lambda: df().transform(lambda d: d.where("n = 44")),
        "exceptAll": lambda: df().select("n").exceptAll(df().where("n > 3").select("n")),
        "observe": lambda: df().where("n = 3").observe("o", F.count("*")),
        "alias": lambda: df().alias("x").join(df().alias("y"), F.expr("x.n = y.n + 1")).where("x.n = 50 AND y.k = 0"),
        "columns": lambda: df().where((F.lit(17) == F.col("n")) | (F.col("s").startswith("o11") & ~F.col("flag"))),
        "eqNullSafe": lambda: df().where(~F.col("v").eqNullSafe(1.0) & (F.col("n") < 8)),
        "between": lambda: df().where(~F.col("n").between(3, 117)),
        "isin": lambda: df().where(F.col("n").isin([3, 4, 1000]) | F.col("s").isin("o05-055")),
        "when": lambda: df().where(F.when(F.col("k") == 1, F.col("n") == 15).otherwise(F.col("n") == 25)),
        "getField": lambda: df().where(F.col("st").getField("x") == 21),
        "getItem": lambda: df().where(F.col("arr").getItem(0).getField("x") == 21),
        "sql expression": lambda: df().where(F.expr("st.x = 21 OR n = 22")),
        "groupBy then filter": lambda: df().groupBy("k").agg(F.max("n").alias("n")).where("n > 115 AND k > 1"),
        "rollup then filter": lambda: df().rollup("k").agg(F.count("*").alias("c")).where("k IS NULL OR k = 1"),
        "map in pandas": lambda: df().where("n = 3").select("n").mapInPandas(lambda it: it, "n long"),
        "checkpoint": lambda: df().where("n < 13").localCheckpoint().where("n > 7"),
    }
    skipped = {name: same_rows(spark, make) for name, make in recipes.items()}
    assert sum(map(bool, skipped.values())) > 20, skipped


def test_udfs_beside_and_around_indexed_columns(spark, facts):
    plus = F.udf(lambda x: x + 1, LongType())
    odd = F.udf(lambda x: x % 2 == 1, BooleanType())
    spark.udf.register("plus_one", lambda x: x + 1, LongType())
    fickle = F.udf(lambda x: x < 5, BooleanType()).asNondeterministic()

    def df():
        return spark.read.parquet(facts)

    for make in (
        lambda: df().where((plus("n") == 18) & (F.col("n") < 40)),
        lambda: df().where((plus("n") == 18) | (F.col("n") == 3)),
        lambda: df().where(odd("n") & (F.col("k") == 2)),
        lambda: df().where(~odd("n") & (F.col("n") > 115)),
        lambda: df().where("plus_one(n) = 18 AND n < 30"),
        lambda: df().where("n = 5 OR plus_one(k) = 3"),
        lambda: df().where(fickle("n") & (F.col("n") < 20)),
        lambda: df().where(fickle("n") | (F.col("n") == 119)),
    ):
        same_rows(spark, make)


def test_large_and_deep_predicates(spark, facts):
    df = spark.read.parquet(facts)
    thousand = " OR ".join(f"(n = {n} AND k = {n % 5})" for n in range(0, 3000, 5))
    same_answers(spark, df, [thousand, f"NOT ({thousand}) AND n < 20"])
    many = ", ".join(str(n) for n in range(30, 10_000, 7))
    words = ", ".join(f"'{n}'" for n in range(30, 3_000, 7))
    assert same_answers(spark, df, [f"n IN ({many})", f"n NOT IN ({many}) AND n > 115", f"s IN ({words}, 'o03-033')"])
    deep = reduce(lambda one, n: f"(NOT ({one}) OR n = {n})", range(40), "n = 1000")
    with conf(spark, {"spark.sql.ansi.enabled": "false"}):
        same_answers(spark, df, [deep, f"NOT {deep}"])
    column = reduce(
        lambda one, n: (one & (F.col("n") != n)) if n % 2 else (one | (F.col("n") == n)), range(150), F.col("k") == 1
    )
    same_rows(spark, lambda: df.where(column))
    nested = reduce(
        lambda one, n: F.when(F.col("k") == n % 4, one).otherwise(F.col("n") == n), range(15), F.col("n") > 100
    )
    same_rows(spark, lambda: df.where(nested))


def test_caching_in_every_order(spark, facts):
    df = spark.read.parquet(facts)
    filtered = df.where("n < 15")
    filtered.cache()
    try:
        assert filtered.count() == 15
        same_rows(spark, lambda: spark.read.parquet(facts).where("n < 15").where("n > 3"))
        same_rows(spark, lambda: spark.read.parquet(facts).where("n < 16"))
        same_rows(spark, lambda: filtered.where("k = 1"))
        spark.catalog.refreshByPath(facts)
        assert filtered.count() == 15
    finally:
        filtered.unpersist()
    whole = spark.read.parquet(facts).cache()
    try:
        same_rows(spark, lambda: whole.where("n = 100"))
        same_rows(spark, lambda: spark.read.parquet(facts).where("n = 100"))
    finally:
        whole.unpersist()
    # Cached with skipping on, asked with another filter: the cache must not answer for more than it holds.
    part = spark.read.parquet(facts).where("k = 1")
    part.cache().count()
    try:
        same_rows(spark, lambda: spark.read.parquet(facts).where("k = 1"))
        same_rows(spark, lambda: spark.read.parquet(facts).where("k <= 1"))
        same_rows(spark, lambda: spark.read.parquet(facts))
    finally:
        part.unpersist()


def test_views_of_every_kind(spark, facts):
    spark.sql("CREATE OR REPLACE TEMP VIEW narrow AS SELECT n, k FROM facts WHERE n > 20")
    spark.sql("CREATE OR REPLACE TEMP VIEW renamed AS SELECT n AS k, k AS n FROM narrow WHERE k <> 3")
    spark.sql("CREATE OR REPLACE TEMP VIEW computed AS SELECT n * 2 AS n FROM facts")
    queries = (
        "SELECT * FROM narrow WHERE n < 25",
        "SELECT * FROM renamed WHERE k = 40",
        "SELECT * FROM renamed WHERE n = 2 AND k < 30",
        "SELECT * FROM computed WHERE n = 40",
        "SELECT a.n, b.k FROM narrow a JOIN renamed b ON a.n = b.k WHERE a.k = 0",
    )
    skipped = [same_rows(spark, query) for query in queries]
    assert all(skipped[:3]), skipped


def test_streams_read_what_batches_read(spark, facts, tmp_path):
    def rows(enabled):
        with conf(spark, {"spark.skipstone.enabled": enabled}):
            stream = (
                spark.readStream.schema(spark.read.parquet(facts).schema).option("maxFilesPerTrigger", 5).parquet(facts)
            )
            name = f"stream_{enabled}"
            asked = stream.where("n IN (3, 55, 119) OR (k = 2 AND v < 15)").select("n", "k")
            query = asked.writeStream.format("memory").queryName(name).trigger(availableNow=True)
            query.option("checkpointLocation", str(tmp_path / enabled)).start().awaitTermination()
            return rows_of(spark.table(name))

    assert rows("true") == rows("false")


def test_many_threads_with_many_filters(spark, facts):
    wrong: list[str] = []

    def work(first: int) -> None:
        try:
            for n in range(first, 120, 13):
                found = [
                    row.n for row in spark.read.parquet(facts).where(f"n = {n} OR s = 'none'").select("n").collect()
                ]
                if found != [n]:
                    wrong.append(f"n = {n}: {found}")
        except Exception as error:  # noqa: BLE001  a thread's failure must reach the test
            wrong.append(repr(error))

    threads = [threading.Thread(target=work, args=(first,)) for first in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_sessions_with_settings_of_their_own(spark, facts):
    other = spark.newSession()
    other.conf.set("spark.skipstone.enabled", "false")
    with skipstone.skipping_stats(spark) as stats:
        assert other.read.parquet(facts).where("n = 5").count() == 1
        assert not any(entry.objects.skipped for entry in stats)
        assert spark.read.parquet(facts).where("n = 5").count() == 1
    assert stats[-1].objects.skipped == 11


def test_plans_that_are_built_once_and_run_often(spark, facts):
    query = spark.read.parquet(facts).where("n < 15")
    assert [query.count() for _ in range(3)] == [15, 15, 15]
    with skipping_off(spark):
        assert query.count() == 15
        again = query.where("n > 3")
    assert again.count() == 11
    for value in (3, 55, 119):
        assert [r.n for r in spark.sql("SELECT n FROM facts WHERE n = :v", args={"v": value}).collect()] == [value]


def test_functions_and_variables_of_the_session(spark, facts):
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION is_five(x BIGINT) RETURNS BOOLEAN RETURN x = 5")
    body = "SELECT min(n) FROM facts WHERE n > x"
    spark.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION nearest(x BIGINT) RETURNS BIGINT RETURN {body}")
    spark.sql("DECLARE OR REPLACE VARIABLE wanted BIGINT DEFAULT 7")
    try:
        assert same_rows(spark, "SELECT n FROM facts WHERE is_five(n) OR n = 117")
        same_rows(spark, "SELECT n FROM facts WHERE n = nearest(41)")
        assert same_rows(spark, "SELECT n FROM facts WHERE n = wanted")
        spark.sql("SET VARIABLE wanted = 77")
        assert same_rows(spark, "SELECT n FROM facts WHERE n = wanted")
        assert [row.n for row in spark.sql("SELECT n FROM facts WHERE n = wanted").collect()] == [77]
    finally:
        spark.sql("DROP TEMPORARY VARIABLE wanted")


def test_the_other_reader_and_many_roots(spark, facts):
    with conf(spark, {"spark.sql.sources.useV1SourceList": ""}):
        same_answers(spark, spark.read.parquet(facts), ["n = 5", "k = 2 AND n > 100"])
    files = spark.read.parquet(facts).inputFiles()
    many = spark.read.parquet(*files, *files, *files, *files, *files)
    assert len(many._jdf.inputFiles()) >= len(files)
    assert same_answers(spark, many, ["n = 5", "k = 2 AND n > 100", "n IS NULL", "s LIKE 'o03%'"])
