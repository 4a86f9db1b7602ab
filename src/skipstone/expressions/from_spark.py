"""Catalyst to Expression Tree: reads the JSON in which the bridge writes a condition, with types and exact values.

A vertex is an object: ``k`` its kind, ``c`` its children, ``t`` its Spark type.  What has no node of its own becomes a
``Call``; what cannot be understood becomes an *opaque* call, named in angle brackets, that no
built-in filter matches.  Nothing here raises for what a query holds: an unknown vertex only means less skipping.
"""

from __future__ import annotations

import binascii
import json
import math
import re
import struct
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from skipstone.expressions.names import spell_column
from skipstone.expressions.tree import (
    And,
    Call,
    Cast,
    Column,
    Contains,
    EndsWith,
    EqualNullSafe,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Like,
    Literal,
    Not,
    Or,
    StartsWith,
)
from skipstone.expressions.types import catalog_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["read_expression"]

_BINARY: Mapping[str, Callable[[Expression, Expression], Expression]] = {
    "eq": EqualTo,
    "nseq": EqualNullSafe,
    "lt": LessThan,
    "le": LessThanOrEqual,
    "gt": GreaterThan,
    "ge": GreaterThanOrEqual,
    "startswith": StartsWith,
    "endswith": EndsWith,
    "contains": Contains,
}
_UNARY: Mapping[str, Callable[[Expression], Expression]] = {
    "not": Not,
    "isnull": IsNull,
    "isnotnull": IsNotNull,
    "isnan": IsNaN,
}
_WHOLE_NUMBERS = re.compile(
    r"tinyint|smallint|int|bigint|date|timestamp|timestamp_ntz|time\(\d+\)"
    r"|interval (?:year|month|day|hour|minute|second)(?: to (?:month|hour|minute|second))?"
)
_STRINGS = re.compile(r"(?:string|char\(\d+\)|varchar\(\d+\))(?: collate \S+)?")
_ARRAY = re.compile(r"array<(.*)>", re.DOTALL)
_FLOATS = {"float": (">f", 8), "double": (">d", 16)}

# What a subquery gives is not known when files are chosen, whatever Spark says of its determinism.
_SUBQUERIES = re.compile(r"(?:Subquery|SubqueryExpression|\bExists|OuterReference)$")


def read_expression(node: Mapping[str, Any]) -> Expression:
    """Read one condition.

    Conditions come at most two hundred levels deep (``MaxDepth`` in ``ExpressionJson.scala``), so this and all that
    goes over the tree may recurse.

    Examples
    --------
    >>> column = {"k": "col", "n": ["s", "x"], "t": "int", "p": False}
    >>> print(read_expression({"k": "gt", "c": [column, {"k": "lit", "t": "int", "v": "3"}]}))
    s.x > 3
    """
    children = node.get("c") if isinstance(node, dict) else None
    below = tuple([read_expression(child) for child in children]) if isinstance(children, list) else ()
    return _read_vertex(node, below)


def _read_vertex(node: Any, below: tuple[Expression, ...]) -> Expression:
    """Read one vertex whose children are read, falling back to an opaque call for what has not the promised shape."""
    if not isinstance(node, dict):
        return Call("<not understood>", below, identity=_spelled(node), deterministic=False)
    try:
        if node.get("k") == "lit":
            return _literal(node)
        return _understood(node.get("k"), node, below) or _call(node, below)
    except (KeyError, ValueError, TypeError, AttributeError):
        return _opaque(node, below)


def _understood(kind: Any, node: Mapping[str, Any], below: tuple[Expression, ...]) -> Expression | None:
    """Read a vertex that has a node of its own in the tree; ``None`` for all others."""
    match kind, below:
        case "col", ():
            parts, spark_type = node["n"], node["t"]
            if not isinstance(spark_type, str) or not parts or not all(isinstance(part, str) for part in parts):
                raise TypeError(parts)
            return Column(spell_column(parts), catalog_type(spark_type), partition=node.get("p") is True)
        case "and", (_, _, *_):
            return And(below)
        case "or", (_, _, *_):
            return Or(below)
        case "in", (value, *options):
            listed = _options(node.get("t"), node["v"]) if "v" in node else ()
            return In(value, (*options, *listed))
        case "like", (value, pattern):
            escape = node.get("e", "\\")
            return Like(value, pattern, escape) if isinstance(escape, str) and len(escape) == 1 else None
        case "cast", (child,):
            return Cast(child, catalog_type(node["t"]), str(node.get("m") or "LEGACY"), node.get("z"))
        case str(), (left, right) if kind in _BINARY:
            return _BINARY[kind](left, right)
        case str(), (child,) if kind in _UNARY:
            return _UNARY[kind](child)
    return None


