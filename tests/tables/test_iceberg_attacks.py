"""Ways to lose rows of Iceberg tables that were tried: each gives the same rows, and files are skipped all the same."""

from __future__ import annotations

import json
import os

import pytest

from skipstone import BloomFilterIndex, Dataset, MinMaxIndex, SuffixIndex, ValueListIndex, skipping_stats
from skipstone.errors import DatasetError, SkipstoneError
from tests.tables.environment import FLAG
from tests.tables.iceberg import (
    MERGE_ON_READ,
    append,
    compared,
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


def indexed(spark, table, *indexes):
    dataset = Dataset.for_table(spark, table)
    dataset.create_indexes(*(indexes or (MinMaxIndex("id"), ValueListIndex("s"))))
    return dataset


def test_columns_that_swap_their_names(spark):
    table = new_table(spark, "a STRING, b STRING, n BIGINT")
    append(spark, table, ranges("concat('a', id) a, concat('b', id) b, id n", 3))
    one = snapshots(spark, table)[-1]
    indexed(spark, table, ValueListIndex("a"), ValueListIndex("b"), MinMaxIndex("n"))
    skipped(spark, f"SELECT * FROM {table} WHERE a = 'a5'", kept=1)
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        spark.sql(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}")
    for where in ("a = 'b5'", "b = 'a15'", "a = 'a5'"):
        left_alone(spark, f"SELECT * FROM {table} WHERE {where}")
    skipped(spark, f"SELECT * FROM {table} WHERE a = 'b5' AND n < 10", kept=1)
    # Iceberg reads an older snapshot by that one's columns.
    skipped(spark, f"SELECT * FROM {table} VERSION AS OF {one} WHERE a = 'a5'", kept=1)
    fresh = Dataset.for_table(spark, table)
    fresh.drop_indexes()
    indexed(spark, table, ValueListIndex("a"), ValueListIndex("b"))
    skipped(spark, f"SELECT * FROM {table} WHERE a = 'b5'", kept=1)
    old = f"SELECT * FROM {table} VERSION AS OF {one} WHERE a = 'a5'"
    assert len(without(spark, old)) == 1
    left_alone(spark, old)


def test_columns_that_differ_in_case_only_after_a_change(spark):
    table = new_table(spark, "a BIGINT, b BIGINT")
    append(spark, table, ranges("id a, -id b", 3))
    indexed(spark, table, MinMaxIndex("a"))
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN a TO c")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN c TO A")
    assert len(without(spark, f"SELECT * FROM {table} WHERE a = 5")) == 1
    compared(spark, f"SELECT * FROM {table} WHERE a = 5")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN A TO c")
    spark.sql(f"ALTER TABLE {table} RENAME COLUMN b TO a")
    left_alone(spark, f"SELECT * FROM {table} WHERE a = -5")


def test_columns_with_a_default(spark):
    """Files that were written before the column read as its first default, which a later one does not change."""
    table = new_table(spark, properties={"format-version": "3"})
    append(spark, table, numbers(0, 3))
    loaded = java_table(spark, table)
    jvm = spark._jvm
    of = jvm.org.apache.iceberg.expressions.Literal.of
    kind = getattr(jvm.org.apache.iceberg.types, "Types$LongType").get()
    loaded.updateSchema().addColumn("d", kind, "", of(7)).commit()
    spark.sql(f"REFRESH TABLE {table}")
    if len(without(spark, f"SELECT * FROM {table} WHERE d = 7")) != 30:
        pytest.skip("this release reads no first defaults")
    append(spark, table, ["SELECT 100L AS id, 's100' AS s, 8L AS d"])
    indexed(spark, table, MinMaxIndex("d"), ValueListIndex("s"))
    skipped(spark, f"SELECT * FROM {table} WHERE d = 8", kept=1)
    skipped(spark, f"SELECT * FROM {table} WHERE d = 7", kept=3)
    loaded.refresh()
    loaded.updateSchema().updateColumnDefault("d", of(9)).commit()
    spark.sql(f"REFRESH TABLE {table}")
    append(spark, table, ["SELECT 101L AS id, 's101' AS s, 9L AS d"])
    for value in (7, 8, 9):
        compared(spark, f"SELECT * FROM {table} WHERE d = {value}")


