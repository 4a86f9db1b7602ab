"""Put Skipstone into a Spark session: a builder that brings the bridge along and attaches the planner."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from skipstone.engines.spark.bridge.build import bridge_jar
from skipstone.engines.spark.bridge.presence import EXTENSION, has_class, require_bridge, require_version
from skipstone.errors import UnsupportedSparkError
from skipstone.settings import SETTINGS, get_setting

__all__ = ["EXTENSION", "SETTINGS", "configure", "get_setting", "require_bridge"]


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Add Skipstone to whatever a session builder has.

    Parameters
    ----------
    builder : SparkSession.Builder
        ``SparkSession.builder``, with or without options.

    Returns
    -------
    SparkSession.Builder
        A builder with the same options, to which more may be added. Its session skips.

    Raises
    ------
    UnsupportedSparkError
        If the builder is for Spark Connect, or the installed pyspark is not 4.x.

    Examples
    --------
    >>> spark = skipstone.configure(SparkSession.builder.master("local[2]")).getOrCreate()  # doctest: +SKIP
    """
    require_version()
    configured = _Builder()
    configured._options = builder._options
    configured._require_classic()
    return configured


class _Builder(SparkSession.Builder):
    """A session builder that brings Skipstone along when the session is made.

    Everything waits for that moment: options may still change, and what spark-submit and ``spark-defaults.conf`` say,
    which must not be overwritten, is known only to the JVM.
    """

    def getOrCreate(self) -> SparkSession:  # noqa: N802  (Spark's name)
        """Return the session, with the bridge in it and the planner attached."""
        return self._attached(super().getOrCreate)

    def create(self) -> SparkSession:
        """Make a new session, with the bridge in it and the planner attached."""
        return self._attached(super().create)

    def _attached(self, make: Callable[[], SparkSession]) -> SparkSession:
        self._require_classic()
        if SparkContext._active_spark_context is None:
            self._bring_bridge()
        spark = make()
        require_bridge(spark)
        from skipstone.engines.spark.planning import attach

        attach(spark)
        return spark

    def _require_classic(self) -> None:
        mode = self._options.get("spark.api.mode", os.environ.get("SPARK_API_MODE", ""))
        environment = {"SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"} & os.environ.keys()
        if "spark.remote" in self._options or environment or str(mode).lower() == "connect":
            raise UnsupportedSparkError(
                "Skipstone cannot be put into a Spark Connect session from the client: configure the server's "
                "session, or use a classic one (.master(...) in place of .remote(...), no SPARK_REMOTE)."
            )

    def _bring_bridge(self) -> None:
        jar = bridge_jar()
        wanted = SparkConf(loadDefaults=False)
        for key, value in self._options.items():
            wanted.set(key, str(value))
        master = wanted.get("spark.master", os.environ.get("MASTER", "local")) or ""
        if master.startswith("local") and "spark.pyspark.python" not in self._options:
            # The workers run on this machine: anything but this interpreter would be a surprise.
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        # The JVM is started here as SparkContext would, to ask it for the values that ours are appended to.
        SparkContext._ensure_initialized(conf=wanted)
        defaults = SparkConf(loadDefaults=True)
        _load(jar)
        self.config("spark.skipstone.companion.enabled", "false")  # this process plans
        for key, own in (("spark.jars", str(jar)), ("spark.sql.extensions", EXTENSION)):
            theirs = str(self._options.get(key, defaults.get(key, "") or ""))
            values = [value for value in map(str.strip, theirs.split(",")) if value]
            self.config(key, ",".join([*values, *([own] if own not in values else [])]))


def _load(jar: Path) -> None:
    """Let the running JVM's class loader find the bridge.

    ``spark.jars`` alone serves the executors, and the driver only where this process starts it: not under spark-submit,
    and not in a notebook whose JVM outlived its first session.
    """
    jvm: Any = SparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    url = jvm.java.io.File(str(jar)).toURI().toURL()
    if not has_class(jvm):
        loader.addURL(url)