def _call(node: Mapping[str, Any], below: tuple[Expression, ...]) -> Call:
    """Read a function.

    What tells two functions of one name apart becomes the identity: the function's digest or class (``id``), the
    method that Spark's ``invoke`` calls (``m``), the time zone that the result depends on (``z``).
    """
    name = node.get("n")
    if node.get("k") != "call" or not isinstance(name, str):
        return _opaque(node, below)
    return Call(
        name=name,
        arguments=below,
        type=catalog_type(str(node.get("t") or "")),
        kind=str(node.get("u") or ""),
        class_name=str(node.get("f") or ""),
        identity=" ".join(str(node[key]) for key in ("id", "m", "z") if node.get(key)),
        deterministic=_is_fixed(node),
        parameters=str(node.get("p") or ""),
    )


def _opaque(node: Mapping[str, Any], below: tuple[Expression, ...]) -> Call:
    """Make a call that nothing matches, distinct for distinct contents."""
    return Call(
        name=f"<{node.get('k')}>",
        arguments=below,
        type=catalog_type(str(node.get("t") or "")),
        identity=_spelled({key: value for key, value in node.items() if key != "c"}),
        deterministic=_is_fixed(node),
    )


def _is_fixed(node: Mapping[str, Any]) -> bool:
    """Whether a vertex gives the same for the same row, as far as that can be known before the query runs."""
    return node.get("d", True) is True and not _SUBQUERIES.search(str(node.get("f") or ""))


def _literal(node: Mapping[str, Any]) -> Expression:
    """Read a literal, as an opaque call when its value cannot be had exactly."""
    if node.get("x") or not node["t"]:
        raise ValueError(node["t"])
    spark_type = catalog_type(node["t"])
    value = _value(spark_type, node["v"])
    if isinstance(node["v"], dict) and spark_type.startswith("udt:"):  # equal text need not be the same geometry
        return Literal(value, f"{spark_type} {node['v'].get('md5', '')}".rstrip())
    return Literal(value, spark_type)


def _options(spark_type: Any, values: Any) -> tuple[Expression, ...]:
    """Read options of one type, of which there may be thousands; each is what it would be as a literal by itself."""
    if not isinstance(spark_type, str) or not isinstance(values, list):
        raise TypeError(spark_type)
    whole = catalog_type(spark_type)
    if _is_whole_number(whole) and {*map(type, values)} == {int}:
        return tuple([Literal(value, whole) for value in values])
    return tuple([_read_vertex({"k": "lit", "t": spark_type, "v": value}, ()) for value in values])


def _value(spark_type: str, value: Any) -> Any:
    """Return the physical value, exactly; raise for a type or a shape that is not known."""
    if value is None:
        return None
    if spark_type == "boolean" and isinstance(value, bool):
        return value
    if _is_whole_number(spark_type) and isinstance(value, str | int) and not isinstance(value, bool):
        return int(value)
    if _STRINGS.fullmatch(spark_type) and isinstance(value, str):
        value.encode()  # lone surrogates are no UTF-8: such a string has no exact twin here
        return value
    if spark_type in _FLOATS and isinstance(value, str):
        return _float(spark_type, value)
    if spark_type.startswith("decimal("):
        unscaled, scale = value
        return Decimal(f"{int(unscaled)}E{-int(scale)}")  # from text: arithmetic would round to the context's 28 digits
    if spark_type == "binary" and isinstance(value, str):
        return binascii.a2b_base64(value, strict_mode=True)
    if (array := _ARRAY.fullmatch(spark_type)) and isinstance(value, list):
        return tuple(_value(array[1], item) for item in value)
    if spark_type.startswith("udt:") and isinstance(value, dict) and isinstance(value["wkt"], str):
        return value["wkt"]  # a geometry, as well-known text
    raise ValueError(spark_type)


@lru_cache(maxsize=1024)
def _is_whole_number(spark_type: str) -> bool:
    """Whether values of a type are whole numbers; asked of each literal of a list."""
    return _WHOLE_NUMBERS.fullmatch(spark_type) is not None


def _float(spark_type: str, bits: str) -> float:
    """Read raw bits written in hexadecimal digits; every NaN is the same one, as it is in Spark's comparisons."""
    layout, digits = _FLOATS[spark_type]
    if len(bits) != digits:
        raise ValueError(bits)
    number: float = struct.unpack(layout, bytes.fromhex(bits))[0]
    return math.nan if math.isnan(number) else number


def _spelled(value: Any) -> str:
    """Return a text that differs for things that differ, of what could not be read."""
    try:
        return json.dumps(value, sort_keys=True, default=repr)
    except (RecursionError, TypeError, ValueError):
        return f"<{id(value)}>"
