"""Statements on indexes and the companion under the oldest release of Spark, which differs most (``--long``)."""

from __future__ import annotations

import pytest

from tests.end_to_end.test_spark_versions import VERSIONS, run_on

SCRIPT = """
import sys
import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
import skipstone

assert pyspark.__version__ == sys.argv[1], pyspark.__version__
sys.path.insert(0, sys.argv[2])
from tests.support import assert_same_rows

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "2").config("spark.sql.scripting.enabled", "true")
spark = skipstone.configure(builder).getOrCreate()
rows = spark.range(0, 40, 1, 4).selectExpr("id", "concat('n', id div 10) AS name", "id div 20 AS p")
rows.write.partitionBy("p").saveAsTable("t")
rows.write.parquet("files")

def names(place="t"):
    return sorted(row.name for row in spark.sql(f"SHOW INDEXES ON {place}").collect())

def refused(statement, **arguments):
    try:
        spark.sql(statement, **arguments).collect()
    except AnalysisException as error:
        return error.getCondition() if hasattr(error, "getCondition") else error.getErrorClass()
    raise AssertionError(statement)

(report,) = spark.sql("CREATE INDEX i ON t USING minmax (id, name OPTIONS (type = 'valuelist'))").collect()
assert report.indexes == ["i.minmax(id)", "i.valuelist(name)"], report
assert assert_same_rows(spark, spark.sql("SELECT * FROM t WHERE id = 5")) == 3
assert assert_same_rows(spark, spark.sql("SELECT * FROM t WHERE name LIKE '%3'")) == 3
spark.sql("CREATE INDEX f ON parquet.`files` USING feature (few OPTIONS (predicate = 'id < 10'))")
assert names("parquet.`files`") == ["f"]
assert assert_same_rows(spark, spark.read.parquet("files").where("id < 10")) == 3
spark.sql("CREATE INDEX every ON t USING minmax (`*`)")
assert spark.sql("/* all */ REFRESH INDEXES ON t PARTITION (p = 1)").first().objects == 2
told = spark.sql("EXPLAIN SKIPPING SELECT * FROM t WHERE id = :x", args={"x": 5}).collect()
assert "reads 1 of 4 objects" in told[1].plan, told
told = spark.sql("EXPLAIN SKIPPING SELECT * FROM t WHERE id = ?", args=[5]).collect()
assert "reads 1 of 4 objects" in told[1].plan, told
assert spark.sql("SHOW INDEXES ON IDENTIFIER(:t)", args={"t": "t"}).count() == len(names()) > 3
assert spark.sql("EXECUTE IMMEDIATE 'SHOW INDEXES ON t'").count() == len(names())
spark.sql("EXECUTE IMMEDIATE 'CREATE INDEX g ON t USING feature (few OPTIONS (predicate = \\"id < 10\\"))'")
spark.sql("BEGIN DROP INDEX g ON t; DROP INDEX every ON t; REFRESH INDEXES ON t; SHOW INDEXES ON t; END")
assert names() == ["i.minmax(id)", "i.valuelist(name)"], names()
spark.range(3).createOrReplaceTempView("v")
for statement, condition in {
    "CREATE INDEX a ON v USING minmax (id)": "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
    "SHOW INDEXES ON nothing": "TABLE_OR_VIEW_NOT_FOUND",
    "CREATE INDEX a ON t USING minmax (nothing)": "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION",
    "CREATE INDEX a ON t USING nothing (id)": "SKIPSTONE_UNKNOWN_INDEX_TYPE",
    "CREATE INDEX i ON t USING minmax (id)": "INDEX_ALREADY_EXISTS",
    "DROP INDEX a ON t": "INDEX_NOT_FOUND",
    "SHOW INDEXES ON": "PARSE_SYNTAX_ERROR",
    "SELEC 1": "PARSE_SYNTAX_ERROR",
}.items():
    assert refused(statement) == condition, (statement, refused(statement))
spark.sql("DROP INDEX i ON t")
assert names() == []
print("ALL WELL")
"""


@pytest.mark.long
@pytest.mark.slow
def test_the_statements_on_the_oldest_spark(tmp_path):
    assert "ALL WELL" in run_on(VERSIONS[0], SCRIPT, tmp_path)


COMPANION = """
import os, signal, sys, time
import pyspark
from pyspark.sql import SparkSession

assert pyspark.__version__ == sys.argv[1], pyspark.__version__
sys.path.insert(0, sys.argv[2])
from tests.engines.spark.programs import children, settings, until

builder = SparkSession.builder.master("local[2]")
for name, value in settings().items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
bridge = spark._jvm.org.apache.spark.sql.skipstone.Bridge
jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())
spark.range(0, 80, 1, 8).selectExpr("id", "concat('n', id) AS name").write.parquet("files")
spark.sql("CREATE INDEX i ON parquet.`files` USING minmax (id, name OPTIONS (type = 'bloomfilter'))")
assert sorted(row.name for row in spark.sql("SHOW INDEXES ON parquet.`files`").collect()) == [
    "i.bloomfilter(name)", "i.minmax(id)"
]

def reads(query):
    return spark.sql(f"EXPLAIN SKIPPING {query}").collect()[1].plan.split(";")[0].strip()

query = "SELECT id FROM parquet.`files` WHERE id BETWEEN 31 AND 33"
assert sorted(row.id for row in spark.sql(query).collect()) == [31, 32, 33]
assert reads(query) == "reads 1 of 8 objects"
assert reads("SELECT id FROM parquet.`files` WHERE name = 'n42'") == "reads 1 of 8 objects"
(child,) = children(jvm)
os.kill(child, signal.SIGKILL)
until(lambda: bridge.registered() is None)
assert sorted(row.id for row in spark.sql(query).collect()) == [31, 32, 33]
until(lambda: bridge.registered() is not None, 120)
spark._jvm.System.gc()
time.sleep(1)
assert reads(query) == "reads 1 of 8 objects"
(child,) = children(jvm)
spark.stop()
until(lambda: not children(jvm))
print("ALL WELL")
"""


@pytest.mark.long
@pytest.mark.slow
def test_the_companion_on_the_oldest_spark(tmp_path):
    assert "ALL WELL" in run_on(VERSIONS[0], COMPANION, tmp_path)
