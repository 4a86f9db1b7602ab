"""One call that builds four kinds of index, against Spark's own ``max()`` of the same columns by file."""

from __future__ import annotations

from benchmarks import data
from benchmarks.measures import Row, Subject, interleave, ratio
from benchmarks.session import session
from skipstone import BloomFilterIndex, Dataset, HybridIndex, Index, MinMaxIndex, ValueListIndex

COLUMNS = ("ts", "db_name", "account", "host")


def four_indexes() -> tuple[Index, ...]:
    """Return one index of each kind; the Bloom filter has the long string, all of whose values are distinct."""
    return MinMaxIndex("ts"), ValueListIndex("db_name"), BloomFilterIndex("account"), HybridIndex("host")


def measure(*, small: bool) -> list[Row]:
    """Compare the two, five rounds each."""
    generated = data.logs(40 if small else 400)
    with session() as spark:
        df = spark.read.parquet(generated.path)
        dataset = Dataset(df)
        report = None

        def index() -> None:
            nonlocal report
            report = dataset.create_indexes(*four_indexes())

        def maximum() -> None:
            df.groupBy("_metadata.file_path").agg(dict.fromkeys(COLUMNS, "max")).collect()

        taken = interleave(
            {"index": Subject(index, dataset.drop_indexes), "max": Subject(maximum)}, repeats=2 if small else 5
        )
        dataset.drop_indexes()
    conditions = f"{generated}; 4 columns: timestamp, 64 values, 32 distinct characters a row, 4,000 values an object"
    details = {"metadata_bytes": report.metadata_bytes, "indexed": report.indexed, "rows": report.rows}
    return [
        ratio(
            "MinMax + ValueList + BloomFilter + Hybrid in one call / Spark's max() by file",
            taken["index"],
            taken["max"],
            2.0,
            conditions,
            details=details,
        )
    ]
