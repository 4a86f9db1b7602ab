"""``skipstone doctor``: what it looks at, what it says to do, and its exit code."""

from __future__ import annotations

import json
import os
import sys

import pytest
from typer.testing import CliRunner

from skipstone.cli.checks import (
    State,
    check_companion,
    check_extensions,
    check_jar,
    check_settings,
    check_software,
    read_defaults,
)
from skipstone.cli.dataset_checks import _clock, check_dataset
from skipstone.cli.main import app
from skipstone.engines.spark.session import EXTENSION
from tests.support import conf

DELTA = "io.delta.sql.DeltaSparkSessionExtension"
PYTHON = "spark.skipstone.companion.python"
ENABLED = {"spark.skipstone.companion.enabled": "true"}


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["doctor", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def only(findings):
    (finding,) = findings
    return finding


def test_a_session_and_a_dataset_are_well(spark, tmp_path):
    found = json.loads(run(tmp_path, "--output", "json"))
    assert found["well"]
    states = {finding["check"]: finding["state"] for finding in found["findings"]}
    assert set(states) >= {"python", "pyspark", "java", "jar", "settings", "session", "write", "clock"}
    assert set(states.values()) == {"well"}
    said = {finding["check"]: finding["said"] for finding in found["findings"]}
    assert "read 1 of 2 objects" in said["session"]
    assert list(tmp_path.iterdir()) == []  # what was written to try is gone


def test_text_says_what_to_do_and_the_code_tells(spark, tmp_path):
    file = tmp_path / "server.conf"
    file.write_text(f"spark.sql.extensions {EXTENSION},{DELTA}\nspark.skipstone.enabeld=false\n{PYTHON} /no/python\n")
    text = run("--properties-file", file, "--conf", "spark.skipstone.companion.enabled=true", code=1)
    assert "did you mean spark.skipstone.enabled?" in text
    assert f"name it last: spark.sql.extensions={DELTA},{EXTENSION}" in text
    assert "its interpreter '/no/python' is not there" in text
    assert text.rstrip().endswith("checks failed")
    assert "session" in text
    assert "no session was started" in text


def test_properties_are_read_as_spark_reads_them(tmp_path):
    file = tmp_path / "spark-defaults.conf"
    file.write_text("# c\n! c\n\nspark.a  b c\nspark.d=e=f\nspark.g\th\n")
    assert read_defaults(file) == {"spark.a": "b c", "spark.d": "e=f", "spark.g": "h"}


@pytest.mark.parametrize(
    ("value", "state", "said"),
    [
        (EXTENSION, State.WELL, EXTENSION),
        (f"{DELTA},{EXTENSION}", State.WELL, DELTA),
        (f"{EXTENSION}, {DELTA}", State.ODD, "comes before Delta's"),
        (f"{EXTENSION},org.apache.sedona.sql.SedonaSqlExtensions", State.ODD, "Sedona's"),
        (f"{EXTENSION},my.Own", State.ODD, "my.Own"),
        (DELTA, State.BROKEN, f"without {EXTENSION}"),
        ("", State.BROKEN, "is empty"),
    ],
)
def test_the_order_of_extensions(value, state, said):
    finding = only(check_extensions(value))
    assert finding.state is state
    assert said in finding.said
    assert (finding.todo is None) is (state is State.WELL)


def test_an_extension_that_is_named_twice():
    assert [f.state for f in check_extensions(f"{EXTENSION},{EXTENSION}")] == [State.ODD, State.WELL]


def test_settings():
    wrong = {"spark.skipstone.enabled": "maybe", "spark.skipstone.locaton": "/x", "spark.skipstone.kms.any": "x"}
    found = list(check_settings(wrong))
    assert [(f.state, f.todo) for f in found] == [
        (State.BROKEN, "allowed is true or false"),
        (State.ODD, "did you mean spark.skipstone.location?"),
    ]
    well = only(check_settings({"spark.skipstone.plugins": "a", "spark.skipstone.kms.token": "secret", "spark.x": "y"}))
    assert well.state is State.WELL
    assert well.said == "plugins=a"  # what may be secret is not repeated


def test_the_companion(tmp_path):
    off = only(check_companion({}))
    assert (off.state, "companion.enabled=true" in str(off.todo)) == (State.ODD, True)
    on = only(check_companion({**ENABLED, PYTHON: sys.executable}))
    assert (on.state, sys.executable in on.said) == (State.WELL, True)
    missing = only(check_companion({**ENABLED, PYTHON: "/no/python"}))
    assert (missing.state, missing.todo) == (State.BROKEN, f"set {PYTHON}")
    bare = tmp_path / "python"  # an interpreter without Skipstone
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E -c "import skipstone"\n')
    bare.chmod(0o755)
    without = only(check_companion({**ENABLED, PYTHON: str(bare)}))
    assert without.state is State.BROKEN
    assert "No module named 'skipstone'" in without.said
    other = tmp_path / "skipstone"
    other.mkdir()
    (other / "__init__.py").write_text("__version__ = '9.9'")
    older = only(check_companion({**ENABLED, PYTHON: sys.executable, "spark.skipstone.companion.path": str(tmp_path)}))
    assert older.state is State.BROKEN
    assert "has Skipstone 9.9" in older.said


def test_software(monkeypatch):
    assert {f.state for f in check_software()} == {State.WELL}
    versions = {"pyspark": "3.5.1", "pyarrow": "19.0.0", "numpy": "2.0", "pandas": "3.0.1"}
    monkeypatch.setattr("skipstone.cli.checks.version", versions.__getitem__)
    states = {f.check: f.state for f in check_software()}
    assert (states["pyspark"], states["pyarrow"], states["pandas"]) == (State.BROKEN, State.WELL, State.BROKEN)
    monkeypatch.setitem(versions, "pyspark", "4.9.0")
    assert next(f for f in check_software() if f.check == "pyspark").state is State.ODD


def test_without_java_nothing_is_built(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    finding = only(check_jar())
    assert (finding.check, finding.state) == ("java", State.BROKEN)


def test_a_dataset_that_is_not_there(spark, tmp_path):
    finding = only(check_dataset(spark, str(tmp_path / "nowhere")))
    assert finding.state is State.BROKEN
    assert "there is no folder" in finding.said


def test_a_folder_that_may_not_be_written_to(spark, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "file").write_text("where a folder should be")
    with conf(spark, {"spark.skipstone.location": str(tmp_path / "file")}):
        found = list(check_dataset(spark, str(tmp_path / "data")))
    assert found[0].state is State.BROKEN
    assert "spark.skipstone.location" in str(found[0].todo)
    if os.geteuid() != 0:
        (tmp_path / "data").chmod(0o555)
        assert only(check_dataset(spark, str(tmp_path / "data"))).state is State.BROKEN


def test_clocks():
    now = 1_800_000_000.0
    assert "finer than seconds" in only(_clock([(now, now + 0.25)])).said
    assert "whole seconds" in only(_clock([(now, now), (now + 0.1, now)])).said
    ahead = only(_clock([(now, now + 60.5)]))
    assert (ahead.state, "60.5 s ahead of" in ahead.said) == (State.ODD, True)
    assert "behind" in only(_clock([(now, now - 9.5)])).said


@pytest.mark.parametrize(
    ("address", "said"),
    [("sc://127.0.0.1:1", "refused"), ("http://host", "sc://HOST:PORT"), ("sc://no.such.host.invalid", "no.such.host")],
)
def test_a_server_that_does_not_answer(address, said):
    found = json.loads(run("--remote", address, "-o", "json", code=1))
    assert not found["well"]
    last = found["findings"][-1]
    assert (last["check"], last["state"]) == ("server", "broken")
    assert f"{address} does not answer" in last["said"]
    assert said in last["said"]
    assert "server-conf --for connect" in last["todo"]
