"""Processes of their own that run functions of the tests, each with a Spark session or without one."""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future
    from pathlib import Path

__all__ = ["Worker", "rendezvous", "session", "workers"]

_spark: Any = None
_barrier: Any = None


class Worker:
    """One process; what it is given to do it does in order."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def start(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Future[Any]:
        """Let the process run a function of a module, without waiting for it."""
        return self._pool.submit(_told, function, *arguments, **named)

    def run(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Run a function in the process."""
        return self.start(function, *arguments, **named).result(timeout=600)


@contextmanager
def workers(count: int, folder: Path, settings: Mapping[str, str] | None = None) -> Iterator[list[Worker]]:
    """Return processes that can meet; with settings, each has a Spark session.  Their output goes to a folder."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(count)
    with ExitStack() as stack:
        made = []
        for number in range(count):
            setup = (barrier, str(folder / f"output-{number}"), settings)
            pool = ProcessPoolExecutor(1, mp_context=context, initializer=_set_up, initargs=setup)
            stack.callback(pool.shutdown)
            made.append(Worker(pool))
        started = [worker.start(os.getpid) for worker in made]  # all at once
        for future in started:
            future.result(timeout=600)
        yield made
        for worker in made:
            worker.run(_tear_down)


def session() -> Any:
    """Return the process's Spark session."""
    return _spark


def rendezvous() -> None:
    """Wait until the other processes have come to this point, too."""
    _barrier.wait(timeout=300)


def _told(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Run a function; what Py4J raises cannot be sent to another process, its text can."""
    try:
        return function(*arguments, **named)
    except Exception:  # noqa: BLE001  (whatever it is, the test fails with its text)
        raise AssertionError(traceback.format_exc()[-6000:]) from None


def _set_up(barrier: Any, output: str, settings: Mapping[str, str] | None) -> None:
    global _spark, _barrier
    with open(output, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    _barrier = barrier
    if settings is None:
        return
    from pyspark.sql import SparkSession

    from skipstone.engines.spark.session import configure

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = configure(SparkSession.builder.master("local[2]").appName("skipstone-storage-tests"))
    usual = {
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    # Behind Spark's own jars: the archive of their classes serves only while they are the first ones.
    own = dict(settings)
    os.environ["SPARK_DIST_CLASSPATH"] = own.pop("spark.driver.extraClassPath", "")
    for name, value in {**usual, **own}.items():
        builder = builder.config(name, value)
    _spark = builder.getOrCreate()


def _tear_down() -> None:
    if _spark is not None:
        _spark.stop()
