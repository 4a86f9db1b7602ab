"""Random histories of Iceberg tables: see ``histories``.

Steps are what happens to tables: appends, to branches too; deletes by position, by equality, by vector or by rewriting;
updates, merges, overwrites, compaction, rollback, expiry; columns that are renamed, dropped, added anew, moved and
promoted; partitions that change; and what happens to indexes meanwhile.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from skipstone import Dataset
from tests.tables.histories import REFUSED, History, run_all, seeds
from tests.tables.iceberg import COPY_ON_WRITE, MERGE_ON_READ, delete_equal, new_table, procedure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class IcebergHistory(History):
    """An Iceberg table and its twin."""

    def __init__(self, spark: SparkSession, seed: int) -> None:
        chosen = random.Random(seed)
        mode = chosen.choice((MERGE_ON_READ, MERGE_ON_READ, COPY_ON_WRITE))
        properties = {
            "format-version": chosen.choice("223"),
            **mode,
            "write.format.default": chosen.choice(("parquet", "parquet", "parquet", "orc", "avro")),
            "write.metadata.metrics.default": chosen.choice(("none", "truncate(16)")),
        }
        self.partitioned = chosen.choice(("", "", "p", "bucket(2, p)", "truncate(20, p)"))
        columns = "a BIGINT, s STRING, p BIGINT"
        made = [new_table(spark, columns, partitioned=self.partitioned, properties=properties) for _ in range(2)]
        super().__init__(spark, (made[0], made[1]), chosen)
        self.log.append(f"seed {seed}: {properties} {self.partitioned}")
        self.branch = False
        self.deleted_by: str | None = None
        """What the column is called by now that equality deletes name."""
        self.rewritten = mode is COPY_ON_WRITE
        self.append(files=6, part="id DIV 9")
        self.index()

    def dataset(self) -> Dataset:
        return Dataset.for_table(self.spark, self.name)

    # --- steps

    def append(self, where: str = "", files: int = 3, part: str = "") -> None:
        first = self.random.randrange(40)
        rows = self.appended(first, files, part)
        options = {"distribution-mode": "none", "fanout-enabled": "true"}
        self.both(f"append from {first} {where}", lambda t: rows.writeTo(f"{t}{where}").options(**options).append())

    def equality_delete(self) -> None:
        spec = self.spark.sql(f"SELECT DISTINCT spec_id FROM {self.name}.files").count()
        if self.partitioned or spec > 1 or self.columns.get("a") != "BIGINT":
            return self.delete()
        values = [self.random.randrange(40) for _ in range(3)]
        self.rewritten = False
        self.deleted_by = "a"
        return self.both(f"delete where a equals {values}", lambda t: delete_equal(self.spark, t, "a", values))

    def overwrite(self) -> None:
        self.sql(f"INSERT OVERWRITE {{t}} SELECT * FROM {{t}} WHERE {self.predicate()}")
        self.append()

    def rewrite(self) -> None:
        options = "options => map('rewrite-all', 'true', 'max-file-group-size-bytes', '4000')"
        self.both("rewrite data files", lambda t: procedure(self.spark, t, "rewrite_data_files", options))

    def roll_back(self) -> None:
        history = "SELECT snapshot_id FROM {t}.history WHERE is_current_ancestor ORDER BY made_current_at"
        chosen = self.random.random()

        def step(table: str) -> None:
            ancestors = self.spark.sql(history.replace("{t}", table)).collect()
            snapshot = ancestors[int(chosen * len(ancestors))][0]
            procedure(self.spark, table, "rollback_to_snapshot", f"snapshot_id => {snapshot}")

        self.both(f"roll back {chosen}", step)

    def expire(self) -> None:
        options = "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 2"
        self.both("expire", lambda t: procedure(self.spark, t, "expire_snapshots", options))

    def write_branch(self) -> None:
        if not self.branch:
            self.branch = True
            self.sql("ALTER TABLE {t} CREATE BRANCH side")
        self.append(".branch_side")
        self.sql(f"DELETE FROM {{t}}.branch_side WHERE {self.predicate()}")

    def rename(self) -> None:
        old = self.unpartitioned()
        self.fresh += 1
        self.sql(f"ALTER TABLE {{t}} RENAME COLUMN {old} TO c{self.fresh}")
        self.columns[f"c{self.fresh}"] = self.columns.pop(old)
        if self.deleted_by == old:
            self.deleted_by = f"c{self.fresh}"
        if self.random.random() < 0.8:
            self.sql(f"ALTER TABLE {{t}} ADD COLUMN {old} {self.columns[f'c{self.fresh}']}")
            self.columns[old] = self.columns[f"c{self.fresh}"]
        self.append()

    def drop(self) -> None:
        gone = self.unpartitioned()
        if gone == self.deleted_by:
            return self.append()  # Iceberg itself cannot read the table once another column has that one's name
        self.sql(f"ALTER TABLE {{t}} DROP COLUMN {gone}")
        kind = self.columns.pop(gone)
        if self.random.random() < 0.6 or len(self.columns) < 2:
            self.sql(f"ALTER TABLE {{t}} ADD COLUMN {gone} {kind} FIRST")
            self.columns = {gone: kind, **self.columns}
            self.append()
        return None

    def add(self) -> None:
        self.fresh += 1
        self.columns[f"c{self.fresh}"] = self.random.choice(("INT", "BIGINT", "STRING"))
        self.sql(f"ALTER TABLE {{t}} ADD COLUMN c{self.fresh} {self.columns[f'c{self.fresh}']}")
        self.append()

    def promote(self) -> None:
        ints = [name for name, kind in self.columns.items() if kind == "INT"]
        if not ints:
            return self.add()
        self.sql(f"ALTER TABLE {{t}} ALTER COLUMN {ints[0]} TYPE BIGINT")
        self.columns[ints[0]] = "BIGINT"
        return self.append()

    def repartition(self) -> None:
        self.sql(f"ALTER TABLE {{t}} ADD PARTITION FIELD truncate({self.random.randrange(2, 30)}, p)")
        self.partitioned = "evolved"
        self.append()

    # --- reads

    def check(self) -> None:
        self.read()
        if self.random.random() < 0.4:
            return
        snapshots = self.spark.sql(f"SELECT snapshot_id FROM {self.name}.snapshots").collect()
        self.read_elsewhere(f"VERSION AS OF {self.random.choice(snapshots)[0]}")
        if self.branch and self.random.random() < 0.5:
            self.read_elsewhere("VERSION AS OF 'side'")

    def read_elsewhere(self, where: str) -> None:
        try:
            self.read(where)
        except REFUSED as error:
            # Iceberg reads a branch by the table's columns, and filters it by those of the branch's last snapshot.
            if "Cannot find field" not in str(error):
                raise

    # --- the end

    def told_of(self, table: str) -> object:
        told = []
        for row in self.spark.sql(f"SELECT operation, summary FROM {table}.snapshots ORDER BY committed_at").collect():
            counts = {k: v for k, v in row.summary.items() if k.startswith(("added", "deleted", "removed", "total"))}
            told.append((row.operation, sorted((k, v) for k, v in counts.items() if not k.endswith("size"))))
        return told, self.changes(table) if self.rewritten else None

    def changes(self, table: str) -> object:
        """Return the changes since the oldest snapshot, where there are no delete files."""
        try:
            rows = self.spark.sql(f"SELECT * FROM {table}.changes").drop("_commit_snapshot_id")
            return sorted(map(repr, rows.collect()))
        except REFUSED as error:
            return type(error).__name__

    def dropped(self) -> None:
        for table in self.tables:
            self.spark.sql(f"DROP TABLE {table} PURGE")


IcebergHistory.steps = {
    IcebergHistory.append: 2,
    IcebergHistory.delete: 3,
    IcebergHistory.equality_delete: 3,
    IcebergHistory.update: 1,
    IcebergHistory.merge: 9,
    IcebergHistory.merge_new: 1,
    IcebergHistory.overwrite: 2,
    IcebergHistory.rewrite: 1,
    IcebergHistory.roll_back: 3,
    IcebergHistory.expire: 1,
    IcebergHistory.write_branch: 2,
    IcebergHistory.rename: 3,
    IcebergHistory.drop: 2,
    IcebergHistory.add: 1,
    IcebergHistory.promote: 1,
    IcebergHistory.repartition: 1,
    IcebergHistory.refresh: 3,
}


@pytest.mark.timeout(14_400)
def test_histories(spark, request):
    run_all(spark, lambda seed: IcebergHistory(spark, seed), seeds(request.config), least=0.5)
