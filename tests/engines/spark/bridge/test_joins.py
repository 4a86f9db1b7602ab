"""What keys of joins must not touch, where they are not asked for, and what is told of them."""

from __future__ import annotations

import pytest
from tests.engines.spark.bridge.running import asked, having, ran

from skipstone import Dataset, MinMaxIndex, last_query, skipping_stats

FILES = 10


@pytest.fixture(scope="module")
def fact(spark, tmp_path_factory):
    """Ten files of ten rows; `k` is 0 to 9 in the first, and so on."""
    folder = str(tmp_path_factory.mktemp("joins") / "fact")
    columns = (
        "id k",
        "cast(id as int) i",
        "cast(id as string) s",
        "named_struct('a', id, 'b', 'x') st",
        "id u",
        "id % 2 p",
    )
    spark.range(0, 100, 1, FILES).selectExpr(*columns).write.parquet(folder)
    indexes = [MinMaxIndex(column) for column in ("k", "i", "s", "st.a")]
    Dataset(spark.read.parquet(folder)).create_indexes(*indexes)
    return folder


@pytest.fixture
def tables(spark, fact):
    spark.read.parquet(fact).createOrReplaceTempView("fact")
    rows = "values (3L, 0), (5L, 0), (42L, 1), (cast(null as bigint), 0)"
    spark.sql(f"select col1 k, cast(col1 as string) s, col2 n from {rows}").createOrReplaceTempView("dim")
    return spark


JOIN = "select /*+ broadcast(dim) */ f.k, n from fact f join dim on f.k = dim.k"


def test_statistics_tell_filters_and_joins_apart(tables):
    ran(tables, f"{JOIN} where f.k < 50", skipped=3)
    tables.sql(f"{JOIN} where f.k < 50").collect()
    scan = next(s for s in last_query(tables) if s.joins is not None)
    assert (scan.objects.total, scan.objects.kept, scan.objects.skipped) == (FILES, 2, 8)
    assert scan.joins.keys == ("f.k = dim.k (3 keys)",)
    assert scan.joins.used == ("minmax(k)",)
    assert scan.files_read == 2


def test_explain_after_the_run_tells_it(tables):
    df = tables.sql(JOIN)
    df.collect()
    plan = df._jdf.queryExecution().executedPlan().toString()
    assert "SkipstoneScan reads 2 of 10 objects (8 left out by keys of joins)" in plan


@pytest.mark.parametrize(
    ("query", "skipped"),
    [
        ("select /*+ broadcast(dim) */ f.k from fact f join dim on f.st.a = dim.k", 8),
        ("select /*+ broadcast(dim) */ f.k from fact f join dim on f.i = dim.k and f.k = dim.k", 8),
        ("select /*+ broadcast(dim) */ f.k from (select k + 0 k, i from fact) f join dim on f.i = dim.k", 8),
        ("select f.k from fact f where k in (select k from dim where n = 1)", 9),
        ("select /*+ broadcast(dim) */ f.k, n from fact f left join dim on f.k = dim.k", 0),
        ("select f.k from fact f left anti join dim on f.k = dim.k", 0),
        ("select /*+ broadcast(dim) */ f.u from fact f join dim on f.u = dim.k", 0),
        (
            "select /*+ broadcast(dim) */ f.k from (select * from fact where rand(1) + k < 200) f "
            "join dim on f.k = dim.k",
            0,
        ),
        (
            "select /*+ broadcast(dim) */ f.k from (select k, max(i) m from fact group by k) f join dim on f.k = dim.k",
            0,
        ),
        ("select /*+ merge(dim) */ f.k from fact f join dim on f.k = dim.k", 0),
        (
            "select /*+ broadcast(dim) */ f.k from fact f "
            "join dim on f.s collate utf8_lcase = dim.s collate utf8_lcase",
            0,
        ),
    ],
)
def test_shapes(tables, query, skipped):
    ran(tables, query, skipped=skipped)


