"""Four indexes in one call, against the dearest of them alone: one scan should serve all."""

from __future__ import annotations

from benchmarks import data
from benchmarks.index_once import four_indexes
from benchmarks.measures import Row, Subject, interleave, ratio
from benchmarks.session import session
from skipstone import Dataset


def measure(*, small: bool) -> list[Row]:
    """Build each index alone and all together, in turn."""
    generated = data.logs(40 if small else 400)
    with session() as spark:
        dataset = Dataset.for_path(spark, generated.path)
        indexes = four_indexes()
        subjects = {
            index.name: Subject(lambda index=index: dataset.create_indexes(index), dataset.drop_indexes)
            for index in indexes
        }
        together = Subject(lambda: dataset.create_indexes(*indexes), dataset.drop_indexes)
        taken = interleave({**subjects, "together": together}, repeats=1 if small else 3)
        dataset.drop_indexes()
    alone = {index.name: taken[index.name] for index in indexes}
    dearest = max(alone, key=lambda name: alone[name].median)
    return [
        ratio(
            f"four indexes in one call / the dearest alone ({dearest})",
            taken["together"],
            alone[dearest],
            1.3,
            f"{generated}; MinMax, ValueList, BloomFilter and Hybrid on 4 columns; MinMax alone reads footers",
            details={"alone": {name: sample.described() for name, sample in alone.items()}},
        )
    ]
