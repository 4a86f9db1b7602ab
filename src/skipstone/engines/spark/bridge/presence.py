"""Is the bridge in a Spark session? The check that everything which needs it makes first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from skipstone.engines.spark.connect import classic_session
from skipstone.errors import SessionNotConfiguredError, UnsupportedSparkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["EXTENSION", "has_class", "require_bridge", "require_version"]

EXTENSION: Final = "org.apache.spark.sql.skipstone.SkipstoneExtensions"
"""The class that goes into ``spark.sql.extensions``."""

HOW_TO: Final = "Make the session by skipstone.configure(SparkSession.builder).getOrCreate()"


def has_class(jvm: Any) -> bool:
    """Whether the JVM can load the extension."""
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
        If its server is another process (Spark Connect), or its version is not 4.x.
    SessionNotConfiguredError
        If it was made without the extension, which cannot be added to a running session.
    """
    require_version()
    spark = classic_session(spark)
    jvm: Any = spark._jvm
    if not has_class(jvm) or not jvm.org.apache.spark.sql.skipstone.Bridge.installed(spark._jsparkSession):
        raise SessionNotConfiguredError(
            "This Spark session runs without Skipstone's extension, and a running session cannot get one. "
            f"Stop it (spark.stop()), then: {HOW_TO}."
        )


def require_version() -> None:
    """Raise for a Spark that the bridge was not made for."""
    import pyspark

    if pyspark.__version__.split(".", maxsplit=1)[0] != "4":
        raise UnsupportedSparkError(
            f"Skipstone works with pyspark 4.x, and {pyspark.__version__} is installed: pip install 'pyspark>=4,<5'."
        )