@pytest.mark.parametrize(("keys", "indexed"), [("iy", "i"), ("iy", "y"), ("yhi", "h"), ("hl", "h"), ("hl", "l")])
def test_keys_of_several_columns_in_one_number(spark, tmp_path, keys, indexed):
    """Spark packs keys of up to 64 bits into one long, of which each is taken back with its sign."""
    folder = str(tmp_path / "f")
    columns = ("cast(id as tinyint) y", "cast(id as smallint) h", "cast(id as int) i", "id l")
    spark.range(-50, 50, 1, FILES).selectExpr(*columns).write.parquet(folder)
    Dataset(spark.read.parquet(folder)).create_indexes(MinMaxIndex(indexed))
    spark.read.parquet(folder).createOrReplaceTempView("signed")
    rows = spark.sql("select cast(col1 as bigint) id from values (-43), (7), (null)")
    rows.selectExpr(*columns).createOrReplaceTempView("d")
    on = " and ".join(f"f.{key} = d.{key}" for key in keys)
    assert len(ran(spark, f"select /*+ broadcast(d) */ f.* from signed f join d on {on}", skipped=8)) == 2


def test_outer_dimensions_of_a_snowflake_count(tables):
    tables.sql("select col1 n from values (1), (7)").createOrReplaceTempView("far")
    query = (
        "select /*+ broadcast(dim), broadcast(far) */ f.k from fact f join dim on f.k = dim.k join far on dim.n = far.n"
    )
    ran(tables, query, skipped=9)


def test_many_keys_become_ranges(tables):
    tables.sql("select id k from range(20, 30) union all select id k from range(1000, 4000)").createOrReplaceTempView(
        "many"
    )
    ran(tables, "select /*+ broadcast(many) */ f.k from fact f join many on f.k = many.k", skipped=9)


@pytest.mark.parametrize(
    "settings", [{"skipstone_joins": False}, {"skipstone_enabled": False}, {"sql_adaptive_enabled": False}]
)
def test_off_is_off(tables, settings):
    with having(tables, **settings), skipping_stats(tables) as stats:
        assert len(tables.sql(JOIN).collect()) == 3
    assert not [scan for scan in stats if scan.joins is not None]


def test_a_cached_table_is_whole(tables):
    cached = tables.sql("select * from fact").cache()
    try:
        cached.createOrReplaceTempView("cached")
        join = "select /*+ broadcast(dim) */ c.k from cached c join dim on c.k = dim.k"
        assert len(tables.sql(join).collect()) == 3
        assert tables.sql("select count(*) from cached").first()[0] == 100
    finally:
        cached.unpersist()


def test_a_cached_join_skips_by_its_own_keys_alone(tables):
    cached = tables.sql(JOIN).cache()
    try:
        assert cached.count() == 3
        cached.createOrReplaceTempView("cached")
        assert (
            len(
                tables.sql(
                    "select /*+ broadcast(d) */ c.k from cached c join dim d on c.k = d.k where d.n = 1"
                ).collect()
            )
            == 1
        )
        assert cached.count() == 3
    finally:
        cached.unpersist()


def test_what_two_read_is_whole_for_the_other(tables):
    joined = "select /*+ broadcast(d) */ c.k, '{}' w from c join dim d on c.k = d.k and {}"
    query = (
        "with c as (select k, i from fact distribute by k) select count(*), 'all' w from c "
        f"union all {joined.format('one', 'd.n = 1')} union all {joined.format('three', 'd.n >= 0')}"
    )
    assert len(ran(tables, query, skipped=0)) == 5


def test_equal_stages_are_reused_and_unequal_ones_not(tables):
    half = "select /*+ broadcast(d) */ f.p, count(*) c from fact f join dim d on f.k = d.k {} group by f.p"
    both = "select * from ({}) a union all select * from ({}) b"
    ran(tables, both.format(half.format("where d.n = 0"), half.format("where d.n = 1")), skipped=18)
    df = tables.sql(both.format(half.format(""), half.format("")))
    df.collect()
    assert "ReusedExchange" in df._jdf.queryExecution().executedPlan().toString()


def test_a_plan_that_runs_again_has_its_first_keys(tables, tmp_path):
    tables.createDataFrame([(3,)], "k long").write.parquet(str(tmp_path / "d"))
    tables.read.parquet(str(tmp_path / "d")).createOrReplaceTempView("small")
    df = tables.sql("select /*+ broadcast(small) */ f.k from fact f join small on f.k = small.k")
    assert df.collect() == df.collect() == [(3,)]
    tables.createDataFrame([(77,)], "k long").write.mode("append").parquet(str(tmp_path / "d"))
    tables.read.parquet(str(tmp_path / "d")).createOrReplaceTempView("small")
    again = tables.sql("select /*+ broadcast(small) */ f.k from fact f join small on f.k = small.k")
    assert sorted(again.collect()) == [(3,), (77,)]


