"""Metadata of very many objects, written without reading any: ``python -m benchmarks.synthetic FOLDER COUNT…``.

The objects are hollow files (``data.many``): Spark lists them as it lists any other.  Only their contents are made up:
object i holds ``a`` from 10 i to 10 i + 9, ``b`` around a random number, ``ts`` within one minute of its own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import contextmanager
from hashlib import md5
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks import data
from benchmarks.session import session
from skipstone import Dataset, MinMaxIndex
from skipstone.indexing.target import profile_of
from skipstone.stores.metadata_store import Change, IndexRecord, field_column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from benchmarks.data import Generated

COLUMNS = ("a", "b", "ts")


@contextmanager
def many_indexed(*counts: int) -> Iterator[tuple[str, list[Generated]]]:
    """Return hollow files and the folder with their metadata (three MinMax columns), written by another process."""
    generated = [data.many(count) for count in counts]
    with tempfile.TemporaryDirectory(prefix="skipstone-metadata-", dir=data.folder()) as folder:
        command = [sys.executable, "-m", "benchmarks.synthetic", folder, *map(str, counts)]
        subprocess.run(command, check=True, cwd=Path(__file__).parent.parent)
        yield folder, generated


def write_metadata(folder: str, counts: list[int]) -> None:
    """Write the metadata of hollow files."""
    with session(driver_memory="8g", metadata=folder) as spark:
        for count in counts:
            _write_metadata(spark, data.many(count))


def _write_metadata(spark: SparkSession, generated: Generated) -> None:
    """Commit made-up metadata of one dataset."""
    objects = generated.objects
    dataset = Dataset(spark.read.schema(data.MANY_SCHEMA).parquet(generated.path))
    target = dataset._target()
    bound = target.source.bind([MinMaxIndex(column) for column in COLUMNS])
    columns = identity(dataset.root, objects)
    records = []
    for one in bound:
        values = fields(one.index.column, objects)
        columns |= {field_column(one.id, name): array for name, array in values.items()}
        records.append(
            IndexRecord(
                id=one.id,
                name=one.index.name,
                type_name=one.index.type_name,
                options=dict(one.index.options()),
                columns=one.columns,
                profile=profile_of(target, one),
                fields={name: str(array.type) for name, array in values.items()},
            )
        )
    target.store.commit(dataset.root, None, Change(tuple(records), pa.table(columns)))


def identity(root: str, objects: int) -> dict[str, pa.Array]:
    """Return the columns that tell the objects apart, as the listing will show them."""
    paths = [f"{root}/part-{i:07d}.parquet" for i in range(objects)]
    digests = b"".join(md5(path.encode(), usedforsecurity=False).digest() for path in paths)
    return {
        "path": pa.array(paths),
        "digest": pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), objects, [None, pa.py_buffer(digests)]),
        "length": pa.array(np.full(objects, data.MANY_LENGTH)),
        "modified": pa.array(np.full(objects, data.WRITTEN * 1_000)),
        "etag": pa.array([""] * objects),
        "row_count": pa.array(np.full(objects, 1_000)),
        "trusted": pa.array(np.ones(objects, bool)),
    }


def fields(column: str, objects: int) -> dict[str, pa.Array]:
    """Make up what MinMax stores of a column."""
    numbers = np.arange(objects)
    none = pa.array(np.zeros(objects, np.int64))
    match column:
        case "a":
            return {"lower": pa.array(10 * numbers), "upper": pa.array(10 * numbers + 9), "null_count": none}
        case "b":
            centre = np.random.default_rng(5).random(objects)
            lower, upper = pa.array(centre - 0.001), pa.array(centre + 0.001)
            return {"lower": lower, "upper": upper, "null_count": none, "nan_count": none}
        case _:
            begin = (data.YEAR_2024 + 60 * numbers) * 1_000_000
            return {"lower": pa.array(begin), "upper": pa.array(begin + 59_999_999), "null_count": none}


if __name__ == "__main__":
    write_metadata(sys.argv[1], [int(count) for count in sys.argv[2:]])
