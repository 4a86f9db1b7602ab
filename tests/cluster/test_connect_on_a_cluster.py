"""Spark Connect on a real cluster: Connect keeps the files of sessions apart, and executors have no Skipstone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.spark.programs import settings, started
from tests.engines.spark.test_servers import GRPC, free_ports
from tests.servers.cluster import bare_python, clean_environment, standalone_cluster

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    python = bare_python(folder / "python", *GRPC)
    with standalone_cluster(folder) as master:
        yield master, python


def run(folder, python, *command, **variables):
    """Run a client to its end."""
    out = folder / "client.txt"
    own = {k: v for k, v in clean_environment().items() if not k.startswith("SPARK_")}
    with out.open("w") as file:
        subprocess.call([python, *command], stdout=file, stderr=file, cwd=folder, timeout=400, env={**own, **variables})
    assert "ALL WELL" in out.read_text(), out.read_text()[-5000:]


def test_a_server_in_the_same_process(cluster, tmp_path):
    master, python = cluster
    port = str(free_ports()[0])
    script = str(HERE / "connect_application.py")
    variables = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    run(tmp_path, sys.executable, script, master, str(tmp_path / "data"), port, **variables)


def test_a_server_with_a_companion(cluster, tmp_path):
    master, python = cluster
    port = str(free_ports()[0])
    conf = settings(
        spark__connect__grpc__binding__port=port,
        spark__connect__grpc__binding__address="127.0.0.1",
        spark__executor__memory="512m",
        spark__pyspark__python=python,
        spark__sql__warehouse__dir=str(tmp_path / "warehouse"),
    )
    (tmp_path / "server").mkdir()
    command = ["spark-submit", "--class", CONNECT, "spark-internal"]
    variables = {"PYTHONPATH": "", "SPARK_LOCAL_IP": "127.0.0.1"}  # executors inherit what the workers have: nothing
    with started(tmp_path / "server", command, conf, master=master, **variables) as program:
        program.until("Spark Connect server started at")
        script = tmp_path / "client.py"
        script.write_text(CLIENT)
        run(tmp_path, python, str(script), f"sc://127.0.0.1:{port}", str(tmp_path / "data"))


CLIENT = """
import sys
from pyspark.sql import SparkSession
address, folder = sys.argv[1:]
for number in range(2):
    spark = SparkSession.builder.remote(address).create()
    place = f"parquet.`{folder}{number}`"
    spark.range(0, 80, 1, 8).selectExpr("id", "concat('n', id) AS name").write.parquet(f"{folder}{number}")
    (report,) = spark.sql(f"CREATE INDEX names ON {place} USING bloomfilter (name)").collect()
    assert (report.indexed, report.rows) == (8, 80), report
    assert [row.id for row in spark.sql(f"SELECT id FROM {place} WHERE name = 'n42'").collect()] == [42]
    told = spark.sql(f"EXPLAIN SKIPPING SELECT id FROM {place} WHERE name = 'n42'").collect()
    assert "reads 1 of 8 objects" in told[1].plan, told
    spark.stop()
print("ALL WELL")
"""
