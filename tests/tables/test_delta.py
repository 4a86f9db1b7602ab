"""Delta tables: every kind of read gives the same rows with skipping on and off, and files are skipped."""

from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

import skipstone
from skipstone import BloomFilterIndex, Dataset, MinMaxIndex, SuffixIndex, ValueListIndex
from skipstone.errors import DatasetError, IndexingError, SoundnessError
from skipstone.expressions import ranges
from tests.engines.spark.test_column_batches import assert_equal_as_rows
from tests.tables.delta import DVS, append, index, make, t
from tests.tables.support import conf, streamed, twins


def test_beyond_its_own_statistics(spark, table):
    make(spark, table)
    dataset = index(spark, table)
    found = twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'")
    (scan,) = found.scans
    assert (found.rows, found.skipped, scan.objects.total, scan.pruned_by_format) == (1, 3, 4, 0)
    (scan,) = twins(spark, f"SELECT * FROM {t(table)} WHERE id < 200 AND k LIKE '%123'").scans
    assert (scan.objects.total, scan.objects.kept, scan.pruned_by_format) == (2, 1, 2)
    assert scan.bytes_pruned_by_format > 0
    told = str(dataset.explain("id < 200 AND k LIKE '%123'"))
    assert "reads 1 of 2 objects" in told
    assert "delta's own pruning left 2 of the snapshot's 4 objects" in told
    assert scan.files_read == 1


def test_by_a_function_of_python(spark, table):
    make(spark, table)
    index(spark, table)
    ends = F.udf(lambda k: k.endswith("23"), "boolean")
    spark.udf.register("ends23", ends)
    frame = lambda: spark.read.format("delta").load(table)  # noqa: E731
    assert twins(spark, lambda: frame().where(ends("k") & F.expr("k LIKE '%123'"))).skipped == 3
    found = twins(spark, f"SELECT (SELECT count(*) FROM {t(table)} WHERE ends23(k) AND k LIKE '%123') AS n")
    assert found.skipped == 3


def test_in_subqueries(spark, table):
    make(spark, table)
    index(spark, table)
    inner = f"SELECT id FROM {t(table)} WHERE k LIKE '%123'"
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE m = 6 AND id IN ({inner})").skipped >= 3
    assert twins(spark, f"SELECT (SELECT max(id) FROM ({inner})) AS x").skipped == 3
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE id = (SELECT max(id) FROM ({inner}))").skipped >= 3
    correlated = (
        f"SELECT * FROM {t(table)} a WHERE EXISTS (SELECT 1 FROM {t(table)} b WHERE b.id = a.id AND b.k LIKE '%123')"
    )
    assert twins(spark, correlated).skipped >= 3


def test_catalog_tables_and_views(spark):
    spark.sql("CREATE OR REPLACE TABLE events (id BIGINT, k STRING, d DATE) USING delta PARTITIONED BY (d)")
    try:
        for n in range(4):
            spark.sql(
                f"INSERT INTO events SELECT id, concat('k', id), DATE'2024-01-0{n + 1}' "
                f"FROM range({n * 50}, {n * 50 + 50}, 1, 1)"
            )
        events = Dataset.for_table(spark, "events")
        events.create_indexes(SuffixIndex("k", length=3), MinMaxIndex("d"))
        assert twins(spark, "SELECT * FROM events WHERE k LIKE '%k77'").skipped == 3
        (scan,) = twins(spark, "SELECT * FROM events WHERE d > DATE'2024-01-02' AND k LIKE '%177'").scans
        assert (scan.objects.total, scan.objects.kept, scan.pruned_by_format) == (2, 1, 2)
        spark.sql("CREATE OR REPLACE TEMP VIEW recent AS SELECT id AS n, upper(k) AS u, k FROM events WHERE id >= 20")
        assert twins(spark, "SELECT n FROM recent WHERE k LIKE '%k77'").skipped >= 2
        with pytest.raises(DatasetError, match="a filter|a computed"):
            Dataset.for_table(spark, "recent")
        spark.sql("CREATE OR REPLACE TEMP VIEW everything AS SELECT * FROM events")
        assert Dataset.for_table(spark, "everything").root == events.root
        assert {row["name"] for row in events.describe().collect()} == {"suffix(k, length=3)", "minmax(d)"}
        events.drop_indexes()
        assert twins(spark, "SELECT * FROM events WHERE k LIKE '%k77'").skipped == 0
    finally:
        spark.sql("DROP TABLE events")


