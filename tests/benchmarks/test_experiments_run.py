"""Each experiment on logs runs from end to end on a handful of objects, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.experiments.record import Record

ROOT = Path(__file__).parent.parent.parent
CODE = """
import json, sys
from importlib import import_module
from pathlib import Path
from benchmarks.conditions import Conditions
from benchmarks.experiments.record import Scale

if __name__ == "__main__":
    scale = Scale("tiny", weather=10, database_logs=16, storage_logs=6, tall=1, flat=8, repeats=1, builds=1)
    experiment = import_module(f"benchmarks.experiments.{sys.argv[1]}")
    Path(sys.argv[2]).write_text(json.dumps(experiment.run(scale, Conditions("local")).described()))
"""
FINDINGS = {
    "fig7_indexing": 7,
    "fig8_breakdown": 13,
    "fig11_indicators": 16,
    "fig12_prefix_length": 6,
    "metadata_read": 12,
    "table_indexing": 20,
}


@pytest.mark.long
@pytest.mark.parametrize("name", FINDINGS)
def test_an_experiment_runs(name, tmp_path_factory, tmp_path):
    data = tmp_path_factory.getbasetemp() / "experiments"
    data.mkdir(exist_ok=True)
    script, answer, output = tmp_path / "run.py", tmp_path / "answer.json", tmp_path / "output"
    script.write_text(CODE)
    environment = {**os.environ, "SKIPSTONE_BENCH_DATA": str(data), "PYTHONPATH": str(ROOT)}
    with output.open("w") as file:
        done = subprocess.run(
            [sys.executable, script, name, answer], check=False, env=environment, stdout=file, stderr=file, cwd=ROOT
        )
    assert done.returncode == 0, output.read_text()[-2_000:]
    record = Record.of(json.loads(answer.read_text()))
    assert record.name == name
    assert len(record.findings) == FINDINGS[name]
    assert record.rows
    assert "objects of" in record.condition.replace("Objects", "objects")
    assert "local disk" in record.condition
    assert not list(data.glob("skipstone-metadata-*"))  # metadata is gone with the experiment
