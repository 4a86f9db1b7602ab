"""The paper's table of indexing statistics: metadata as a share of the column, and indexing time, by index type.

Measured on objects of the paper's own height, of two kinds; every figure is their mean, weighted by how many of the
dataset's objects are of each kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import skipstone
from benchmarks.datasets import database_logs, weather
from benchmarks.datasets.database_accounts import GENERATED_SHARE, HEIGHT
from benchmarks.experiments import plots
from benchmarks.experiments.fig8_breakdown import column_bytes
from benchmarks.experiments.progress import once
from benchmarks.experiments.record import Finding, Record
from benchmarks.measures import Subject, interleave
from benchmarks.session import session
from skipstone import (
    BloomFilterIndex,
    Dataset,
    FormattedIndex,
    HybridIndex,
    MinMaxIndex,
    PrefixIndex,
    SuffixIndex,
    ValueListIndex,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from benchmarks.conditions import Conditions
    from benchmarks.datasets.writing import Generated
    from benchmarks.experiments.record import Scale
    from skipstone import Index

NAME = "table_indexing"
TITLE = "Indexing statistics: metadata as a share of the column"
FIGURE = "Appendix, indexing statistics"
PAPER = (
    "Metadata per index type for columns of 6.73 GB (db_name), 0.39 GB, 0.72 GB (user_agent), 0.56 GB and, on weather, "
    "12.16 GB: as shares of the column ValueList 2.4 %, BloomFilter 1.0 %, Hybrid 0.6 %, Prefix(15) 0.25 %, Suffix(15) "
    "0.53 %, Formatted 0.04 %, MinMax 0.02 % or less. Each takes 8.5 to 15 minutes, MinMax about one."
)
WEIGHTS = {"named": 1 - GENERATED_SHARE, "generated": GENERATED_SHARE}


@dataclass(frozen=True)
class Case:
    """A row of the paper's table: megabytes of metadata, gigabytes of the column, minutes."""

    index: Index
    column: str
    megabytes: float
    gigabytes: float
    minutes: float

    @property
    def share(self) -> float:
        """Metadata in percent of the column."""
        return self.megabytes / self.gigabytes / 10


CASES = (
    Case(ValueListIndex("db_name"), "db_name", 163.2, 6.73, 9.4),
    Case(BloomFilterIndex("db_name"), "db_name", 67.8, 6.73, 10.0),
    Case(HybridIndex("db_name"), "db_name", 40.4, 6.73, 9.7),
    Case(PrefixIndex("db_name", length=15), "db_name", 17.0, 6.73, 10.0),
    Case(SuffixIndex("db_name", length=15), "db_name", 35.5, 6.73, 10.0),
    Case(ValueListIndex("account_name"), "account_name", 34.2, 0.39, 8.5),
    Case(BloomFilterIndex("account_name"), "account_name", 38.9, 0.39, 9.4),
    Case(HybridIndex("account_name"), "account_name", 34.3, 0.39, 10.0),
    Case(FormattedIndex("user_agent", extract="getAgentName"), "user_agent", 0.27, 0.72, 15.0),
    Case(MinMaxIndex("http_status"), "http_status", 0.125, 0.56, 0.97),
)
WEATHER_BYTES = 0.38e6 / 8_192  # of the paper's MinMax metadata, for each object


