import doctest
import importlib

import pytest

MODULES = [
    f"skipstone.indexes.{name}"
    for name in ("minmax", "value_list", "bloom_filter", "hybrid", "_values", "_like", "_hashing")
]


@pytest.mark.parametrize("name", [*MODULES, "skipstone.testing.represents"])
def test_examples_in_docstrings_run(name):
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0
