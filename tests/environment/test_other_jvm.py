"""Indexed in one JVM, asked in another: its default zone and its locale change what readers and functions give."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment import child

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]
JVMS = {
    "zone": "-Duser.timezone=America/Los_Angeles",
    "language": "-Duser.language=tr",
    "alike": "-Dskipstone.test=nothing",
}


@pytest.fixture(scope="module")
def folder(spark, tmp_path_factory):
    made = tmp_path_factory.mktemp("jvms")
    child.make(spark, made)
    return made


@pytest.fixture(scope="module")
def answers(folder):
    """What each JVM found, asked when first needed."""
    found = {}

    def ask(jvm):
        if jvm not in found:
            found[jvm] = _ask(folder, jvm)
        return found[jvm]

    return ask


def _ask(folder, jvm):
    out, log = folder / f"{jvm}.json", folder / f"{jvm}.log"
    paths = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    environment = {
        **os.environ,
        "PYTHONPATH": paths,
        "PYSPARK_SUBMIT_ARGS": f"--driver-java-options {JVMS[jvm]} pyspark-shell",
    }
    with log.open("w") as file:  # a JVM that inherits a pipe would keep us waiting
        command = [sys.executable, "-m", "tests.environment.child", str(folder), str(out)]
        code = subprocess.call(command, stdout=file, stderr=file, cwd=folder, timeout=300, env=environment)
    assert code == 0, log.read_text()[-3000:]
    return {name: child.Answer(**answer) for name, answer in json.loads(out.read_text()).items()}


@pytest.mark.parametrize("question", [name for name in child.QUESTIONS if name not in ("upper", "lower", "numbers")])
def test_instants_read_under_another_default_zone(answers, question):
    found = answers("zone")[question]
    assert found.on == found.off


@pytest.mark.parametrize("question", ["upper", "lower"])
def test_texts_turned_to_capitals_under_another_locale(answers, question):
    found = answers("language")[question]
    assert found.off, "the locale makes no difference: the test says nothing"
    assert found.on == found.off


def test_another_zone_makes_a_difference(folder, answers, spark):
    here, there = child.answers(spark, folder), answers("zone")
    for kind in ("orc", "micros", "int96"):
        assert any(here[name].off != there[name].off for name in here if name.startswith(kind)), kind


def test_a_jvm_alike_in_all_that_matters_skips(answers):
    for name, found in answers("alike").items():
        assert found.on == found.off, name
        assert found.skipped, name


@pytest.mark.parametrize("jvm", ["zone", "language"])
def test_numbers_are_skipped_whatever_the_zone_and_the_locale(answers, jvm):
    found = answers(jvm)["numbers"]
    assert (found.on, found.skipped) == (["2"], 2)
