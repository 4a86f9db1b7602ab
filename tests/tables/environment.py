"""Where Delta and Iceberg run: environments with releases of Spark, and the formats' jars, by coordinate."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.servers import environments
from tests.servers.downloads import maven

__all__ = ["FLAG", "SPARK", "TABLES", "has_iceberg", "interpreter", "jars", "run"]

FLAG = "SKIPSTONE_TABLES"
"""Names the release of Spark in the environment where the tests of this folder run."""

SPARK = "4.1"
"""The release that both formats have their newest one for."""

TABLES = Path(__file__).parent
_PYSPARK = {"4.0": "4.0.2", "4.1": "4.1.4", "4.2": "4.2.1"}
_DELTA = "4.4.0"
_ICEBERG = {"4.0": "1.11.0", "4.1": "1.12.0"}
_REPOSITORY = TABLES.parents[1]


def interpreter(spark: str = SPARK) -> Path:
    """Return the Python of the environment with a release."""
    return environments.interpreter(_PYSPARK[spark])


def has_iceberg() -> bool:
    """Whether Iceberg has a release for the Spark that runs here."""
    return _here() in _ICEBERG


def _here() -> str:
    return os.environ.get(FLAG) or SPARK


def jars(spark: str | None = None, *, iceberg: bool = True) -> list[str]:
    """Return the files of the table formats for a release of Spark, by default the one that runs here."""
    spark = spark or _here()
    wanted = [f"io.delta:delta-spark_{spark}_2.13:{_DELTA}", f"io.delta:delta-storage:{_DELTA}"]
    if iceberg and spark in _ICEBERG:
        wanted.append(f"org.apache.iceberg:iceberg-spark-runtime-{spark}_2.13:{_ICEBERG[spark]}")
    return [str(maven(coordinate)) for coordinate in wanted]


def run(*arguments: str, folder: Path, timeout: int, spark: str = SPARK) -> tuple[int, str]:
    """Run Python in an environment, with this repository; give its code and what it printed."""
    out = folder / "out.txt"
    python = interpreter(spark)
    paths = f"{_REPOSITORY / 'src'}:{_REPOSITORY}"
    environment = {**os.environ, "PYTHONPATH": paths, "PYSPARK_PYTHON": str(python), "COLUMNS": "160", FLAG: spark}
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
