"""What functions of arrays and maps imply of *some element*, so that indexes on elements serve them."""

from __future__ import annotations

import dataclasses
import math
import struct
from decimal import Context, Decimal
from typing import Any

from skipstone.expressions.elements import ELEMENTS, KEYS, VALUES, element_type
from skipstone.expressions.normalize import ALWAYS, NEVER, normalize
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
    In,
    IsNaN,
    IsNotNull,
    Like,
    Literal,
    Not,
    NotIn,
    StartsWith,
)
from skipstone.querying.implication import Implication, with_implied

__all__ = ["ElementImplication"]

_CATALYST = "org.apache.spark.sql.catalyst.expressions."
_EXACT = Context(prec=100)
_WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}


class ElementImplication(Implication):
    """Knows what array and map functions imply of an array's elements and of a map's keys and values.

    Below, ``∃e p(e)`` is "the row's array has an element, NULL elements included, for which ``p`` is TRUE", which is
    what a leaf on an ``Element`` means.  ``a`` is an array column, or ``map_keys(m)`` or ``map_values(m)`` of a map
    column.

    ============================================= ======================================================================
    leaf                                          implies, because where the leaf is TRUE …
    ============================================= ======================================================================
    ``array_contains(a, v)``                      ``∃e e = v``: an element that is not NULL compares equal, in the order
                                                  in which NaN equals itself and -0.0 equals 0.0
    ``array_contains(a, column)``                 ``∃e e IS NOT NULL``: NULL elements compare equal to nothing
    ``array_contains(array(v, …), x)``            ``x IN (v, …)``: the same comparison, read from the other side
    ``arrays_overlap(a, array(v, …))``            ``∃e e IN (v, …)``, in either order: a common element is not NULL.
                                                  Spark's hash set tells -0.0 from 0.0, so it finds no more than IN does
    ``arrays_overlap(a, b)``                      ``∃e e IS NOT NULL`` of both
    ``exists(a, x -> p(x))``                      ``∃e p(e)``.  Of ``p = q AND r`` one element makes both TRUE, hence
                                                  ``∃e q(e)`` and ``∃e r(e)``, each by itself; of ``q OR r`` it makes
                                                  one TRUE, hence ``∃e q(e) OR ∃e r(e)``.  A term without ``x`` is TRUE
                                                  of the row
    ``p(a[i])``, ``p(element_at(a, i))``,         ``∃e p(e)`` for ``p`` that is never TRUE of NULL: the result is NULL
    ``p(array_max(a))``, ``p(array_min(a))``      (outside the array, or of no element) or an element
    ``p(m[k])``, ``p(element_at(m, k))``          ``∃ value p(value)`` and ``∃ key key = k`` for such ``p``: without the
                                                  key the result is NULL
    ============================================= ======================================================================

    A NULL array makes every one of these leaves NULL (``exists`` included), so nothing need hold of it.  Nothing is
    implied by a NOT of such a function, which speaks of all elements.  In ``array_contains`` and ``arrays_overlap`` the
    array may be cast to a wider type without loss: then a literal that no element can have been is left out.
    The one ``element_at`` that gives a default outside the array, inside ``split_part``, is of no column.
    """

    def implied(self, leaf: Expression) -> Expression | None:
        """Return what the table says of a leaf."""
        match leaf:
            case Call("array_contains", (array, value)) if _is(leaf, "ArrayContains"):
                return _contains(array, value)
            case Call("arrays_overlap", (left, right)) if _is(leaf, "ArraysOverlap"):
                return _overlap(left, right)
            case Call("exists", (array, function)) if _is(leaf, "ArrayExists"):
                return self._exists(array, function)
        return _of_one_element(leaf)

    def _exists(self, array: Expression, function: Expression) -> Expression | None:
        """Return what the lambda says of its variable, with some element in its place."""
        element = _element_of(array)
        if element is None:
            return None
        match function:
            case Call("lambdafunction", (body, Call("namedlambdavariable", (), type_, identity=identity))) if (
                _is(function, "LambdaFunction") and identity and type_ == element.type
            ):
                said = _substituted(body, identity, element)
                return None if said is None else with_implied(normalize(said), (self,), _raise)[0]
        return None


