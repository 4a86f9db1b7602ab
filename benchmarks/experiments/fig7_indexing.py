"""Indexing time and size against the number of columns: Hybrid on database logs, MinMax on weather."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.datasets import database_logs, weather
from benchmarks.datasets.database_accounts import Shape
from benchmarks.experiments import plots
from benchmarks.experiments.record import Finding, Record
from benchmarks.measures import Subject, interleave
from benchmarks.session import session
from skipstone import Dataset, HybridIndex, MinMaxIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from benchmarks.conditions import Conditions
    from benchmarks.datasets.writing import Generated
    from benchmarks.experiments.record import Scale
    from skipstone import Index

NAME = "fig7_indexing"
TITLE = "Indexing time and size against the number of columns"
FIGURE = "Figure 7"
PAPER = (
    "Indexing several columns with Hybrid in one call is significantly faster than indexing each separately, even "
    "though Parquet columns are read one by one. MinMax, read from Parquet footers, stays low and flat as columns are "
    "added."
)
HYBRID = (
    "db_name", "account_name", "user_agent", "http_status", "node", "region", "load_balancer", "cluster",
)  # fmt: skip
FOOTERS = (
    "http_status", "ts", "account_name", "request_bytes", "node", "http_method", "is_tls", "response_bytes",
)  # fmt: skip
WEATHER = ("lat", "lng", "ts", "station", "condition", "temp", "dew_point", "humidity")
COUNTS = (1, 2, 4, 8)
LABELS = ("Hybrid", "MinMax, from footers", "MinMax, weather")


def run(scale: Scale, conditions: Conditions) -> Record:
    """Build indexes on the first columns in one call, and on each column by itself."""
    logs = database_logs.generate(scale.database_logs)
    threshold = Shape(logs.objects).threshold
    grid = weather.generate(scale.weather)
    hybrid, footers, of_weather = LABELS
    rows = _measure(hybrid, logs, HYBRID, lambda c: HybridIndex(c, threshold=threshold), scale, conditions)
    rows += _measure(footers, logs, FOOTERS, MinMaxIndex, scale, conditions)
    rows += _measure(of_weather, grid, WEATHER, MinMaxIndex, scale, conditions)
    condition = (
        f"Database logs: {logs}. Weather: {grid}. {scale.builds} timed builds each, median; separate calls are summed. "
        f"Storage: {conditions.described}."
    )
    return Record(NAME, TITLE, FIGURE, condition, rows, _findings(rows))


def _measure(
    label: str,
    generated: Generated,
    columns: tuple[str, ...],
    index: Callable[[str], Index],
    scale: Scale,
    conditions: Conditions,
) -> list[dict[str, Any]]:
    """Time builds on the first 1, 2, 4 and 8 columns together, and on each alone."""
    with conditions.place(generated) as place, session(settings=place.settings) as spark:
        dataset = Dataset.for_path(spark, place.root)
        sizes: dict[str, int] = {}

        def build(*names: str) -> Callable[[], None]:
            def create() -> None:
                dataset.create_indexes(*map(index, names))
                sizes[" ".join(names)] = sum(row["bytes"] for row in dataset.describe().collect())

            return create

        subjects = {" ".join(columns[:n]): Subject(build(*columns[:n]), dataset.drop_indexes) for n in COUNTS}
        subjects |= {name: Subject(build(name), dataset.drop_indexes) for name in columns}
        build(columns[0])()
        taken = interleave(subjects, repeats=scale.builds, warmups=0)
    rows = []
    for n in COUNTS:
        together = taken[" ".join(columns[:n])]
        separate = [taken[name] for name in columns[:n]]
        rows.append(
            {
                "index": label,
                "columns": n,
                "names": columns[:n],
                "together": together.described(),
                "separate_seconds": sum(sample.median for sample in separate),
                "metadata_bytes": sizes[" ".join(columns[:n])],
            }
        )
    return rows


def _findings(rows: list[dict[str, Any]]) -> list[Finding]:
    """Hold the gain of one call, and the flatness of MinMax, against the paper's."""
    by_label = {label: [row for row in rows if row["index"] == label] for label in LABELS}
    slope = {label: own[-1]["together"]["median"] / own[0]["together"]["median"] for label, own in by_label.items()}
    most = by_label["Hybrid"][-1]
    findings = [
        Finding(
            f"Hybrid on {most['columns']} columns: separate calls / one call",
            most["separate_seconds"] / most["together"]["median"],
            "x",
            '"significantly faster" in one call',
            1.5,
            True,
        ),
        Finding("Hybrid: time of 8 columns / of 1", slope["Hybrid"], "x"),
        Finding("MinMax, from footers: time of 8 columns / of 1", slope["MinMax, from footers"], "x", '"flat"', 1.5),
        Finding(
            "MinMax, weather: time of 8 columns / of 1",
            slope["MinMax, weather"],
            "x",
            '"low and flat"',
            1.5,
            note="five of the eight columns hold floating-point numbers. Parquet footers leave NaN out of their "
            "statistics, so that these columns are read; the paper took footers at their word",
        ),
    ]
    findings += [
        Finding(f"{label}: metadata of 8 columns", own[-1]["metadata_bytes"] / 1e3, "KB")
        for label, own in by_label.items()
    ]
    return findings


def plot(record: Record) -> Figure:
    """Draw time and size by number of columns, both axes logarithmic."""
    figure, (left, right) = plots.panels(2, width=6, height=4.4)
    for number, label in enumerate(LABELS):
        rows = [row for row in record.rows if row["index"] == label]
        counts = [row["columns"] for row in rows]
        colour = plots.COLOURS[number]
        together = [row["together"]["median"] for row in rows]
        left.plot(counts, together, marker="o", color=colour, label=f"{label}: one call")
        separate = [row["separate_seconds"] for row in rows]
        left.plot(counts, separate, marker="s", color=colour, linestyle="--", label=f"{label}: a call each")
        right.plot(counts, [row["metadata_bytes"] / 1e3 for row in rows], marker="o", color=colour, label=label)
    for axis, title in ((left, "indexing time in seconds"), (right, "metadata in KB")):
        axis.set(xscale="log", yscale="log", xlabel="columns", ylabel=title)
        axis.set_xticks(COUNTS, [str(n) for n in COUNTS])
        axis.set_xticks((), minor=True)
        plots.legend_below(axis)
    return figure
