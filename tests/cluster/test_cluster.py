"""Skipstone on a real cluster: separate processes, executors that have neither Skipstone nor the plug-ins."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.cluster import bare_python, clean_environment, standalone_cluster

pytestmark = pytest.mark.slow

APPLICATION = Path(__file__).parent / "application.py"


def run(tmp_path, master: str) -> None:
    """Run the application and check what it counted."""
    python, out = bare_python(tmp_path / "python"), tmp_path / "out"
    # Only the driver's interpreter finds Skipstone: executors get no PYTHONPATH, and a Python that does not have it.
    environment = {**clean_environment(), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python}
    with out.open("wb") as answer, (tmp_path / "log").open("wb") as log:
        command = [sys.executable, str(APPLICATION), master, python, str(tmp_path / "data")]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=answer, stderr=log, cwd=tmp_path, env=environment, check=False
        )
    assert done.returncode == 0, (tmp_path / "log").read_text(errors="replace")[-4000:]
    told = json.loads(out.read_text().splitlines()[-1])
    assert told["bare"] == 2, "both executors were to serve"
    assert told["paths"] == {"collect_from_footers": 1, "collect_with_arrow": 1, "collect_with_aggregates": 1}
    assert told["queries"] == 16
    assert told["evaluated"] == 8
    assert told["skipped"] == {"driver": 55, "executors": 55}


def test_on_a_standalone_cluster(tmp_path):
    folder = tmp_path / "cluster"
    folder.mkdir()
    with standalone_cluster(folder) as master:
        run(tmp_path, master)


@pytest.mark.long
def test_on_a_local_cluster(tmp_path):
    run(tmp_path, "local-cluster[2,1,1024]")
