"""Who collects minima and maxima, and how: what is a sample says so."""

from __future__ import annotations

import json

import pytest
from benchmarks.bounds import _shape, _time
from benchmarks.measures import Row, Sample

from benchmarks import table_formats


def test_the_shape_of_xskipper_is_told_as_a_sample_by_other_code():
    told = _shape(256, 8_192)
    assert "not xskipper" in told
    assert "code of our own" in told
    assert "a sample of 256 of 8,192 objects" in told
    assert "taken 32 times" in told


def test_a_sample_is_extrapolated_to_all_objects():
    row = _time("theirs", Sample((2.0, 4.0, 3.0)), Sample((1.0, 2.0, 1.5)), "a sample", 32)
    assert row.measured == pytest.approx(16)
    assert (row.low, row.high) == pytest.approx((16, 16))


def test_rows_of_another_environment_say_on_which_spark(tmp_path, monkeypatch):
    monkeypatch.setattr(table_formats.sys, "argv", ["bounds", str(tmp_path / "rows.json"), "full"])
    monkeypatch.setattr(table_formats.pyspark, "__version__", "4.0.2")
    table_formats.answer(lambda *, small: [Row("what", 1.0, "s", None, "8 objects")])
    (row,) = json.loads((tmp_path / "rows.json").read_text())
    assert Row(**row).conditions == "8 objects; on Spark 4.0.2"
