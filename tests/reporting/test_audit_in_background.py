"""Audits beside the queries: what lies about its objects is caught, told and switched off; what is right stays."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import skipstone
from skipstone import Dataset, FormattedIndex, MinMaxIndex, ValueListIndex, last_query, skipping_stats
from skipstone.expressions.ranges import between
from tests.indexes.test_formatted import as_in_a_notebook
from tests.reporting.test_audit import OBJECTS, LyingIndex, path  # noqa: F401  (a fixture)
from tests.support import conf

EVERYTHING = {"spark.skipstone.audit": "1", "spark.skipstone.audit.objects": str(OBJECTS)}


def audited(spark, df):
    """Run a query; return its rows and, when its audit is through, its scan."""
    with skipping_stats(spark) as stats:
        rows = len(df.collect())
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            scan = last_query(spark)[-1]
            if scan.audit is not None:
                assert stats[-1].query == scan.query
                return rows, scan
            time.sleep(0.05)
    pytest.fail("no audit was made")


def test_what_is_right_stays(spark, path):  # noqa: F811
    Dataset.for_path(spark, path).create_indexes(MinMaxIndex("n"))
    with conf(spark, {"spark.skipstone.audit": "1"}):
        rows, scan = audited(spark, spark.read.parquet(path).where("n < 15"))
    assert rows == 15
    assert (scan.objects.skipped, scan.audit.looked_into, scan.audit.rows_lost, scan.audit.problem) == (10, 4, 0, None)
    assert scan.audit.bytes_looked_into > 0
    assert len(spark.read.parquet(path).where("n < 15").collect()) == 15
    assert last_query(spark)[-1].objects.skipped == 10


def test_nothing_is_read_by_default_and_the_audit_is_no_query(spark, path):  # noqa: F811
    Dataset.for_path(spark, path).create_indexes(MinMaxIndex("n"))
    with skipping_stats(spark) as stats:
        len(spark.read.parquet(path).where("n < 15").collect())
        time.sleep(0.5)
    assert [scan.audit for scan in stats] == [None]
    with conf(spark, EVERYTHING), skipping_stats(spark) as stats:
        audited(spark, spark.read.parquet(path).where("n < 15"))
    assert len(stats) == 1


@pytest.mark.parametrize("others", [(), (MinMaxIndex("n"), ValueListIndex("ua"))], ids=["alone", "beside others"])
def test_an_index_type_that_lies_is_switched_off(spark, path, others):  # noqa: F811
    dataset = Dataset.for_path(spark, path)
    dataset.create_indexes(LyingIndex("n", name="liar"), *others)
    query = "n < 55 AND ua >= 'agent'"
    with conf(spark, EVERYTHING):
        rows, scan = audited(spark, spark.read.parquet(path).where(query))
        assert rows == 0
        assert scan.audit.rows_lost == 55
        assert scan.audit.blamed == ("liar",)
        assert len(scan.audit.lost_objects) == 6
        assert len(spark.read.parquet(path).where(query).collect()) == 55
        (scan,) = last_query(spark)
        assert any("liar: an audit found a row" in reason for reason in scan.not_used)
        assert scan.objects.skipped == (6 if others else 0)
    assert len(spark.read.parquet(path).where(query).collect()) == 55, "it stays so when audits are off"
    assert "ROWS ARE LOST" not in str(dataset.explain(query))
    # Made anew it is believed, and lies again.
    dataset.drop_indexes("liar")
    dataset.create_indexes(LyingIndex("n", name="liar"))
    assert len(spark.read.parquet(path).where(query).collect()) == 0


def test_it_may_only_be_logged(spark, path):  # noqa: F811
    Dataset.for_path(spark, path).create_indexes(LyingIndex("n"))
    with conf(spark, {**EVERYTHING, "spark.skipstone.audit.action": "log"}):
        for _ in range(2):
            rows, scan = audited(spark, spark.read.parquet(path).where("n < 55"))
            assert (rows, scan.audit.rows_lost) == (0, 55)


def test_or_queries_may_fail_from_then_on(spark, path):  # noqa: F811
    dataset = Dataset.for_path(spark, path)
    dataset.create_indexes(LyingIndex("n"))
    with conf(spark, {**EVERYTHING, "spark.skipstone.audit.action": "raise"}):
        audited(spark, spark.read.parquet(path).where("n < 55"))
        with pytest.raises(Exception, match="an audit found that rows were lost by lying"):
            len(spark.read.parquet(path).where("n < 55").collect())
        with conf(spark, {"spark.skipstone.enabled": "false"}):
            assert len(spark.read.parquet(path).where("n < 55").collect()) == 55
        dataset.drop_indexes()
        assert len(spark.read.parquet(path).where("n < 55").collect()) == 55


def test_a_wrong_promise_is_caught(spark, path):  # noqa: F811
    @as_in_a_notebook
    def little(n):
        return n < 25

    spark.udf.register("little", little, "boolean")
    skipstone.udf_filter(spark, "little", lambda n: between(n, 0, 4))
    Dataset.for_path(spark, path).create_indexes(MinMaxIndex("n"))
    with conf(spark, EVERYTHING):
        rows, scan = audited(spark, spark.read.parquet(path).where("little(n)"))
    assert (rows, scan.audit.rows_lost) == (10, 15)
    assert len(spark.read.parquet(path).where("little(n)").collect()) == 25


def test_a_function_that_changed_unseen_is_caught(spark, path, tmp_path):  # noqa: F811
    table = tmp_path / "names.txt"
    table.write_text("one", encoding="utf-8")
    name = str(table)

    @as_in_a_notebook
    def called(n):
        return f"{open(name).read()} {n // 10}"

    spark.udf.register("called", called)
    skipstone.state_version(spark, "called", "1")
    Dataset.for_path(spark, path).create_indexes(FormattedIndex("n", extract="called"))
    table.write_text("two", encoding="utf-8")
    with conf(spark, EVERYTHING):
        rows, scan = audited(spark, spark.read.parquet(path).where("called(n) = 'two 3'"))
    assert (rows, scan.audit.rows_lost) == (0, 10)
    assert len(spark.read.parquet(path).where("called(n) = 'two 3'").collect()) == 10


def test_what_changed_since_says_nothing(spark, path):  # noqa: F811
    Dataset.for_path(spark, path).create_indexes(LyingIndex("n"))
    df = spark.read.parquet(path).where("n < 55")
    with conf(spark, EVERYTHING):
        df._jdf.queryExecution().optimizedPlan()
        for file in Path(path).glob("object-*"):
            rows = file.read_bytes()
            file.unlink()
            file.write_bytes(rows)
        df.collect()
        deadline = time.monotonic() + 120
        while (scan := last_query(spark)[-1]).audit is None and time.monotonic() < deadline:
            time.sleep(0.05)
    assert "has changed since" in scan.audit.problem
    assert scan.audit.rows_lost == 0


def test_what_makes_no_sense_audits_nothing(spark, path):  # noqa: F811
    Dataset.for_path(spark, path).create_indexes(MinMaxIndex("n"))
    with conf(spark, {"spark.skipstone.audit": "often"}), skipping_stats(spark) as stats:
        assert len(spark.read.parquet(path).where("n < 15").collect()) == 15
    assert [(scan.objects.skipped, scan.audit) for scan in stats] == [(10, None)]


def test_first_rows_are_not_taken_for_lost_ones(spark, path):  # noqa: F811
    """What ORDER BY … LIMIT leaves out satisfies the condition, and is not looked into."""
    Dataset.for_path(spark, path).create_indexes(MinMaxIndex("n"))
    with conf(spark, EVERYTHING):
        df = spark.read.parquet(path).where("n >= 30").orderBy("n").limit(3)
        df.collect()
        deadline = time.monotonic() + 120
        while (scan := last_query(spark)[-1]).audit is None and time.monotonic() < deadline:
            time.sleep(0.05)
    assert scan.skipped_by_top > 0
    assert (scan.audit.looked_into, scan.audit.rows_lost) == (3, 0)
