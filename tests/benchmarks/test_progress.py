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
    assert first.begin() == []
    first.steps("fig9").write_text("{}")
    first.ended("fig7")
    first.steps("fig9").write_text("{}")
    assert first.begin() == ["fig7"]
    assert first.steps("fig9").exists()

    other = Progress(tmp_path, {"scale": "full", "machine": {"sources": "b"}})
    assert other.begin() == []
    assert not other.steps("fig9").exists()


def test_only_what_is_wanted_anew_is_measured_again(tmp_path):
    progress = Progress(tmp_path, {})
    progress.begin()
    for name in ("fig7", "fig8"):
        progress.ended(name)
        progress.steps(name).write_text("{}")
    assert progress.begin(["fig7"]) == ["fig8"]
    assert [progress.steps(name).exists() for name in ("fig7", "fig8")] == [False, True]
    assert progress.begin() == ["fig8"]


def test_a_run_that_fails_half_way_goes_on_and_what_is_done_stays_done(tmp_path, monkeypatch, capsys):
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
    assert "done before, by these sources: fig7_indexing, metadata_read" in capsys.readouterr().err
    assert runner.main() == 0
    assert asked[4:] == []
    monkeypatch.setattr(runner, "NAMES", (*names, "peers"))
    monkeypatch.setattr("sys.argv", ["experiments", "--results", str(results)])
    assert runner.main() == 0  # one by one, then all
    assert asked[4:] == ["peers"]
    monkeypatch.setattr("sys.argv", ["experiments", names[0], "--anew", "--results", str(results)])
    assert runner.main() == 0
    assert asked[5:] == names[:1]
    sources = iter("aba")  # when it began, when the first had run, and the second
    monkeypatch.setattr(runner.machine, "sources", lambda: next(sources))
    monkeypatch.setattr("sys.argv", ["experiments", *names[:2], "--anew", "--results", str(results)])
    assert runner.main() == 1
    monkeypatch.setattr(runner.machine, "sources", lambda: "a")
    monkeypatch.setattr("sys.argv", ["experiments", *names[:2], "--results", str(results)])
    assert runner.main() == 0
    assert asked[8:] == names[:1]  # which had run while they were others
    assert json.loads((results / "local-small" / "metadata_read.json").read_text())["name"] == "metadata_read"
