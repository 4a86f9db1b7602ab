"""What keeps Iceberg tables right when something is not as it should be: other settings, other releases, bad input."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from skipstone import Dataset, MinMaxIndex, SuffixIndex, ValueListIndex, last_query
from skipstone.errors import DatasetError, SkipstoneError
from tests.tables.iceberg import (
    add_catalog,
    append,
    compared,
    new_table,
    numbers,
    procedure,
    setting,
    skipped,
    snapshots,
)
from tests.tables.support import twins

SPJ = {
    "spark__sql__sources__v2__bucketing__enabled": "true",
    "spark__sql__iceberg__planning__preserve_data_grouping": "true",
    "spark__sql__sources__v2__bucketing__pushPartValues__enabled": "true",
    "spark__sql__requireAllClusterKeysForCoPartition": "false",
    "spark__sql__autoBroadcastJoinThreshold": "-1",
}


def indexed(spark, table, *indexes):
    dataset = Dataset.for_table(spark, table)
    dataset.create_indexes(*(indexes or (MinMaxIndex("id"), ValueListIndex("s"))))
    return dataset


def files(spark, table):
    """The data files, in the order of their smallest id."""
    found = spark.sql(f"SELECT _file AS f, min(id) AS first FROM {table} GROUP BY _file ORDER BY first").collect()
    return [Path(row.f.removeprefix("file:")) for row in found]


class TestRunsUnderOtherSettings:
    """A file that a plan left out is taken away: who reads it nevertheless, fails."""

    def test_all_is_read(self, spark):
        table = new_table(spark)
        append(spark, table, numbers(0, 4))
        indexed(spark, table)
        planned = [spark.sql(f"SELECT * FROM {table} WHERE s = 's5'") for _ in range(2)]
        for df in planned:
            assert "reads 1 of 4 objects" in df._jdf.queryExecution().executedPlan().toString()
        files(spark, table)[2].unlink()
        assert len(planned[0].collect()) == 1
        with setting(spark, spark__sql__caseSensitive="true"), pytest.raises(Exception, match="does not exist"):
            planned[1].collect()

    def test_by_each_run_where_tasks_look_settings_up(self, spark):
        table = new_table(spark, "id BIGINT, t TIMESTAMP")
        days = "SELECT id, timestamp_seconds(id * 86400) t"
        append(spark, table, [f"{days} FROM range({n * 10}, {n * 10 + 10})" for n in range(4)])
        indexed(spark, table, MinMaxIndex("t"))
        df = spark.table(table).where("t < TIMESTAMP'1970-01-03 00:00:00'")
        expected = df.collect()
        assert last_query(spark)[0].objects.skipped == 3
        files(spark, table)[2].unlink()
        assert df.collect() == expected
        with setting(spark, spark__sql__caseSensitive="true"), pytest.raises(Exception, match="does not exist"):
            df.collect()
        assert df.collect() == expected

    def test_where_the_plan_rests_on_groups(self, spark):
        left, right = (new_table(spark, "id BIGINT, t TIMESTAMP, p INT", partitioned="p") for _ in range(2))
        for table, count in ((left, 2), (right, 1)):
            for part in range(3):
                for n in range(count):
                    first = part * 100 + n * 10
                    rows = f"SELECT id, timestamp_seconds(id * 86400) t, {part} p FROM range({first}, {first + 10})"
                    append(spark, table, [rows])
        indexed(spark, left, MinMaxIndex("t"))
        query = f"SELECT a.id, b.id FROM {left} a JOIN {right} b ON a.p = b.p AND a.id = b.id"
        query += " WHERE a.t BETWEEN TIMESTAMP'1970-04-11' AND TIMESTAMP'1970-04-13'"
        with setting(spark, **SPJ):
            (scan, *_) = [scan for scan in skipped(spark, query) if scan.objects.skipped]
            assert (scan.objects.total, scan.objects.kept) == (6, 3), scan  # each partition keeps a file
            df = spark.sql(query)
            expected = sorted(df.collect())
            plan = df._jdf.queryExecution().executedPlan().toString()
            assert "Exchange hashpartitioning" not in plan, plan
            assert "reads 3 of 6 objects" in plan, plan
            with setting(spark, spark__sql__caseSensitive="true"):  # all of each group, in the same groups
                assert sorted(df.collect()) == expected
            for _ in range(5):  # Iceberg plans manifests side by side, so that an order may be right by chance
                later = spark.sql(query)
                assert sorted(later.collect()) == expected
                ungrouped = {
                    "spark__sql__caseSensitive": "true",
                    "spark__sql__sources__v2__bucketing__enabled": "false",
                }
                with setting(spark, **ungrouped):  # which Spark itself asks for once, when it first runs
                    assert sorted(later.collect()) == expected
            files(spark, left)[3].unlink()  # of partition 1: days 110 to 119
            assert sorted(df.collect()) == expected
            with setting(spark, spark__sql__caseSensitive="true"), pytest.raises(Exception, match="does not exist"):
                df.collect()


class TestRefused:
    @pytest.fixture(scope="class")
    @staticmethod
    def table(spark):
        table = new_table(spark)
        append(spark, table, numbers(0, 3))
        spark.sql(f"ALTER TABLE {table} CREATE BRANCH side")
        spark.sql(f"ALTER TABLE {table} CREATE TAG mark")
        indexed(spark, table)
        return table

    @pytest.mark.parametrize(
        ("of", "said"),
        [
            (
                lambda s, t: s.sql(f"SELECT * FROM {t} VERSION AS OF {snapshots(s, t)[0]}"),
                "give the table as it is now",
            ),
            (lambda s, t: s.sql(f"SELECT * FROM {t} VERSION AS OF 'mark'"), "give the table as it is now"),
            (lambda s, t: s.sql(f"SELECT * FROM {t} TIMESTAMP AS OF '2999-01-01'"), "give the table as it is now"),
            (lambda s, t: s.table(f"{t}.branch_side"), "the branch side"),
            (lambda s, t: s.read.option("branch", "side").table(t), "the branch side|the option branch"),
            (lambda s, t: s.read.option("snapshot-id", snapshots(s, t)[0]).table(t), "give the table as it is now"),
            (lambda s, t: s.table(f"{t}.files"), "metadata table|not a scan of files"),
            (lambda s, t: s.table(f"{t}.snapshots"), "metadata table|not a scan of files"),
            (lambda s, t: s.table(t).where("id > 3"), "a filter"),
            (lambda s, t: s.table(t).selectExpr("id + 1 AS id"), "a computed or renamed column"),
            (lambda s, t: s.table(t).join(s.table(t), "id"), "."),
        ],
        ids=[
            "version",
            "tag",
            "time",
            "branch",
            "branch-option",
            "snapshot-option",
            "files",
            "snapshots",
            "filter",
            "computed",
            "join",
        ],
    )
    def test_dataframes(self, spark, table, of, said):
        with pytest.raises(DatasetError, match=said):
            Dataset(of(spark, table))

    def test_a_view(self, spark, table):
        spark.sql(f"CREATE OR REPLACE TEMP VIEW some AS SELECT * FROM {table} WHERE id < 15")
        with pytest.raises(SkipstoneError, match="a filter"):
            Dataset(spark.table("some"))

    def test_a_table_whose_columns_changed(self, spark):
        table = new_table(spark)
        append(spark, table, numbers(0, 3))
        dataset = indexed(spark, table)
        spark.sql(f"ALTER TABLE {table} ADD COLUMN more INT")
        with pytest.raises(SkipstoneError, match="read the table anew"):
            dataset.refresh()
        Dataset.for_table(spark, table).refresh()
        skipped(spark, f"SELECT * FROM {table} WHERE s = 's5'", kept=1)

    def test_no_such_table(self, spark):
        with pytest.raises(SkipstoneError):
            Dataset.for_table(spark, "ice.db.nothing_of_the_kind")

    def test_an_empty_table(self, spark):
        table = new_table(spark)
        with suppress(SkipstoneError):  # there is nothing to index
            indexed(spark, table)
        assert twins(spark, f"SELECT * FROM {table} WHERE id = 5").rows == 0


class TestUse:
    def test_statements_and_paths(self, spark):
        table = new_table(spark)
        append(spark, table, numbers(0, 3))
        spark.sql(f"CREATE INDEX ends ON {table} USING suffix (s) OPTIONS (length = 2)")
        skipped(spark, f"SELECT * FROM {table} WHERE s LIKE '%s7'", kept=1)
        append(spark, table, numbers(30, 1))
        spark.sql(f"REFRESH INDEXES ON {table}")
        skipped(spark, f"SELECT * FROM {table} WHERE s LIKE '%s7'", kept=1)
        root = Dataset.for_table(spark, table).root
        by_path = Dataset.for_path(spark, root, format="iceberg")
        assert by_path.root == root
        df = spark.read.format("iceberg").load(root)
        assert twins(spark, lambda: df.where("s LIKE '%s7'")).skipped == 3
        assert "ends: 4 objects covered" in str(by_path.describe())
        by_path.drop_indexes()
        assert twins(spark, f"SELECT * FROM {table} WHERE s LIKE '%s7'").skipped == 0

    def test_refresh_of_some_files(self, spark):
        table = new_table(spark)
        append(spark, table, numbers(0, 2))
        dataset = indexed(spark, table)
        append(spark, table, numbers(20, 2))
        dataset.refresh(paths=[str(files(spark, table)[3])])
        (scan,) = skipped(spark, f"SELECT * FROM {table} WHERE s = 's5'", kept=2)
        assert scan.objects.unindexed == 1, scan

    def test_metadata_elsewhere(self, spark, tmp_path):
        table = new_table(spark)
        append(spark, table, numbers(0, 3))
        (tmp_path / "metadata").mkdir()
        with setting(spark, spark__skipstone__location=str(tmp_path / "metadata")):
            indexed(spark, table)
            skipped(spark, f"SELECT * FROM {table} WHERE s = 's5'", kept=1)
        assert any((tmp_path / "metadata").rglob("*"))

    def test_another_catalog(self, spark, tmp_path):
        """One that exists in this session only: index jobs run in a clone of it."""
        impl, io = "org.apache.iceberg.inmemory.InMemoryCatalog", "org.apache.iceberg.hadoop.HadoopFileIO"
        add_catalog(spark, tmp_path, "memory", catalog_impl=impl, io_impl=io)
        spark.sql("CREATE NAMESPACE IF NOT EXISTS memory.db")
        table = new_table(spark, catalog="memory")
        append(spark, table, numbers(0, 3))
        dataset = indexed(spark, table, SuffixIndex("s", length=2))
        append(spark, table, numbers(30, 1))
        dataset.refresh()
        skipped(spark, f"SELECT * FROM {table} WHERE s LIKE '%s7'", kept=1)

    def test_files_that_hadoop_does_not_know(self, spark, tmp_path):
        """Tables may read and write by clients of their own: only metadata needs a file system of Hadoop's."""
        add_catalog(spark, "mem://lake", "own", catalog_impl="org.apache.iceberg.inmemory.InMemoryCatalog")
        spark.sql("CREATE NAMESPACE IF NOT EXISTS own.db")
        table = new_table(spark, catalog="own")
        append(spark, table, numbers(0, 3))
        (tmp_path / "metadata").mkdir()
        with setting(spark, spark__skipstone__location=str(tmp_path / "metadata")):
            dataset = indexed(spark, table, SuffixIndex("s", length=2))
            assert dataset.root.startswith("mem://lake/")
            append(spark, table, numbers(30, 2))
            new = [row.f for row in spark.sql(f"SELECT DISTINCT _file AS f FROM {table} WHERE id >= 40").collect()]
            assert dataset.refresh(paths=new).indexed == 1
            assert dataset.refresh().indexed == 1
            skipped(spark, f"SELECT * FROM {table} WHERE s LIKE '%s7'", kept=1)
            procedure(spark, table, "rewrite_data_files", "options => map('rewrite-all', 'true')")
            report = dataset.refresh()
            assert (report.indexed, report.removed) == (1, 0)
            expired = "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1"
            procedure(spark, table, "expire_snapshots", expired)
            assert dataset.refresh().removed == 5
            skipped(spark, f"SELECT * FROM {table} WHERE s LIKE '%zz'", kept=0)

    def test_the_catalog_of_hive(self, spark, tmp_path):
        home = f"jdbc:derby:;databaseName={tmp_path / 'metastore'};create=true"
        own = spark.newSession()
        add_catalog(own, tmp_path / "tables", "hive", type="hive")
        for name, value in {
            "javax.jdo.option.ConnectionURL": home,
            "datanucleus.schema.autoCreateAll": "true",
            "hive.metastore.schema.verification": "false",
            "iceberg.engine.hive.lock-enabled": "false",  # Spark brings no pool of connections for it
        }.items():
            own.conf.set(f"spark.sql.catalog.hive.hadoop.{name}", value)
        own.sql("CREATE NAMESPACE IF NOT EXISTS hive.db")
        table = new_table(own, catalog="hive")
        append(own, table, numbers(0, 3))
        dataset = indexed(own, table, SuffixIndex("s", length=2))
        append(own, table, numbers(30, 1))
        dataset.refresh()
        skipped(own, f"SELECT * FROM {table} WHERE s LIKE '%s7'", kept=1)

    def test_the_catalog_of_the_session(self, spark, tmp_path):
        own = spark.newSession()
        own.conf.set("spark.sql.catalog.spark_catalog", "org.apache.iceberg.spark.SparkSessionCatalog")
        own.conf.set("spark.sql.catalog.spark_catalog.type", "hadoop")
        own.conf.set("spark.sql.catalog.spark_catalog.warehouse", str(tmp_path))
        own.sql("CREATE NAMESPACE IF NOT EXISTS spark_catalog.db")
        table = new_table(own, catalog="spark_catalog")
        append(own, table, numbers(0, 3))
        indexed(own, table, SuffixIndex("s", length=2))
        skipped(own, f"SELECT * FROM {table} WHERE s LIKE '%s7'", kept=1)

    def test_names_with_anything_in_them(self, spark):
        table = f"ice.db.`odd näme {id(self)}`"
        spark.sql(
            f"CREATE TABLE {table} (`i d` BIGINT, `a.b` STRING, P STRING) USING iceberg PARTITIONED BY (P) "
            "TBLPROPERTIES ('write.metadata.metrics.default' = 'none')"
        )
        for part in ("a b", "x%20y", "ü=1", "a/b#c"):
            append(spark, table, [f"SELECT id AS `i d`, concat('s', id) AS `a.b`, '{part}' AS P FROM range(10)"])
            append(spark, table, [f"SELECT id AS `i d`, concat('t', id) AS `a.b`, '{part}' AS P FROM range(10)"])
        indexed(spark, table, ValueListIndex("`a.b`"), MinMaxIndex("`i d`"))
        for where in ("`a.b` = 's5'", "`a.b` = 't5' AND P = 'x%20y'"):
            skipped(spark, f"SELECT * FROM {table} WHERE {where}")
        compared(spark, f"SELECT * FROM {table} WHERE `i d` > 8 AND P IN ('ü=1', 'a/b#c')")


def test_a_release_that_is_not_known_is_left_alone_with_the_reason(spark):
    jvm = spark._jvm
    loader = jvm.java.net.URLClassLoader(spark._sc._gateway.new_array(jvm.java.net.URL, 0), None)
    told = jvm.org.apache.spark.sql.skipstone.Iceberg.by(loader).left().toOption().get()
    assert "it has no class org.apache.iceberg" in told, told
