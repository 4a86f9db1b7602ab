"""``Dataset.explain``: the labelled tree, the merged clause, what is kept and skipped, what was not used and why."""

from __future__ import annotations

import html
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skipstone.engines.spark.client import Client
from skipstone.expressions.tree import And, Expression, Not, Or
from skipstone.reporting.stats import ScanStats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from skipstone.engines.spark.planning import SparkPlanner
    from skipstone.querying.generate_clause import Labelled
    from skipstone.querying.plan import Plan
    from skipstone.reporting.indicators import Indicators

__all__ = ["Explanation", "explain_scans", "indicator_lines"]

_MOST_LINES = 60


@dataclass(frozen=True)
class Explanation:
    """Readable in a terminal (``print``) and in a notebook."""

    text: str
    scans: tuple[ScanStats, ...]
    indicators: Indicators | None = None

    def with_indicators(self, indicators: Indicators) -> Explanation:
        """Return the explanation with what the query's indicators say."""
        return replace(
            self,
            text="\n".join([self.text, "", *indicator_lines(indicators)]),
            indicators=indicators,
        )

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


def explain_scans(planner: SparkPlanner, df: DataFrame, root: str) -> Explanation:
    """Plan a query without running it and explain what happened to its scans of one dataset."""
    entries = [ScanStats.of(entry) for entry in Client(df.sparkSession).plan_anew(df)]
    scans = tuple(e for e in entries if _concerns(e, root))
    if not scans:
        return Explanation(_no_scan(df, root), ())
    parts = [_scan_text(number, len(scans), s, planner.explained(s.plan)) for number, s in enumerate(scans, 1)]
    return Explanation("\n\n".join(parts), scans)


def _concerns(scan: ScanStats, root: str) -> bool:
    """Whether a scan reads something of the dataset."""
    return any(r == root or r.startswith(f"{root.rstrip('/')}/") for r in scan.roots)


def _no_scan(df: DataFrame, root: str) -> str:
    """Return why no scan of the dataset was planned."""
    enabled = df.sparkSession.conf.get("spark.skipstone.enabled", "true")
    if str(enabled).lower() != "true":
        return "Skipping is off: spark.skipstone.enabled is not true."
    return (
        f"This query has no file scan of {root} that Skipstone can see: it reads other files, the result is cached, or "
        "its source is a DataSource V2 reader (spark.sql.sources.useV1SourceList)."
    )


def _scan_text(number: int, of: int, scan: ScanStats, plan: Plan | None) -> str:
    """Return the lines that explain one scan."""
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
    if counts.unindexed or counts.stale:
        lines.append(f"  among those read: {counts.unindexed:,} not indexed, {counts.stale:,} changed since indexing")
    if scan.error:
        lines.append(f"  problem: {scan.error}")
    for decision in plan.decisions if plan is not None else ():
        if decision.labelled is not None:
            lines += [
                "  predicate, with the clauses that represent its parts:",
                *_tree(decision.labelled),
            ]
    lines.append(f"  clause: {scan.clause or 'none'}")
    lines.append(f"  indexes used: {', '.join(scan.used) or 'none'}")
    if scan.not_used:
        lines += ["  not used:", *(f"    - {reason}" for reason in scan.not_used)]
    spent = ", ".join(f"{what} {seconds * 1000:.1f} ms" for what, seconds in scan.seconds.items())
    lines.append(
        f"  planning: {scan.planning_seconds * 1000:.1f} ms{f' ({spent})' if spent else ''}, "
        f"{scan.metadata_bytes_read:,} bytes of metadata read"
    )
    return "\n".join(lines)


def indicator_lines(found: Indicators) -> list[str]:
    r"""Return the lines on a query's indicators, and a sentence on what limits skipping.

    Examples
    --------
    >>> from skipstone.reporting.indicators import Indicators
    >>> print("\n".join(indicator_lines(Indicators(4, 1, 1, 400, 10, 100, 100))))
    indicators (shares of rows):
      selectivity σ 0.025: 10 of 400 rows are relevant
      layout factor λ 0.1: these are in 1 of 4 objects, with 100 rows in all
      metadata factor μ 1: 1 object is read, with 100 rows in all
      scanning factor ψ 0.25 = σ / (λ μ)
      Neither a better layout nor better metadata would halve what is read.
    """
    sigma, lam, mu, psi = found.factors()
    read = f"{found.kept_objects:,} object{' is' if found.kept_objects == 1 else 's are'} read"
    title = "indicators (shares of rows):"
    if sigma is None:
        lines = [title, f"  no row of {found.rows:,} is relevant, so the four factors are undefined; {read}"]
        vain = "The metadata is the limit: an index that tells more would skip all of them."
        return [*lines, f"  {vain}"] if found.kept_objects else lines
    relevant = f"{found.relevant_objects:,} of {found.objects:,} objects, with {found.rows_in_relevant_objects:,} rows"
    return [
        title,
        f"  selectivity σ {sigma:.3g}: {found.relevant_rows:,} of {found.rows:,} rows are relevant",
        f"  layout factor λ {lam:.3g}: these are in {relevant} in all",
        f"  metadata factor μ {mu:.3g}: {read}, with {found.rows_in_kept_objects:,} rows in all",
        f"  scanning factor ψ {psi:.3g} = σ / (λ μ)",
        f"  {_limit(found)}",
    ]


def _limit(found: Indicators) -> str:
    """Return what limits skipping, and what to do."""
    match found.limit:
        case "layout":
            return (
                "The layout, not the metadata, is the limit: the relevant rows are spread over "
                f"{found.relevant_objects:,} objects and would fit into {found.fewest_objects:,}; write the data "
                "sorted or clustered by the columns of the predicate."
            )
        case "metadata":
            vain = found.kept_objects - found.relevant_objects
            return (
                f"The metadata is the limit: {vain:,} of the {found.kept_objects:,} objects that are read hold no "
                "relevant row; add an index for what none serves, or a finer one (a value list in place of bounds, a "
                "smaller fpp, longer prefixes, more gaps or boxes), and refresh what is not indexed or has changed."
            )
    return "Neither a better layout nor better metadata would halve what is read."


def _tree(labelled: Labelled) -> Iterator[str]:
    """Draw the labelled tree, a line per vertex, cut when it is very long."""
    lines = list(_vertex(labelled.tree, labelled, 2))
    yield from lines[:_MOST_LINES]
    if len(lines) > _MOST_LINES:
        yield f"    … {len(lines) - _MOST_LINES:,} more lines"


def _vertex(node: Expression, labelled: Labelled, depth: int) -> Iterator[str]:
    """Draw one vertex and what is below it."""
    label = " and ".join(map(str, labelled.labels.get(node, ())))
    mark = f"   ⇐ {label}" if label else ""
    if isinstance(node, And | Or):
        yield f"{'  ' * depth}{type(node).__name__.upper()}{mark}"
        for term in node.terms:
            yield from _vertex(term, labelled, depth + 1)
    elif isinstance(node, Not):
        yield f"{'  ' * depth}NOT{mark}"
        yield from _vertex(node.child, labelled, depth + 1)
    else:
        yield f"{'  ' * depth}{node}{mark}"
