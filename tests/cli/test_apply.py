"""``skipstone apply``: files that say which indexes datasets should have, right and wrong ones."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from skipstone import Dataset, MinMaxIndex
from skipstone.cli.apply import read_file
from skipstone.cli.main import app
from tests.support import write_objects


@pytest.fixture
def lake(spark, tmp_path):
    folder = tmp_path / "lake"
    write_objects(spark, folder, "n INT, t STRING", ["(1, 'a')", "(2, 'b')"])
    return folder


@pytest.fixture
def told(tmp_path):
    """Write a file and apply it."""

    def run(text, *options):
        file = tmp_path / "indexes.yaml"
        file.write_text(text)
        return CliRunner().invoke(app, ["apply", str(file), *options])

    return run


def test_a_file_is_applied_and_applied_again(spark, lake, told):
    text = f"""
    datasets:
      - path: {lake}
        indexes:
          - minmax(n)
          - {{type: bloomfilter, columns: t, fpp: 0.001, name: texts}}
    """
    dry = told(text, "--dry-run")
    assert (dry.exit_code, dry.output.count("would create")) == (0, 2)
    assert not (lake / "_skipstone").exists()
    first = told(text)
    assert first.exit_code == 0
    assert "minmax(n), texts: 2 of 2 objects indexed" in first.output
    again = json.loads(told(text, "--output", "json").stdout)
    assert (again["datasets"][0]["create"], again["datasets"][0]["report"]["indexed"]) == ([], 0)


def test_indexes_that_the_file_does_not_name_are_said(spark, lake, told):
    Dataset.for_path(spark, str(lake)).create_indexes(MinMaxIndex("n"))
    said = told(f"datasets: [{{path: {lake}, indexes: [valuelist(t)]}}]", "--dry-run").output
    assert "would create valuelist(t)" in said
    assert "not in the file, and kept: minmax(n)" in said


def test_formats_and_options_are_read_as_the_file_says(tmp_path, told):
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "a.csv").write_text("n;t\n1;a\n")
    said = told(
        f"datasets: [{{path: {tmp_path / 'csv'}, format: csv, schema: n INT, options: {{header: true, sep: ;}},"
        " indexes: [minmax(n)]}]"
    )
    assert said.exit_code == 0, said.output
    assert "1 of 1 objects" in said.output


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "should have a list of datasets"),
        ("datasets: [", "is not YAML"),
        ("datasets: []", "should have a list of datasets"),
        ("datasets: [{path: a, indexes: [minmax(n)]}]\nmore: 1", "should have a list of datasets"),
        ("datasets: [7]", "dataset 1 of .* should have the keys path"),
        ("datasets: [{path: a, idnexes: [minmax(n)]}]", "did you mean indexes?"),
        ("datasets: [{path: a, zebra: 1}]", "there are format, indexes"),
        ("datasets: [{indexes: [minmax(n)]}]", "a path or a table, one of the two"),
        ("datasets: [{path: a, table: b, indexes: [minmax(n)]}]", "a path or a table, one of the two"),
        ("datasets: [{path: a}]", "should have a list of indexes"),
        ("datasets: [{path: a, options: 7, indexes: [minmax(n)]}]", "options as key: value"),
    ],
)
def test_files_that_make_no_sense(told, text, words):
    said = told(text)
    assert said.exit_code == 2
    assert re.search(words.replace("?", r"\?"), " ".join(said.output.split()))


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ("minmaxx(n)", "did you mean minmax?"),
        ("7", "an index is written minmax(ts)"),
        ("{columns: n}", "an index is written minmax(ts)"),
        ("{type: bloomfilter, columns: t, fpq: 1}", "has no option 'fpq'"),
        ("minmax(zebra)", "zebra"),
    ],
)
def test_indexes_that_make_no_sense(lake, told, index, words):
    said = told(f"datasets: [{{path: {lake}, indexes: [{index}]}}]")
    assert said.exit_code == 1
    assert words in " ".join(said.output.split())
    assert not (lake / "_skipstone").exists()


def test_a_file_that_is_not_there(tmp_path):
    said = CliRunner().invoke(app, ["apply", str(tmp_path / "none.yaml")])
    assert (said.exit_code, "cannot be read: No such file" in said.output) == (2, True)


def test_the_file_of_the_page_is_understood(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "indexes.yaml"
    file.write_text(text)
    stated = read_file(file)
    assert [one.called for one in stated] == ["/lake/logs", "db.events", "/lake/raw"]
    assert [index.name for index in stated[0].made()][:2] == ["minmax(ts)", "bloomfilter(account, fpp=0.001)"]
    assert stated[2].options == {"header": "true"}
