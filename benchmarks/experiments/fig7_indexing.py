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
COUNTS = (1, 2, 4, 8)


def run(scale: Scale, conditions: Conditions) -> Record:
    """Build indexes on the first columns in one call, and on each column by itself."""
    logs = database_logs.generate(scale.database_logs)
    threshold = Shape(logs.objects).threshold
    grid = weather.generate(scale.weather)
    rows = _measure("Hybrid", logs, HYBRID, lambda c: HybridIndex(c, threshold=threshold), scale, conditions)
    rows += _measure("MinMax", grid, None, MinMaxIndex, scale, conditions)
    condition = (
        f"Database logs: {logs}. Weather: {grid}. {scale.builds} timed builds each, median; separate calls are summed. "
        f"{conditions.described}."
    )
    return Record(NAME, TITLE, FIGURE, condition, rows, _findings(rows))


def _measure(
    label: str,
    generated: Generated,
    columns: tuple[str, ...] | None,
    index: Callable[[str], Index],
    scale: Scale,
    conditions: Conditions,
) -> list[dict[str, Any]]:
    """Time builds on the first 1, 2, 4 and 8 columns together, and on each alone."""
    with conditions.place(generated) as place, session(settings=place.settings) as spark:
        dataset = Dataset.for_path(spark, place.root)
        columns = columns or tuple(dataset.dataframe.columns[: max(COUNTS)])
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
    hybrid = [row for row in rows if row["index"] == "Hybrid"]
    minmax = [row for row in rows if row["index"] == "MinMax"]
    most = hybrid[-1]
    flat = minmax[-1]["together"]["median"] / minmax[0]["together"]["median"]
    return [
        Finding(
            f"Hybrid on {most['columns']} columns: separate calls / one call",
            most["separate_seconds"] / most["together"]["median"],
            "x",
            '"significantly faster" in one call',
            1.5,
            True,
        ),
        Finding(
            "Hybrid: time of 8 columns / of 1", most["together"]["median"] / hybrid[0]["together"]["median"], "x", ""
        ),
        Finding(
            "MinMax: time of 8 columns / of 1",
            flat,
            "x",
            '"low and flat"',
            1.5,
            note="six of the eight columns hold floating-point numbers, whose NaN Parquet footers leave out of their "
            "statistics: with such a column the data is read, as any other index reads it",
        ),
        Finding("Hybrid: metadata of 8 columns", most["metadata_bytes"] / 1e6, "MB", ""),
        Finding("MinMax: metadata of 8 columns", minmax[-1]["metadata_bytes"] / 1e6, "MB", ""),
    ]


def plot(record: Record) -> Figure:
    """Draw time and size by number of columns, both axes logarithmic."""
    figure, (left, right) = plots.panels(2)
    for number, label in enumerate(("Hybrid", "MinMax")):
        rows = [row for row in record.rows if row["index"] == label]
        counts = [row["columns"] for row in rows]
        colour = plots.COLOURS[number]
        together = [row["together"]["median"] for row in rows]
        left.plot(counts, together, marker="o", color=colour, label=f"{label}, one call")
        separate = [row["separate_seconds"] for row in rows]
        left.plot(counts, separate, marker="s", color=colour, linestyle="--", label=f"{label}, a call for each")
        right.plot(counts, [row["metadata_bytes"] / 1e3 for row in rows], marker="o", color=colour, label=label)
    for axis, title in ((left, "indexing time in seconds"), (right, "metadata in KB")):
        axis.set(xscale="log", yscale="log", xlabel="columns", ylabel=title)
        axis.set_xticks(COUNTS, [str(n) for n in COUNTS])
        axis.legend()
    return figure