def test_statements(spark):
    spark.sql("CREATE OR REPLACE TABLE stated (id BIGINT, k STRING) USING delta")
    try:
        for n in range(3):
            spark.sql(f"INSERT INTO stated SELECT id, concat('k', id) FROM range({n * 50}, {n * 50 + 50}, 1, 1)")
        spark.sql("CREATE INDEX ends ON stated USING suffix (k) OPTIONS (length = 3)")
        assert twins(spark, "SELECT * FROM stated WHERE k LIKE '%k77'").skipped == 2
        spark.sql("INSERT INTO stated SELECT id, concat('k', id) FROM range(150, 200, 1, 1)")
        assert twins(spark, "SELECT * FROM stated WHERE k LIKE '%k77'").skipped == 2
        spark.sql("REFRESH INDEXES ON stated")
        assert twins(spark, "SELECT * FROM stated WHERE k LIKE '%k77'").skipped == 3
        assert spark.sql("SHOW INDEXES ON stated").count() == 1
        told = spark.sql("EXPLAIN SKIPPING SELECT * FROM stated WHERE k LIKE '%k77'").collect()
        assert "skips 3" in str(told)
        with pytest.raises(AnalysisException, match="PARTITIONS_NOT_FOUND"):
            spark.sql("REFRESH INDEXES ON stated PARTITION (id = 1)")
        spark.sql("DROP INDEX ends ON stated")
        assert spark.sql("SHOW INDEXES ON stated").count() == 0
    finally:
        spark.sql("DROP TABLE stated")


def test_statements_on_a_path(spark, table):
    make(spark, table)
    spark.sql(f"CREATE INDEX ends ON {t(table)} USING suffix (k) OPTIONS (length = 3)")
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'").skipped == 3
    assert Dataset.for_path(spark, table, format="delta").is_indexed


def test_deleted_rows_stay_deleted_and_come_back(spark, table):
    make(spark, table, more=DVS)
    spark.sql(f"DELETE FROM {t(table)} WHERE id % 10 = 3")
    index(spark, table)  # of physical rows: 123 is deleted, and indexed
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%124'").skipped == 3
    gone = twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'")
    assert gone.rows == 0
    assert gone.skipped >= 3
    spark.sql(f"RESTORE TABLE {t(table)} TO VERSION AS OF 1")
    back = twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'")
    assert (back.rows, back.skipped) == (1, 3)
    travelled = twins(spark, f"SELECT * FROM {t(table)} VERSION AS OF 1 WHERE k LIKE '%123'")
    assert (travelled.rows, travelled.skipped) == (1, 3)


