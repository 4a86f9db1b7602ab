"""The rules of normalisation, one function each: a vertex in a positive position in, a better one or ``None`` out.

``RULES`` lists them by the class of vertex that they apply to.  See ``normalize`` for what they add up to and why a
vertex may become FALSE where it was NULL.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from skipstone.expressions.tree import (
    And,
    Call,
    Cast,
    Column,
    Comparison,
    Contains,
    Element,
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
    NotEqualTo,
    NotIn,
    Or,
    StartsWith,
)
from skipstone.expressions.types import has_collation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["ALWAYS", "NEVER", "RULES", "literal_key", "settle"]

NEVER = Literal(value=False, type="boolean")
"""The predicate that is TRUE for no row."""

ALWAYS = Literal(value=True, type="boolean")
"""The predicate that is TRUE for every row."""

Rule: TypeAlias = "Callable[[Any], Expression | None]"

_PREDICATES = (And, Or, Not, Comparison, In, NotIn, IsNull, IsNotNull, IsNaN, Like, StartsWith, EndsWith, Contains)
_TYPED = (Literal, Column, Element, Cast, Call)


def settle(vertex: Expression) -> Expression:
    """Apply the rules of a vertex's class, from the top, until none has anything to say."""
    while True:
        for rule in RULES.get(type(vertex), ()):
            changed = rule(vertex)
            if changed is not None:
                vertex = changed
                break
        else:
            return vertex


# --- the rules: each takes a vertex in a positive position and gives a better one, or None ---------------------------


def push_not(vertex: Not) -> Expression | None:
    """Move a NOT one level down, or into the mirror image of a leaf.

    Kleene's NOT swaps TRUE and FALSE and leaves NULL, so De Morgan's laws and double negation hold for NULL as well.
    Mirror images: both comparisons of a pair are NULL for the same rows (an operand is NULL), and for all others one of
    them is TRUE and the other FALSE because Spark's order is *total*: NaN equals itself and is greater than all else,
    and -0.0 equals 0.0, so ``NOT x < v`` is ``x >= v`` for floats too, which IEEE comparison would not give.
    """
    match vertex.child:
        case Not(child):
            return child
        case And(terms):
            return Or(tuple(map(Not, terms)))
        case Or(terms):
            return And(tuple(map(Not, terms)))
        case Comparison(left, right) as child if type(child) in _MIRRORED:
            return _MIRRORED[type(child)](left, right)
        case In(value, options):
            return NotIn(value, options)
        case NotIn(value, options):
            return In(value, options)
        case IsNull(value):
            return IsNotNull(value)
        case IsNotNull(value):
            return IsNull(value)
        case Literal(value):
            return ALWAYS if value is False else NEVER
        case Column() | Element() as column:
            return EqualTo(column, NEVER)
    return None


def settle_under_not(vertex: Not) -> Expression | None:
    """Treat the leaves that have no mirror image: null-safe equality, and matches against NULL."""
    match vertex.child:
        case EqualNullSafe(Literal() as left, right) if not isinstance(right, Literal):
            return Not(EqualNullSafe(right, left))
        case EqualNullSafe(left, Literal(None)):
            return IsNotNull(left)
        case EqualNullSafe(left, right) as child if not comparable(left, right):
            return Not(opaque(child))
        case EqualNullSafe(left, Literal() as right):  # never NULL, so its negation is: x is NULL, or it differs
            return Or((IsNull(left), NotEqualTo(left, right)))
        case Like() | StartsWith() | EndsWith() | Contains() as child:
            changed = null_matches_nothing(child) or only_plain_strings_match(child)
            return changed if changed is None or changed is NEVER else Not(changed)
    return None


def literal_on_the_right(vertex: Comparison) -> Expression | None:
    """Turn a comparison round when only its left side is a literal."""
    if isinstance(vertex.left, Literal) and not isinstance(vertex.right, Literal):
        return _TURNED[type(vertex)](vertex.right, vertex.left)
    return None


def null_compares_to_nothing(vertex: Comparison) -> Expression | None:
    """Fold a comparison with a NULL literal, which is NULL whatever the other side is."""
    return NEVER if _is_null(vertex.left) or _is_null(vertex.right) else None


def null_safe_equality(vertex: EqualNullSafe) -> Expression | None:
    """Replace ``<=>`` by something simpler beside a literal: with a value it is TRUE exactly where ``=`` is."""
    match vertex:
        case EqualNullSafe(left, Literal(None)):
            return IsNull(left)
        case EqualNullSafe(left, Literal() as right):
            return EqualTo(left, right)
    return None


def only_one_type_compares(vertex: Comparison) -> Expression | None:
    """Hide a comparison from the filters when metadata in binary order of one type cannot serve it."""
    return None if comparable(vertex.left, vertex.right) else opaque(vertex)


