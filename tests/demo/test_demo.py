"""The demo at a small scale: it skips, it compares, and it would notice a wrong answer."""

from __future__ import annotations

import dataclasses
import io
import json

import pytest
from rich.console import Console

from skipstone.demo import run as demo
from skipstone.demo.data import Scale
from skipstone.demo.run import DemoError, Query, print_demo, run_demo, write_data

SMALL = Scale(latitudes=4, longitudes=12, quarters=2, weather_rows=40, log_objects=12, log_rows=600)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    write_data(folder, SMALL)
    return folder


def test_it_skips_and_prints(spark, data):
    result = run_demo(spark, data, runs=1)
    assert [d.objects for d in result.datasets] == [96, 12]
    assert all(q.agree and q.objects_read <= q.objects_total for q in result.queries)
    assert sum(q.objects_read < q.objects_total for q in result.queries) >= 6
    assert result.queries[-1].objects_read == result.queries[-1].objects_total, "the honest example: nothing to skip"
    assert "feels_like" in result.explain
    assert json.loads(json.dumps(dataclasses.asdict(result)))["queries"][0]["speedup"] > 0
    console = Console(width=160, record=True, file=io.StringIO())
    print_demo(console, result)
    text = console.export_text()
    assert "of 96" in text
    assert "feels_like(temp, wind)" in text
    assert text.count("✓") == len(result.queries)


def test_a_wrong_answer_is_noticed(spark, data, monkeypatch):
    monkeypatch.setattr(demo, "QUERIES", (Query("logs", "rand() < 0.5", "user, millis"),))
    monkeypatch.setattr(demo, "_indexes", dict)
    spark.read.parquet(str(data / "logs")).createOrReplaceTempView("logs")
    with pytest.raises(DemoError, match="the answers differ"):
        run_demo(spark, data, runs=1)
    assert spark.conf.get("spark.skipstone.enabled", "true") == "true"


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(DemoError, match="overwrites nothing"):
        write_data(tmp_path, SMALL)
    assert [f.name for f in tmp_path.iterdir()] == ["mine"]
