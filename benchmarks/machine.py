"""The machine and the versions that a result belongs to: enough to compare, nothing that tells whose machine it is.

A result names the commit that it was made on.  Whether two measurements are of the same code is told by the sources
themselves: a commit that touches documents or results changes nothing that is measured.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parent.parent
SOURCES = {".py", ".scala", ".sql"}
NOT_MEASURED = {"page.py", "plots.py", "reach.py"}
"""Files of ``benchmarks`` that write up what was measured."""


def describe_machine() -> dict[str, Any]:
    """Return cores, memory and versions."""
    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": _processor(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "java": _java(),
        **{name: version(name) for name in ("pyspark", "pyarrow", "numpy", "skipstone")},
        "commit": _commit(),
    }


def measured() -> dict[str, Any]:
    """Return what figures must have in common to belong to one run: machine and versions, and the sources."""
    return {**{name: value for name, value in describe_machine().items() if name != "commit"}, "sources": sources()}


def sources(root: Path = ROOT) -> str:
    """Return a digest of the library and of what measures it, as they are on the disk, committed or not."""
    library = (file for file in (root / "src").rglob("*") if file.suffix in SOURCES)
    measuring = (file for file in (root / "benchmarks").rglob("*") if file.suffix in SOURCES)
    return digest((*library, *(file for file in measuring if file.name not in NOT_MEASURED)), root)


def digest(files: Iterable[Path], root: Path = ROOT) -> str:
    """Return a digest of files: of their names below a folder, and what is in them."""
    told = hashlib.sha256()
    for file in sorted(files):
        told.update(f"{file.relative_to(root).as_posix()}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return told.hexdigest()[:12]


def load() -> float:
    """Return how many processes wanted to run in the last minute, this benchmark's own among them."""
    return round(os.getloadavg()[0], 1)


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def _java() -> str:
    done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    return (done.stderr.splitlines() or ["unknown"])[0]


def _commit() -> str:
    """Return the commit that was measured, with a + when the library, or what measures it, differs from it."""
    sources = ["src", "benchmarks", ":(exclude)benchmarks/results", ":(exclude)benchmarks/experiments/results"]
    changed = _git("status", "--porcelain", "--", *sources)
    return _git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()
