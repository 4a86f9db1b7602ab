"""Build hook: puts the compiled bridge into the wheel when the build environment can compile it.

The Scala compiler is inside pyspark, which is too large to ask every build for. So the jar is built when Java and
pyspark are already there: in the build's environment (``make wheel``), or in the one that pip installs into. It is left
out otherwise: such a wheel compiles the bridge on first use and caches it. ``SKIPSTONE_WHEEL_JAR=require`` lets the
build ask for pyspark, and turns a missing jar into an error; ``never`` leaves the jar out. Editable installs compile
nothing.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

JAR_IN_WHEEL = "skipstone/engines/spark/bridge/skipstone-bridge.jar"


class BridgeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compile ``skipstone/engines/spark/bridge/*.scala`` into the wheel, where possible."""

    def dependencies(self) -> list[str]:
        """Ask for pyspark, whose compiler it is, where the jar is required and there is none."""
        wanted = os.environ.get("SKIPSTONE_WHEEL_JAR") == "require" and pyspark_at_hand() is None
        return ["pyspark>=4.0,<5"] if wanted else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the jar to the files of the wheel."""
        wish = os.environ.get("SKIPSTONE_WHEEL_JAR", "auto")
        if version == "editable" or wish == "never":
            return
        self._folder = tempfile.mkdtemp(prefix="skipstone-bridge-")
        jar = Path(self._folder) / "skipstone-bridge.jar"
        reason = missing_tool() or compile_bridge(Path(self.root) / "src", jar)
        if reason is None:
            build_data["force_include"][str(jar)] = JAR_IN_WHEEL
        elif wish == "require":
            raise RuntimeError(f"The bridge jar was required in the wheel, but {reason}")
        else:
            self.app.display_warning(f"Wheel without the bridge jar, compiled on first use instead: {reason}")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the jar once it is in the wheel."""
        if folder := getattr(self, "_folder", None):
            shutil.rmtree(folder, ignore_errors=True)


def missing_tool() -> str | None:
    """Say what this environment lacks to compile the bridge, or None."""
    if pyspark_at_hand() is None:
        return "pyspark is neither in the build's environment nor in the one that is installed into"
    java_home = os.environ.get("JAVA_HOME")
    if not (java_home and Path(java_home, "bin", "java").exists()) and shutil.which("java") is None:
        return "there is no Java in the build environment"
    return None


def pyspark_at_hand() -> str | None:
    """Return the PYTHONPATH with which this interpreter finds pyspark, or None."""
    if importlib.util.find_spec("pyspark") is not None:
        return os.environ.get("PYTHONPATH", "")
    # pip hides the packages of the environment that it installs into by a PYTHONPATH of its own.
    return "" if Path(sysconfig.get_path("purelib"), "pyspark").is_dir() else None


def compile_bridge(source: Path, jar: Path) -> str | None:
    """Compile the bridge to ``jar``; return the reason when that fails."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(source), pyspark_at_hand()]))}
    build = subprocess.run(
        [sys.executable, "-m", "skipstone.engines.spark.bridge.build", str(jar)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if build.returncode == 0 and jar.is_file():
        return None
    output = (build.stderr.strip() or build.stdout.strip()).splitlines()
    return f"compiling it failed: {output[-1] if output else f'exit code {build.returncode}'}"
