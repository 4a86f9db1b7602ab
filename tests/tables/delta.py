"""What the tests of Delta tables share: tables of consecutive ids, one range for each file."""

from __future__ import annotations

from skipstone import Dataset, MinMaxIndex, SuffixIndex, ValueListIndex

__all__ = ["DVS", "MAPPED", "NO_STATISTICS", "append", "index", "make", "t"]

DVS = "TBLPROPERTIES (delta.enableDeletionVectors=true)"
# Without statistics, so that it is not Delta itself that leaves out files.
NO_STATISTICS = "TBLPROPERTIES (delta.dataSkippingNumIndexedCols=0)"
MAPPED = (
    "TBLPROPERTIES (delta.columnMapping.mode='{}', delta.minReaderVersion=2, delta.minWriterVersion=5, "
    "delta.dataSkippingNumIndexedCols=0)"
)


def make(spark, path, files=4, rows=100, columns="", more=""):
    """Make a table of files that hold 100 ids each, in order."""
    spark.sql(f"CREATE TABLE delta.`{path}` (id BIGINT, k STRING, m BIGINT {columns}) USING delta {more}")
    append(spark, path, 0, files, rows)


def append(spark, path, first, files, rows=100):
    df = spark.range(first * rows, (first + files) * rows, 1, files)
    df.selectExpr("id", "concat('k', id) AS k", "id % 7 AS m").write.format("delta").mode("append").save(path)


def index(spark, path, *indexes):
    made = Dataset.for_path(spark, path, format="delta")
    made.create_indexes(*(indexes or (SuffixIndex("k", length=3), MinMaxIndex("id"), ValueListIndex("m"))))
    return made


def t(path):
    return f"delta.`{path}`"
