"""What the two experiments on weather share: the query over a growing window of months, timed and its bytes counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import skipstone
from benchmarks import machine
from benchmarks.datasets import weather
from benchmarks.experiments.plots import panels
from benchmarks.experiments.progress import once
from benchmarks.experiments.record import Finding
from benchmarks.measures import Subject, interleave
from benchmarks.session import enable, session
from skipstone import Dataset, MinMaxIndex

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.conditions import Conditions, Place, Traffic
    from benchmarks.experiments.record import Record, Scale

PAPER_OBJECTS = 8_192
PAPER_MONTHS = 5
BUDGET = 120.0
"""Seconds of the slower query after which three rounds are enough: far away, without skipping, one takes minutes."""


@dataclass(frozen=True)
class Weather:
    """The dataset, listed and indexed: what the first query read of metadata, and how long it took."""

    spark: SparkSession
    place: Place
    everything: DataFrame
    shape: weather.Shape
    condition: str
    metadata_bytes: int = 0
    first_seconds: float = 0.0

    @property
    def windows(self) -> tuple[int, ...]:
        """Months of the windows: one, the paper's five, and all."""
        return tuple(sorted({1, PAPER_MONTHS, self.shape.months}))

    def run(self, predicate: str, months: int) -> None:
        """Run ``SELECT *`` to its end, keeping nothing."""
        self._query(predicate, months).write.format("noop").mode("overwrite").save()

    def count(self, predicate: str, months: int) -> int:
        return self._query(predicate, months).count()

    def traffic_of(self, run: Callable[[], Any]) -> Traffic:
        """Count what a run reads."""
        self.place.traffic()
        run()
        return self.place.traffic()

    def _query(self, predicate: str, months: int) -> DataFrame:
        return self.everything.where(f"{predicate} AND {weather.window(months)}")


@contextmanager
def prepared(scale: Scale, conditions: Conditions) -> Iterator[Weather]:
    """Index the dataset as the paper did, by MinMax on both coordinates, list it, and ask once."""
    generated, wanted = weather.generate(scale.weather), weather.shape(scale.weather)
    contains = weather.research_triangle(wanted).contains
    with conditions.place(generated) as place, session(settings=place.settings) as spark:
        skipstone.geo.register(spark)
        Dataset.for_path(spark, place.root).create_indexes(MinMaxIndex("lat"), MinMaxIndex("lng"))
        condition = (
            f"{generated}, {wanted.leaves:,} objects a month, 33 columns, indexed by minmax(lat) and minmax(lng); "
            f"{conditions.described}; SELECT * to its end; listing made once, excluded; metadata in the driver's "
            "memory, its bytes counted as if each query were the first"
        )
        asked = Weather(spark, place, spark.read.parquet(place.root), wanted, condition)
        yield _asked_once(asked, contains)


def _asked_once(asked: Weather, contains: str) -> Weather:
    """Ask for one month twice: the first time reads the metadata; and see that skipping changes no answer."""
    with skipstone.skipping_stats(asked.spark) as stats:
        started = time.perf_counter()
        cold = asked.traffic_of(lambda: asked.run(contains, 1))
        first_seconds = time.perf_counter() - started
        warm = asked.traffic_of(lambda: asked.run(contains, 1))
        found = asked.count(contains, 1)
    if not all(entry.objects.skipped for entry in stats):
        msg = f"nothing was skipped: {stats[-1].not_used}"
        raise AssertionError(msg)
    enable(asked.spark, False)
    expected = asked.count(contains, 1)
    if not 0 < found == expected:
        msg = f"{found} rows with skipping, {expected} without"
        raise AssertionError(msg)
    return replace(asked, metadata_bytes=max(0, cold.bytes - warm.bytes), first_seconds=first_seconds)


