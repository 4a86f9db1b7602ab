"""Values of scalar subqueries: what they leave out, what they must not touch, and that nothing runs twice for them."""

from __future__ import annotations

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from time import monotonic, sleep

import pytest
from pyspark.sql.functions import udf
from tests.engines.spark.bridge.running import asked, having, jobs_of, ran

from skipstone import Dataset, MinMaxIndex, last_query, skipping_stats
from skipstone.engines.spark.scan_text import scans_text

MARK = "(select max(u) from other where u < 50)"
"""49, and neither Spark nor Skipstone can tell before it ran."""
NOTHING = "(select max(u) from other where u < 0)"


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory):
    """Ten files of ten rows; `k` is 0 to 9 in the first, and so on."""
    folder = str(tmp_path_factory.mktemp("subqueries") / "fact")
    columns = (
        "id k",
        "cast(id as int) i",
        "lpad(id, 3, '0') s",
        "date_add(date'2020-01-01', cast(id as int)) d",
        "timestamp'2020-01-01 00:00:00' + make_dt_interval(cast(id as int)) t",
        "cast(id / 4 as decimal(10, 2)) c",
        "if(id >= 90, double('NaN'), id * 0.5D) x",
        "named_struct('a', id) st",
        "id u",
        "id as file_size",
    )
    spark.range(0, 100, 1, 10).selectExpr(*columns).write.parquet(folder)
    indexes = [MinMaxIndex(column) for column in ("k", "i", "s", "d", "t", "c", "x", "st.a", "file_size")]
    Dataset(spark.read.parquet(folder)).create_indexes(*indexes)
    return folder


@pytest.fixture
def tables(spark, folder):
    spark.read.parquet(folder).createOrReplaceTempView("fact")
    spark.read.parquet(folder).createOrReplaceTempView("other")
    spark.sql("select col1 k from values (3L), (77L)").createOrReplaceTempView("dim")
    return spark


def of(column):
    return f"(select max({column}) from other where u < 50)"


CONDITIONS = [
    (f"k > {MARK}", 5),
    (f"{MARK} >= k", 5),
    (f"k = {MARK}", 9),
    (f"k <=> {MARK}", 9),
    (f"k in ({MARK}, (select min(u) from other where u > 80))", 8),
    (f"k between {MARK} and (select min(u) from other where u > 58)", 8),
    (f"k > {MARK} and i < 80", 5),
    (f"k > {MARK} + 40 or i < 5", 8),
    (f"not (k > {MARK} and i > 20)", 5),
    (f"i > {MARK}", 5),
    (f"k > {MARK} and k < {of('i')} + 11", 9),
    (f"s > {of('s')}", 5),
    (f"s like {of('s')}", 9),
    (f"d > {of('d')}", 5),
    (f"d > date_sub({of('d')}, 10)", 4),
    (f"t > {of('t')} - interval 10 days", 4),
    (f"t > {of('d')}", 5),
    ("year(d) > (select max(year(d)) from other where u < 50)", 10),
    (f"c > {of('c')}", 5),
    (f"x > {of('x')}", 5),
    ("x >= (select max(x) from other)", 9),  # NaN
    (f"st.a > {MARK}", 5),
    (f"k > {NOTHING}", 10),
    (f"not k > {NOTHING}", 10),
    (f"k in ({NOTHING}, {MARK})", 9),
    (f"k not in ({NOTHING}, {MARK})", 10),
    (f"k <=> {NOTHING}", 10),
    (f"k > {NOTHING} or k = {MARK}", 9),
    (f"(k > {NOTHING}) is null", 0),
    (f"coalesce(k > {NOTHING}, true)", 0),
    (f"u > {MARK}", 0),
    (f"{MARK} > 3", 0),
    (f"s collate utf8_lcase = {of('s')} collate utf8_lcase", 0),
    (f"k > cast({of('s')} as bigint)", 0),  # how text is read may depend on settings of a later run
    (f"k in (select u from other where u > {MARK})", 5),  # by the keys of the join
]


@pytest.mark.parametrize("first", range(0, len(CONDITIONS), 9))
def test_conditions(tables, first):
    """Nine at a time, since each statement has its price; the name of the table tells their scans apart."""
    numbered = list(enumerate(CONDITIONS))[first : first + 9]
    query = " union all ".join(f"select {n} q, k, i from fact f{n} where {condition}" for n, (condition, _) in numbered)
    with having(tables, sql_codegen_wholeStage=False):
        found = sorted(tables.sql(query).collect())
        skipped = Counter({n: 0 for n, _ in numbered})
        for joins in asked(tables):
            skipped[int(re.search(r"\bf(\d+)\.", joins.keys[0])[1])] += joins.skipped
        with having(tables, skipstone_enabled=False):
            assert found == sorted(tables.sql(query).collect())
    assert {CONDITIONS[n]: skipped[n] for n in skipped} == {CONDITIONS[n]: expected for n, (_, expected) in numbered}


