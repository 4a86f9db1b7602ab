"""The packages have in them what the documentation says, and the wheel the jar where it can be made."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from tests.servers.downloads import unavailable

ROOT = Path(__file__).parents[2]
JAR = "skipstone/engines/spark/bridge/skipstone-bridge.jar"


@pytest.fixture
def hook():
    specification = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_source_distribution_has_documents_and_examples(tmp_path):
    (archive,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path))
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    for name in (
        *(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")),
        "docs/how-it-works.svg",
        "examples/custom_index.py",
        "examples/skipstone-lengths/pyproject.toml",
        "scripts/site/build.py",
        "scripts/site/zensical.toml",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "hatch_build.py",
        "src/skipstone/engines/spark/bridge/Bridge.scala",
    ):
        assert name in names, name
    assert not [name for name in names if name.endswith(".jar")]


def test_pyspark_of_the_environment_that_is_installed_into_is_found(hook, monkeypatch, tmp_path):
    assert hook.missing_tool() is None
    monkeypatch.setattr(hook.importlib.util, "find_spec", lambda name: None)  # as pip's isolation has it
    monkeypatch.setenv("PYTHONPATH", "of pip's isolation")
    monkeypatch.setattr(hook.sysconfig, "get_path", lambda name: str(tmp_path))
    assert "neither" in hook.missing_tool()
    (tmp_path / "pyspark").mkdir()
    assert hook.missing_tool() is None
    assert hook.pyspark_at_hand() == ""


@pytest.mark.parametrize(("wish", "there", "asked"), [("auto", False, 0), ("require", False, 1), ("require", True, 0)])
def test_the_build_asks_for_pyspark_only_where_the_jar_is_required(hook, monkeypatch, tmp_path, wish, there, asked):
    monkeypatch.setenv("SKIPSTONE_WHEEL_JAR", wish)
    monkeypatch.setattr(hook, "pyspark_at_hand", lambda: "" if there else None)
    build_hook = hook.BridgeBuildHook(str(ROOT), {}, None, None, str(tmp_path), "wheel")
    assert len(build_hook.dependencies()) == asked


@pytest.mark.long  # compiles, and fetches the build's own requirements
@pytest.mark.parametrize(("wish", "has_jar"), [("auto", True), ("never", False)])
def test_pip_builds_a_wheel_with_the_jar_where_pyspark_is_installed(tmp_path, wish, has_jar):
    with zipfile.ZipFile(built_wheel(tmp_path, wish)) as content:
        assert (JAR in content.namelist()) is has_jar


def built_wheel(folder, wish):
    """Let pip build the wheel."""
    environment = {**os.environ, "SKIPSTONE_WHEEL_JAR": wish}
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, timeout=600, env=environment)
    (wheel,) = folder.glob("*.whl")
    return wheel


INDEXED_QUERY = """
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import skipstone

assert Path(skipstone.__file__).is_relative_to(sys.prefix), skipstone.__file__
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = skipstone.configure(builder).getOrCreate()
spark.range(0, 80, numPartitions=8).write.parquet("numbers")
print(skipstone.Dataset.for_path(spark, "numbers").create_indexes(skipstone.MinMaxIndex("id")))
query = spark.read.parquet("numbers").where("id IN (7, 8)")
print("rows", query.count(), "kept", skipstone.last_query(spark)[-1].objects.kept)
"""


@pytest.mark.long  # fetches all that Skipstone requires, pyspark included
@pytest.mark.timeout(2_400)
def test_an_installed_wheel_indexes_and_skips_without_the_checkout(tmp_path):
    wheel = built_wheel(tmp_path, "require")
    home = tmp_path / "installed"
    python = str(home / "bin" / "python")
    install = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    for command in ((sys.executable, "-m", "venv", str(home)), install):
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=1_800, env=without_python())
        except subprocess.CalledProcessError as error:
            unavailable("what the wheel requires", error.stderr)

    jar = run_outside(tmp_path, str(home / "bin" / "skipstone"), "jar").strip()
    assert jar.endswith(JAR)
    assert Path(jar).is_relative_to(home)  # that of the wheel: nothing is compiled on first use
    assert "rows 2 kept 1" in run_outside(tmp_path, python, "-c", INDEXED_QUERY)


def run_outside(folder, *command):
    """Run a command where no checkout is on any path; a file takes what it says, since a JVM may outlive it."""
    output = folder / "output.txt"
    with output.open("wb") as sink:
        ended = subprocess.run(
            command, cwd=folder, stdout=sink, stderr=subprocess.STDOUT, env=without_python(), timeout=300, check=False
        )
    said = output.read_text()
    assert ended.returncode == 0, said
    return said


def without_python():
    """Return the environment without what names an interpreter or its paths."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYSPARK", "SPARK_", "VIRTUAL_ENV"))}