def test_a_table_in_its_place_has_another_first_default(spark):
    """Columns keep their ids by name when a table is replaced, and branches keep the files of the one before."""
    table = new_table(spark, properties={"format-version": "3"})
    append(spark, table, numbers(0, 3))
    loaded = java_table(spark, table)
    jvm = spark._jvm
    of = jvm.org.apache.iceberg.expressions.Literal.of
    kind = getattr(jvm.org.apache.iceberg.types, "Types$LongType").get()
    loaded.updateSchema().addColumn("d", kind, "", of(7)).commit()
    spark.sql(f"REFRESH TABLE {table}")
    spark.sql(f"ALTER TABLE {table} CREATE BRANCH side")
    side = f"SELECT * FROM {table} VERSION AS OF 'side'"
    query = f"{side} WHERE d = 8"
    if len(without(spark, f"{side} WHERE d = 7")) != 30:
        pytest.skip("this release reads no first defaults")
    indexed(spark, table, MinMaxIndex("d"), ValueListIndex("s"))
    skipped(spark, query, kept=0)
    loaded.refresh()
    before = loaded.operations().current()
    columns = jvm.java.util.ArrayList([before.schema().findField(name) for name in ("id", "s")])
    made = getattr(jvm.org.apache.iceberg.types, "Types$NestedField").optional("d")
    columns.add(made.withId(before.schema().findField("d").fieldId()).ofType(kind).withInitialDefault(of(8)).build())
    properties = jvm.java.util.HashMap(before.properties())
    after = before.buildReplacement(
        jvm.org.apache.iceberg.Schema(columns), before.spec(), before.sortOrder(), before.location(), properties
    )
    loaded.operations().commit(before, after)
    spark.sql(f"REFRESH TABLE {table}")
    assert len(without(spark, query)) == 30
    left_alone(spark, query)
    skipped(spark, f"{query} AND s = 's5'", kept=1)


def test_a_mapping_of_names_that_changed_since(spark, tmp_path):
    """A dataset that was made before collects nothing that it would call by the names of before."""
    table = new_table(spark, "a BIGINT, b BIGINT")
    for place, first in (("one", 0), ("two", 100)):
        for n in range(2):
            numbered = spark.range(first + n * 10, first + n * 10 + 10, 1, 1).selectExpr("id AS a", "-id AS b")
            numbered.write.mode("append").parquet(str(tmp_path / place))
    added = f"source_table => '`parquet`.`{tmp_path}/{{}}`'"
    procedure(spark, table, "add_files", added.format("one"))
    dataset = indexed(spark, table, MinMaxIndex("a"))
    told = spark.sql(f"SHOW TBLPROPERTIES {table} ('schema.name-mapping.default')").head().value
    procedure(spark, table, "add_files", added.format("two"))
    turned = json.loads(told)
    turned[0]["names"], turned[1]["names"] = ["b"], ["a"]
    change = f"ALTER TABLE {table} SET TBLPROPERTIES ('schema.name-mapping.default' = '{{}}')"
    spark.sql(change.format(json.dumps(turned)))
    assert len(without(spark, f"SELECT * FROM {table} WHERE a = -105")) == 1
    with pytest.raises(SkipstoneError, match="read the table anew|cannot be refreshed"):
        dataset.refresh()
    compared(spark, f"SELECT * FROM {table} WHERE a = -105")
    spark.sql(change.format(json.dumps(json.loads(told))))
    assert len(without(spark, f"SELECT * FROM {table} WHERE a = 105")) == 1
    (scan,) = skipped(spark, f"SELECT * FROM {table} WHERE a = 105", kept=2)
    assert scan.objects.unindexed == 2, scan


