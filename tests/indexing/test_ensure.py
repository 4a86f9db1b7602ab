"""Indexes that are ensured: created where they are missing, refreshed where they are not, and never made twice."""

from __future__ import annotations

import shutil

import pytest

from skipstone import BloomFilterIndex, Dataset, FeatureIndex, MinMaxIndex, ValueListIndex
from skipstone.errors import IndexingError, IndexNotFoundError
from tests.support import conf, write_objects

DDL = "n INT, t STRING"


@pytest.fixture
def lake(spark, tmp_path):
    folder = tmp_path / "lake"
    write_objects(spark, folder, DDL, ["(1, 'a')", "(2, 'b')"])
    return folder


def dataset(spark, folder):
    return Dataset.for_path(spark, str(folder))


def names(handle):
    return sorted(row.name for row in handle.describe().collect())


def kept(spark, folder, predicate):
    return len(spark.read.parquet(str(folder)).where(predicate).inputFiles())


def test_what_is_missing_is_created_and_the_rest_refreshed(spark, lake, tmp_path):
    report = dataset(spark, lake).ensure_indexes(MinMaxIndex("n"))
    assert (report.indexes, report.indexed) == (("minmax(n)",), 2)
    again = dataset(spark, lake).ensure_indexes(MinMaxIndex("n"))
    assert (again.version, again.indexed) == (report.version, 0)  # nothing is written
    write_objects(spark, tmp_path / "more", DDL, ["(3, 'c')"])
    (new,) = (tmp_path / "more").glob("*.parquet")
    shutil.copy2(new, lake / "new.parquet")
    third = dataset(spark, lake).ensure_indexes(MinMaxIndex("n"), ValueListIndex("t"))
    assert third.indexes == ("minmax(n)", "valuelist(t)")
    assert {row.covered for row in dataset(spark, lake).describe().collect()} == {3}
    assert kept(spark, lake, "n = 3") == kept(spark, lake, "t = 'c'") == 1


def test_indexes_that_are_not_named_stay_and_are_refreshed(spark, lake, tmp_path):
    dataset(spark, lake).create_indexes(ValueListIndex("t"))
    write_objects(spark, tmp_path / "more", DDL, ["(3, 'c')"])
    (new,) = (tmp_path / "more").glob("*.parquet")
    shutil.copy2(new, lake / "new.parquet")
    dataset(spark, lake).ensure_indexes(MinMaxIndex("n"))
    assert names(dataset(spark, lake)) == ["minmax(n)", "valuelist(t)"]
    assert kept(spark, lake, "t = 'a'") == 1


def test_after_an_overwrite_everything_is_made_anew(spark, lake):
    dataset(spark, lake).ensure_indexes(MinMaxIndex("n"), FeatureIndex({"late": "n > 1"}))
    spark.createDataFrame([(7, "x")], DDL).write.mode("overwrite").parquet(str(lake))
    with pytest.raises(IndexNotFoundError, match="perhaps overwritten.*spark.skipstone.location.*ensure_indexes"):
        dataset(spark, lake).refresh()
    dataset(spark, lake).ensure_indexes(MinMaxIndex("n"), FeatureIndex({"late": "n > 1"}))
    assert kept(spark, lake, "n = 1") == 0
    assert kept(spark, lake, "n = 7") == 1


def test_metadata_elsewhere_survives_an_overwrite(spark, lake, tmp_path):
    (tmp_path / "metadata").mkdir()
    with conf(spark, {"spark.skipstone.location": str(tmp_path / "metadata")}):
        dataset(spark, lake).ensure_indexes(MinMaxIndex("n"))
        spark.createDataFrame([(7, "x")], DDL).write.mode("overwrite").parquet(str(lake))
        assert spark.read.parquet(str(lake)).where("n = 7").count() == 1
        dataset(spark, lake).ensure_indexes(MinMaxIndex("n"))
        assert kept(spark, lake, "n = 1") == 0


