"""What Spark's own places tell of a scan that skips: EXPLAIN, and the metrics of the SQL tab, read from its store."""

from __future__ import annotations

import pytest

from skipstone import Dataset, MinMaxIndex
from tests.support import conf

OBJECTS = 4


@pytest.fixture(scope="module")
def data(spark, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("metrics") / "data")
    spark.range(0, 100, 1, OBJECTS).selectExpr("id", "id % 7 AS k").write.parquet(folder)
    Dataset.for_path(spark, folder).create_indexes(MinMaxIndex("id"))
    return folder


def scans_of_last_query(spark, called="SkipstoneScan"):
    """Return the metrics of each node of that name in the plan of the latest query, as the SQL tab shows them."""
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    execution = store.executionsList().last().executionId()
    values = store.executionMetrics(execution)
    nodes = store.planGraph(execution).allNodes()
    found = []
    for place in range(nodes.size()):
        node = nodes.apply(place)
        if node.name().startswith(called):
            metrics = [node.metrics().apply(n) for n in range(node.metrics().size())]
            shown = {m.name(): values.get(m.accumulatorId()) for m in metrics}
            found.append({name: value.get() if value.isDefined() else None for name, value in shown.items()})
    return found


def explained(df):
    return df._jdf.queryExecution().explainString(
        df._sc._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")
    )


def test_the_sql_tab_shows_what_was_skipped_and_how_long_planning_took(spark, data):
    assert spark.read.parquet(data).where("id < 20").count() == 20
    (shown,) = scans_of_last_query(spark)
    assert (shown["objects in total"], shown["objects skipped"]) == ("4", "3")
    assert shown["size of objects skipped"].endswith("B")
    assert not shown["size of objects skipped"].startswith("0.0")
    assert shown["planning time"].split()[-1] in {"ms", "s"}


def test_each_scan_of_a_query_has_its_own(spark, data):
    df = spark.read.parquet(data)
    assert df.where("id < 20").unionAll(df.where("id >= 40")).count() == 80
    shown = scans_of_last_query(spark)
    assert sorted(s["objects skipped"] for s in shown) == ["1", "3"]


def test_a_query_that_runs_again_tells_as_much_as_sparks_own_scan(spark, data):
    """Spark makes the scan of a plan once, and the counters of the driver are told then."""
    query = spark.read.parquet(data).where("id < 20")
    for _ in range(2):
        query.collect()
        (ours,), (theirs,) = scans_of_last_query(spark), scans_of_last_query(spark, "Scan parquet")
        assert (ours["objects skipped"] is None) is (theirs["number of files read"] is None)


def test_a_run_that_reads_everything_says_so(spark, data):
    """Files would be read otherwise than when the query was planned: all of them are."""
    query = spark.read.parquet(data).where("id < 20")
    assert "reads 1 of 4 objects" in explained(query)
    with conf(spark, {"spark.sql.caseSensitive": "true"}):
        assert len(query.collect()) == 20
    (shown,) = scans_of_last_query(spark)
    assert (shown["objects in total"], shown["objects skipped"]) == ("4", "0")
    assert shown["size of objects skipped"] == "0.0 B"


def test_explain_says_what_is_read_and_nothing_of_indexes(spark, data):
    """Plans are in event logs, and the options of an index may be protected."""
    text = explained(spark.read.parquet(data).where("id < 20 AND k = 3"))
    assert "SkipstoneScan" in text
    assert "reads 1 of 4 objects" in text
    assert "minmax" not in text


def test_a_scan_that_skips_nothing_has_no_such_node(spark, data):
    query = spark.read.parquet(data).where("id >= 0")
    assert "SkipstoneScan" not in explained(query)
    query.collect()
    assert scans_of_last_query(spark) == []