def test_dropped_files_count_when_delta_looks_for_deleted_rows(spark, table):
    """The kept file has no deleted rows, dropped ones have; a run under other settings may have to read these."""
    make(spark, table, more=DVS)
    index(spark, table)
    spark.sql(f"DELETE FROM {t(table)} WHERE id BETWEEN 0 AND 20")
    query = spark.sql(f"SELECT id FROM {t(table)} WHERE k LIKE '%223'")
    location = query._jdf.queryExecution().optimizedPlan().collectLeaves().head().relation().location()
    package = spark._jvm.org.apache.spark.sql.catalyst.expressions
    true = spark._jvm.scala.jdk.javaapi.CollectionConverters.asScala(
        [getattr(package, "Literal$").__getattr__("MODULE$").TrueLiteral()]
    ).toSeq()
    assert location.getClass().getSimpleName() == "SkippingDeltaIndex"
    assert (len(query.inputFiles()), location.matchingFiles(true, true).size()) == (1, 4)
    assert twins(spark, f"SELECT id FROM {t(table)} WHERE k LIKE '%223'").skipped == 3


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_are_known_by_what_they_are_in_the_files(spark, table, mode):
    mapping = f"TBLPROPERTIES (delta.columnMapping.mode='{mode}', delta.minReaderVersion=2, delta.minWriterVersion=5)"
    make(spark, table, more=mapping)
    dataset = index(spark, table)
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'").skipped == 3
    spark.sql(f"ALTER TABLE {t(table)} RENAME COLUMN m TO old")
    spark.sql(f"ALTER TABLE {t(table)} ADD COLUMN m BIGINT")
    spark.sql(f"UPDATE {t(table)} SET m = id WHERE id = 250")
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE m IS NULL").rows == 399
    found = twins(spark, f"SELECT * FROM {t(table)} WHERE m = 250")
    assert found.rows == 1
    assert "another default or field id" in found.said
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE old = 3 AND k LIKE '%124'").skipped >= 2
    with pytest.raises(IndexingError, match="cannot be refreshed"):
        Dataset.for_path(spark, table, format="delta").refresh()
    dataset = Dataset.for_path(spark, table, format="delta")
    dataset.drop_indexes("valuelist(m)")
    dataset.refresh()
    dataset.create_indexes(ValueListIndex("m"), ValueListIndex("old"))
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE m + 0 = 250 OR m = 250").rows == 1
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE m = 250 AND k LIKE '%250'").rows == 1
    spark.sql(f"ALTER TABLE {t(table)} DROP COLUMN m")
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'").skipped >= 3


def test_nested_columns_are_known_by_what_they_are(spark, table):
    mapping = "TBLPROPERTIES (delta.columnMapping.mode='name', delta.minReaderVersion=2, delta.minWriterVersion=5)"
    spark.sql(f"CREATE TABLE {t(table)} (id BIGINT, s STRUCT<a: BIGINT, b: STRING>) USING delta {mapping}")
    for n in range(3):
        spark.sql(
            f"INSERT INTO {t(table)} SELECT id, struct(id AS a, concat('k', id)) "
            f"FROM range({n * 10}, {n * 10 + 10}, 1, 1)"
        )
    index(spark, table, MinMaxIndex("s.a"), SuffixIndex("s.b", length=2))
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE s.b LIKE '%13'").skipped == 2
    spark.sql(f"ALTER TABLE {t(table)} RENAME COLUMN s.b TO c")
    spark.sql(f"ALTER TABLE {t(table)} ADD COLUMN s.b STRING")
    spark.sql(f"INSERT INTO {t(table)} SELECT 99, struct(99L AS a, 'x' AS c, 'k13' AS b)")
    found = twins(spark, f"SELECT * FROM {t(table)} WHERE s.b LIKE '%13'")
    assert found.rows == 1
    assert "another default or field id" in found.said


def test_generated_columns_partition(spark, table):
    spark.sql(
        f"CREATE TABLE {t(table)} (at TIMESTAMP, k STRING, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))) "
        "USING delta PARTITIONED BY (day)"
    )
    for n in range(4):
        spark.sql(
            f"INSERT INTO {t(table)} (at, k) SELECT timestamp_millis(1704067200000 + id * 3600000), concat('k', id) "
            f"FROM range({n * 12}, {n * 12 + 12}, 1, 1)"
        )
    index(spark, table, SuffixIndex("k", length=2))
    # Delta adds a filter on the partition below the query's own.
    sql = f"SELECT * FROM {t(table)} WHERE at < TIMESTAMP'2024-01-02 00:00:00Z' AND k LIKE '%13'"
    (scan,) = twins(spark, sql).scans
    assert (scan.objects.kept, scan.pruned_by_format) == (1, 2)
    assert scan.objects.skipped == 1


