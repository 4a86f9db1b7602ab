"""``Dataset.explain``: the labelled tree, the merged clause, what is kept and skipped, what was not used and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skipstone.engines.spark.client import Client
from skipstone.engines.spark.scan_stats import ScanStats
from skipstone.engines.spark.scan_text import scans_text
from skipstone.showing.notebook import card, code, share

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from skipstone.engines.spark.planning import SparkPlanner
    from skipstone.reporting.indicators import Indicators

__all__ = ["Explanation", "explain_scans", "indicator_lines"]


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
        counts = [scan.objects for scan in self.scans]
        total, skipped = sum(one.total for one in counts), sum(one.skipped for one in counts)
        drawn = [share(skipped, total)] if counts else []
        said = f"skips {skipped:,} of {total:,} objects" if counts else ""
        return card("Explanation", *drawn, code(self.text), about=said)


def explain_scans(planner: SparkPlanner, df: DataFrame, root: str) -> Explanation:
    """Plan a query without running it and explain what happened to its scans of one dataset."""
    entries = [ScanStats.of(entry) for entry in Client(df.sparkSession).plan_anew(df)]
    scans = tuple(e for e in entries if _concerns(e, root))
    if not scans:
        return Explanation(_no_scan(df, root), ())
    return Explanation(scans_text(scans, planner.explained), scans)


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
