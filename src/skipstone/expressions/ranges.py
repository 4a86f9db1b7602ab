"""Ranges on columns of any numeric type, for whoever knows that a function's argument must lie within bounds.

A bound is rounded *outwards* to what the column's type can hold, through the casts that stand between the column and
the function: the range may become wider, never narrower.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from typing import TypeAlias

from skipstone.expressions.rules import ALWAYS, NEVER
from skipstone.expressions.tree import (
    And,
    Cast,
    Column,
    Expression,
    GreaterThanOrEqual,
    LessThanOrEqual,
    Literal,
)
from skipstone.expressions.types import BITS, FLOATING

__all__ = ["at_least", "at_most", "between"]

Number: TypeAlias = int | float | Decimal

_DECIMAL = re.compile(r"decimal\((\d+),\s?(-?\d+)\)")


def between(subject: Expression, low: Number, high: Number) -> Expression | None:
    """Return ``low <= subject <= high``, as far as the subject's type allows; ``None`` when it allows nothing."""
    terms = tuple(term for term in (at_least(subject, low), at_most(subject, high)) if term is not None)
    return And(terms) if len(terms) > 1 else (terms[0] if terms else None)


def at_least(subject: Expression, bound: Number) -> Expression | None:
    """Return a predicate that is TRUE wherever ``subject >= bound`` is, on the column inside the subject.

    NaN, which is greater than everything, satisfies both.

    Examples
    --------
    >>> print(at_least(Cast(Column("n", "int"), "double"), 2.5))
    n >= 3
    """
    return _bounded(subject, bound, up=True)


def at_most(subject: Expression, bound: Number) -> Expression | None:
    """Return a predicate that is TRUE wherever ``subject <= bound`` is, on the column inside the subject.

    Examples
    --------
    >>> print(at_most(Column("price", "decimal(6,2)"), 9.999))
    price <= 9.99
    """
    return _bounded(subject, bound, up=False)


def _bounded(subject: Expression, bound: Number, *, up: bool) -> Expression | None:
    """Follow casts down to a column and compare that.

    A cast of a number to a floating type is monotone: ``x < y`` gives ``cast(x) <= cast(y)``, and NaN stays NaN.  So if
    ``cast(x) >= b``, and ``a`` is a value of the target's below ``b``, ``x >= a``: from ``x < a`` would follow
    ``cast(x) <= a < b``.  Where the cast is exact, ``b`` itself will do.  Other casts wrap around, or make 0 of NaN.
    """
    if isinstance(bound, float) and not math.isfinite(bound):
        return None
    while isinstance(subject, Cast):
        inner = subject.child
        if not isinstance(inner, Column | Cast) or not _is_number(inner.type):
            return None
        if not _is_exact(inner.type, subject.type):
            if subject.type not in FLOATING:
                return None
            moved = _next(bound, subject.type, up=not up)
            if moved is None:
                return None
            bound = moved
        subject = inner
    if not isinstance(subject, Column):
        return None
    rounded = _rounded(bound, subject.type, up=up)
    if rounded is None or isinstance(rounded, Literal):
        return rounded
    return (GreaterThanOrEqual if up else LessThanOrEqual)(subject, Literal(rounded, subject.type))


def _is_number(type_: str) -> bool:
    """Whether a type is numeric."""
    return type_ in ("tinyint", "smallint", "int", "bigint", *FLOATING) or bool(_DECIMAL.fullmatch(type_))


def _is_exact(inner: str, outer: str) -> bool:
    """Whether every value of one type is a value of the other."""
    if inner == outer:
        return True
    if inner in BITS and outer in BITS:
        return BITS[inner] <= BITS[outer]
    if outer == "double":
        return inner == "float" or BITS.get(inner, 64) <= 32
    return outer == "float" and BITS.get(inner, 64) <= 16


def _next(bound: Number, type_: str, *, up: bool) -> Number | None:
    """Return a value of a type strictly beyond a bound, or ``None`` when there is none or it is not known."""
    away = math.inf if up else -math.inf
    if type_ == "double":
        beyond = math.nextafter(float(bound), away)
        return beyond if math.isfinite(beyond) else None
    if type_ == "float":
        single = _single(float(bound), up=up)
        if single is None:
            return None
        step = abs(single) * 2.0**-23 + 2.0**-149
        return _single(single + step if up else single - step, up=up)
    return None


def _rounded(bound: Number, type_: str, *, up: bool) -> Number | Literal | None:
    """Return the least value of a type that is at least the bound (``up``), or the greatest that is at most it.

    For floats one that is certainly not beyond it will do.  ``ALWAYS`` and ``NEVER`` when the type has no value on the
    one or the other side of the bound.
    """
    if type_ in BITS:
        limit = 1 << (BITS[type_] - 1)
        whole = math.ceil(bound) if up else math.floor(bound)
        if -limit <= whole < limit:
            return whole
        return ALWAYS if (whole < 0) == up else NEVER
    if type_ == "double":
        exact = Fraction(bound)
        try:
            near = float(exact)
        except OverflowError:
            return None
        if Fraction(near) != exact and (Fraction(near) > exact) == up:
            near = math.nextafter(near, -math.inf if up else math.inf)
        return near if math.isfinite(near) else None
    if type_ == "float":
        wide = _rounded(bound, "double", up=up)
        return _single(wide, up=not up) if isinstance(wide, float) else None
    found = _DECIMAL.fullmatch(type_)
    return _decimal(bound, int(found[1]), int(found[2]), up=up) if found else None


def _decimal(bound: Number, precision: int, scale: int, *, up: bool) -> Decimal | Literal | None:
    """Round to a decimal type."""
    with localcontext(Context(prec=1100)):
        wide = Decimal(bound)
        if abs(wide) >= Decimal(10) ** (precision - scale):
            return ALWAYS if (wide < 0) == up else NEVER
        quantum = Decimal(1).scaleb(-scale)
        rounded = wide.quantize(quantum, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return rounded if len(rounded.as_tuple().digits) <= precision else None


def _single(value: float, *, up: bool) -> float | None:
    """Return a single-precision value that is not below (``up``) or not above a double."""
    try:
        near = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return None
    if near != value and (near < value) == up:
        step = abs(near) * 2.0**-23 + 2.0**-149
        near = struct.unpack("f", struct.pack("f", near + step if up else near - step))[0]
        if (near < value) == up and near != value:
            return None
    return near if math.isfinite(near) else None
