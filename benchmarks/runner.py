"""Runs each benchmark in a process of its own, so that none inherits another's heap, caches or compiled code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import machine

NAMES = (
    "index_once",
    "index_text",
    "index_sharing",
    "index_types",
    "sizes",
    "footers",
    "needle",
    "top_k",
    "aggregates",
    "geo_udf",
    "planning",
    "first_query",
    "joins",
    "tables",
    "bounds",
    "tpch",
    "tpch_10",
    "companion",
    "elasticsearch",
    "encryption",
    "index_many",
    "memory",
    "s3_requests",
    "cluster_metadata",
)
HERE = Path(__file__).parent
RESULTS = HERE / "results"
LOGS = HERE / "output"


def run_all(names: Sequence[str], scale: str, folder: Path) -> dict[str, Any]:
    """Run benchmarks one after the other; what other runs left in the results stays there, with its own machine."""
    file = folder / f"{scale}.json"
    results: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"scale": scale, "runs": {}}
    folder.mkdir(parents=True, exist_ok=True)
    measured: dict[str, Any] = {}
    for name in names:
        here = machine.describe_machine()
        print(f"{name} …", file=sys.stderr, flush=True)
        measured[name] = run = {**_run(name, scale), "commit": here["commit"], "machine": here}
        print(f"{name}: {run.get('failed', 'done')}, {run['seconds']:.0f} s", file=sys.stderr)
        if "failed" not in run:
            results["runs"][name] = run
            file.write_text(json.dumps(results, indent=2) + "\n")
    return {"scale": scale, "runs": measured}


def _run(name: str, scale: str) -> dict[str, Any]:
    """Run one benchmark in a child process."""
    run = run_child(["benchmarks", name, "--scale", scale], LOGS / f"{name}.log")
    return {**run, "rows": run.pop("answer", [])}


def run_child(arguments: list[str], log: Path, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a module that writes its answer as JSON to the file that ``--child`` names, with some environment besides.

    Return when it ran, its seconds, the load before it, and ``answer``, or ``failed`` with the end of its log.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    load = machine.load()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, log.open("w") as output:
        file = Path(folder) / "answer.json"
        command = [sys.executable, "-m", *arguments, "--child", str(file)]
        variables = {**os.environ, **(environment or {})}
        done = subprocess.run(command, stdout=output, stderr=output, cwd=HERE.parent, env=variables, check=False)
        answer = json.loads(file.read_text()) if done.returncode == 0 and file.exists() else None
    run: dict[str, Any] = {
        "when": datetime.now(UTC).isoformat(timespec="minutes"),
        "seconds": round(time.monotonic() - started, 1),
        "load_before": load,
    }
    if answer is None:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        said = f"ended with {done.returncode}; the end of benchmarks/output/{log.name} says:\n{tail}"
        return {**run, "failed": said}
    return {**run, "answer": answer}


def run_one(name: str, scale: str, answer: Path) -> None:
    """Run one benchmark in this process and write its rows."""
    rows = import_module(f"benchmarks.{name}").measure(small=scale == "small")
    answer.write_text(json.dumps([row.described() for row in rows]))


def table(results: dict[str, Any]) -> str:
    """Lay the results out for reading."""
    lines = [("what", "measured", "spread", "target", "met")]
    for run in results["runs"].values():
        for row in run["rows"]:
            sign = "≥" if row["at_least"] else "≤"
            target = "" if row["target"] is None else f"{sign} {number(row['target'])} {row['unit']}"
            spread = "" if row["low"] is None else f"{number(row['low'])} to {number(row['high'])}"
            met = {None: "", True: "yes", False: "NO"}[row["met"]]
            if results["scale"] == "small" and row["target"] is not None:
                met = "(small)"
            lines.append((row["what"], f"{number(row['measured'])} {row['unit']}", spread, target, met))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    text.insert(1, "  ".join("-" * width for width in widths))
    failed = [f"{name}: {run['failed']}" for name, run in results["runs"].items() if "failed" in run]
    return "\n".join([*text, *failed])


def number(value: float) -> str:
    """Spell a figure with three significant digits, large ones in full."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
