"""Programs without a Python driver, as tests start them: their settings, their children, and what they logged."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from skipstone.engines.spark.bridge.build import bridge_jar
from skipstone.engines.spark.bridge.presence import EXTENSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPOSITORY = Path(__file__).parents[3]
MODULE = "skipstone.engines.spark.companion"

PROLOGUE = """
import gc, json, os, signal, sys, threading, time
from pathlib import Path
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from tests.engines.spark.programs import alive, children, until

def session(**more):
    builder = SparkSession.builder.master("local[2]")
    for name, value in {**json.loads(os.environ["PROGRAM_SETTINGS"]), **more}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()

def bridge(spark):
    return spark._jvm.org.apache.spark.sql.skipstone.Bridge

def jvm_pid(spark):
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())

def asked(spark, query):
    before = bridge(spark).lastSeq()
    rows = sorted(tuple(row) for row in spark.sql(query).collect())
    return rows, json.loads(bridge(spark).entriesSince(before))[-1]

def kept(spark, query):
    rows, entry = asked(spark, query)
    return len(rows), entry["objects"]["kept"], " ".join(entry["not_used"])

def attached(spark):
    return bridge(spark).registered() is not None
"""


# To a file: Spark's shells keep what is less than a warning off the console.
LOGGING = """
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
rootLogger.appenderRef.console.ref = console
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %p %c{{1}}: %m%n%ex
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{{1}}: %m%n%ex
appender.console.filter.threshold.type = ThresholdFilter
appender.console.filter.threshold.level = warn
"""


def logging_to(file: Path) -> dict[str, str]:
    """Return the setting by which a program logs to a file."""
    properties = file.with_suffix(".properties")
    properties.write_text(LOGGING.format(file=file))
    return {"spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={properties}"}


def settings(**more: str) -> dict[str, str]:
    """Return the settings of a program with a companion (``__`` stands for a dot)."""
    own = {
        "spark.jars": str(bridge_jar()),
        "spark.sql.extensions": EXTENSION,
        "spark.skipstone.companion.enabled": "true",
        "spark.skipstone.companion.python": sys.executable,
        "spark.skipstone.companion.path": str(REPOSITORY / "src"),
        "spark.skipstone.companion.waitMs": "60000",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    return own | {name.replace("__", "."): value for name, value in more.items()}


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a program."""
    paths = os.pathsep.join(filter(None, [str(REPOSITORY), str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable, **more}


def run_script(folder: Path, body: str, timeout: float = 300, **more: str) -> str:
    """Run a plain PySpark program that brings no planner of its own; give what it printed and its JVM logged."""
    script, out, log = folder / "script.py", folder / "out.txt", folder / "spark.log"
    script.write_text(PROLOGUE + textwrap.dedent(body) + "\nprint('ALL WELL')\n")
    with out.open("w") as file:  # a JVM that inherits a pipe would keep us waiting
        code = subprocess.call(
            [sys.executable, str(script)],
            stdout=file,
            stderr=file,
            cwd=folder,
            timeout=timeout,
            env=environment(PROGRAM_SETTINGS=json.dumps(settings(**more) | logging_to(log))),
        )
    text = out.read_text()
    assert code == 0, text[-6000:]
    assert "ALL WELL" in text, text[-6000:]
    return text + (log.read_text() if log.exists() else "")


@contextmanager
def started(
    folder: Path,
    command: list[str],
    conf: dict[str, str],
    stdin: Path | None = None,
    master: str = "local[2]",
    **variables: str,
) -> Iterator[Program]:
    """Run one of Spark's own programs (``spark-sql``, ``spark-shell``, ``spark-submit``) beside a test."""
    home = Path(pyspark.__file__).parent
    options = [
        part
        for name, value in {**conf, **logging_to(folder / "spark.log")}.items()
        for part in ("--conf", f"{name}={value}")
    ]
    log = folder / f"{command[0]}.log"
    source = stdin.open() if stdin else subprocess.DEVNULL
    with log.open("w") as file:
        process = subprocess.Popen(
            [str(home / "bin" / command[0]), "--master", master, *options, *command[1:]],
            stdin=source,
            stdout=file,
            stderr=file,
            cwd=folder,
            env=environment(SPARK_HOME=str(home), **variables),
            start_new_session=True,
        )
    program = Program(process, log, folder / "spark.log")
    try:
        yield program
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
        if stdin:
            source.close()


class Program:
    """A process, what it printed, and what it logged."""

    def __init__(self, process: subprocess.Popen[bytes], *files: Path) -> None:
        self.process = process
        self.files = files

    def text(self) -> str:
        return "".join(file.read_text(errors="replace") for file in self.files if file.exists())

    def wait(self, timeout: float = 180) -> str:
        """Wait for its end; give the log."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running:\n{self.text()[-4000:]}") from None
        return self.text()

    def until(self, said: str, timeout: float = 120) -> None:
        """Wait for a line of the log."""
        until(lambda: said in self.text() or self.process.poll() is not None, timeout)
        assert said in self.text(), self.text()[-4000:]


def children(parent: int) -> list[int]:
    """Return the companions that a JVM has."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            pid = int(entry.name)
            if MODULE.encode() in (entry / "cmdline").read_bytes() and (
                int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent
            ):
                found.append(pid)
    return found


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition: Callable[[], object], timeout: float = 60) -> float:
    """Wait for something; give how long it took."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < timeout, "waited in vain"
        time.sleep(0.05)
    return time.monotonic() - start
