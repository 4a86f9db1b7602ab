"""The optimizer rule: what is wrapped, counted and read, and that whatever goes wrong is survived."""

from __future__ import annotations

import threading
import warnings
from urllib.parse import unquote

import pytest
from pyspark.sql import functions as F
from tests.engines.spark.bridge.fake import bridge_of, entries_since, records_of, reply


def last(spark):
    return bridge_of(spark).lastSeq()


def numbers(df):
    return sorted(int(unquote(f).rsplit("file-", 1)[1].removesuffix(".parquet")) for f in df.inputFiles())


def test_only_kept_objects_are_read(spark, planner, ten, tmp_path):
    df = spark.read.parquet(ten)
    planner.keeping(records_of(spark, df, tmp_path / "l"), lambda p: "file-3" in p or "file-7" in p, plan=5)
    before = last(spark)
    query = df.where("id >= 0")
    # The fake lies (every file has such ids): only thus it is seen that the others were not read.
    assert sorted(r.id // 10 for r in query.collect()) == [3] * 10 + [7] * 10
    assert numbers(query) == [3, 7]
    (entry,) = entries_since(spark, before)
    assert entry["objects"] == {"total": 10, "kept": 2, "skipped": 8, "unindexed": 0, "stale": 0}
    assert 0 < entry["bytes_skipped"] < entry["bytes_total"]
    assert (entry["clause"], entry["metadata_bytes_read"], entry["plan"]) == ("a clause", 7, 5)
    assert entry["error"] is None
    assert entry["thread"] == bridge_of(spark).threadId()
    assert entry["planning_seconds"] >= entry["seconds"]["planner"] > 0
    assert "SkipstoneFileIndex" in query._jdf.queryExecution().executedPlan().toString()


def test_without_a_planner_or_disabled_the_plan_is_unchanged(spark, planner, ten, tmp_path):
    df = spark.read.parquet(ten)
    planner.keeping(records_of(spark, df, tmp_path / "l"), lambda p: False)
    before = last(spark)
    bridge_of(spark).register(None)
    assert df.where("id >= 0").count() == 100
    bridge_of(spark).register(planner)
    spark.conf.set("spark.skipstone.enabled", "false")
    try:
        assert df.where("id >= 0").count() == 100
    finally:
        spark.conf.unset("spark.skipstone.enabled")
    assert last(spark) == before
    assert df.where("id >= 0").count() == 0


def test_a_scan_without_a_filter_is_recorded(spark, planner, ten):
    before = last(spark)
    assert spark.read.parquet(ten).count() == 100
    (entry,) = entries_since(spark, before)
    assert planner.requests[-1]["condition"] is None
    assert entry["objects"] == {"total": 10, "kept": 10, "skipped": 0, "unindexed": 10, "stale": 0}


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\0\0",
        b"\x7f\xff\xff\xff{}",
        b"\0\0\0\x02[]",
        b'\0\0\0\x05{"a":',
        reply(("unknown snapshot", [True] * 10)),
        reply(("short", [False] * 80))[:-3],
        reply() + b"more",
        "raise",
        None,
    ],
)
def test_a_planner_that_fails_costs_nothing_but_the_skipping(spark, planner, ten, answer):
    def fail(_request):
        if answer == "raise":
            raise ValueError("no idea")
        return answer

    planner.answer = fail
    before = last(spark)
    assert spark.read.parquet(ten).where("id < 10").count() == 10
    (entry,) = entries_since(spark, before)
    assert entry["error"]
    assert entry["objects"]["total"] == entry["objects"]["kept"] == 10


def test_a_slow_planner_is_not_waited_for(spark, planner, ten):
    release, answered = threading.Event(), []

    def answer(_request):
        release.wait(120)
        answered.append(True)
        return b""

    planner.answer = answer
    spark.conf.set("spark.skipstone.plannerTimeoutMs", "200")
    before = last(spark)
    try:
        assert spark.read.parquet(ten).where("id < 10").count() == 10
        assert not answered
    finally:
        release.set()
        spark.conf.unset("spark.skipstone.plannerTimeoutMs")
    assert "within 200 ms" in entries_since(spark, before)[0]["error"]


def test_force_throws_the_refusal(spark, planner, ten):
    planner.answer = lambda _request: reply(refuse="no index on id")
    df = spark.read.parquet(ten).where("id < 10")
    assert df.count() == 10
    spark.conf.set("spark.skipstone.force", "true")
    try:
        with pytest.raises(Exception, match="no index on id"):
            spark.read.parquet(ten).where("id < 10").count()
    finally:
        spark.conf.unset("spark.skipstone.force")


