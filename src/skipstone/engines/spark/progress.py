"""A progress bar on a terminal, fed by Spark's own status; nothing anywhere else."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession
    from rich.console import Console

    from skipstone.indexing.objects import DataObject

__all__ = ["how_far", "shown_progress"]

_POLL_SECONDS = 0.25
_SOON = 90
_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")
_THOUSAND = 1_000


@contextmanager
def shown_progress(
    spark: SparkSession, objects: Sequence[DataObject], *, wanted: bool | None = None, console: Console | None = None
) -> Iterator[None]:
    """Show how many objects and bytes the running jobs are through with, the rate, and an estimate of what is left.

    Spark says how many tasks have ended, and gives each about as many bytes to read as the others: objects and bytes
    are that share of all.

    Parameters
    ----------
    objects
        What is read.
    wanted
        Show it or not; by default when standard error is a terminal.
    console
        Where to show it; standard error when not given.
    """
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    count, size = len(objects), sum(o.length for o in objects)
    tracker = spark.sparkContext.statusTracker()
    earlier = set(tracker.getActiveJobsIds())
    over = threading.Event()
    started = time.monotonic()
    columns = (TextColumn("Indexing"), BarColumn(bar_width=30), TextColumn("{task.fields[far]}"))
    with Progress(*columns, console=console or Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, far=how_far(count, size, 0.0, 0.0))

        def look() -> None:
            done, total = _tasks(tracker, earlier)
            if total:
                far = how_far(count, size, done / total, time.monotonic() - started)
                bar.update(task, completed=done, total=total, far=far)

        with _following(look, over):
            yield


@contextmanager
def _following(look: Callable[[], None], over: threading.Event) -> Iterator[None]:
    """Look again and again while a block runs."""

    def follow() -> None:
        while not over.wait(_POLL_SECONDS):
            look()

    follower = threading.Thread(target=follow, name="skipstone-progress", daemon=True)
    follower.start()
    try:
        yield
    finally:
        over.set()
        follower.join()


def how_far(objects: int, size: int, share: float, seconds: float) -> str:
    """Return how far a job is, in objects and bytes, with the rate and what is left by it.

    Examples
    --------
    >>> how_far(8192, 3_400_000_000, 0.25, 20)
    '2,048 of 8,192 objects, 850 MB of 3.4 GB, 102 objects/s, about 60 s left'
    >>> how_far(8192, 3_400_000_000, 0, 0)
    '8,192 objects, 3.4 GB'
    """
    if not share or not seconds:
        return f"{objects:,} objects, {_size(size)}"
    done = objects * share
    rate, left = done / seconds, seconds * (1 - share) / share
    speed = f"{rate:,.0f} objects/s" if rate >= 1 else f"{rate * 60:,.0f} objects/min"
    return (
        f"{done:,.0f} of {objects:,} objects, {_size(size * share)} of {_size(size)}, {speed}, "
        f"about {f'{left:.0f} s' if left < _SOON else f'{left / 60:.0f} min'} left"
    )


def _size(count: float) -> str:
    """Spell a number of bytes in three digits.

    Examples
    --------
    >>> _size(850_000_000), _size(999), _size(3_400_000_000)
    ('850 MB', '999 bytes', '3.4 GB')
    """
    unit = 0
    while count >= _THOUSAND and unit < len(_UNITS) - 1:
        count, unit = count / _THOUSAND, unit + 1
    return f"{count:.3g} {_UNITS[unit]}"


def _tasks(tracker: Any, earlier: set[int]) -> tuple[int, int]:
    """Count the ended and all tasks of the jobs that began since."""
    done = total = 0
    for job in set(tracker.getActiveJobsIds()) - earlier:
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            stage_info = tracker.getStageInfo(stage)
            if stage_info is not None:
                done += stage_info.numCompletedTasks
                total += stage_info.numTasks
    return done, total
