"""The length of a prefix index against metadata factor, scanning factor and metadata size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.datasets import database_logs
from benchmarks.experiments import plots, workloads
from benchmarks.experiments.record import Finding, Record
from benchmarks.session import session
from skipstone import Dataset, PrefixIndex, ValueListIndex

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.conditions import Conditions
    from benchmarks.experiments.record import Scale

NAME = "fig12_prefix_length"
TITLE = "Prefix length against effectiveness and size"
FIGURE = "Figure 12"
PAPER = (
    "20 random prefix queries on db_name. The scanning factor falls as prefixes grow; its least possible value, about "
    "0.01, is reached at length 15, with metadata an order of magnitude smaller than a value list's."
)
QUERIES = 20
LENGTHS = (1, 2, 3, 5, 7, 10, 15, 20, 30)
LENGTH = 15
TENTH = 10


def run(scale: Scale, conditions: Conditions) -> Record:
    """Build all lengths and a value list in one scan, and plan the workload with each.

    A longer prefix rules out whatever a shorter one does, and the value list whatever any prefix does: dropping the
    most precise index after each turn leaves exactly the effect of the next.
    """
    generated = database_logs.generate(scale.database_logs)
    queries = workloads.patterns(generated, "db_name", QUERIES, 5)
    hits = workloads.count_hits(generated, "db_name", queries)
    indexes = [*(PrefixIndex("db_name", length=length) for length in LENGTHS), ValueListIndex("db_name")]
    rows: list[dict[str, Any]] = []
    with conditions.place(generated) as place, session(settings=place.settings) as spark:
        df = spark.read.parquet(place.root)
        dataset = Dataset(df)
        dataset.create_indexes(*indexes)
        sizes = {row["name"]: row["bytes"] for row in dataset.describe().collect()}
        for index in reversed(indexes):
            found = workloads.workload_indicators(df, place.root, queries, hits)
            rows.append(
                {
                    "length": index.length if isinstance(index, PrefixIndex) else None,
                    "metadata_bytes": sizes[index.name],
                    "selectivity": found.selectivity,
                    "layout_factor": found.layout_factor,
                    "metadata_factor": found.metadata_factor,
                    "scanning_factor": found.scanning_factor,
                    "left_out": found.left_out,
                }
            )
            dataset.drop_indexes(index.name)
    rows.reverse()
    condition = f"Database logs: {generated}. {QUERIES} queries. Storage: {conditions.described}."
    return Record(NAME, TITLE, FIGURE, condition, rows, _findings(rows))


def _findings(rows: list[dict[str, Any]]) -> list[Finding]:
    """Hold length 15 against the value list."""
    whole = rows[-1]
    fifteen = next(row for row in rows if row["length"] == LENGTH)
    return [
        Finding(
            "metadata of the value list / of prefix(15)",
            whole["metadata_bytes"] / fifteen["metadata_bytes"],
            "x",
            '"an order of magnitude" (163.2 MB / 17.0 MB = 9.6x)',
            TENTH,
            True,
        ),
        Finding(
            "scanning factor of prefix(15) / of the value list",
            fifteen["scanning_factor"] / whole["scanning_factor"],
            "x",
            "1 (the least possible is reached)",
            1.1,
        ),
        Finding("metadata factor of prefix(15)", fifteen["metadata_factor"], "", '"close to 1"', 0.9, True),
        Finding("scanning factor of prefix(15)", fifteen["scanning_factor"], "", "about 0.01"),
        Finding("selectivity of the workload", fifteen["selectivity"], "", "not given in the text"),
        Finding("layout factor of the workload", fifteen["layout_factor"], "", "not given in the text"),
    ]


def plot(record: Record) -> Figure:
    """Draw the factors and the sizes by length, with the value list as a line."""
    figure, (left, right) = plots.panels(2)
    prefixes = [row for row in record.rows if row["length"] is not None]
    whole = record.rows[-1]
    lengths = [row["length"] for row in prefixes]
    for number, factor in enumerate(("metadata_factor", "scanning_factor", "layout_factor", "selectivity")):
        values = [row[factor] for row in prefixes]
        left.plot(
            lengths, values, marker="o", markersize=4, label=factor.replace("_", " "), color=plots.COLOURS[number]
        )
    left.set(xlabel="length of the prefixes", ylabel="geometric mean of 20 queries", yscale="log")
    plots.legend_below(left)
    right.plot(
        lengths, [row["metadata_bytes"] / 1e3 for row in prefixes], marker="o", markersize=4, label="prefix index"
    )
    right.axhline(whole["metadata_bytes"] / 1e3, color=plots.GREY, linestyle="--", label="value list")
    right.set(xlabel="length of the prefixes", ylabel="metadata in KB", yscale="log")
    plots.legend_below(right)
    return figure
