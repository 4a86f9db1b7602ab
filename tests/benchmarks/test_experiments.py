"""Records become a page and plots that say what was measured, under which condition, and what was not."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.datasets.writing import Generated
from benchmarks.experiments import (
    fig7_indexing,
    fig8_breakdown,
    fig11_indicators,
    fig12_prefix_length,
    metadata_read,
    page,
    plots,
    table_indexing,
    workloads,
)
from benchmarks.experiments.record import NAMES, Finding, Record, load, result_file, save

from benchmarks import growth

MACHINE = {"cores": 2, "memory_gb": 25.2, "pyspark": "4.3.0", "commit": "abc1234"}


def record(name, *findings, scale="full", rows=(), storage="local", threads=0):
    run = {
        "threads": threads,
        "scale": scale,
        "storage": storage,
        "machine": MACHINE,
        "load_before": 0.3,
        "seconds": 12.0,
    }
    run["when"] = "2026-01-02T03:04+00:00"
    return Record(name, "Title", "Figure 1", "4,000 objects of 1,570 KB.", list(rows), list(findings), run)


def rows_of(name):
    """Rows as each experiment makes them, of made-up figures."""
    timing = {"median": 2.0, "low": 1.5, "high": 2.5, "runs": 5}
    factors = {"selectivity": 1e-4, "layout_factor": 0.01, "metadata_factor": 0.95, "scanning_factor": 0.0105}
    build = {"build_seconds": 9.0, "metadata_bytes": 5_000, "column_bytes": 80_000}
    return {
        "fig7_indexing": [
            {"index": index, "columns": n, "together": timing, "separate_seconds": 2.0 * n, "metadata_bytes": 900 * n}
            for index in fig7_indexing.LABELS
            for n in fig7_indexing.COUNTS
        ],
        "fig8_breakdown": [
            {
                "query": query,
                "index": index,
                "seconds": {"median": 4.0, "low": 3.5, "high": 5.0} if index == "none" else timing,
                "planning_seconds": 0.0 if index == "none" else 0.1,
                "planning_parts": {} if index == "none" else dict.fromkeys(fig8_breakdown.PARTS, 0.02),
                "bytes_scanned": 9_000_000 if index == "none" else 1_000_000,
                "metadata_bytes_read": 0 if index == "none" else 4_000,
            }
            for query in fig8_breakdown.PRESENCE
            for index in ("ValueList", "none")
        ]
        + [{"index": "ValueList", **build}],
        "fig11_indicators": [{"index": name, **factors} for name in ("prefix", "suffix")],
        "fig12_prefix_length": [
            {"length": n, "metadata_bytes": 100 * (n or 150), **factors} for n in (5, 15, 30, None)
        ],
        "metadata_read": [
            {
                "index": "valuelist(db_name)",
                "bytes_stored": 1_000_000,
                "metadata_bytes_read": 20_000,
                "planning_seconds": 0.2,
                "again_planning_seconds": 0.01,
            }
        ],
        "table_indexing": [
            table_indexing._row(
                case,
                {k: {"seconds": 1.0, "metadata_bytes": 10.0, "column_bytes": 2_000.0} for k in table_indexing.WEIGHTS},
            )
            for case in table_indexing.CASES
        ]
        + [
            {
                "index": "minmax(lat), weather",
                "metadata_bytes_an_object": 20.0,
                "seconds_an_object": 0.1,
                "paper_metadata_bytes_an_object": 46.4,
                "paper_minutes": 1.2,
            }
        ],
    }[name]


EXPERIMENTS = (fig7_indexing, fig8_breakdown, fig11_indicators, fig12_prefix_length, metadata_read, table_indexing)


@pytest.fixture(autouse=True)
def grown(monkeypatch, tmp_path):
    """Results of growth, of which there are none."""
    monkeypatch.setattr(growth, "RESULTS", tmp_path / "growth")
    return tmp_path / "growth"


@pytest.mark.parametrize("module", EXPERIMENTS, ids=lambda module: module.NAME)
def test_every_experiment_draws_its_rows_as_svg(module, tmp_path):
    rows = rows_of(module.NAME)
    drawn = record(module.NAME, *module._findings(rows), rows=rows)
    plots.save(module.plot(drawn), tmp_path / "plot.svg")
    text = (tmp_path / "plot.svg").read_text()
    assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert text.count("<path") > 20
    plots.save(module.plot(drawn), tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == text


def test_findings_are_computed_from_the_rows():
    found = {f.what: f.measured for f in fig8_breakdown._findings(rows_of("fig8_breakdown"))}
    assert found["Q1: without skipping / with ValueList"] == 2.0
    assert found["ValueList: planning with metadata, share of the time"] == pytest.approx(5.0)
    assert found["ValueList: time that a query saves / time of indexing"] == pytest.approx(2 / 9)
    assert found["ValueList: bytes that a query saves / bytes of the indexed column"] == pytest.approx(100)
    (table, *_) = table_indexing._findings(rows_of("table_indexing"))
    assert table.measured == pytest.approx(0.5)
    assert table.paper == "2.4 %"
    assert (table.met, table.target) == (True, pytest.approx(163.2 / 6_730 * 100))
    sizes = fig12_prefix_length._findings(rows_of("fig12_prefix_length"))
    assert sizes[0].measured == 10.0
    (share, *_) = metadata_read._findings(rows_of("metadata_read"))
    assert (share.measured, share.met) == (2.0, True)


def test_the_shares_of_the_paper_are_those_of_its_table():
    shares = {case.index.name: round(case.share, 2) for case in table_indexing.CASES}
    assert [shares[f"{kind}(db_name)"] for kind in ("valuelist", "bloomfilter", "hybrid")] == [2.42, 1.01, 0.6]
    assert shares["prefix(db_name, length=15)"] == 0.25
    assert shares["suffix(db_name, length=15)"] == 0.53
    assert shares["minmax(http_status)"] == 0.02
    assert round(table_indexing.WEATHER_BYTES) == 46


def test_a_record_is_read_as_it_was_kept(tmp_path):
    kept = record("fig12_prefix_length", Finding("what", 1.5, "x", "2x", 1.0, True, note="why"), rows=[{"a": None}])
    file = result_file(kept.name, "s3", "medium", tmp_path)
    assert load(file) is None
    save(kept, file)
    assert load(file) == kept
    assert file == tmp_path / "s3-medium" / "fig12_prefix_length.json"


def test_the_page_shows_each_figure_with_paper_condition_and_verdict(tmp_path):
    name = "fig12_prefix_length"
    met = Finding("size ratio", 12.34, "x", "9.6x", 10.0, at_least=True, low=11.0, high=13.0)
    missed = Finding("scanning", 0.5, "", "0.01", 0.1, note="the layout is the limit")
    rows = rows_of(name)
    save(record(name, met, missed, rows=rows), result_file(name, "local", "full", tmp_path / "results"))
    save(record(name, met, rows=rows, scale="small"), result_file(name, "local", "small", tmp_path / "results"))
    small = record("metadata_read", missed, rows=rows_of("metadata_read"), scale="small", storage="s3")
    save(small, result_file("metadata_read", "s3", "small", tmp_path / "results"))
    said = page.write(tmp_path / "results", tmp_path / "docs")
    text = (tmp_path / "docs" / "experiments.md").read_text()
    assert said == f"docs/experiments.md shows 2 of {len(NAMES)} experiments"
    assert "| size ratio | 12.3 x | 11 to 13 | 9.6x | ≥ 10 x: met |" in text
    assert "| scanning | 0.5 |  | 0.01 | ≤ 0.1: **missed** |" in text
    assert "- scanning: the layout is the limit" in text
    assert text.count("4,000 objects of 1,570 KB. 2 cores, 25 GB, Spark 4.3.0; load 0.3 at the start, 12 s in all") == 2
    assert "not judged at the small scale" in text
    assert (
        f"| [{fig12_prefix_length.TITLE}](#prefix-length-against-effectiveness-and-size) | Figure 12 | local full |"
        in text
    )
    assert text.count("Not measured.") == len(NAMES) - 2 + 1  # and growth
    pictures = re.findall(r"\]\((experiments/[\w-]+\.svg)\)", text)
    assert sorted(pictures) == ["experiments/fig12_prefix_length.svg", "experiments/metadata_read-s3.svg"]
    assert all((tmp_path / "docs" / picture).exists() for picture in pictures)


def test_two_numbers_of_threads_stand_side_by_side(tmp_path):
    name, results = "fig12_prefix_length", tmp_path / "results"
    finding, rows = Finding("size ratio", 12.0, "x"), rows_of("fig12_prefix_length")
    for threads, scale in ((0, "medium"), (16, "small"), (16, "medium")):
        kept = record(name, finding, rows=rows, scale=scale, storage="s3", threads=threads)
        save(kept, result_file(name, "s3", scale, results, threads=threads))
    assert (results / "s3-medium-16-threads" / f"{name}.json").exists()
    page.write(results, tmp_path / "docs")
    text = (tmp_path / "docs" / "experiments.md").read_text()
    assert "| Figure 12 | s3 medium; s3 medium, 16 threads | not judged |" in text
    assert re.findall(r"\*\*Measured \((.*?)\)", text) == ["s3, medium", "s3, medium, 16 threads"]
    pictures = re.findall(rf"\]\((experiments/{name}[\w-]*\.svg)\)", text)
    assert pictures == [f"experiments/{name}-s3.svg", f"experiments/{name}-s3-16-threads.svg"]
    assert all((tmp_path / "docs" / picture).exists() for picture in pictures)


def test_growth_is_on_the_page_with_table_plot_and_condition(tmp_path, grown):
    grown.mkdir()
    for number, count in enumerate((1_000, 10_000, 100_000)):
        figures = dict.fromkeys(growth.ROWS, 10.0**number)
        told = {"objects": count, "load": 0.1, "nothing_new_parts_ms": {"listing": 40.0 + number}}
        machine = {**MACHINE, "processor": "P"}
        (grown / f"{count}.json").write_text(json.dumps({**figures, **told, "machine": machine}))
    page.write(tmp_path / "results", tmp_path / "docs")
    text = (tmp_path / "docs" / "experiments.md").read_text()
    assert "| | 1,000 | 10,000 | 100,000 | slope |" in text
    assert "| planning a query (median), ms | 1 | 10 | 100 | 1.00 |" in text
    assert "Nothing new at 100,000 objects: listing 42 ms. 2 cores (P), 25 GB, Spark 4.3.0" in text
    assert "](experiments/growth.svg)" in text
    assert ET.parse(tmp_path / "docs" / "experiments" / "growth.svg").getroot().tag.endswith("svg")


# Workloads ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def generated(tmp_path):
    values = [["a/x_1", "a/x_1", "b%1"], ["a/y'2", "c\\3"], ["d", "d", "d"]]
    for number, column in enumerate(values):
        (tmp_path / f"day={number}").mkdir()
        pq.write_table(pa.table({"db_name": column}), tmp_path / f"day={number}" / "part-0.parquet")
    return Generated(str(tmp_path), 3, 8, 1)


def test_patterns_are_beginnings_and_ends_of_values_of_random_rows(generated):
    queries = workloads.patterns(generated, "db_name", 40, seed=1)
    assert [q.predicate for q in queries] == [q.predicate for q in workloads.patterns(generated, "db_name", 40, seed=1)]
    hits = workloads.count_hits(generated, "db_name", queries)
    assert (hits.hits.sum(axis=1) > 0).all()  # the row that it was drawn from
    assert len({q.predicate for q in queries}) > 8
    assert any("\\\\_" in q.predicate for q in queries)  # a wildcard of LIKE that is meant as it stands
    ends = workloads.patterns(generated, "db_name", 40, seed=2, suffix=True)
    assert all(q.predicate.startswith("db_name LIKE '%") for q in ends)
    assert (workloads.count_hits(generated, "db_name", ends).hits.sum(axis=1) > 0).all()


def test_hits_and_kept_objects_give_the_indicators(generated):
    hits = workloads.count_hits(generated, "db_name", [workloads._starts_with("db_name", "a/")])
    assert hits.hits.tolist() == [[2, 1, 0]]
    found = hits.indicators(0, {"day=0/part-0.parquet", "day=1/part-0.parquet", "day=2/part-0.parquet"})
    assert (found.selectivity, found.layout_factor) == (3 / 8, 3 / 5)
    assert (found.metadata_factor, found.scanning_factor) == (5 / 8, 1.0)


def test_agents_are_drawn_by_name_not_by_frequency(tmp_path):
    agents = ["curl/8.5.0"] * 97 + ["Wget/1.21.4", "okhttp/4.12.0", "python-requests/2.31.0"]
    pq.write_table(pa.table({"user_agent": agents}), tmp_path / "part-0.parquet")
    drawn = Generated(str(tmp_path), 1, 100, 1)
    queries = workloads.agents(drawn, 200, seed=3)
    names = np.unique([q.predicate for q in queries], return_counts=True)
    assert len(names[0]) == 4
    assert names[1].min() > 30
    hits = workloads.count_hits(drawn, "user_agent", queries[:1])
    assert hits.hits.sum() in (1, 97)
