"""What index types are made of, built-in or not.

``leaf``
    ``read_leaf`` takes a predicate on one column apart: what it says of NULL, of NaN (``has_null``, ``has_nan``, … ask
    the stored counts), and a ``Test`` of every other value.  ``CountClause`` is the clause that answers the first two;
    a subclass answers the third from what it has stored.
``values``
    Columns in SQL (``quoted``), the types that Spark orders and hashes by their value alone (``is_atomic``), literals
    in the very type of stored values (``exact_scalar``, ``exact_array``), distinct values in parts (``Distinct``), and
    the answer that keeps every object (``unknown``).
``bounds``
    Lower and upper bounds held against a test: ``to_bounds``, ``bounds_might_match``.
``like``
    LIKE patterns, read as Spark reads them: ``parse_like``, ``to_regex``.
``letter_case``
    ``lower`` and ``upper`` of stored values, as far as they are ASCII: ``cased_subject``, ``in_case``.
``elements``
    Elements of arrays, keys and values of maps: ``PartIndex`` is the base of index types that describe them.
``hashing``
    Spark's hash of a column, as SQL (``hash_expression``), and of a literal (``spark_hash``).

Beside these it has what the contracts of ``Index``, ``MetadataType`` and ``Clause`` are stated in:

``Fact``
    What ``Index.facts`` declares: a minimum, a maximum or a count that the engine finds without reading rows in Python.
``Bounds``
    What ``Index.bounds`` says of the order of a column's values.
``Lookup``
    What ``Clause.lookups`` looks for in a field that ``MetadataType.lookups`` names as a ``SET``, a ``FILTER`` or
    ``BLOCKS``; ``HasFilters``, ``PartFilters`` and ``turns_and_blocks`` give the bits of filters.
``SESSION``, ``MACHINE``
    What ``Index.evaluated`` names.
``conjunction``, ``disjunction``
    Clauses of which all, or some, must hold.
``DataObject``, ``Metadata``, ``Preparation``
    What ``MetadataType.finish``, ``Clause.might_match`` and ``Index.prepare`` are given.
"""

from __future__ import annotations

from skipstone.indexing.bounds import Bounds
from skipstone.indexing.environment import MACHINE, SESSION
from skipstone.indexing.facts import Fact
from skipstone.indexing.objects import DataObject
from skipstone.indexing.source import Preparation
from skipstone.querying.clause import Metadata, conjunction, disjunction
from skipstone.querying.lookup import (
    BLOCKS,
    FILTER,
    MOST_BLOCKS,
    SET,
    Filters,
    HasFilters,
    Lookup,
    PartFilters,
    turns_and_blocks,
)
from skipstone.toolkit.bounds import bounds_might_match, successor, to_bounds
from skipstone.toolkit.elements import (
    NAN_ELEMENTS,
    NULL_ELEMENTS,
    PartIndex,
    count_names,
    describes,
    elements_of,
    is_lists,
    is_taken_apart,
)
from skipstone.toolkit.hashing import element_hash_expression, hash_expression, spark_hash, unscaled
from skipstone.toolkit.leaf import (
    EVERYTHING,
    NOTHING,
    Affix,
    Among,
    Compare,
    CountClause,
    Leaf,
    Pattern,
    Test,
    has_nan,
    has_nan_element,
    has_null,
    has_null_element,
    has_ordinary,
    has_value,
    read_leaf,
)
from skipstone.toolkit.letter_case import cased_subject, in_case
from skipstone.toolkit.like import LikeTokens, Wildcard, literal_prefix, parse_like, to_regex
from skipstone.toolkit.values import (
    FLOATING,
    Distinct,
    exact_array,
    exact_scalar,
    is_atomic,
    is_binary_like,
    name_parts,
    ordinary_values,
    quoted,
    unknown,
)

__all__ = [
    "BLOCKS",
    "EVERYTHING",
    "FILTER",
    "FLOATING",
    "MACHINE",
    "MOST_BLOCKS",
    "NAN_ELEMENTS",
    "NOTHING",
    "NULL_ELEMENTS",
    "SESSION",
    "SET",
    "Affix",
    "Among",
    "Bounds",
    "Compare",
    "CountClause",
    "DataObject",
    "Distinct",
    "Fact",
    "Filters",
    "HasFilters",
    "Leaf",
    "LikeTokens",
    "Lookup",
    "Metadata",
    "PartFilters",
    "PartIndex",
    "Pattern",
    "Preparation",
    "Test",
    "Wildcard",
    "bounds_might_match",
    "cased_subject",
    "conjunction",
    "count_names",
    "describes",
    "disjunction",
    "element_hash_expression",
    "elements_of",
    "exact_array",
    "exact_scalar",
    "has_nan",
    "has_nan_element",
    "has_null",
    "has_null_element",
    "has_ordinary",
    "has_value",
    "hash_expression",
    "in_case",
    "is_atomic",
    "is_binary_like",
    "is_lists",
    "is_taken_apart",
    "literal_prefix",
    "name_parts",
    "ordinary_values",
    "parse_like",
    "quoted",
    "read_leaf",
    "spark_hash",
    "successor",
    "to_bounds",
    "to_regex",
    "turns_and_blocks",
    "unknown",
    "unscaled",
]
