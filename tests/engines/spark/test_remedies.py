"""Reasons that say what to do: which index would serve a predicate, and what holds an OR up; each remedy is tried."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import functions as F

import skipstone
from skipstone import Dataset
from tests.support import write_objects


@pytest.fixture(scope="module")
def logs(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("remedies") / "logs"
    rows = ["(200, 'GET /a', DATE '2026-01-01', 1.5)", "(500, 'PUT /b', DATE '2026-02-01', 2.5)"]
    write_objects(spark, folder, "status INT, line STRING, day DATE, seconds DOUBLE", rows)
    dataset = Dataset.for_path(spark, str(folder))
    dataset.create_indexes(skipstone.MinMaxIndex("seconds"))
    spark.udf.register("remedied", lambda line: line[:3], "string")
    return dataset


def remedies(logs, predicate):
    """Return the indexes that the explanation names for the first reason."""
    (line,) = [text for text in str(logs.explain(predicate)).splitlines() if "no index serves" in text]
    return line.partition("; ")[2]


@pytest.mark.parametrize(
    ("predicate", "named"),
    [
        ("status = 500", "MinMaxIndex('status'), ValueListIndex('status') or BloomFilterIndex('status') would"),
        ("status > 300", "MinMaxIndex('status') or ValueListIndex('status') would"),
        ("line LIKE '%/b'", "ValueListIndex('line') or SuffixIndex('line', length=8) would"),
        ("line LIKE 'PUT%'", "MinMaxIndex('line') or ValueListIndex('line') would"),
        ("year(day) = 2026", "MinMaxIndex('day') or ValueListIndex('day') would"),
        ("remedied(line) = 'PUT'", "FormattedIndex('line', extract='remedied') would, or a udf_filter"),
    ],
)
def test_the_indexes_that_would_serve_are_named_and_do(spark, logs, predicate, named):
    assert remedies(logs, predicate).startswith(named)
    kind, column, option, value = re.match(r"(\w+)\('(\w+)'(?:, (\w+)='(\w+)')?", named).groups()
    first = getattr(skipstone, kind)(column, **({option: value} if option else {}))
    logs.create_indexes(first)
    try:
        assert "no index serves" not in str(logs.explain(predicate))
        assert len(logs.dataframe.where(predicate).inputFiles()) < 2 or "year" in predicate
    finally:
        logs.drop_indexes(first.name)


def test_what_changes_from_run_to_run_has_no_index(logs):
    assert remedies(logs, F.col("status") > F.rand() * 100) == (
        "its result changes from one run to the next, so that no index can"
    )


def test_nothing_is_said_where_nothing_is_known(logs):
    assert remedies(logs, "length(line) = 6") == ""


def test_an_or_says_what_holds_it_up(logs):
    said = str(logs.explain("seconds > 2 OR length(line) = 6"))
    assert "cannot skip because of length(line) = 6" in said
    assert "cannot skip" not in str(logs.explain("seconds > 2 OR seconds < 0"))


def test_an_index_that_is_there_and_is_not_used_is_no_remedy(spark, logs):
    reading = spark.read.schema("status INT, line STRING, day DATE, seconds FLOAT").parquet(logs.root)
    said = str(logs.explain(reading.where("seconds > 2")))
    assert "minmax(seconds)" in said
    assert "MinMaxIndex('seconds')" not in said
