"""Ways to lose rows of Delta tables that were tried: each gives the same rows, and files are skipped all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skipstone import BloomFilterIndex, Dataset, MinMaxIndex, SuffixIndex, ValueListIndex
from tests.tables.delta import DVS, MAPPED, NO_STATISTICS, append, index, make, t
from tests.tables.support import conf, skipping_off, twins


def insert(spark, path, query):
    """Insert the rows of a query as one file."""
    spark.sql(query).coalesce(1).write.format("delta").mode("append").save(path)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_that_swap_their_names(spark, table, mode):
    spark.sql(f"CREATE TABLE {t(table)} (a STRING, b STRING, n BIGINT) USING delta {MAPPED.format(mode)}")
    for n in range(3):
        insert(spark, table, f"SELECT concat('a', id) a, concat('b', id) b, id n FROM range({n * 10}, {n * 10 + 10})")
    index(spark, table, ValueListIndex("a"), ValueListIndex("b"), MinMaxIndex("n"))
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE a = 'a5'").skipped == 2
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        spark.sql(f"ALTER TABLE {t(table)} RENAME COLUMN {old} TO {new}")
    for where, skipped in (
        ("a = 'b5'", 0),
        ("b = 'a15'", 0),
        ("a = 'a5'", 0),
        ("n = 5", 2),
        ("a = 'b5' AND n < 10", 2),
    ):
        found = twins(spark, f"SELECT * FROM {t(table)} WHERE {where}")
        assert (found.rows, found.skipped) == (0 if where == "a = 'a5'" else 1, skipped), where
    # In the version before, names are what they were; an index of now does not speak for them.
    assert twins(spark, f"SELECT * FROM {t(table)} VERSION AS OF 3 WHERE a = 'a5'").skipped == 2
    dataset = Dataset.for_path(spark, table, format="delta")
    dataset.drop_indexes()
    dataset.create_indexes(ValueListIndex("a"), ValueListIndex("b"))
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE a = 'b5'").skipped == 2
    old = twins(spark, f"SELECT * FROM {t(table)} VERSION AS OF 3 WHERE a = 'a5'")
    assert (old.rows, old.skipped) == (1, 0)
    spark.sql(f"RESTORE TABLE {t(table)} TO VERSION AS OF 3")
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE a = 'a5' OR b = 'b25'").rows == 2


def test_mapping_that_begins_after_indexing(spark, table):
    make(spark, table, more=NO_STATISTICS)
    index(spark, table)
    spark.sql(
        f"ALTER TABLE {t(table)} SET TBLPROPERTIES (delta.columnMapping.mode='name', delta.minReaderVersion=2, "
        "delta.minWriterVersion=5)"
    )
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'").skipped == 3
    spark.sql(f"ALTER TABLE {t(table)} RENAME COLUMN k TO kept")
    spark.sql(f"ALTER TABLE {t(table)} ADD COLUMN k STRING")
    insert(spark, table, "SELECT 999L id, 'x' kept, 0L m, 'k123' k")
    for where, rows in (("k LIKE '%123'", 1), ("kept LIKE '%123'", 1), ("k IS NULL", 400)):
        assert twins(spark, f"SELECT * FROM {t(table)} WHERE {where}").rows == rows
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE id = 123 AND kept LIKE '%123'").skipped >= 3


def test_partitions_that_are_timestamps_in_other_zones(spark, table):
    """Without UTC in the log, the same text is another moment in another zone."""
    with conf(spark, {"spark.databricks.delta.write.utcTimestampPartitionValues": "false"}):
        with conf(spark, {"spark.sql.session.timeZone": "America/New_York"}):
            spark.sql(f"CREATE TABLE {t(table)} (k STRING, p TIMESTAMP) USING delta PARTITIONED BY (p)")
            for n in range(4):
                insert(spark, table, f"SELECT concat('k', id) k, TIMESTAMP'2024-01-0{n + 1} 00:00:00' p FROM range(10)")
            index(spark, table, MinMaxIndex("p"), SuffixIndex("k", length=2))
            # So that Delta cannot prune: the other side of the OR is nothing that it serves.
            found = twins(spark, f"SELECT * FROM {t(table)} WHERE p = TIMESTAMP'2024-01-02 05:00:00Z' OR k LIKE '%zz'")
            assert (found.rows, found.skipped) == (10, 0)
            assert "timestamps in the names of partitions are read by the zone" in found.said
            assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%zz'").skipped == 4
        for zone in ("UTC", "Asia/Kolkata"):
            with conf(spark, {"spark.sql.session.timeZone": zone}):
                for hour in (0, 5):
                    moment = f"TIMESTAMP'2024-01-02 0{hour}:00:00Z'"
                    for where in (f"p = {moment}", f"p = {moment} OR k LIKE '%zz'", f"p >= {moment} AND k LIKE '%5'"):
                        twins(spark, f"SELECT * FROM {t(table)} WHERE {where}")
                with skipping_off(spark):
                    here = spark.sql(f"SELECT p FROM {t(table)} WHERE p = TIMESTAMP'2024-01-02 00:00:00'").count()
                assert here == 10  # of this zone


def test_versions_in_one_query(spark, table):
    make(spark, table, more=DVS)
    index(spark, table)
    spark.sql(f"DELETE FROM {t(table)} WHERE id IN (123, 224)")
    append(spark, table, 4, 1)
    one, now = f"SELECT id FROM {t(table)} VERSION AS OF 1", f"SELECT id FROM {t(table)}"
    found = twins(spark, f"{one} WHERE k LIKE '%123' UNION ALL {now} WHERE k LIKE '%123'")
    assert (found.rows, found.skipped) == (1, 6)
    found = twins(spark, f"{one} WHERE k LIKE '%224' EXCEPT {now} WHERE k LIKE '%224'")
    assert (found.rows, found.skipped) == (1, 6)
    found = twins(
        spark, f"SELECT a.id FROM ({one} WHERE k LIKE '%123') a LEFT JOIN ({now} WHERE k LIKE '%123') b USING (id)"
    )
    assert (found.rows, found.skipped) == (1, 6)


def test_subqueries_that_spark_merges_into_one(spark, table):
    """Scalar subqueries over one table become one scan, unless other files are kept of it."""
    make(spark, table)
    index(spark, table)
    ask = f"(SELECT {{}}(id) FROM {t(table)} WHERE k LIKE '%{{}}')"
    found = twins(spark, f"SELECT {ask.format('max', 123)} a, {ask.format('min', 224)} b, {ask.format('sum', 123)} c")
    assert found.skipped >= 6
    found = twins(
        spark, f"SELECT {ask.format('max', 123)} a, {ask.format('min', 123)} b, (SELECT max(m) FROM {t(table)}) c"
    )
    assert found.skipped >= 3


def test_the_same_scan_twice_in_a_plan(spark, table):
    make(spark, table)
    index(spark, table)
    one, other = (f"SELECT m, count(*) c FROM {t(table)} WHERE k LIKE '%{n}' GROUP BY m" for n in ("k5", "99"))
    assert twins(spark, f"{one} UNION ALL {other}").skipped >= 3
    assert twins(spark, f"SELECT * FROM ({one}) a FULL JOIN ({other}) b ON a.m = b.m").skipped >= 3
    same = f"SELECT * FROM ({one}) a JOIN ({one}) b ON a.m = b.m"
    assert twins(spark, same).skipped >= 6


def test_partitions_that_spark_prunes_while_it_runs(spark, table, tmp_path):
    df = spark.range(0, 400, 1, 1).selectExpr("id", "concat('k', id) AS k", "id DIV 100 AS p")
    df.write.format("delta").option("delta.dataSkippingNumIndexedCols", "0").partitionBy("p").save(table)
    index(spark, table, SuffixIndex("k", length=2), ValueListIndex("k"))
    small = str(tmp_path / "small")
    spark.sql("SELECT id AS p, concat('n', id) AS name FROM range(4)").write.format("delta").save(small)
    query = (
        f"SELECT f.* FROM {t(table)} f JOIN {t(small)} d ON f.p = d.p WHERE d.name IN ('n1', 'n2') "
        "AND f.k IN ('k123', 'k323')"
    )
    with conf(spark, {"spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": "false"}):
        found = twins(spark, query)
        assert (found.rows, found.skipped) == (1, 2)
        plan = spark.sql(query)._jdf.queryExecution().executedPlan().toString()
    assert "dynamicpruning" in plan, plan


def test_cached_across_commits_and_sessions(spark, table):
    make(spark, table)
    index(spark, table)
    kept = spark.read.format("delta").load(table).where("k LIKE '%23'").cache()
    try:
        assert kept.count() == 4
        append(spark, table, 4, 1)
        other = spark.newSession()
        other.sql(f"DELETE FROM {t(table)} WHERE id = 123")
        for session in (spark, other):
            assert twins(session, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'").rows == 0
            found = twins(session, f"SELECT * FROM {t(table)} WHERE k LIKE '%423'")
            assert (found.rows, found.skipped) == (1, 3)  # of the files, one is new, and one is its own anew
    finally:
        kept.unpersist()


def test_planned_before_a_commit_and_run_after(spark, table):
    make(spark, table, more=DVS)
    index(spark, table)
    planned = [spark.sql(f"SELECT id FROM {t(table)} WHERE k LIKE '%123'") for _ in range(2)]
    for df in planned:
        df._jdf.queryExecution().executedPlan()
    spark.sql(f"DELETE FROM {t(table)} WHERE id BETWEEN 100 AND 150")
    spark.sql(f"UPDATE {t(table)} SET k = 'k123' WHERE id = 7")
    assert [r.id for r in planned[0].collect()] == [123]  # of the version that was planned
    with conf(spark, {"spark.sql.caseSensitive": "true"}):  # and of all files, since the settings are others
        assert [r.id for r in planned[1].collect()] == [123]
    assert [r.id for r in spark.sql(f"SELECT id FROM {t(table)} WHERE k LIKE '%123'").collect()] == [7]


def test_views_that_call_columns_otherwise(spark, table):
    make(spark, table, more=NO_STATISTICS)
    index(spark, table)
    spark.sql(f"CREATE OR REPLACE TEMP VIEW turned AS SELECT m AS id, id AS m, reverse(k) AS k FROM {t(table)}")
    assert twins(spark, "SELECT * FROM turned WHERE m = 123").skipped == 3
    assert twins(spark, "SELECT * FROM turned WHERE id = 3 AND m < 100").skipped == 3
    assert twins(spark, "SELECT * FROM turned WHERE k LIKE '321%'").rows == 1
    spark.sql("CREATE OR REPLACE TEMP VIEW some AS SELECT * FROM turned WHERE m > 250 LIMIT 5")
    assert twins(spark, "SELECT * FROM some WHERE m = 123").rows == 0


def test_only_the_first_rows_of_what_is_filtered_later(spark, table):
    """A filter above LIMIT, OFFSET, a window or a sample says nothing of the rows below."""
    make(spark, table)
    index(spark, table)
    for inner in (
        f"SELECT * FROM {t(table)} ORDER BY id LIMIT 10",
        f"SELECT * FROM {t(table)} ORDER BY id OFFSET 395",
        f"SELECT id, k, m, row_number() OVER (ORDER BY id) AS r FROM {t(table)}",
        f"SELECT id, k, m, lag(k) OVER (ORDER BY id) AS r FROM {t(table)}",
    ):
        twins(spark, f"SELECT * FROM ({inner}) WHERE k LIKE '%123' OR m = 100")
    lagged = f"SELECT id, k, lag(k) OVER (ORDER BY id) AS before FROM {t(table)}"
    assert twins(spark, f"SELECT * FROM ({lagged}) WHERE id = 200 AND before = 'k199'").rows == 1


def test_replaced_by_a_table_of_the_same_names(spark, table):
    make(spark, table, more=MAPPED.format("name"))
    index(spark, table)
    spark.sql(
        f"CREATE OR REPLACE TABLE {t(table)} USING delta {MAPPED.format('name')} "
        "AS SELECT id, concat('k', 1000 + id) AS k, id AS m FROM range(50)"
    )
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%1023'").rows == 1
    assert twins(spark, f"SELECT * FROM {t(table)} VERSION AS OF 1 WHERE k LIKE '%123'").rows == 1
    fresh = Dataset.for_path(spark, table, format="delta")
    fresh.drop_indexes()
    fresh.create_indexes(MinMaxIndex("m"), SuffixIndex("k", length=3))
    spark.sql(f"RESTORE TABLE {t(table)} TO VERSION AS OF 1")
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE m = 6").rows == 57
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'").rows == 1


def test_widened_and_restored(spark, table):
    spark.sql(
        f"CREATE TABLE {t(table)} (n TINYINT, f FLOAT, id BIGINT) USING delta "
        "TBLPROPERTIES (delta.enableTypeWidening=true, delta.dataSkippingNumIndexedCols=0)"
    )
    for n in range(3):
        insert(
            spark,
            table,
            f"SELECT CAST(id AS TINYINT) n, CAST(id + 0.1 AS FLOAT) f, id FROM range({n * 10}, {n * 10 + 10})",
        )
    index(spark, table, BloomFilterIndex("n"), ValueListIndex("f"), MinMaxIndex("id"))
    spark.sql(f"ALTER TABLE {t(table)} ALTER COLUMN n TYPE INT")
    spark.sql(f"ALTER TABLE {t(table)} ALTER COLUMN f TYPE DOUBLE")
    insert(spark, table, "SELECT 5 n, 5.1D f, 100L id")
    for where in ("n = 5", "f = CAST(5.1 AS FLOAT)", "f = 5.1D"):
        twins(spark, f"SELECT * FROM {t(table)} WHERE {where}")
    fresh = Dataset.for_path(spark, table, format="delta")
    fresh.drop_indexes()
    fresh.create_indexes(BloomFilterIndex("n"), ValueListIndex("f"), MinMaxIndex("id"))
    found = twins(spark, f"SELECT * FROM {t(table)} WHERE n = 5")
    assert (found.rows, found.skipped) == (2, 2)
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE f = CAST(CAST(5.1 AS FLOAT) AS DOUBLE)").skipped == 3
    for version in (1, 3):
        twins(spark, f"SELECT * FROM {t(table)} VERSION AS OF {version} WHERE n = 5 OR f = CAST(15.1 AS FLOAT)")
    spark.sql(f"RESTORE TABLE {t(table)} TO VERSION AS OF 3")
    for where in ("n = 5", "f = CAST(15.1 AS FLOAT)"):
        assert twins(spark, f"SELECT * FROM {t(table)} WHERE {where}").rows == 1


def test_clustered(spark, table):
    spark.sql(f"CREATE TABLE {t(table)} (id BIGINT, k STRING, m BIGINT) USING delta CLUSTER BY (m)")
    append(spark, table, 0, 4)
    index(spark, table)
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'").skipped == 3
    spark.sql(f"OPTIMIZE {t(table)}")
    Dataset.for_path(spark, table, format="delta").refresh()
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'").rows == 1


def test_a_query_while_a_transaction_is_under_way(spark, table):
    """Its files are what the check for conflicts looks at."""
    make(spark, table)
    index(spark, table)
    jvm = spark._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, table)
    companion = getattr(jvm.org.apache.spark.sql.delta, "OptimisticTransaction$").__getattr__("MODULE$")
    companion.setActive(log.startTransaction())
    try:
        found = twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'")
    finally:
        companion.clearActive()
    assert found.skipped == 0
    assert "while one is written" in found.said
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE k LIKE '%123'").skipped == 3


def test_names_with_anything_in_them(spark, tmp_path):
    path = str(tmp_path / "a table%20 of ü=1 +#")
    spark.sql(
        f"CREATE TABLE {t(path)} (`i d` BIGINT, `a.b` STRING, P STRING) USING delta PARTITIONED BY (P) "
        f"{MAPPED.format('name')}"
    )
    for part in ("a b", "x%20y", "ü=1", "a/b#c+d"):
        for letter in "st":
            insert(spark, path, f"SELECT id AS `i d`, concat('{letter}', id) AS `a.b`, '{part}' AS P FROM range(10)")
    index(spark, path, ValueListIndex("`a.b`"), MinMaxIndex("`i d`"))
    for where, skipped in (("`a.b` = 's5'", 4), ("`a.b` = 't5' AND P = 'x%20y'", 1), ("`a.b` = 'none'", 8)):
        assert twins(spark, f"SELECT * FROM {t(path)} WHERE {where}").skipped == skipped, where
    spark.sql(f"DELETE FROM {t(path)} WHERE P = 'a b' AND `i d` = 5")
    Dataset.for_path(spark, path, format="delta").refresh()
    assert twins(spark, f"SELECT * FROM {t(path)} WHERE `a.b` = 's5'").rows == 3


def test_defaults_of_columns_that_files_lack(spark, tmp_path):
    """Delta has none of its own, but a table that was converted keeps those that its catalog had."""
    path = tmp_path / "t"
    spark.sql(f"CREATE TABLE converted (id BIGINT, k STRING) USING parquet LOCATION '{path}'")
    try:
        for n in range(3):
            numbers = spark.range(n * 10, n * 10 + 10, 1, 1).selectExpr("id", "concat('k', id) AS k")
            numbers.write.mode("append").parquet(str(path))
        spark.sql("ALTER TABLE converted ADD COLUMN d BIGINT DEFAULT 5")
        spark.sql("CONVERT TO DELTA converted NO STATISTICS")
        index(spark, str(path), MinMaxIndex("d"), SuffixIndex("k", length=2))
        assert twins(spark, f"SELECT * FROM {t(path)} WHERE d = 6").skipped == 3
        (changed,) = (action for action in actions(path, 0) if "metaData" in action)
        schema = json.loads(changed["metaData"]["schemaString"])
        schema["fields"][2]["metadata"]["EXISTS_DEFAULT"] = "6"
        changed["metaData"]["schemaString"] = json.dumps(schema)
        commit(path, changed)
        found = twins(spark, f"SELECT * FROM {t(path)} WHERE d = 6")
        assert (found.rows, found.skipped) == (30, 0)
        assert "d is declared with another default" in found.said
        assert twins(spark, f"SELECT * FROM {t(path)} WHERE d = 6 AND k LIKE '%k7'").skipped == 2
    finally:
        spark.sql("DROP TABLE converted")


def test_added_again_under_another_partition(spark, table):
    """A partition's value is said by the log, not by the file: the same file may be of another one later."""
    spark.sql(f"CREATE TABLE {t(table)} (id BIGINT, p INT, q INT) USING delta PARTITIONED BY (p, q)")
    for n in range(3):
        insert(spark, table, f"SELECT id, {n} AS p, {n + 5} AS q FROM range({n * 10}, {n * 10 + 10})")
    dataset = index(spark, table, MinMaxIndex("p"), MinMaxIndex("id"))
    # So that Delta cannot prune: the other side of the OR is nothing that it serves.
    assert twins(spark, f"SELECT * FROM {t(table)} WHERE p = 1 OR id = -1").skipped == 2
    (file,) = (action["add"] for action in actions(table, 2) if "add" in action)
    gone = {"path": file["path"], "dataChange": True, "deletionTimestamp": 1, "size": file["size"]}
    commit(table, {"remove": gone})
    for values in ({"p": "6", "q": "1"}, {"p": None, "q": "6"}):
        commit(table, {"add": {**file, "partitionValues": values, "stats": None}})
        where = "p = 6" if values["p"] else "p IS NULL"
        found = twins(spark, f"SELECT * FROM {t(table)} WHERE {where} OR id = -1")
        assert (found.rows, found.skipped) == (10, 2)
        assert dataset.refresh().indexed == 1
        found = twins(spark, f"SELECT * FROM {t(table)} WHERE {where} OR id = -1")
        assert (found.rows, found.skipped, found.scans[0].objects.stale) == (10, 2, 0)
        commit(table, {"remove": gone})


