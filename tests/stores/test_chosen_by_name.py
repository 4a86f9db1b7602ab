"""Metadata stores are chosen by name, and one of one's own is a plug-in like the others."""

from __future__ import annotations

import pytest

from skipstone import Dataset, MinMaxIndex, registry, skipping_stats
from skipstone.errors import PluginError, SettingError
from skipstone.stores.memory import InMemoryStore

MADE = []


class OwnStore(InMemoryStore):
    settings = ("own.", "cacheBytes")

    @classmethod
    def for_session(cls, spark, settings):
        MADE.append(dict(settings))
        return super().for_session(spark, settings)


class OtherStore(InMemoryStore):
    pass


@pytest.fixture
def numbers(spark, tmp_path):
    folder = tmp_path / "numbers"
    spark.range(40).repartitionByRange(4, "id").write.parquet(str(folder))
    yield folder
    for name in ("store", "own.a", "cacheBytes"):
        spark.conf.unset(f"spark.skipstone.{name}")


@pytest.mark.parametrize("name", ["memory", "own"])
def test_a_store_that_is_no_folder_serves_queries(spark, numbers, name):
    registry.register_store("own", OwnStore)
    spark.conf.set("spark.skipstone.store", name)
    dataset = Dataset.for_path(spark, str(numbers))
    dataset.create_indexes(MinMaxIndex("id"))
    assert not list(numbers.glob("_skipstone*"))
    with skipping_stats(spark) as stats:
        assert dataset.dataframe.where("id = 17").count() == 1
    assert (stats[-1].objects.total, stats[-1].objects.skipped) == (4, 3)
    assert dataset.refresh().version == 1
    dataset.drop_indexes()
    assert not dataset.is_indexed


def test_one_store_is_made_for_equal_settings_of_its_own(spark, numbers):
    registry.register_store("own", OwnStore)
    spark.conf.set("spark.skipstone.store", "own")
    dataset = Dataset.for_path(spark, str(numbers))
    MADE.clear()
    for value in ("1", "2", "1"):
        spark.conf.set("spark.skipstone.own.a", value)
        spark.conf.set("spark.skipstone.location", value)  # not its own
        assert not dataset.is_indexed
    spark.conf.unset("spark.skipstone.location")
    assert MADE == [{"own.a": "1"}, {"own.a": "2"}]


def test_a_name_that_no_store_has(spark, numbers):
    spark.conf.set("spark.skipstone.store", "nowhere")
    with pytest.raises(SettingError, match="there is no such metadata store; use one of .*'memory'.*'parquet'"):
        Dataset.for_path(spark, str(numbers)).create_indexes(MinMaxIndex("id"))
    frame = spark.read.parquet(str(numbers))
    with skipping_stats(spark) as stats:
        assert frame.where("id = 17").count() == 1
    assert "there is no such metadata store" in " ".join(stats[-1].not_used)


def test_two_stores_of_one_name():
    registry.register_store("own", OwnStore)
    registry.register_store("own", OwnStore)
    with pytest.raises(PluginError, match="'own' is already taken by .*OwnStore"):
        registry.register_store("own", OtherStore)
