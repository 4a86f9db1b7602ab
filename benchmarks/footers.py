"""MinMax from Parquet footers, against reading the columns: many small objects, and fewer of three megabytes."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

from benchmarks import data
from benchmarks.measures import Row, Subject, interleave, ratio
from benchmarks.session import session
from skipstone import Dataset, MinMaxIndex
from skipstone.engines.spark import collecting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from benchmarks.data import Generated


def measure(*, small: bool) -> list[Row]:
    """Index the same columns both ways, in turn."""
    weather = data.weather(1_024 if small else 8_192)
    numbers = data.numbers(40 if small else 400)
    with session() as spark:
        return [
            _compare(spark, weather, ("ts", "station"), 5.0, small=small),
            _compare(spark, numbers, ("ts", "a", "b", "c"), 20.0, small=small),
        ]


def _compare(spark: SparkSession, generated: Generated, columns: tuple[str, ...], target: float, *, small: bool) -> Row:
    """Compare the two ways on one dataset."""
    dataset = Dataset.for_path(spark, generated.path)

    def index() -> None:
        dataset.create_indexes(*map(MinMaxIndex, columns))

    def index_by_reading() -> None:
        with patch.object(collecting, "collect_from_footers", return_value=None):
            index()

    taken = interleave(
        {
            "footers": Subject(index, dataset.drop_indexes),
            "reading": Subject(index_by_reading, dataset.drop_indexes),
        },
        repeats=2 if small else 5,
    )
    dataset.drop_indexes()
    return ratio(
        f"MinMax from footers, times faster than reading the columns, {generated.objects:,} objects",
        taken["reading"],
        taken["footers"],
        target,
        f"{generated}, MinMax on {', '.join(columns)}; the whole call: listing twice and committing included",
        at_least=True,
    )
