"""What ``skipstone doctor`` does in a session: skips an object of its own making, and looks at a file system."""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skipstone.cli.checks import Finding, broken, odd, well
from skipstone.errors import SkipstoneError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from skipstone.stores.parquet.filesystem import FileSystem

__all__ = ["check_dataset", "check_skipping"]

_PROBE: Final = "_skipstone_doctor_"
"""A name that Spark takes for hidden."""
_PROBES: Final = 5
_APART_SECONDS: Final = 0.03
_MOST_SKEW_SECONDS: Final = 3.0


def check_skipping(spark: SparkSession) -> Iterator[Finding]:
    """Index two small objects in a temporary folder, and see that a query skips one of them."""
    from skipstone import Dataset, MinMaxIndex, skipping_stats

    with tempfile.TemporaryDirectory(prefix="skipstone-doctor-") as folder:
        place = f"file://{Path(folder, 'data')}"
        try:
            spark.range(0, 20, 1, 2).write.parquet(place)
            Dataset.for_path(spark, place).create_indexes(MinMaxIndex("id"))
            with skipping_stats(spark) as stats:
                rows = spark.read.parquet(place).where("id = 3").count()
        except (SkipstoneError, OSError) as error:
            yield broken("session", f"a trial failed: {error}", "see what it says; then run skipstone doctor again")
            return
        scan = stats[-1] if stats else None
        if rows != 1 or scan is None or scan.objects.skipped != 1:
            why = "no scan was seen" if scan is None else (scan.error or "; ".join(scan.not_used) or str(scan.objects))
            yield broken("session", f"a trial query skipped nothing: {why}", "look at spark.skipstone.enabled")
            return
    said = f"Spark {spark.version}: a trial query read 1 of 2 objects, planned in {scan.planning_seconds * 1000:.0f} ms"
    yield well("session", said)


def check_dataset(spark: SparkSession, path: str) -> Iterator[Finding]:
    """Look at the file system of a dataset: whether metadata may be written there, and how finely it tells times."""
    from skipstone.engines.spark.hadoop import file_system_for
    from skipstone.settings import get_setting

    system = file_system_for(path, spark)
    folder = system.qualify(path)
    if not system.exists(folder):
        yield broken("dataset", f"there is no folder {folder}", "name the dataset's folder")
        return
    location = get_setting(spark, "location")
    place = file_system_for(location, spark).qualify(location) if location else folder
    where = file_system_for(place, spark)
    try:
        times = _times_of_probes(where, place)
    except OSError as error:
        todo = "let this user write there, or set spark.skipstone.location to a folder that it may write to"
        yield broken("write", f"metadata cannot be written to {place}: {error}", todo)
        return
    yield well("write", f"metadata can be written to {place}")
    if not where.atomic_commits(place):
        todo = "let one process at a time create or refresh the indexes of a dataset"
        yield odd("commits", "this file system has no atomic commit", todo)
    yield from _clock(times)


def _times_of_probes(system: FileSystem, folder: str) -> list[tuple[float, float]]:
    """Write and delete a few small files; gives when each was written, by this clock and by the file system's."""
    system.make_folder(folder)
    found = []
    for _ in range(_PROBES):
        name = f"{_PROBE}{uuid.uuid4().hex}"
        now = time.time()
        try:
            system.create_if_absent(f"{folder}/{name}", b"skipstone doctor\n")
            entry = next(e for e in system.list_folder(folder) if e.name == name)
        finally:
            system.delete(f"{folder}/{name}")
        found.append((now, entry.modified / 1000))
        time.sleep(_APART_SECONDS)
    return found


def _clock(times: list[tuple[float, float]]) -> Iterator[Finding]:
    """Judge the clock of a file system by files written just now."""
    seconds = all(modified == int(modified) for _, modified in times)
    skew = min((modified - now for now, modified in times), key=abs)
    if abs(skew) > _MOST_SKEW_SECONDS:
        which = "ahead of" if skew > 0 else "behind"
        yield odd(
            "clock",
            f"the file system's clock is {abs(skew):.1f} s {which} this machine's",
            "set the clocks: objects that seem to be written in the future are read until a later refresh",
        )
    elif seconds:
        yield well(
            "clock",
            "the file system tells whole seconds: objects younger than three seconds are not trusted until a refresh, "
            "unless they have e-tags",
        )
    else:
        yield well("clock", "the file system tells times finer than seconds")
