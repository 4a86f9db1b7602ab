"""Sessions of another kind than the shared one, each in a process of its own: Hive's catalog, Avro, errors at exit."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pyspark
import pytest

pytestmark = pytest.mark.slow
REPOSITORY = Path(__file__).parents[2]
AVRO = {"4.0": "4.0.2"}.get(".".join(pyspark.__version__.split(".")[:2]), "4.1.1")

PROLOGUE = """
import sys
from pyspark.sql import SparkSession
import skipstone
from skipstone import Dataset, MinMaxIndex, ValueListIndex, skipping_stats

def session(builder=SparkSession.builder):
    builder = builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "1")
    return skipstone.configure(builder.config("spark.ui.showConsoleProgress", "false")).getOrCreate()

def kept(spark, df):
    with skipping_stats(spark) as stats:
        df.collect()
    return stats[-1].objects.kept, stats[-1].objects.total
"""


def run(tmp_path, body, timeout=300):
    """Run a script in a process of its own; give its exit code and what it printed."""
    script, out = tmp_path / "script.py", tmp_path / "out.txt"
    script.write_text(PROLOGUE + textwrap.dedent(body))
    paths = os.pathsep.join(filter(None, [str(REPOSITORY / "src"), os.environ.get("PYTHONPATH", "")]))
    with out.open("w") as file:  # a JVM that inherits a pipe would keep us waiting
        code = subprocess.call(
            [sys.executable, str(script)],
            stdout=file,
            stderr=file,
            cwd=tmp_path,
            timeout=timeout,
            env={**os.environ, "PYTHONPATH": paths},
        )
    return code, out.read_text()


def test_hive_catalog(tmp_path):
    code, out = run(
        tmp_path,
        """
        spark = session(SparkSession.builder.enableHiveSupport()
            .config("spark.sql.warehouse.dir", "warehouse")
            .config("spark.hadoop.javax.jdo.option.ConnectionURL", "jdbc:derby:;databaseName=metastore;create=true")
            .config("spark.hadoop.hive.exec.dynamic.partition.mode", "nonstrict"))
        for name, how in (
            ("plain", "USING parquet"),
            ("parted", "USING parquet PARTITIONED BY (p)"),
            ("hived", "STORED AS PARQUET"),
        ):
            spark.sql(f"CREATE TABLE {name} (id INT, name STRING, p INT) {how}")
            for n in range(4):
                spark.sql(f"INSERT INTO {name} VALUES ({n}, 'n{n}', {n % 2})")
            Dataset.for_table(spark, name).create_indexes(MinMaxIndex("id"), ValueListIndex("name"))
            assert kept(spark, spark.sql(f"SELECT * FROM {name} WHERE id = 2"))[0] == 1, name
            here, total = kept(spark, spark.table(name).where("p = 1 AND name = 'n3'"))
            assert (here, total) == (1, 2 if name == "parted" else 4), (name, here, total)
            assert spark.table(name).where("id >= 2").count() == 2
        print("ALL WELL")
        """,
    )
    assert code == 0, out[-3000:]
    assert "ALL WELL" in out


@pytest.mark.long  # tests/environment/test_avro.py reads the format in every run
def test_avro(tmp_path):
    code, out = run(
        tmp_path,
        f"""
        spark = session(SparkSession.builder.config("spark.jars.packages", "org.apache.spark:spark-avro_2.13:{AVRO}"))
        spark.range(0, 40, 1, 4).selectExpr("id", "concat('n', id) AS name").write.format("avro").save("data")
        df = spark.read.format("avro").load("data")
        Dataset(df).create_indexes(MinMaxIndex("*"), ValueListIndex("name"))
        assert kept(spark, df.where("id = 25")) == (1, 4)
        assert kept(spark, df.where("name = 'n7'")) == (1, 4)
        assert df.where("id < 12").count() == 12
        print("ALL WELL")
        """,
    )
    if code != 0 and "unresolved dependency" in out and not os.environ.get("CI"):
        pytest.skip("the Avro package could not be downloaded")
    assert code == 0, out[-3000:]
    assert "ALL WELL" in out


@pytest.mark.parametrize(
    "ending", ["", "raise SystemExit(3)", "raise ValueError('user error')"], ids=["plain", "exit", "error"]
)
def test_the_process_ends_by_itself(tmp_path, ending):
    code, out = run(
        tmp_path,
        f"""
        spark = session()
        spark.range(0, 40, 1, 4).write.parquet("data")
        Dataset.for_path(spark, "data").create_indexes(MinMaxIndex("id"))
        assert kept(spark, spark.read.parquet("data").where("id = 25")) == (1, 4)
        print("ALL WELL")
        {ending}
        """,
        timeout=400,
    )
    assert "ALL WELL" in out, out[-3000:]
    assert code == {"": 0, "raise SystemExit(3)": 3}.get(ending, 1)


def test_a_second_session_after_the_first_was_stopped(tmp_path):
    code, out = run(
        tmp_path,
        """
        for n in range(2):
            spark = session()
            if n == 0:
                spark.range(0, 40, 1, 4).write.parquet("data")
                Dataset.for_path(spark, "data").create_indexes(MinMaxIndex("id"))
            assert kept(spark, spark.read.parquet("data").where("id = 25")) == (1, 4)
            assert kept(spark.newSession(), spark.newSession().read.parquet("data").where("id = 25")) == (1, 4)
            spark.stop()
        print("ALL WELL")
        """,
    )
    assert code == 0, out[-3000:]
    assert "ALL WELL" in out