def compared(asked: Weather, by_user: str, other: str, label: str, *, repeats: int) -> list[dict[str, Any]]:
    """Time ``by_user`` with skipping against ``other`` without, over each window; gives a row for each."""
    on, off = (lambda: enable(asked.spark, True)), (lambda: enable(asked.spark, False))

    def one(months: int) -> dict[str, Any]:
        def with_skipping() -> None:
            asked.run(by_user, months)

        def without() -> None:
            asked.run(other, months)

        on()
        with skipstone.skipping_stats(asked.spark) as stats:
            read = {"skipping": asked.traffic_of(with_skipping)}
        off()
        read[label] = asked.traffic_of(without)
        taken = interleave(
            {"skipping": Subject(with_skipping, on), label: Subject(without, off)},
            repeats=repeats,
            warmups=0,
            budget=BUDGET,
        )
        return {
            "months": months,
            "objects": stats[-1].objects.total,
            "kept": stats[-1].objects.kept,
            "planning": stats[-1].seconds,
            "seconds": {name: sample.described() for name, sample in taken.items()},
            "rounds": {name: list(sample.seconds) for name, sample in taken.items()},
            "bytes": {"skipping": read["skipping"].bytes + asked.metadata_bytes, label: read[label].bytes},
            "requests": {name: traffic.requests for name, traffic in read.items()},
            "load": machine.load(),
        }

    return [once(f"{months} months", partial(one, months)) for months in asked.windows]


def faster(row: dict[str, Any], label: str, **beside: Any) -> Finding:
    """Return how many times as long the other query takes, with the spread of single rounds."""
    seconds, rounds = row["seconds"], row["rounds"]
    ratios = [slow / fast for slow, fast in zip(rounds[label], rounds["skipping"], strict=True)]
    what = f"{_window(row)}: time of the {label} query / with skipping"
    ratio = seconds[label]["median"] / seconds["skipping"]["median"]
    note = f"{seconds[label]['median']:.2f} s against {seconds['skipping']['median']:.2f} s"
    note += f", {len(ratios)} rounds"
    return Finding(what, ratio, "x", low=min(ratios), high=max(ratios), note=note, at_least=True, **beside)


def smaller(row: dict[str, Any], label: str, **beside: Any) -> Finding:
    """Return how many times the bytes the other query reads."""
    read = row["bytes"]
    what = f"{_window(row)}: bytes read by the {label} query / with skipping"
    note = f"{read[label] / 1e6:,.1f} MB against {read['skipping'] / 1e6:,.2f} MB"
    if row["requests"][label]:
        note += f"; {row['requests'][label]:,} requests against {row['requests']['skipping']:,}"
    return Finding(what, read[label] / read["skipping"], "x", note=note, at_least=True, **beside)


def _window(row: dict[str, Any]) -> str:
    months = "1 month" if row["months"] == 1 else f"{row['months']} months"
    return f"{months}, {row['kept']} of {row['objects']:,} objects kept"


def is_at_scale(row: dict[str, Any]) -> bool:
    """Whether a window has as many objects as the targets speak of."""
    return bool(row["objects"] >= PAPER_OBJECTS)


def draw(record: Record, label: str) -> Figure:
    """Draw time and bytes against the window, both by powers of ten."""
    figure, (times, sizes) = panels(2)
    months = [row["months"] for row in record.rows]
    for name in (label, "skipping"):
        spread = [row["seconds"][name] for row in record.rows]
        medians = [s["median"] for s in spread]
        errors = [[s["median"] - s["low"] for s in spread], [s["high"] - s["median"] for s in spread]]
        shown = "with skipping" if name == "skipping" else name
        times.errorbar(months, medians, yerr=errors, marker="o", capsize=3, label=shown)
        sizes.plot(months, [row["bytes"][name] / 1e6 for row in record.rows], marker="o", label=shown)
    for axis, quantity in ((times, "seconds (median, least, greatest)"), (sizes, "MB read")):
        axis.set_yscale("log")
        axis.set_xticks(months)
        axis.set_xlabel("months in the window")
        axis.set_ylabel(quantity)
    times.legend()
    return figure
