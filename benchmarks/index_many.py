"""``create_indexes`` with two MinMax indexes over very many small objects."""

from __future__ import annotations

from benchmarks import data
from benchmarks.measures import Row, Subject, interleave
from benchmarks.session import session
from skipstone import Dataset, MinMaxIndex

PAIRS = {"ts and station, from footers": ("ts", "station"), "lat and lng, double": ("lat", "lng")}


def measure(*, small: bool) -> list[Row]:
    """Index columns whose footers suffice, and floating ones, whose footers do not tell of NaN."""
    generated = data.weather(1_024 if small else 8_192)
    with session() as spark:
        dataset = Dataset.for_path(spark, generated.path)
        taken = interleave(
            {
                name: Subject(lambda pair=pair: dataset.create_indexes(*map(MinMaxIndex, pair)), dataset.drop_indexes)
                for name, pair in PAIRS.items()
            },
            repeats=2 if small else 5,
        )
        dataset.drop_indexes()
    return [
        Row(
            f"create_indexes(MinMax x 2): {name}",
            sample.median,
            "s",
            5.0,
            f"{generated}, 33 columns; a warm session, listing before and after included",
            low=sample.low,
            high=sample.high,
            details=sample.described(),
        )
        for name, sample in taken.items()
    ]
