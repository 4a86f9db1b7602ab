"""GapList, Prefix and Suffix from end to end: collected by Spark, asked through its optimizer."""

from datetime import date

import pytest
from tests.support import assert_same_rows, assert_sound, settings, write_objects

from skipstone import Dataset
from skipstone.indexes.affix import PrefixIndex, SuffixIndex
from skipstone.indexes.gap_list.index import GapListIndex
from skipstone.reporting.stats import skipping_stats

SCHEMA = "n int, x double, d date, t string, p decimal(10,2)"
OBJECTS = [
    "(1, 1.0D, DATE'2024-01-01', 'ab-one.log', 1.5), (90, double('NaN'), DATE'2024-12-31', 'zz-two.csv', 99.0)",
    "(1, 1.0D, DATE'2024-01-01', 'ab-one.csv', 1.5), (50, 50.0D, DATE'2024-06-15', 'é😀-x.log', 50.0), (90, 90.0D, "
    "DATE'2024-12-31', 'zz', 99.0)",
    "(NULL, NULL, NULL, NULL, NULL), (7, -0.0D, DATE'1900-01-01', '', 0.0)",
    "(NULL, double('NaN'), NULL, NULL, NULL)",
    "(60, 60.0D, DATE'2024-07-01', 'long-prefix-and-long-suffix', 60.0)",
]
INDEXES = [
    GapListIndex("n", gaps=2),
    GapListIndex("x"),
    GapListIndex("d", gaps=1, workload=[(date(2024, 3, 1), date(2024, 5, 1), 2.0)]),
    GapListIndex("p"),
    GapListIndex("t"),
    PrefixIndex("t", length=4),
    SuffixIndex("t", length=4),
]
PREDICATES = [
    "n = 50", "n BETWEEN 40 AND 60", "n > 1 AND n < 50", "n > 10 AND 80 > n", "n IN (2, 3, 51)", "n <=> NULL",
    "n <> 7", "NOT (n < 10 OR n > 60)", "n IS NOT NULL AND n < 7", "x > 90", "x BETWEEN 2 AND 40",
    "x = double('NaN')", "x >= 2 AND x <= 49", "isnan(x)", "x = 0.0D",
    "d BETWEEN DATE'2024-03-01' AND DATE'2024-05-01'", "d > DATE'2024-01-01' AND d < DATE'2024-06-15'",
    "p > 1.5 AND p < 50", "p = 60", "t LIKE 'ab%'", "t LIKE '%.log'", "t LIKE 'ab%.log'", "t LIKE 'ab-o_e%'",
    "t = 'zz'", "t IN ('ab-one.csv', 'nothing')", "startswith(t, 'long-prefix-and')",
    "endswith(t, 'and-long-suffix')", "t LIKE 'é😀%'", "t LIKE '_😀-x.log'", "NOT startswith(t, 'ab')",
    "t NOT LIKE '%.log'", "t > 'b' AND t < 'l'", "t IS NULL", "t <=> 'zz'", "t LIKE 'zz' OR n = 50",
    "length(t) > 3 AND t LIKE 'q%'", "t LIKE '%one%'", "t = ''",
]  # fmt: skip


@pytest.fixture(scope="module")
def dataset(spark, tmp_path_factory):
    path = write_objects(spark, tmp_path_factory.mktemp("gaps") / "data", SCHEMA, OBJECTS)
    made = Dataset.for_path(spark, path)
    made.create_indexes(*INDEXES)
    return path, made


def test_no_row_is_lost_and_every_index_skips(spark, dataset):
    path, _ = dataset
    df = spark.read.parquet(path)
    with skipping_stats(spark) as stats:
        assert assert_sound(spark, df, PREDICATES) > 90
    served = ("gaplist(n", "gaplist(x", "gaplist(d", "gaplist(p", "gaplist(t", "prefix(t", "suffix(t")
    clauses = " ".join(str(entry.clause) for entry in stats if entry.objects.skipped)
    assert [name for name in served if name not in clauses] == []


def test_a_range_falls_into_a_gap(spark, dataset):
    path, _ = dataset
    df = spark.read.parquet(path)
    assert assert_same_rows(spark, df.where("n > 10 AND n < 50")) == 5
    assert assert_same_rows(spark, df.where("d BETWEEN '2024-03-01' AND '2024-05-01'")) == 5
    assert assert_same_rows(spark, df.where("t LIKE 'ab%.log'")) == 3
    assert assert_same_rows(spark, df.where("t LIKE 'ab%.csv'")) == 3


def test_objects_that_are_read_in_parts_and_a_refresh_with_the_recorded_workload(spark, tmp_path):
    path = str(tmp_path / "large")
    spark.range(0, 200_000, numPartitions=1).selectExpr(
        "IF(id % 2 = 0, id, id + 10000000) AS n", "concat(id % 7, '-', id, '-end', id % 3) AS t"
    ).write.option("compression", "none").option("parquet.block.size", "200000").parquet(path)
    data = Dataset.for_path(spark, path)
    with settings(spark, spark__sql__files__maxPartitionBytes="200k"):
        data.create_indexes(
            GapListIndex("n", gaps=1, workload=[(500_000, 600_000)]),
            PrefixIndex("t", length=2),
            SuffixIndex("t", length=4),
        )
    df = spark.read.parquet(path)
    assert assert_same_rows(spark, df.where("n > 300000 AND n < 9000000")) == 1
    assert assert_same_rows(spark, df.where("t LIKE '8%'")) == 1
    assert assert_same_rows(spark, df.where("t LIKE '%d5'")) == 1
    assert assert_same_rows(spark, df.where("n = 10000001 AND t LIKE '1-%end1'")) == 0
    spark.sql("SELECT 700000L AS n, '8-x-end9' AS t").coalesce(1).write.mode("append").parquet(path)
    data.refresh()
    df = spark.read.parquet(path)
    assert assert_same_rows(spark, df.where("n BETWEEN 600000 AND 800000")) == 1
    assert assert_same_rows(spark, df.where("t LIKE '8%9'")) == 1