def test_partition_columns(spark, table):
    df = spark.range(0, 400, 1, 1).selectExpr("id", "concat('k', id) AS k", "id DIV 100 AS p")
    df.write.format("delta").partitionBy("p").save(table)
    index(spark, table, MinMaxIndex("p"), SuffixIndex("k", length=3))
    (scan,) = twins(spark, f"SELECT * FROM {t(table)} WHERE p IN (1, 2) AND k LIKE '%123'").scans
    assert (scan.objects.total, scan.objects.kept, scan.pruned_by_format) == (2, 1, 2)
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE p + id = 125 OR k LIKE '%123'").rows == 2
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123' LIMIT 5").rows == 1


def test_snapshots_older_and_newer(spark, table):
    make(spark, table)
    dataset = index(spark, table)
    append(spark, table, 4, 2)
    found = twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%523'")
    assert (found.rows, found.skipped, found.scans[0].objects.unindexed) == (1, 4, 2)
    assert dataset.refresh().indexed == 2
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%523'").skipped == 5
    travelled = twins(spark, f"SELECT * FROM {t(table)} VERSION AS OF 1 WHERE k LIKE '%123'")
    assert (travelled.rows, travelled.skipped, travelled.scans[0].objects.total) == (1, 3, 4)
    travelled = twins(
        spark, lambda: spark.read.format("delta").option("versionAsOf", 1).load(table).where("k LIKE '%123'")
    )
    assert travelled.skipped == 3
    assert dataset.refresh().indexed == 0


def test_columns_come_as_columns(spark, table):
    """A table's numbers of objects stand behind one projection more than those of files."""
    make(spark, table, more=f"PARTITIONED BY (m) {DVS}")
    spark.sql(f"DELETE FROM {t(table)} WHERE id % 10 = 3")
    indexes = MinMaxIndex("id"), ValueListIndex("m"), BloomFilterIndex("k")
    found = assert_equal_as_rows(lambda: spark.read.format("delta").load(table), *indexes)
    assert len(found) == 4 * 7


def test_rewritten_files(spark, table):
    make(spark, table, files=6, rows=50)
    dataset = index(spark, table)
    spark.sql(f"OPTIMIZE {t(table)} ZORDER BY (m)")
    found = twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'")
    assert (found.rows, found.skipped) == (1, 0)
    report = dataset.refresh()
    assert (report.indexed, report.removed) == (1, 0)  # what was rewritten is still there to travel to
    assert twins(spark, f"SELECT * FROM {t(table)} VERSION AS OF 1 WHERE k LIKE '%123'").skipped == 5
    append(spark, table, 6, 2, 50)
    dataset.refresh()
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%k7'").skipped >= 2
    spark.sql(f"VACUUM {t(table)} RETAIN 0 HOURS")
    assert dataset.is_indexed
    report = dataset.refresh()
    assert (report.indexed, report.removed) == (0, 6)
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%k7'").skipped >= 2
    assert dataset.refresh().removed == 0


def test_refresh_of_what_a_job_wrote(spark, table):
    make(spark, table)
    dataset = index(spark, table)
    before = set(spark.read.format("delta").load(table).inputFiles())
    append(spark, table, 4, 2)
    after = set(spark.read.format("delta").load(table).inputFiles())
    new = sorted(after - before)
    report = dataset.refresh([new[0]])
    assert (report.indexed, report.removed) == (1, 0)
    assert dataset.refresh([new[1].removeprefix("file://")]).indexed == 1
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%523'").skipped == 5