def zero_has_no_sign(vertex: Comparison) -> Expression | None:
    """Write -0.0 as 0.0 where it is compared: Spark holds them equal, hashes and listed values do not."""
    right = _unsigned(vertex.right)
    return None if right is vertex.right else replace(vertex, right=right)


def compare_with_truth(vertex: Comparison) -> Expression | None:
    """Replace an (in)equality with TRUE or FALSE by the predicate itself or its negation.

    A boolean *column* is the other way round (``flag = true``): then the indexes serve it as they serve any column.
    """
    match vertex:
        case Comparison(left, Literal(bool(value), "boolean")):
            wanted = value if isinstance(vertex, EqualTo) else not value
            if isinstance(left, Column | Element):
                return None if isinstance(vertex, EqualTo) else EqualTo(left, ALWAYS if wanted else NEVER)
            if isinstance(left, (*_PREDICATES, Call, Cast)) and _type_of(left) == "boolean":
                return left if wanted else Not(left)
    return None


def boolean_column(vertex: Column | Element) -> Expression | None:
    """Write a column that stands as a predicate as a comparison."""
    return EqualTo(vertex, ALWAYS)


def constant(vertex: Literal) -> Expression | None:
    """Make a literal one of the two constants; NULL is never TRUE."""
    wanted = ALWAYS if vertex.value is True else NEVER
    return None if vertex is wanted else wanted


def nullness_of_literal(vertex: IsNull | IsNotNull) -> Expression | None:
    """Fold the question whether a literal is NULL."""
    if isinstance(vertex.value, Literal):
        return ALWAYS if (vertex.value.value is None) == isinstance(vertex, IsNull) else NEVER
    return None


def null_matches_nothing(vertex: Like | StartsWith | EndsWith | Contains) -> Expression | None:
    """Fold LIKE and its kin with a NULL literal, which is NULL under NOT as well."""
    return NEVER if any(_is_null(child) for child in vertex.children) else None


def only_plain_strings_match(vertex: Like | StartsWith | EndsWith | Contains) -> Expression | None:
    """Hide a match from the filters when its sides differ in type or are compared by a collation."""
    value, pattern = vertex.children
    return None if comparable(value, pattern) else opaque(vertex)


def in_options(vertex: In) -> Expression | None:
    """Reduce IN to distinct, non-null literals.

    IN is the disjunction of its equalities: a NULL option adds a term that is never TRUE.
    """
    options, others = _distinct(tuple(o for o in vertex.options if not _is_null(o)))
    if _is_null(vertex.value) or not (options or others):
        return NEVER
    if not _all_comparable(vertex.value, (*options, *others)):
        return opaque(vertex)
    terms: list[Expression] = [EqualTo(vertex.value, other) for other in others]
    if len(options) == 1:
        terms.insert(0, EqualTo(vertex.value, options[0]))
    elif options:
        terms.insert(0, vertex if _same(options, vertex.options) else In(vertex.value, options))
    changed = terms[0] if len(terms) == 1 else Or(tuple(terms))
    return None if changed is vertex else changed


def not_in_options(vertex: NotIn) -> Expression | None:
    """Reduce NOT IN to distinct, non-null literals.

    NOT IN is the conjunction of its inequalities: a NULL option is a term that is never TRUE.  An empty list excludes
    nothing (for a NULL value that depends on a legacy setting: taking it as TRUE only keeps more).
    """
    if not vertex.options:
        return ALWAYS
    if _is_null(vertex.value) or any(_is_null(option) for option in vertex.options):
        return NEVER
    options, others = _distinct(vertex.options)
    if not _all_comparable(vertex.value, vertex.options):
        return Not(opaque(In(vertex.value, vertex.options)))
    terms: list[Expression] = [NotEqualTo(vertex.value, other) for other in others]
    if len(options) == 1:
        terms.insert(0, NotEqualTo(vertex.value, options[0]))
    elif options:
        terms.insert(0, vertex if _same(options, vertex.options) else NotIn(vertex.value, options))
    changed = terms[0] if len(terms) == 1 else And(tuple(terms))
    return None if changed is vertex else changed


_ORDERED: tuple[Rule, ...] = (literal_on_the_right, null_compares_to_nothing, only_one_type_compares, zero_has_no_sign)

