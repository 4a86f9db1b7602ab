"""The property suite's dimension "environment": the same steps give the same rows with and without skipping.

Between the making of a handle, indexing, reading, planning and running, settings of the session, of Hadoop and of the
JVM and the reader's options change at random.  The seeds are fixed, so that a failure repeats; ``--long`` takes a
hundred of each format.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import pytest

import skipstone
from skipstone import Dataset, FeatureIndex, MinMaxIndex, SkipstoneError, ValueListIndex
from tests.environment import data, draw
from tests.environment.avro import avro
from tests.environment.ways import WAYS, planned
from tests.soundness.campaign import INTERPRETED, SPARK_ERRORS
from tests.support import conf, skipping_off

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = pytest.mark.slow

# Of the first ten seeds those that tell most: one in which nothing changes, and such as made a difference or lost rows.
SEEDS = {
    "parquet": (0, 1, 2, 8),
    "orc": (0, 4, 7, 8),
    "avro": (0, 6, 8),
    "csv": (0, 2, 6),
    "json": (0, 1, 2),
    "xml": (0, 3, 4, 8),
    "text": (0, 2, 6),
}
LONG = range(16)
FEATURES = {"above": "upper(s) = 'İÇİ'", "below": "lower(s) = '\u0131c\u0131'", "spelled": "initcap(s) = 'İçi'"}


@dataclass
class Seen:
    """What the runs did, by format."""

    runs: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    differed: Counter[str] = field(default_factory=Counter)
    unchanged: Counter[str] = field(default_factory=Counter)
    unchanged_skipped: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)


class Journey:
    """One dataset on its way from a handle to rows."""

    def __init__(self, spark: SparkSession, folder: Path, format_: str, seed: int) -> None:
        self.spark, self.folder, self.format = spark, folder / f"{format_}-{seed}", format_
        self.random = Random(f"{format_} {seed}")
        self.changes = (0, 1, 1, 2, 1)[seed % 5]
        self.stages = draw.journey(self.random, format_, self.changes)
        self.way = self.random.choice(WAYS) if self.random.random() < 0.5 else planned
        self.lent = self.random.random() < 0.2
        self.lender = spark.newSession() if self.lent else spark
        data.write(spark, self.folder, format_, self.random)

    def _read(self, environment: draw.Environment) -> DataFrame:
        return data.read(self.spark, self.folder, self.format, draw.options(environment))

    def index(self) -> bool:
        """Make indexes with a handle from before; say whether that was not refused."""
        indexes = [kind(name) for kind in (MinMaxIndex, ValueListIndex) for name in data.columns(self.format)]
        with draw.within(self.spark, self.stages["handle"]):
            handle = Dataset(self._read(self.stages["index"]))
            with draw.within(self.spark, self.stages["index"]):
                try:
                    handle.create_indexes(*indexes, *([FeatureIndex(FEATURES)] if self.format != "text" else []))
                except SkipstoneError:
                    return False
        return True

    def values(self, stage: str) -> list[Row]:
        """Return what plain Spark reads in one of the environments."""
        features = [f"{f} AS {name}" for name, f in FEATURES.items()] if self.format != "text" else []
        with draw.within(self.spark, self.stages[stage]), skipping_off(self.spark):
            return self._read(self.stages[stage]).selectExpr(*data.shown(self.format), *features).collect()

    def predicates(self, rows: Sequence[Row]) -> list[str]:
        """Ask for values that some environment reads, rather for those of the first rows."""
        found = []
        for name in data.columns(self.format):
            present = list(dict.fromkeys(row[name] for row in rows if row[name] is not None))
            for value in present[:1] + self.random.sample(present, min(1, len(present))):
                op = self.random.choice(("=", "=", "<=", ">="))
                found.append(f"{name} {op} {data.literal(name, value)}")
        asked = self.random.choice(data.columns(self.format))
        return [*found, f"{asked} IS NULL", *(FEATURES.values() if self.format != "text" else ())]

    def steps(self, predicates: Iterable[str]) -> Counter[str]:
        """Read, plan and run."""
        where = self.stages
        with draw.within(self.spark, where["read"]):
            df = self._read(where["read"])
            if self.lent:
                df = self._through_a_view(where["index"], where["read"])
            answers = [
                df.where(p).selectExpr(f"{n} AS predicate", *data.shown(self.format)) for n, p in enumerate(predicates)
            ]
            query = answers[0]
            for answer in answers[1:]:
                query = query.unionAll(answer)
            with draw.within(self.spark, where["plan"]):
                run = self.way(query)
            with draw.within(self.spark, where["run"]):
                return Counter(map(repr, run()))

    def _through_a_view(self, lent: draw.Environment, read: draw.Environment) -> DataFrame:
        """Take the DataFrame of another session, whose settings stay as they were."""
        for dimension, value in lent.items():
            if dimension.where == "conf" and value is not None:
                self.lender.conf.set(dimension.name, value)
        view = f"lent_{self.folder.name.replace('-', '_')}"
        made = data.read(self.lender, self.folder, self.format, draw.options(read))
        made.createOrReplaceGlobalTempView(view)
        return self.spark.table(f"global_temp.{view}")

    def __str__(self) -> str:
        lent = ", through a view of another session" if self.lent else ""
        return f"{self.folder.name}, {self.way.__name__}{lent}\n    {draw.differences(self.stages)}"


def _run(journey: Journey, seen: Seen) -> str | None:
    """Compare one journey's rows; give a description of a difference."""
    spark, name = journey.spark, journey.format
    seen.runs[name] += 1
    if not journey.index():
        seen.refused[name] += 1
    try:
        there, here = journey.values("index"), journey.values("run")
        predicates = journey.predicates([*(row for row in here if row not in there), *here, *there])
        with skipping_off(spark):
            if journey.lent:
                journey.lender.conf.set("spark.skipstone.enabled", "false")
            expected = journey.steps(predicates)
    except SPARK_ERRORS:
        seen.failed[name] += 1
        return None
    finally:
        if journey.lent:
            journey.lender.conf.set("spark.skipstone.enabled", "true")
    seen.differed[name] += sorted(map(repr, there)) != sorted(map(repr, here))
    with skipstone.skipping_stats(spark) as stats:
        found = journey.steps(predicates)
    skipped = sum(entry.objects.skipped for entry in stats)
    seen.skipped[name] += skipped
    if not journey.changes:
        seen.unchanged[name] += 1
        seen.unchanged_skipped[name] += bool(skipped)
    problems = [entry.error for entry in stats if entry.error]
    if found != expected or problems:
        asked = "\n    ".join(f"{n}: {p}" for n, p in enumerate(predicates))
        lost, made_up = expected - found, found - expected
        return f"\n{journey}\n  asked\n    {asked}\n  lost {lost}\n  made up {made_up}\n  {problems}"
    return None


@pytest.fixture(scope="module")
def seen():
    return Seen()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("format_", data.FORMATS)
def test_same_rows_whatever_changes_on_the_way(spark, tmp_path, request, seen, format_):
    if format_ == "avro":
        avro(spark)
    seeds = LONG if request.config.getoption("--long") else SEEDS[format_]
    with conf(spark, INTERPRETED):
        failures = [_run(Journey(spark, tmp_path, format_, seed), seen) for seed in seeds]
    wrong = [failure for failure in failures if failure]
    assert not wrong, "".join(wrong[:5]) + f"\n\n{len(wrong)} of {len(seeds)} runs"
    assert seen.unchanged_skipped[format_] == seen.unchanged[format_] > 0, f"nothing is skipped: {seen}"
    assert seen.differed[format_], f"no change makes a difference to plain Spark: {seen}"