def test_several_snapshots_and_branches_in_one_query(spark):
    table = new_table(spark, properties=MERGE_ON_READ)
    append(spark, table, numbers(0, 3))
    one = snapshots(spark, table)[-1]
    indexed(spark, table)
    spark.sql(f"ALTER TABLE {table} CREATE BRANCH side")
    spark.sql(f"DELETE FROM {table} WHERE id IN (5, 15)")
    append(spark, f"{table}.branch_side", numbers(30, 1))
    old, now, side = (
        f"SELECT id FROM {table} {where}" for where in (f"VERSION AS OF {one}", "", "VERSION AS OF 'side'")
    )
    query = f"{old} WHERE s = 's5' UNION ALL {now} WHERE s = 's5' UNION ALL {side} WHERE s = 's5'"
    assert len(without(spark, query)) == 2
    assert sum(scan.objects.skipped for scan in skipped(spark, query)) == 6
    skipped(spark, f"{old} WHERE s = 's15' EXCEPT {now} WHERE s = 's15'")
    skipped(spark, f"SELECT a.id FROM ({old} WHERE s = 's5') a LEFT JOIN ({now} WHERE s = 's5') b USING (id)")


def test_subqueries_that_spark_merges_into_one(spark):
    table = new_table(spark)
    append(spark, table, numbers(0, 4))
    indexed(spark, table)
    ask = f"(SELECT {{}}(id) FROM {table} WHERE s = 's{{}}')"
    skipped(spark, f"SELECT {ask.format('max', 5)} a, {ask.format('min', 25)} b, {ask.format('sum', 5)} c")
    skipped(spark, f"SELECT {ask.format('max', 5)} a, {ask.format('min', 5)} b, (SELECT max(id) FROM {table}) c")


def test_planned_before_a_commit_and_run_after(spark):
    table = new_table(spark, properties=MERGE_ON_READ)
    append(spark, table, numbers(0, 3))
    indexed(spark, table)
    planned = [spark.sql(f"SELECT id FROM {table} WHERE s = 's5'") for _ in range(2)]
    for df in planned:
        df._jdf.queryExecution().executedPlan()
    spark.sql(f"DELETE FROM {table} WHERE id < 8")
    spark.sql(f"UPDATE {table} SET s = 's5' WHERE id = 25")
    assert [r.id for r in planned[0].collect()] == [5]  # of the snapshot that was planned
    with setting(spark, spark__sql__caseSensitive="true"):
        assert [r.id for r in planned[1].collect()] == [5]
    assert [r.id for r in spark.sql(f"SELECT id FROM {table} WHERE s = 's5'").collect()] == [25]


def test_cached_across_commits_and_sessions(spark):
    table = new_table(spark, properties=MERGE_ON_READ)
    append(spark, table, numbers(0, 3))
    indexed(spark, table)
    spark.sql(f"CACHE TABLE kept AS SELECT * FROM {table} WHERE s LIKE 's%5'")
    try:
        assert spark.table("kept").count() == 3
        append(spark, table, numbers(30, 1))
        other = spark.newSession()
        other.sql(f"DELETE FROM {table} WHERE id = 5")
        for session in (spark, other):
            compared(session, f"SELECT * FROM {table} WHERE s = 's5'")
            skipped(session, f"SELECT * FROM {table} WHERE s = 's35'")
        spark.sql(f"CACHE TABLE {table}")
        compared(spark, f"SELECT * FROM {table} WHERE s = 's15'")
        append(spark, table, numbers(40, 1))
        assert spark.sql(f"SELECT * FROM {table} WHERE s = 's45'").count() == 1
    finally:
        spark.sql(f"UNCACHE TABLE IF EXISTS {table}")
        spark.sql("UNCACHE TABLE IF EXISTS kept")


