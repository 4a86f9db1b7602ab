"""What was skipped: one entry per planned file scan, kept by the bridge and read here."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, overload

from skipstone.engines.spark.bridge.presence import require_bridge
from skipstone.engines.spark.client import Client
from skipstone.engines.spark.connect import is_connect
from skipstone.engines.spark.scan_html import scans_html, scans_lines
from skipstone.engines.spark.scan_stats import ObjectCounts, ScanStats
from skipstone.engines.spark.served import ServerEntries, is_served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["ObjectCounts", "QueryStats", "ScanStats", "SkippingStats", "last_query", "skipping_stats"]


class SkippingStats(Sequence[ScanStats]):
    """The scans planned inside a ``skipping_stats`` block, oldest first; it grows while the block is open."""

    def __init__(self, spark: SparkSession) -> None:
        self._client = _entries_of(spark)
        self._thread = self._client.thread()
        # Its server plans on threads of its own, for other clients too.
        self._session = self._client.session_id() if is_connect(spark) else None
        self._start = self._client.last_entry()
        self._change = self._client.last_change()
        self._end: int | None = None
        self._entries: dict[int, ScanStats] = {}
        with _blocks_lock:
            _blocks.append(self)

    def _close(self) -> None:
        """Take no entries after this moment."""
        self._end = self._client.last_entry()
        self._read()

    def _read(self) -> None:
        """Read what the bridge has recorded since the last look: new entries, and old ones whose query has run."""
        for entry in self._client.entries_changed_since(self._change):
            self._change = max(self._change, entry["change"])
            seq = entry["seq"]
            inside = self._start < seq and (self._end is None or seq <= self._end)
            if inside and self._owns(seq, entry):
                self._entries[seq] = ScanStats.of(entry)

    def _fetch(self) -> list[ScanStats]:
        """Return the entries as they are now; once the block is closed and all its queries ran, nothing can change."""
        if self._end is None or any(entry.run_seconds is None for entry in self._entries.values()):
            self._read()
        return [self._entries[seq] for seq in sorted(self._entries)]

    def _owns(self, seq: int, entry: dict[str, Any]) -> bool:
        """Whether an entry is this block's: its own thread's, or one of a thread that had no block of its own.

        Of a Connect client, all entries of its session and no others.
        """
        if self._session is not None:
            return bool(entry["session"] == self._session)
        thread = entry["thread"]
        if thread == self._thread:
            return True
        with _blocks_lock:
            return not any(
                b._session is None and b._thread == thread and b._start < seq and (b._end is None or seq <= b._end)
                for b in _blocks
            )

    @overload
    def __getitem__(self, position: int) -> ScanStats: ...
    @overload
    def __getitem__(self, position: slice) -> list[ScanStats]: ...
    def __getitem__(self, position: int | slice) -> ScanStats | list[ScanStats]:
        return self._fetch()[position]

    def __len__(self) -> int:
        return len(self._fetch())

    def __repr__(self) -> str:
        return f"SkippingStats({self._fetch()!r})"

    def __str__(self) -> str:
        return scans_lines(self._fetch())

    def _repr_html_(self) -> str:
        return scans_html("Queries of this block", self._fetch())


class QueryStats(list[ScanStats]):
    """The scans of one query: a list that ``print`` and notebooks show readably."""

    def __str__(self) -> str:
        return scans_lines(self)

    def _repr_html_(self) -> str:
        return scans_html("Last query", self)


def _entries_of(spark: SparkSession) -> Client | ServerEntries:
    """Return who is asked what happened to a session's queries."""
    if is_served(spark):
        return ServerEntries(spark)
    require_bridge(spark)
    return Client(spark)


_blocks: list[SkippingStats] = []
_blocks_lock = threading.Lock()
_MOST_BLOCKS = 1_000


@contextmanager
def skipping_stats(spark: SparkSession) -> Iterator[SkippingStats]:
    """Collect the statistics of every query planned inside the block.

    Entries of the calling thread come here, and those of threads that have no block of their own.  A Spark Connect
    session gets those of its own queries and no others.

    Examples
    --------
    >>> with skipstone.skipping_stats(spark) as stats:  # doctest: +SKIP
    ...     df.where("ts > '2026-01-01'").count()
    >>> stats[-1].objects.skipped  # doctest: +SKIP
    8189
    """
    block = SkippingStats(spark)
    try:
        yield block
    finally:
        block._close()
        with _blocks_lock:
            del _blocks[: max(0, len(_blocks) - _MOST_BLOCKS)]


def last_query(spark: SparkSession) -> QueryStats:
    """Return the statistics of the latest query that the calling thread planned: an entry per file scan.

    Of a Spark Connect session, of the latest query that the server planned for it.
    """
    client = _entries_of(spark)
    entries = client.entries_of_last_query(client.session_id() if is_connect(spark) else None)
    return QueryStats(ScanStats.of(entry) for entry in entries)
