"""Put Skipstone into a Spark session: the builder, the check that it is in, and the ``spark.skipstone.*`` settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from skipstone.bridge.build import bridge_jar
from skipstone.errors import SessionNotConfiguredError, SettingError, UnsupportedSparkError

__all__ = ["EXTENSION", "SETTINGS", "configure", "get_setting", "require_bridge"]

EXTENSION: Final = "org.apache.spark.sql.skipstone.SkipstoneExtensions"
"""The class that goes into ``spark.sql.extensions``."""

_HOW_TO = "Make the session by skipstone.configure(SparkSession.builder).getOrCreate()"


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
    _require_version()
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
        """Give the session, with the bridge in it and the planner attached."""
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
        from skipstone.engines.spark import attach

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
    if not _has_class(jvm):
        loader.addURL(url)


def _has_class(jvm: Any) -> bool:
    from py4j.protocol import Py4JError

    try:
        jvm.java.lang.Class.forName(EXTENSION, False, jvm.java.lang.Thread.currentThread().getContextClassLoader())
    except Py4JError:
        return False
    return True


def require_bridge(spark: SparkSession) -> None:
    """Check that a session has the bridge.

    Parameters
    ----------
    spark : SparkSession
        The session to be used with Skipstone.

    Raises
    ------
    UnsupportedSparkError
        If it is a Spark Connect session, or of a version that is not 4.x.
    SessionNotConfiguredError
        If it was made without the extension, which cannot be added to a running session.
    """
    _require_version()
    jvm: Any = getattr(spark, "_jvm", None)  # Connect's sessions have none
    if jvm is None:
        raise UnsupportedSparkError(
            f"Skipstone needs a classic Spark session, not {type(spark).__module__}'s. {_HOW_TO}."
        )
    if not _has_class(jvm) or not jvm.org.apache.spark.sql.skipstone.Bridge.installed(spark._jsparkSession):
        raise SessionNotConfiguredError(
            "This Spark session runs without Skipstone's extension, and a running session cannot get one. "
            f"Stop it (spark.stop()), then: {_HOW_TO}."
        )


def _require_version() -> None:
    import pyspark

    if pyspark.__version__.split(".", maxsplit=1)[0] != "4":
        raise UnsupportedSparkError(
            f"Skipstone works with pyspark 4.x, and {pyspark.__version__} is installed: pip install 'pyspark>=4,<5'."
        )


def _flag(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in map(str.strip, text.split(",")) if name)


def _positive(text: str) -> int:
    if (number := int(text)) <= 0:
        raise ValueError(text)
    return number


SETTINGS: Final[dict[str, tuple[str, Callable[[str], Any], str]]] = {
    "enabled": ("true", _flag, "true or false"),
    "location": ("", str.strip, "a folder, or nothing for beside the data"),
    "store": ("parquet", str.strip, "the name of a metadata store"),
    "plugins": ("", _names, "module names, separated by commas"),
    "force": ("false", _flag, "true or false"),
    "plannerTimeoutMs": ("30000", _positive, "a whole number of milliseconds above 0"),
}
"""Name after ``spark.skipstone.``: the default, what reads its text, and what is allowed, for people."""


def get_setting(spark: SparkSession, name: str) -> Any:
    """Read one of the ``spark.skipstone.*`` settings.

    Parameters
    ----------
    spark : SparkSession
        The session whose setting it is.
    name : str
        The name without ``spark.skipstone.``: one of `SETTINGS`.

    Returns
    -------
    Any
        ``bool`` for ``enabled`` and ``force``, ``str`` for ``location`` and ``store``, a tuple of names for
        ``plugins``, ``int`` for ``plannerTimeoutMs``.

    Raises
    ------
    SettingError
        If the value makes no sense.
    """
    default, read, allowed = SETTINGS[name]
    text = spark.conf.get(f"spark.skipstone.{name}", default) or ""
    try:
        return read(text)
    except (KeyError, ValueError):
        raise SettingError(f"spark.skipstone.{name} is {text!r}, allowed is {allowed}.") from None
