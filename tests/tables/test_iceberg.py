"""Iceberg tables: what is read is what would be read without skipping, and files are skipped."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from skipstone import BloomFilterIndex, Dataset, MinMaxIndex, SuffixIndex, ValueListIndex, skipping_stats
from tests.tables.iceberg import (
    COPY_ON_WRITE,
    MERGE_ON_READ,
    append,
    compared,
    delete_equal,
    java_table,
    left_alone,
    new_table,
    numbers,
    procedure,
    ranges,
    rows,
    setting,
    skipped,
    snapshots,
    without,
)
from tests.tables.support import streamed

ODD = F.udf(lambda x: x is not None and x % 2 == 1, BooleanType())


def indexed(spark, table, *indexes):
    dataset = Dataset.for_table(spark, table)
    dataset.create_indexes(*(indexes or (MinMaxIndex("id"), ValueListIndex("s"))))
    return dataset


class TestDeletes:
    """Deletes only take rows away; what was indexed are the rows that were written."""

    MODES = (("2", MERGE_ON_READ), ("3", MERGE_ON_READ), ("2", COPY_ON_WRITE), ("3", COPY_ON_WRITE))

    @pytest.mark.parametrize(("version", "mode"), MODES, ids=["positions", "vectors", "rewritten", "rewritten-v3"])
    def test_rows_deleted_before_and_after_indexing(self, spark, version, mode):
        table = new_table(spark, properties={"format-version": version, **mode})
        append(spark, table, numbers(0, 4))
        first = snapshots(spark, table)[-1]
        spark.sql(f"DELETE FROM {table} WHERE id IN (3, 13)")
        indexed(spark, table)
        for text in ("s3", "s14", "s13", "s33"):
            skipped(spark, f"SELECT * FROM {table} WHERE s = '{text}'")
        spark.sql(f"DELETE FROM {table} WHERE id = 14 OR id BETWEEN 30 AND 38")
        spark.sql(f"UPDATE {table} SET s = 'changed' WHERE id = 25")
        compared(spark, f"SELECT * FROM {table} WHERE s = 's14'")
        Dataset.for_table(spark, table).refresh()
        for text in ("s14", "s25", "s39"):
            skipped(spark, f"SELECT * FROM {table} WHERE s = '{text}'")
        compared(spark, f"SELECT * FROM {table} WHERE s = 'changed'")
        scans = compared(spark, f"SELECT * FROM {table} VERSION AS OF {first} WHERE s = 's3'")
        if mode is MERGE_ON_READ:  # else the first files were gone before they could be indexed
            assert sum(scan.objects.skipped for scan in scans) == 3, scans

    def test_an_index_has_the_deleted_rows_too(self, spark):
        """Live rows only would lose rows in another snapshot of the same files: time travel, a rollback, a branch."""
        table = new_table(spark, properties=MERGE_ON_READ)
        append(spark, table, numbers(0, 3))
        first = snapshots(spark, table)[-1]
        spark.sql(f"DELETE FROM {table} WHERE id IN (5, 15)")
        indexed(spark, table)
        old = f"SELECT * FROM {table} VERSION AS OF {first} WHERE id = 5"
        assert len(without(spark, old)) == 1
        skipped(spark, old, kept=1)
        skipped(spark, f"SELECT * FROM {table} VERSION AS OF {first} WHERE s = 's15'", kept=1)
        assert without(spark, f"SELECT * FROM {table} WHERE id = 5") == []
        skipped(spark, f"SELECT * FROM {table} WHERE id = 5")
        procedure(spark, table, "rollback_to_snapshot", f"snapshot_id => {first}")
        skipped(spark, f"SELECT * FROM {table} WHERE s = 's5'", kept=1)

    def test_equality_deletes(self, spark):
        table = new_table(spark)
        append(spark, table, numbers(0, 4))
        first = snapshots(spark, table)[-1]
        delete_equal(spark, table, "id", [5, 35])
        assert spark.table(table).count() == 38
        indexed(spark, table)
        for text in ("s5", "s6", "s35"):
            skipped(spark, f"SELECT * FROM {table} WHERE s = '{text}'", kept=1)
        delete_equal(spark, table, "s", ["s6", "s7"])
        assert without(spark, f"SELECT * FROM {table} WHERE id = 6") == []
        skipped(spark, f"SELECT * FROM {table} WHERE s = 's6' OR s = 's8'", kept=1)
        skipped(spark, f"SELECT * FROM {table} VERSION AS OF {first} WHERE s = 's5'", kept=1)
        # A row written after its deletion is there again.
        append(spark, table, ["SELECT 5L AS id, 's5' AS s"])
        Dataset.for_table(spark, table).refresh()
        skipped(spark, f"SELECT * FROM {table} WHERE s = 's5'", kept=2)

    def test_all_rows_of_a_file_deleted(self, spark):
        table = new_table(spark, properties={"format-version": "3", **MERGE_ON_READ})
        append(spark, table, numbers(0, 3))
        spark.sql(f"DELETE FROM {table} WHERE id % 10 < 9 OR id = 9")
        indexed(spark, table)
        skipped(spark, f"SELECT * FROM {table} WHERE id >= 12")
        skipped(spark, f"SELECT count(*) FROM {table} WHERE s = 's19'")


class TestSnapshots:
    def test_time_travel_branches_and_tags(self, spark):
        table = new_table(spark, properties=MERGE_ON_READ)
        append(spark, table, numbers(0, 3))
        dataset = indexed(spark, table)
        one = snapshots(spark, table)[-1]
        spark.sql(f"ALTER TABLE {table} CREATE TAG early")
        spark.sql(f"ALTER TABLE {table} CREATE BRANCH audit")
        append(spark, f"{table}.branch_audit", numbers(100, 1))
        spark.sql(f"DELETE FROM {table}.branch_audit WHERE id = 7")
        append(spark, table, numbers(30, 2))
        spark.sql(f"DELETE FROM {table} WHERE id = 8")
        for where in (f"VERSION AS OF {one}", "VERSION AS OF 'early'", "VERSION AS OF 'audit'", ""):
            for number in (7, 8, 12, 35, 104):
                skipped(spark, f"SELECT * FROM {table} {where} WHERE id = {number} AND s = 's{number}'")
        skipped(spark, f"SELECT * FROM {table}.branch_audit WHERE s = 's104'", kept=1)
        skipped(spark, f"SELECT * FROM {table}.tag_early WHERE s = 's7'", kept=1)
        dataset = Dataset.for_table(spark, table)
        dataset.refresh()
        skipped(spark, f"SELECT * FROM {table} WHERE s = 's35'", kept=1)
        with skipping_stats(spark) as stats:
            df = spark.read.option("versionAsOf", str(one)).table(table).where("s = 's7'")
            assert df.count() == 1
        assert stats[-1].objects.skipped == 2, stats[-1]
        spark.sql(f"ALTER TABLE {table} DROP BRANCH audit")
        skipped(spark, f"SELECT * FROM {table} WHERE s = 's7'", kept=1)

    def test_rollback_and_refresh_keep_what_one_can_travel_to(self, spark):
        table = new_table(spark, properties=MERGE_ON_READ)
        append(spark, table, numbers(0, 2))
        one = snapshots(spark, table)[-1]
        append(spark, table, numbers(20, 2))
        two = snapshots(spark, table)[-1]
        dataset = indexed(spark, table)
        procedure(spark, table, "rollback_to_snapshot", f"snapshot_id => {one}")
        dataset.refresh()
        skipped(spark, f"SELECT * FROM {table} WHERE s = 's12'", kept=1)
        skipped(spark, f"SELECT * FROM {table} VERSION AS OF {two} WHERE s = 's32'", kept=1)
        procedure(spark, table, "set_current_snapshot", f"snapshot_id => {two}")
        skipped(spark, f"SELECT * FROM {table} WHERE s = 's32'", kept=1)

    def test_maintenance(self, spark):
        # Statistics of ids, so that some files are rewritten and others are not.
        table = new_table(spark, properties={**MERGE_ON_READ, "write.metadata.metrics.column.id": "full"})
        append(spark, table, numbers(0, 6))
        spark.sql(f"DELETE FROM {table} WHERE id IN (1, 11)")
        dataset = indexed(spark, table)
        spark.sql(
            f"CALL ice.system.rewrite_data_files(table => '{table.partition('.')[2]}', where => 'id < 40', "
            "options => map('min-input-files', '2', 'rewrite-all', 'true'))"
        )
        compared(spark, f"SELECT * FROM {table} WHERE s = 's11'")
        skipped(spark, f"SELECT * FROM {table} WHERE s = 's45'")
        dataset.refresh()
        skipped(spark, f"SELECT * FROM {table} WHERE s = 's45'", kept=1)
        procedure(spark, table, "rewrite_manifests")
        procedure(spark, table, "rewrite_position_delete_files", "options => map('rewrite-all', 'true')")
        skipped(spark, f"SELECT * FROM {table} WHERE s = 's12'", kept=1)
        assert dataset.refresh().removed == 0  # an older snapshot names what was rewritten
        procedure(spark, table, "expire_snapshots", "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1")
        actions = spark._jvm.org.apache.iceberg.spark.actions.SparkActions.get(spark._jsparkSession)
        orphans = actions.deleteOrphanFiles(java_table(spark, table)).olderThan(32_503_680_000_000).execute()
        assert not [path for path in orphans.orphanFileLocations() if "_skipstone" in path]
        skipped(spark, f"SELECT * FROM {table} WHERE s = 's45'", kept=1)  # so the metadata is still there
        assert dataset.refresh().removed == 4
        skipped(spark, f"SELECT * FROM {table} WHERE s = 's45'", kept=1)
        assert dataset.refresh().removed == 0


class TestColumns:
    """A column is its field id, whatever it is called."""

    def test_renamed_and_another_of_the_old_name(self, spark):
        """With ids ignored this gave 0 rows instead of 40."""
        table = new_table(spark, "a BIGINT, b BIGINT")
        append(spark, table, ranges("id AS a, id AS b", 4))
        Dataset.for_table(spark, table).create_indexes(MinMaxIndex("a"), MinMaxIndex("b"))
        skipped(spark, f"SELECT * FROM {table} WHERE a = 5", kept=1)
        spark.sql(f"ALTER TABLE {table} RENAME COLUMN a TO old")
        spark.sql(f"ALTER TABLE {table} ADD COLUMN a BIGINT")
        query = f"SELECT * FROM {table} WHERE a IS NULL"
        assert len(without(spark, query)) == 40
        scans = left_alone(spark, query)
        assert any("a is declared with another" in said for scan in scans for said in scan.not_used), scans
        left_alone(spark, f"SELECT * FROM {table} WHERE a = 5")
        skipped(spark, f"SELECT * FROM {table} WHERE b = 5", kept=1)
        append(spark, table, ["SELECT 1000L AS old, 1000L AS b, 5L AS a"])
        assert len(without(spark, f"SELECT * FROM {table} WHERE a = 5")) == 1
        compared(spark, f"SELECT * FROM {table} WHERE a = 5")
        compared(spark, f"SELECT * FROM {table} WHERE old = 5")
        fresh = Dataset.for_table(spark, table)
        fresh.drop_indexes()
        fresh.create_indexes(MinMaxIndex("a"), MinMaxIndex("old"))
        skipped(spark, f"SELECT * FROM {table} WHERE a = 5", kept=1)
        skipped(spark, f"SELECT * FROM {table} WHERE old = 15", kept=1)

    def test_dropped_and_added_again(self, spark):
        table = new_table(spark)
        append(spark, table, numbers(0, 3))
        one = snapshots(spark, table)[-1]
        indexed(spark, table)
        spark.sql(f"ALTER TABLE {table} DROP COLUMN s")
        skipped(spark, f"SELECT * FROM {table} WHERE id = 5", kept=1)
        spark.sql(f"ALTER TABLE {table} ADD COLUMN s STRING")
        assert len(without(spark, f"SELECT * FROM {table} WHERE s IS NULL")) == 30
        left_alone(spark, f"SELECT * FROM {table} WHERE s IS NULL")
        left_alone(spark, f"SELECT * FROM {table} WHERE s = 's5'")
        append(spark, table, ["SELECT 77L AS id, 's5' AS s"])
        compared(spark, f"SELECT * FROM {table} WHERE s = 's5'")
        skipped(spark, f"SELECT * FROM {table} VERSION AS OF {one} WHERE s = 's5'", kept=1)  # there it is the old one

    def test_reordered_promoted_and_added(self, spark):
        table = new_table(spark, "i INT, f FLOAT, d DECIMAL(5, 2), s STRING")
        query = "CAST(id AS INT) AS i, CAST(id AS FLOAT) AS f, CAST(id AS DECIMAL(5, 2)) AS d, CAST(id AS STRING) AS s"
        append(spark, table, ranges(query, 4))
        Dataset.for_table(spark, table).create_indexes(*(MinMaxIndex(c) for c in ("i", "f", "d", "s")))
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN s FIRST")
        spark.sql(f"ALTER TABLE {table} ADD COLUMN more INT AFTER s")
        for where in ("i = 5", "f = 15", "d = 25", "s = '5'"):
            skipped(spark, f"SELECT * FROM {table} WHERE {where}")
        for column, wider in (("i", "BIGINT"), ("f", "DOUBLE"), ("d", "DECIMAL(9, 2)")):
            spark.sql(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {wider}")
        for where in ("i = 5", "f = 15", "d = 25"):
            scans = left_alone(spark, f"SELECT * FROM {table} WHERE {where}")
            assert any("when indexed" in said for scan in scans for said in scan.not_used), scans
        skipped(spark, f"SELECT * FROM {table} WHERE s = '5'")

    def test_nested(self, spark):
        table = new_table(spark, "id BIGINT, n STRUCT<a: INT, b: STRUCT<c: STRING>>")
        query = "id, named_struct('a', int(id), 'b', named_struct('c', concat('c', id))) AS n"
        append(spark, table, ranges(query, 4))
        Dataset.for_table(spark, table).create_indexes(MinMaxIndex("n.a"), ValueListIndex("n.b.c"), MinMaxIndex("id"))
        skipped(spark, f"SELECT * FROM {table} WHERE n.a = 5", kept=1)
        skipped(spark, f"SELECT id FROM {table} WHERE n.b.c = 'c15'", kept=1)  # of n, only that is read
        spark.sql(f"ALTER TABLE {table} RENAME COLUMN n.a TO z")
        spark.sql(f"ALTER TABLE {table} ADD COLUMN n.a INT")
        left_alone(spark, f"SELECT id FROM {table} WHERE n.a IS NULL")
        left_alone(spark, f"SELECT id FROM {table} WHERE n.a = 5")
        skipped(spark, f"SELECT * FROM {table} WHERE id = 5", kept=1)

    def test_files_without_ids_are_read_by_a_mapping_that_changes(self, spark, tmp_path):
        table = new_table(spark, "a BIGINT, b BIGINT")
        for n in range(3):
            spark.sql(f"SELECT id AS a, id AS b FROM range({n * 10}, {n * 10 + 10})").coalesce(1).write.mode(
                "append"
            ).parquet(str(tmp_path / "files"))
        procedure(spark, table, "add_files", f"source_table => '`parquet`.`{tmp_path / 'files'}`'")
        Dataset.for_table(spark, table).create_indexes(MinMaxIndex("a"), MinMaxIndex("b"))
        skipped(spark, f"SELECT * FROM {table} WHERE a = 5", kept=1)
        spark.sql(f"ALTER TABLE {table} RENAME COLUMN a TO old")
        spark.sql(f"ALTER TABLE {table} ADD COLUMN a BIGINT")
        for where in ("a = 5", "a IS NULL", "old = 5", "old IS NULL"):
            compared(spark, f"SELECT * FROM {table} WHERE {where}")
        skipped(spark, f"SELECT * FROM {table} WHERE b = 5", kept=1)


class TestPartitions:
    def test_evolution(self, spark):
        table = new_table(spark, "id BIGINT, s STRING, day DATE", partitioned="days(day)")
        query = "id, concat('s', id) AS s, date_add(DATE'2024-01-01', CAST(id / 10 AS INT)) AS day"
        append(spark, table, ranges(query, 4))
        spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(2, id)")
        append(spark, table, [f"SELECT {query} FROM range(40, 50)"])
        spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD days(day)")
        append(spark, table, [f"SELECT {query} FROM range(50, 60)"])
        indexed(spark, table, ValueListIndex("s"), MinMaxIndex("id"))
        for number in (5, 45, 55):
            skipped(spark, f"SELECT * FROM {table} WHERE s = 's{number}'", kept=1)
        (scan,) = skipped(spark, f"SELECT * FROM {table} WHERE s = 's45' AND day >= DATE'2024-01-05'", kept=1)
        assert scan.objects.total < 8, scan  # Iceberg left out the days before
        assert scan.pruned_by_format == 8 - scan.objects.total, scan

    def test_identity_partitions_of_added_files(self, spark, tmp_path):
        table = new_table(spark, "id BIGINT, p INT", partitioned="p")
        spark.sql("SELECT id, int(id / 10) AS p FROM range(40)").repartition(1, "p").write.partitionBy("p").parquet(
            str(tmp_path / "files")
        )
        procedure(spark, table, "add_files", f"source_table => '`parquet`.`{tmp_path / 'files'}`'")
        indexed(spark, table, MinMaxIndex("p"), MinMaxIndex("id"))
        skipped(spark, f"SELECT * FROM {table} WHERE id = 25", kept=1)
        compared(spark, f"SELECT * FROM {table} WHERE p = 2 OR id = 35")


class TestQueries:
    @pytest.fixture(scope="class")
    @staticmethod
    def table(spark):
        table = new_table(spark, "id BIGINT, s STRING, g INT")
        append(spark, table, ranges("id, concat('s', id) s, int(id % 3) g", 8))
        indexed(
            spark, table, MinMaxIndex("id"), ValueListIndex("s"), SuffixIndex("s", length=2), BloomFilterIndex("id")
        )
        return table

    def test_predicates_that_iceberg_does_not_serve(self, spark, table):
        for where in (
            "s LIKE '%s55'",
            "s = 's5' OR s = 's77'",
            "id + 0 = 5 AND id = 5",
            "upper(s) = 'S5' AND s = 's5'",
        ):
            skipped(spark, f"SELECT * FROM {table} WHERE {where}")
        assert left_alone(spark, f"SELECT * FROM {table} WHERE g = 1")[0].objects.total == 8

    def test_python_functions(self, spark, table):
        df = spark.table(table).where(ODD("id") & (F.col("id") > 72))
        with setting(spark, spark__skipstone__enabled="false"):
            expected = rows(spark.table(table).where(ODD("id") & (F.col("id") > 72)))
        with skipping_stats(spark) as stats:
            assert rows(df) == expected
        assert (stats[-1].objects.kept, stats[-1].objects.total) == (1, 8), stats[-1]
        assert stats[-1].rows_read == 10, stats[-1]
        with skipping_stats(spark) as stats:
            assert spark.table(table).where(ODD("id") & F.expr("s LIKE '%s7'")).count() == 1
        assert stats[-1].objects.skipped == 7, stats[-1]

    def test_icebergs_own_pruning_is_told_apart(self, spark):
        table = new_table(spark, properties={"write.metadata.metrics.default": "full"})
        append(spark, table, numbers(0, 4))
        indexed(spark, table, SuffixIndex("s", length=2))
        (scan,) = skipped(spark, f"SELECT * FROM {table} WHERE id < 20 AND s LIKE '%s7'")
        assert (scan.objects.total, scan.objects.kept, scan.pruned_by_format) == (2, 1, 2), scan
        told = str(Dataset.for_table(spark, table).explain("id < 20 AND s LIKE '%s7'"))
        assert "iceberg's own pruning left 2 of the snapshot's 4 objects" in told, told

    def test_two_scans_of_one_table_are_not_taken_for_one(self, spark, table):
        one, other = (f"SELECT g, count(*) c FROM {table} WHERE s LIKE '%{n}' GROUP BY g" for n in ("s5", "s75"))
        for query in (f"{one} UNION ALL {other}", f"SELECT * FROM ({one}) a FULL JOIN ({other}) b ON a.g = b.g"):
            scans = skipped(spark, query)
            assert sum(scan.objects.skipped for scan in scans) == 14, scans
        same = f"SELECT * FROM ({one}) a JOIN ({one}) b ON a.g = b.g"
        skipped(spark, same)
        df = spark.sql(f"SELECT * FROM ({one}) a JOIN ({one}) b ON a.g = b.g")
        df.collect()
        assert "ReusedExchange" in df._jdf.queryExecution().executedPlan().toString()

    def test_subqueries_and_ctes(self, spark, table):
        skipped(spark, f"SELECT * FROM {table} WHERE id = (SELECT max(id) FROM {table} WHERE s LIKE '%s33')")
        skipped(
            spark, f"WITH c AS (SELECT * FROM {table} WHERE s LIKE '%s41') SELECT * FROM c a JOIN c b ON a.id = b.id"
        )
        skipped(
            spark,
            f"SELECT * FROM {table} t WHERE EXISTS (SELECT 1 FROM {table} u WHERE u.s LIKE '%s41' AND u.id = t.id)",
        )

    def test_no_file_is_needed(self, spark, table):
        skipped(spark, f"SELECT * FROM {table} WHERE s = 'none'", kept=0)
        skipped(spark, f"SELECT count(*), max(id) FROM {table} WHERE s = 'none'", kept=0)
        skipped(spark, f"SELECT * FROM {table} WHERE s = 'none' UNION ALL SELECT * FROM {table} WHERE s LIKE '%s7'")

    def test_the_plan_says_it_and_its_size_is_known(self, spark, table):
        df = spark.table(table).where("s LIKE '%s55'")
        plan = df._jdf.queryExecution()
        assert "SkipstoneScan reads 1 of 8 objects" in plan.executedPlan().toString()
        all_rows = spark.table(table)._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()
        leaf = plan.optimizedPlan().collectLeaves().head().stats().sizeInBytes()
        assert float(str(leaf)) <= float(str(all_rows)) / 8 + 1

    def test_what_iceberg_answers_itself_is_left_to_it(self, spark, table):
        with setting(spark, spark__sql__iceberg__aggregate_push_down__enabled="true"):
            compared(spark, f"SELECT count(*), min(id), max(id) FROM {table}")
        compared(spark, f"SELECT * FROM {table} ORDER BY id LIMIT 3")
        skipped(spark, f"SELECT * FROM {table} WHERE s LIKE '%s7' ORDER BY id LIMIT 3")
        skipped(spark, f"SELECT * FROM {table} WHERE s LIKE '%s7' LIMIT 3")

    def test_metadata_tables_and_metadata_columns(self, spark, table):
        for name in ("files", "snapshots", "manifests", "history", "entries", "all_data_files", "partitions"):
            assert not left_alone(spark, f"SELECT count(*) FROM {table}.{name} WHERE 1 = 1")
        skipped(spark, f"SELECT _file, _pos, s FROM {table} WHERE s LIKE '%s7' AND _pos < 100", kept=1)

    def test_views(self, spark, table):
        spark.sql(f"CREATE OR REPLACE TEMP VIEW seen AS SELECT id, s FROM {table} WHERE g < 2")
        skipped(spark, "SELECT * FROM seen WHERE s LIKE '%s7'", kept=1)

    def test_cached(self, spark, table):
        df = spark.table(table).where("s LIKE '%s55'").cache()
        try:
            assert df.count() == 1
            assert spark.table(table).where("s LIKE '%s77'").count() == 1
        finally:
            df.unpersist()


class TestRunTime:
    """Runtime filters, storage-partitioned joins, and plans that run under other settings."""

    def test_runtime_filters(self, spark):
        fact = new_table(spark, "id BIGINT, s STRING, p INT", partitioned="p")
        append(
            spark, fact, [f"SELECT id, concat('s', id) s, {n} p FROM range({n * 10}, {n * 10 + 10})" for n in range(6)]
        )
        append(
            spark, fact, [f"SELECT id, concat('t', id) s, {n} p FROM range({n * 10}, {n * 10 + 10})" for n in range(6)]
        )
        small = new_table(spark, "p INT, name STRING")
        append(spark, small, ["SELECT int(id) p, concat('n', id) name FROM range(6)"])
        indexed(spark, fact, SuffixIndex("s", length=2), ValueListIndex("s"))
        query = f"SELECT f.* FROM {fact} f JOIN {small} d ON f.p = d.p WHERE d.name = 'n2' AND f.s LIKE 's%'"
        names = {"spark__sql__optimizer__dynamicPartitionPruning__reuseBroadcastOnly": "false"}
        with setting(spark, **names):
            skipped(spark, query)
            df = spark.sql(query)
            df.collect()
            plan = df._jdf.queryExecution().executedPlan().toString()
        assert "RuntimeFilters: [dynamicpruning" in plan, plan
        assert "SkipstoneScan reads 6 of 12 objects" in plan, plan

    def test_storage_partitioned_joins(self, spark):
        names = {
            "spark__sql__sources__v2__bucketing__enabled": "true",
            "spark__sql__iceberg__planning__preserve_data_grouping": "true",
            "spark__sql__sources__v2__bucketing__pushPartValues__enabled": "true",
            "spark__sql__requireAllClusterKeysForCoPartition": "false",
            "spark__sql__autoBroadcastJoinThreshold": "-1",
            "spark__sql__adaptive__enabled": "false",
        }
        left, right = (new_table(spark, "id BIGINT, s STRING, p INT", partitioned="p") for _ in range(2))
        for table, files in ((left, 2), (right, 1)):
            for part in range(4):
                for n in range(files):
                    start = part * 100 + n * 10
                    append(spark, table, [f"SELECT id, concat('s', id) s, {part} p FROM range({start}, {start + 10})"])
            indexed(spark, table, ValueListIndex("s"), SuffixIndex("s", length=3))
        with setting(spark, **names):
            for kind in ("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT ANTI JOIN"):
                on = "a.p = b.p AND a.id = b.id"
                query = f"SELECT * FROM {left} a {kind} {right} b ON {on} WHERE a.s LIKE '%s105'"
                scans = skipped(spark, query)
                df = spark.sql(query)
                df.collect()
                plan = df._jdf.queryExecution().executedPlan().toString()
                assert "Exchange hashpartitioning" not in plan, plan
                assert "SkipstoneScan reads" in plan, plan
                assert max(scan.objects.skipped for scan in scans) >= 4, scans
            with setting(spark, spark__sql__sources__v2__bucketing__partiallyClusteredDistribution__enabled="true"):
                said = [reason for scan in left_alone(spark, query) for reason in scan.not_used]
                assert any("partiallyClusteredDistribution" in reason for reason in said), said

    def test_a_plan_that_runs_under_other_settings(self, spark):
        table = new_table(spark, "id BIGINT, t TIMESTAMP")
        append(spark, table, ranges("id, timestamp_seconds(id * 86400) t", 4))
        indexed(spark, table, MinMaxIndex("t"), MinMaxIndex("id"))
        early = spark.table(table).where("t < TIMESTAMP'1970-01-05 00:00:00' AND hash(id) <> 7")
        expected = rows(early)
        assert len(expected) >= 4
        plan = early._jdf.queryExecution().executedPlan().toString()
        assert "SkipstoneScan" in plan or "IcebergScan" in plan
        for name, value in (
            ("spark.sql.session.timeZone", "Asia/Tokyo"),
            ("spark.sql.caseSensitive", "true"),
            ("spark.sql.ansi.enabled", "false"),
        ):
            before = spark.conf.get(name)
            spark.conf.set(name, value)
            try:
                assert sorted(map(repr, early.rdd.collect())) == expected
                assert early.count() == len(expected)
            finally:
                spark.conf.set(name, before)

    def test_a_run_that_does_not_read_as_planned_reads_all(self, spark):
        """The guard: what was decided under one setting is not used in a run under another."""
        table = new_table(spark)
        append(spark, table, numbers(0, 4))
        indexed(spark, table)
        query = f"SELECT * FROM {table} WHERE s = 's5' OR s = 'none'"
        df = spark.sql(query)
        node = df._jdf.queryExecution().executedPlan()
        assert "reads 1 of 4 objects" in node.toString()
        with setting(spark, spark__sql__caseSensitive="true"):  # counts for whatever is read
            assert len(df.collect()) == 1
        assert len(df.collect()) == 1

    def test_formats_of_files_are_mixed(self, spark):
        table = new_table(spark)
        for n, name in enumerate(("parquet", "orc", "avro")):
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.format.default' = '{name}')")
            append(spark, table, numbers(n * 20, 2))
        indexed(spark, table)
        for number in (5, 25, 45):
            skipped(spark, f"SELECT * FROM {table} WHERE s = 's{number}'", kept=1)
        skipped(spark, f"SELECT * FROM {table} WHERE s = 'none'", kept=0)
        skipped(spark, f"SELECT * FROM {table} WHERE s = 's5' OR s = 's45'", kept=2)

    def test_a_large_file_is_read_by_several_tasks(self, spark):
        properties = {"write.parquet.row-group-size-bytes": "16384", "read.split.target-size": "65536"}
        table = new_table(spark, properties=properties)
        append(spark, table, ranges("id, concat(sha2(string(id), 256), id) s", 3, 3000))
        indexed(spark, table, MinMaxIndex("id"), SuffixIndex("s", length=5))
        compared(spark, f"SELECT * FROM {table} WHERE s LIKE '%12345'")
        skipped(spark, f"SELECT count(*), max(s) FROM {table} WHERE s LIKE '%c4567'")
        for number in (0, 1499, 2999, 3000, 8999):
            skipped(spark, f"SELECT * FROM {table} WHERE id = {number}", kept=1)


class TestWrites:
    """Nothing is left out of a plan with a write in it."""

    @pytest.mark.parametrize("mode", [MERGE_ON_READ, COPY_ON_WRITE], ids=["merge-on-read", "copy-on-write"])
    def test_twins(self, spark, mode):
        twins = [new_table(spark, properties=mode) for _ in range(2)]
        source = new_table(spark)
        append(spark, source, numbers(0, 6))
        for table in twins:
            append(spark, table, numbers(0, 4))
        for table in (source, twins[0]):
            indexed(spark, table)
        statements = (
            "DELETE FROM {t} WHERE s LIKE '%3' AND s = 's13'",
            "UPDATE {t} SET s = concat(s, 'x') WHERE s = 's25'",
            "MERGE INTO {t} t USING (SELECT * FROM {s} WHERE s LIKE '%5') s ON t.id = s.id AND t.s = s.s "
            "WHEN MATCHED THEN UPDATE SET s = 'merged' WHEN NOT MATCHED THEN INSERT *",
            "DELETE FROM {t} WHERE id IN (SELECT id FROM {s} WHERE s = 's8')",
            "INSERT INTO {t} SELECT * FROM {s} WHERE s = 's55'",
            "INSERT OVERWRITE {t} SELECT * FROM {t} WHERE s <> 's31' AND s NOT LIKE '%7'",
            "MERGE INTO {t} t USING {s} s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.s = 's2' THEN DELETE",
        )
        for statement in statements:
            for on, table in zip(("true", "false"), twins, strict=True):
                with setting(spark, spark__skipstone__enabled=on), skipping_stats(spark) as stats:
                    spark.sql(statement.format(t=table, s=source)).collect()
                assert not [scan for scan in stats if scan.objects.skipped], list(stats)
            assert rows(spark.table(twins[0])) == rows(spark.table(twins[1])), statement
        added, removed = (
            [
                sorted(
                    (r[key] or "0")
                    for r in spark.sql(f"SELECT summary['{key}'] AS `{key}` FROM {t}.snapshots").collect()
                )
                for t in twins
            ]
            for key in ("added-records", "deleted-records")
        )
        assert added[0] == added[1]
        assert removed[0] == removed[1]

    def test_a_table_that_a_stream_is_joined_with(self, spark, tmp_path):
        """The nodes that write a stream's batches are no commands."""
        table, source, into = (new_table(spark) for _ in range(3))
        for filled in (table, source):
            append(spark, filled, numbers(0, 3))
        indexed(spark, table)
        rows_ = spark.readStream.table(source).select("id")
        joined = rows_.join(spark.table(table).where("s = 's15'"), "id")
        plan = streamed(joined, tmp_path / "checkpoint", target=into, format_="iceberg")
        assert "Skipstone" not in plan, plan
        assert rows(spark.table(into)) == ["Row(id=15, s='s15')"]

    @pytest.mark.parametrize(
        ("write", "left"),
        [
            ("INSERT INTO {other} SELECT * FROM {table} WHERE s = 's5'", 11),
            ("DELETE FROM {other} WHERE id IN (SELECT id FROM {table} WHERE s = 's1')", 9),
            ("UPDATE {other} SET s = 'x' WHERE id IN (SELECT id FROM {table} WHERE s = 's1')", 10),
            (
                "MERGE INTO {other} t USING (SELECT * FROM {table} WHERE s = 's1') u ON t.id = u.id "
                "WHEN MATCHED THEN DELETE",
                9,
            ),
        ],
    )
    @pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
    def test_it_is_said(self, spark, mode, write, left):
        modes = {f"write.{what}.mode": mode for what in ("delete", "update", "merge")}
        table, other = new_table(spark), new_table(spark, properties={"format-version": "2", **modes})
        append(spark, table, numbers(0, 3))
        append(spark, other, numbers(1, 1))
        indexed(spark, table)
        with skipping_stats(spark) as stats:
            spark.sql(write.format(table=table, other=other)).collect()
        assert spark.table(other).count() == left
        said = [note for scan in stats for note in scan.not_used]
        assert any("while one is written" in note for note in said), list(stats)


class TestMixedFormats:
    def test_beside_plain_files(self, spark, tmp_path):
        table = new_table(spark)
        append(spark, table, numbers(0, 4))
        indexed(spark, table)
        plain = str(tmp_path / "plain")
        for n in range(4):
            spark.range(n * 10, n * 10 + 10).coalesce(1).write.mode("append").parquet(plain)
        Dataset.for_path(spark, plain).create_indexes(MinMaxIndex("id"))
        query = f"SELECT * FROM {table} a JOIN parquet.`{plain}` b ON a.id = b.id WHERE a.s = 's25' AND b.id > 22"
        scans = skipped(spark, query)
        assert {scan.format for scan in scans if scan.objects.skipped} == {"iceberg", "parquet"}, scans

    def test_java_table_is_what_spark_reads(self, spark):
        table = new_table(spark)
        append(spark, table, numbers(0, 1))
        assert java_table(spark, table).location() in Dataset.for_table(spark, table).root
