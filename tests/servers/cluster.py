"""A real Spark cluster for tests: a standalone master and workers as processes; a Python without Skipstone for them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import venv
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from tests.shared_classes import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["bare_python", "clean_environment", "standalone_cluster"]

# What the documentation asks of executors, and what those packages ask for.
_PACKAGES = ("pyspark", "py4j", "pyarrow", "numpy", "numpy.libs", "pandas", "dateutil", "pytz", "tzdata", "six.py")
_STARTS_WITHIN = 120


def bare_python(folder: Path, *more: str) -> str:
    """Make a Python environment with PySpark, pyarrow, numpy, pandas and some more only, and give its interpreter."""
    venv.create(folder, with_pip=False)
    ours = Path(pyspark.__file__).parent.parent
    (theirs,) = folder.glob("lib/python*/site-packages")
    for name in (*_PACKAGES, *more):
        if (ours / name).exists():
            (theirs / name).symlink_to(ours / name)
    return str(folder / "bin" / "python")


def clean_environment() -> dict[str, str]:
    """Return this process's environment without what would let another Python find our packages."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV", "PYSPARK_PYTHON")}


@contextmanager
def standalone_cluster(folder: Path, count: int = 2, memory: str = "1g") -> Iterator[str]:
    """Run a master and workers of one core each; gives the master's address."""
    with ExitStack() as stack:
        log = folder / "master"
        _start(stack, log, folder, ["org.apache.spark.deploy.master.Master", "--port", "0"])
        address = _awaited(log, lambda text: re.search(r"spark://127\.0\.0\.1:\d+", text))[0]
        for number in range(count):
            own = ["-c", "1", "-m", memory, "-d", str(folder / f"work-{number}"), address]
            _start(stack, folder / f"worker-{number}", folder, ["org.apache.spark.deploy.worker.Worker", *own])
        _awaited(log, lambda text: text.count("Registering worker") == count or None)
        yield address


def _start(stack: ExitStack, log: Path, folder: Path, command: list[str]) -> None:
    """Start a daemon of Spark's that is stopped with the stack."""
    home = Path(pyspark.__file__).parent
    environment = {
        **clean_environment(),
        "SPARK_HOME": str(home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": OPTIONS,
    }
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    name, *own = command
    whole = [str(home / "bin" / "spark-class"), name, "--host", "127.0.0.1", "--webui-port", "0", *own]
    with log.open("wb") as output:
        process = subprocess.Popen(
            whole, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, env=environment
        )
    stack.callback(process.wait, timeout=60)
    stack.callback(process.terminate)


def _awaited(log: Path, found: Callable[[str], re.Match[str] | bool | None]) -> re.Match[str]:
    """Wait until a log says something."""
    deadline = time.monotonic() + _STARTS_WITHIN
    while not (answer := found(log.read_text(errors="replace"))):
        if time.monotonic() > deadline:
            raise AssertionError(f"the cluster did not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)
    return answer
