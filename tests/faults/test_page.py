"""What docs/reliability.md publishes is what the campaign counted."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def script():
    spec = importlib.util.spec_from_file_location("reliability_page", ROOT / "scripts" / "reliability_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_counts_and_they_are_good():
    runs = json.loads((ROOT / "docs" / "reliability.json").read_text())
    text = (ROOT / "docs" / "reliability.md").read_text()
    assert script().page(text, runs) == text, "run scripts/reliability_page.py"
    counts = [c for run in runs.values() for kinds in run["counts"].values() for c in kinds.values()]
    assert sum(c["faults"] for c in counts) > 500
    assert sum(c["queries"] for c in counts) > 5_000
    assert sum(c["wrong"] + c["failed"] + c["left_behind"] for c in counts) == 0
    assert all(run["condition"] != "not said" for run in runs.values())


def test_counts_of_several_workers_are_added(tmp_path):
    for worker in "ab":
        counts = {"scenario": {"kind": {"faults": 1, "queries": 2}}}
        (tmp_path / f"counts-{worker}.json").write_text(json.dumps(counts))
    assert script().collected(tmp_path) == {"scenario": {"kind": {"faults": 2, "queries": 4}}}
