"""A run that is broken off goes on where it stopped, and never mixes figures of two runs."""

from __future__ import annotations

import json

import pytest
from benchmarks.experiments import __main__ as runner
from benchmarks.experiments.progress import STEPS, Progress, once
from benchmarks.experiments.record import load, result_file


@pytest.fixture
def steps(tmp_path, monkeypatch):
    monkeypatch.setenv(STEPS, str(tmp_path / "steps.json"))
    return tmp_path / "steps.json"


def test_a_step_is_made_once(steps):
    assert once("1 month", lambda: [1, {"a": 2.5}]) == [1, {"a": 2.5}]
    assert once("1 month", pytest.fail) == [1, {"a": 2.5}]
    assert once("5 months", lambda: None) is None
    assert once("5 months", pytest.fail) is None  # nothing is something, too


def test_a_step_that_fails_is_made_again(steps):
    with pytest.raises(ZeroDivisionError):
        once("1 month", lambda: 1 / 0)
    assert once("1 month", lambda: 3) == 3


def test_without_a_file_nothing_is_kept(monkeypatch):
    monkeypatch.delenv(STEPS, raising=False)
    assert [once("1 month", lambda: 1), once("1 month", lambda: 2)] == [1, 2]


def test_another_run_begins_anew(tmp_path):
    first = Progress(tmp_path, {"scale": "full", "machine": {"sources": "a"}})
    assert first.begin(anew=False) == []
    first.steps("fig9").write_text("{}")
    first.ended("fig7")
    first.steps("fig9").write_text("{}")
    assert first.begin(anew=False) == ["fig7"]
    assert first.steps("fig9").exists()

    other = Progress(tmp_path, {"scale": "full", "machine": {"sources": "b"}})
    assert other.begin(anew=False) == []
    assert not other.steps("fig9").exists()


def test_anew_means_anew(tmp_path):
    progress = Progress(tmp_path, {})
    progress.begin(anew=False)
    progress.ended("fig7")
    assert progress.begin(anew=True) == []


def test_a_run_that_fails_half_way_goes_on_and_one_that_is_through_does_not(tmp_path, monkeypatch, capsys):
    """Three experiments, of which the second fails the first time: the next call runs the last two."""
    asked = []
    failing = {"fig8_breakdown"}
    answer = {"title": "T", "figure": "F", "condition": "C", "rows": [], "findings": []}

    def child(arguments, log, environment):
        name = arguments[1]
        asked.append(name)
        assert environment[STEPS].endswith(f"{name}-steps.json")
        run = {"seconds": 1.0, "when": "2026-01-02T03:04+00:00", "load_before": 0.1}
        return {**run, "failed": "broken off"} if name in failing else {**run, "answer": {"name": name, **answer}}

    monkeypatch.setattr(runner, "run_child", child)
    monkeypatch.setattr(runner, "LOGS", tmp_path / "output")
    monkeypatch.setattr(runner.page, "write", lambda results: "")
    monkeypatch.setattr(runner.machine, "describe_machine", lambda: {"commit": "a"})
    monkeypatch.setattr(runner.machine, "sources", lambda: "a")
    names = ["fig7_indexing", "fig8_breakdown", "metadata_read"]
    results = tmp_path / "results"
    monkeypatch.setattr("sys.argv", ["experiments", *names, "--results", str(results)])

    assert runner.main() == 1
    assert asked == names
    assert load(result_file("fig7_indexing", "local", "small", results)).name == "fig7_indexing"
    failing.clear()
    assert runner.main() == 0
    assert asked[3:] == ["fig8_breakdown"]
    assert "done before, in this run: fig7_indexing, metadata_read" in capsys.readouterr().err
    assert runner.main() == 0
    assert asked[4:] == names
    assert json.loads((results / "local-small" / "metadata_read.json").read_text())["name"] == "metadata_read"