def test_clones(spark, table, tmp_path):
    make(spark, table)
    source = index(spark, table)
    shallow = str(tmp_path / "shallow")
    spark.sql(f"CREATE TABLE {t(shallow)} SHALLOW CLONE {t(table)}")
    assert twins(spark, f"SELECT * FROM {t(shallow)} WHERE k LIKE '%123'").rows == 1
    clone = index(spark, shallow)
    assert clone.root != source.root
    assert twins(spark, f"SELECT * FROM {t(shallow)} WHERE k LIKE '%123'").skipped == 3
    spark.sql(f"DELETE FROM {t(shallow)} WHERE id = 123")
    append(spark, shallow, 4, 1)
    clone.refresh()
    assert twins(spark, f"SELECT * FROM {t(shallow)} WHERE k LIKE '%123'").rows == 0
    assert twins(spark, f"SELECT * FROM {t(shallow)} WHERE k LIKE '%423'").skipped >= 3
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'").rows == 1


def test_types_that_were_widened(spark, table):
    spark.sql(f"CREATE TABLE {t(table)} (id INT, k STRING) USING delta TBLPROPERTIES (delta.enableTypeWidening=true)")
    for n in range(3):
        spark.sql(f"INSERT INTO {t(table)} SELECT id, concat('k', id) FROM range({n * 10}, {n * 10 + 10}, 1, 1)")
    index(spark, table, BloomFilterIndex("id"), SuffixIndex("k", length=2))
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE id = 13 AND k LIKE '%13'").rows == 1
    spark.sql(f"ALTER TABLE {t(table)} ALTER COLUMN id TYPE BIGINT")
    spark.sql(f"INSERT INTO {t(table)} VALUES (5000000000, 'x')")
    found = twins(spark, f"SELECT * FROM {t(table)} WHERE id = 5000000000")
    assert found.rows == 1
    assert "is bigint here, was int when indexed" in found.said
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%13'").skipped == 2


def test_row_ids(spark, table):
    make(spark, table, more="TBLPROPERTIES (delta.enableRowTracking=true)")
    index(spark, table)
    sql = f"SELECT id, _metadata.row_id, _metadata.row_commit_version FROM {t(table)} WHERE k LIKE '%123'"
    found = twins(spark, sql)
    assert (found.rows, found.skipped) == (1, 3)


