"""Random histories of Iceberg tables: after every step the same reads with skipping on and off, of any snapshot.

Steps are what happens to tables: appends, to branches too; deletes by position, by equality, by vector or by rewriting;
updates, merges, overwrites, compaction, rollback, expiry; columns that are renamed, dropped, added anew, moved and
promoted; partitions that change; and what happens to indexes meanwhile.  ``SKIPSTONE_HISTORY`` runs one seed.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from skipstone import BloomFilterIndex, Dataset, MinMaxIndex, SuffixIndex, ValueListIndex
from skipstone.errors import SkipstoneError
from tests.tables.iceberg import COPY_ON_WRITE, MERGE_ON_READ, delete_equal, new_table, procedure
from tests.tables.support import skipping_off, twins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORE = 12
LONG = 300
STEPS = 5
ROWS = 12
NUMBERS = ("INT", "BIGINT")


class History:
    """A table, what its columns are called by now, and what was skipped in it."""

    def __init__(self, spark: SparkSession, seed: int) -> None:
        self.spark, self.random = spark, random.Random(seed)
        self.columns = {"a": "BIGINT", "s": "STRING", "p": "BIGINT"}
        self.fresh = self.skipped = self.reads = 0
        self.log: list[str] = []
        self.branch = ""
        properties = {
            "format-version": self.random.choice("223"),
            **self.random.choice((MERGE_ON_READ, MERGE_ON_READ, COPY_ON_WRITE)),
            "write.format.default": self.random.choice(("parquet", "parquet", "parquet", "orc", "avro")),
            "write.metadata.metrics.default": self.random.choice(("none", "truncate(16)")),
        }
        self.version = properties["format-version"]
        self.partitioned = self.random.choice(("", "", "p", "bucket(2, p)", "truncate(20, p)"))
        self.name = new_table(
            spark, "a BIGINT, s STRING, p BIGINT", partitioned=self.partitioned, properties=properties
        )
        self.log.append(f"{self.name} {properties} {self.partitioned}")
        for _ in range(3):
            self.append()
        self.index()

    def sql(self, text: str) -> None:
        self.log.append(text)
        self.spark.sql(text)

    def value(self, kind: str) -> str:
        n = self.random.randrange(40)
        return f"'k{n:02d}'" if kind == "STRING" else str(n)

    # --- steps

    def append(self, where: str = "") -> None:
        first = self.random.randrange(40)
        self.log.append(f"append from {first} {where}")
        made = {
            name: f"concat('k', lpad(({first} + id) % 45, 2, '0'))"
            if kind == "STRING"
            else f"CAST(({first} + id) % 45 AS {kind})"
            for name, kind in self.columns.items()
        }
        if "p" in made:
            made["p"] = f"{self.random.randrange(3)}L"
        rows = self.spark.range(0, ROWS, 1, 2).selectExpr(*(f"{sql} AS {name}" for name, sql in made.items()))
        rows.writeTo(f"{self.name}{where}").option("distribution-mode", "none").option(
            "fanout-enabled", "true"
        ).append()

    def delete(self) -> None:
        self.sql(f"DELETE FROM {self.name} WHERE {self.predicate()}")

    def equality_delete(self) -> None:
        spec = self.spark.sql(f"SELECT DISTINCT spec_id FROM {self.name}.files").count()
        if self.partitioned or spec > 1 or self.columns.get("a") != "BIGINT":
            return self.delete()
        values = [self.random.randrange(40) for _ in range(3)]
        self.log.append(f"delete where a equals {values}")
        return delete_equal(self.spark, self.name, "a", values)

    def update(self) -> None:
        name, kind = self.random.choice([item for item in self.columns.items() if item[0] != "p"])
        self.sql(f"UPDATE {self.name} SET {name} = {self.value(kind)} WHERE {self.predicate()}")

    def merge(self) -> None:
        name, kind = self.random.choice([item for item in self.columns.items() if item[0] != "p"])
        found = f"SELECT DISTINCT {name} FROM {self.name} WHERE {self.predicate()}"
        self.sql(
            f"MERGE INTO {self.name} t USING ({found}) s ON t.{name} = s.{name} AND {self.predicate('t.')} "
            f"WHEN MATCHED AND t.p = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET t.{name} = {self.value(kind)}"
        )

    def overwrite(self) -> None:
        self.sql(f"INSERT OVERWRITE {self.name} SELECT * FROM {self.name} WHERE {self.predicate()}")
        self.append()

    def rewrite(self) -> None:
        self.log.append("rewrite data files")
        options = "options => map('rewrite-all', 'true', 'max-file-group-size-bytes', '4000')"
        procedure(self.spark, self.name, "rewrite_data_files", options)

    def roll_back(self) -> None:
        ancestors = self.spark.sql(f"SELECT snapshot_id FROM {self.name}.history WHERE is_current_ancestor").collect()
        chosen = self.random.choice(ancestors)[0]
        self.log.append(f"roll back to {chosen}")
        procedure(self.spark, self.name, "rollback_to_snapshot", f"snapshot_id => {chosen}")

    def expire(self) -> None:
        self.log.append("expire")
        procedure(
            self.spark,
            self.name,
            "expire_snapshots",
            "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 2",
        )

    def write_branch(self) -> None:
        if not self.branch:
            self.branch = "side"
            self.sql(f"ALTER TABLE {self.name} CREATE BRANCH side")
        self.append(".branch_side")
        self.sql(f"DELETE FROM {self.name}.branch_side WHERE {self.predicate()}")

    def rename(self) -> None:
        old = self.unpartitioned()
        self.fresh += 1
        self.sql(f"ALTER TABLE {self.name} RENAME COLUMN {old} TO c{self.fresh}")
        self.columns[f"c{self.fresh}"] = self.columns.pop(old)
        if self.random.random() < 0.8:
            self.sql(f"ALTER TABLE {self.name} ADD COLUMN {old} {self.columns[f'c{self.fresh}']}")
            self.columns[old] = self.columns[f"c{self.fresh}"]
        self.append()

    def drop(self) -> None:
        gone = self.unpartitioned()
        self.sql(f"ALTER TABLE {self.name} DROP COLUMN {gone}")
        kind = self.columns.pop(gone)
        if self.random.random() < 0.6 or len(self.columns) < 2:
            self.sql(f"ALTER TABLE {self.name} ADD COLUMN {gone} {kind} FIRST")
            self.columns[gone] = kind
            self.append()

    def add(self) -> None:
        self.fresh += 1
        self.columns[f"c{self.fresh}"] = self.random.choice(("INT", "BIGINT", "STRING"))
        self.sql(f"ALTER TABLE {self.name} ADD COLUMN c{self.fresh} {self.columns[f'c{self.fresh}']}")
        self.append()

    def promote(self) -> None:
        ints = [name for name, kind in self.columns.items() if kind == "INT"]
        if not ints:
            return self.add()
        self.sql(f"ALTER TABLE {self.name} ALTER COLUMN {ints[0]} TYPE BIGINT")
        self.columns[ints[0]] = "BIGINT"
        return self.append()

    def repartition(self) -> None:
        self.sql(f"ALTER TABLE {self.name} ADD PARTITION FIELD truncate({self.random.randrange(2, 30)}, p)")
        self.partitioned = "evolved"
        self.append()

    def refresh(self) -> None:
        self.log.append("refresh")
        dataset = Dataset.for_table(self.spark, self.name)
        try:
            dataset.refresh()
        except SkipstoneError as error:
            self.log.append(f"  {error}")
            if self.random.random() < 0.7:
                dataset.drop_indexes()
                self.index()

    def index(self) -> None:
        self.log.append("index")
        numbers = (MinMaxIndex, ValueListIndex, BloomFilterIndex)
        kinds = {"INT": numbers, "BIGINT": numbers, "STRING": (ValueListIndex, BloomFilterIndex)}
        indexes = [self.random.choice(kinds[kind])(name) for name, kind in self.columns.items()]
        indexes += [SuffixIndex(name, length=2) for name, kind in self.columns.items() if kind == "STRING"]
        Dataset.for_table(self.spark, self.name).create_indexes(*indexes)

    # --- reads

    def unpartitioned(self) -> str:
        return self.random.choice([name for name in self.columns if name != "p"])

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

    def check(self) -> None:
        for _ in range(2):
            self.read(f"SELECT * FROM {self.name} WHERE {self.predicate()}")
        snapshots = self.spark.sql(f"SELECT snapshot_id FROM {self.name}.snapshots").collect()
        self.read_elsewhere(f"VERSION AS OF {self.random.choice(snapshots)[0]}")
        if self.branch and self.random.random() < 0.5:
            self.read_elsewhere("VERSION AS OF 'side'")

    def read_elsewhere(self, where: str) -> None:
        now, self.columns = self.columns, self.schema(where)
        old = f"SELECT * FROM {self.name} {where} WHERE {self.predicate()}"
        self.columns = now
        try:
            with skipping_off(self.spark):
                self.spark.sql(old).collect()
        except (PySparkException, Py4JJavaError) as error:
            # Iceberg reads a branch by the table's columns, and filters it by those of the branch's last snapshot.
            if "Cannot find field" not in str(error):
                raise
            return
        self.read(old)

    def read(self, sql: str) -> None:
        self.log.append(f"  {sql}")
        found = twins(self.spark, sql)
        self.skipped += found.skipped
        self.reads += 1


STEPS_WITH_WEIGHTS = {
    History.append: 2,
    History.delete: 3,
    History.equality_delete: 3,
    History.update: 2,
    History.merge: 2,
    History.overwrite: 1,
    History.rewrite: 1,
    History.roll_back: 3,
    History.expire: 1,
    History.write_branch: 2,
    History.rename: 3,
    History.drop: 2,
    History.add: 1,
    History.promote: 1,
    History.repartition: 1,
    History.refresh: 5,
}


def run(spark: SparkSession, seed: int) -> History:
    history = History(spark, seed)
    try:
        for _ in range(STEPS):
            (step,) = history.random.choices(list(STEPS_WITH_WEIGHTS), list(STEPS_WITH_WEIGHTS.values()))
            try:
                step(history)
            except (PySparkException, Py4JJavaError) as error:
                history.log.append(f"  {step.__name__} was refused: {str(error)[:300]}")
                history.columns = history.schema()
            history.check()
    except BaseException as error:
        told = "\n".join(history.log)
        error.add_note(f"history {seed}:\n{told}")
        raise
    spark.sql(f"DROP TABLE {history.name} PURGE")
    return history


def _run_all(spark: SparkSession, seeds: range | list[int]) -> None:
    histories = [run(spark, seed) for seed in seeds]
    reads, skipped = sum(h.reads for h in histories), sum(h.skipped for h in histories)
    print(f"{len(histories)} histories, {reads} reads equal, {skipped} objects skipped")
    refused = [line for h in histories for line in h.log if "was refused" in line]
    assert len(refused) <= len(histories), refused
    assert 2 * skipped > reads  # of a table with a dozen files at most


def test_a_dozen(spark):
    one = os.environ.get("SKIPSTONE_HISTORY")
    _run_all(spark, [int(one)] if one else range(CORE))


@pytest.mark.long
@pytest.mark.timeout(14_400)
def test_hundreds(spark):
    first = int(os.environ.get("SKIPSTONE_FIRST_HISTORY", "1000"))
    _run_all(spark, range(first, first + int(os.environ.get("SKIPSTONE_HISTORIES", LONG))))
