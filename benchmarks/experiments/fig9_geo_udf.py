"""Figure 9: a function on geometries over a growing window of time, with and without skipping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.datasets import weather
from benchmarks.experiments import weather_runs
from benchmarks.experiments.record import Record
from benchmarks.experiments.weather_runs import PAPER_MONTHS, compared, faster, is_at_scale, prepared, smaller

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.conditions import Conditions
    from benchmarks.experiments.record import Finding, Scale

NAME = "fig9_geo_udf"
TITLE = "Skipping for geospatial functions"
FIGURE = "Figure 9"
PAPER = (
    "`ST_Contains` with a polygon around the Research Triangle over windows of 1 to 12 months, with and without "
    "skipping by MinMax on both coordinates: x240 at five months, and the gap grows with the window; bytes likewise."
)
LABEL = "unskipped"
TARGETS = {"local": 120, "s3": 240}


def run(scale: Scale, conditions: Conditions) -> Record:
    """Time the query over each window."""
    with prepared(scale, conditions) as asked:
        contains = weather.research_triangle(asked.shape).contains
        rows = compared(asked, contains, contains, LABEL, repeats=scale.repeats)
    findings: list[Finding] = []
    for row in rows:
        paper = "x240" if row["months"] == PAPER_MONTHS else ""
        target = TARGETS[conditions.name] if is_at_scale(row) else None
        findings += [
            faster(row, LABEL, paper=paper, target=target),
            smaller(row, LABEL, paper="similar to time" if paper else ""),
        ]
    return Record(NAME, TITLE, FIGURE, asked.condition, rows, findings)


def plot(record: Record) -> Figure:
    """Draw time and bytes against the window."""
    return weather_runs.draw(record, LABEL)
