"""What ``skipstone doctor`` looks at: each check gives findings, and each finding that is not well says what to do."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import skipstone
from skipstone.errors import BridgeBuildError

__all__ = [
    "Finding",
    "State",
    "check_companion",
    "check_extensions",
    "check_jar",
    "check_settings",
    "check_software",
    "defaults_file",
    "read_defaults",
]

_PREFIX: Final = "spark.skipstone."
"""Settings of which any name may follow: a plug-in's, or a function's."""
_NEWEST_TRIED: Final = (4, 3)
_OTHERS: Final = {
    "io.delta.sql.DeltaSparkSessionExtension": "Delta's",
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions": "Iceberg's",
    "org.apache.spark.sql.hudi.HoodieSparkSessionExtension": "Hudi's",
    "org.apache.sedona.sql.SedonaSqlExtensions": "Sedona's",
}
_ASK_COMPANION: Final = "import skipstone, pyarrow, numpy, pyspark; print(skipstone.__version__)"


class State(StrEnum):
    """How what was looked at is."""

    WELL = "well"
    ODD = "odd"
    BROKEN = "broken"


@dataclass(frozen=True)
class Finding:
    """What a check found, and what to do about it."""

    check: str
    state: State
    said: str
    todo: str | None = None


def well(check: str, said: str) -> Finding:
    """Return that all is well."""
    return Finding(check, State.WELL, said)


def odd(check: str, said: str, todo: str) -> Finding:
    """Return what works, but perhaps not as it was meant."""
    return Finding(check, State.ODD, said, todo)


def broken(check: str, said: str, todo: str) -> Finding:
    """Return what keeps Skipstone from working."""
    return Finding(check, State.BROKEN, said, todo)


def check_software() -> Iterator[Finding]:
    """Look at the versions of Python and of the packages that Skipstone needs."""
    yield well("python", f"Python {platform.python_version()} at {sys.executable}, Skipstone {skipstone.__version__}")
    yield _package("pyspark", (4, 0), below=(5,), newest=_NEWEST_TRIED)
    yield _package("pyarrow", (18,))
    yield _package("numpy", (1,))
    yield _package("pandas", (2, 2), below=(3,))


def _package(
    name: str, least: tuple[int, ...], below: tuple[int, ...] | None = None, newest: tuple[int, ...] = ()
) -> Finding:
    wanted = f"{name}>={_dotted(least)}" + (f",<{_dotted(below)}" if below else "")
    try:
        found = version(name)
    except PackageNotFoundError:
        return broken(name, f"{name} is not installed", f"pip install '{wanted}'")
    number = tuple(int(part) for part in found.split(".")[:2] if part.isdecimal())
    if number < least or (below is not None and number >= below):
        return broken(name, f"{name} {found} does not fit", f"pip install '{wanted}'")
    if newest and number > newest:
        return odd(name, f"{name} {found} is newer than what Skipstone was tried with", f"use {name} {_dotted(newest)}")
    return well(name, f"{name} {found}")


def _dotted(number: tuple[int, ...]) -> str:
    return ".".join(map(str, number))


def check_jar() -> Iterator[Finding]:
    """Look for Java, and for the bridge's jar; it is built where there is none."""
    from skipstone.engines.spark.bridge.build import bridge_jar, find_java

    try:
        java = find_java()
    except BridgeBuildError as error:
        yield broken("java", str(error), "install a Java runtime, 17 or newer, or set JAVA_HOME")
        return
    yield well("java", f"{_java_version(java)} ({java})")
    try:
        jar = bridge_jar()
    except (BridgeBuildError, OSError) as error:
        yield broken(
            "jar",
            f"the bridge's jar is not there and cannot be built: {error}",
            "let SKIPSTONE_CACHE name a folder that can be written to, or install a wheel that has the jar",
        )
        return
    yield well("jar", str(jar))


def _java_version(java: str) -> str:
    with tempfile.TemporaryFile() as out:  # a JVM that inherits a pipe may keep us waiting
        subprocess.run([java, "-version"], stdout=out, stderr=out, stdin=subprocess.DEVNULL, check=False)
        out.seek(0)
        return out.readline().decode(errors="replace").strip()