RULES: Mapping[type[Expression], tuple[Rule, ...]] = {
    Not: (push_not, settle_under_not),
    EqualTo: (*_ORDERED, compare_with_truth),
    NotEqualTo: (*_ORDERED, compare_with_truth),
    LessThan: _ORDERED,
    LessThanOrEqual: _ORDERED,
    GreaterThan: _ORDERED,
    GreaterThanOrEqual: _ORDERED,
    EqualNullSafe: (literal_on_the_right, null_safe_equality, only_one_type_compares),
    In: (in_options,),
    NotIn: (not_in_options,),
    IsNull: (nullness_of_literal,),
    IsNotNull: (nullness_of_literal,),
    Like: (null_matches_nothing, only_plain_strings_match),
    StartsWith: (null_matches_nothing, only_plain_strings_match),
    EndsWith: (null_matches_nothing, only_plain_strings_match),
    Contains: (null_matches_nothing, only_plain_strings_match),
    Column: (boolean_column,),
    Element: (boolean_column,),
    Literal: (constant,),
}
"""The rules by the class of the vertex they apply to, in the order in which they are tried."""

_MIRRORED: Mapping[type[Expression], Callable[[Expression, Expression], Expression]] = {
    EqualTo: NotEqualTo,
    NotEqualTo: EqualTo,
    LessThan: GreaterThanOrEqual,
    GreaterThanOrEqual: LessThan,
    LessThanOrEqual: GreaterThan,
    GreaterThan: LessThanOrEqual,
}
_TURNED: Mapping[type[Expression], Callable[[Expression, Expression], Expression]] = {
    EqualTo: EqualTo,
    NotEqualTo: NotEqualTo,
    EqualNullSafe: EqualNullSafe,
    LessThan: GreaterThan,
    GreaterThan: LessThan,
    LessThanOrEqual: GreaterThanOrEqual,
    GreaterThanOrEqual: LessThanOrEqual,
}


# --- what the rules share --------------------------------------------------------------------------------------------


def comparable(left: Expression, right: Expression) -> bool:
    """Whether two sides are compared as values of one type in its binary order.

    Spark makes both sides one type before the rule sees them, so a difference means that something is compared in a way
    not known here.  A side whose type was not given (a tree written by hand) agrees with every other.
    """
    return _types_compare(_type_of(left), _type_of(right))


def _all_comparable(value: Expression, options: tuple[Expression, ...]) -> bool:
    """Whether a value is comparable with all options, of which there may be thousands of very few types."""
    own = _type_of(value)
    return all(_types_compare(own, other) for other in set(map(_type_of, options)))


def _types_compare(one: str, other: str) -> bool:
    """Whether values of two types are compared as those of one, in its binary order; an unknown type agrees."""
    return not (has_collation(one) or has_collation(other)) and (one == other or not one or not other)


def opaque(vertex: Expression) -> Call:
    """Make a predicate a call that no filter matches: it is never labelled, hence never a reason to skip."""
    return Call(f"<{type(vertex).__name__}>", vertex.children, "boolean", identity=getattr(vertex, "escape", ""))


def _type_of(vertex: Expression) -> str:
    """Return the Spark type of a vertex, empty when it was not given."""
    if isinstance(vertex, _TYPED):
        return vertex.type
    return "boolean" if isinstance(vertex, _PREDICATES) else ""


def _is_null(vertex: Expression) -> bool:
    """Whether a vertex is the literal NULL."""
    return type(vertex) is Literal and vertex.value is None


def _unsigned(vertex: Expression) -> Expression:
    """Return a literal with -0.0 written as 0.0, also inside arrays; any other vertex as it is."""
    if type(vertex) is Literal and type(vertex.value) in (float, tuple):
        value = _without_negative_zero(vertex.value)
        if value is not vertex.value:
            return replace(vertex, value=value)
    return vertex


def _without_negative_zero(value: Any) -> Any:
    """Return the value itself unless it holds a -0.0."""
    if type(value) is float:
        return 0.0 if value == 0.0 and math.copysign(1.0, value) < 0 else value
    if type(value) is tuple:
        changed = tuple(map(_without_negative_zero, value))
        return value if all(new is old for new, old in zip(changed, value, strict=True)) else changed
    return value


def _distinct(options: tuple[Expression, ...]) -> tuple[tuple[Literal, ...], list[Expression]]:
    """Part the options of an IN into distinct literals, in their order, and whatever else there is."""
    literals: dict[Any, Literal] = {}
    others: list[Expression] = []
    for option in options:
        if isinstance(option, Literal):
            plain = _unsigned(option)
            literals.setdefault(literal_key(plain), plain)  # type: ignore[arg-type]
        else:
            others.append(option)
    return tuple(literals.values()), others


def _same(one: tuple[Expression, ...], other: tuple[Expression, ...]) -> bool:
    """Whether two tuples hold the very same vertices (equality would take -0.0 for 0.0)."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def literal_key(literal: Any) -> Any:
    """Return what literals differ by in Spark: NaN is NaN, and neither TRUE and 1 nor 1 and 1.0 are the same thing."""
    value = literal.value
    if type(value) is float:
        return (literal.type, float, "NaN" if math.isnan(value) else value)
    if type(value) is tuple:
        return (literal.type, tuple, repr(value))
    return (literal.type, type(value), value)
