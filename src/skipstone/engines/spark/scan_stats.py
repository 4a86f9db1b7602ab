"""What happened to one file scan: an entry of the bridge's registry, read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["ObjectCounts", "ScanStats"]


@dataclass(frozen=True, slots=True)
class ObjectCounts:
    """Objects of one scan after partition pruning; ``unindexed`` and ``stale`` ones are among the kept."""

    total: int
    kept: int
    skipped: int
    unindexed: int
    stale: int


@dataclass(frozen=True, slots=True)
class ScanStats:
    """What happened to one file scan when its query was planned, and when it ran.

    ``clause`` is what was asked of the metadata, ``used`` the indexes that it asked, ``not_used`` a sentence for
    everything that could not help.

    ``seconds`` splits ``planning_seconds``: ``listing`` the objects, the ``planner`` (making the clause and evaluating
    it), reading ``metadata``, and the ``match`` of the answer with the listing.

    The rest is ``None`` until the query has run, and then of its latest run: ``run_seconds`` is how long the whole
    query ran, ``scan_seconds`` the time that its tasks together spent in this scan (columnar scans only: Parquet and
    ORC), ``rows_read`` and ``files_read`` what the scan gave and opened.  A scan whose result Spark took from an equal
    one keeps ``None`` in these three.
    """

    objects: ObjectCounts
    bytes_total: int
    bytes_skipped: int
    metadata_bytes_read: int
    planning_seconds: float
    clause: str | None
    used: tuple[str, ...]
    not_used: tuple[str, ...]
    roots: tuple[str, ...]
    format: str
    table: str | None
    condition: str | None
    error: str | None
    seconds: dict[str, float]
    query: int
    plan: int
    run_seconds: float | None = None
    scan_seconds: float | None = None
    rows_read: int | None = None
    files_read: int | None = None

    @classmethod
    def of(cls, entry: dict[str, Any]) -> ScanStats:
        """Read one entry of the bridge's registry."""
        return cls(
            objects=ObjectCounts(**entry["objects"]),
            bytes_total=entry["bytes_total"],
            bytes_skipped=entry["bytes_skipped"],
            metadata_bytes_read=entry.get("metadata_bytes_read") or 0,
            planning_seconds=entry["planning_seconds"],
            clause=entry.get("clause"),
            used=tuple(entry.get("used") or ()),
            not_used=tuple(entry.get("not_used") or ()),
            roots=tuple(entry.get("roots") or ()),
            format=entry.get("format") or "",
            table=entry.get("table"),
            condition=entry.get("condition"),
            error=entry.get("error"),
            seconds=dict(entry.get("seconds") or {}),
            query=entry["query"],
            plan=entry.get("plan") or 0,
            run_seconds=_seconds(entry.get("run_ms")),
            scan_seconds=_seconds(entry.get("scan_ms")),
            rows_read=entry.get("rows_read"),
            files_read=entry.get("files_read"),
        )


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1_000
