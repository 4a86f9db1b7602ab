"""What encrypted metadata costs in planning: the same queries over plain and over protected indexes, in turn.

Time is what the optimizer rule says it took.  *Warm*: everything is in the driver's memory.  *Cold*: a store that has
read nothing, so that manifest, footers, columns and the object table are fetched, and the key provider is asked.  The
provider is a file on the same machine: a real key service adds its own answering time to a cold query, once for each
key that a writer made.
"""

from __future__ import annotations

import base64
import itertools
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import skipstone
from benchmarks import data, synthetic
from benchmarks.measures import Row, Sample, Subject, interleave, ratio
from benchmarks.session import optimize, session
from skipstone import Dataset, MinMaxIndex
from skipstone.indexing.columns import resolve_indexes
from skipstone.stores.metadata_store import Change, IndexRecord, field_column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from benchmarks.data import Generated

KINDS = {"plain": (None, ""), "a key": ("k", ""), "a key and a footer key": ("k", "f")}
TARGET = 1.3


def measure(*, small: bool) -> list[Row]:
    """Measure each size in turn."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, session(driver_memory="8g") as spark:
        for objects in (2_000,) if small else (10_000, 100_000):
            rows += _measure(spark, data.many(objects), Path(folder), small=small)
    return rows


def _measure(spark: SparkSession, generated: Generated, folder: Path, *, small: bool) -> list[Row]:
    """Write the same metadata in every way, then plan the same queries over each."""
    keys = folder / "keys.json"
    keys.write_text(json.dumps({name: base64.b64encode(name.encode() * 32).decode() for name in "kf"}))
    counter = itertools.count()
    frames = {}
    for kind, (key, footer_key) in KINDS.items():
        user = spark.newSession()
        place = folder / f"{generated.objects} {kind}"
        place.mkdir()
        settings = {"location": f"file:{place}", "kms.class": "skipstone.kms:LocalFileKeys", "kms.file": str(keys)}
        for name, value in (settings | {"kms.footerKey": footer_key}).items():
            user.conf.set(f"spark.skipstone.{name}", value)
        frames[kind] = user.read.schema(data.MANY_SCHEMA).parquet(generated.path)
        _commit(Dataset(frames[kind]), generated.objects, key)
    found = {}
    for what, repeats in (("warm", 30 if small else 300), ("cold", 10 if small else 80)):
        planned: dict[str, list[float]] = {kind: [] for kind in KINDS}

        def run(kind: str, what: str = what, planned: dict[str, list[float]] = planned) -> None:
            frame = frames[kind]
            if what == "cold":  # other settings, another store
                frame.sparkSession.conf.set("spark.skipstone.kms.run", str(next(counter)))
            predicate = f"a = {5 * generated.objects} AND b < 2 AND ts > timestamp'2000-01-01' AND other <> "
            with skipstone.skipping_stats(frame.sparkSession) as stats:
                optimize(frame.where(f"{predicate}{next(counter)}"))
            (told,) = stats
            if told.objects.kept > generated.objects // 2:
                raise AssertionError(told.not_used)
            planned[kind].append(told.planning_seconds)

        subjects = {kind: Subject(lambda kind=kind: run(kind)) for kind in KINDS}
        interleave(subjects, repeats=repeats, warmups=15)
        found[what] = {kind: taken[15:] for kind, taken in planned.items()}
    return [
        ratio(
            f"planning with {kind} against plain, {what}, {generated.objects:,} objects",
            Sample(tuple(taken[kind])),
            Sample(tuple(taken["plain"])),
            TARGET,
            f"{generated.objects:,} objects, 3 MinMax columns, hollow files, made-up metadata; keys in a local file; "
            f"medians of {len(taken[kind])} queries in turn",
        )
        for what, taken in found.items()
        for kind in list(KINDS)[1:]
    ]


def _commit(dataset: Dataset, objects: int, key: str | None) -> None:
    """Commit made-up metadata of a dataset, protected by a key or not."""
    target = dataset._target()
    bound = resolve_indexes(target.spark, target.scan, [MinMaxIndex(c, key=key) for c in synthetic.COLUMNS])
    columns = synthetic.identity(dataset.root, objects)
    records = []
    for one in bound:
        values = synthetic.fields(one.index.column, objects)
        columns |= {field_column(one.id, name): array for name, array in values.items()}
        records.append(
            IndexRecord(
                id=one.id,
                name=one.index.name,
                type_name=one.index.type_name,
                options=dict(one.index.options()),
                columns=one.columns,
                profile=target.relation.profiles(one.columns, one.index.environment_groups(one.columns))[0],
                fields={name: str(array.type) for name, array in values.items()},
                key=key,
            )
        )
    target.store.commit(dataset.root, None, Change(tuple(records), pa.table(columns)))
