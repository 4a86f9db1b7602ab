import doctest
import importlib
from pathlib import Path

import pytest

import skipstone

PACKAGE = Path(skipstone.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for folder in ("expressions", "querying", "indexing", "toolkit", "functions", "indexes", "stores", "testing")
    for path in (PACKAGE / folder).rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
)


def test_examples_were_found():
    assert {"skipstone.indexes.minmax", "skipstone.indexes.geo_box.index", "skipstone.expressions.ranges"} <= set(
        MODULES
    )


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0
