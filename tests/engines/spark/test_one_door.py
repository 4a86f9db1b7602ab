"""Calls into the JVM stand in one module, and in seven more whose reasons the architecture page gives."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import skipstone

PACKAGE = Path(skipstone.__file__).parent
PAGE = PACKAGE.parents[1] / "docs" / "architecture.md"
INTO_THE_JVM = {"jvm", "_jvm", "_jsc", "_jsparkSession", "_jdf", "_jc", "_gateway", "JavaObject"}


def calling_modules() -> set[str]:
    """Return the modules that name what belongs to Py4J or to PySpark's handles of Java objects."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if getattr(node, "attr", getattr(node, "id", None)) in INTO_THE_JVM:
                found.add(file.relative_to(PACKAGE).as_posix())
    return found


def test_the_page_names_every_module_that_calls_the_jvm():
    told = PAGE.read_text(encoding="utf-8").partition("one module is the door to the JVM")[2].partition("\n\n")[0]
    assert calling_modules() == set(re.findall(r"`(engines/spark/\S+?\.py)`", told))
