"""What happened to one file scan: an entry of the bridge's registry, read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skipstone.engines.spark.scan_html import scan_line, scans_html

__all__ = ["JoinStats", "ObjectCounts", "ScanStats"]


@dataclass(frozen=True, slots=True)
class ObjectCounts:
    """Objects of one scan after partition pruning; ``unindexed`` and ``stale`` ones are among the kept."""

    total: int
    kept: int
    skipped: int
    unindexed: int
    stale: int


@dataclass(frozen=True, slots=True)
class JoinStats:
    """What keys of broadcast joins and values of scalar subqueries did to one file scan, just before it ran.

    ``keys`` tells the joins whose keys were asked for, each with how many keys it had, and the filters with subqueries,
    each with the value; ``reason`` says which of the two there were.  ``skipped`` objects were left out by them and not
    when the query was planned.  ``clause``, ``used`` and ``not_used`` are as in ``ScanStats``.
    """

    keys: tuple[str, ...]
    reason: str
    skipped: int
    bytes_skipped: int
    seconds: float
    clause: str | None
    used: tuple[str, ...]
    not_used: tuple[str, ...]

    @classmethod
    def of(cls, part: dict[str, Any]) -> JoinStats:
        """Read the part of an entry that tells of joins."""
        return cls(
            keys=tuple(part["keys"]),
            reason=part["reason"],
            skipped=part["skipped"],
            bytes_skipped=part["bytes_skipped"],
            seconds=part["seconds"],
            clause=part.get("clause"),
            used=tuple(part["used"]),
            not_used=tuple(part["not_used"]),
        )


@dataclass(frozen=True, slots=True)
class AggregateStats:
    """What metadata answered of a query's counts and extremes, just before its scan ran.

    ``answered`` objects, and ``bytes_skipped`` bytes, were not read, since all of their rows match and metadata knows
    what the query asks of them.  ``used`` and ``not_used`` are as in ``ScanStats``.
    """

    answered: int
    bytes_skipped: int
    seconds: float
    used: tuple[str, ...]
    not_used: tuple[str, ...]

    @classmethod
    def of(cls, part: dict[str, Any]) -> AggregateStats:
        """Read the part of an entry that tells of counts and extremes."""
        counted = {name: part[name] for name in ("answered", "bytes_skipped", "seconds")}
        return cls(**counted, used=tuple(part["used"]), not_used=tuple(part["not_used"]))


@dataclass(frozen=True, slots=True)
class ScanStats:
    """What happened to one file scan when its query was planned, and when it ran.

    ``clause`` is what was asked of the metadata, ``used`` the indexes that it asked, ``not_used`` a sentence for
    everything that could not help.

    ``joins`` is ``None`` unless the query ran, and by a column that an index is on the scan's rows were joined with a
    broadcast or compared with a subquery; ``objects`` and ``bytes_skipped`` have what was left out by that among them.

    ``aggregates`` is ``None`` unless the query counts the scan's rows, or asks for the least or greatest value of a
    column that an index is on, and ran; ``objects`` and ``bytes_skipped`` have what metadata answered among them.

    ``seconds`` splits ``planning_seconds``: ``listing`` the objects, the ``planner`` (making the clause and evaluating
    it), reading ``metadata``, and the ``match`` of the answer with the listing.

    ``skipped_by_top`` of the skipped objects have no row among the first ones that ``ORDER BY … LIMIT`` asks for, or
    are not needed for ``WHERE … LIMIT``; ``top`` says which rows are asked for.

    ``pruned_by_format`` is ``None`` but for a table format's scan: so many objects, and
    ``bytes_pruned_by_format`` bytes, the format's own statistics and partitions left out before; they are not among
    ``objects``.

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
    joins: JoinStats | None = None
    skipped_by_top: int = 0
    top: str | None = None
    aggregates: AggregateStats | None = None
    pruned_by_format: int | None = None
    bytes_pruned_by_format: int | None = None

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
            pruned_by_format=entry.get("pruned_by_format"),
            bytes_pruned_by_format=entry.get("bytes_pruned_by_format"),
            rows_read=entry.get("rows_read"),
            files_read=entry.get("files_read"),
            joins=JoinStats.of(entry["joins"]) if entry.get("joins") else None,
            skipped_by_top=entry.get("skipped_by_top") or 0,
            top=entry.get("top"),
            aggregates=AggregateStats.of(entry["aggregates"]) if entry.get("aggregates") else None,
        )

    def __str__(self) -> str:
        return scan_line(self)

    def _repr_html_(self) -> str:
        return scans_html("Scan", [self])


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1_000
