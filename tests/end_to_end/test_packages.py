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
    environment = {**os.environ, "SKIPSTONE_WHEEL_JAR": wish}
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, timeout=600, env=environment)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        assert (JAR in content.namelist()) is has_jar
