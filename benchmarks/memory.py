"""Driver memory for a million objects with three MinMax columns, beyond what Spark itself needs to list them."""

from __future__ import annotations

import gc
from pathlib import Path

import pyarrow as pa

from benchmarks import data, synthetic
from benchmarks.measures import Row
from benchmarks.session import enable, heap_used, optimize, session

TARGET_MB = 300
QUERIES = ("a = 5 AND b < 2 AND ts > timestamp'2000-01-01'", "a >= 0", "b < 0.5", "ts > timestamp'2024-06-01'")


def measure(*, small: bool) -> list[Row]:
    """Compare heap and resident memory after Spark's listing and after queries on all three columns."""
    with (
        synthetic.many_indexed(10_000 if small else 1_000_000, 100) as (folder, (generated, few)),
        session(driver_memory="8g", metadata=folder) as spark,
    ):
        df = spark.read.schema(data.MANY_SCHEMA).parquet(generated.path)
        small_df = spark.read.schema(data.MANY_SCHEMA).parquet(few.path)
        for query in QUERIES:  # whatever a first query loads and compiles, in either process, is not per object
            optimize(small_df.where(query))
        enable(spark, False)
        for query in QUERIES:
            optimize(df.where(query))
        heap, resident = heap_used(spark), _resident()
        enable(spark, True)
        _forget_peak()
        for query in QUERIES * 2:
            optimize(df.where(query))
        heap_after, resident_after, peak = heap_used(spark), _resident(), _peak()
    millions = generated.objects / 1e6
    python, jvm = (resident_after - resident) / 1e6 / millions, (heap_after - heap) / 1e6 / millions
    conditions = f"{generated.objects:,} objects, 3 MinMax columns; resident size of Python and live heap of the JVM"
    return [
        Row(
            "driver memory per million objects, three MinMax columns",
            python + jvm,
            "MB",
            TARGET_MB,
            conditions,
            details={"python_mb": python, "jvm_mb": jvm, "spark_alone_heap_mb": heap / 1e6},
        ),
        Row("… of it in Python", python, "MB", None, conditions),
        Row("… of it in the JVM", jvm, "MB", None, conditions),
        Row("… Python at its peak, while loading", (peak - resident) / 1e6 / millions, "MB", None, conditions),
    ]


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1_024 * int(line.split()[1])
    msg = f"/proc/self/status has no {name}"
    raise LookupError(msg)


def _resident() -> int:
    """Return the bytes that this process holds, after it gave back what it does not need."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _forget_peak() -> None:
    """Let the kernel measure the peak anew."""
    Path("/proc/self/clear_refs").write_text("5")
