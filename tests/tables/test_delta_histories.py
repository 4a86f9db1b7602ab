"""Random histories of Delta tables: see ``histories``.

Steps are what happens to tables: appends, deletes with and without deletion vectors, updates, merges, overwrites,
compaction, RESTORE, VACUUM, columns that are renamed, dropped and added anew; and what happens to indexes meanwhile.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skipstone import Dataset
from tests.tables.histories import REFUSED, History, run_all, seeds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class DeltaHistory(History):
    """A Delta table and its twin."""

    def __init__(self, spark: SparkSession, folder: str, seed: int) -> None:
        self.paths = (f"{folder}/{seed}", f"{folder}/{seed}-twin")
        super().__init__(spark, (f"delta.`{self.paths[0]}`", f"delta.`{self.paths[1]}`"), random.Random(seed))
        self.path = dict(zip(self.tables, self.paths, strict=True))
        self.log.append(f"seed {seed}")
        self.mapped = self.random.choice(("none", "name", "name", "id"))
        self.vacuumed = False
        properties = {"delta.enableDeletionVectors": str(self.random.random() < 0.7).lower()}
        if self.mapped != "none":
            properties["delta.columnMapping.mode"] = self.mapped
        if self.random.random() < 0.3:
            properties["delta.enableRowTracking"] = "true"
        self.feed = self.mapped == "none" and self.random.random() < 0.8  # Delta refuses both together
        if self.feed:
            properties["delta.enableChangeDataFeed"] = "true"
        if self.random.random() < 0.7:
            properties["delta.dataSkippingNumIndexedCols"] = "0"  # what Delta prunes itself tells nothing of us
        partitioned = ("p",) if self.random.random() < 0.4 else ()
        rows = self.appended(self.random.randrange(40), 6, part="id DIV 9")
        made = rows.write.format("delta").options(**properties)
        writer = made.partitionBy(*partitioned) if partitioned else made
        self.both(f"create {properties} {partitioned}", lambda t: writer.save(self.path[t]))
        self.index()

    def dataset(self) -> Dataset:
        return Dataset.for_path(self.spark, self.paths[0], format="delta")

    # --- steps

    def append(self) -> None:
        first = self.random.randrange(40)
        rows = self.appended(first, 3)
        self.both(f"append from {first}", lambda t: rows.write.format("delta").mode("append").save(self.path[t]))

    def overwrite(self) -> None:
        if self.random.random() < 0.5:
            self.sql(f"INSERT OVERWRITE {{t}} SELECT * FROM {{t}} WHERE {self.predicate()}")
        else:
            self.sql(f"INSERT INTO {{t}} REPLACE WHERE p = 1 SELECT * FROM {{t}} WHERE p = 1 AND {self.predicate()}")

    def optimize(self) -> None:
        self.sql(f"OPTIMIZE {{t}} {self.random.choice(('', f'ZORDER BY ({self.unpartitioned()})'))}")

    def purge(self) -> None:
        self.sql("REORG TABLE {t} APPLY (PURGE)")

    def restore(self) -> None:
        version = self.random.randrange(self.newest() + 1)
        before = self.schema(f"VERSION AS OF {version}")
        self.sql(f"RESTORE TABLE {{t}} TO VERSION AS OF {version}")
        self.columns = before

    def vacuum(self) -> None:
        self.vacuumed = True
        self.sql("VACUUM {t} RETAIN 0 HOURS")

    def rename(self) -> None:
        """Rename a column, and add another of the old name: the old one's metadata must not speak for it."""
        if self.mapped == "none":
            return self.add()
        old = self.unpartitioned()
        self.fresh += 1
        self.sql(f"ALTER TABLE {{t}} RENAME COLUMN {old} TO c{self.fresh}")
        self.columns[f"c{self.fresh}"] = self.columns.pop(old)
        if self.random.random() < 0.8:
            self.sql(f"ALTER TABLE {{t}} ADD COLUMN {old} {self.columns[f'c{self.fresh}']}")
            self.columns[old] = self.columns[f"c{self.fresh}"]
        return self.append()

    def drop(self) -> None:
        if self.mapped == "none" or len(self.columns) < 4:
            return self.rename()
        gone = self.unpartitioned()
        self.sql(f"ALTER TABLE {{t}} DROP COLUMN {gone}")
        del self.columns[gone]
        return None

    def add(self) -> None:
        self.fresh += 1
        self.columns[f"c{self.fresh}"] = self.random.choice(("BIGINT", "STRING"))
        self.sql(f"ALTER TABLE {{t}} ADD COLUMN c{self.fresh} {self.columns[f'c{self.fresh}']}")
        self.append()

    # --- reads

    def dropped(self) -> None:
        """Let Delta forget the table: it keeps its snapshots, plans and all, for an hour."""
        self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()

    def log_of(self, path: str):
        return self.spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self.spark._jsparkSession, path)

    def newest(self) -> int:
        return int(self.log_of(self.paths[0]).unsafeVolatileSnapshot().version())

    def check(self) -> None:
        self.read()
        if self.random.random() < 0.5:
            self.read(f"VERSION AS OF {self.random.randrange(self.newest() + 1)}")

    def read(self, where: str = "") -> None:
        try:
            super().read(where)
        except REFUSED as error:
            if not (self.vacuumed and ("FILE_NOT_EXIST" in str(error) or "FileNotFound" in str(error))):
                raise

    # --- the end

    def told_of(self, table: str) -> object:
        path = self.path[table]
        told = []
        for commit in sorted(Path(path, "_delta_log").glob("*.json")):
            actions = map(json.loads, commit.read_text().splitlines())
            (info,) = (action["commitInfo"] for action in actions if "commitInfo" in action)
            counts = {k: v for k, v in info["operationMetrics"].items() if k.startswith("num") and "Bytes" not in k}
            told.append((info["operation"], sorted(counts.items())))
        return told, self.changes(path) if self.feed else None

    def changes(self, path: str) -> object:
        """Return the changes of the last commit; those of a vacuumed one, or of other columns, are refused."""
        last = self.newest()
        try:
            rows = self.spark.sql(f"SELECT * FROM table_changes_by_path('{path}', {max(0, last - 1)}, {last})")
            return sorted(map(repr, rows.drop("_commit_timestamp").collect()))
        except REFUSED as error:
            return type(error).__name__


DeltaHistory.steps = {
    DeltaHistory.append: 3,
    DeltaHistory.delete: 4,
    DeltaHistory.update: 1,
    DeltaHistory.merge: 4,
    DeltaHistory.merge_new: 1,
    DeltaHistory.overwrite: 2,
    DeltaHistory.optimize: 2,
    DeltaHistory.purge: 1,
    DeltaHistory.restore: 2,
    DeltaHistory.vacuum: 1,
    DeltaHistory.rename: 3,
    DeltaHistory.drop: 1,
    DeltaHistory.add: 1,
    DeltaHistory.refresh: 3,
}


@pytest.mark.timeout(14_400)
def test_histories(spark, tmp_path, request):
    run_all(spark, lambda seed: DeltaHistory(spark, str(tmp_path), seed), seeds(request.config), least=1)
