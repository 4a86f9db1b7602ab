"""Where the data of an experiment lies: on the local disk, or on an S3 server behind a proxy that makes it far away.

Both read the same generated folders.  Under object-storage conditions every request waits for its first byte and every
answer is as slow as one connection to an object store, and the proxy's log says what was asked and what was sent.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from benchmarks import data
from benchmarks.servers.s3 import S3Store, object_store

__all__ = ["LOCAL", "S3", "Conditions", "Count", "Place", "Traffic", "default_threads"]

Storage = Literal["local", "s3"]


@dataclass(frozen=True)
class Count:
    """Requests of one kind and the bytes of their answers."""

    requests: int = 0
    bytes: int = 0


@dataclass(frozen=True)
class Traffic:
    """What was read between two looks: requests and bytes, and under object-storage conditions of which kind.

    The kinds are ``metadata``, and of the data ``objects`` and ``listing``.  On the local disk nothing is requested:
    only the bytes that Hadoop's file system read in the driver's JVM are counted, data and metadata together.
    """

    requests: int
    bytes: int
    by_kind: dict[str, Count] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """A dataset where an experiment reads it.

    ``settings`` are for the Spark session, and say where its metadata goes; they are the same for every subject.
    ``traffic`` counts what was read since it was last called.  What others make of the data goes to ``scratch``, which
    they read as ``scratch_root``.
    """

    root: str
    settings: dict[str, str]
    traffic: Callable[[], Traffic]
    scratch: str
    scratch_root: str
    store: S3Store | None = None


@dataclass(frozen=True)
class Conditions:
    """Storage, how far away it is, and how many tasks a session runs at a time.

    ``latency`` is the time in seconds from a request to the first byte of its answer, ``bandwidth`` the bytes per
    second of one answer.  ``threads`` is for Spark: reading from object storage is waiting, so that a core does the
    work of several tasks; the number is the same for everything that is compared.
    """

    storage: Storage = "local"
    latency: float = 0.030
    bandwidth: float = 50e6
    threads: int = 0

    def __post_init__(self) -> None:
        if self.storage not in ("local", "s3"):
            msg = f"there is no storage called {self.storage!r}: choose local or s3"
            raise ValueError(msg)
        if not self.threads:
            object.__setattr__(self, "threads", default_threads(self.storage))

    @property
    def name(self) -> str:
        return self.storage

    @property
    def described(self) -> str:
        """Return the condition as it belongs beside every figure."""
        if self.storage == "local":
            return f"local disk, files in the page cache where they fit, no vectored reads, {self.threads} threads"
        return (
            f"S3A against a local S3 server, {1_000 * self.latency:.0f} ms to the first byte of an answer, "
            f"{self.bandwidth / 1e6:.0f} MB/s per answer, {self.threads} threads"
        )

    @contextmanager
    def place(self, generated: data.Generated) -> Iterator[Place]:
        """Return a generated dataset under these conditions, with an empty place for metadata, gone afterwards."""
        with self.folders(generated.path) as place:
            yield place

    @contextmanager
    def folders(self, path: str) -> Iterator[Place]:
        """Return any folder under these conditions."""
        with (
            tempfile.TemporaryDirectory(prefix="skipstone-metadata-", dir=data.folder()) as metadata,
            tempfile.TemporaryDirectory(prefix="skipstone-scratch-", dir=data.folder()) as scratch,
        ):
            if self.storage == "local":
                settings = {
                    "spark.master": f"local[{self.threads}]",
                    "spark.skipstone.location": f"file:{metadata}",
                    "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",  # Hadoop counts no bytes of these
                }
                yield Place(path, settings, _LocalTraffic(), scratch, scratch)
                return
            buckets = {"data": path, "metadata": metadata, "scratch": scratch}
            with object_store(buckets, self.latency, self.bandwidth) as store:
                settings = {
                    "spark.master": f"local[{self.threads}]",
                    "spark.skipstone.location": "s3a://metadata/skipstone",
                    **store.s3a_settings(connections=4 * self.threads),
                }
                yield Place("s3a://data/", settings, lambda: _s3_traffic(store), scratch, "s3a://scratch", store)


def default_threads(storage: str) -> int:
    """Return how many tasks run at a time unless it is said: one a core, on object storage four."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if storage == "local" else 4 * cores


LOCAL = Conditions("local")
S3 = Conditions("s3")


class _LocalTraffic:
    """Bytes that Hadoop's local file system has read in the JVM of the running session."""

    def __init__(self) -> None:
        self._last = 0

    def __call__(self) -> Traffic:
        now = _bytes_read()
        last, self._last = self._last, now
        return Traffic(0, now - last if now >= last else now)  # a new session counts from zero


def _bytes_read() -> int:
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is None:
        return 0
    statistics = context._jvm.org.apache.hadoop.fs.FileSystem.getGlobalStorageStatistics().get("file")
    return int(statistics.getLong("bytesRead") or 0) if statistics is not None else 0


def _s3_traffic(store: S3Store) -> Traffic:
    """Sum up what the proxy has logged since the last look."""
    counts: dict[str, list[int]] = {}
    for request in store.requests():
        kind = "metadata" if request.bucket == "metadata" else "listing" if request.listing else "objects"
        count = counts.setdefault(kind, [0, 0])
        count[0] += 1
        count[1] += request.bytes
    by_kind = {kind: Count(*count) for kind, count in sorted(counts.items())}
    return Traffic(sum(c.requests for c in by_kind.values()), sum(c.bytes for c in by_kind.values()), by_kind)
