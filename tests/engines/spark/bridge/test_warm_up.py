"""What is loaded before the first query asks for it: a plan for nobody, of which nobody learns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import skipstone
from skipstone import Dataset, MinMaxIndex
from skipstone.engines.spark.attach import planner_of
from skipstone.engines.spark.planning import SparkPlanner

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession


def rehearse(spark: SparkSession) -> None:
    """Plan for nobody, and wait for it."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.skipstone.WarmUp.rehearse(spark._jsparkSession)


def test_a_rehearsal_reaches_the_planner_and_nobody_learns_of_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path / "data")
    spark.range(100).repartition(4).write.parquet(folder)
    Dataset.for_path(spark, folder).create_indexes(MinMaxIndex("id"))
    spark.read.parquet(folder).where("id < 0").count()
    last = [entry.clause for entry in skipstone.last_query(spark)]
    planner = planner_of(spark)
    plans, sessions = dict(planner._plans), set(planner._snapshots)
    asked = []
    real = SparkPlanner._rehearsed

    def noting(self: SparkPlanner, relation: Any, condition: Any) -> Any:
        found = real(self, relation, condition)
        asked.append((relation, found))
        return found

    monkeypatch.setattr(SparkPlanner, "_rehearsed", noting)
    with skipstone.skipping_stats(spark) as stats:
        rehearse(spark)
    ((relation, plan),) = asked
    assert relation.format == "parquet"
    assert not plan.decisions
    assert len(stats) == 0
    assert [entry.clause for entry in skipstone.last_query(spark)] == last
    assert planner._plans == plans
    assert set(planner._snapshots) == sessions
    with skipstone.skipping_stats(spark) as stats:
        spark.read.parquet(folder).where("id < 0").count()
    assert stats[-1].objects.skipped == stats[-1].objects.total > 0
