"""The examples run as they stand, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def output_of(name, tmp_path):
    """Run an example; its output goes to a file, since a JVM that inherits a pipe keeps whoever reads it waiting."""
    log = tmp_path / "output"
    with log.open("w") as output:
        done = subprocess.run(
            [sys.executable, str(EXAMPLES / name)],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=tmp_path,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            timeout=800,
            check=False,
        )
    text = log.read_text()
    assert done.returncode == 0, text[-3000:]
    return text


@pytest.mark.long  # fetches Yauaa, compiles a class against it, and waits for its rules to load
def test_yauaa_as_a_java_function(tmp_path):
    text = output_of("yauaa_agents.py", tmp_path)
    assert "400 rows; ObjectCounts(total=16, kept=4, skipped=12" in text
    assert "indexes used: formatted(user_agent, extract='getAgentName')" in text
