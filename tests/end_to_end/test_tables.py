"""Delta and Iceberg have no release for the newest Spark: their tests run in an environment of their own.

They run with ``--long``: an environment of its own takes minutes to make.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.tables.environment import jars, run

SESSION = """
import json, sys
from pyspark.sql import SparkSession
import skipstone
from skipstone import Dataset, SuffixIndex
from skipstone.errors import SkipstoneError
from skipstone.engines.spark.session import EXTENSION

def session(jars, extensions):
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "1")
    if extensions:
        builder = builder.config("spark.sql.extensions", extensions)
        builder = builder.config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    if jars:
        builder = builder.config("spark.jars", ",".join(jars))
    spark = skipstone.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
"""

WRONG_ORDER = """
spark = session(JARS, EXTENSION + ",io.delta.sql.DeltaSparkSessionExtension")
spark.range(0, 40, 1, 4).selectExpr("id", "concat('k', id) AS k").write.format("delta").save("t")
t = Dataset.for_path(spark, "t", format="delta")
t.create_indexes(SuffixIndex("k", length=2))
assert spark.read.format("delta").load("t").where("k LIKE '%17'").count() == 1
told = str(t.explain("k LIKE '%17'"))
assert "Delta's extension must stand before Skipstone's" in told, told
print("ALL WELL")
"""

NO_JAR = """
spark = session([], "")
try:
    Dataset.for_path(spark, "t", format="delta")
except SkipstoneError as error:
    assert "cannot be read as delta" in str(error), error
    print("ALL WELL")
"""

NO_EXTENSION = """
spark = session(JARS, "")
spark.conf.set("spark.databricks.delta.checkRequiredSparkConfs.enabled", "false")
spark.range(0, 40, 1, 4).selectExpr("id", "concat('k', id) AS k").write.format("delta").save("t")
try:
    t = Dataset.for_path(spark, "t", format="delta")
    t.create_indexes(SuffixIndex("k", length=2))
    told = str(t.explain("k LIKE '%17'"))
    assert "Delta's extension is not in spark.sql.extensions" in told, told
    assert spark.read.format("delta").load("t").where("k LIKE '%17'").count() == 1
except SkipstoneError as error:
    assert "cannot be read as delta" in str(error), error
print("ALL WELL")
"""


FILES = sorted(file.name for file in (Path(__file__).parents[1] / "tables").glob("test_*.py"))


@pytest.mark.long
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("file", FILES)
def test_the_core_of_the_tables(tmp_path, request, file):
    """The tests of tests/tables, a file at a time; those that are marked long run with --long."""
    long = request.config.getoption("--long")
    options = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", *(["--long"] if long else [])]
    code, said = run("-m", "pytest", *options, f"tests/tables/{file}", folder=tmp_path, timeout=14_000)
    assert code == 0, said[-6000:]


@pytest.mark.long
@pytest.mark.parametrize("script", [WRONG_ORDER, NO_JAR, NO_EXTENSION], ids=["wrong order", "no jar", "no extension"])
def test_sessions_that_are_not_as_they_should_be(tmp_path, script):
    (tmp_path / "script.py").write_text(f"{SESSION}\nJARS = {json.dumps(jars(iceberg=False))}\n{script}")
    code, said = run("script.py", folder=tmp_path, timeout=600)
    assert code == 0, said[-4000:]
    assert "ALL WELL" in said