def test_views_that_call_columns_otherwise(spark):
    table = new_table(spark, "id BIGINT, s STRING, m BIGINT")
    append(spark, table, ranges("id, concat('s', id) s, id % 7 m", 4))
    indexed(spark, table, MinMaxIndex("id"), ValueListIndex("m"), ValueListIndex("s"))
    spark.sql(f"CREATE OR REPLACE TEMP VIEW turned AS SELECT m AS id, id AS m, reverse(s) AS s FROM {table}")
    skipped(spark, "SELECT * FROM turned WHERE m = 25", kept=1)
    compared(spark, "SELECT * FROM turned WHERE id = 3 AND s LIKE '5%'")
    compared(spark, "SELECT * FROM turned WHERE s = '52s'")
    spark.sql("CREATE OR REPLACE TEMP VIEW some AS SELECT * FROM turned WHERE m > 15 LIMIT 5")
    compared(spark, "SELECT * FROM some WHERE m = 5")


def test_only_the_first_rows_of_what_is_filtered_later(spark):
    table = new_table(spark)
    append(spark, table, numbers(0, 4))
    indexed(spark, table)
    for inner in (
        f"SELECT * FROM {table} ORDER BY id LIMIT 15",
        f"SELECT * FROM {table} ORDER BY id OFFSET 35",
        f"SELECT id, lag(s) OVER (ORDER BY id) AS s FROM {table}",
    ):
        compared(spark, f"SELECT * FROM ({inner}) WHERE s = 's14' OR s = 's19'")
    lagged = f"SELECT id, s, lag(s) OVER (ORDER BY id) AS before FROM {table}"
    assert len(without(spark, f"SELECT * FROM ({lagged}) WHERE id = 20 AND before = 's19'")) == 1
    compared(spark, f"SELECT * FROM ({lagged}) WHERE id = 20 AND before = 's19'")


def test_deleted_rows_that_a_query_asks_for(spark):
    """The column _deleted brings them back."""
    table = new_table(spark, properties=MERGE_ON_READ)
    append(spark, table, numbers(0, 3))
    spark.sql(f"DELETE FROM {table} WHERE id IN (5, 15)")
    indexed(spark, table)
    query = f"SELECT id, _deleted, _file IS NULL, _pos FROM {table} WHERE s IN ('s5', 's6')"
    assert len(without(spark, query)) == 2
    skipped(spark, query, kept=1)


def test_replaced_by_a_table_of_the_same_names(spark):
    table = new_table(spark, "id BIGINT, s STRING, v BIGINT")
    append(spark, table, ranges("id, concat('s', id) s, id v", 3))
    one = snapshots(spark, table)[-1]
    indexed(spark, table, ValueListIndex("s"), MinMaxIndex("v"), MinMaxIndex("id"))
    spark.sql(
        f"CREATE OR REPLACE TABLE {table} USING iceberg TBLPROPERTIES ('write.metadata.metrics.default' = 'none') "
        "AS SELECT concat('v', id) AS v, concat('s', 100 + id) AS s, id FROM range(10)"
    )
    for where in ("s = 's105'", "v = 'v5'", "id = 5"):
        compared(spark, f"SELECT * FROM {table} WHERE {where}")
    fresh = Dataset.for_table(spark, table)
    fresh.drop_indexes()
    indexed(spark, table, ValueListIndex("s"), ValueListIndex("v"))
    for where in ("s = 's5'", "v = 5"):
        if where == "v = 5" and os.environ[FLAG] == "4.0":
            continue  # Iceberg 1.11 itself raises an error: it filters an older snapshot by the types of the newest one
        old = f"SELECT * FROM {table} VERSION AS OF {one} WHERE {where}"
        assert len(without(spark, old)) == 1
        compared(spark, old)


