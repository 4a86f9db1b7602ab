"""Indicators of random workloads on prefix, suffix and user-agent indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import skipstone
from benchmarks.datasets import database_logs, storage_logs
from benchmarks.experiments import plots, workloads
from benchmarks.experiments.progress import once
from benchmarks.experiments.record import Finding, Record
from benchmarks.session import session
from skipstone import Dataset, FormattedIndex, Index, PrefixIndex, SuffixIndex

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.conditions import Conditions
    from benchmarks.datasets.writing import Generated
    from benchmarks.experiments.record import Scale
    from skipstone.reporting.indicators import WorkloadIndicators

NAME = "fig11_indicators"
TITLE = "Indicators of prefix, suffix and user-agent workloads"
FIGURE = "Figure 11"
PAPER = (
    "Four workloads of 50 random queries each. All indexes have a metadata factor close to 1 and scanning factors "
    "between 1/1000 and 1/10, despite low layout factors; the user-agent workload is the most selective, has the "
    "lowest layout factor and the best scanning factor of all."
)
QUERIES = 50
FACTORS = ("selectivity", "layout_factor", "metadata_factor", "scanning_factor")
LEAST_METADATA_FACTOR = 0.9
MOST_SCANNED = 0.1


def run(scale: Scale, conditions: Conditions) -> Record:
    """Measure the four workloads."""
    databases = database_logs.generate(scale.database_logs)
    storage = storage_logs.generate(scale.storage_logs)
    workload = {
        "prefix(db_name, 15)": (
            PrefixIndex("db_name", length=15),
            workloads.patterns(databases, "db_name", QUERIES, 1),
        ),
        "suffix(db_name, 15)": (
            SuffixIndex("db_name", length=15),
            workloads.patterns(databases, "db_name", QUERIES, 2, suffix=True),
        ),
        "prefix(http_request, 20)": (
            PrefixIndex("http_request", length=20),
            workloads.patterns(databases, "http_request", QUERIES, 3),
        ),
    }
    rows = once("database logs", lambda: _measure(databases, workload, conditions))
    agents = {
        "formatted(user_agent)": (
            FormattedIndex("user_agent", extract="getAgentName"),
            workloads.agents(storage, QUERIES, 4),
        )
    }
    rows += once("storage logs", lambda: _measure(storage, agents, conditions))
    condition = (
        f"Database logs: {databases}. Storage logs: {storage}. {QUERIES} queries each. Storage: {conditions.described}."
    )
    return Record(NAME, TITLE, FIGURE, condition, rows, _findings(rows))


def _measure(
    generated: Generated, workload: dict[str, tuple[Index, list[workloads.Query]]], conditions: Conditions
) -> list[dict[str, Any]]:
    """Build the indexes in one call and plan every query."""
    rows = []
    with conditions.place(generated) as place, session(settings=place.settings) as spark:
        skipstone.agents.register(spark)
        df = spark.read.parquet(place.root)
        dataset = Dataset(df)
        dataset.create_indexes(*(index for index, _ in workload.values()))
        sizes = {row["name"]: row["bytes"] for row in dataset.describe().collect()}
        for label, (index, queries) in workload.items():
            hits = workloads.count_hits(generated, index.column, queries)
            found = workloads.workload_indicators(df, place.root, queries, hits)
            rows.append(_row(label, found, sizes[index.name]))
    return rows


def _row(label: str, found: WorkloadIndicators, size: int) -> dict[str, Any]:
    """Describe a workload: its means, and each query's factors."""
    return {
        "index": label,
        "metadata_bytes": size,
        "left_out": found.left_out,
        **{factor: getattr(found, factor) for factor in FACTORS},
        "queries": [{factor: getattr(query, factor) for factor in FACTORS} for query in found],
    }


def _findings(rows: list[dict[str, Any]]) -> list[Finding]:
    """Hold the means against what the paper says of them."""
    findings = []
    for row in rows:
        label = row["index"]
        findings += [
            Finding(f"{label}: selectivity", row["selectivity"], "", "not given in the text"),
            Finding(f"{label}: layout factor", row["layout_factor"], "", '"relatively low"'),
            Finding(
                f"{label}: metadata factor", row["metadata_factor"], "", '"close to 1"', LEAST_METADATA_FACTOR, True
            ),
            Finding(f"{label}: scanning factor", row["scanning_factor"], "", "between 0.001 and 0.1", MOST_SCANNED),
        ]
    return findings


def plot(record: Record) -> Figure:
    """Draw the geometric means, on a logarithmic axis as the paper does."""
    figure, (axis,) = plots.panels(width=8.5, height=4.2)
    labels = [factor.replace("_", " ") for factor in FACTORS]
    plots.bars(axis, labels, {row["index"]: [row[factor] for factor in FACTORS] for row in record.rows}, log=True)
    axis.set_ylabel("geometric mean of 50 queries")
    axis.legend()
    return figure