def test_features_are_restated(spark, lake, tmp_path):
    late = FeatureIndex({"late": "n > 1"})
    dataset(spark, lake).ensure_indexes(late)
    write_objects(spark, tmp_path / "more", DDL, ["(0, 'c')"])
    (new,) = (tmp_path / "more").glob("*.parquet")
    shutil.copy2(new, lake / "new.parquet")
    assert not dataset(spark, lake).ensure_indexes(late).problems
    assert [row.covered for row in dataset(spark, lake).describe().collect()] == [3]


def test_an_index_of_that_name_that_was_made_otherwise_is_refused_and_nothing_is_changed(spark, lake):
    handle = dataset(spark, lake)
    version = handle.ensure_indexes(BloomFilterIndex("t", fpp=0.1, name="mine")).version
    for other in (BloomFilterIndex("t", fpp=0.2, name="mine"), ValueListIndex("t", name="mine")):
        with pytest.raises(IndexingError, match="mine that was made in another way; drop it first"):
            handle.ensure_indexes(MinMaxIndex("n"), other)
    assert names(handle) == ["mine"]
    assert handle.refresh().version == version


def test_every_column_includes_those_that_came_later(spark, lake, tmp_path):
    dataset(spark, lake).ensure_indexes(MinMaxIndex("*"))
    write_objects(spark, tmp_path / "wide", "n INT, t STRING, w INT", ["(3, 'c', 9)"])
    (new,) = (tmp_path / "wide").glob("*.parquet")
    shutil.copy2(new, lake / "wide.parquet")
    handle = Dataset(spark.read.option("mergeSchema", "true").parquet(str(lake)))
    assert [index.name for index in handle.missing_indexes(MinMaxIndex("*"))] == ["minmax(w)"]


def test_damaged_metadata_is_made_anew(spark, lake):
    dataset(spark, lake).ensure_indexes(MinMaxIndex("n"))
    for part in (lake / "_skipstone").rglob("*.parquet"):
        part.write_bytes(b"damaged")
    dataset(spark, lake).ensure_indexes(MinMaxIndex("n"), ValueListIndex("t"))
    assert names(dataset(spark, lake)) == ["minmax(n)", "valuelist(t)"]
    assert kept(spark, lake, "n = 2") == kept(spark, lake, "t = 'a'") == 1


def test_no_index_at_all_is_refused(spark, lake):
    with pytest.raises(IndexingError, match="needs at least one index"):
        dataset(spark, lake).ensure_indexes()


def test_paths_of_a_refresh_are_relative_to_the_dataset(spark, lake, tmp_path):
    dataset(spark, lake).create_indexes(MinMaxIndex("n"))
    write_objects(spark, tmp_path / "more", DDL, ["(3, 'c')"])
    (new,) = (tmp_path / "more").glob("*.parquet")
    shutil.copy2(new, lake / "new.parquet")
    assert dataset(spark, lake).refresh(["new.parquet"]).indexed == 1
    assert kept(spark, lake, "n = 1") == 1


def test_the_seconds_of_a_job_are_split_into_its_phases(spark, lake, tmp_path):
    created = dataset(spark, lake).ensure_indexes(MinMaxIndex("n"))
    assert list(created.phases) == ["preparing", "listing", "collecting", "listing again", "commit"]
    assert sum(created.phases.values()) == pytest.approx(created.seconds)
    assert min(created.phases.values()) >= 0
    assert dataset(spark, lake).refresh().phases == {}  # nothing was collected
    write_objects(spark, tmp_path / "more", DDL, ["(3, 'c')"])
    (new,) = (tmp_path / "more").glob("*.parquet")
    shutil.copy2(new, lake / "new.parquet")
    both = dataset(spark, lake).ensure_indexes(MinMaxIndex("n"), ValueListIndex("n"))
    assert sum(both.phases.values()) == pytest.approx(both.seconds)
    assert hash(both)