def test_added_again_under_another_partition(spark, tmp_path):
    """A partition's value is said by the table, not by the file: the same file may be of another one later."""
    table = new_table(spark, "id BIGINT, p INT", partitioned="p")
    for part in range(3):
        spark.sql(f"SELECT id FROM range({part * 10}, {part * 10 + 10})").coalesce(1).write.parquet(
            str(tmp_path / "files" / f"p={part}")
        )
    procedure(spark, table, "add_files", f"source_table => '`parquet`.`{tmp_path / 'files'}`'")
    indexed(spark, table, MinMaxIndex("p"), MinMaxIndex("id"))
    compared(spark, f"SELECT * FROM {table} WHERE p + 0 = 1 OR p = 1")
    loaded = java_table(spark, table)
    tasks = loaded.newScan().planFiles().iterator()
    file = next(
        f for f in iter(lambda: tasks.next().file() if tasks.hasNext() else None, None) if "p=1/" in f.location()
    )
    builder = spark._jvm.org.apache.iceberg.DataFiles.builder(loaded.spec())
    again = builder.withPath(file.location()).withFormat("parquet").withFileSizeInBytes(file.fileSizeInBytes())
    again = again.withRecordCount(10).withPartitionPath("p=9").build()
    loaded.newDelete().deleteFile(file).commit()
    loaded.newAppend().appendFile(again).commit()
    spark.sql(f"REFRESH TABLE {table}")
    query = f"SELECT * FROM {table} WHERE p = 9 OR id = -1"
    assert len(without(spark, query)) == 10
    compared(spark, query)
    compared(spark, f"SELECT * FROM {table} WHERE p = 1 OR id = 25")
    Dataset.for_table(spark, table).refresh()
    skipped(spark, query, kept=1)


def test_what_came_between_two_snapshots(spark):
    table = new_table(spark)
    append(spark, table, numbers(0, 3))
    indexed(spark, table)
    first, *_, last = snapshots(spark, table)
    with skipping_stats(spark) as stats:
        frame = spark.read.option("start-snapshot-id", first).option("end-snapshot-id", last).table(table)
        assert frame.where("s = 's25'").count() == 1
    assert not [scan for scan in stats if scan.objects.skipped]
    left_alone(spark, f"SELECT * FROM {table}.changes WHERE s = 's25'")


@pytest.mark.parametrize("mode", ["distributed", "local"])
def test_wherever_files_are_planned(spark, mode):
    properties = {**MERGE_ON_READ, "read.data-planning-mode": mode, "read.delete-planning-mode": mode}
    table = new_table(spark, properties=properties)
    append(spark, table, numbers(0, 3))
    spark.sql(f"DELETE FROM {table} WHERE id = 5")
    indexed(spark, table)
    skipped(spark, f"SELECT * FROM {table} WHERE s = 's15'", kept=1)
    skipped(spark, f"SELECT * FROM {table} WHERE s = 's5'", kept=1)


def test_a_branch_that_all_reads_go_to(spark):
    """Write, audit, publish: a setting of the session lets every read be of a branch."""
    table = new_table(spark, properties={"write.wap.enabled": "true"})
    append(spark, table, numbers(0, 3))
    indexed(spark, table)
    with setting(spark, spark__wap__branch="audit"):
        append(spark, table, numbers(30, 1))
        skipped(spark, f"SELECT * FROM {table} WHERE s = 's35'", kept=1)
        with pytest.raises(DatasetError, match="the branch audit"):
            Dataset.for_table(spark, table)
    skipped(spark, f"SELECT * FROM {table} WHERE s = 's35'", kept=0)
    procedure(spark, table, "fast_forward", "branch => 'main', to => 'audit'")
    skipped(spark, f"SELECT * FROM {table} WHERE s = 's35'")


