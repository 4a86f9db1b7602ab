"""A disk that is really full: a file system of a few hundred kilobytes that a commit fills."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("on_a_small_disk.py")


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="only root may mount a small file system")
@pytest.mark.parametrize("what", ["metadata", "scratch"])
def test_a_disk_that_fills_up_during_a_commit(tally, tmp_path, what):
    """For every amount of free space from none to enough, in steps of a page: refused clearly, nothing lost."""
    (tmp_path / "disk").mkdir()
    command = ["unshare", "--mount", sys.executable, str(SCRIPT), str(tmp_path), what]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])}
    with (tmp_path / "said").open("w") as said:
        done = subprocess.run(command, stdout=said, stderr=said, env=environment, cwd=HERE, check=False, timeout=300)
    text = (tmp_path / "said").read_text()
    if done.returncode == 77:
        pytest.skip(f"no small file system can be mounted here: {text[-200:]}")
    assert done.returncode == 0, text[-3000:]
    found = json.loads(text.splitlines()[-1])
    count = tally.of("disk full", f"{what} on a full disk")
    for key in ("faults", "queries", "wrong", "failed", "skipped", "repaired"):
        setattr(count, key, getattr(count, key) + found[key])
    assert found["wrong"] == found["failed"] == 0
    assert found["unclear"] == 0, "an error did not say that there was no space left"
    assert found["faults"] >= 2, found
    assert found["committed"] > 0, "the disk was always full"
