"""The command line: what it prints, as text and as JSON, how it fails, and that it keeps Spark's noise away."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import skipstone
from skipstone import (
    BloomFilterIndex,
    FormattedIndex,
    GapListIndex,
    GeoBoxIndex,
    HybridIndex,
    MetricDistanceIndex,
    MinMaxIndex,
    PrefixIndex,
    ValueListIndex,
)
from skipstone.cli.indexes import parse_index, shorthand
from skipstone.cli.main import app
from skipstone.cli.output import Output
from skipstone.cli.session import pairs
from skipstone.cli.support import failing_politely
from skipstone.errors import IndexingError, SettingError

OBJECTS = 6


@pytest.fixture
def folder(tmp_path):
    """Six objects of ten numbers and a name each."""
    made = tmp_path / "data"
    made.mkdir()
    for number in range(OBJECTS):
        write(made, number)
    return made


def write(folder, number):
    values = list(range(number * 10, number * 10 + 10))
    pq.write_table(pa.table({"n": values, "name": [f"name-{number}"] * 10}), folder / f"{number}.parquet")


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def run_json(*arguments, code=0):
    return json.loads(run(*arguments, "--output", "json", code=code).stdout)


def test_the_life_of_a_dataset(spark, folder):
    report = run_json("index", folder, "--minmax", "n", "--bloom", "name:fpp=0.001")
    assert report["indexes"] == ["minmax(n)", "bloomfilter(name, fpp=0.001)"]
    assert (report["objects"], report["indexed"], report["rows"]) == (OBJECTS, OBJECTS, 60)

    described = run_json("describe", folder)
    assert described["root"].endswith("/data")
    assert [i["name"] for i in described["indexes"]] == report["indexes"]
    assert described["indexes"][1]["options"]["fpp"] == 0.001
    assert all((i["covered"], i["stale"], i["missing"]) == (OBJECTS, 0, 0) for i in described["indexes"])

    (scan,) = run_json("explain", folder, "n >= 50")["scans"]
    assert (scan["objects"]["kept"], scan["objects"]["skipped"]) == (1, OBJECTS - 1)
    explained = run_json("explain", folder, "SELECT max(n) FROM dataset WHERE name = 'name-3'")
    assert explained["scans"][0]["objects"]["kept"] == 1
    assert explained["scans"][0]["used"] == ["bloomfilter(name, fpp=0.001)"]
    assert "bloomfilter(name, fpp=0.001)" in explained["text"]

    write(folder, OBJECTS)
    assert run_json("describe", folder)["indexes"][0]["missing"] == 1
    assert run_json("refresh", folder)["indexed"] == 1
    assert run_json("refresh", folder)["indexed"] == 0
    for number in (7, 8):
        write(folder, number)
    assert run_json("refresh", folder, "--path", "7.parquet")["indexed"] == 1
    assert run_json("refresh", folder, "--path", folder / "8.parquet")["indexed"] == 1

    dropped = run_json("drop", folder, "minmax(n)")
    assert (dropped["dropped"], dropped["all"]) == (["minmax(n)"], False)
    assert [i["type"] for i in run_json("describe", folder)["indexes"]] == ["bloomfilter"]
    assert run_json("drop", folder)["all"]
    assert run_json("describe", folder)["indexes"] == []


def test_an_estimate_builds_nothing(spark, folder):
    told = run_json("index", folder, "--minmax", "n", "--bloom", "name", "--estimate", "--sample", "2")
    assert (told["objects"], told["sampled"]) == (OBJECTS, 2)
    assert [one["name"] for one in told["indexes"]] == ["minmax(n)", "bloomfilter(name)"]
    assert "bytes an object" in run("index", folder, "--minmax", "n", "--estimate").stdout
    assert run_json("describe", folder)["indexes"] == []


def test_text_is_for_people(spark, folder):
    assert f"{OBJECTS} of {OBJECTS} objects indexed" in run("index", folder, "--minmax", "*").stdout
    described = run("describe", folder).stdout
    assert "minmax(n)" in described
    assert "minmax(name)" in described
    explained = run("explain", folder, "n < 15 AND length(name) > 3").stdout
    assert f"reads 2 of {OBJECTS} objects" in explained
    assert "no index serves" in explained
    assert "dropped minmax(n)" in run("drop", folder, "minmax(n)").stdout
    assert "dropped all metadata" in run("drop", folder).stdout
    assert "skipstone index" in run("describe", folder).stdout


def test_audit(spark, folder):
    run("index", folder, "--minmax", "n")
    (scan,) = run_json("audit", folder, "n >= 50", "--objects", "2")["scans"]
    assert (scan["query"], scan["objects"], scan["skipped"], scan["looked_into"]) == (1, OBJECTS, OBJECTS - 1, 2)
    told = run("audit", folder, "n >= 50", "name = 'x'", "--bytes", "1").stdout
    assert "n >= 50: 1 of 5 skipped objects looked into, of 6" in told
    assert "1 of 5 skipped objects (20.0%) were looked into" in told


def test_a_location_of_its_own_and_reader_options(spark, tmp_path, folder):
    data = tmp_path / "csv"
    data.mkdir()
    for number in range(3):
        (data / f"{number}.csv").write_text(f"n;s\n{number};x\n")
    place = tmp_path / "metadata"
    place.mkdir()
    reading = ("--format", "csv", "--option", "header=true", "--option", "sep=;", "--schema", "n int, s string")
    try:
        run("index", data, "--minmax", "n", "--location", place, *reading)
        assert not (data / "_skipstone").exists()
        assert any(place.iterdir())
        (scan,) = run_json("explain", data, "n = 2", "--location", place, *reading)["scans"]
        assert scan["objects"]["kept"] == 1
    finally:
        spark.conf.unset("spark.skipstone.location")


def test_a_table_takes_the_place_of_the_path(spark, folder):
    spark.sql(f"CREATE TABLE cli_table USING parquet LOCATION '{folder}'")
    try:
        assert run_json("index", "--table", "cli_table", "--valuelist", "name")["indexed"] == OBJECTS
        assert run_json("explain", "--table", "cli_table", "name = 'name-1'")["scans"][0]["objects"]["kept"] == 1
        assert run_json("drop", "--table", "cli_table", "valuelist(name)")["dropped"] == ["valuelist(name)"]
    finally:
        spark.sql("DROP TABLE cli_table")


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        (("index", "{}", "--minmax", "nam"), "ColumnNotFoundError", "did you mean name"),
        (("index", "{}", "--index", "minmx(n)"), "IndexingError", "did you mean minmax?"),
        (("refresh", "{}"), "IndexNotFoundError", "no index"),
        (("drop", "{}", "minmax(n)"), "IndexNotFoundError", "minmax(n)"),
        (("describe", "{}/nowhere"), "DatasetError", "nowhere"),
        (("explain", "{}", "nn > 3"), "AnalysisException", "nn"),
        (("explain", "{}", "SELECT n FROM dataset WHERE ("), "ParseException", "Syntax error"),
    ],
)
def test_an_error_is_one_line_or_one_document(spark, folder, arguments, kind, said):
    arguments = [a.format(folder) for a in arguments]
    error = run_json(*arguments, code=1)
    assert error["type"] == kind
    assert said in error["error"]
    result = run(*arguments, code=1)
    assert result.stdout == ""
    assert result.stderr == f"skipstone: {error['error']}\n"
    assert result.stderr.count("\n") == 1


def test_wrong_usage_is_exit_code_two():
    assert CliRunner().invoke(app, ["describe", "x", "--output", "xml"]).exit_code == 2
    assert CliRunner().invoke(app, ["no-such-command"]).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        (("index", "x"), "IndexingError", "at least one index"),
        (("index", "x", "--bloom", "n:fp=0.1"), "IndexingError", "has no option 'fp'"),
        (("index", "x", "--bloom", "n:fpp=2"), "SettingError", "fpp=2"),
        (("index", "x", "--prefix", "url"), "IndexingError", "needs length"),
        (("index", "x", "--index", "minmax(n"), "IndexingError", "is not an index"),
        (("index", "x", "--index", "minmax(n, colour=red)"), "IndexingError", "has no option 'colour'"),
        (("index", "x", "--minmax", "n", "--option", "header"), "SettingError", "key=value"),
        (("index", "x", "--minmax", "n", "--conf", "spark.ui"), "SettingError", "key=value"),
        (("index", "x", "--minmax", "n", "--conf", "spark.skipstone.plugins=no.such"), "PluginError", "no.such"),
        (("describe", "x", "--table", "t"), "DatasetError", "one of the two"),
        (("describe",), "DatasetError", "PATH"),
        (("explain", "x"), "DatasetError", "QUERY"),
        (("indicators", "x"), "WorkloadError", "at least one QUERY"),
        (("audit", "x"), "WorkloadError", "at least one QUERY"),
        (("audit", "x", "n = 1", "--bytes", "much"), "DatasetError", "at least one object and byte"),
        (("report", "x"), "WorkloadError", "-o report.html"),
        (("report", "x", "-o", "r.html", "--workload", "nowhere.sql"), "WorkloadError", "cannot be read"),
    ],
)
def test_wrong_usage_is_said_before_spark_starts(monkeypatch, arguments, kind, said):
    def started(*_, **__):
        raise AssertionError("Spark was asked for")

    monkeypatch.setattr("skipstone.engines.spark.session.configure", started)
    result = run(*arguments, code=2)
    assert said in result.stderr
    if arguments[0] != "report":
        assert run_json(*arguments, code=2)["type"] == kind


@pytest.mark.parametrize(("name", "text"), [("csv", "n;s\n{0};x\n"), ("json", '{{"n": {0}, "s": "x"}}\n')])
def test_a_dataset_is_read_as_it_was_indexed(spark, tmp_path, name, text):
    data = tmp_path / name
    data.mkdir()
    for number in range(3):
        (data / f"{number}.{name}").write_text(text.format(number))
        (data / f"{number}.other").write_text("not for us")
    reading = ["--format", name, "--schema", "n int, s string", "--option", f"pathGlobFilter=*.{name}"]
    reading += ["--option", "header=true", "--option", "sep=;"] if name == "csv" else []
    run("index", data, "--minmax", "n", *reading)

    (scan,) = run_json("explain", data, "n = 2")["scans"]
    assert (scan["objects"]["kept"], scan["objects"]["skipped"]) == (1, 2)
    (data / f"3.{name}").write_text(text.format(3))
    refreshed = run("refresh", data)
    assert "1 of 4 objects indexed" in refreshed.stdout
    assert refreshed.stderr == ""
    (described,) = run_json("describe", data)["indexes"]
    assert (described["covered"], described["missing"], described["not_used"]) == (4, 0, None)
    assert "1 of 4 objects indexed" not in run("index", data, "--valuelist", "s").stdout
    run("drop", data, "valuelist(s)")
    run("index", data, "--valuelist", "s")
    run("drop", data, "minmax(n)")  # the one that kept how the dataset was read
    assert run_json("explain", data, "n = 2 AND s = 'y'")["scans"][0]["objects"]["kept"] == 0

    indexed = {"csv": "csv, header=true, pathglobfilter=*.csv, sep=;", "json": "json, pathglobfilter=*.json"}[name]
    other = run("describe", data, "--format", "text", "--option", f"pathGlobFilter=*.{name}")
    assert f"was indexed as {indexed}, and is read as text" in other.stderr
    wrong = run("describe", data, "--format", "parquet", code=1)
    assert f"it was indexed as {indexed}" in wrong.stderr


def test_the_version():
    assert run("--version").stdout.strip() == f"skipstone {skipstone.__version__}"


def test_the_jar_and_how_to_use_it():
    path = run("jar").stdout.strip()
    assert path.endswith(".jar")
    told = run("jar", "--conf").stdout
    assert f"--conf spark.jars={path}" in told
    assert "spark.sql.extensions  org.apache.spark.sql.skipstone.SkipstoneExtensions" in told
    assert "skipstone.configure" in told
    assert run_json("jar")["conf"]["spark.jars"] == path


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: shorthand("minmax", "ts"), MinMaxIndex("ts")),
        (lambda: shorthand("minmax", "*"), MinMaxIndex("*")),
        (lambda: shorthand("prefix", "url:length=4"), PrefixIndex("url", length=4)),
        (lambda: parse_index("geobox(lat, lng, boxes=8)"), GeoBoxIndex("lat", "lng", boxes=8)),
        (lambda: parse_index("valuelist(attrs, of='keys')"), ValueListIndex("attrs", of="keys")),
        (lambda: parse_index("formatted(ua, extract='f')"), FormattedIndex("ua", extract="f")),
        (lambda: parse_index("gaplist(n, gaps=3)"), GapListIndex("n", gaps=3)),
        (lambda: parse_index("metricdistance(v, metric='angular')"), MetricDistanceIndex("v", metric="angular")),
        (lambda: shorthand("minmax", "s.x"), MinMaxIndex("s.x")),
        (lambda: shorthand("valuelist", "`a:b=c`"), ValueListIndex("`a:b=c`")),
        (lambda: shorthand("bloomfilter", "a:fpp=0.001"), BloomFilterIndex("a", fpp=0.001)),
        (lambda: shorthand("hybrid", "a:threshold=auto,name=mine"), HybridIndex("a", threshold="auto", name="mine")),
        (lambda: parse_index("minmax(ts)"), MinMaxIndex("ts")),
        (lambda: parse_index(" BloomFilter( account , fpp=0.001 )"), BloomFilterIndex("account", fpp=0.001)),
        (lambda: parse_index("hybrid(`a, b`, threshold='auto')"), HybridIndex("`a, b`", threshold="auto")),
        (lambda: parse_index("hybrid(a, threshold=1_000)"), HybridIndex("a", threshold=1000)),
    ],
)
def test_indexes_are_spelled_as_they_are_named(made, expected):
    assert made() == expected
    assert expected.name == "mine" or parse_index(expected.name) == expected


@pytest.mark.parametrize(
    "text", ["minmax", "minmax(", "(ts)", "minmax()", "minmax(a, b)", "minmax(a, fpp=1)", "nothing(a)"]
)
def test_what_is_no_index_is_said_to_be_none(text):
    with pytest.raises(IndexingError):
        parse_index(text)


@pytest.mark.parametrize("text", ["a", "=b", ""])
def test_pairs_need_a_key_and_a_value(text):
    with pytest.raises(SettingError, match="--conf takes key=value"):
        pairs([text], "--conf")


def test_what_is_not_expected_is_not_hidden():
    with pytest.raises(ZeroDivisionError), failing_politely(Output.TEXT):
        1 / 0  # noqa: B018


def test_without_java_the_error_says_so(tmp_path):
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    command = [sys.executable, "-c", "from skipstone.cli.main import main; main()", "describe", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Java 17+" in done.stderr


@pytest.mark.slow
def test_a_real_process_prints_nothing_but_its_answer(folder, tmp_path):
    log = tmp_path / "spark.log"
    command = [
        sys.executable,
        "-c",
        "from skipstone.cli.main import main; main()",
        "index",
        str(folder),
        "--minmax",
        "n",
    ]
    command += ["--output", "json", "--conf", "spark.master=local[1]", "--spark-log", str(log)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["indexed"] == OBJECTS
    assert done.stderr == ""
    assert "WARN" in log.read_text()
