"""Spark Connect: a server in the same process skips for its clients; what a remote server needs is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from skipstone.engines.spark.connect import Api, without_remote
from skipstone.engines.spark.session import configure
from skipstone.errors import UnsupportedSparkError

REPOSITORY = Path(__file__).parents[3]


def run_in_process(folder, way):
    """Run the program in a process of its own: there Connect is the API of the whole process."""
    out, result = folder / "out.txt", folder / "found.json"
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "SPARK_REMOTE", "SPARK_CONNECT"))}
    paths = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    script = Path(__file__).with_name("connect_script.py")
    with out.open("w") as file:  # a JVM that inherits a pipe would keep us waiting
        code = subprocess.call(
            [sys.executable, str(script), str(folder), way, str(result)],
            stdout=file,
            stderr=file,
            cwd=folder,
            timeout=300,
            env={**clean, "PYTHONPATH": paths},
        )
    assert code == 0, out.read_text()[-5000:]
    return json.loads(result.read_text())


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return run_in_process(tmp_path_factory.mktemp("connect"), "remote")


def test_the_builder_gives_a_connect_session(found):
    assert found["session"].startswith("pyspark.sql.connect")
    assert found["again"]
    assert found["options"] == []  # what the server got is no option of a client
    assert found["setting"] == str(1 << 20)


def test_queries_skip(found):
    assert found["by_range"] == {"rows": list(range(30, 41)), "skipped": 3, "total": 4, "ran": 1}
    assert found["by_bloom"] == {"rows": [77], "skipped": 3, "total": 4, "ran": 1}
    assert found["by_table"] == {"rows": [99], "skipped": 3, "total": 4, "ran": 1}


def test_queries_with_python_in_the_predicate_skip(found):
    assert found["with_python"] == {"rows": [0, 1, 2, 3, 4], "skipped": 3, "total": 4, "ran": 1}
    assert found["implied"]["rows"] == list(range(13, 20))
    assert found["implied"]["skipped"] == 3
    assert found["extracted"]["rows"] == list(range(70, 80))
    assert found["extracted"]["skipped"] == 2
    assert found["distance"] == 5.0


def test_the_verbs_of_a_dataset(found):
    assert found["indexed"] == 4
    assert found["described"].startswith("pyspark.sql.connect")
    assert found["described_rows"] == ["minmax(id)", "bloomfilter(name)", "valuelist(age)"]
    assert all("bloomfilter(name)" in shown for shown in found["described_shown"])
    assert "reads 1 of 4 objects" in found["explained"]
    assert "minmax(id)[id = 3]" in found["explained"]
    assert "no index serves length(name) = 2" in found["explained"]
    assert found["explained_deep"] == 4
    assert found["indicators"] == 1
    assert (found["refreshed"], found["is_indexed"], found["table_root"]) == (0, True, True)
    assert found["left"] == ["bloomfilter(name)", "formatted(age, extract='decade')"]


def test_a_client_sees_its_own_queries_only(found):
    assert found["clients"] == [1, 2]
    assert found["kept"] == [1, 0]


def test_what_is_wrong_is_said(found):
    assert found["no_path"].startswith("DatasetError")
    assert "nowhere cannot be read as parquet" in found["no_path"]
    assert "the table nowhere cannot be read" in found["no_table"]
    assert found["no_scan"].startswith("DatasetError")
    assert "no function is registered as 'nothing'" in found["no_function"]


@pytest.mark.long
def test_the_mode_of_the_api(tmp_path):
    found = run_in_process(tmp_path, "mode")
    assert found["session"].startswith("pyspark.sql.connect")
    assert found["by_range"]["skipped"] == found["with_python"]["skipped"] == 3


@pytest.mark.parametrize(
    ("options", "environment", "api"),
    [
        ({}, {}, Api.CLASSIC),
        ({"spark.master": "local[2]"}, {}, Api.CLASSIC),
        ({"spark.remote": "local[2]"}, {}, Api.IN_PROCESS),
        ({"spark.remote": "sc://host"}, {}, Api.REMOTE),
        ({"spark.api.mode": "connect"}, {}, Api.IN_PROCESS),
        ({"spark.api.mode": "connect", "spark.remote": "sc://host"}, {}, Api.REMOTE),
        ({"spark.api.mode": "connect", "spark.master": "spark://host:7077"}, {}, Api.IN_PROCESS),
        ({"spark.api.mode": "classic"}, {}, Api.CLASSIC),
        ({"spark.remote": "local", "spark.local.connect.reuse": "true"}, {}, Api.REMOTE),
        ({}, {"SPARK_REMOTE": "local"}, Api.IN_PROCESS),
        ({}, {"SPARK_REMOTE": "sc://host"}, Api.REMOTE),
        ({}, {"SPARK_API_MODE": "connect"}, Api.IN_PROCESS),
        ({}, {"SPARK_CONNECT_MODE_ENABLED": "1"}, Api.REMOTE),
        ({}, {"SPARK_CONNECT_MODE_ENABLED": "1", "SPARK_LOCAL_REMOTE": "1"}, Api.IN_PROCESS),
    ],
)
def test_the_way_to_the_server_is_the_one_that_pyspark_takes(monkeypatch, options, environment, api):
    for name in ("SPARK_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert Api.of(options) is api


def test_a_jvm_that_is_to_be_the_server_does_not_see_the_address(monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "local")
    with without_remote():
        assert "SPARK_REMOTE" not in os.environ
    assert os.environ["SPARK_REMOTE"] == "local"


def test_a_builder_of_another_class_is_refused():
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    with pytest.raises(UnsupportedSparkError, match=r"pyspark\.sql\.SparkSession\.builder"):
        configure(ConnectSession.builder)
    assert configure(SparkSession.builder.remote("sc://host"))  # nothing is asked of the server yet
