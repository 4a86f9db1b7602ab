"""What a benchmark measures: interleaved timings with their spread, and rows that know their target."""

from __future__ import annotations

import math
import os
import statistics
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True)
class Sample:
    """Several measurements of one thing, in seconds, and the processor time that each took in all its processes.

    Processor time tells work from waiting: on a busy machine it stays what it is while elapsed time grows.
    """

    seconds: tuple[float, ...]
    cpu: tuple[float, ...] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def low(self) -> float:
        return min(self.seconds)

    @property
    def high(self) -> float:
        return max(self.seconds)

    def described(self) -> dict[str, Any]:
        described = {"median": self.median, "low": self.low, "high": self.high, "runs": len(self.seconds)}
        return {**described, "cpu_median": statistics.median(self.cpu)} if self.cpu else described


@dataclass(frozen=True)
class Subject:
    """Something to time; ``before`` prepares each run and is not timed."""

    run: Callable[[], Any]
    before: Callable[[], Any] = lambda: None


def interleave(
    subjects: Mapping[str, Subject], *, repeats: int, warmups: int = 1, budget: float = math.inf, least: int = 3
) -> dict[str, Sample]:
    """Time the subjects in turn, so that whatever else the machine does falls on all of them.

    Every other round goes backwards: what runs after what should not matter, and this shows it.  Once the slowest of
    them has had its budget of seconds, and all the least number of rounds, no round begins.
    """
    taken: dict[str, list[float]] = {name: [] for name in subjects}
    worked: dict[str, list[float]] = {name: [] for name in subjects}
    for round_number in range(-warmups, repeats):
        if round_number >= least and max(map(sum, taken.values())) >= budget:
            break
        order = list(subjects.items())
        for name, subject in order if round_number % 2 == 0 else reversed(order):
            subject.before()
            cpu, started = cpu_seconds(), time.perf_counter()
            subject.run()
            elapsed, cpu = time.perf_counter() - started, cpu_seconds() - cpu
            if round_number >= 0:
                taken[name].append(elapsed)
                worked[name].append(cpu)
    return {name: Sample(tuple(taken[name]), tuple(worked[name])) for name in subjects}


def cpu_seconds() -> float:
    """Return the processor time of this process and all that it started: the JVM, and the JVM's Python workers."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended; its parent has its time then
            continue
        process = int(stat.parent.name)
        parents[process] = int(fields[1])
        ticks[process] = sum(map(int, fields[11:15]))  # user, system, and the same of children that have ended
    return sum(count for p, count in ticks.items() if _descends(p, parents)) / os.sysconf("SC_CLK_TCK")


def _descends(process: int, parents: Mapping[int, int]) -> bool:
    """Whether a process is this one or was started by it."""
    while process in parents:
        if process == os.getpid():
            return True
        process = parents[process]
    return False


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, against which target, under which conditions.

    ``low`` and ``high`` are the smallest and largest single measurement (for a ratio: of one round).
    """

    what: str
    measured: float
    unit: str
    target: float | None
    conditions: str
    at_least: bool = False
    low: float | None = None
    high: float | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; ``None`` for a figure that is only reported beside others."""
        if self.target is None:
            return None
        return self.measured >= self.target if self.at_least else self.measured <= self.target

    def described(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


def ratio(
    what: str,
    ours: Sample,
    theirs: Sample,
    target: float,
    conditions: str,
    *,
    at_least: bool = False,
    details: dict[str, Any] | None = None,
) -> Row:
    """Make a row of the ratio of two medians, with the spread of the ratios of single rounds."""
    rounds = [a / b for a, b in zip(ours.seconds, theirs.seconds, strict=True)]
    return Row(
        what,
        ours.median / theirs.median,
        "x",
        target,
        conditions,
        at_least,
        min(rounds),
        max(rounds),
        {
            "ours": ours.described(),
            "theirs": theirs.described(),
            "of_best": ours.low / theirs.low,
            **_cpu_ratio(ours, theirs),
            **(details or {}),
        },
    )


def _cpu_ratio(ours: Sample, theirs: Sample) -> dict[str, float]:
    """Return the ratio of processor times, which other load on the machine hardly touches."""
    if not ours.cpu or not theirs.cpu or not statistics.median(theirs.cpu):
        return {}
    return {"cpu_ratio": statistics.median(ours.cpu) / statistics.median(theirs.cpu)}
