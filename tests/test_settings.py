"""Settings: Spark's notations of bytes and times, and what is wrong with them, said once."""

from __future__ import annotations

import logging

import pytest

from skipstone import settings
from skipstone.settings import complain_once, complaints, read_bytes, read_milliseconds


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), ("64k", 65536), ("1 MB", 1 << 20), ("2g", 2 << 30), ("1tb", 1 << 40), ("7b", 7), (" 1G ", 1 << 30)],
)
def test_bytes(text, number):
    assert read_bytes(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("500", 500), ("500ms", 500), ("30s", 30_000), ("2m", 120_000), ("2min", 120_000), ("1h", 3_600_000)],
)
def test_times(text, number):
    assert read_milliseconds(text) == number


@pytest.mark.parametrize("text", ["", "g", "1.5g", "-1", "1x", "1 g b", "0", "0k"])
def test_what_is_no_number_of_bytes(text):
    with pytest.raises(ValueError, match=text.strip() or None):
        read_bytes(text)


@pytest.mark.parametrize("text", ["", "s", "1.5s", "-1s", "1 year", "ten"])
def test_what_is_no_time(text):
    with pytest.raises(ValueError, match=text.strip() or None):
        read_milliseconds(text)


def test_the_bridge_reads_times_as_python_does(spark):
    read = spark._jvm.org.apache.spark.sql.skipstone.CompanionSettings.milliseconds
    for text in ("500", "500ms", "30s", "2min", "2m", "1h", "-1", "ten", "1.5s"):
        try:
            expected = read_milliseconds(text)
        except ValueError:
            expected = None
        found = read(text)
        assert (found.get() if found.isDefined() else None) == expected, text


def test_complaints():
    found = dict(
        complaints({"enabeld": "true", "cacheBytes": "lots", "kms.file": "x", "function.f": "1", "store": "a"})
    )
    assert found["there is no setting spark.skipstone.enabeld"] == "did you mean spark.skipstone.enabled?"
    assert "512m" in found["spark.skipstone.cacheBytes is 'lots'"]
    assert len(found) == 2


def test_settings_of_a_plugins_store_are_known():
    assert list(complaints({"shelf.url": "x"}))
    assert not list(complaints({"shelf.url": "x"}, ("shelf.",)))


def test_a_query_complains_once(spark, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(settings, "_complained", set())
    spark.range(1).write.parquet(str(tmp_path / "d"))
    spark.conf.set("spark.skipstone.plannerTimeuotMs", "1s")
    try:
        with caplog.at_level(logging.WARNING, "skipstone"):
            for number in range(3):
                spark.read.parquet(str(tmp_path / "d")).where(f"id = {number}").collect()
    finally:
        spark.conf.unset("spark.skipstone.plannerTimeuotMs")
    said = [record.getMessage() for record in caplog.records]
    wanted = "there is no setting spark.skipstone.plannerTimeuotMs: did you mean spark.skipstone.plannerTimeoutMs?"
    assert said.count(wanted) == 1
    with caplog.at_level(logging.WARNING, "skipstone"):
        complain_once({"plannerTimeuotMs": "1s", "enabled": "true"})
    assert len(caplog.records) == len(said)