def _raise(_: Implication, error: Exception) -> None:
    """Raise the error again: it is reported where all errors of implications are."""
    raise error


def _is(call: Expression, class_name: str) -> bool:
    """Whether a call is Spark's own function and no other of that name."""
    return isinstance(call, Call) and not call.kind and call.class_name == _CATALYST + class_name


def _contains(array: Expression, value: Expression) -> Expression | None:
    """Return what ``array_contains`` implies."""
    if isinstance(array, Literal):
        options = _literals(array)
        return None if options is None else In(value, options)
    element = _element_of(array)
    if element is None:
        return None
    return _among(element, (value,) if isinstance(value, Literal) else None)


def _overlap(left: Expression, right: Expression) -> Expression | None:
    """Return what ``arrays_overlap`` implies, of whichever side is a column's."""
    terms = tuple(
        term
        for one, other in ((left, right), (right, left))
        if (element := _element_of(one)) is not None
        and (term := _among(element, _literals(other) if isinstance(other, Literal) else None)) is not None
    )
    return And(terms) if len(terms) > 1 else (terms[0] if terms else None)


def _among(element: Element | Cast, options: tuple[Literal, ...] | None) -> Expression | None:
    """Return the predicate that some element is one of these, or that it is not NULL when they are not known."""
    if options is None:
        return IsNotNull(element) if isinstance(element, Element) else None
    while isinstance(element, Cast):
        inner = element.child
        if not isinstance(inner, Element | Cast):
            return None
        narrowed = [_narrowed(option.value, inner.type, element.type) for option in options]
        if None in narrowed:
            return None
        options = tuple(Literal(value, inner.type) for found in narrowed if found for value in found)
        element = inner
    return In(element, options)


def _literals(array: Literal) -> tuple[Literal, ...] | None:
    """Return the elements of a constant array, the NULL ones left out: they are equal to nothing."""
    type_ = element_type(array.type, ELEMENTS)
    if type_ is None or not isinstance(array.value, tuple):
        return None
    return tuple(Literal(value, type_) for value in array.value if value is not None)


def _element_of(array: Expression) -> Element | Cast | None:
    """Return what stands for some element of an array: a column, a map column's keys or values, or a cast of these.

    A cast of an array casts its elements one by one, a cast of a map its keys and its values.
    """
    match array:
        case Column():
            return _element(array, ELEMENTS)
        case Call("map_keys", (map_,)) if _is(array, "MapKeys"):
            return _part_of(map_, KEYS)
        case Call("map_values", (map_,)) if _is(array, "MapValues"):
            return _part_of(map_, VALUES)
        case Cast():
            return _part_of(array, ELEMENTS)
    return None


def _part_of(column: Expression, of: str) -> Element | Cast | None:
    """Return what stands for some element of a column or of a cast of one."""
    match column:
        case Column():
            return _element(column, of)
        case Cast(child, type_, mode, zone):
            inner = _element_of(child) if of == ELEMENTS else _part_of(child, of)
            target = element_type(type_, of)
            if inner is None or target is None:
                return None
            return inner if target == inner.type else Cast(inner, target, mode, zone)
    return None


def _element(column: Column, of: str) -> Element | None:
    """Return what stands for some element of a column; ``None`` when its type has no such part."""
    type_ = element_type(column.type, of)
    return None if type_ is None else Element(column, of, type_)


def _substituted(node: Expression, variable: str, element: Expression) -> Expression | None:
    """Put an element in a lambda variable's place; ``None`` when a lambda inside takes the variable for its own."""
    match node:
        case Call("namedlambdavariable", (), identity=identity) if identity == variable:
            return element
        case Call("lambdafunction", (_, *variables)) if any(
            isinstance(own, Call) and own.identity == variable for own in variables
        ):
            return None
    changed: dict[str, Any] = {}
    for name in node.__match_args__:
        value = getattr(node, name)
        if isinstance(value, Expression):
            changed[name] = _substituted(value, variable, element)
            if changed[name] is None:
                return None
        elif type(value) is tuple and any(isinstance(item, Expression) for item in value):
            below = [_substituted(i, variable, element) if isinstance(i, Expression) else i for i in value]
            if any(item is None for item in below):
                return None
            changed[name] = tuple(below)
    return dataclasses.replace(node, **changed) if changed else node  # type: ignore[type-var]


