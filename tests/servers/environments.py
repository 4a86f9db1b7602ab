"""Python environments with other releases of Spark: made once for all that needs them, kept in the cache folder."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

from tests.servers.downloads import CACHE, unavailable

__all__ = ["interpreter"]

_PACKAGES = (
    *("pyarrow>=18", "pandas>=2.2,<3", "numpy", "xxhash", "typer", "rich", "jinja2", "pyyaml", "shapely"),
    *("pytest", "hypothesis", "pytest-timeout", "pytest-randomly"),
)


def interpreter(pyspark: str) -> Path:
    """Return the Python of the environment with a release, what Skipstone asks for, and what runs its tests."""
    home = CACHE / "environments" / f"pyspark-{pyspark}"
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(f"{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several workers one makes it, and the others wait
        if not home.exists():
            try:
                _make(home, pyspark)
            except (OSError, subprocess.SubprocessError) as error:
                unavailable(f"pyspark {pyspark}", getattr(error, "stderr", None) or error)
    return home / "bin" / "python"


def _make(home: Path, pyspark: str) -> None:
    """Make an environment beside its place: it is there when it is complete."""
    fresh = home.with_name(f"{home.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    python = str(fresh / "bin" / "python")
    for command in (
        (sys.executable, "-m", "venv", str(fresh)),
        (python, "-m", "pip", "install", "--quiet", f"pyspark=={pyspark}", *_PACKAGES),
    ):
        subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=1_800)
    fresh.rename(home)  # its interpreter is a link, and nothing else of it is used by path