def test_files_that_come_between_planning_and_running(spark, tmp_path):
    folder = str(tmp_path / "f")
    spark.range(0, 40, 1, 4).selectExpr("id k").write.parquet(folder)
    Dataset(spark.read.parquet(folder)).create_indexes(MinMaxIndex("k"))
    fact = spark.read.parquet(folder)
    fact.createOrReplaceTempView("growing")
    spark.sql("select col1 k from values (3L), (4L)").createOrReplaceTempView("three")
    df = spark.sql("select /*+ broadcast(t) */ g.k from growing g join three t on g.k = t.k")
    df._jdf.queryExecution().executedPlan()
    spark.sql("select 3L k").write.mode("append").parquet(folder)
    spark.catalog.refreshByPath(folder)
    fact._jdf.queryExecution().optimizedPlan()
    spark.read.parquet(folder).createOrReplaceTempView("growing")
    again = spark.sql("select /*+ broadcast(t) */ g.k from growing g join three t on g.k = t.k")
    assert sorted(again.collect()) == [(3,), (3,), (4,)]
    assert asked(spark)[0].skipped == 3
    assert sorted(df.collect()) in ([(3,), (4,)], [(3,), (3,), (4,)])  # as Spark's own listing has it


def test_partitions_and_keys_prune_together(spark, tmp_path):
    folder = str(tmp_path / "f")
    spark.range(0, 80, 1, 8).selectExpr("id k", "cast(id / 20 as int) p").write.partitionBy("p").parquet(folder)
    Dataset(spark.read.parquet(folder)).create_indexes(MinMaxIndex("k"))
    spark.read.parquet(folder).createOrReplaceTempView("parted")
    spark.sql("select * from values (0, 5L), (1, 25L) as t(p, k)").write.parquet(str(tmp_path / "d"))
    spark.read.parquet(str(tmp_path / "d")).createOrReplaceTempView("pd")
    query = "select /*+ broadcast(pd) */ f.k from parted f join pd on f.p = pd.p and f.k = pd.k where pd.k <> 99"
    df = spark.sql(query)
    assert sorted(df.collect()) == [(5,), (25,)]
    assert "dynamicpruning" in df._jdf.queryExecution().executedPlan().toString()
    scan = next(s for s in last_query(spark) if s.joins is not None)
    assert (scan.joins.skipped, scan.files_read) == (6, 2)


def test_bucketed_facts_stay_bucketed(spark, tmp_path):
    spark.sql("drop table if exists bucketed")
    frame = spark.range(0, 80, 1, 4).selectExpr("id k", "id % 5 b")
    frame.write.bucketBy(2, "b").option("path", str(tmp_path / "t")).saveAsTable("bucketed")
    try:
        Dataset(spark.table("bucketed")).create_indexes(MinMaxIndex("k"))
        spark.sql("select col1 k from values (3L), (4L)").createOrReplaceTempView("three")
        query = "select /*+ broadcast(t) */ b, count(*) from bucketed f join three t on f.k = t.k group by b"
        ran(spark, query, skipped=6)
        df = spark.sql(query)
        df.collect()
        assert "Bucketed: true" in df._jdf.queryExecution().executedPlan().toString()
    finally:
        spark.sql("drop table bucketed")


def test_nothing_is_left_out_when_files_are_read_otherwise(tables):
    """A setting that decides how files are read differs between the index and the run."""
    with having(tables, sql_parquet_int96AsTimestamp=False):
        assert len(tables.sql(JOIN).collect()) == 3
        assert sum(joins.skipped for joins in asked(tables)) == 0


@pytest.mark.parametrize(("megabytes", "small"), [(1, True), (64 + 1, True), (2 * 64 + 1, True), (257, False)])
def test_a_broadcast_of_one_large_page_is_read(spark, megabytes, small):
    """Spark takes whole pages of memory, of up to 64 MB on a large heap: so large is a table of one row there."""
    keys = spark._jvm.org.apache.spark.sql.execution.skipstone.JoinKeys
    assert keys.isSmall(megabytes << 20) is small
