"""Figure 10: centralised metadata against the query rewritten by hand for the min/max statistics in Parquet footers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.datasets import weather
from benchmarks.experiments import weather_runs
from benchmarks.experiments.record import Record
from benchmarks.experiments.weather_runs import compared, faster, is_at_scale, prepared, smaller

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.conditions import Conditions
    from benchmarks.experiments.record import Finding, Scale

NAME = "fig10_centralised"
TITLE = "Centralised metadata against the rewritten query"
FIGURE = "Figure 10"
PAPER = (
    "The query of Figure 9 with skipping, against the same query with ranges of both coordinates added by hand, so "
    "that Spark can use the statistics in each object's footer: x3.6 in time and x1.6 in bytes at five years."
)
LABEL = "rewritten"
TARGETS = {"local": (None, None), "s3": (10, 2)}


def run(scale: Scale, conditions: Conditions) -> Record:
    """Time both over each window."""
    with prepared(scale, conditions) as asked:
        area = weather.research_triangle(asked.shape)
        by_hand = f"{area.contains} AND {area.box}"
        rows = compared(asked, area.contains, by_hand, LABEL, repeats=scale.repeats)
    findings: list[Finding] = []
    for row in rows:
        widest = row is rows[-1]
        in_time, in_bytes = TARGETS[conditions.name] if is_at_scale(row) else (None, None)
        findings += [
            faster(row, LABEL, paper="x3.6 at five years" if widest else "", target=in_time),
            smaller(row, LABEL, paper="x1.6 at five years" if widest else "", target=in_bytes),
        ]
    return Record(NAME, TITLE, FIGURE, asked.condition, rows, findings)


def plot(record: Record) -> Figure:
    """Draw time and bytes against the window."""
    return weather_runs.draw(record, LABEL)
