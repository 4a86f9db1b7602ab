"""For authors of plug-ins: hold an index against the truth, row by row, under Spark's own semantics, and a store too.

``assert_sound`` is the one to call first: it attacks an index type with random objects and predicates.
``assert_represents`` does so with the objects and predicates that it is given: it collects the metadata of small
objects, lets the index's filters label predicates, and fails if an object that has a matching row would be skipped.
Both say how many were skipped, since a test in which nothing is ever skipped proves nothing.
``assert_store`` attacks a metadata store with random histories of commits.
"""

from skipstone.testing.represents import (
    InMemoryMetadata,
    Outcome,
    assert_merges,
    assert_monotone,
    assert_represents,
    collect,
    kept_objects,
)
from skipstone.testing.soundness import assert_sound
from skipstone.testing.stores import assert_store
from skipstone.testing.strategies import leaf_predicates, physical_type, values_of
from skipstone.testing.truth import evaluate

__all__ = [
    "InMemoryMetadata",
    "Outcome",
    "assert_merges",
    "assert_monotone",
    "assert_represents",
    "assert_sound",
    "assert_store",
    "collect",
    "evaluate",
    "kept_objects",
    "leaf_predicates",
    "physical_type",
    "values_of",
]
