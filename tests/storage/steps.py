"""What the processes of the storage tests do, on any file system; data is what ``write`` makes.

Object n holds the ids from 10 n to 10 n + 9, and a name for each.
"""

from __future__ import annotations

import io
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from skipstone import Dataset, MinMaxIndex, ValueListIndex, skipping_stats
from tests.storage.workers import rendezvous, session
from tests.support import conf, skipping_off

if TYPE_CHECKING:
    from collections.abc import Sequence

LOCATION = "spark.skipstone.location"


@dataclass(frozen=True)
class Asked:
    """What a query gave: matching rows, objects in all, those skipped, those with metadata of an older state."""

    rows: int
    total: int
    skipped: int
    stale: int
    unindexed: int
    not_used: tuple[str, ...]


def write(root: str, names: Sequence[str], first: int = 0) -> None:
    """Write an object for each name, replacing what has the name; ``first`` is the number of the first."""
    system, path = _system(root)
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(names, first):
            local = Path(folder) / "object"
            local.write_bytes(content(number))
            system.copyFromLocalFile(False, True, path(f"file:{local}"), path(f"{root}/{name}"))


def content(number: int) -> bytes:
    """Make an object, as long as any other."""
    ids = list(range(10 * number, 10 * number + 10))
    table = pa.table({"id": pa.array(ids, pa.int64()), "name": [f"name-{i:06d}" for i in ids]})
    made = io.BytesIO()
    pq.write_table(table, made, compression="none", use_dictionary=False)
    return made.getvalue()


def delete(path: str) -> None:
    system, made = _system(path)
    assert system.delete(made(path), True)


def states(root: str) -> dict[str, tuple[int, int]]:
    """Return length and time of each object, by name."""
    system, path = _system(root)
    return {s.getPath().getName(): (s.getLen(), s.getModificationTime()) for s in system.listStatus(path(root))}


def create(root: str, location: str = "") -> tuple[int, int]:
    with conf(session(), {LOCATION: location}):
        report = Dataset.for_path(session(), root).create_indexes(MinMaxIndex("id"), ValueListIndex("name"))
        assert Dataset.for_path(session(), root).is_indexed
    return report.indexed, report.untrusted


def refresh(root: str, location: str = "", together: bool = False) -> tuple[int, int, int]:
    """Refresh, at the same instant as another process if asked; gives objects indexed, removed, and the version."""
    with conf(session(), {LOCATION: location}):
        dataset = Dataset.for_path(session(), root)
        if together:
            rendezvous()
        report = dataset.refresh()
    return report.indexed, report.removed, report.version


def drop(root: str, location: str = "") -> bool:
    """Drop all; says whether the dataset is still indexed."""
    with conf(session(), {LOCATION: location}):
        dataset = Dataset.for_path(session(), root)
        dataset.drop_indexes()
        return dataset.is_indexed


def described(root: str) -> dict[str, tuple[int, int]]:
    """Return the objects covered and stale of each index."""
    rows = Dataset.for_path(session(), root).describe().collect()
    return {row["name"]: (row["covered"], row["stale"]) for row in rows}


def find(root: str, number: int, skipping: bool = True) -> int:
    """Ask for one row of an object, with a schema given so that Spark opens no file to find one; counts the rows."""
    with conf(session(), {"spark.skipstone.enabled": str(skipping).lower()}):
        df = session().read.schema("id bigint, name string").parquet(root).where(f"id = {10 * number + 5}")
        return len(df.collect())


def ask(root: str, predicate: str, location: str = "") -> Asked:
    """Run a query with and without skipping and hold the rows against each other."""
    with conf(session(), {LOCATION: location}):
        df = session().read.parquet(root).where(predicate)
        with skipping_off(session()):
            expected = Counter(map(repr, df.select("*").collect()))
        with skipping_stats(session()) as stats:
            found = Counter(map(repr, df.select("*").collect()))
    assert found == expected, (predicate, found, expected)
    return _asked(found.total(), stats[-1])


def files_below(folder: str) -> list[str]:
    """Name all files below a folder, by their paths relative to it; none when it is not there."""
    system, path = _system(folder)
    if not system.exists(path(folder)):
        return []
    found, files = [], system.listFiles(path(folder), True)
    start = len(system.makeQualified(path(folder)).toString()) + 1
    while files.hasNext():
        found.append(files.next().getPath().toString()[start:])
    return sorted(found)


def make_folder(folder: str) -> None:
    system, path = _system(folder)
    assert system.mkdirs(path(folder))


def _asked(rows: int, entry: Any) -> Asked:
    objects = entry.objects
    return Asked(rows, objects.total, objects.skipped, objects.stale, objects.unindexed, tuple(entry.not_used))


def _system(place: str) -> tuple[Any, Any]:
    """Return a place's file system and what makes paths."""
    path = session()._jvm.org.apache.hadoop.fs.Path
    return path(place).getFileSystem(session()._jsparkSession.sessionState().newHadoopConf()), path
