"""The first query of a process is told by the median of several processes, with the parts of its time."""

from __future__ import annotations

import pytest
from benchmarks.first_query import INDEXES, _rows
from benchmarks.runner import NAMES


def answer(planning, second):
    parts = {"planner": planning / 2, "metadata": planning / 4}
    times = {"planning": planning, "second": second, "optimizer": planning + 0.1, "listing": 3.0, "parts": parts}
    return {**times, "bytes_read": 500, "objects": 8_192, "kept": 1}


def test_a_row_has_median_and_spread_of_the_processes_and_its_target():
    answers = [answer(0.2, 0.01), answer(0.1, 0.03), answer(0.14, 0.02)]
    first, second = _rows("bloomfilter(db_name)", answers, 10_000, "8,192 objects")
    assert (first.measured, first.low, first.high) == pytest.approx((140, 100, 200))
    assert (first.target, first.met, first.unit) == (150, True, "ms")
    assert first.what == "bloomfilter(db_name): planning the first query of a process"
    assert first.details["parts_ms"] == pytest.approx({"planner": 70, "metadata": 35})
    assert first.details["metadata_bytes"] == 10_000
    assert (second.measured, second.target) == (20, None)


def test_it_is_among_the_benchmarks_for_the_three_types():
    assert "first_query" in NAMES
    assert [index.type_name for index in INDEXES] == ["minmax", "valuelist", "bloomfilter"]
