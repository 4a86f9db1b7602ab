"""What tells one run's figures from another's: the sources and the machine, and no commit."""

from __future__ import annotations

import pytest

from benchmarks import machine

FILES = {
    "src/skipstone/a.py": "a",
    "src/skipstone/bridge/B.scala": "b",
    "benchmarks/measures.py": "c",
    "benchmarks/datasets/tpch.sql": "d",
    "benchmarks/results/full.json": "{}",
    "benchmarks/experiments/results/local-small/fig7.json": "{}",
    "benchmarks/experiments/page.py": "e",
    "docs/experiments.md": "f",
}


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_only_what_is_measured_or_measures_makes_another_run(root, name):
    before = machine.sources(root)
    assert machine.sources(root) == before
    (root / name).write_text("other")
    told = not any(part in name for part in ("results", "page.py", "docs/"))
    assert (machine.sources(root) != before) is told


def test_a_file_that_moves_or_is_new_makes_another_run(root):
    before = machine.sources(root)
    (root / "src/skipstone/a.py").rename(root / "src/skipstone/z.py")
    moved = machine.sources(root)
    (root / "benchmarks/new.py").write_text("")
    assert len({before, moved, machine.sources(root)}) == 3


def test_a_run_is_told_by_its_sources_and_not_by_its_commit():
    told = machine.measured()
    assert told["sources"] == machine.sources()
    assert "commit" not in told
    assert told["processor"] == machine.describe_machine()["processor"]
