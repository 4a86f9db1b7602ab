"""The companion: a planner for programs without a Python driver.

The bridge starts this module as a process beside a Scala program or a server, with a Py4J server to connect to
(``bridge/Companion.scala``).  It attaches the same planner that a Python driver would, in a session of its own, and
lives until its standard input ends: when the JVM does, in whatever way, or no longer needs it.  It is a guest: it never
stops the application, and changes neither its default session nor an active one.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

__all__ = ["main", "refusal"]

_REFUSED = 78
_NOT_WANTED = 0
_PATIENCE_SECONDS = 60.0


def main() -> NoReturn:
    """Attach the planner, then serve until the JVM needs it no longer."""
    channel = _live_with_the_jvm()
    reason = refusal(os.environ)
    if reason is not None:
        _say(channel, f"refused {reason}")
        sys.exit(_REFUSED)
    number = int(os.environ["SKIPSTONE_COMPANION"])
    try:
        spark = _connect(number)
        _attach(number, spark)
    except ImportError as error:
        _say(channel, f"refused {_lacking(error)}")
        sys.exit(_REFUSED)
    threading.Event().wait()
    raise AssertionError  # the thread that reads standard input ends the process


def refusal(environment: os._Environ[str] | dict[str, str]) -> str | None:
    """Return why this installation cannot serve the JVM that started it, or ``None``.

    Parameters
    ----------
    environment
        The variables that the bridge gives its child: what its jar was built from, and the version of Spark.
    """
    try:
        import pyspark

        from skipstone import __version__
        from skipstone.engines.spark.bridge.build import source_hash
    except ImportError as error:
        return _lacking(error)
    theirs, ours = environment["SKIPSTONE_BRIDGE_HASH"], source_hash()
    if theirs != ours:
        version = environment["SKIPSTONE_BRIDGE_VERSION"]
        place = Path(__file__).parents[2]
        return (
            f"the jar is of Skipstone {version} (bridge {theirs[:8]}), and {sys.executable} has Skipstone "
            f"{__version__} (bridge {ours[:8]}) in {place}: install skipstone=={version} there, or give the server the "
            "jar that `skipstone jar` names"
        )
    spark = environment["SKIPSTONE_SPARK_VERSION"]
    if _minor(spark) != _minor(pyspark.__version__):
        return (
            f"the server runs Spark {spark}, and {sys.executable} finds pyspark {pyspark.__version__} in "
            f"{Path(pyspark.__file__).parent}: let it find pyspark {_minor(spark)}"
        )
    return None


def _lacking(error: ImportError) -> str:
    return (
        f"{sys.executable} has Skipstone, but not all that it needs: {error} (let pip install skipstone for that "
        "interpreter)"
    )


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _live_with_the_jvm() -> int:
    """Leave the terminal's group, keep standard output for the JVM alone, and end when standard input does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for queries
    os.setsid()
    channel = os.dup(1)
    os.set_inheritable(channel, False)
    os.dup2(2, 1)  # what plug-ins print is no answer
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    threading.Thread(target=_answer_pings, args=(channel,), name="skipstone-pings", daemon=True).start()
    return channel


def _answer_pings(channel: int) -> None:
    while os.read(0, 1 << 10):
        _say(channel, "pong")
    os._exit(_NOT_WANTED)


def _say(channel: int, line: str) -> None:
    os.write(channel, f"{' '.join(line.split())}\n".encode())


def _connect(number: int) -> SparkSession:
    """Return a session of the JVM's application that nobody else has."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    class Guest(SparkContext):
        """Does not stop what it did not start: the constructor does, when anything fails."""

        def stop(self) -> None:
            pass

    gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    del os.environ["PYSPARK_GATEWAY_SECRET"], os.environ["PYSPARK_GATEWAY_PORT"]
    companion = gateway.jvm.org.apache.spark.sql.skipstone.Companion
    java_context = _wanted(companion.context(number))
    context: SparkContext = Guest(gateway=gateway, jsc=java_context, conf=SparkConf(_jconf=java_context.getConf()))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the constructor lets it cancel all jobs
    # Otherwise the first session of a process becomes the JVM's default and active one.
    SparkSession._should_update_active_session = staticmethod(lambda: False)  # type: ignore[method-assign]
    return SparkSession(context, _session(companion, number))


def _session(companion: Any, number: int) -> Any:
    """Wait until the application has a session to make one from; whoever makes its first holds a lock on the way."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        session = companion.session(number)
        if session is not None:
            return session
        if time.monotonic() > deadline or companion.context(number) is None:
            _wanted(None)
        time.sleep(0.05)


def _wanted(handle: Any) -> Any:
    """Return what the JVM gave; it gives nothing to a child that it has given up."""
    if handle is None:
        sys.exit(_NOT_WANTED)
    return handle


def _attach(number: int, spark: SparkSession) -> None:
    from skipstone import kms, registry
    from skipstone.engines.spark.attach import attach_companion

    # The application's settings: a session's may be any client's.
    settings = spark.sparkContext.getConf()
    plugins, provider = (settings.get(f"spark.skipstone.{name}", "") or "" for name in ("plugins", "kms.class"))
    registry.allow_plugins(name.strip() for name in plugins.split(",") if name.strip())
    kms.allow_providers([provider] if provider else [])
    _wanted(attach_companion(spark, number) or None)


if __name__ == "__main__":
    main()
