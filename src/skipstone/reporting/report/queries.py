"""The queries of a report: how each is planned, what its indexes contribute, and its indicators."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from skipstone.engines.spark.attach import planner_of
from skipstone.engines.spark.client import SPARK_ERRORS
from skipstone.engines.spark.remedies import remedies
from skipstone.errors import SkipstoneError, SoundnessError
from skipstone.reporting.contributions import Contribution, contributions
from skipstone.reporting.indicators import Indicators
from skipstone.reporting.report.verdict import verdict
from skipstone.reporting.report.workload import spark_says

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from skipstone.dataset import Dataset
    from skipstone.querying.plan import Plan
    from skipstone.reporting.report.workload import Statement
    from skipstone.reporting.stats import ScanStats

__all__ = ["COUNTS", "PlannedQuery", "measure_queries", "plan_query", "query_data"]

COUNTS = ("total", "kept", "skipped", "unindexed", "stale")


@dataclass(frozen=True)
class PlannedQuery:
    """A query, its scans of the dataset, and what the indexes that each used contribute to it."""

    statement: Statement
    df: DataFrame
    scans: tuple[ScanStats, ...]
    shares: list[tuple[Contribution, ...] | None]
    explained: str
    plans: tuple[Plan | None, ...] = ()

    @property
    def unmeasured(self) -> str:
        """Why it has no indicators when none are to be measured."""
        return "Not measured: nothing of the data was to be read." if self.scans else self.explained


def plan_query(dataset: Dataset, statement: Statement, df: DataFrame) -> PlannedQuery:
    """Plan a query as it would be planned to run, and then again with other indexes out of sight."""
    explanation = dataset.explain(df)
    scans = explanation.scans
    planner = planner_of(df.sparkSession)
    plans = tuple(planner.explained(scan.plan) for scan in scans)  # before others push them out
    shares = contributions(df, dataset.root, scans) if scans else []
    return PlannedQuery(statement, df, scans, shares, explanation.text, plans)


def measure_queries(dataset: Dataset, queries: Sequence[PlannedQuery]) -> list[Indicators | str]:
    """Measure the indicators of queries, all together where that is possible; where there are none, say why.

    Raises
    ------
    SoundnessError
        When an object with a relevant row was skipped.
    """
    scanning = [query.df for query in queries if query.scans]
    try:
        measured = iter(dataset.indicators(scanning) if scanning else ())
        return [next(measured) if query.scans else query.explained for query in queries]
    except SoundnessError:
        raise
    except (SkipstoneError, *SPARK_ERRORS):  # of one of them: the others are measured on their own
        return [_measured(dataset, query) if query.scans else query.explained for query in queries]


def _measured(dataset: Dataset, query: PlannedQuery) -> Indicators | str:
    """Measure one query, or return why it cannot be measured."""
    try:
        return dataset.indicators(query.df)
    except SoundnessError:
        raise
    except SkipstoneError as error:
        return f"Not measured: {error}"
    except SPARK_ERRORS as error:
        return f"Not measured: {spark_says(error)}"


def query_data(query: PlannedQuery, indicators: Indicators | str) -> dict[str, Any]:
    """Return what a report says of a query; ``indicators`` is a text where there are none."""
    statement, scans = query.statement, query.scans
    return {
        "number": statement.number,
        "title": statement.title or statement.first_line or f"Query {statement.number}",
        "sql": statement.text or None,
        "objects": {name: sum(getattr(scan.objects, name) for scan in scans) for name in COUNTS},
        "bytes_total": sum(scan.bytes_total for scan in scans),
        "bytes_skipped": sum(scan.bytes_skipped for scan in scans),
        "metadata_bytes_read": sum(scan.metadata_bytes_read for scan in scans),
        "planning_seconds": sum(scan.planning_seconds for scan in scans),
        "scans": [_scan(scan, share, plan) for scan, share, plan in zip(scans, query.shares, query.plans, strict=True)],
        "indicators": None if isinstance(indicators, str) else indicators.as_dict(),
        "verdict": indicators if isinstance(indicators, str) else verdict(indicators),
    }


def _scan(scan: ScanStats, share: tuple[Contribution, ...] | None, plan: Plan | None) -> dict[str, Any]:
    """Return what a report says of one scan."""
    return {
        "objects": asdict(scan.objects),
        "bytes_total": scan.bytes_total,
        "bytes_skipped": scan.bytes_skipped,
        "metadata_bytes_read": scan.metadata_bytes_read,
        "planning_seconds": scan.planning_seconds,
        "seconds": dict(scan.seconds),
        "condition": scan.condition,
        "clause": scan.clause,
        "used": list(scan.used),
        "not_used": list(scan.not_used),
        "remedies": [remedy.removeprefix("; ") for remedy in remedies(scan.not_used, plan)],
        "error": scan.error,
        "contributions": None if share is None else [asdict(one) for one in share],
    }
