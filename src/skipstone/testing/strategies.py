"""Hypothesis strategies for values of Spark's types and for predicates on them; Hypothesis is imported when asked."""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skipstone.expressions import tree
from skipstone.expressions.tree import Column, Literal, Not
from skipstone.expressions.types import FLOATING

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from skipstone.expressions.tree import Expression

__all__ = ["leaf_predicates", "physical_type", "values_of"]

_PHYSICAL = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.int32(),
    "timestamp": pa.int64(),
    "timestamp_ntz": pa.int64(),
}


def physical_type(spark_type: str) -> pa.DataType:
    """Return the Arrow type in which an index sees a column of a Spark type."""
    if decimal := re.fullmatch(r"decimal\((\d+),(\d+)\)", spark_type):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if spark_type.startswith(("interval year", "interval month")):
        return pa.int32()
    return _PHYSICAL[spark_type] if spark_type in _PHYSICAL else pa.int64()


def values_of(spark_type: str, *, nulls: bool = True) -> SearchStrategy[Any]:
    """Return a Hypothesis strategy for physical values of a type, awkward ones included, and by default NULL."""
    from hypothesis import strategies as st

    arrow = physical_type(spark_type)
    if pa.types.is_floating(arrow):
        width = arrow.bit_width
        special = st.sampled_from([math.nan, -0.0, 0.0, 1.0, math.inf, -math.inf])
        found: SearchStrategy[Any] = special | st.floats(width=32 if width == 32 else 64)
    elif pa.types.is_integer(arrow):
        top = 2 ** (arrow.bit_width - 1)
        found = st.integers(-3, 3) | st.integers(-top, top - 1)
    elif pa.types.is_decimal(arrow):
        edge = 10**arrow.precision - 1
        unscaled = st.integers(-3, 3) | st.integers(-edge, edge)
        found = unscaled.map(lambda number: Decimal(number).scaleb(-arrow.scale, Context(prec=arrow.precision + 1)))
    else:
        strategies = {
            "boolean": st.booleans(),
            "string": st.text("ab%_\\é😀\U0010ffff\n", max_size=3) | st.text(max_size=80),
            "binary": st.binary(max_size=3) | st.binary(max_size=80),
        }
        found = strategies[spark_type]
    return st.none() | found if nulls else found


def leaf_predicates(column: str, spark_type: str) -> SearchStrategy[Expression]:
    """Return a Hypothesis strategy for leaf predicates on a column, in the form in which filters see them."""
    from hypothesis import strategies as st

    subject = Column(column, spark_type)
    literals = values_of(spark_type, nulls=False).map(lambda v: Literal(v, spark_type))
    options = st.lists(literals, min_size=1, max_size=4).map(tuple)
    comparisons = [
        tree.EqualTo, tree.NotEqualTo, tree.EqualNullSafe,
        tree.LessThan, tree.LessThanOrEqual, tree.GreaterThan, tree.GreaterThanOrEqual,
    ]  # fmt: skip
    leaves = [
        st.builds(lambda make, literal: make(subject, literal), st.sampled_from(comparisons), literals),
        st.builds(lambda make, chosen: make(subject, chosen), st.sampled_from([tree.In, tree.NotIn]), options),
        st.sampled_from([tree.IsNull(subject), tree.IsNotNull(subject), tree.EqualNullSafe(subject, Literal(None))]),
        literals.map(lambda literal: Not(tree.EqualNullSafe(subject, literal))),
    ]
    if spark_type in FLOATING:
        leaves.append(st.sampled_from([tree.IsNaN(subject), Not(tree.IsNaN(subject))]))
    if spark_type == "string":
        affixes = st.sampled_from([tree.StartsWith, tree.EndsWith, tree.Contains])
        texts = st.builds(lambda make, literal: make(subject, literal), affixes, literals)
        pieces = st.sampled_from(["a", "b", "é", "😀", "_", "%", "\\_", "\\%", "\\\\", "\n"])
        patterns = st.lists(pieces, max_size=5).map("".join)
        likes = patterns.map(lambda pattern: tree.Like(subject, Literal(pattern, "string")))
        leaves += [texts, texts.map(Not), likes, likes.map(Not)]
    return st.one_of(leaves)
