"""Very many small objects, for planning alone: ten rows each, real Parquet, so that every peer can take them in."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.datasets.writing import Generated, generate, parts

__all__ = ["predicate", "small_files"]

ROWS = 10
START = 1_704_067_200


def small_files(objects: int) -> Generated:
    """Return objects; the i-th holds ``a`` from 10 i to 10 i + 9, ``b`` at random, ``ts`` in a minute of its own."""
    return generate(f"small-{objects}", objects, ROWS * objects, parts("parquet"), partial(_write, objects))


def predicate(objects: int, number: int) -> str:
    """Return the n-th of many queries for which one object is enough."""
    wanted = (7_919 * number + 13) % objects
    return f"a = {ROWS * wanted + 3} AND b < 2 AND ts > timestamp'2000-01-01 00:00:00'"


def _write(objects: int, number: int, path: Path) -> None:
    rng = np.random.default_rng([21, objects, number])
    seconds = START + 60 * number + np.arange(ROWS)
    table = pa.table(
        {
            "a": pa.array(ROWS * number + np.arange(ROWS)),
            "b": pa.array(rng.random() + 0.001 * rng.random(ROWS)),
            "ts": pa.array(seconds * 1_000_000, pa.timestamp("us", tz="UTC")),
        }
    )
    pq.write_table(table, path, compression="snappy", version="2.6")
