"""Whether Spark's workers run the very packages that the driver sees, of those that a Python function refers to.

Workers find modules by themselves, in folders of their own, and keep what they imported for as long as they live.  So
what the driver sees is what they run only if all of them find the same, and if no file of it has changed since the
application started: otherwise a worker may have imported a module before or after it was edited.

The workers are asked by one small job for each set of packages; the answers are kept for the application, and held
against the files as they are whenever they are used.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skipstone.engines.spark.shipping import ship_to_all
from skipstone.engines.spark.worker_question import Question, first_line
from skipstone.engines.spark.worker_report import Report, newest_changes
from skipstone.functions.identity.answer import Answer
from skipstone.functions.identity.package_versions import Packages, packages_here

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pyspark import SparkContext

__all__ = ["WorkerPackages"]

_SECOND = 1_000_000_000
_MARGIN = _SECOND  # times of files are those of a clock that ticks slowly
_OF_SPARK = ("SPARK_", "PYSPARK_", "PYTHON_", "OMP_NUM_THREADS")
_SILENCE_SECONDS = 60.0
_STALE = (
    "{path} changed after this application started, so workers may still run it as it was: restart the application, "
    "or define the function in the program itself, so that workers are sent it"
)
_STATE = "state its version with skipstone.state_version"


class WorkerPackages:
    """Asks the workers of an application for packages.

    Parameters
    ----------
    context
        The application.
    patience
        For how many seconds to wait for an answer.
    anew
        Whether to ask even what was asked before.
    """

    def __init__(self, context: SparkContext, *, patience: float, anew: bool = False) -> None:
        self._context = context
        self._patience = patience
        self._anew = anew
        self._asked_anew: set[frozenset[str]] = set()

    def prepare(self, sets: Iterable[frozenset[str]]) -> None:
        """Ask for several functions by one job; if anything goes wrong, ``of`` reports it for each."""
        with suppress(Exception):
            self._questions(sorted(set(sets), key=sorted))

    def of(self, names: frozenset[str]) -> Answer:
        """Return what workers run of some packages; a failure is an answer, too."""
        here = packages_here(names)
        if here.versions is None:
            return Answer(problem=f"{here.unknown}; {_STATE}")
        try:
            (question,) = self._questions([names])
            if not question.done.wait(question.asked + self._patience - time.monotonic()):
                return Answer(problem=f"Spark's workers did not say within {self._patience:g} s what they run")
            if question.failure:
                return Answer(problem=f"Spark's workers could not be asked what they run: {question.failure}")
            return _judged(names, here, question, _started(self._context))
        except Exception as error:  # noqa: BLE001  a context that was stopped, say: not known, and said
            return Answer(problem=f"Spark's workers could not be asked what they run: {first_line(error)}")

    @property
    def interpreter(self) -> str:
        """Digest the path of the Python that functions are made for now, as the bridge does of a function's."""
        return hashlib.md5(str(self._context.pythonExec).encode(), usedforsecurity=False).hexdigest()

    @property
    def environment(self) -> str:
        """Digest the environment variables that workers are given now, as the bridge does of a function's; else empty.

        Without what Spark puts there itself, and at its default.
        """
        own = [
            f"{name}={value}"
            for name, value in self._context.environment.items()
            if not name.startswith(_OF_SPARK) and (name, value) != ("PYTHONHASHSEED", "0")
        ]
        return hashlib.md5("\n".join(sorted(own)).encode(), usedforsecurity=False).hexdigest() if own else ""

    def changed_here(self, evidence: Collection[str]) -> bool:
        """Whether files changed, as the driver sees them, after the application started."""
        return _stale(newest_changes(evidence), _started(self._context)) is not None

    def _questions(self, sets: Sequence[frozenset[str]]) -> list[Question]:
        """Find the questions for sets of packages, and ask what was not asked yet."""
        ship_to_all(self._context)
        with _lock:
            state = _states.setdefault(str(self._context.applicationId), _State())
            surroundings = _surroundings(self._context)
            if state.surroundings != surroundings:
                state.surroundings = surroundings
                state.questions.clear()
            wanted = [names for names in sets if self._must_ask(names, state)]
            if wanted:
                question = Question(tuple(wanted))
                state.questions.update(dict.fromkeys(wanted, question))
                self._asked_anew.update(wanted)
                workers = _workers(self._context, surroundings[0])
                threading.Thread(target=question.ask, args=(self._context, workers), daemon=True).start()
            return [state.questions[names] for names in sets]

    def _must_ask(self, names: frozenset[str], state: _State) -> bool:
        """Whether there is no answer, or it is to be had anew, or it was a failure long ago."""
        known = state.questions.get(names)
        if known is None or (self._anew and names not in self._asked_anew):
            return True
        return bool(known.failure) and time.monotonic() - known.asked > _SILENCE_SECONDS


