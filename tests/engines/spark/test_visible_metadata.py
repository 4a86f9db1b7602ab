"""``ignoredPathSegmentRegex`` can show the metadata beside the data: it is refused, and said, never taken for data."""

from __future__ import annotations

from pathlib import Path

import pytest

import skipstone
from skipstone import Dataset, MinMaxIndex
from skipstone.engines.spark.visible_metadata import METADATA_FOLDER
from skipstone.errors import DatasetError
from skipstone.stores.parquet.layout import HIDDEN_FOLDER
from tests.support import conf

SETTING = "spark.sql.files.ignoredPathSegmentRegex"
SHOWN = "^[.]"
"""Hides names with a dot, and shows those with an underscore."""


@pytest.fixture(autouse=True)
def _since_spark_4_3(spark):
    if tuple(map(int, spark.version.split(".")[:2])) < (4, 3):
        pytest.skip("before Spark 4.3 names with an underscore are always hidden")


def deep(spark, path, **options):
    return Dataset(spark.read.schema("id int").options(recursiveFileLookup="true", **options).json(path))


@pytest.fixture
def lines(tmp_path):
    """Objects of a format that reads anything."""
    folder = tmp_path / "lines"
    folder.mkdir()
    for n in range(4):
        (folder / f"{n}.json").write_text(f'{{"id": {n}}}\n')
    return str(folder)


def test_one_name_of_the_folder():
    assert METADATA_FOLDER == HIDDEN_FOLDER


@pytest.mark.parametrize("regex", [SHOWN, "", "^_(SUCCESS|temporary)"])
@pytest.mark.parametrize("by", ["setting", "option"])
def test_nothing_is_written_that_would_be_read_as_data(spark, lines, regex, by):
    options = {"ignoredPathSegmentRegex": regex} if by == "option" else {}
    with conf(spark, {SETTING: regex} if by == "setting" else {}):
        dataset = deep(spark, lines, **options)
        with pytest.raises(DatasetError, match=r"would be taken for data.*spark\.skipstone\.location"):
            dataset.create_indexes(MinMaxIndex("id"))
        assert not (Path(lines) / "_skipstone").exists()
        assert dataset.dataframe.count() == 4


def test_a_refresh_is_refused_before_it_writes(spark, lines):
    deep(spark, lines).create_indexes(MinMaxIndex("id"))
    files = sorted(Path(lines).rglob("*"))
    (Path(lines) / "9.json").write_text('{"id": 9}\n')
    with conf(spark, {SETTING: SHOWN}), pytest.raises(DatasetError, match="would be taken for data"):
        deep(spark, lines).refresh()
    assert sorted(set(Path(lines).rglob("*")) - {Path(lines) / "9.json"}) == files
    deep(spark, lines).refresh()


def test_a_query_that_reads_metadata_as_data_says_so(spark, lines):
    deep(spark, lines).create_indexes(MinMaxIndex("id"))
    reader = spark.read.schema("id int").option("recursiveFileLookup", "true")
    with conf(spark, {SETTING: SHOWN}):
        frame = reader.json(lines).where("id = 2")
        assert frame.count() == 1
        (entry,) = skipstone.last_query(spark)
        (said,) = (reason for reason in entry.not_used if "read as data" in reason)
        hidden = len([f for f in (Path(lines) / "_skipstone").rglob("*") if f.is_file() and f.name[0] != "."])
        assert said.startswith(f"{hidden} files of metadata (_skipstone) are read as data: ")
        assert "spark.skipstone.location" in said
        assert entry.objects.unindexed == hidden
        assert entry.objects.skipped == 3
        text = str(deep(spark, lines).explain(reader.json(lines).where("id = 2")))
        assert "files of metadata (_skipstone) are read as data" in text
    assert reader.json(lines).where("id = 2").count() == 1
    (entry,) = skipstone.last_query(spark)
    assert not any("read as data" in reason for reason in entry.not_used)


def test_metadata_elsewhere_may_be_shown(spark, lines, tmp_path):
    (tmp_path / "meta").mkdir()
    with conf(spark, {SETTING: SHOWN, "spark.skipstone.location": str(tmp_path / "meta")}):
        deep(spark, lines).create_indexes(MinMaxIndex("id"))
        (Path(lines) / "9.json").write_text('{"id": 9}\n')
        assert deep(spark, lines).refresh().indexed == 1


def test_metadata_elsewhere_but_below_the_data_is_refused(spark, lines):
    below = Path(lines) / "_elsewhere"
    below.mkdir()
    with (
        conf(spark, {SETTING: SHOWN, "spark.skipstone.location": str(below)}),
        pytest.raises(DatasetError, match="would be taken for data"),
    ):
        deep(spark, lines).create_indexes(MinMaxIndex("id"))
    assert not list(below.iterdir())


def test_old_metadata_beside_the_data_is_no_object_of_it(spark, lines, tmp_path):
    deep(spark, lines).create_indexes(MinMaxIndex("id"))
    (tmp_path / "meta").mkdir()
    with conf(spark, {SETTING: SHOWN, "spark.skipstone.location": str(tmp_path / "meta")}):
        with pytest.raises(DatasetError, match=r"_skipstone/.* is metadata"):
            deep(spark, lines).create_indexes(MinMaxIndex("id"))
        assert not list((tmp_path / "meta").iterdir())


@pytest.mark.parametrize(
    "options",
    [
        {"recursiveFileLookup": "false"},
        {"recursiveFileLookup": "true", "pathGlobFilter": "?.json"},
        {"recursiveFileLookup": "true", "ignoredPathSegmentRegex": "^_skip"},
    ],
)
def test_what_stays_hidden_is_indexed(spark, lines, options):
    with conf(spark, {SETTING: SHOWN}):
        dataset = Dataset(spark.read.schema("id int").options(**options).json(lines))
        dataset.create_indexes(MinMaxIndex("id"))
        again = spark.read.schema("id int").options(**options).json(lines)
        assert again.count() == 4
        assert again.where("id = 2").count() == 1
        (entry,) = skipstone.last_query(spark)
        assert entry.objects.skipped == 3


def test_partitions_beside_a_folder_that_is_none(spark, tmp_path):
    """Spark would refuse to read the dataset at all, once the metadata is there."""
    path = str(tmp_path / "parted")
    spark.range(4).selectExpr("id", "id % 2 AS p").write.partitionBy("p").parquet(path)
    with conf(spark, {SETTING: SHOWN}):
        for file in Path(path).glob("_SUCCESS*"):
            file.unlink()
        dataset = Dataset.for_path(spark, path)
        with pytest.raises(DatasetError, match="would be taken for data"):
            dataset.create_indexes(MinMaxIndex("id"))
        assert spark.read.parquet(path).count() == 4
