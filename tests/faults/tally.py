"""What the campaign counts: faults by kind, the queries asked after them, and what came of it."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.faults.lake import Answers

FOLDER = "SKIPSTONE_FAULT_COUNTS"
"""The environment variable that names a folder for the counts; they are written nowhere without it."""


@dataclass
class Count:
    """Of one kind of fault: how many, what was asked after them, and what was found."""

    faults: int = 0
    queries: int = 0
    wrong: int = 0
    failed: int = 0
    skipped: int = 0
    noticed: int = 0
    repaired: int = 0
    left_behind: int = 0


@dataclass
class Tally:
    """The counts of a run, by scenario and kind."""

    counts: dict[str, dict[str, Count]] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def of(self, scenario: str, kind: str) -> Count:
        return self.counts.setdefault(scenario, {}).setdefault(kind, Count())

    def asked(self, count: Count, answers: Answers) -> None:
        """Add answers, and insist that none is wrong and none failed."""
        count.queries += answers.queries
        count.wrong += answers.wrong
        count.failed += answers.failed
        count.skipped += answers.skipped
        assert answers.wrong == 0, f"a needed object was skipped: {answers}"
        assert answers.failed == 0, f"a query failed: {answers}"

    def write(self) -> None:
        """Write what was counted, for ``scripts/reliability_page.py``."""
        folder = os.environ.get(FOLDER)
        if folder and self.counts:
            Path(folder).mkdir(parents=True, exist_ok=True)
            found = {s: {kind: asdict(count) for kind, count in kinds.items()} for s, kinds in self.counts.items()}
            (Path(folder) / f"counts-{os.getpid()}.json").write_text(json.dumps(found, indent=1) + "\n")
