"""What it takes to know minima and maxima: ``MinMaxIndex`` against the statistics of Delta and Iceberg themselves.

All take two columns of the same files from their footers, in one session: Skipstone by ``create_indexes``, Delta by
``CONVERT TO DELTA`` (of a folder of links) and Iceberg by ``add_files``, each told to keep statistics of these columns
alone.  Making the empty table is not timed.  Beside it the published shape of xskipper, by code of our own, since its
releases end with Spark 3: a Spark job for each object, ten at a time, on a sample of the objects, extrapolated to all.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from benchmarks import data
from benchmarks.measures import Row, Sample, Subject, interleave
from benchmarks.table_formats import answer, linked, measured_there, table_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = ("ts", "station")
JOBS_AT_A_TIME = 10
SAMPLED = 256


def measure(*, small: bool) -> list[Row]:
    """Measure in the environment of the table formats."""
    return measured_there("benchmarks.bounds", small=small)


def _measured(*, small: bool) -> list[Row]:
    """Let each of them take the statistics, in turn."""
    from skipstone import Dataset, MinMaxIndex

    generated = data.weather(1_024 if small else 8_192)
    with table_session(small=small) as (spark, folder):
        spark.conf.set("spark.databricks.delta.properties.defaults.dataSkippingStatsColumns", ",".join(COLUMNS))
        plain = Dataset.for_path(spark, generated.path)
        delta, iceberg = _Delta(spark, generated.path, folder), _Iceberg(spark, generated.path, folder)
        files = sorted(str(path) for path in Path(generated.path).glob("*.parquet"))[:SAMPLED]
        taken = interleave(
            {
                "Skipstone": Subject(lambda: plain.create_indexes(*map(MinMaxIndex, COLUMNS)), plain.drop_indexes),
                "Delta": Subject(delta.collect, delta.prepare),
                "Iceberg": Subject(iceberg.collect, iceberg.prepare),
                "a job an object": Subject(lambda: _one_by_one(spark, files)),
            },
            repeats=2 if small else 3,
        )
        held = {
            "Skipstone": sum(row["bytes"] for row in plain.describe().collect()),
            "Delta": _size(delta.log, ""),
            "Iceberg": _size(iceberg.metadata, ".avro"),
        }
    objects = generated.objects
    conditions = f"{generated}; {' and '.join(COLUMNS)}"
    return [
        *(_time(name, taken["Skipstone"], taken[name], conditions) for name in held),
        _time(
            f"xskipper's shape, on {len(files)} objects, extrapolated",
            taken["Skipstone"],
            taken["a job an object"],
            _shape(len(files), objects),
            objects / len(files),
        ),
        *(
            Row(f"{name}: bytes kept for an object", size / objects, "B", None, f"{objects:,} objects; {what}")
            for (name, size), what in zip(
                held.items(),
                (
                    "two MinMax indexes, which know what they describe beside",
                    "the log: path, size and time of each file beside the statistics",
                    "the manifests: path, size, and counts of all columns beside the bounds",
                ),
                strict=True,
            )
        ),
    ]


class _Delta:
    """A folder of links that is converted again and again."""

    def __init__(self, spark: SparkSession, plain: str, folder: str) -> None:
        self._spark, self._plain, self._folder, self._numbers = spark, plain, folder, count()
        self._path = ""

    @property
    def log(self) -> Path:
        return Path(self._path, "_delta_log")

    def prepare(self) -> None:
        shutil.rmtree(self._path, ignore_errors=True)
        self._path = f"{self._folder}/delta-{next(self._numbers)}"  # Delta remembers tables by their paths
        linked(self._plain, self._path)

    def collect(self) -> None:
        self._spark.sql(f"CONVERT TO DELTA parquet.`{self._path}`")


class _Iceberg:
    """A table that is made anew and takes the files."""

    def __init__(self, spark: SparkSession, plain: str, folder: str) -> None:
        self._spark, self._plain, self._folder = spark, plain, folder
        self._columns = spark.read.parquet(plain).schema.toDDL()

    @property
    def metadata(self) -> Path:
        return Path(self._folder, "ice/db/bounds/metadata")

    def prepare(self) -> None:
        self._spark.sql("DROP TABLE IF EXISTS ice.db.bounds")
        wanted = {"default": "none", **{f"column.{name}": "full" for name in COLUMNS}}
        properties = ", ".join(f"'write.metadata.metrics.{name}' = '{mode}'" for name, mode in wanted.items())
        self._spark.sql(f"CREATE TABLE ice.db.bounds ({self._columns}) USING iceberg TBLPROPERTIES ({properties})")

    def collect(self) -> None:
        files = f"table => 'db.bounds', source_table => '`parquet`.`{self._plain}`', parallelism => 4"
        self._spark.sql(f"CALL ice.system.add_files({files})")


def _one_by_one(spark: SparkSession, files: list[str]) -> None:
    """Learn the bounds of each object by a job of its own."""
    bounds = [bound(name) for name in COLUMNS for bound in (f.min, f.max)]
    with ThreadPoolExecutor(JOBS_AT_A_TIME) as pool:
        list(pool.map(lambda file: spark.read.parquet(file).agg(*bounds).collect(), files))


def _shape(sampled: int, objects: int) -> str:
    """Say what was run for xskipper's shape, and what was not."""
    return (
        f"not xskipper, whose releases end with Spark 3, but code of our own in its published shape: a job for each "
        f"object, {JOBS_AT_A_TIME} at a time; a sample of {sampled:,} of {objects:,} objects was run, and its time "
        f"taken {objects / sampled:g} times; nothing is written"
    )


def _time(name: str, ours: Sample, theirs: Sample, conditions: str, times: float = 1) -> Row:
    """Return how long one took for all objects, and against Skipstone."""
    if name == "Skipstone":
        return Row(
            "Skipstone: create_indexes",
            ours.median,
            "s",
            None,
            conditions,
            low=ours.low,
            high=ours.high,
            details=ours.described(),
        )
    rounds = [times * b / a for a, b in zip(ours.seconds, theirs.seconds, strict=True)]
    return Row(
        f"{name}: times as long as Skipstone",
        times * theirs.median / ours.median,
        "x",
        None,
        conditions,
        low=min(rounds),
        high=max(rounds),
        details=theirs.described(),
    )


def _size(folder: Path, suffix: str) -> int:
    """Add up the files."""
    return sum(file.stat().st_size for file in folder.rglob(f"*{suffix}") if file.is_file())


if __name__ == "__main__":
    answer(_measured)