@pytest.mark.parametrize(
    ("query", "skipped"),
    [
        (f"select y from (select k, k as y from fact) where y > {MARK}", 5),
        (f"select x from (select k + {MARK} x from fact) where x > 140", 0),
        (f"select k from (select k from fact union all select i from fact) where k > {MARK}", 10),
        (f"select count(*) from fact where k > {NOTHING}", 10),
        (f"select i % 3, count(*) from fact where k > {MARK} group by i % 3 having count(*) > {NOTHING}", 5),
        (f"select k from fact where k > {MARK} order by k limit 5", 5),
        (f"select k from (select k from fact order by u limit 90) where k > {MARK}", 0),
        (f"select k from (select k, row_number() over (order by u) from fact) where k > {MARK}", 5),
        (f"select k from (select k, max(u) from fact group by k) where k > {MARK}", 5),
        (f"select k, n from (select k, count(*) n from fact group by k) where n >= {NOTHING}", 0),
        (f"select a.k, b.k from fact a left join fact b on a.u = b.i and b.k > {MARK}", 5),
        (f"select a.k, b.k from fact a full join fact b on a.k = b.i where a.k > {MARK} or b.k is null", 0),
        (f"select /*+ broadcast(dim) */ f.k from fact f join dim on f.k = dim.k where f.i > {MARK}", 9),
        (f"select k from fact where k not in (select k from fact where k > {MARK})", 5),
        (f"select k from fact where k > (select max(k) from fact where k < {MARK})", 9),
        ("select k from fact where k > (select max(o.k) from other o where o.u = fact.u)", 0),  # correlated: a join
    ],
)
def test_shapes(tables, query, skipped):
    with having(tables, sql_codegen_wholeStage=False):
        ran(tables, query, skipped=skipped)


def test_it_is_told(tables):
    query = f"select k from fact where k > {MARK} and k < 80"
    df = tables.sql(query)
    df.collect()
    scan = next(s for s in last_query(tables) if s.joins is not None)
    assert any("its value is asked for when the query runs" in reason for reason in scan.not_used)
    assert scan.joins.keys == ("(fact.k > 49L) (value of a subquery)",)
    assert (scan.joins.reason, scan.joins.used) == ("values of subqueries", ("minmax(k)",))
    assert (scan.objects.skipped, scan.joins.skipped, scan.files_read) == (7, 5, 3)
    assert "by values of subqueries: skips 5 of these objects" in scans_text([scan], lambda _: None)
    plan = df._jdf.queryExecution().executedPlan().toString()
    assert "SkipstoneScan reads 3 of 10 objects (5 left out by values of subqueries)" in plan


def test_keys_and_values_are_asked_together(tables):
    tables.sql(f"select /*+ broadcast(dim) */ f.k from fact f join dim on f.k = dim.k where f.i > {MARK}").collect()
    (joins,) = asked(tables)
    assert joins.reason == "keys of joins and values of subqueries"
    assert len(joins.keys) == 2


@pytest.mark.parametrize(
    "settings", [{"skipstone_joins": False}, {"skipstone_enabled": False}, {"sql_adaptive_enabled": False}]
)
def test_off_is_off(tables, settings):
    with having(tables, **settings), skipping_stats(tables) as stats:
        assert len(tables.sql(f"select k from fact where k > {MARK}").collect()) == 50
    assert not [scan for scan in stats if scan.joins is not None]


@pytest.mark.parametrize("reuse", [True, False])
def test_no_subquery_runs_once_more(tables, reuse):
    query = f"select count(*) from fact where k > {MARK} and i > (select min(u) from other where u > 60)"
    with having(tables, sql_execution_reuseSubquery=reuse):
        on = jobs_of(tables, tables.sql(query).collect, f"on {reuse}")
        assert sum(joins.skipped for joins in asked(tables)) == 6
        with having(tables, skipstone_joins=False):
            assert jobs_of(tables, tables.sql(query).collect, f"off {reuse}") == on


def test_nothing_is_waited_for_where_no_index_is(tables):
    """Spark runs it, and the rule does not look at it."""
    with skipping_stats(tables) as stats:
        tables.sql(f"select k from fact where u > {MARK}").collect()
    assert not [scan for scan in stats if scan.joins is not None]