def defaults_file() -> Path | None:
    """Return the ``spark-defaults.conf`` that Spark's programs read on this machine, if there is one."""
    import pyspark

    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.__file__).parent)
    file = Path(os.environ.get("SPARK_CONF_DIR") or Path(home, "conf"), "spark-defaults.conf")
    return file if file.is_file() else None


def read_defaults(file: Path) -> dict[str, str]:
    """Read a file of properties as Spark does: a name, then a space, ``=`` or ``:``, then the value."""
    found: dict[str, str] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        text = line.strip()
        if text and text[0] not in "#!":
            name, _, value = text.replace("\t", " ").replace("=", " ", 1).partition(" ")
            found[name] = value.strip()
    return found


def check_settings(settings: Mapping[str, str]) -> Iterator[Finding]:
    """Look at the ``spark.skipstone.*`` settings: unknown names, and values that make no sense."""
    from skipstone.settings import complaints

    own = {name.removeprefix(_PREFIX): value for name, value in settings.items() if name.startswith(_PREFIX)}
    found = list(complaints(own))
    for said, hint in found:
        make = odd if said.startswith("there is no setting") else broken
        yield make("settings", said, hint)
    if not found:
        said = ", ".join(f"{name}={value}" for name, value in sorted(own.items()) if not name.startswith("kms."))
        yield well("settings", said or "all at their defaults")


def check_extensions(value: str) -> Iterator[Finding]:
    """Look at ``spark.sql.extensions``: whether Skipstone's is there, and after those whose rules it must see done."""
    from skipstone.engines.spark.bridge.presence import EXTENSION

    names = [name for name in map(str.strip, value.split(",")) if name]
    if EXTENSION not in names:
        said = f"spark.sql.extensions is {value!r}, without {EXTENSION}" if names else "spark.sql.extensions is empty"
        yield broken("extensions", said, "add what 'skipstone server-conf' prints, and start the server anew")
        return
    if names.count(EXTENSION) > 1:
        yield odd("extensions", "Skipstone's extension is named twice", "name it once, as the last")
    own = names.index(EXTENSION)
    later = [_OTHERS.get(name, name) for name in names[own + 1 :] if name != EXTENSION]
    if later:
        yield odd(
            "extensions",
            f"Skipstone's extension comes before {', '.join(later)}: it would see what those have not prepared yet",
            f"name it last: spark.sql.extensions={','.join([*(n for n in names if n != EXTENSION), EXTENSION])}",
        )
    else:
        yield well("extensions", ", ".join(names))


def check_companion(settings: Mapping[str, str]) -> Iterator[Finding]:
    """Look at the companion that programs without a Python driver need: its interpreter, and what that has."""
    import pyspark

    enabled = settings.get(f"{_PREFIX}companion.enabled", "false").strip().lower() == "true"
    if not enabled:
        yield odd(
            "companion",
            "off: programs without a Python driver (spark-sql, servers, Scala) read everything",
            f"set {_PREFIX}companion.enabled=true for these; a program that calls skipstone.configure needs none",
        )
        return
    chosen = settings.get(f"{_PREFIX}companion.python") or settings.get("spark.pyspark.python")
    python = chosen or os.environ.get("PYSPARK_PYTHON") or "python3"
    path = shutil.which(python)
    if path is None:
        yield broken("companion", f"its interpreter {python!r} is not there", f"set {_PREFIX}companion.python")
        return
    folders = [settings.get(f"{_PREFIX}companion.path", ""), os.environ.get("PYTHONPATH", "")]
    spark = str(Path(pyspark.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [*folders, spark]))}
    asked = subprocess.run(
        [path, "-c", _ASK_COMPANION], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    if asked.returncode != 0:
        why = (asked.stderr.strip().splitlines() or ["it gave no reason"])[-1]
        todo = f"{path} -m pip install skipstone=={skipstone.__version__}, or set {_PREFIX}companion.path"
        yield broken("companion", f"its interpreter {path} cannot run it: {why}", todo)
        return
    theirs = asked.stdout.split()[0]
    if theirs != skipstone.__version__:
        todo = f"{path} -m pip install skipstone=={skipstone.__version__}"
        yield broken("companion", f"its interpreter {path} has Skipstone {theirs}, not {skipstone.__version__}", todo)
        return
    yield well("companion", f"on, run by {path}")
