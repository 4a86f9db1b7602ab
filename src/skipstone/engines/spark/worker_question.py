"""A question to the workers of an application: what they run of some packages; and their answers.

It is asked by one small job, of so many tasks that every executor answers.
"""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

from skipstone.engines.spark.worker_report import Report, report_of
from skipstone.functions.identity.package_versions import where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark import SparkContext

__all__ = ["Question", "first_line"]

_SPREAD_SECONDS = 0.05


class Question:
    """A question to the workers, and what they answered.

    It is put on a thread of its own: a planner waits for a while and then goes on without, and the answer serves later
    queries.
    """

    def __init__(self, sets: Sequence[frozenset[str]]) -> None:
        self.sets = sets
        self.asked = time.monotonic()
        self.asked_at = time.time_ns()
        self.done = threading.Event()
        self.reports: tuple[Report, ...] = ()
        self.failure = ""
        self.existing: frozenset[str] = frozenset()
        self.found_alike: Mapping[tuple[str, ...], dict[str, str]] = {}
        self.folders: dict[tuple[str, ...], list[int]] = {}

    def ask(self, context: SparkContext, workers: tuple[int, int]) -> None:
        """Run the job, until every executor has answered."""
        executors, tasks = workers
        try:
            copies_stay = str(context.getConf().get("spark.files.overwrite", "false")).lower() != "true"
            job = partial(_reports, self.sets, copies_stay)
            reports: list[Report] = []
            for count in (tasks, 2 * tasks, 4 * tasks):
                if len({report.executor for report in reports}) < executors:
                    reports += context.parallelize(range(count), count).mapPartitions(job).collect()
            if (answered := len({report.executor for report in reports})) < executors:
                self.failure = f"only {answered} of {executors} executors answered"
            self._take(tuple(reports))
        except Exception as error:  # noqa: BLE001  whatever it was: the workers are not known, and the reason is kept
            self.failure = first_line(error)
        finally:
            self.done.set()

    def _take(self, reports: tuple[Report, ...]) -> None:
        """Keep the reports, and what of them the driver can look at again: files, and where modules are found."""
        self.reports = reports
        paths = {path for report in reports for path in (*report.changes, *report.copies)}
        self.existing = frozenset(path for path in paths if os.path.exists(path))  # noqa: PTH110  (many)
        self.folders = {report.path: _times(report.path) for report in reports}
        self.found_alike = {
            report.path: {
                name: place
                for packages in report.packages.values()
                for name, place in packages.places
                if _found_on(name, report.path) == place
            }
            for report in reports
        }

    def moved(self) -> str | None:
        """Name a module that workers would find elsewhere by now."""
        for path, alike in self.found_alike.items():
            times = _times(path)
            if times == self.folders[path]:
                continue
            for name, place in alike.items():
                if _found_on(name, path) != place:
                    return name
            self.folders[path] = times
        return None


def _reports(sets: Sequence[frozenset[str]], copies_stay: bool, _: Iterator[Any]) -> Iterator[Report]:  # noqa: FBT001
    """Report, as a task of the job; not at once, so that other workers get tasks as well."""
    time.sleep(_SPREAD_SECONDS)
    yield report_of(sets, copies_stay=copies_stay)


def _times(path: Sequence[str]) -> list[int]:
    """Return when the folders of a search path got or lost an entry."""
    return [os.stat(folder).st_mtime_ns if os.path.exists(folder) else 0 for folder in path]  # noqa: PTH110, PTH116


def _found_on(name: str, path: Sequence[str]) -> str:
    """Return where a search path has a module."""
    spec = PathFinder.find_spec(name, list(path))
    return "" if spec is None else where(spec)


def first_line(error: Exception) -> str:
    """Shorten an error, which may hold a stack trace of the JVM's."""
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:200]
