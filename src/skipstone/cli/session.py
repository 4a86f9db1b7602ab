"""A quiet Spark session for the commands: its settings, its log, and whether the work has begun."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from skipstone.cli.output import telling
from skipstone.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

__all__ = ["pairs", "quiet_session", "spark_log", "stage", "usage_is_checked"]

_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
_REPEATING_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""PySpark logs an error that it raises once more, as JSON, to stderr."""


class _Stage:
    """Whether the command at hand has begun to start Spark: what Skipstone refuses before that is wrong usage."""

    usage = True


stage = _Stage()


def usage_is_checked() -> None:
    """Note that the command's work begins: what fails from here on is no matter of how it was called."""
    stage.usage = False


class _SparkLog:
    """The file that Spark's own log goes to; a temporary one is removed at exit unless someone was told to look."""

    _path: Path | None = None
    _temporary = False

    def choose(self, path: Path | None) -> Path:
        """Name the file, once per process."""
        if path is None:
            handle, name = tempfile.mkstemp(prefix="skipstone-spark-", suffix=".log")
            os.close(handle)
            path, self._temporary = Path(name), True
            atexit.register(self._remove)
        self._path = path
        return path

    def keep(self) -> Path | None:
        """Keep the file, and return it if there is one."""
        self._temporary = False
        return self._path

    def _remove(self) -> None:
        if self._temporary and self._path is not None:
            self._path.unlink(missing_ok=True)


spark_log = _SparkLog()


def quiet_session(
    conf: Sequence[str] = (), *, location: str | None = None, hive: bool = False, log: Path | None = None
) -> SparkSession:
    """Make (or take) a Spark session with Skipstone whose log does not drown the output.

    Parameters
    ----------
    conf
        Spark settings as ``key=value``; they win over everything here.
    location
        The ``spark.skipstone.location`` setting.
    hive
        Whether the catalog is Hive's, as in ``spark-sql``: tables of other programs are there.
    log
        File for what Spark writes to stderr; a temporary one when not given.
    """
    from pyspark.errors import PySparkRuntimeError
    from pyspark.logger import PySparkLogger

    settings = {**_QUIET, "spark.app.name": "skipstone"}
    if hive:
        settings["spark.sql.catalogImplementation"] = "hive"
    if location is not None:
        settings["spark.skipstone.location"] = location
    settings |= pairs(conf, "--conf")
    usage_is_checked()
    telling()("starting Spark …")
    from pyspark.sql import SparkSession

    from skipstone.engines.spark.bridge.build import find_java
    from skipstone.engines.spark.session import configure

    for name in _REPEATING_LOGGERS:
        PySparkLogger.getLogger(name).disabled = True
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    if SparkSession.getActiveSession() is not None:
        return configure(builder).getOrCreate()
    try:
        with _stderr_to(spark_log.choose(log)):
            return configure(builder).getOrCreate()
    except PySparkRuntimeError:
        find_java()  # the usual reason, and this says so
        raise


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """Let the JVM that is started inside inherit a file in place of this process's stderr."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with path.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Read repeated ``key=value`` options.

    Raises
    ------
    SettingError
        When one has no ``=``.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            msg = f"{option} takes key=value, not {text!r}"
            raise SettingError(msg)
        found[key.strip()] = value
    return found
