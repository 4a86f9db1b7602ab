"""What an experiment leaves behind: rows to plot, findings beside the paper's figures, and the conditions of both."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
NAMES = (
    "table_indexing",
    "fig7_indexing",
    "fig8_breakdown",
    "fig9_geo_udf",
    "fig10_centralised",
    "fig11_indicators",
    "fig12_prefix_length",
    "metadata_read",
    "peers",
)

_THREADS = re.compile(r"[a-z0-9]+-[a-z]+(-(?P<threads>\d+)-threads)?")


@dataclass(frozen=True)
class Scale:
    """How large the datasets of a run are, in objects, and how often each query and each build is timed."""

    name: str
    weather: int
    database_logs: int
    storage_logs: int
    tall: int
    flat: int
    repeats: int = 5
    builds: int = 5

    def __str__(self) -> str:
        return self.name


SCALES = {
    scale.name: scale
    for scale in (
        Scale("small", weather=512, database_logs=64, storage_logs=96, tall=3, flat=128, builds=1),
        Scale("medium", weather=8_192, database_logs=1_000, storage_logs=4_600, tall=24, flat=4_000, builds=3),
        Scale("full", weather=98_304, database_logs=4_000, storage_logs=46_000, tall=64, flat=4_000, builds=3),
    )
}


@dataclass(frozen=True)
class Finding:
    """One figure: what it is, what was measured, what the paper reports, and what it should reach.

    ``low`` and ``high`` are the smallest and largest single measurement; ``note`` gives the reason when a target is
    missed, or what to know when reading the figure.
    """

    what: str
    measured: float
    unit: str
    paper: str = ""
    target: float | None = None
    at_least: bool = False
    low: float | None = None
    high: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; ``None`` for a figure that is only reported."""
        if self.target is None:
            return None
        return self.measured >= self.target if self.at_least else self.measured <= self.target


@dataclass(frozen=True)
class Record:
    """The outcome of one experiment.

    ``condition`` says what the figures hold for: objects, rows, bytes, storage, indexes, caches.  ``run`` is added by
    the runner: scale, storage, machine, load at the start, when, and how long it took.
    """

    name: str
    title: str
    figure: str
    condition: str
    rows: list[dict[str, Any]]
    findings: list[Finding]
    run: dict[str, Any] = field(default_factory=dict)

    def described(self) -> dict[str, Any]:
        """Return the record as JSON's types."""
        findings = [{**asdict(finding), "met": finding.met} for finding in self.findings]
        return {**asdict(self), "findings": findings}

    @classmethod
    def of(cls, described: dict[str, Any]) -> Record:
        """Read what ``described`` gave."""
        findings = [Finding(**{k: v for k, v in f.items() if k != "met"}) for f in described["findings"]]
        return cls(**{**described, "findings": findings})


def run_name(storage: str, scale: str, threads: int = 0) -> str:
    """Name the conditions of a run; ``threads`` is 0 for as many as there are without being asked for."""
    return f"{storage}-{scale}{f'-{threads}-threads' if threads else ''}"


def result_file(name: str, storage: str, scale: str, results: Path = RESULTS, *, threads: int = 0) -> Path:
    """Return where the record of an experiment is kept."""
    return results / run_name(storage, scale, threads) / f"{name}.json"


def thread_counts(name: str, storage: str, results: Path = RESULTS) -> list[int]:
    """Return the numbers of threads of the records of an experiment, 0 for the default first."""
    folders = (file.parent.name for file in results.glob(f"{storage}-*/{name}.json"))
    named = (_THREADS.fullmatch(folder) for folder in folders)
    return sorted({int(found["threads"] or 0) for found in named if found})


def save(record: Record, file: Path) -> None:
    """Keep a record."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record.described(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load(file: Path) -> Record | None:
    """Return a record that was kept; ``None`` when there is none."""
    return Record.of(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None
