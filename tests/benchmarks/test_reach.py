"""The queries of TPC-H are all there, and what was measured beyond filters is written up with its verdicts."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from benchmarks.datasets import tpch
from benchmarks.experiments import reach
from benchmarks.measures import Row
from benchmarks.runner import NAMES

from benchmarks import tpch as benchmark

SCAN = {"clause": "c", "objects": 200, "objects_skipped": 50, "bytes": 1000, "bytes_skipped": 400, "joins": None}
FILTERS = [{**SCAN, "planning": 0.01, "asking": 0.0}]
ON = [{**SCAN, "objects_skipped": 150, "bytes_skipped": 800, "planning": 0.02, "asking": 0.03}]
QUERY = benchmark.Measured(
    {"off": (2.0, 4.0, 3.0), "filters alone": (2.0, 2.0, 9.0), "on": (1.5, 9.0, 0.5)},
    {"off": (4.0, 4.0, 4.0), "filters alone": (4.0, 4.0, 4.0), "on": (1.0, 1.0, 1.0)},
    {"off": [], "filters alone": FILTERS, "on": ON},
    7,
)


def test_all_queries_are_there_and_q11_knows_the_scale():
    queries = tpch.queries(10)
    assert list(queries) == [f"Q{n}" for n in range(1, 23)]
    assert "* 0.0000100000" in queries["Q11"]
    assert not any("--" in text or "$" in text or ";" in text for text in queries.values())


def test_a_large_table_is_laid_out_by_date():
    dates = pa.array([8035 + day for day in (8, 1, 7, 2, 29)], pa.date32())
    table = pa.table({"l_shipdate": dates, "note": pa.array(list("dacbe"), pa.string_view())})
    objects = {number: rows.column("note").to_pylist() for number, rows in tpch.cut(table, "l_shipdate", 7)}
    assert objects == {0: ["a", "b"], 1: ["c", "d"], 4: ["e"]}


def test_a_missing_generator_is_named(monkeypatch):
    monkeypatch.setattr(tpch.shutil, "which", lambda *_, **__: None)
    with pytest.raises(RuntimeError, match=r"pip install 'skipstone\[bench\]'"):
        tpch._generator()


def test_a_query_is_told_by_medians_best_and_processor_time():
    mean, _, row = benchmark._rows({"Q1": QUERY}, 1, small=False)
    assert (mean.measured, mean.met) == (0.5, True)
    assert (row.measured, row.met, row.low, row.high) == (0.5, True, 0.5 / 3, 2.25)
    assert (row.details["of_best"], row.details["cpu_ratio"]) == (0.25, 0.25)
    assert row.details["objects_skipped"] == {"filters alone": 0.25, "on": 0.75}
    assert row.details["planning_and_asking"] == pytest.approx(0.05)
    slow = replace(QUERY, seconds={**QUERY.seconds, "on": (3.3, 3.3, 3.3)})
    assert benchmark._rows({"Q1": slow}, 1, small=False)[2].met is False


@pytest.mark.parametrize(
    ("off", "least", "wanted"),
    [(0.5, 3, 9), (3.5, 3, 9), (5.0, 3, 6), (12.0, 3, 3), (60.0, 3, 3), (12.0, 2, 3), (60.0, 2, 2)],
)
def test_short_queries_are_timed_often_and_long_ones_seldom(off, least, wanted):
    rounds, done = benchmark.Rounds(least), 0
    measured = replace(QUERY, seconds=dict.fromkeys(benchmark.WAYS, ()))
    while rounds.wanted(measured):
        done += 1
        measured = replace(QUERY, seconds={"off": (off,) * done, "on": (0.1,) * done, "filters alone": (0.1,) * done})
    assert done == wanted
    assert f"{wanted} rounds of each query" in benchmark._rows({"Q1": measured}, 1, small=False)[0].conditions


def test_what_was_measured_is_found_after_a_commit_and_not_by_other_sources(monkeypatch):
    described = benchmark.machine.describe_machine()
    there = benchmark._file(1)
    monkeypatch.setattr(benchmark.machine, "describe_machine", lambda: {**described, "commit": "other"})
    assert benchmark._file(1) == there
    monkeypatch.setattr(benchmark.machine, "describe_machine", lambda: {**described, "processor": "other"})
    assert benchmark._file(1) != there
    monkeypatch.undo()
    monkeypatch.setattr(benchmark.machine, "digest", lambda files, root=None: "other")
    assert benchmark._file(1) != there


def test_the_page_has_what_was_measured(tmp_path):
    machine = {"cores": 2, "processor": "P", "memory_gb": 25.3, "pyspark": "4.3.0"}
    run = {"when": "2026-01-02T03:04", "seconds": 12.0, "load_before": 0.3, "commit": "abc", "machine": machine}
    star = Row("star", 19.6, "x", 10, "8,192 objects", at_least=True, low=16.4, high=25.8, details={"of_best": 17.0})
    asking = Row("asking", 39.2, "ms", 30, "8,192 objects")
    rows = [row.described() for row in benchmark._rows({"Q1": QUERY}, 1, small=False)]
    results = {
        "runs": {"joins": {**run, "rows": [star.described(), asking.described()]}, "tpch": {**run, "rows": rows}},
    }
    (tmp_path / "full.json").write_text(json.dumps(results))
    text = reach.sections(tmp_path / "full.json")
    assert "| star | 19.6 x | 16.4 to 25.8 | 17 x |  | ≥ 10 x: met |" in text
    assert "| asking | 39.2 ms |  |  |  | ≤ 30 ms: **missed** |" in text
    assert "**joins.** 8,192 objects. 2 cores (P), 25 GB, Spark 4.3.0; load 0.3 at the start, 12 s in all" in text
    assert "| Q1 | 3 s | 0.5 | 0.25 | 0.25 | 0.667 | 25 %, 75 % | 40 %, 80 % | 50 ms | ≤ 1.05: met |" in text
    assert "No result at the full scale yet: `top_k`, `aggregates`, `tables`, `tpch_10`." in text
    nothing = reach.sections(tmp_path / "none.json")
    assert nothing.count("No result at the full scale yet") == len(reach.SECTIONS)


def test_every_benchmark_is_in_one_section():
    assert sorted(name for section in reach.SECTIONS for name in section.names) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_with_a_result_is_on_the_page_with_its_condition(name, tmp_path):
    machine = {"cores": 2, "processor": "P", "memory_gb": 25.3, "pyspark": "4.3.0"}
    parts = {"parts_ms": {"planner": 1.5, "match": 2.0}}
    rows = [
        Row(f"{name} {number}", 4.0, "ms", 5.0, f"condition {number}", details=parts).described() for number in range(3)
    ]
    run = {"when": "2026-01-02T03:04", "seconds": 12.0, "load_before": 0.3, "commit": "abc", "machine": machine}
    for some in (1, 3):
        (tmp_path / "full.json").write_text(json.dumps({"runs": {name: {**run, "rows": rows[:some]}}}))
        text = reach.sections(tmp_path / "full.json")
        assert f"**{name}.** " in text
        assert f"| {name} 0 (planner 1.5 ms, match 2 ms) | 4 ms |  |  |  | ≤ 5 ms: met |" in text
        assert all(f"condition {number}" in text for number in range(some))
    assert f"**{name}.** (1) condition 0; (2) condition 1; (3) condition 2. 2 cores (P), 25 GB" in text
    assert "≤ 5 ms: met | (3) |" in text