def test_changes_and_streams_are_left_alone(spark, table, tmp_path):
    make(spark, table, more="TBLPROPERTIES (delta.enableChangeDataFeed=true)")
    index(spark, table)
    spark.sql(f"UPDATE {t(table)} SET m = 100 WHERE id = 123")
    sql = f"SELECT id, _change_type FROM table_changes_by_path('{table}', 1) WHERE k LIKE '%123'"
    assert twins(spark, sql).skipped == 0
    stream = spark.readStream.format("delta").load(table).where("k LIKE '%124'")
    query = (
        stream.writeStream.format("memory")
        .queryName("streamed")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    query.awaitTermination()
    assert spark.table("streamed").count() == 1


def test_writes_stand_aside(spark, table, tmp_path):
    make(spark, table)
    index(spark, table)
    other = str(tmp_path / "other")
    make(spark, other)
    statements = [
        f"DELETE FROM {t(table)} WHERE k LIKE '%123'",
        f"UPDATE {t(table)} SET m = -1 WHERE k LIKE '%124'",
        f"MERGE INTO {t(table)} a USING {t(other)} b ON a.id = b.id AND a.k LIKE '%125' WHEN MATCHED THEN DELETE",
        f"MERGE INTO {t(other)} a USING (SELECT * FROM {t(table)} WHERE k LIKE '%126') b ON a.id = b.id "
        "WHEN MATCHED THEN UPDATE SET m = -2",
        f"INSERT INTO {t(other)} SELECT * FROM {t(table)} WHERE k LIKE '%127'",
        f"INSERT OVERWRITE {t(other)} SELECT * FROM {t(table)} WHERE k LIKE '%128'",
        f"INSERT INTO {t(other)} REPLACE WHERE m = 2 SELECT * FROM {t(table)} WHERE k LIKE '%128' AND m = 2",
    ]
    said = []
    for statement in statements:
        with skipstone.skipping_stats(spark) as stats:
            spark.sql(statement)
        assert sum(scan.objects.skipped for scan in stats) == 0, statement
        said += [reason for scan in stats for reason in scan.not_used]
    assert any("while one is written" in reason for reason in said), said
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%129'").skipped >= 2
    frame = spark.read.format("delta").load(table).where("k LIKE '%129'")
    with skipstone.skipping_stats(spark) as stats:
        frame.write.parquet(str(tmp_path / "copy"))
    assert spark.read.parquet(str(tmp_path / "copy")).count() == 1


def test_a_table_that_a_stream_is_joined_with_is_left_alone(spark, table, tmp_path):
    """A sink writes what a batch gives, and Delta's starts its transaction after the batch was planned."""
    make(spark, table)
    index(spark, table)
    other = str(tmp_path / "other")
    make(spark, other, files=1)
    joined = spark.readStream.format("delta").load(other).select("id", F.col("m").alias("n"))
    kept = spark.read.format("delta").load(table).where("k LIKE '%k23'")
    into = str(tmp_path / "into")
    plan = streamed(joined.join(kept, "id"), tmp_path / "checkpoint", path=into, format_="delta")
    assert "SkippingDeltaIndex" not in plan, plan
    assert "SkipstoneScan" not in plan, plan
    assert spark.read.format("delta").load(into).count() == 1


def test_plans_that_run_later_read_what_they_should(spark, table):
    make(spark, table)
    index(spark, table)
    query = spark.sql(f"SELECT * FROM {t(table)} WHERE k LIKE '%123'")
    assert len(query.collect()) == 1
    assert _told(query) == (4, 3)
    append(spark, table, 4, 1)
    assert len(query.collect()) == 1  # of the version that was planned
    later = spark.sql(f"SELECT id FROM {t(table)} WHERE k LIKE '%124'")
    later._jdf.queryExecution().executedPlan()
    with conf(spark, {"spark.sql.parquet.binaryAsString": "true"}):
        with skipstone.skipping_stats(spark):
            assert len(later.collect()) == 1
        assert _told(later) == (5, 0)  # all are read, since files may be read otherwise


def _told(df):
    """Return how many objects the scan of a query that ran had, and how many it left out."""
    plan = df._jdf.queryExecution().executedPlan()
    while plan.nodeName() != "SkipstoneScan":
        plan = plan.executedPlan() if plan.nodeName() == "AdaptiveSparkPlan" else plan.children().head()
    return tuple(plan.metrics().apply(name).value() for name in ("objectsTotal", "objectsSkipped"))


def test_joins_first_rows_and_counts_leave_tables_alone(spark, table):
    make(spark, table)
    index(spark, table)
    keys = "SELECT id FROM range(12, 14)"
    found = twins(spark, f"SELECT /*+ BROADCAST(b) */ a.* FROM {t(table)} a JOIN ({keys}) b ON a.id = b.id")
    assert all(scan.joins is None and scan.objects.skipped == 0 for scan in found.scans)
    found = twins(spark, f"SELECT id FROM {t(table)} ORDER BY id DESC LIMIT 3")
    assert found.skipped == 0
    found = twins(spark, f"SELECT count(*) AS n, max(id) AS x FROM {t(table)} WHERE id >= 0 AND k IS NOT NULL")
    assert all(scan.aggregates is None for scan in found.scans)
    assert twins(spark, f"SELECT count(*) AS n FROM {t(table)} WHERE k LIKE '%123'").skipped == 3
    self_join = (
        f"SELECT a.id FROM {t(table)} a JOIN {t(table)} b ON a.id = b.id WHERE a.k LIKE '%123' AND b.k LIKE '%124'"
    )
    assert twins(spark, self_join).skipped == 6
    union = f"SELECT * FROM {t(table)} WHERE k LIKE '%123' UNION ALL SELECT * FROM {t(table)} WHERE k LIKE '%224'"
    found = twins(spark, union)
    assert (found.rows, found.skipped) == (2, 6)


def test_scans_that_delta_has_not_prepared_are_left_alone(spark, table):
    make(spark, table)
    dataset = index(spark, table)
    with conf(spark, {"spark.databricks.delta.stats.skipping": "false"}):
        found = twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'")
        assert found.skipped == 0
        assert "stats.skipping is off" in str(dataset.explain("k LIKE '%123'"))


def test_indicators_and_audits(spark, table):
    make(spark, table, more=DVS)
    spark.sql(f"DELETE FROM {t(table)} WHERE id % 100 IN (3, 23)")
    dataset = index(spark, table)
    # Of live rows: 123 is deleted, so that no row is relevant, and metadata, which has it, keeps its object.
    found = dataset.indicators("k LIKE '%123'")
    assert (found.objects, found.relevant_objects, found.kept_objects, found.rows) == (4, 0, 1, 392)
    found = dataset.indicators(["k LIKE '%124'", "id < 150 AND k LIKE '%24'", "m >= 0"])
    assert [(i.relevant_rows, i.relevant_objects, i.kept_objects) for i in found] == [(1, 1, 1), (2, 2, 2), (392, 4, 4)]
    assert [i.rows_in_kept_objects for i in found] == [98, 196, 392]
    assert "selectivity" in str(dataset.explain("k LIKE '%124'", indicators=True))
    audit = dataset.audit(["k LIKE '%124'", "id < 150 AND k LIKE '%124'"], objects=10)
    assert "no row is lost" in str(audit)
    with conf(spark, {"spark.skipstone.enabled": "false"}):
        assert dataset.indicators("k LIKE '%124'").kept_objects == 4


def test_audits_find_what_a_false_promise_loses(spark, table):
    make(spark, table, more="PARTITIONED BY (m)")
    index(spark, table, MinMaxIndex("id"))
    spark.udf.register("is_wanted", lambda number: number in (150, 250), "boolean")
    dataset = Dataset.for_path(spark, table, format="delta")
    for _ in range(5):  # a busy machine's workers may not say in time what they run
        skipstone.udf_filter(spark, "is_wanted", lambda number: ranges.between(number, 100, 199))  # 250 is not there
        (scan,) = dataset.explain("is_wanted(id)").scans
        if scan.objects.skipped:
            break
    with pytest.raises(SoundnessError):
        dataset.audit("is_wanted(id)", objects=100)
    with pytest.raises(SoundnessError):
        dataset.indicators("is_wanted(id)")


def test_what_is_refused(spark, table):
    make(spark, table)
    for travelled in (
        spark.read.format("delta").option("versionAsOf", 0).load(table),
        spark.sql(f"SELECT * FROM {t(table)} VERSION AS OF 1"),
        spark.read.format("delta").load(f"{table}@v1"),
    ):
        with pytest.raises(DatasetError, match="reads version"):
            Dataset(travelled)
    with pytest.raises(DatasetError, match="a filter"):
        Dataset(spark.read.format("delta").load(table).where("id = 1"))
    with pytest.raises(DatasetError, match="only a plain scan|DeltaCDF|cannot be read|not a scan"):
        Dataset(spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(table))
    with pytest.raises(DatasetError, match="cannot be read as delta"):
        Dataset.for_path(spark, table + "-none", format="delta")
    with pytest.raises(DatasetError, match="cannot be read as hudi"):
        Dataset.for_path(spark, table, format="hudi")


def test_a_table_whose_schema_changed_since(spark, table):
    make(spark, table)
    dataset = index(spark, table)
    spark.sql(f"CREATE OR REPLACE TABLE {t(table)} USING delta AS SELECT concat('k', id) AS id, id AS k FROM range(50)")
    with pytest.raises(DatasetError, match="cannot be listed"):
        dataset.refresh()
    found = twins(spark, f"SELECT * FROM {t(table)} WHERE id LIKE '%7'")
    assert found.rows == 5
    assert twins(spark, f"SELECT * FROM {t(table)} VERSION AS OF 1 WHERE k LIKE '%123'").skipped == 3
