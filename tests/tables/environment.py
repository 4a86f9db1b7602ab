"""Where Delta and Iceberg run: an environment with Spark 4.1, made once, and the formats' jars, by coordinate."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

from tests.servers.downloads import CACHE, maven, unavailable

__all__ = ["FLAG", "PYSPARK", "TABLES", "interpreter", "jars", "run"]

FLAG = "SKIPSTONE_TABLES"
"""Set in the environment where the tests of this folder run."""

PYSPARK = "4.1.4"
TABLES = Path(__file__).parent
_DELTA = ("io.delta:delta-spark_4.1_2.13:4.4.0", "io.delta:delta-storage:4.4.0")
_ICEBERG = ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",)
_PACKAGES = (
    *("pyarrow>=18", "pandas>=2.2,<3", "numpy", "xxhash", "typer", "rich", "jinja2", "pyyaml", "shapely"),
    *("pytest", "hypothesis", "pytest-timeout", "pytest-randomly"),
)
_REPOSITORY = TABLES.parents[1]


def interpreter() -> Path:
    """Give the Python of the environment, and make it unless the cache has it."""
    home = CACHE / "environments" / f"tables-{PYSPARK}"
    if not home.exists():
        fresh = home.with_name(f"{home.name}-{uuid.uuid4().hex}")
        try:
            _call(sys.executable, "-m", "venv", str(fresh))
            wanted = (f"pyspark=={PYSPARK}", *_PACKAGES)
            _call(str(fresh / "bin" / "python"), "-m", "pip", "install", "--quiet", *wanted)
        except (OSError, subprocess.SubprocessError) as error:
            unavailable(f"pyspark {PYSPARK}", getattr(error, "stderr", None) or error)
        try:
            fresh.rename(home)  # its interpreter is a link, and nothing else of it is used by path
        except OSError:  # another worker was first
            if not home.exists():
                raise
    return home / "bin" / "python"


def jars(*, iceberg: bool = True) -> list[str]:
    """Give the files of the table formats."""
    return [str(maven(coordinate)) for coordinate in (*_DELTA, *(_ICEBERG if iceberg else ()))]


def run(*arguments: str, folder: Path, timeout: int) -> tuple[int, str]:
    """Run Python in the environment, with this repository; give its code and what it printed."""
    out = folder / "out.txt"
    python = interpreter()
    paths = f"{_REPOSITORY / 'src'}:{_REPOSITORY}"
    environment = {**os.environ, "PYTHONPATH": paths, "PYSPARK_PYTHON": str(python), FLAG: "1"}
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
    with out.open("w") as file:
        code = subprocess.call(
            [str(python), *arguments],
            stdout=file,
            stderr=file,
            stdin=subprocess.DEVNULL,
            cwd=_REPOSITORY if arguments[0] == "-m" else folder,
            env=environment,
            timeout=timeout,
        )
    return code, out.read_text(errors="replace")


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=1_800)
