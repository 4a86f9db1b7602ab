"""What indexes would cost, from a sample, against what they do cost."""

from dataclasses import replace

import pytest

from skipstone import BloomFilterIndex, Dataset, MinMaxIndex, ValueListIndex
from skipstone.errors import DatasetError, IndexingError
from skipstone.indexing.estimate import spread
from skipstone.indexing.objects import DataObject

OBJECTS = 60


@pytest.fixture(scope="module")
def dataset(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("estimate") / "data"
    rows = spark.range(0, 60_000, 1, OBJECTS).selectExpr("id", "concat('user-', abs(xxhash64(id)) % 20000) AS name")
    rows.write.parquet(str(folder))
    return Dataset.for_path(spark, str(folder))


def test_an_estimate_is_near_what_the_indexes_take_and_leaves_nothing(dataset):
    indexes = (MinMaxIndex("id"), ValueListIndex("name"), BloomFilterIndex("name"))
    told = dataset.estimate(*indexes, objects=12)
    assert not dataset.is_indexed
    assert (told.objects, told.sampled) == (OBJECTS, 12)
    assert told.seconds > 0

    report = dataset.create_indexes(*indexes)
    taken = {row["name"]: row["bytes"] for row in dataset.describe().collect()}
    assert [one.name for one in told.indexes] == list(report.indexes)
    for one in told.indexes:
        assert taken[one.name] / 3 <= one.metadata_bytes <= taken[one.name] * 3, one
        assert one.share == pytest.approx(one.metadata_bytes / told.bytes, rel=0.01)
    largest = max(told.indexes, key=lambda one: one.metadata_bytes)
    assert largest.name == max(taken, key=taken.get)
    assert taken[largest.name] / 1.5 <= largest.metadata_bytes <= taken[largest.name] * 1.5
    assert report.metadata_bytes / 2 <= told.metadata_bytes <= report.metadata_bytes * 2

    same = dataset.estimate(ValueListIndex("name"), objects=10_000)
    assert same.sampled == same.objects == OBJECTS
    assert same.indexes[0].metadata_bytes == pytest.approx(taken["valuelist(name)"], rel=0.05)
    assert "60 objects" in str(same)
    assert "valuelist(name)" in str(same)
    assert " of the data, in about " in str(same)
    dataset.drop_indexes()


def test_a_protected_index_is_estimated_without_its_key(dataset):
    told = dataset.estimate(replace(MinMaxIndex("id"), key="pii"), objects=2)
    assert told.indexes[0].metadata_bytes > 0


def test_what_makes_no_sense(dataset, spark, tmp_path):
    with pytest.raises(IndexingError, match="at least one index"):
        dataset.estimate()
    with pytest.raises(IndexingError, match=r"MinMaxIndex\('id'\)"):
        dataset.estimate("id")
    with pytest.raises(IndexingError, match="at least one object"):
        dataset.estimate(MinMaxIndex("id"), objects=0)
    with pytest.raises(Exception, match="did you mean id"):
        dataset.estimate(MinMaxIndex("idd"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="no objects"):
        Dataset.for_path(spark, str(tmp_path / "empty"), schema="id bigint").estimate(MinMaxIndex("id"))


def test_a_sample_has_objects_of_all_sizes():
    objects = [DataObject(f"file:/{n}", n, 0, "") for n in range(100)]
    assert [o.length for o in spread(objects, 4)] == [12, 37, 62, 87]
    assert spread(objects, 200) == objects
    assert len(set(spread(objects, 99))) == 99
