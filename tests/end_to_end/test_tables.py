"""Delta and Iceberg have no release for the newest Spark: their tests run in an environment of their own.

They run with ``--long``: an environment of its own takes minutes to make.  Every run has what needs no such jar: what
is said where a format is not there, or not as it should be.
"""

from __future__ import annotations

import json

import pytest
from tests.tables.environment import TABLES, jars, run

from skipstone import Dataset
from skipstone.errors import DatasetError

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
spark.conf.set("spark.databricks.delta.requiredSparkConfsCheck.enabled", "false")
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


ICEBERG = """
from pyspark.sql import SparkSession
import skipstone
from skipstone import Dataset, SuffixIndex

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
builder = builder.config("spark.jars", ",".join(JARS))
builder = builder.config("spark.sql.catalog.ice", "org.apache.iceberg.spark.SparkCatalog")
builder = builder.config("spark.sql.catalog.ice.type", "hadoop").config("spark.sql.catalog.ice.warehouse", "ice")
builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "1")
spark = skipstone.configure(builder).getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
"""

ICEBERG_WITHOUT_EXTENSION = (
    ICEBERG
    + """
spark.sql("CREATE TABLE ice.db.t (id BIGINT, k STRING) USING iceberg")
spark.range(0, 40, 1, 4).selectExpr("id", "concat('k', id) AS k").writeTo("ice.db.t").append()
t = Dataset.for_table(spark, "ice.db.t")
t.create_indexes(SuffixIndex("k", length=2))
with skipstone.skipping_stats(spark) as stats:
    assert spark.table("ice.db.t").where("k LIKE '%17'").count() == 1
assert stats[-1].objects.skipped == 3, stats[-1]  # it gives Iceberg statements of its own, and is not needed to read
print("ALL WELL")
"""
)

COMMANDS = """
from typer.testing import CliRunner
from skipstone.cli.main import app

def says(text, *arguments):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, (arguments, result.output, result.exception)
    assert text in result.output, (arguments, result.output)

more = lambda: spark.range(40, 60, 1, 2).selectExpr("id", "concat('k', id) AS k")
says("", "index", PATH, "--format", FORMAT, "--suffix", "k:length=2")
write(more())
says("2", "refresh", PATH)
says("suffix(k, length=2)", "describe", PATH)
says("reads 1 of 6 objects", "explain", PATH, "k LIKE '%17'")
says("selectivity", "indicators", PATH, "k LIKE '%17'")
says("no row is lost", "audit", PATH, "k LIKE '%17'")
print("ALL WELL")
"""

DELTA_BY_COMMAND = (
    """
spark = session(JARS, "io.delta.sql.DeltaSparkSessionExtension")
PATH, FORMAT = "t", "delta"
write = lambda df: df.write.format("delta").mode("append").save("t")
write(spark.range(0, 40, 1, 4).selectExpr("id", "concat('k', id) AS k"))
"""
    + COMMANDS
)

ICEBERG_BY_COMMAND = (
    ICEBERG
    + """
PATH, FORMAT = "ice/db/t", "iceberg"
spark.sql("CREATE TABLE ice.db.t (id BIGINT, k STRING) USING iceberg")
write = lambda df: df.writeTo("ice.db.t").append()
write(spark.range(0, 40, 1, 4).selectExpr("id", "concat('k', id) AS k"))
"""
    + COMMANDS
)

DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


@pytest.mark.parametrize("format_", ["delta", "iceberg", "hudi"])
def test_a_format_that_is_not_there(spark, tmp_path, format_):
    with pytest.raises(DatasetError, match=f"cannot be read as {format_}"):
        Dataset.for_path(spark, str(tmp_path), format=format_)


def test_releases_that_lack_what_is_called_are_turned_off_with_the_reason(spark):
    """Here none of the classes is there; with a release that lacks one the same look finds that one."""
    jvm = spark._jvm
    none = jvm.java.net.URLClassLoader(spark._sc._gateway.new_array(jvm.java.net.URL, 0), None)
    skipstone = jvm.org.apache.spark.sql.skipstone
    assert "it has no class org.apache.iceberg" in skipstone.Iceberg.by(none).left().toOption().get()
    assert "has no class org.apache.spark.sql.delta" in skipstone.DeltaFormat.unsupported().get()


FILES = (
    "test_delta.py test_delta_attacks.py",
    "test_delta_histories.py",
    "test_iceberg.py test_iceberg_guards.py test_iceberg_attacks.py",
    "test_iceberg_histories.py",
    "test_property.py test_unsupported.py",
)


def test_every_file_of_the_tables_is_run():
    ran = {file for files in FILES for file in files.split()}
    assert {path.name for path in TABLES.glob("test_*.py")} == ran


@pytest.mark.long
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("files", FILES, ids=lambda files: files.split()[0])
def test_the_tables(tmp_path, request, files):
    """The tests of tests/tables; those that are marked long run with --long."""
    long = request.config.getoption("--long")
    options = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", *(["--long"] if long else [])]
    chosen = [f"tests/tables/{file}" for file in files.split()]
    code, said = run("-m", "pytest", *options, *chosen, folder=tmp_path, timeout=14_000)
    assert code == 0, said[-6000:]


@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("release", ["4.0", "4.2"])
def test_other_releases(tmp_path, release):
    """Delta has one for each; Iceberg has an older one for Spark 4.0, and none for 4.2."""
    options = ["-q", "-p", "no:randomly", "-p", "no:cacheprovider"]
    files = ["delta", "delta_attacks", "iceberg", "iceberg_guards", "iceberg_attacks"]
    chosen = [f"tests/tables/test_{name}.py" for name in files if release == "4.0" or name.startswith("delta")]
    code, said = run("-m", "pytest", *options, *chosen, folder=tmp_path, timeout=7_000, spark=release)
    assert code == 0, said[-6000:]


@pytest.mark.long
@pytest.mark.parametrize(
    "script",
    [WRONG_ORDER, NO_JAR, NO_EXTENSION, ICEBERG_WITHOUT_EXTENSION],
    ids=["wrong order", "no jar", "no extension", "no extension of Iceberg's"],
)
def test_sessions_that_are_not_as_they_should_be(tmp_path, script):
    _all_well(tmp_path, script, iceberg=script is ICEBERG_WITHOUT_EXTENSION)


@pytest.mark.long
@pytest.mark.parametrize("script", [DELTA_BY_COMMAND, ICEBERG_BY_COMMAND], ids=["delta", "iceberg"])
def test_the_command_line(tmp_path, script):
    """The format is known from the metadata; jars and extensions are settings like any other."""
    iceberg = script is ICEBERG_BY_COMMAND
    _all_well(tmp_path, script, iceberg=iceberg)
    settings = {"spark.jars": ",".join(jars(iceberg=iceberg)), **({} if iceberg else DELTA_SETTINGS)}
    conf = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = ("-c", "from skipstone.cli.main import main; main()", "explain")
    code, said = run(*command, "ice/db/t" if iceberg else "t", "k LIKE '%17'", *conf, folder=tmp_path, timeout=600)
    assert code == 0, said[-4000:]
    assert "reads 1 of 6 objects" in said, said


def _all_well(tmp_path, script, *, iceberg):
    """Run a script in the environment of the table formats."""
    (tmp_path / "script.py").write_text(f"{SESSION}\nJARS = {json.dumps(jars(iceberg=iceberg))}\n{script}")
    code, said = run("script.py", folder=tmp_path, timeout=600)
    assert code == 0, said[-4000:]
    assert "ALL WELL" in said
