"""Small universes, exhausted: every object of at most three values, every operator, every literal."""

from __future__ import annotations

import math
from decimal import Decimal
from functools import cache
from itertools import combinations, combinations_with_replacement

import pyarrow as pa

from skipstone.expressions import tree
from skipstone.expressions.tree import Column, IsNaN, IsNotNull, IsNull, Like, Literal, Not
from skipstone.indexes.bloom_filter import BloomFilterIndex
from skipstone.indexes.hybrid import HybridIndex
from skipstone.indexes.minmax import MinMaxIndex
from skipstone.indexes.value_list import ValueListIndex
from skipstone.testing import assert_represents, collect, physical_type

LONG = "p" * 64
UNIVERSES = {
    "double": ((None, math.nan, -0.0, 0.0, 1.0, 2.0), (math.nan, -0.0, 0.0, 1.0, 2.0, -1.0, 0.5, math.inf)),
    "float": ((None, math.nan, -0.0, 0.0, 1.0, 2.0), (math.nan, -0.0, 0.0, 1.0, 0.5)),
    "int": ((None, 1, 2, 3, 5), (0, 1, 2, 3, 4, 5)),
    "boolean": ((None, True, False), (True, False)),
    "decimal(20,2)": (
        (None, Decimal("-1.50"), Decimal("0.00"), Decimal("7.25")),
        (Decimal("0.00"), Decimal("7.25"), Decimal("3.00")),
    ),
    "string": (
        (None, "", "a", "ab", "b", "é", "😀", "a\uffff", LONG + "a", LONG + "z"),
        ("", "a", "ab", "b", "é", "😀", "a\uffff", "\ufffd", LONG, LONG + "b", LONG[:-1] + "q"),
    ),
    "binary": (
        (None, b"", b"a", b"\xff" * 65, b"a" * 64 + b"\xff", b"\x00"),
        (b"", b"a", b"\xff", b"\xff" * 66, b"a" * 65),
    ),
}
PATTERNS = (
    "", "a", "a%", "%", "_", "__", "a_", "_b", "%b", "%a%", "a%b", "é", "é%", "😀", "😀%", "a\uffff%", "a__%",
    "%\uffff", LONG + "%", LONG + "_", LONG + "a%", "p%z", "\\%", "a\\%", "a\\_", "\\\\%",
)  # fmt: skip
COMPARISONS = (
    tree.EqualTo,
    tree.NotEqualTo,
    tree.EqualNullSafe,
    tree.LessThan,
    tree.LessThanOrEqual,
    tree.GreaterThan,
    tree.GreaterThanOrEqual,
)
INDEXES = {
    "minmax": MinMaxIndex("c"),
    "valuelist": ValueListIndex("c"),
    "bloomfilter": BloomFilterIndex("c", fpp=0.001),
    "hybrid": HybridIndex("c", threshold=1, fpp=0.001),  # one value is listed, two are not: both forms are met
}


@cache
def objects(type_):
    values, _ = UNIVERSES[type_]
    arrow = physical_type(type_)
    rows = [row for size in range(4) for row in combinations_with_replacement(values, size)]
    return tuple(pa.record_batch({"c": pa.array(row, arrow)}) for row in rows)


@cache
def predicates(type_):
    column = Column("c", type_)
    literals = [Literal(value, type_) for value in UNIVERSES[type_][1]]
    options = [pair for size in (1, 2) for pair in combinations(literals, size)] + [tuple(literals)]
    found = [make(column, literal) for make in COMPARISONS for literal in literals]
    found += [Not(tree.EqualNullSafe(column, literal)) for literal in literals]
    found += [make(column, chosen) for make in (tree.In, tree.NotIn) for chosen in options]
    found += [IsNull(column), IsNotNull(column)]
    null = tree.EqualNullSafe(column, Literal(None, type_))
    found += [null, Not(null)]
    if type_ in ("double", "float"):
        found += [IsNaN(column), Not(IsNaN(column))]
    if type_ == "string":
        texts = [make(column, v) for make in (tree.StartsWith, tree.EndsWith, tree.Contains) for v in literals]
        texts += [Like(column, Literal(pattern, type_)) for pattern in PATTERNS]
        texts += [Like(column, Literal(p, type_), "/") for p in ("a/%", "//%", "a/_%", "a\\")]
        found += texts + [Not(text) for text in texts]
    return tuple(found)


def check(index, type_, **collecting):
    """Hold an index against its whole universe."""
    return assert_represents(index, predicates(type_), objects(type_), {"c": type_}, **collecting)


def describe(index, type_):
    return collect(index, objects(type_), {"c": type_})
