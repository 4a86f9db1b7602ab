"""Conditions as keys: two predicates have one key only if they are TRUE for the same rows, in whichever session.

Equality of trees is not enough for that.  Spark's own functions have more to them than their arguments (see
``Call.parameters``), users' functions of one name are told apart by the planner before it asks an index, the terms of
AND and OR have no order, and the variables of lambdas are numbered anew in each query.
"""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Any

from skipstone.expressions import tree
from skipstone.expressions.tree import UNKNOWN_PARAMETERS, And, Call, Cast, Column, Expression, Like, Literal, Or

__all__ = ["ConditionKeys"]

_LAMBDA_VARIABLE = "NamedLambdaVariable"
_SETS = (And, Or)
_LISTS = (tree.In, tree.NotIn)
_PLAIN = (
    tree.EqualTo, tree.NotEqualTo, tree.EqualNullSafe, tree.LessThan, tree.LessThanOrEqual, tree.GreaterThan,
    tree.GreaterThanOrEqual, tree.StartsWith, tree.EndsWith, tree.Contains, tree.IsNull, tree.IsNotNull, tree.IsNaN,
    tree.Not,
)  # fmt: skip
# What normalisation makes of predicates that no index serves (``rules.opaque``): their children say all of them.
_HIDDEN = frozenset(f"<{kind.__name__}>" for kind in (*_PLAIN, Like, tree.In))


class ConditionKeys:
    """The keys of conditions; those of vertices that it was asked for are remembered.

    ``None`` is the key of a condition of which not everything is known: it equals no other, not even itself.  A
    vertex is known by identity while this object lives.

    Examples
    --------
    >>> x, y = tree.IsNull(Column("x", "int")), tree.IsNull(Column("y", "int"))
    >>> ConditionKeys().of(And((x, y))) == ConditionKeys().of(And((y, x)))
    True
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Expression, bytes | None]] = {}

    def of(self, condition: Expression) -> bytes | None:
        """Return the key of a condition in the normal form."""
        known = self._known.get(id(condition))
        if known is None:
            key = self._joined(condition) if isinstance(condition, _SETS) else _leaf_key(condition)
            known = self._known[id(condition)] = (condition, key)
        return known[1]

    def _joined(self, vertex: And | Or) -> bytes | None:
        """Return the key of an AND or OR, in whatever order its terms stand."""
        keys = {self.of(term) for term in vertex.terms}
        if None in keys:
            return None
        return _digest(type(vertex).__name__, *sorted(key.hex() for key in keys if key is not None))


def _leaf_key(leaf: Expression) -> bytes | None:
    """Return the key of a leaf: the words of its vertices in order, those of an IN's options sorted."""
    words: list[str] = []
    numbers: dict[str, int] = {}
    for vertex in leaf.walk():
        word = _word(vertex, numbers)
        if word is None:
            return None
        words.append(word)
    if isinstance(leaf, _LISTS) and all(isinstance(option, Literal) for option in leaf.options):
        options = len(leaf.options)
        words[-options:] = sorted(words[-options:])
    return _digest(*words)


def _word(vertex: Expression, numbers: dict[str, int]) -> str | None:
    """Spell a vertex without its children, exactly; ``None`` for one that is not known exactly."""
    arity = len(vertex.children)
    match vertex:
        case Column(name, spark_type, partition):
            return repr(("column", name, spark_type, partition))
        case Literal(value, spark_type):
            return repr(("literal", spark_type, _exact(value))) if _is_exact(value) else None
        case Cast(_, spark_type, mode, zone):
            return repr(("cast", spark_type, mode, zone))
        case Call():
            return _call(vertex, arity, numbers)
        case Like(escape=escape):
            return repr(("Like", escape))
    return repr((type(vertex).__name__, arity)) if isinstance(vertex, (*_PLAIN, *_SETS, *_LISTS)) else None


def _call(call: Call, arity: int, numbers: dict[str, int]) -> str | None:
    """Spell a call: a user's function by its name, Spark's own by all that the bridge tells of it."""
    if not call.deterministic:
        return None
    if call.kind:
        return repr(("function", call.name.lower(), call.type, arity))
    if call.class_name.endswith(_LAMBDA_VARIABLE):
        return repr(("variable", numbers.setdefault(call.identity, len(numbers)), call.type))
    if call.parameters == UNKNOWN_PARAMETERS or not (call.parameters or call.name in _HIDDEN):
        return None
    return repr(("call", call.name, call.class_name, call.type, call.identity, call.parameters, arity))


def _is_exact(value: Any) -> bool:
    """Whether a literal's value is one that ``repr`` spells exactly."""
    if type(value) is tuple:
        return all(map(_is_exact, value))
    return value is None or type(value) in (bool, int, float, str, bytes, Decimal)


def _exact(value: Any) -> Any:
    """Return a value whose ``repr`` tells -0.0 from 0.0 and 1.0 from 1."""
    if type(value) is tuple:
        return tuple(map(_exact, value))
    return value.hex() if type(value) is float else value


def _digest(*words: str) -> bytes:
    """Digest words so that no two lists of words meet."""
    digest = hashlib.blake2b(digest_size=16)
    for word in words:
        text = word.encode(errors="surrogatepass")
        digest.update(len(text).to_bytes(8, "big") + text)
    return digest.digest()