def actions(path, version):
    """Return what a commit says."""
    return [json.loads(line) for line in Path(path, "_delta_log", f"{version:020d}.json").read_text().splitlines()]


def commit(path, *said):
    """Commit what another program may."""
    versions = [int(file.stem) for file in Path(path, "_delta_log").glob("*.json")]
    text = "".join(f"{json.dumps(action)}\n" for action in said)
    Path(path, "_delta_log", f"{max(versions) + 1:020d}.json").write_text(text)


def test_texts_of_fixed_length_are_indexed_as_they_are_in_the_files(spark, table, tmp_path):
    """Other programs do not pad them; a DataFrame may have been made where Spark was told not to."""
    spark.sql(f"CREATE TABLE {t(table)} (c CHAR(6), id BIGINT) USING delta")
    spark.sql("SELECT 'ab' AS c, 1L AS id").coalesce(1).write.parquet(str(tmp_path / "written"))
    (written,) = (tmp_path / "written").glob("*.parquet")
    file = written.rename(Path(table, "other.parquet"))
    said = {"path": file.name, "partitionValues": {}, "size": file.stat().st_size, "modificationTime": 1}
    commit(table, {"add": {**said, "dataChange": True}})
    unpadded = {"spark.sql.readSideCharPadding": "false"}
    with conf(spark, unpadded):
        dataset = Dataset(spark.read.format("delta").load(table))
    dataset.create_indexes(ValueListIndex("c"))
    for settings in (unpadded, {}):
        with conf(spark, settings):
            for where in ("c LIKE 'ab%'", "c LIKE 'ab'", "c = 'ab'", "rtrim(c) = 'ab'"):
                found = twins(spark, f"SELECT * FROM {t(table)} WHERE {where}")
                assert found.rows == (where != "c LIKE 'ab'" or settings == unpadded)
