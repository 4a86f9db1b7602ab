"""Random histories of Delta tables: after every step the same reads with skipping on and off, of any version.

Steps are what happens to tables: appends, deletes with and without deletion vectors, updates, merges, overwrites,
compaction, RESTORE, VACUUM, columns that are renamed, dropped and added anew; and what happens to indexes meanwhile.
``SKIPSTONE_HISTORY`` runs one seed.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from skipstone import BloomFilterIndex, Dataset, MinMaxIndex, SuffixIndex, ValueListIndex
from skipstone.errors import SkipstoneError
from tests.tables.support import conf, twins

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORE = 12
LONG = 300
STEPS = 4
ROWS = 12
# Queries of a few rows cost less than compiling them does.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


class History:
    """A table, what its columns are called by now, and what was skipped in it."""

    def __init__(self, spark: SparkSession, path: str, seed: int) -> None:
        self.spark, self.path, self.random = spark, path, random.Random(seed)
        self.name = f"delta.`{path}`"
        self.columns = {"a": "BIGINT", "s": "STRING", "p": "BIGINT"}
        self.partitioned = self.random.random() < 0.4
        self.mapped = self.random.choice(("none", "name", "name", "id"))
        self.versions = 0
        self.fresh = 0
        self.skipped = self.reads = 0
        self.log: list[str] = []
        properties = {"delta.enableDeletionVectors": str(self.random.random() < 0.7).lower()}
        if self.mapped != "none":
            properties["delta.columnMapping.mode"] = self.mapped
        if self.random.random() < 0.3:
            properties["delta.enableRowTracking"] = "true"
        if self.random.random() < 0.7:
            properties["delta.dataSkippingNumIndexedCols"] = "0"  # what Delta prunes itself tells nothing of us
        said = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        where = "PARTITIONED BY (p)" if self.partitioned else ""
        self.sql(f"CREATE TABLE {self.name} (a BIGINT, s STRING, p BIGINT) USING delta {where} TBLPROPERTIES ({said})")
        for _ in range(2):
            self.append()
        self.index()

    def sql(self, text: str) -> None:
        self.log.append(text)
        self.spark.sql(text)

    def value(self, kind: str) -> str:
        n = self.random.randrange(40)
        return str(n) if kind == "BIGINT" else f"'k{n:02d}'"

    # --- steps

    def append(self) -> None:
        first = self.random.randrange(40)
        self.log.append(f"append from {first}")
        made = {
            name: f"(({first} + id) % 45)" if kind == "BIGINT" else f"concat('k', lpad(({first} + id) % 45, 2, '0'))"
            for name, kind in self.columns.items()
        }
        made["p"] = f"{self.random.randrange(3)}L"
        rows = self.spark.range(0, ROWS, 1, 4).selectExpr(*(f"{sql} AS {name}" for name, sql in made.items()))
        rows.write.format("delta").mode("append").save(self.path)

    def delete(self) -> None:
        self.sql(f"DELETE FROM {self.name} WHERE {self.predicate()}")

    def update(self) -> None:
        name, kind = self.random.choice([item for item in self.columns.items() if item[0] != "p"])
        self.sql(f"UPDATE {self.name} SET {name} = {self.value(kind)} WHERE {self.predicate()}")

    def merge(self) -> None:
        name, kind = self.random.choice([item for item in self.columns.items() if item[0] != "p"])
        key = "id" if kind == "BIGINT" else "concat('k', lpad(id, 2, '0'))"
        columns, values = zip(
            *((n, "x" if n == name else "NULL" if n != "p" else "1L") for n in self.columns), strict=True
        )
        start = self.random.randrange(45)
        matched = self.random.choice(("DELETE", f"UPDATE SET t.{name} = u.x"))
        self.sql(
            f"MERGE INTO {self.name} t USING (SELECT {key} AS x FROM range({start}, {start + 5})) u "
            f"ON t.{name} = u.x AND {self.predicate('t.')} WHEN MATCHED THEN {matched} "
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(columns)}) VALUES ({', '.join(values)})"
        )

    def overwrite(self) -> None:
        if self.random.random() < 0.5:
            self.sql(f"INSERT OVERWRITE {self.name} SELECT * FROM {self.name} WHERE {self.predicate()}")
        else:
            source = f"SELECT * FROM {self.name} WHERE p = 1 AND {self.predicate()}"
            self.sql(f"INSERT INTO {self.name} REPLACE WHERE p = 1 {source}")

    def optimize(self) -> None:
        self.sql(f"OPTIMIZE {self.name} {self.random.choice(('', f'ZORDER BY ({self.unpartitioned()})'))}")

    def purge(self) -> None:
        self.sql(f"REORG TABLE {self.name} APPLY (PURGE)")

    def restore(self) -> None:
        version = self.random.randrange(self.newest() + 1)
        before = self.schema(version)
        self.sql(f"RESTORE TABLE {self.name} TO VERSION AS OF {version}")
        self.columns = before

    def vacuum(self) -> None:
        self.sql(f"VACUUM {self.name} RETAIN 0 HOURS")

    def rename(self) -> None:
        """Rename a column, and add another of the old name: the old one's metadata must not speak for it."""
        if self.mapped == "none":
            return self.add()
        old = self.unpartitioned()
        self.fresh += 1
        self.sql(f"ALTER TABLE {self.name} RENAME COLUMN {old} TO c{self.fresh}")
        self.columns[f"c{self.fresh}"] = self.columns.pop(old)
        if self.random.random() < 0.8:
            self.sql(f"ALTER TABLE {self.name} ADD COLUMN {old} {self.columns[f'c{self.fresh}']}")
            self.columns[old] = self.columns[f"c{self.fresh}"]
        return self.append()

    def drop(self) -> None:
        if self.mapped == "none" or len(self.columns) < 4:
            return self.rename()
        gone = self.unpartitioned()
        self.sql(f"ALTER TABLE {self.name} DROP COLUMN {gone}")
        del self.columns[gone]
        return None

    def add(self) -> None:
        self.fresh += 1
        self.columns[f"c{self.fresh}"] = self.random.choice(("BIGINT", "STRING"))
        self.sql(f"ALTER TABLE {self.name} ADD COLUMN c{self.fresh} {self.columns[f'c{self.fresh}']}")
        self.append()

    def refresh(self) -> None:
        self.log.append("refresh")
        dataset = Dataset.for_path(self.spark, self.path, format="delta")
        try:
            dataset.refresh()
        except SkipstoneError as error:
            self.log.append(f"  {error}")
            if self.random.random() < 0.7:
                dataset.drop_indexes()
                self.index()

    def index(self) -> None:
        self.log.append("index")
        kinds = {
            "BIGINT": (MinMaxIndex, ValueListIndex, BloomFilterIndex),
            "STRING": (ValueListIndex, BloomFilterIndex),
        }
        indexes = [self.random.choice(kinds[kind])(name) for name, kind in self.columns.items() if name != "p"][:3]
        indexes += [SuffixIndex(name, length=2) for name, kind in self.columns.items() if kind == "STRING"]
        Dataset.for_path(self.spark, self.path, format="delta").create_indexes(*indexes)

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
        ]
        forms += [f"NOT {column} > {value}", f"{column} IS NULL"]
        if kind == "STRING":
            forms += [f"{column} LIKE '%{value[2:-1]}'", f"endswith({column}, '{value[2:-1]}')"] * 2
        else:
            forms += [f"{column} BETWEEN {value} AND {value} + 2", f"{column} % 45 = {value} AND {column} = {value}"]
        chosen = self.random.choice(forms)
        if self.random.random() < 0.2:
            return f"({chosen} {self.random.choice(('AND', 'OR'))} {self.predicate(prefix)})"
        return chosen

    def newest(self) -> int:
        log = self.spark._jvm.org.apache.spark.sql.delta.DeltaLog
        return int(log.forTable(self.spark._jsparkSession, self.path).unsafeVolatileSnapshot().version())

    def schema(self, version: int) -> dict[str, str]:
        fields = self.spark.sql(f"SELECT * FROM {self.name} VERSION AS OF {version}").schema.fields
        return {field.name: field.dataType.simpleString().upper() for field in fields}

    def check(self) -> None:
        self.read(f"SELECT * FROM {self.name} WHERE {self.predicate()}")
        version = self.random.randrange(self.newest() + 1)
        now, self.columns = self.columns, self.schema(version)
        old = f"SELECT * FROM {self.name} VERSION AS OF {version} WHERE {self.predicate()}"
        self.columns = now
        self.read(old)

    def read(self, sql: str) -> None:
        self.log.append(f"  {sql}")
        try:
            found = twins(self.spark, sql)
        except PySparkException as error:
            if "FILE_NOT_EXIST" in str(error) or "FileNotFound" in str(error):
                return  # vacuumed
            raise
        self.skipped += found.skipped
        self.reads += 1


