"""Mistakes of a first hour: each gets a sentence that says what to write, never an attribute error."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F
from tests.support import write_objects
from typer.testing import CliRunner

import skipstone
from skipstone import Dataset, MinMaxIndex
from skipstone.cli.main import app
from skipstone.errors import ColumnNotFoundError, DatasetError, IndexingError, SessionNotConfiguredError


@pytest.fixture(scope="module")
def logs(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes") / "logs"
    write_objects(spark, folder, "status INT, url STRING", ["(200, 'a')", "(500, 'b')"])
    dataset = Dataset.for_path(spark, str(folder))
    dataset.create_indexes(MinMaxIndex("status"))
    return dataset


@pytest.mark.parametrize("verb", ["create_indexes", "ensure_indexes"])
def test_a_column_in_place_of_an_index(logs, verb):
    with pytest.raises(IndexingError, match=rf"{verb} takes indexes, for example MinMaxIndex\('url'\), not 'url'"):
        getattr(logs, verb)("url")
    with pytest.raises(IndexingError, match=r"for example MinMaxIndex\('ts'\), not 7"):
        getattr(logs, verb)(MinMaxIndex("url"), 7)


def test_a_predicate_where_a_query_is_wanted_is_one_on_the_dataset(logs):
    for predicate in ("status = 500", F.col("status") == 500):
        assert "reads 1 of 2 objects" in str(logs.explain(predicate))
        assert logs.indicators(predicate).scanning_factor == 0.5
    assert len(logs.indicators(["status = 500", logs.dataframe.where("status = 200")])) == 2


def test_what_is_no_query_at_all(logs):
    with pytest.raises(DatasetError, match="a DataFrame is wanted, or a predicate such as .*, not 7"):
        logs.explain(7)
    with pytest.raises(DatasetError, match="statsu = 500 is not a predicate on .*status"):
        logs.explain("statsu = 500")


def test_a_session_in_place_of_a_builder(spark):
    with pytest.raises(SessionNotConfiguredError, match="takes a builder, not a session that is running"):
        skipstone.configure(spark)
    with pytest.raises(SessionNotConfiguredError, match="takes a builder, not a str"):
        skipstone.configure("spark")


def test_an_unknown_column(logs):
    with pytest.raises(ColumnNotFoundError, match="did you mean status?"):
        logs.create_indexes(MinMaxIndex("statsu"))


def test_a_prefix_without_its_length(logs):
    said = CliRunner().invoke(app, ["index", logs.root, "--prefix", "url"])
    assert said.exit_code == 2
    assert "a prefix index needs length: prefix(url, length=…), or url:length=…" in said.output
