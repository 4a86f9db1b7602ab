"""``skipstone server-conf``: complete settings for each kind of program, in the form in which it takes them."""

from __future__ import annotations

import json
import shlex
import sys

import pytest
from typer.testing import CliRunner

from skipstone.cli.checks import read_defaults
from skipstone.cli.main import app
from skipstone.cli.server_conf import Place
from skipstone.engines.spark.bridge.build import bridge_jar
from skipstone.engines.spark.session import EXTENSION

COMPANION = "spark.skipstone.companion."


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["server-conf", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def settings_of(command):
    """Read the settings of a command as a shell and spark-submit would."""
    words = shlex.split(command, comments=True)
    return dict(words[place + 1].split("=", 1) for place, word in enumerate(words) if word == "--conf")


def test_spark_defaults_are_lines_that_spark_reads(tmp_path):
    file = tmp_path / "spark-defaults.conf"
    file.write_text(run())
    assert read_defaults(file) == {
        "spark.jars": str(bridge_jar()),
        "spark.sql.extensions": EXTENSION,
        f"{COMPANION}enabled": "true",
        f"{COMPANION}python": sys.executable,
    }


@pytest.mark.parametrize(
    "place", ["spark-submit", "spark-sql", "spark-shell", "connect", "thrift", "kubernetes", "yarn"]
)
def test_commands_have_all_settings(place):
    printed = json.loads(run("--for", place, "--output", "json"))
    settings = settings_of(printed["text"])
    assert printed["for"] == place
    assert printed["conf"].items() <= settings.items()
    assert settings["spark.sql.extensions"] == EXTENSION
    assert settings[f"{COMPANION}enabled"] == "true"
    assert printed["text"] == run("--for", place).rstrip("\n")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("connect", "org.apache.spark.sql.connect.service.SparkConnectServer spark-internal"),
        ("thrift", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2 spark-internal"),
        ("spark-sql", "spark-sql \\"),
        ("spark-shell", "spark-shell \\"),
        ("kubernetes", "spark.jars=local:///opt/skipstone/skipstone-bridge.jar"),
        ("yarn", "spark.archives='env.tar.gz#env'"),
        ("docker", "/opt/skipstone/bin/skipstone jar"),
    ],
)
def test_each_place_has_its_own(place, said):
    assert said in run("--for", place)


def test_a_server_elsewhere_has_its_own_paths_and_settings():
    given = ("--jar", "/srv/a b/skipstone.jar", "--python", "/srv/python", "--conf", "spark.driver.memory=8g")
    settings = settings_of(run("--for", "connect", *given))
    assert settings["spark.jars"] == "/srv/a b/skipstone.jar"
    assert settings[f"{COMPANION}python"] == "/srv/python"
    assert settings["spark.driver.memory"] == "8g"


def test_a_dockerfile_gives_every_setting_a_line(tmp_path):
    """The text that its printf gets, as the image's shell would print it, is a file that Spark reads."""
    import subprocess

    text = run("--for", "docker", "--conf", "spark.skipstone.location=/lake/index")
    line = text[text.index("printf ") : text.index(" > /opt")]
    file = tmp_path / "spark-defaults.conf"
    file.write_bytes(subprocess.run(["sh", "-c", line], capture_output=True, check=True).stdout)
    settings = read_defaults(file)
    assert settings["spark.sql.extensions"] == EXTENSION
    assert settings["spark.skipstone.location"] == "/lake/index"
    assert settings[f"{COMPANION}python"] == settings["spark.pyspark.python"] == "/opt/skipstone/bin/python"


def test_what_is_not_a_setting_is_refused():
    assert "key=value" in CliRunner().invoke(app, ["server-conf", "--conf", "nothing"]).output
    assert run("--for", "mainframe", code=2) == ""


def test_every_place_is_tried_above():
    assert len(Place) == 9