def test_stale_unknown_and_doubled_objects_are_read(spark, planner, ten, tmp_path):
    df = spark.read.parquet(ten)
    records = sorted(records_of(spark, df, tmp_path / "l"))
    changed = [
        (records[0][0], records[0][1] + 1, records[0][2], ""),  # another length
        (records[1][0], records[1][1], records[1][2] - 1, ""),  # another time
        (*records[2][:3], "tag"),  # an e-tag, where the file system gives none
        records[3],
        records[3],  # twice
        *records[5:],  # and 4 is unknown
    ]
    planner.keeping(changed, lambda p: False)
    before = last(spark)
    assert sorted({r.id // 10 for r in df.where("id >= 0").collect()}) == [0, 1, 2, 3, 4]
    (entry,) = entries_since(spark, before)
    assert entry["objects"] == {"total": 10, "kept": 5, "skipped": 5, "unindexed": 1, "stale": 4}


def test_two_snapshots_skip_what_either_skips(spark, planner, ten, tmp_path):
    df = spark.read.parquet(ten)
    records = sorted(records_of(spark, df, tmp_path / "l"))
    first, second = planner.snapshot(records[:6]), planner.snapshot(records[4:])
    planner.answer = lambda _request: reply((first, [True] * 5 + [False]), (second, [False] + [True] * 5))
    assert sorted({r.id // 10 for r in df.where("id >= 0").collect()}) == [0, 1, 2, 3, 6, 7, 8, 9]
    for _ in range(3):
        spark.read.parquet(ten).where("id >= 0").count()
    assert sorted(planner.asked) == sorted([first, second]), "a snapshot's table is fetched once"
    assert not list(tmp_path.glob("*.objects")), "the table's file is deleted"


def test_a_refreshed_dataframe_reads_everything_anew(spark, planner, ten, tmp_path):
    df = spark.read.parquet(ten)
    planner.keeping(records_of(spark, df, tmp_path / "l"), lambda p: "file-1" in p)
    relation = df.where("id >= 0")._jdf.queryExecution().optimizedPlan().collectLeaves().head()
    assert len(list(relation.relation().location().inputFiles())) == 1
    relation.relation().location().refresh()
    assert len(list(relation.relation().location().inputFiles())) == 10
    assert relation.relation().location().sizeInBytes() > 5000


def test_a_self_join_is_two_decisions_and_equal_ones_share_an_exchange(spark, planner, ten, tmp_path):
    df = spark.read.parquet(ten)
    records = sorted(records_of(spark, df, tmp_path / "l"))
    name = planner.snapshot(records)

    def answer(request):
        return reply((name, ["15" in str(request["condition"]) or "file-1" not in r[0] for r in records]))

    planner.answer = answer
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        before = last(spark)
        a, b = df.where("id >= 15").select("s"), df.where("id >= 5").select("s")
        both = a.join(b, "s")
        # 15..19 are in file 1, which only the second decision skips.
        assert both.count() == 80
        assert sorted(e["objects"]["skipped"] for e in entries_since(spark, before)) == [0, 1]
        same = df.where("id >= 5").select("s").alias("x").join(df.where("id >= 5").select("s").alias("y"), "s")
        plan = same._jdf.queryExecution().executedPlan().toString()
        assert "ReusedExchange" in plan
        assert "SkipstoneFileIndex" in plan
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_subqueries_belong_to_the_query(spark, planner, ten):
    spark.read.parquet(ten).createOrReplaceTempView("ten_view")
    before = last(spark)
    spark.sql("select * from ten_view where id > (select avg(id) from ten_view where id < 50)").collect()
    entries = entries_since(spark, before)
    assert len(entries) >= 2
    assert len({e["query"] for e in entries}) == 1
    spark.sql("select * from ten_view where id > 3").collect()
    assert entries_since(spark, before)[-1]["query"] != entries[0]["query"]


def test_partitions_are_pruned_before_counting(spark, planner, tmp_path):
    folder = str(tmp_path / "parts")
    spark.range(100).selectExpr("id", "id % 5 as p", "concat('a b#', id % 2) as q").repartition(1).write.partitionBy(
        "p", "q"
    ).parquet(folder)
    df = spark.read.parquet(folder)
    records = records_of(spark, df, tmp_path / "l")
    assert len(records) == 10
    planner.keeping(records, lambda p: "p=1" not in p)
    before = last(spark)
    assert df.where("p in (1, 2) and id >= 0").count() == 20
    entry = entries_since(spark, before)[-1]
    assert entry["objects"] == {"total": 4, "kept": 2, "skipped": 2, "unindexed": 0, "stale": 0}
    assert df.where("(p = 1 and id > 3) or (p = 3 and id > 4)").count() == 19
    assert entries_since(spark, before)[-1]["objects"]["total"] == 4
    assert df.where("q = 'a b#1'").count() == 40, "p = 1 is skipped"
    assert {c["n"]: c["p"] for c in planner.requests[-1]["relation"]["columns"]} == {"q": True}


def test_metadata_filters_work_together_with_skipping(spark, planner, ten, tmp_path):
    df = spark.read.parquet(ten)
    planner.keeping(records_of(spark, df, tmp_path / "l"), lambda p: "file-3" in p or "file-7" in p)
    query = df.where("_metadata.file_name in ('file-3.parquet', 'file-4.parquet') and id >= 0")
    assert sorted(r.id for r in query.collect()) == list(range(30, 40))
    text = str(planner.requests[-1]["condition"])
    assert "'n': '_metadata'" in text


@pytest.mark.parametrize("partitioned", [False, True])
def test_catalog_tables(spark, planner, tmp_path, partitioned):
    name = f"catalog_{'parts' if partitioned else 'flat'}"
    spark.sql(f"drop table if exists {name}")
    writer = spark.range(0, 100, 1, 4).selectExpr("id", "id % 2 as p").write
    (writer.partitionBy("p") if partitioned else writer).format("parquet").saveAsTable(name)
    try:
        df = spark.table(name)
        records = records_of(spark, df, tmp_path / "l")
        planner.keeping(records, lambda p: "part-00000" in p)
        assert sorted(r.id for r in df.where("id >= 0").collect()) == list(range(25))
        assert planner.requests[-1]["relation"]["table"].endswith(name)
        assert planner.requests[-1]["relation"]["table_location"].endswith(name)
        before = last(spark)
        assert df.where("p = 1 and id >= 0").count() == 12
        entry = entries_since(spark, before)[-1]
        assert entry["objects"]["total"] == 4
        assert entry["objects"]["skipped"] == 3
    finally:
        spark.sql(f"drop table {name}")


def test_pruned_statistics_make_a_broadcast_join(spark, planner, tmp_path):
    spark.range(0, 20000, 1, 8).selectExpr("id", "cast(id as string) s").write.mode("overwrite").saveAsTable("wide_t")
    spark.sql("analyze table wide_t compute statistics for all columns")
    df = spark.table("wide_t")
    records = records_of(spark, df, tmp_path / "l")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str(sum(r[1] for r in records) // 4))
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        query = df.where("s >= '1'").join(
            spark.range(0, 500000, 1, 2).withColumnRenamed("id", "k"), df.id == F.col("k")
        )
        assert "BroadcastHashJoin" not in query._jdf.queryExecution().executedPlan().toString()
        planner.keeping(records, lambda p: "part-00000" in p)
        query = df.where("s >= '1'").join(
            spark.range(0, 500000, 1, 2).withColumnRenamed("id", "k"), df.id == F.col("k")
        )
        assert "BroadcastHashJoin" in query._jdf.queryExecution().executedPlan().toString()
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
        spark.conf.unset("spark.sql.adaptive.enabled")
        spark.sql("drop table wide_t")


def test_odd_paths(spark, planner, tmp_path):
    folder = tmp_path / "a b%20c#d+e=f é😀"
    for i in range(3):
        spark.range(i, i + 1).coalesce(1).write.mode("append").parquet(str(folder))
    df = spark.read.parquet(str(folder))
    records = records_of(spark, df, tmp_path / "l")
    assert len(records) == 3
    planner.keeping(records, lambda p: p == records[1][0])
    query = df.where("id >= 0")
    assert query.count() == 1
    assert len(query.inputFiles()) == 1


def test_metadata_folders_and_others_files_are_left_alone(spark, planner, tmp_path):
    folder = str(tmp_path / "_skipstone" / "x")
    spark.range(5).write.parquet(folder)
    before = last(spark)
    assert spark.read.parquet(folder).where("id > 1").count() == 3
    assert last(spark) == before


def test_threads_plan_at_once(spark, planner, ten, tmp_path):
    df = spark.read.parquet(ten)
    records = sorted(records_of(spark, df, tmp_path / "l"))
    name = planner.snapshot(records)

    def answer(request):
        (wanted,) = [c["c"][1]["v"] for c in request["condition"]["c"] if c["k"] == "ge"]
        return reply((name, [f"file-{wanted}" in r[0] for r in records]))

    planner.answer = answer
    results = {}

    def run(i):
        results[i] = sorted(r.id // 10 for r in df.where(f"id >= {i}").collect())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == {i: [i] * 10 for i in range(8)}