def run(scale: Scale, conditions: Conditions) -> Record:
    """Build each index on objects of both kinds."""
    samples = {
        "named": database_logs.tall(scale.tall, "named"),
        "generated": database_logs.tall(max(1, scale.tall // 8), "generated"),
    }
    measured = {
        kind: once(kind, partial(_measure, generated, scale, conditions)) for kind, generated in samples.items()
    }
    rows = [_row(case, {kind: measured[kind][case.index.name] for kind in WEIGHTS}) for case in CASES]
    grid = weather.generate(scale.weather)
    rows.append(once("weather", lambda: _weather(grid, scale, conditions)))
    condition = (
        f"Objects of {HEIGHT:,} rows with the paper's distinct values: {samples['named'].objects} with "
        f"named accounts, {samples['generated'].objects} with generated ones, weighted "
        f"{100 * WEIGHTS['named']:.0f} to {100 * WEIGHTS['generated']:.0f}. Weather: {grid}. {scale.builds} timed "
        f"builds each. Storage: {conditions.described}."
    )
    return Record(NAME, TITLE, FIGURE, condition, rows, _findings(rows))


def _measure(generated: Generated, scale: Scale, conditions: Conditions) -> dict[str, dict[str, float]]:
    """Build every index alone; give seconds and bytes for an object."""
    sizes: dict[str, int] = {}
    with conditions.place(generated) as place, session(settings=place.settings) as spark:
        skipstone.agents.register(spark)
        dataset = Dataset.for_path(spark, place.root)

        def build(index: Index) -> None:
            dataset.create_indexes(index)
            sizes[index.name] = dataset.describe().first()["bytes"]

        subjects = {
            case.index.name: Subject(lambda index=case.index: build(index), dataset.drop_indexes) for case in CASES
        }
        build(CASES[0].index)
        taken = interleave(subjects, repeats=scale.builds, warmups=0)
    scanned = {column: column_bytes(generated, column) for column in {case.column for case in CASES}}
    return {
        case.index.name: {
            "seconds": taken[case.index.name].median / generated.objects,
            "metadata_bytes": sizes[case.index.name] / generated.objects,
            "column_bytes": scanned[case.column] / generated.objects,
        }
        for case in CASES
    }


def _row(case: Case, by_kind: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Weigh the two kinds of objects."""
    mean = {
        what: sum(weight * by_kind[kind][what] for kind, weight in WEIGHTS.items())
        for what in ("seconds", "metadata_bytes", "column_bytes")
    }
    return {
        "index": case.index.name,
        **{f"{what}_an_object": value for what, value in mean.items()},
        "share_percent": 100 * mean["metadata_bytes"] / mean["column_bytes"],
        "paper_share_percent": case.share,
        "paper_minutes": case.minutes,
        "paper_metadata_bytes_an_object": case.megabytes * 1e6 / 4_000,
        "paper_column_bytes_an_object": case.gigabytes * 1e9 / 4_000,
        "by_kind": by_kind,
    }


def _weather(generated: Generated, scale: Scale, conditions: Conditions) -> dict[str, Any]:
    """Build MinMax on one column of weather, whose objects are lower than the paper's: bytes an object compare."""
    with conditions.place(generated) as place, session(settings=place.settings) as spark:
        dataset = Dataset.for_path(spark, place.root)
        build = Subject(lambda: dataset.create_indexes(MinMaxIndex("lat")), dataset.drop_indexes)
        taken = interleave({"build": build}, repeats=scale.builds, warmups=0)["build"]
        size = dataset.describe().first()["bytes"]
    return {
        "index": "minmax(lat), weather",
        "seconds_an_object": taken.median / generated.objects,
        "metadata_bytes_an_object": size / generated.objects,
        "column_bytes_an_object": column_bytes(generated, "lat") / generated.objects,
        "paper_metadata_bytes_an_object": WEATHER_BYTES,
        "paper_minutes": 1.2,
    }


def _findings(rows: list[dict[str, Any]]) -> list[Finding]:
    """Hold each share against the paper's, and each time against the value list's."""
    findings = [
        Finding(
            f"{row['index']}: metadata / column",
            row["share_percent"],
            "%",
            f"{row['paper_share_percent']:.2g} %",
            row["paper_share_percent"],
            note=_bytes(row),
        )
        for row in rows
        if "share_percent" in row
    ]
    last = rows[-1]
    size, paper = last["metadata_bytes_an_object"], last["paper_metadata_bytes_an_object"]
    findings.append(Finding(f"{last['index']}: metadata of an object", size, "B", f"{paper:.0f} B", paper))
    first = rows[0]
    findings += [
        Finding(
            f"{row['index']}: indexing time / {first['index']}'s",
            row["seconds_an_object"] / first["seconds_an_object"],
            "x",
            f"{row['paper_minutes'] / first['paper_minutes']:.2g}x",
        )
        for row in rows[1:-1]
    ]
    return findings


def _bytes(row: dict[str, Any]) -> str:
    """Return what the share is made of: the paper's columns are not equally compressible."""
    ours, theirs = (
        f"{row[f'{paper}metadata_bytes_an_object'] / 1e3:,.3g} KB of metadata for "
        f"{row[f'{paper}column_bytes_an_object'] / 1e3:,.0f} KB of the column"
        for paper in ("", "paper_")
    )
    return f"{ours} in an object; the paper {theirs}"


def plot(record: Record) -> Figure:
    """Draw the shares beside the paper's."""
    figure, (axis,) = plots.panels(width=9, height=4.6)
    rows = [row for row in record.rows if "share_percent" in row]
    series = {
        "here": [row["share_percent"] for row in rows],
        "the paper": [row["paper_share_percent"] for row in rows],
    }
    names = [row["index"].replace(", extract='getAgentName'", "") for row in rows]
    plots.bars(axis, names, series, log=True)
    axis.set_ylabel("metadata in % of the column")
    axis.tick_params(axis="x", rotation=30)
    for label in axis.get_xticklabels():
        label.set_horizontalalignment("right")
    axis.legend()
    return figure
