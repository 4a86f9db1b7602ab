"""Put Skipstone into a Spark session: a builder that brings the bridge along and attaches the planner."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from skipstone.engines.spark.bridge.build import bridge_jar
from skipstone.engines.spark.bridge.presence import EXTENSION, has_class, require_bridge, require_version
from skipstone.engines.spark.connect import SERVER_NEEDS, Api, is_connect, local_options, without_remote
from skipstone.errors import SessionNotConfiguredError, UnsupportedSparkError
from skipstone.settings import SETTINGS, get_setting

__all__ = ["EXTENSION", "SETTINGS", "configure", "get_setting", "require_bridge"]


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Add Skipstone to whatever a session builder has.

    A session of Spark Connect whose server is started in this process (``.remote("local[*]")``,
    ``spark.api.mode=connect``) gets it there.  A server elsewhere must have been started with it.

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
        If the installed pyspark is not 4.x, or the builder is ``pyspark.sql.connect``'s own.

    Examples
    --------
    >>> spark = skipstone.configure(SparkSession.builder.master("local[2]")).getOrCreate()  # doctest: +SKIP
    """
    require_version()
    if not hasattr(builder, "getOrCreate"):
        what = "a session that is running" if hasattr(builder, "sql") else f"a {type(builder).__name__}"
        msg = (
            f"configure takes a builder, not {what}: spark = skipstone.configure(SparkSession.builder).getOrCreate(), "
            "before the application's first session is made; a running JVM gets no extension"
        )
        raise SessionNotConfiguredError(msg)
    if is_connect(builder):
        msg = f"Skipstone takes pyspark.sql.SparkSession.builder, with .remote(...), not {type(builder).__module__}'s"
        raise UnsupportedSparkError(msg)
    configured = _Builder()
    configured._options = builder._options
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
        api = Api.of(self._options)
        if api is Api.REMOTE:
            return _served(make())
        brought: dict[str, str] = {}
        if SparkContext._active_spark_context is None:
            with without_remote():
                brought = _bring_bridge(local_options(self._options) if api is Api.IN_PROCESS else self._options)
        if api is Api.IN_PROCESS:
            with _given_to_server(self._options, brought):
                spark = make()
        else:
            for key, value in brought.items():
                self.config(key, value)
            spark = make()
        # On Connect, the session that the server runs in: it is the one that pyspark has made here.
        own = SparkSession._instantiatedSession if api is Api.IN_PROCESS else spark
        assert own is not None  # noqa: S101
        require_bridge(own)
        from skipstone.engines.spark.attach import attach

        attach(own)
        return spark


def _bring_bridge(options: Mapping[str, Any]) -> dict[str, str]:
    """Start the JVM with the bridge; gives the settings that its session needs, appended to what it has."""
    jar = bridge_jar()
    wanted = SparkConf(loadDefaults=False)
    for key, value in options.items():
        wanted.set(key, str(value))
    master = wanted.get("spark.master", os.environ.get("MASTER", "local")) or ""
    if master.startswith("local") and "spark.pyspark.python" not in options:
        # The workers run on this machine: anything but this interpreter would be a surprise.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # The JVM is started here as SparkContext would, to ask it for the values that ours are appended to.
    SparkContext._ensure_initialized(conf=wanted)
    defaults = SparkConf(loadDefaults=True)
    _load(jar)
    brought = {"spark.skipstone.companion.enabled": "false"}  # this process plans
    for key, own in (("spark.jars", str(jar)), ("spark.sql.extensions", EXTENSION)):
        theirs = str(options.get(key, defaults.get(key, "") or ""))
        values = [value for value in map(str.strip, theirs.split(",")) if value]
        brought[key] = ",".join([*values, *([own] if own not in values else [])])
    return brought


@contextmanager
def _given_to_server(options: dict[str, Any], settings: Mapping[str, str]) -> Iterator[None]:
    """Let a server that pyspark starts inside have settings that are no options of its client.

    Pyspark hands a builder's options to both, and warns of each that is the server's alone.
    """
    before = dict(options)
    jvm: Any = SparkContext._jvm
    properties = [key for key in settings if key not in options]
    for key, value in settings.items():
        if key in options:
            options[key] = value
        else:
            jvm.java.lang.System.setProperty(key, value)
    try:
        yield
    finally:
        options.clear()
        options.update(before)
        for key in properties:
            jvm.java.lang.System.clearProperty(key)


def _served(spark: SparkSession) -> SparkSession:
    """Return the session of a client if its server has Skipstone's extension."""
    extensions = spark.conf.get("spark.sql.extensions", "") or ""
    if EXTENSION not in map(str.strip, extensions.split(",")):
        msg = f"This Spark Connect server runs without Skipstone, and a client cannot bring it along: {SERVER_NEEDS}."
        raise SessionNotConfiguredError(msg)
    return spark


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
