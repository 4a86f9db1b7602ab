"""How a notebook shows what happened to file scans, and a line of text for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skipstone.showing.format import FORMATS
from skipstone.showing.notebook import (
    Html,
    card,
    code,
    count,
    facts,
    folded,
    items,
    note,
    percent,
    share,
    size,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skipstone.engines.spark.scan_stats import ScanStats

__all__ = ["scan_line", "scans_html", "scans_lines"]

_MOST_TOLD = 10
"""Scans that are told one by one; beyond that there is a table of them alone."""


def scan_line(scan: ScanStats) -> str:
    """Return a scan as one line."""
    counts = scan.objects
    used = f" by {', '.join(scan.used)}" if scan.used else ""
    problem = f"; problem: {scan.error}" if scan.error else ""
    return (
        f"{_named(scan)}: reads {counts.kept:,} of {counts.total:,} objects, skips {_skipped(scan)}{used}; "
        f"{_milliseconds(scan.planning_seconds)} of planning{problem}"
    )


def scans_lines(scans: Sequence[ScanStats]) -> str:
    """Return scans as text, a line each."""
    return "\n".join(map(scan_line, scans)) or "no file scan"


def scans_html(title: str, scans: Sequence[ScanStats]) -> str:
    """Show scans: one by one when they are few, else in a table."""
    if not scans:
        return card(title, note("No file scan: nothing that Skipstone could see was planned."))
    if len(scans) == 1:
        return card(title, *_told(scans[0]), about=_named(scans[0]))
    parts = [_table(scans)]
    if len(scans) <= _MOST_TOLD:
        parts += [folded(f"Scan {number}: {_named(scan)}", *_told(scan)) for number, scan in enumerate(scans, 1)]
    return card(title, *parts, about=f"{len(scans):,} scans")


def _table(scans: Sequence[ScanStats]) -> Html:
    """Show a row per scan, with their sums."""
    rows = [
        (
            _named(scan),
            count(scan.objects.kept),
            count(scan.objects.total),
            _skipped(scan),
            size(scan.bytes_skipped),
            _milliseconds(scan.planning_seconds),
        )
        for scan in scans
    ]
    headings = ["scan of", "objects read", "of", "skipped", "bytes skipped", "planning"]
    return table(headings, rows, numbers=range(1, 6))


def _told(scan: ScanStats) -> list[Html]:
    """Return one scan as text."""
    counts = scan.objects
    among = [f"{counts.unindexed:,} not indexed"] if counts.unindexed else []
    among += [f"{counts.stale:,} changed since indexing"] if counts.stale else []
    read = f"{counts.kept:,} of {counts.total:,}"
    run = None if scan.run_seconds is None else f"{scan.run_seconds:,.2f} s"
    parts = [
        share(counts.skipped, counts.total),
        facts(
            [
                ("objects read", f"{read} ({', '.join(among)})" if among else read),
                ("objects skipped", _skipped(scan)),
                ("bytes skipped", f"{size(scan.bytes_skipped)} of {size(scan.bytes_total)}"),
                ("indexes used", ", ".join(scan.used) or "none"),
                ("planning", _milliseconds(scan.planning_seconds)),
                ("the query ran", run),
                ("rows read", None if scan.rows_read is None else count(scan.rows_read)),
            ]
        ),
    ]
    if scan.error:
        parts.append(note(f"Nothing was skipped: {scan.error}", warning=True))
    if scan.not_used:
        parts += [note("Not used:"), items(scan.not_used)]
    details = [code(scan.condition)] if scan.condition else []
    details += [note("Clause asked of the metadata:"), code(scan.clause)] if scan.clause else []
    return [*parts, folded("Condition and clause", *details)] if details else parts


def _named(scan: ScanStats) -> str:
    return f"{scan.table or ', '.join(scan.roots)} ({scan.format})"


def _skipped(scan: ScanStats) -> str:
    counts = scan.objects
    share_of = percent(counts.skipped / counts.total) if counts.total else percent(0)
    return f"{counts.skipped:,} ({share_of})"


def _milliseconds(seconds: float) -> str:
    return FORMATS["milliseconds"](seconds)