def _of_one_element(leaf: Expression) -> Expression | None:
    """Return what a predicate on one element, wherever it is from, implies: some element satisfies it."""
    match leaf:
        case Call(type="boolean") if _picked(leaf) is not None:
            leaf = EqualTo(leaf, ALWAYS)
        case Not(Call(type="boolean") as call) if _picked(call) is not None:
            leaf = EqualTo(call, NEVER)
    of_what = leaf.child if isinstance(leaf, Not) and isinstance(leaf.child, _TEXTUAL) else leaf
    if not isinstance(of_what, _STRICT) or isinstance(of_what, EqualNullSafe):
        return None
    picked = _picked(of_what.children[0])
    if picked is None:
        return None
    element, key = picked
    subject: dict[str, Any] = {of_what.__match_args__[0]: element}
    said: Expression = dataclasses.replace(of_what, **subject)
    if of_what is not leaf:
        said = Not(said)
    return said if key is None else And((said, key))


_TEXTUAL = (Like, StartsWith, EndsWith, Contains)
# Never TRUE when their first operand is NULL; so is NOT of the textual ones.
_STRICT = (Comparison, In, NotIn, IsNotNull, IsNaN, *_TEXTUAL)
_OF_ARRAYS = {
    "getarrayitem": "GetArrayItem",
    "element_at": "ElementAt",
    "array_max": "ArrayMax",
    "array_min": "ArrayMin",
}
_OF_MAPS = {"getmapvalue": "GetMapValue", "element_at": "ElementAt"}


def _picked(subject: Expression) -> tuple[Element, Expression | None] | None:
    """Return what stands for the one element that a function gives, if any, and what is known of its key."""
    match subject:
        case Call(name, (Column() as column, *_)) if name in _OF_ARRAYS and _is(subject, _OF_ARRAYS[name]):
            element = _element(column, ELEMENTS)
            if element is not None and element.type == subject.type:
                return element, None
    match subject:
        case Call(name, (Column() as column, key)) if name in _OF_MAPS and _is(subject, _OF_MAPS[name]):
            value, some_key = _element(column, VALUES), _element(column, KEYS)
            if value is not None and some_key is not None and value.type == subject.type:
                return value, EqualTo(some_key, key) if isinstance(key, Literal) else IsNotNull(some_key)
    return None


def _narrowed(value: Any, inner: str, outer: str) -> tuple[Any, ...] | None:
    """Return the values of a type whose exact, wider form is ``value``: one or none; ``None`` when nobody knows."""
    if inner in _WHOLE and outer in _WHOLE and _WHOLE[inner] <= _WHOLE[outer] and isinstance(value, int):
        limit = 1 << (_WHOLE[inner] - 1)
        return (value,) if -limit <= value < limit else ()
    if (inner, outer) == ("float", "double") and isinstance(value, float):
        return (value,) if math.isnan(value) or _is_single(value) else ()
    if isinstance(value, Decimal) and inner.startswith("decimal(") and outer.startswith("decimal("):
        (digits, scale), (wider, wider_scale) = _decimal(inner), _decimal(outer)
        if scale > wider_scale or digits - scale > wider - wider_scale:
            return None
        _, figures, exponent = value.normalize(_EXACT).as_tuple()
        if not isinstance(exponent, int):
            return None
        whole = len(figures) + exponent if any(figures) else 0
        return (value,) if -exponent <= scale and whole <= digits - scale else ()
    return None


def _is_single(value: float) -> bool:
    """Whether a double is a single-precision number."""
    try:
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except OverflowError:
        return False


def _decimal(type_: str) -> tuple[int, int]:
    """Return the digits of a decimal type, all of them and those after the point."""
    digits, scale = type_[len("decimal(") : -1].split(",")
    return int(digits), int(scale)
