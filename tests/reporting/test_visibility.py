"""What was skipped, by which clause, what was not used and why."""

from __future__ import annotations

import pytest

from skipstone import BloomFilterIndex, Dataset, MinMaxIndex, ValueListIndex, last_query, skipping_stats
from tests.support import conf, skipping_off, write_objects


@pytest.fixture(scope="module")
def dataset(spark, tmp_path_factory):
    rows = tuple(f"({n}, 'n{n}', timestamp'2024-01-0{n + 1} 00:00:00')" for n in range(6))
    path = write_objects(spark, tmp_path_factory.mktemp("visible") / "d", "id int, name string, ts timestamp", rows)
    handle = Dataset.for_path(spark, path)
    handle.create_indexes(
        MinMaxIndex("id"), ValueListIndex("name"), BloomFilterIndex("name", fpp=0.05), MinMaxIndex("ts")
    )
    return handle, path


def test_statistics_of_a_query(spark, dataset):
    _, path = dataset
    with skipping_stats(spark) as stats:
        assert len(spark.read.parquet(path).where("id = 2 AND name = 'n2'").collect()) == 1
        assert len(stats) == 1
    entry = stats[-1]
    assert entry.objects.total == entry.objects.kept + entry.objects.skipped == 6
    assert entry.objects.kept == 1
    assert 0 < entry.bytes_skipped < entry.bytes_total
    assert entry.planning_seconds > 0
    assert entry.metadata_bytes_read >= 0
    assert "id" in entry.clause
    assert set(entry.used) >= {"minmax(id)", "valuelist(name)", "bloomfilter(name, fpp=0.05)"}
    assert last_query(spark)[0].objects == entry.objects


def test_a_dataframe_that_runs_twice_was_planned_once(spark, dataset):
    df = spark.read.parquet(dataset[1]).where("id = 2")
    with skipping_stats(spark) as stats:
        df.collect()
        df.collect()
    assert len(stats) == 1


def test_unfiltered_scans_have_an_entry_too(spark, dataset):
    with skipping_stats(spark) as stats:
        spark.read.parquet(dataset[1]).collect()
    assert stats[-1].objects.kept == stats[-1].objects.total == 6
    assert any("no predicate" in reason for reason in stats[-1].not_used)


def test_unindexed_dataset_says_so(spark, tmp_path):
    path = write_objects(spark, tmp_path / "plain", "id int", ("(1)",))
    with skipping_stats(spark) as stats:
        spark.read.parquet(path).where("id = 2").collect()
    assert stats[-1].objects.unindexed == 1
    assert any("not indexed" in reason for reason in stats[-1].not_used)


def test_explain_tells_all(spark, dataset):
    handle, path = dataset
    df = spark.read.parquet(path).where("id = 2 AND (name LIKE 'n%2' OR ts > '2024-01-05') AND length(name) = 2")
    text = str(handle.explain(df))
    for piece in ("reads", "of 6 objects", "clause", "minmax(id)", "no index serves length", "AND", "OR"):
        assert piece in text
    assert "<pre>" in handle.explain(df)._repr_html_()


def test_explain_of_a_query_on_something_else(spark, dataset, tmp_path):
    other = write_objects(spark, tmp_path / "other", "id int", ("(1)",))
    assert "no file scan" in str(dataset[0].explain(spark.read.parquet(other)))
    with skipping_off(spark):
        assert "off" in str(dataset[0].explain(spark.read.parquet(dataset[1])))


def test_describe(spark, dataset):
    rows = {row.name: row for row in dataset[0].describe().collect()}
    assert set(rows) == {"minmax(id)", "valuelist(name)", "bloomfilter(name, fpp=0.05)", "minmax(ts)"}
    row = rows["bloomfilter(name, fpp=0.05)"]
    assert (row.type, row.columns, row.covered, row.stale, row.missing) == ("bloomfilter", ["name"], 6, 0, 0)
    assert row.bytes > 0
    assert row.key is None
    assert row.created <= row.refreshed


def test_disabled_means_untouched(spark, dataset):
    with skipping_off(spark), skipping_stats(spark) as stats:
        assert len(spark.read.parquet(dataset[1]).where("id = 2").inputFiles()) == 6
    assert len(stats) == 0


def test_set_statement_switches(spark, dataset):
    df = spark.read.parquet(dataset[1]).where("id = 2")
    spark.sql("SET spark.skipstone.enabled=false")
    try:
        assert len(df.select("id").inputFiles()) == 6
    finally:
        spark.sql("SET spark.skipstone.enabled=true")
    assert len(df.select("id").inputFiles()) == 1


def test_force_refuses_what_no_index_serves(spark, dataset, tmp_path):
    df = spark.read.parquet(dataset[1])
    with conf(spark, {"spark.skipstone.force": "true"}):
        assert df.where("id = 2").count() == 1
        with pytest.raises(Exception, match="no index can serve this query.*length"):
            df.where("length(name) = 7").count()
        with pytest.raises(Exception, match="no predicate"):
            df.count()
        plain = write_objects(spark, tmp_path / "plain", "id int", ("(1)",))
        assert spark.read.parquet(plain).where("id = 1").count() == 1


def test_drop_one_and_all(spark, tmp_path):
    path = write_objects(spark, tmp_path / "d", "id int, b int", ("(1, 1)", "(2, 2)"))
    handle = Dataset.for_path(spark, path)
    handle.create_indexes(MinMaxIndex("id"), MinMaxIndex("b"))
    handle.drop_indexes("minmax(b)")
    assert [row.name for row in handle.describe().collect()] == ["minmax(id)"]
    df = spark.read.parquet(path)
    assert len(df.where("id = 1").inputFiles()) == 1
    assert len(df.where("b = 1").inputFiles()) == 2
    handle.create_indexes(MinMaxIndex("b"))
    assert len(df.where("b = 1").inputFiles()) == 1
    handle.drop_indexes()
    assert not handle.is_indexed
    assert not (tmp_path / "d" / "_skipstone").exists()
    assert handle.describe().collect() == []