@dataclass
class _State:
    """What is known of an application's workers, while these and what Spark gives them stay the same."""

    surroundings: tuple[Any, ...] = ()
    questions: dict[frozenset[str], Question] = field(default_factory=dict)


_states: dict[str, _State] = {}
_lock = threading.Lock()


def _judged(names: frozenset[str], here: Packages, question: Question, started: int) -> Answer:
    """Hold what workers said against each other, against the driver's own view, and against the time."""
    first = question.reports[0]
    for report in question.reports:
        there = report.packages[names]
        lag = max(0, question.asked_at - report.now)
        stale = _stale({path: report.changes.get(path, 0) for path in there.evidence}, started - lag)
        stale = stale or _changed_since(there, report, question, started)
        if stale is not None:
            return Answer(problem=_STALE.format(path=stale))
        if there.versions is None:
            return Answer(problem=f"on workers, {there.unknown}; {_STATE}")
        if there.versions != here.versions:
            return _differing(here.versions or (), there.versions)
        if (report.python, report.zone) != (first.python, first.zone):
            return Answer(
                problem=f"workers differ: Python {first.python}, zone {first.zone} and Python {report.python}, zone "
                f"{report.zone}; let all have the same"
            )
        places = dict(there.places)
        other = next((name for name in report.others if name in places), None)
        if other is not None:
            return Answer(
                problem=f"a worker runs {other} of {report.others[other]}, others would find {places[other]}: restart "
                "the application"
            )
    moved = question.moved()
    if moved is not None:
        return Answer(problem=f"another module {moved} hides the one that workers ran: restart the application")
    return Answer(first.python, first.zone)


def _changed_since(there: Packages, report: Report, question: Question, started: int) -> str | None:
    """Look at the files again, as far as the driver sees them, and name one that changed."""
    seen = there.evidence & question.existing
    now = newest_changes(seen)
    gone = next((path for path in sorted(seen) if not os.path.exists(path)), None)  # noqa: PTH110  (many)
    stale = gone or _stale({path: now[path] for path in seen if path in report.changes}, started)
    return stale or next((path for path in seen if report.copies.get(path, now[path]) != now[path]), None)


def _stale(changes: Mapping[str, int], started: int) -> str | None:
    """Name a file that changed after the application started, or too shortly before to tell."""
    return next((path for path, changed in sorted(changes.items()) if changed > started - _MARGIN), None)


def _differing(here: Collection[str], there: Collection[str]) -> Answer:
    """Return which package workers have in another version, or not at all."""
    mine, theirs = (dict(version.split("==", 1) for version in versions) for versions in (here, there))
    name = min(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))
    problem = (
        f"{name} is {mine.get(name, 'not there')} for the driver and {theirs.get(name, 'not there')} for workers: let "
        f"both find the same, or {_STATE}"
    )
    return Answer(problem=problem, missing=name not in theirs)


def _surroundings(context: SparkContext) -> tuple[Any, ...]:
    """Return what decides which workers there are and where they look for modules."""
    spark: Any = context._jsc.sc()
    included: Any = getattr(context, "_python_includes", None)
    return (
        tuple(sorted(str(spark.getExecutorMemoryStatus().keySet().mkString(" ")).split(" "))),
        str(spark.listFiles().mkString(" ")),
        tuple(included or ()),
        tuple(sorted(context.environment.items())),
        context.pythonExec,
    )


def _workers(context: SparkContext, managers: Sequence[str]) -> tuple[int, int]:
    """Count the executors, of which the driver is one in local mode only, and the tasks that reach their workers."""
    master = str(context.master)
    alone = master == "local" or master.startswith("local[")
    executors = 1 if alone else len(managers) - 1
    return max(executors, 1), max(int(context.defaultParallelism), executors, 1)


def _started(context: SparkContext) -> int:
    """Return when an application started, in nanoseconds."""
    return int(context.startTime) * (_SECOND // 1000)
