"""A progress bar on a terminal, fed by Spark's own status; nothing anywhere else."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["shown_progress"]

_POLL_SECONDS = 0.25


@contextmanager
def shown_progress(spark: SparkSession, title: str, *, wanted: bool | None = None) -> Iterator[None]:
    """Show how many tasks of the running job have ended, while the block runs.

    Parameters
    ----------
    wanted
        Show it or not; by default when standard error is a terminal.
    """
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("tasks"),
        TimeElapsedColumn(),
    )
    tracker = spark.sparkContext.statusTracker()
    earlier = set(tracker.getActiveJobsIds())
    over = threading.Event()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)

        def follow() -> None:
            while not over.wait(_POLL_SECONDS):
                done, total = _tasks(tracker, earlier)
                if total:
                    bar.update(task, completed=done, total=total)

        follower = threading.Thread(target=follow, name="skipstone-progress", daemon=True)
        follower.start()
        try:
            yield
        finally:
            over.set()
            follower.join()


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
