"""The machine and the versions that a result belongs to: enough to compare, nothing that tells whose machine it is."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any


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
    """Return the commit that was measured, with a + when files of the library differ from it."""
    here = Path(__file__).parent.parent
    head = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=False
    )
    changed = subprocess.run(
        ["git", "status", "--porcelain", "src"], cwd=here, capture_output=True, text=True, check=False
    )
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")
