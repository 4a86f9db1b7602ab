"""MinMax on four columns of CSV, against Spark's own ``max()`` of the same columns by file."""

from __future__ import annotations

from benchmarks import data
from benchmarks.measures import Row, Subject, interleave, ratio
from benchmarks.session import session
from skipstone import Dataset, MinMaxIndex

COLUMNS = ("id", "price", "name", "ts")


def measure(*, small: bool) -> list[Row]:
    """Compare the two, five rounds each."""
    generated = data.text(40 if small else 400)
    with session() as spark:
        df = spark.read.schema(data.TEXT_SCHEMA).csv(generated.path)
        dataset = Dataset(df)

        def index() -> None:
            dataset.create_indexes(*map(MinMaxIndex, COLUMNS))

        def maximum() -> None:
            df.groupBy("_metadata.file_path").agg(dict.fromkeys(COLUMNS, "max")).collect()

        taken = interleave(
            {"index": Subject(index, dataset.drop_indexes), "max": Subject(maximum)}, repeats=2 if small else 5
        )
        dataset.drop_indexes()
    conditions = f"CSV, {generated}; MinMax on 4 of 6 columns: long, double, string, timestamp"
    return [ratio("MinMax on 4 columns of CSV / Spark's max() by file", taken["index"], taken["max"], 1.3, conditions)]