def test_a_plan_that_runs_again_has_its_first_value(spark, folder, tmp_path):
    spark.read.parquet(folder).createOrReplaceTempView("fact")
    marks = str(tmp_path / "marks")
    spark.createDataFrame([(90,)], "k long").write.parquet(marks)
    query = "select k from fact where k > (select max(k) from parquet.`" + marks + "`)"
    df = spark.sql(query)
    assert [k for (k,) in df.collect()] == list(range(91, 100))
    spark.createDataFrame([(9,)], "k long").write.mode("overwrite").parquet(marks)
    assert [k for (k,) in df.collect()] == list(range(91, 100))
    assert df.rdd.count() == 9
    assert spark.sql(query).count() == 90


@pytest.mark.parametrize(
    ("subquery", "said"),
    [
        ("(select u from other)", "SCALAR_SUBQUERY_TOO_MANY_ROWS"),
        ("(select max(raise_error('no such mark')) from other)", "no such mark"),
        ("(select max(u / (u - u)) from other)", "DIVIDE_BY_ZERO"),
    ],
)
def test_errors_are_those_of_spark(tables, subquery, said):
    query = f"select count(*) from fact where k > {subquery} and i > {MARK}"
    for joins in (True, False):
        with having(tables, skipstone_joins=joins, sql_ansi_enabled=True), pytest.raises(Exception, match=said):
            tables.sql(query).collect()


def test_a_query_is_cancelled_while_its_subquery_runs(tables, tmp_path):
    ended = tmp_path / "ended"

    @udf("long")
    def slow(value):
        stop = monotonic() + 300
        while not ended.exists() and monotonic() < stop:
            sleep(0.05)
        return value

    tables.udf.register("slow", slow)
    context, group = tables.sparkContext, "to be cancelled"

    def run():
        context.setJobGroup(group, group)
        tables.sql("select k from fact where k > (select max(slow(u)) from other)").collect()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run)
        while not context.statusTracker().getJobIdsForGroup(group) and not running.done():
            sleep(0.1)
        context.cancelJobGroup(group)
        try:
            with pytest.raises(Exception, match=r"(?i)cancel"):
                running.result(timeout=120)
        finally:
            ended.touch()  # the workers of a cancelled query go on


def test_bloom_filters_of_joins_are_left_alone(tables):
    settings = {
        "sql_optimizer_runtime_bloomFilter_enabled": True,
        "sql_optimizer_runtime_bloomFilter_applicationSideScanSizeThreshold": 0,
        "sql_autoBroadcastJoinThreshold": -1,
    }
    with having(tables, **settings):
        query = "select a.k from fact a join other b on a.k = b.u where b.i % 2 = 1 and b.u < 10 and a.k >= 0"
        ran(tables, query, skipped=0)
        df = tables.sql(query)
        assert "might_contain" in df._jdf.queryExecution().executedPlan().toString()


def test_a_cached_filter_is_whole_for_others(tables):
    cached = tables.sql(f"select k from fact where k > {MARK}").cache()
    try:
        cached.createOrReplaceTempView("cached")
        assert (
            tables.sql("select count(*) from cached where k > (select max(u) from other where u < 90)").first()[0] == 10
        )
        assert cached.count() == 50
    finally:
        cached.unpersist()


def test_equal_stages_are_reused_and_unequal_ones_not(tables):
    half = "select i % 2 p, count(*) c from fact where k > (select max(u) from other where u < {}) group by i % 2"
    both = "select * from ({}) a union all select * from ({}) b"
    ran(tables, both.format(half.format(50), half.format(70)), skipped=12)
    df = tables.sql(both.format(half.format(50), half.format(50)))
    assert {c for _, c in df.collect()} == {25}
    assert "ReusedExchange" in df._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize(
    ("query", "skipped"),
    [
        ("select k from {} where _metadata.file_size > " + MARK, 0),
        ("select k from {} where _metadata.file_size > " + MARK + " and file_size > " + MARK, 5),
        (
            "select /*+ broadcast(dim) */ f.k from (select k, _metadata.file_size z from {}) f join dim on f.z = dim.k",
            0,
        ),
        ("select /*+ broadcast(dim) */ f.k from (select k, file_size z from {}) f join dim on f.z = dim.k", 8),
    ],
)
def test_metadata_of_files_is_no_column_of_that_name(tables, folder, query, skipped):
    """`_metadata.file_size` is an attribute `file_size` in a plan that runs, as is the column of that name."""
    ran(tables, query.format(f"parquet.`{folder}`"), skipped=skipped)