STEPS_WITH_WEIGHTS = {
    History.append: 3,
    History.delete: 4,
    History.update: 2,
    History.merge: 2,
    History.overwrite: 1,
    History.optimize: 2,
    History.purge: 1,
    History.restore: 3,
    History.vacuum: 1,
    History.rename: 3,
    History.drop: 1,
    History.add: 1,
    History.refresh: 5,
}


def run(spark: SparkSession, path: str, seed: int) -> History:
    history = History(spark, path, seed)
    try:
        for _ in range(STEPS):
            (step,) = history.random.choices(list(STEPS_WITH_WEIGHTS), list(STEPS_WITH_WEIGHTS.values()))
            try:
                step(history)
            except PySparkException as error:
                history.log.append(f"  {step.__name__} was refused: {str(error)[:300]}")
                history.columns = history.schema(history.newest())
            history.check()
    except BaseException as error:
        told = "\n".join(history.log)
        error.add_note(f"history {seed}:\n{told}")
        raise
    return history


def _run_all(spark: SparkSession, tmp_path: str, seeds: range | list[int]) -> None:
    with conf(spark, INTERPRETED):
        histories = [run(spark, f"{tmp_path}/{seed}", seed) for seed in seeds]
    reads, skipped = sum(h.reads for h in histories), sum(h.skipped for h in histories)
    print(f"{len(histories)} histories, {reads} reads equal, {skipped} objects skipped")
    refused = [line for h in histories for line in h.log if "was refused" in line]
    assert len(refused) <= len(histories), refused
    assert skipped > reads  # more than an object a read


def test_a_dozen(spark, tmp_path):
    one = os.environ.get("SKIPSTONE_HISTORY")
    _run_all(spark, str(tmp_path), [int(one)] if one else range(CORE))


@pytest.mark.long
@pytest.mark.timeout(14_400)
def test_hundreds(spark, tmp_path):
    first = int(os.environ.get("SKIPSTONE_FIRST_HISTORY", "1000"))
    _run_all(spark, str(tmp_path), range(first, first + int(os.environ.get("SKIPSTONE_HISTORIES", LONG))))
