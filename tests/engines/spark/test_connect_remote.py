"""Clients of a Spark Connect server in another process: verbs by SQL, statistics of their own queries, and refusals."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.spark.programs import environment, settings, started

pytestmark = pytest.mark.long
SERVER = ["spark-submit", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
READY = "Spark Connect server started at"


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return str(made.getsockname()[1])


def served(folder, conf):
    port = free_port()
    address = {"spark.connect.grpc.binding.port": port, "spark.connect.grpc.binding.address": "127.0.0.1"}
    (folder / "server").mkdir()
    return port, started(folder / "server", SERVER, conf | address)


def run(folder, *command):
    """Run a client; its process has Connect as its API."""
    out = folder / "client.txt"
    clean = {k: v for k, v in environment().items() if not k.startswith("SPARK_")}
    with out.open("w") as file:
        code = subprocess.call([sys.executable, *command], stdout=file, stderr=file, cwd=folder, timeout=400, env=clean)
    return code, out.read_text()


def test_the_verbs_of_a_dataset_are_carried_out_by_the_server(tmp_path):
    script, result = Path(__file__).with_name("remote_script.py"), tmp_path / "found.json"
    port, server = served(tmp_path, settings())
    with server as program:
        program.until(READY)
        code, out = run(tmp_path, str(script), f"sc://127.0.0.1:{port}", str(tmp_path), str(result))
        assert code == 0, out[-5000:] + program.text()[-3000:]
        doctor = run(tmp_path, "-c", DOCTOR, "doctor", "--remote", f"sc://127.0.0.1:{port}")
    found = json.loads(result.read_text())
    names = ["minmax(id)", "bloomfilter(`odd name`, fpp=0.001)", "it's mine", "prefix(`odd name`, length=2)"]
    assert (found["before"], found["root"], found["indexed"], found["rows"]) == (False, True, 4, 100)
    assert found["indexes"][:4] == found["described"][:4] == names
    assert len(found["described"]) == 6
    assert found["answer"] == list(range(30, 41))
    assert found["python"] == [0, 1, 2, 3, 4]
    assert found["skipped"] == [3, 3]
    assert found["last"] == [[1, 1]]
    assert found["of_another"] == [0, 1]
    assert "reads 1 of 4 objects" in found["explained"]
    assert "minmax(id)[id = 3]" in found["explained"]
    assert (found["refreshed"], found["refreshed_folder"], found["table"]) == (1, 0, 6)
    assert found["of_frame"] == [True, True]
    assert len(found["left"]) == 4
    assert not found["after"]
    said = found["refused"]
    assert "make a table of them" in said["options"]
    assert said["applied"].startswith("DatasetError")
    assert "nowhere" in said["nowhere"]
    assert "nothing" in said["column"]
    assert "skipstone indicators" in said["indicators"]
    assert "server-conf --for connect" in said["function"]
    assert doctor[0] == 0, doctor[1]
    assert "on, run by" in doctor[1]
    assert "the server's planner answers" in doctor[1]


DOCTOR = "from skipstone.cli.main import main; main()"
REFUSED = """
import sys
from pyspark.sql import SparkSession
import skipstone
from skipstone.errors import SessionNotConfiguredError
try:
    skipstone.configure(SparkSession.builder.remote(sys.argv[1])).getOrCreate()
except SessionNotConfiguredError as error:
    assert "server-conf --for connect" in str(error), error
    print("REFUSED")
SparkSession.builder.remote(sys.argv[1]).getOrCreate().stop()
"""


def test_a_server_without_skipstone_is_refused_and_diagnosed(tmp_path):
    bare = {name: value for name, value in settings().items() if "skipstone" not in value and "skipstone" not in name}
    port, server = served(tmp_path, bare)
    with server as program:
        program.until(READY)
        code, out = run(tmp_path, "-c", REFUSED, f"sc://127.0.0.1:{port}")
        assert (code, "REFUSED" in out) == (0, True), out[-3000:]
        code, out = run(tmp_path, "-c", DOCTOR, "doctor", "--remote", f"sc://127.0.0.1:{port}", "-o", "json")
    assert code == 1, out
    states = {f["check"]: f["state"] for f in json.loads(out[out.index("{") :])["findings"]}
    assert states["extensions"] == "broken"
    assert states["companion"] == "odd"
    assert "planner" not in states


def test_a_server_whose_companion_cannot_start_is_diagnosed(tmp_path):
    port, server = served(tmp_path, settings(spark__skipstone__companion__python="/no/such/python"))
    with server as program:
        program.until(READY)
        code, out = run(tmp_path, "-c", DOCTOR, "doctor", "--remote", f"sc://127.0.0.1:{port}", "-o", "json")
    assert code == 1, out
    last = json.loads(out[out.index("{") :])["findings"][-1]
    assert (last["check"], last["state"]) == ("planner", "broken")
    assert "log" in last["todo"]
    assert os.environ.get("SPARK_REMOTE") is None
