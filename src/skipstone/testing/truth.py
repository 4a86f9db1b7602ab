"""The row-level truth: expressions evaluated for one row in plain Python, as Spark evaluates them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from skipstone.expressions import tree
from skipstone.expressions.tree import And, Call, Column, Literal, Not, Or

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skipstone.expressions.tree import Expression

__all__ = ["evaluate"]


def evaluate(
    node: Expression, row: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]] | None = None
) -> Any:
    """Evaluate an expression for one row as Spark does: ``None`` is NULL, NaN is equal to itself and the greatest."""
    match node:
        case Literal(value):
            return value
        case Column(name):
            return row[name]
        case Call(name, arguments):
            return (functions or {})[name](*(evaluate(argument, row, functions) for argument in arguments))
        case tree.IsNull(value):
            return evaluate(value, row, functions) is None
        case tree.IsNotNull(value):
            return evaluate(value, row, functions) is not None
        case tree.IsNaN(value):
            found = evaluate(value, row, functions)
            return isinstance(found, float) and math.isnan(found)
        case Not(child):
            truth = evaluate(child, row, functions)
            return None if truth is None else not truth
        case And(terms) | Or(terms):
            deciding = isinstance(node, Or)
            truths = [evaluate(term, row, functions) for term in terms]
            return deciding if deciding in truths else None if None in truths else not deciding
        case tree.In(value, options):
            return evaluate(Or(tuple(tree.EqualTo(value, option) for option in options)), row, functions)
        case tree.NotIn(value, options):
            return evaluate(Not(tree.In(value, options)), row, functions)
        case tree.Like(_, _, escape):
            left, right = (evaluate(child, row, functions) for child in node.children)
            return None if left is None or right is None else _like(left, right, escape)
        case tree.Comparison() | tree.StartsWith() | tree.EndsWith() | tree.Contains():
            left, right = (evaluate(child, row, functions) for child in node.children)
            if isinstance(node, tree.EqualNullSafe) and (left is None or right is None):
                return left is None and right is None
            return None if left is None or right is None else _OPERATIONS[type(node)](_rank(left), _rank(right))
    msg = f"no truth is known of {node}"
    raise NotImplementedError(msg)


_OPERATIONS: dict[type[Expression], Callable[[Any, Any], bool]] = {
    tree.EqualTo: lambda a, b: a == b,
    tree.EqualNullSafe: lambda a, b: a == b,
    tree.NotEqualTo: lambda a, b: a != b,
    tree.LessThan: lambda a, b: a < b,
    tree.LessThanOrEqual: lambda a, b: a <= b,
    tree.GreaterThan: lambda a, b: a > b,
    tree.GreaterThanOrEqual: lambda a, b: a >= b,
    tree.StartsWith: lambda a, b: a.startswith(b),
    tree.EndsWith: lambda a, b: a.endswith(b),
    tree.Contains: lambda a, b: b in a,
}


def _rank(value: Any) -> Any:
    """Make floats comparable in Spark's order."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def _like(text: str, pattern: str, escape: str) -> bool:
    """Match by trying, one character of the pattern at a time: too slow to use, too plain to be wrong."""
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == escape:
        return text[:1] == rest[0] and _like(text[1:], rest[1:], escape)
    if first == "%":
        return any(_like(text[start:], rest, escape) for start in range(len(text) + 1))
    return bool(text) and first in ("_", text[0]) and _like(text[1:], rest, escape)
