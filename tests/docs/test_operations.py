"""The page on operations: its Python runs, its metrics are those that Spark's servlet shows."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skipstone import Dataset, last_query

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def blocks():
    """Return the Python of the page, block after block."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def names(spark, tmp_path):
    return {
        "spark": spark,
        "lake": str(tmp_path / "events"),
        "stream": str(tmp_path / "stream"),
        "checkpoint": str(tmp_path / "checkpoint"),
    }


def run(block, names):
    exec(compile(block, str(PAGE), "exec"), names)


def test_the_recipes_run(spark, names, capsys):
    nightly, known, streaming, removal = blocks()

    run(nightly, names)
    said = capsys.readouterr().out.splitlines()
    assert [re.search(r"(\d+) of (\d+) objects indexed", line).groups() for line in said] == [
        ("4", "4"),
        ("4", "8"),
        ("4", "12"),
    ]
    events = spark.read.parquet(names["lake"])
    assert events.where("ts >= '2026-01-03 00:15:40'").count() == 60
    assert last_query(spark)[0].objects.kept == 1
    assert events.where("account = 'account-120'").count() == 20
    assert last_query(spark)[0].objects.skipped >= 8

    run(known, names)
    assert (names["report"].indexed, names["report"].removed) == (4, 4)
    assert events.sparkSession.read.parquet(names["lake"]).where("account = 'account-120'").count() == 20

    run(streaming, names)
    query = names["query"]
    try:
        limit = time.monotonic() + 600
        while query.isActive and (query.lastProgress or {}).get("batchId", -1) < 2 and time.monotonic() < limit:
            time.sleep(0.2)
    finally:
        query.stop()
    assert query.exception() is None
    (described,) = Dataset.for_path(spark, names["stream"]).describe().collect()
    assert described["covered"] >= 4
    first = spark.read.parquet(names["stream"]).where("value < 40")
    assert sorted(row["value"] for row in first.collect()) == list(range(40))
    assert last_query(spark)[0].objects.skipped >= 3

    run(removal, names)
    assert not Dataset.for_path(spark, names["lake"]).is_indexed


SERVED = """
import sys, threading, urllib.request
from pyspark.sql import SparkSession
import skipstone
from skipstone.engines.spark import planning

folder, settings = sys.argv[1], sys.argv[2:]
builder = SparkSession.builder.master("local[1]").appName("nightly").config("spark.ui.enabled", "true")
builder = builder.config("spark.ui.port", "0").config("spark.driver.bindAddress", "127.0.0.1")
builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.showConsoleProgress", "false")
for setting in settings:
    name, value = setting.split("=", 1)
    builder = builder.config(name, value)
spark = skipstone.configure(builder).getOrCreate()
address = spark.sparkContext.uiWebUrl + "/metrics/prometheus"
read = lambda: urllib.request.urlopen(address.replace("localhost", "127.0.0.1"), timeout=30).read().decode()
print("BEFORE", "skipstone_scans_planned" in read())
spark.range(0, 100, 1, 4).write.parquet(folder)
skipstone.Dataset.for_path(spark, folder).create_indexes(skipstone.MinMaxIndex("id"))
query = spark.read.parquet(folder).where("id < 20")
assert query.count() == 20
query.explain()
spark.conf.set("spark.sql.caseSensitive", "true")
assert len(query.collect()) == 20
counted = threading.Event()
planning.plan_scan = lambda *_, **__: counted.wait(120)
spark.conf.set("spark.skipstone.plannerTimeoutMs", "100ms")
spark.read.parquet(folder).where("id < 30").count()
counted.set()
print(read())
"""


def test_sparks_prometheus_servlet_shows_the_metrics_of_the_page(tmp_path):
    text = PAGE.read_text(encoding="utf-8")
    settings = re.findall(r"^(spark\.metrics\S+) +(\S+)$", text, re.MULTILINE)
    assert len(settings) == 3
    out = tmp_path / "out"
    with out.open("w") as file:
        subprocess.run(
            [sys.executable, "-c", SERVED, str(tmp_path / "data"), *(f"{name}={value}" for name, value in settings)],
            stdout=file,
            stderr=file,
            timeout=300,
            check=False,
        )
    told = out.read_text()
    assert "BEFORE True" in told
    found = dict(re.findall(r"^metrics_nightly_driver_skipstone_(\w+)\{[^}]*\} ([\d.E-]+)$", told, re.MULTILINE))
    assert found, told[-3000:]
    values = {name.removesuffix("_Count").removesuffix("_Value"): float(value) for name, value in found.items()}
    assert values["scans_planned"] >= 2
    assert values["scans_skipping"] >= 1
    assert (values["objects_skipped"] >= 3, values["bytes_skipped"] > 0) == (True, True)
    assert values["scans_stoodAside"] == 1
    assert values["scans_failed"] == 1
    assert values["failures_TimeoutException"] == 1
    named = re.findall(
        r"`([a-z]+(?:\.[a-zA-Z]+)?)`", text.partition("| metric (")[2].partition("What to be alarmed")[0]
    )
    for name in named:
        if name != "failures.NAME":
            assert any(shown.startswith(name.replace(".", "_")) for shown in found), name
