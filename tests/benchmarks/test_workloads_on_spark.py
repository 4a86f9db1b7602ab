"""Counting a workload's relevant rows in one pass gives what ``Dataset.indicators`` measures query by query."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.datasets.database_accounts import Shape
from benchmarks.datasets.database_logs import _key_columns
from benchmarks.datasets.writing import Generated
from benchmarks.experiments import workloads
from benchmarks.experiments.workloads import Query

import skipstone
from skipstone import Dataset, FormattedIndex, PrefixIndex, SuffixIndex


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Six objects of the first two days, of the columns that are asked for."""
    root = tmp_path_factory.mktemp("logs")
    shape = Shape(64)
    numbers = [3, 4, 9, 16, 17, 22]
    for number in numbers:
        path = root / shape.name(number)
        path.parent.mkdir(exist_ok=True)
        columns = _key_columns(shape, number, np.random.default_rng(number))
        pq.write_table(pa.table(columns).select(["db_name", "user_agent"]), path, store_schema=False)
    return Generated(str(root), len(numbers), len(numbers) * shape.rows, 1)


NOTHING = Query("db_name LIKE 'nowhere%'", lambda values: pa.array([False] * len(values)))


def check(spark, logs, column, queries):
    """Compare the two; give the objects skipped over all queries."""
    df = spark.read.parquet(logs.path)
    ours = workloads.workload_indicators(df, logs.path, queries, workloads.count_hits(logs, column, queries))
    theirs = Dataset(df).indicators([df.where(query.predicate) for query in queries])
    assert list(ours) == list(theirs)
    assert ours.left_out == queries.count(NOTHING)
    return sum(query.objects - query.kept_objects for query in ours)


def test_one_pass_equals_the_library(spark, logs):
    Dataset.for_path(spark, logs.path).create_indexes(
        PrefixIndex("db_name", length=15), SuffixIndex("db_name", length=15)
    )
    patterns = workloads.patterns(logs, "db_name", 5, seed=1)
    ends = workloads.patterns(logs, "db_name", 5, seed=2, suffix=True)
    assert check(spark, logs, "db_name", [*patterns, *ends, NOTHING]) > 20


@pytest.mark.long
def test_one_pass_equals_the_library_for_agents(spark, logs):
    skipstone.agents.register(spark)
    Dataset.for_path(spark, logs.path).create_indexes(FormattedIndex("user_agent", extract="getAgentName"))
    assert check(spark, logs, "user_agent", workloads.agents(logs, 20, seed=3)) > 5