def test_types_that_spark_has_no_own_of(spark):
    table = new_table(spark, "id BIGINT, b BINARY, d DECIMAL(20, 5), t TIMESTAMP, n TIMESTAMP_NTZ, f DOUBLE")
    query = (
        "id, CAST(concat('b', id) AS BINARY) b, CAST(id / 7 AS DECIMAL(20, 5)) d, timestamp_seconds(id * 86400) t, "
        "CAST(timestamp_seconds(id * 86400) AS TIMESTAMP_NTZ) n, IF(id % 10 = 3, DOUBLE('NaN'), id + 0.5D) f"
    )
    append(spark, table, ranges(query, 3))
    indexed(spark, table, *(MinMaxIndex(c) for c in "dtnf"), BloomFilterIndex("b"))
    for where in (
        "b = X'623135'",
        "d = 2.14286",
        "t = TIMESTAMP'1970-01-16 00:00:00'",
        "n = TIMESTAMP_NTZ'1970-01-16 00:00:00'",
        "f = 15.5",
    ):
        skipped(spark, f"SELECT * FROM {table} WHERE {where}")
    for where in ("f > 100", "f = DOUBLE('NaN')", "NOT f < 100", "f <> 15.5"):
        compared(spark, f"SELECT * FROM {table} WHERE {where}")
    with setting(spark, spark__sql__session__timeZone="Asia/Kolkata"):
        compared(spark, f"SELECT * FROM {table} WHERE t = TIMESTAMP'1970-01-16 05:30:00'")
        compared(spark, f"SELECT * FROM {table} WHERE t < n AND n = TIMESTAMP_NTZ'1970-01-16 00:00:00'")


def test_suffixes_in_all_formats_of_files(spark):
    for kind in ("parquet", "orc", "avro"):
        table = new_table(spark, properties={"write.format.default": kind, **MERGE_ON_READ})
        append(spark, table, numbers(0, 3))
        spark.sql(f"DELETE FROM {table} WHERE id = 5")
        indexed(spark, table, SuffixIndex("s", length=2))
        assert rows(spark.sql(f"SELECT * FROM {table} WHERE s LIKE '%s7'")) == ["Row(id=7, s='s7')"]
        skipped(spark, f"SELECT * FROM {table} WHERE s LIKE '%s7'", kept=1)


def test_indicators_and_audits(spark):
    table = new_table(spark, "id BIGINT, s STRING, n STRUCT<a: BIGINT, b: STRING>", properties=MERGE_ON_READ)
    append(spark, table, ranges("id, concat('s', id) s, named_struct('a', id, 'b', 'x') n", 4))
    one = snapshots(spark, table)[-1]
    spark.sql(f"DELETE FROM {table} WHERE id % 10 = 3")
    dataset = indexed(spark, table, SuffixIndex("s", length=2), MinMaxIndex("id"), MinMaxIndex("n.a"))
    # Of live rows: 13 is deleted, so that no row is relevant, and metadata, which has it, keeps its object.
    found = dataset.indicators("s LIKE '%13'")
    assert (found.objects, found.relevant_objects, found.kept_objects, found.rows) == (4, 0, 1, 36)
    found = dataset.indicators(["s LIKE '%14'", "n.a = 25", "id >= 0"])
    assert [(i.relevant_rows, i.relevant_objects, i.kept_objects) for i in found] == [(1, 1, 1), (1, 1, 1), (36, 4, 4)]
    assert [i.rows_in_kept_objects for i in found] == [9, 9, 36]
    assert "selectivity" in str(dataset.explain("s LIKE '%14'", indicators=True))
    audit = dataset.audit(["s LIKE '%14'", "n.a = 25 AND _pos >= 0"], objects=10)
    assert "no row is lost" in str(audit)
    old = spark.sql(f"SELECT id FROM {table} VERSION AS OF {one} WHERE s LIKE '%13'")
    found = dataset.indicators(old)
    assert (found.objects, found.relevant_objects, found.kept_objects, found.rows) == (4, 1, 1, 40)
    inner = f"SELECT max(id) FROM {table} WHERE s LIKE '%14'"
    found = dataset.indicators(spark.sql(f"SELECT * FROM {table} WHERE id = ({inner})"))
    assert found.kept_objects >= found.relevant_objects > 0
