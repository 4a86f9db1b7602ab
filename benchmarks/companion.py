"""Planning through a companion against the planner of a Python driver, in one JVM, and what a companion costs a server.

A plain session starts a companion; this process then has a planner of its own beside it, and the two answer the same
queries in turn.  A server's start is the time until Spark Connect's port is open, with and without a companion in turn.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from benchmarks import data, synthetic
from benchmarks.measures import Row, Sample, Subject, interleave, ratio
from benchmarks.memory import QUERIES
from benchmarks.session import optimize
from skipstone.engines.spark.attach import fill_registry
from skipstone.engines.spark.bridge.build import bridge_jar
from skipstone.engines.spark.bridge.presence import EXTENSION
from skipstone.engines.spark.planning import SparkPlanner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OBJECTS = 8_192
TARGET_PLANNING = 1.2
TARGET_START = 1.1
TARGET_MB = 400
HOME = Path(pyspark.__file__).parent
SOURCES = str(Path(__file__).parents[1] / "src")


def measure(*, small: bool) -> list[Row]:
    """Measure planning, then memory, then starts."""
    return [*_planning(small=small), *_memory(small=small), *_starts(small=small)]


def _settings(*, companion: bool) -> dict[str, str]:
    return {
        "spark.jars": str(bridge_jar()),
        "spark.sql.extensions": EXTENSION,
        "spark.skipstone.companion.enabled": str(companion).lower(),
        "spark.skipstone.companion.python": sys.executable,
        "spark.skipstone.companion.path": SOURCES,
        "spark.skipstone.companion.waitMs": "120000",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _session(metadata: str) -> SparkSession:
    """Start a plain session that has a companion."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[*]").config("spark.skipstone.location", f"file:{metadata}")
    for name, value in (_settings(companion=True) | {"spark.driver.memory": "8g"}).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _planning(*, small: bool) -> list[Row]:
    """Let both planners answer the same queries in turn."""
    from pyspark.java_gateway import ensure_callback_server_started

    with synthetic.many_indexed(OBJECTS) as (folder, (generated,)):
        spark = _session(folder)
        bridge: Any = spark._jvm.org.apache.spark.sql.skipstone.Bridge
        df = spark.read.schema(data.MANY_SCHEMA).parquet(generated.path)
        started = time.perf_counter()
        optimize(df.where(f"a = {5 * OBJECTS}"))
        first = time.perf_counter() - started
        theirs = bridge.registered()
        fill_registry()
        ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        ours = SparkPlanner(spark)
        scala: Any = getattr(getattr(spark._jvm.org.apache.spark.sql.skipstone, "Bridge$"), "MODULE$")
        use = getattr(scala, "planner_$eq")  # `register` would end the companion
        numbers = iter(range(1, 1_000_000))
        query = f"a = {5 * OBJECTS} AND b < 2 AND ts > timestamp'2000-01-01' AND other <> {{}}"
        subjects = {
            name: Subject(lambda: optimize(df.where(query.format(next(numbers)))), lambda p=planner: use(p))
            for name, planner in (("companion", theirs), ("driver", ours))
        }
        times = interleave(subjects, repeats=20 if small else 100, warmups=10)
        memory = _resident(spark)
        use(theirs)
        spark.stop()
    where = f"{OBJECTS:,} hollow objects, three MinMax columns, one JVM, in turn"
    return [
        ratio("planning by a companion / by a driver", times["companion"], times["driver"], TARGET_PLANNING, where),
        Row("memory of the companion", memory / 1e6, "MB", None, where),
        Row("first query after the session", first, "s", None, "waits for the companion's start, then plans"),
    ]


def _memory(*, small: bool) -> list[Row]:
    """Return what the companion of a large dataset takes when all its metadata has been asked for."""
    with synthetic.many_indexed(10_000 if small else 1_000_000) as (folder, (generated,)):
        spark = _session(folder)
        df = spark.read.schema(data.MANY_SCHEMA).parquet(generated.path)
        for query in QUERIES * 2:
            optimize(df.where(query))
        bridge: Any = spark._jvm.org.apache.spark.sql.skipstone.Bridge
        (entry,) = json.loads(bridge.entriesOfLastQuery())
        if entry["error"] or not entry["objects"]["skipped"]:
            raise RuntimeError(entry)  # nothing was loaded then
        memory = _resident(spark)
        spark.stop()
    where = f"{generated.objects:,} hollow objects, three MinMax columns, resident size of the process, all of it"
    return [Row("memory of the companion of a large dataset", memory / 1e6, "MB", TARGET_MB, where)]


def _resident(spark: SparkSession) -> int:
    """Return the memory that the JVM's companion has."""
    jvm: Any = spark._jvm
    parent = str(jvm.java.lang.ProcessHandle.current().pid())
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
            command = (status.parent / "cmdline").read_bytes()
            if fields["PPid"].strip() == parent and b"skipstone.engines.spark.companion" in command:
                return int(fields["VmRSS"].split()[0]) * 1024
    return 0


def _starts(*, small: bool) -> list[Row]:
    """Start Connect servers with and without a companion in turn."""
    taken: dict[bool, list[float]] = {True: [], False: []}
    for number in range(3 if small else 7):
        for companion in (True, False) if number % 2 else (False, True):
            taken[companion].append(_start(companion=companion))
    with_it, without = (Sample(tuple(taken[companion])) for companion in (True, False))
    where = "time to Spark Connect's open port, in turn"
    return [ratio("start of a server with a companion / without", with_it, without, TARGET_START, where)]


def _start(*, companion: bool) -> float:
    """Start a server, wait for its port, and end it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = _settings(companion=companion) | {"spark.connect.grpc.binding.port": str(port)}
    options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    with tempfile.TemporaryDirectory() as folder, Path(folder, "log").open("w") as log:
        started = time.perf_counter()
        process = subprocess.Popen(
            [str(HOME / "bin" / "spark-submit"), "--master", "local[*]", *options, "--class", server, "spark-internal"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            env={**os.environ, "SPARK_HOME": str(HOME)},
            start_new_session=True,
        )
        try:
            while process.poll() is None:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    return time.perf_counter() - started
                time.sleep(0.02)
            raise RuntimeError(Path(folder, "log").read_text()[-2000:])
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)
