"""Random histories of twin tables: the same steps on a table that is skipped in, and on one where nothing is.

After every step the same reads of the first with skipping on and off, of any of its versions.  No scan may leave out a
file while a table is written, and in the end the twins must agree: in rows, in the counts that every commit reports,
and in their change feeds.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from skipstone import BloomFilterIndex, Dataset, MinMaxIndex, SuffixIndex, ValueListIndex, skipping_stats
from skipstone.errors import SkipstoneError
from tests.tables.support import conf, skipping_off, twins

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

__all__ = ["REFUSED", "History", "run_all", "seeds"]

CORE, LONG = 12, 300
ROWS = 18
REFUSED = (PySparkException, Py4JJavaError)
# Queries of a few rows cost less than compiling them does.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    # How Spark puts files together into tasks, of which each writes a file, hangs on their sizes to the byte, and
    # column mapping gives the twins' columns random names.
    "spark.sql.files.minPartitionNum": "1",
}
NUMBERS = (MinMaxIndex, ValueListIndex, BloomFilterIndex)
KINDS = {"INT": NUMBERS, "BIGINT": NUMBERS, "STRING": (ValueListIndex, BloomFilterIndex)}


class History:
    """A table and its twin, what their columns are called by now, and what was skipped in the first.

    Parameters
    ----------
    spark
        The session.
    tables
        The table and its twin, as SQL spells them.
    random
        What chooses.
    """

    steps: ClassVar[Mapping[Callable[[Any], object], int]]
    """The steps, each with how often it is chosen."""

    def __init__(self, spark: SparkSession, tables: tuple[str, str], random_: random.Random) -> None:
        self.spark, self.tables, self.random = spark, tables, random_
        self.columns = {"a": "BIGINT", "s": "STRING", "p": "BIGINT"}
        self.fresh = self.skipped = self.reads = self.writes = self.standing = 0
        self.log: list[str] = []

    @property
    def name(self) -> str:
        return self.tables[0]

    # --- what happens to both

    def both(self, told: str, step: Callable[[str], object]) -> None:
        """Take a step on the table, where no scan may leave out a file, and the same on the twin, without skipping."""
        self.log.append(told)
        refused: Exception | None = None
        with skipping_stats(self.spark) as stats:
            try:
                step(self.tables[0])
            except REFUSED as error:
                refused = error
        left = [scan for scan in stats if scan.objects.skipped]
        assert not left, f"files were left out while a table was written: {left}"
        self.writes += 1
        self.standing += sum("while one is written" in said for scan in stats for said in scan.not_used)
        with skipping_off(self.spark):
            if refused is None:
                step(self.tables[1])
            else:
                with pytest.raises(REFUSED):
                    step(self.tables[1])
                raise refused

    def sql(self, text: str) -> None:
        """Run a statement on both, with the table's name for ``{t}``."""
        self.both(text, lambda table: self.spark.sql(text.replace("{t}", table)))

    def appended(self, first: int, files: int, part: str = "") -> Any:
        """Return the rows of an append, and by default all of them of one partition."""
        made = {
            name: f"concat('k', lpad(({first} + id) % 45, 2, '0'))"
            if kind == "STRING"
            else f"CAST(({first} + id) % 45 AS {kind})"
            for name, kind in self.columns.items()
        }
        if "p" in made:
            made["p"] = part or f"{self.random.randrange(3)}L"
        return self.spark.range(0, ROWS, 1, files).selectExpr(*(f"{sql} AS {name}" for name, sql in made.items()))

    def append(self) -> None:
        raise NotImplementedError

    def delete(self) -> None:
        self.sql(f"DELETE FROM {{t}} WHERE {self.predicate()}")

    def update(self) -> None:
        name, kind = self.changed()
        self.sql(f"UPDATE {{t}} SET {name} = {self.value(kind)} WHERE {self.predicate()}")

    def merge(self) -> None:
        """Merge what a filter finds in the table itself: target and source are indexed."""
        name, kind = self.changed()
        found = f"SELECT DISTINCT {name} AS x FROM {{t}} WHERE {self.predicate()}"
        matched = self.random.choice(("DELETE", f"UPDATE SET t.{name} = {self.value(kind)}"))
        self.sql(
            f"MERGE INTO {{t}} t USING ({found}) u ON t.{name} = u.x AND {self.predicate('t.')} "
            f"WHEN MATCHED AND t.p = 1 THEN DELETE WHEN MATCHED THEN {matched}"
        )

    def merge_new(self) -> None:
        """Merge rows that may not be there yet."""
        name, kind = self.changed()
        key = "concat('k', lpad(id, 2, '0'))" if kind == "STRING" else f"CAST(id AS {kind})"
        values = ", ".join("x" if n == name else "NULL" if n != "p" else "1" for n in self.columns)
        start = self.random.randrange(45)
        self.sql(
            f"MERGE INTO {{t}} t USING (SELECT {key} AS x FROM range({start}, {start + 5})) u "
            f"ON t.{name} = u.x AND {self.predicate('t.')} WHEN MATCHED THEN DELETE "
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(self.columns)}) VALUES ({values})"
        )

    # --- what happens to the indexes meanwhile

    def dataset(self) -> Dataset:
        raise NotImplementedError

    def refresh(self) -> None:
        self.log.append("refresh")
        dataset = self.dataset()
        try:
            dataset.refresh()
        except SkipstoneError as error:
            self.log.append(f"  {error}")
            if self.random.random() < 0.7:
                dataset.drop_indexes()
                self.index()

    def index(self) -> None:
        self.log.append("index")
        indexes = [self.random.choice(KINDS[kind])(name) for name, kind in self.columns.items()]
        indexes += [SuffixIndex(name, length=2) for name, kind in self.columns.items() if kind == "STRING"]
        self.dataset().create_indexes(*indexes)

    # --- reads

    def value(self, kind: str) -> str:
        n = self.random.randrange(40)
        return f"'k{n:02d}'" if kind == "STRING" else str(n)

    def unpartitioned(self) -> str:
        return self.random.choice([name for name in self.columns if name != "p"])

    def changed(self) -> tuple[str, str]:
        name = self.unpartitioned()
        return name, self.columns[name]

    def predicate(self, prefix: str = "") -> str:
        name, kind = self.random.choice(list(self.columns.items()))
        column, value = f"{prefix}{name}", self.value(kind)
        forms = [
            f"{column} = {value}",
            f"{column} <=> {value}",
            f"{column} IN ({value}, {self.value(kind)})",
            f"{column} <= {value}",
            f"NOT {column} > {value}",
            f"{column} IS NULL",
        ]
        if kind == "STRING":
            forms += [f"{column} LIKE '%{value[2:-1]}'", f"endswith({column}, '{value[2:-1]}')"] * 2
        else:
            forms += [f"{column} BETWEEN {value} AND {value} + 2", f"{column} % 45 = {value} AND {column} = {value}"]
        chosen = self.random.choice(forms)
        if self.random.random() < 0.2:
            return f"({chosen} {self.random.choice(('AND', 'OR'))} {self.predicate(prefix)})"
        return chosen

    def schema(self, where: str = "") -> dict[str, str]:
        fields = self.spark.sql(f"SELECT * FROM {self.name} {where}").schema.fields
        return {field.name: field.dataType.simpleString().upper() for field in fields}

    def read(self, where: str = "") -> None:
        """Ask a random question of the table as it is now, or of another version by that one's columns.

        Both times by one DataFrame of the table: to list another version's files again costs more than to read them.
        """
        frame = self.spark.sql(f"SELECT * FROM {self.name} {where}")
        now = self.columns
        if where:
            self.columns = {field.name: field.dataType.simpleString().upper() for field in frame.schema.fields}
        predicate = self.predicate()
        self.columns = now
        self.log.append(f"  SELECT * FROM {self.name} {where} WHERE {predicate}")
        found = twins(self.spark, lambda: frame.where(predicate))
        self.skipped += found.skipped
        self.reads += 1

    def check(self) -> None:
        """Read the newest version and another one."""
        raise NotImplementedError

    # --- the end

    def told_of(self, table: str) -> object:
        """Return what the commits of a table tell of themselves: operations and counts, and the change feed."""
        raise NotImplementedError

    def dropped(self) -> None:
        """Remove the tables."""

    def compare(self) -> None:
        with skipping_off(self.spark):
            rows = [sorted(map(repr, self.spark.sql(f"SELECT * FROM {table}").collect())) for table in self.tables]
            told = [self.told_of(table) for table in self.tables]
        assert rows[0] == rows[1], "the twins have other rows"
        assert told[0] == told[1], f"the twins' commits tell other things:\n{told[0]}\n{told[1]}"

    def run(self) -> None:
        try:
            for _ in range(self.random.choice((1, 2, 2, 3, 4))):
                (step,) = self.random.choices(list(self.steps), list(self.steps.values()))
                try:
                    step(self)
                except REFUSED as error:
                    self.log.append(f"  {step.__name__} was refused: {str(error)[:300]}")
                    self.columns = self.schema()
                self.check()
            self.compare()
        except BaseException as error:
            told = "\n".join(self.log)
            error.add_note(f"the history:\n{told}")
            raise
        self.dropped()


