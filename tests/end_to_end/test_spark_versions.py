"""One source for pyspark 4.0 to 4.3: the same script under each, in an environment of its own (``--long``)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.servers.environments import interpreter

REPOSITORY = Path(__file__).parents[2]
VERSIONS = ("4.0.2", "4.1.4", "4.2.1", "4.3.0")

SCRIPT = """
import sys, pyspark
from pathlib import Path
from pyspark.sql import SparkSession, functions as F
import skipstone
from skipstone import *

assert pyspark.__version__ == sys.argv[1], pyspark.__version__
sys.path.insert(0, sys.argv[2])
from tests.support import EVERY_TYPE, assert_same_rows, assert_sound, conf, write_objects
from tests.regressions.cases import CASES

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = skipstone.configure(builder.config("spark.sql.shuffle.partitions", "2")).getOrCreate()
for number, case in enumerate(CASES):
    if "timestamp_ntz" in case.schema or number % 3 == 0:
        path = write_objects(spark, Path("case") / str(number), case.schema, case.objects)
        df = spark.read.parquet(path)
        with conf(spark, case.settings):
            Dataset(df).create_indexes(*(kind("*") for kind in EVERY_TYPE))
            assert assert_sound(spark, df, case.predicates) > 0, case.name
spark.sql("CREATE TABLE t (id INT, p INT) USING parquet PARTITIONED BY (p) LOCATION '%s'" % Path("t").resolve())
for n in range(4):
    spark.sql(f"INSERT INTO t VALUES ({n}, {n % 2})")
Dataset.for_table(spark, "t").create_indexes(MinMaxIndex("id"), BloomFilterIndex("id"))
spark.sql("ANALYZE TABLE t COMPUTE STATISTICS")
assert assert_same_rows(spark, spark.table("t").where("p = 1 AND id = 3")) == 1
Dataset.for_table(spark, "t").refresh()
odd = F.udf(lambda x: x % 2 == 1, "boolean")
assert assert_same_rows(spark, spark.table("t").where(odd("id") & (F.col("id") > 2))) == 3
print(Dataset.for_table(spark, "t").explain(spark.table("t").where("id = 1"), indicators=True))
queries = [spark.table("t").where("p = 1 AND id = 3"), spark.table("t").where(odd("id"))]
measured = Dataset.for_table(spark, "t").indicators(queries)
assert [(i.objects, i.relevant_rows, i.kept_objects) for i in measured] == [(4, 1, 1), (4, 2, 4)], measured
queries[0].collect()
(scan,) = last_query(spark)
assert scan.run_seconds > 0 and (scan.rows_read, scan.files_read) == (1, 1), scan
# A plan that is run again under other settings, which the readers of rows look up in their tasks.
Path("text").mkdir()
for n, day in enumerate(("2020-1-1", "2020-02-02", "2020-03-03")):
    (Path("text") / f"{n}.csv").write_text(day + "\\n")
def days():
    return spark.read.schema("d DATE").option("dateFormat", "yyyy-MM-dd").csv("text")
policy = "spark.sql.legacy.timeParserPolicy"
with conf(spark, {policy: "CORRECTED"}):
    Dataset(days()).create_indexes(MinMaxIndex("d"))
    assert assert_same_rows(spark, days().where("d = DATE'2020-02-02'")) == 2
    early = days().where("d = DATE'2020-01-01'")
    assert (early.count(), len(early.collect()), len(early.rdd.collect())) == (0, 0, 0)
    with conf(spark, {policy: "LEGACY"}):
        assert len(early.collect()) == 1
    assert len(early.collect()) == 0
# What is decided when a query runs: keys of joins, first rows, counts.
spark.range(0, 80, 1, 8).write.parquet("numbers")
Dataset.for_path(spark, "numbers").create_indexes(MinMaxIndex("id"))
numbers = spark.read.parquet("numbers")
def told(df):
    assert_same_rows(spark, df)
    df.collect()
    return [scan for scan in last_query(spark) if scan.roots[0].endswith("numbers")][0]
assert told(numbers.join(F.broadcast(spark.range(12, 14)), "id")).joins.skipped == 7
assert told(numbers.orderBy(F.desc("id")).limit(3)).skipped_by_top == 7
counted = told(numbers.where("id < 35").groupBy().agg(F.count("*"), F.max("id")))
assert (counted.aggregates.answered, counted.objects.kept, counted.files_read) == (3, 1, 1), counted
assert told(numbers.groupBy().count()).aggregates.answered == 8
print("ALL WELL")
"""


def run_on(version, script, tmp_path):
    """Run a script under a release of pyspark, in an environment of its own; give what it printed."""
    python = interpreter(version)
    (tmp_path / "script.py").write_text(script)
    out = tmp_path / "out.txt"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "PYSPARK_PYTHON": str(python)}
    with out.open("w") as file:
        code = subprocess.call(
            [str(python), "script.py", version, str(REPOSITORY)],
            stdout=file,
            stderr=file,
            cwd=tmp_path,
            env=environment,
            timeout=1200,
        )
    assert code == 0, out.read_text()[-4000:]
    return out.read_text()


@pytest.mark.spark_versions
@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_on_every_spark(tmp_path, version):
    assert "ALL WELL" in run_on(version, SCRIPT, tmp_path)
