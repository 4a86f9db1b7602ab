"""What ``explain`` tells of a query's scans: labelled tree, clause, what is skipped, what was not used and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skipstone.engines.spark.remedies import held_up, remedies
from skipstone.expressions.tree import And, Expression, Not, Or
from skipstone.querying.sentences import SKIPS_NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skipstone.engines.spark.scan_stats import AggregateStats, AuditStats, JoinStats, ScanStats
    from skipstone.querying.generate_clause import Labelled
    from skipstone.querying.plan import Plan

__all__ = ["scans_text"]

_MOST_LINES = 60
_LONGEST = 120


def scans_text(scans: Sequence[ScanStats], explained: Callable[[int], Plan | None]) -> str:
    """Return scans as text, one after the other; ``explained`` finds a scan's plan while the planner remembers it."""
    parts = (_scan_text(number, len(scans), s, explained(s.plan)) for number, s in enumerate(scans, 1))
    return "\n\n".join(parts)


def _scan_text(number: int, of: int, scan: ScanStats, plan: Plan | None) -> str:
    """Return one scan as text."""
    counts = scan.objects
    share = counts.skipped / counts.total if counts.total else 0.0
    title = f"Scan {number} of {of}: " if of > 1 else ""
    lines = [
        f"{title}{scan.table or ', '.join(scan.roots)} ({scan.format})",
        (
            f"  reads {counts.kept:,} of {counts.total:,} objects; skips {counts.skipped:,} ({share:.1%}), "
            f"{scan.bytes_skipped:,} of {scan.bytes_total:,} bytes"
        ),
    ]
    if scan.pruned_by_format is not None:
        before = counts.total + scan.pruned_by_format
        lines.append(
            f"  before that, {scan.format}'s own pruning left {counts.total:,} of the snapshot's {before:,} objects"
        )
    if scan.skipped_by_top:
        lines.append(f"  by top-k: {scan.skipped_by_top:,} of those skipped; the query needs {scan.top}")
    if counts.unindexed or counts.stale:
        lines.append(f"  among those read: {counts.unindexed:,} not indexed, {counts.stale:,} changed since indexing")
    if scan.error:
        lines.append(f"  problem: {scan.error}{''.join(remedies([scan.error], None))}")
    for decision in plan.decisions if plan is not None else ():
        if decision.labelled is not None:
            lines += [
                "  predicate, with the clauses that represent its parts:",
                *_tree(decision.labelled, decision.idle),
            ]
    lines.append(f"  clause: {scan.clause or 'none'}")
    lines.append(f"  indexes used: {', '.join(scan.used) or 'none'}")
    if scan.not_used:
        lines += ["  not used:", *(f"    - {reason}" for reason in _with_remedies(scan, plan))]
    spent = ", ".join(f"{what} {seconds * 1000:.1f} ms" for what, seconds in scan.seconds.items())
    if scan.joins is not None:
        lines += _joins_text(scan.joins)
    if scan.aggregates is not None:
        lines += _aggregates_text(scan.aggregates)
    if scan.audit is not None:
        lines.append(f"  {_audit_text(scan.audit)}")
    lines.append(
        f"  planning: {scan.planning_seconds * 1000:.1f} ms{f' ({spent})' if spent else ''}, "
        f"{scan.metadata_bytes_read:,} bytes of metadata read"
    )
    return "\n".join(lines)


def _audit_text(audit: AuditStats) -> str:
    """Return what was found in objects that were left out."""
    if audit.problem is not None:
        return f"audit: not carried through: {audit.problem}"
    size = f"{audit.looked_into:,} of the skipped objects were looked into, {audit.bytes_looked_into:,} bytes"
    if not audit.rows_lost:
        return f"audit: {size}: no row is lost"
    return (
        f"audit: {size}: ROWS ARE LOST: {audit.rows_lost:,}, by {', '.join(audit.blamed)}, in {audit.lost_objects[0]}"
    )


def _joins_text(joins: JoinStats) -> Iterator[str]:
    """Return what keys of joins and values of subqueries did when the query ran."""
    yield f"  by {joins.reason}: skips {joins.skipped:,} of these objects, {joins.bytes_skipped:,} bytes"
    yield from (f"    - {key}" for key in joins.keys)
    yield f"    clause: {joins.clause or 'none'}"
    yield from (f"    not used: {reason}" for reason in joins.not_used)
    yield f"    in {joins.seconds * 1000:.1f} ms, when the query ran"


def _aggregates_text(aggregates: AggregateStats) -> Iterator[str]:
    """Return what metadata answered when the query ran."""
    answered = f"{aggregates.answered:,} of these objects, {aggregates.bytes_skipped:,} bytes"
    yield f"  counts and extremes from metadata: {answered}; asked {', '.join(aggregates.used) or 'no index'}"
    yield from (f"    not used: {reason}" for reason in aggregates.not_used)
    yield f"    in {aggregates.seconds * 1000:.1f} ms, when the query ran"


def _with_remedies(scan: ScanStats, plan: Plan | None) -> Iterator[str]:
    """Yield why something was not used, each with what to do where that is known, and which ORs are held up by it."""
    for reason, remedy in zip(scan.not_used, remedies(scan.not_used, plan), strict=True):
        yield f"{reason}{remedy}"
    for decision in plan.decisions if plan is not None else ():
        for vertex, missing in held_up(decision.labelled) if decision.labelled is not None else ():
            yield f"{_cut(vertex)} cannot skip because of {' and '.join(map(_cut, missing))}"


def _cut(node: Expression) -> str:
    """Return a predicate, short enough for a sentence."""
    text = str(node)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _tree(labelled: Labelled, idle: frozenset[str]) -> Iterator[str]:
    """Draw the labelled tree, a line per vertex, cut when it is very long; clauses that skipped nothing are marked."""
    lines = list(_vertex(labelled.tree, labelled, 2, idle))
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield f"    … {len(lines) - _MOST_LINES:,} more lines"


def _vertex(node: Expression, labelled: Labelled, depth: int, idle: frozenset[str]) -> Iterator[str]:
    """Draw one vertex and what is below it."""
    written = dict.fromkeys(map(str, labelled.labels.get(node, ())))
    label = " and ".join(f"{text} ({SKIPS_NOTHING})" if text in idle else text for text in written)
    mark = f"   ⇐ {label}" if label else ""
    if isinstance(node, And | Or):
        yield f"{'  ' * depth}{type(node).__name__.upper()}{mark}"
        for term in node.terms:
            yield from _vertex(term, labelled, depth + 1, idle)
    elif isinstance(node, Not):
        yield f"{'  ' * depth}NOT{mark}"
        yield from _vertex(node.child, labelled, depth + 1, idle)
    else:
        yield f"{'  ' * depth}{node}{mark}"
