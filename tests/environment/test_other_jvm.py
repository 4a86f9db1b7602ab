"""Indexed in one JVM, asked in another: its default zone and its locale change what readers and functions give."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from tests.environment import child
from tests.environment.steps import LINE_LENGTH
from tests.soundness.attack import same_rows

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Jvm:
    """How a driver, and perhaps executors of its own, are started."""

    java: str = "-Dskipstone.test=nothing"
    master: str = "local[1]"
    settings: tuple[str, ...] = ()
    site: str = ""


ELSEWHERE = "America/Los_Angeles"
CLUSTER = "local-cluster[1,1,1024]"
JVMS = {
    "alike": Jvm(),
    "elsewhere": Jvm(f"-Duser.timezone={ELSEWHERE} -Duser.language=tr"),
    "zone": Jvm(f"-Duser.timezone={ELSEWHERE}"),
    "language": Jvm("-Duser.language=tr"),
    "provider": Jvm("-Djava.locale.providers=COMPAT"),
    "site": Jvm(site=LINE_LENGTH),
    "executors": Jvm(
        master=CLUSTER,
        settings=(
            f"spark.executor.extraJavaOptions=-Duser.timezone={ELSEWHERE} -Duser.language=tr",
            "spark.executor.memory=600m",
        ),
    ),
    "executors' environment": Jvm(
        master=CLUSTER, settings=(f"spark.executorEnv.TZ={ELSEWHERE}", "spark.executor.memory=600m")
    ),
}
IN_ZONE = [name for name in child.QUESTIONS if name.startswith(("orc", "micros", "int96"))]


def _long(*names):
    """Mark JVMs of their own that only ``--long`` starts: what differs in one of them differs in another, too."""
    return [pytest.param(name, marks=pytest.mark.long) for name in names]


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
            found[jvm] = None  # a JVM that does not answer is not asked again
            found[jvm] = _ask(folder, jvm)
        assert found[jvm] is not None, f"{jvm}: see the first failure"
        return found[jvm]

    return ask


def _ask(folder, jvm):
    out, log = folder / f"{jvm}.json", folder / f"{jvm}.log"
    paths = os.pathsep.join([str(REPOSITORY / "src"), str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    how = JVMS[jvm]
    environment = {
        **os.environ,
        "PYTHONPATH": paths,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYSPARK_SUBMIT_ARGS": f"--driver-java-options '{how.java}' pyspark-shell",
    }
    if how.site:
        value = f"<property><name>{how.site}</name><value>10</value></property>"
        (folder / "site").mkdir()
        (folder / "site" / "core-site.xml").write_text(f"<configuration>{value}</configuration>")
        environment["HADOOP_CONF_DIR"] = str(folder / "site")
    with log.open("w") as file:  # a JVM that inherits a pipe would keep us waiting
        command = [sys.executable, "-m", "tests.environment.child", str(folder), str(out), how.master, *how.settings]
        code = subprocess.call(command, stdout=file, stderr=file, cwd=folder, timeout=300, env=environment)
    assert code == 0, log.read_text()[-3000:]
    return {name: child.Answer(**answer) for name, answer in json.loads(out.read_text()).items()}


@pytest.mark.parametrize("jvm", ["elsewhere", *_long("zone", "executors")])
@pytest.mark.parametrize("question", IN_ZONE)
def test_instants_read_under_another_default_zone(answers, jvm, question):
    found = answers(jvm)[question]
    assert found.on == found.off


@pytest.mark.parametrize("jvm", ["elsewhere", *_long("language", "executors")])
@pytest.mark.parametrize("question", ["upper", "lower"])
def test_texts_turned_to_capitals_under_another_locale(answers, jvm, question):
    found = answers(jvm)[question]
    assert found.off, "the locale makes no difference: the test says nothing"
    assert found.on == found.off


@pytest.mark.long
@pytest.mark.parametrize("question", IN_ZONE)
def test_zone_from_the_environment_of_executors(answers, question):
    found = answers("executors' environment")[question]
    assert found.on == found.off


@pytest.mark.long
def test_names_of_months_from_another_provider_of_locales(answers):
    found = answers("provider")["months"]
    assert found.off, "it makes no difference: the test says nothing"
    assert found.on == found.off


@pytest.mark.parametrize("jvm", [*_long("site"), "alike"])
def test_lines_indexed_where_a_site_file_of_hadoops_cuts_them(spark, folder, answers, jvm):
    answers(jvm)
    lines = folder / f"{jvm}.lines"
    skipped = same_rows(spark, lambda: spark.read.text(str(lines)).where("value = 'a line of some length'"))
    assert skipped == (2 if jvm == "alike" else 0)


def test_another_zone_makes_a_difference(folder, answers, spark):
    here, there = child.answers(spark, folder), answers("elsewhere")
    for kind in ("orc", "micros", "int96"):
        assert any(here[name].off != there[name].off for name in here if name.startswith(kind)), kind


def test_a_jvm_alike_in_all_that_matters_skips(answers):
    for name, found in answers("alike").items():
        assert found.on == found.off, name
        assert found.skipped, name


@pytest.mark.parametrize("jvm", ["elsewhere", *_long("zone", "language")])
def test_numbers_are_skipped_whatever_the_zone_and_the_locale(answers, jvm):
    found = answers(jvm)["numbers"]
    assert (found.on, found.skipped) == (["2"], 2)