def seeds(config: pytest.Config) -> Sequence[int]:
    """Return the seeds of a run: a dozen, or hundreds with ``--long``; ``SKIPSTONE_HISTORY`` names one."""
    if one := os.environ.get("SKIPSTONE_HISTORY"):
        return [int(one)]
    first = int(os.environ.get("SKIPSTONE_FIRST_HISTORY", "0"))
    count = int(os.environ.get("SKIPSTONE_HISTORIES", LONG if config.getoption("--long") else CORE))
    return range(first, first + count)


def run_all(spark: SparkSession, history: Callable[[int], History], chosen: Sequence[int], *, least: float) -> None:
    """Run histories; at least so many objects a read must have been skipped, and writes must have stood aside."""
    ran = []
    with conf(spark, INTERPRETED):
        for seed in chosen:
            one = history(seed)
            one.run()
            ran.append(one)
    reads, skipped, standing = (sum(getattr(h, what) for h in ran) for what in ("reads", "skipped", "standing"))
    print(
        f"{len(ran)} histories, {reads} reads equal, {skipped} objects skipped, {standing} scans of writes stood aside"
    )
    refused = [line for h in ran for line in h.log if "was refused" in line]
    assert len(refused) <= len(ran), refused
    if len(ran) >= CORE:
        assert skipped > least * reads
        assert standing > len(ran) / 5, "hardly a write read what is indexed"
