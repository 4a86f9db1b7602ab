"""All-match: whether every row of an object satisfies a predicate.

A clause refutes: where it is false, no row of the object makes its expression TRUE.  So an object matches ``p`` wholly
where a clause refutes "``p`` is not TRUE": ``failing(p)`` spells that as a predicate, and the planner answers it as it
answers any other.  What serves the negation of a predicate serves this, with nothing more to write; and an index may
say more by labelling a vertex of ``failing(p)`` itself (docs/plugins.md).
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import TYPE_CHECKING

from skipstone.expressions.normalize import ALWAYS, NEVER, normalize
from skipstone.expressions.tree import (
    And,
    Call,
    Column,
    Comparison,
    Contains,
    Element,
    EndsWith,
    EqualNullSafe,
    EqualTo,
    Expression,
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
from skipstone.querying.timestamps import MODERN

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["failing"]

_MILLISECOND = 1_000  # microseconds
_NARROW = ("tinyint", "smallint")
_LEAST_WIDE = 1 << 31
_GREGORIAN = -141_427
"""1582-10-15: of the days before, some are not in the calendar of Java's old classes, and others only there."""
_DAYS = {"date": 1, "timestamp": 86_400_000_000, "timestamp_ntz": 86_400_000_000}
_FAR = 16
"""More days than a moment is shifted by between the calendars, and by zones."""
_SURROGATES = "\ud800"
"""From here on the order of UTF-16 is not that of UTF-8."""
_ROUGH = Context(prec=28)


def failing(predicate: Expression) -> Expression:
    """Return a predicate that is TRUE for every row for which ``predicate`` is FALSE or NULL.

    An object for which it is refuted has no such row, so all of its rows satisfy ``predicate``, and a scan that filters
    by it hands them all on.  In Kleene's logic:

    ====================================  ==========================================================================
    ``p``                                 is not TRUE, or need not be handed on, exactly where
    ====================================  ==========================================================================
    ``a AND b``                           ``a`` is not TRUE or ``b`` is not TRUE
    ``a OR b``                            ``a`` is not TRUE and ``b`` is not TRUE
    ``x IS NULL``, ``x IS NOT NULL``      ``x IS NOT NULL``, ``x IS NULL``
    ``isnan(x)``, ``NOT isnan(x)``        ``NOT isnan(x)``, ``isnan(x)``: never NULL
    ``x = y``, ``x < y``, ``x LIKE y``    ``NOT p``, or ``x IS NULL`` or ``y IS NULL``: these are NULL exactly where an
                                          operand is.  NaN is a value, and ``NOT x < 3`` is TRUE for it
    ``x IN (…)``, ``x NOT IN (…)``        ``NOT p``, or ``x IS NULL``: normalisation leaves no NULL in the list
    what readers take for another leaf    the same, or a row that satisfies ``p`` may be left out: see ``_left_out``
    what readers may hold against values  TRUE: nothing is known, see ``_is_narrowed``
    that a row does not have
    anything else, ``f(x)`` say           ``NOT p``, or ``p IS NULL``
    what may change its mind              TRUE: nothing is known
    ====================================  ==========================================================================

    Normalisation keeps the rows for which a predicate is TRUE, hence those for which it is not.

    Examples
    --------
    >>> from skipstone.expressions.tree import Column, LessThan
    >>> print(failing(LessThan(Column("x", "int"), Literal(3, "int"))))
    (x >= 3) OR (x IS NULL)
    """
    return normalize(_not_true(normalize(predicate)))


def _not_true(vertex: Expression) -> Expression:
    """Return where a normalised vertex is not TRUE."""
    match vertex:
        case And(terms):
            return Or(tuple(map(_not_true, terms)))
        case Or(terms):
            return And(tuple(map(_not_true, terms)))
        case Literal(value):
            return NEVER if value is True else ALWAYS
    if not _is_known(vertex) or _is_narrowed(vertex) or _is_ordered_otherwise(vertex):
        return ALWAYS
    match vertex:
        case IsNull(value):
            return IsNotNull(value)
        case IsNotNull(value):
            return IsNull(value)
        case IsNaN() | EqualNullSafe():
            return Not(vertex)
        case Not(IsNaN() | EqualNullSafe() as child):
            return child
        case Comparison() | Like() | StartsWith() | EndsWith() | Contains():
            return Or((_or_null(Not(vertex), vertex.children), *_left_out(vertex)))
        case In(value, options) | NotIn(value, options) if all(map(_is_value, options)):
            return Or((_or_null(Not(vertex), (value,)), *_left_out(vertex)))
        case Not(Comparison() | Like() | StartsWith() | EndsWith() | Contains() as child):
            return _or_null(child, child.children)
        case Not(child):
            return Or((child, IsNull(child)))
        case _:
            return Or((Not(vertex), IsNull(vertex)))


def _or_null(false: Expression, operands: tuple[Expression, ...]) -> Expression:
    """Join what is TRUE where a leaf is FALSE, and what is TRUE where it is NULL."""
    return Or((false, *(IsNull(operand) for operand in operands if not _is_value(operand))))


def _is_value(operand: Expression) -> bool:
    """Whether an operand is a constant that is not NULL."""
    return isinstance(operand, Literal) and operand.value is not None


def _left_out(leaf: Expression) -> tuple[Expression, ...]:
    """Return the conditions of rows that satisfy a leaf, but that readers may leave out.

    Spark passes a query's filter on to the reader, which leaves out parts of a file by it, by their statistics or their
    dictionary.  What it is passed is not always what Spark then filters by:

    ===================================== =========================================================================
    leaf                                  a reader may leave out
    ===================================== =========================================================================
    ``x = 0.0``, ``x <= 0.0``,            ``x = 0.0``: Parquet's and ORC's readers take ``-0.0`` for less than ``0.0``
    ``x >= 0.0``, ``x IN (0.0, …)``
    ``x = NaN``, ``x IN (NaN, …)``        NaN: there are many, and Parquet's Bloom filters are asked for one of them
    ``t < v``, ``t <> v``,                ``t = v'``, where ``v'`` is ``v`` cut to milliseconds: for a Parquet file of
    ``t NOT IN (v, …)``                   milliseconds it is put in ``v``'s place
    ===================================== =========================================================================

    All other leaves only become wider by that: ``t > v'`` holds where ``t > v`` does.

    A comparison with a day before 1582-10-15, or a moment before 1900, may leave out rows that lie near it.  On its way
    to the reader it is an object of Java's old classes, to whose calendar 1582-10-10 is 1582-10-15 and to whose zones
    old moments are others; and the calendar of files of old writers has a 1500-02-29, which is read as 1500-03-01.
    """
    return (*_misread(leaf), *_near_old(leaf))


def _near_old(leaf: Expression) -> tuple[Expression, ...]:
    """Return the conditions of rows near the old days and moments with which a leaf compares."""
    match leaf:
        case Comparison(value, option):
            options: tuple[Expression, ...] = (option,)
        case In(value, options) | NotIn(value, options):
            pass
        case _:
            return ()
    found: list[Expression] = []
    for option in options:
        if isinstance(option, Literal) and option.type in _DAYS and isinstance(option.value, int):
            far = _FAR * _DAYS[option.type]
            if option.value < (_GREGORIAN if option.type == "date" else MODERN):
                ends = (Literal(option.value + by, option.type) for by in (-far, far))
                found.append(And((GreaterThanOrEqual(value, next(ends)), LessThanOrEqual(value, next(ends)))))
    return tuple(found)


def _misread(leaf: Expression) -> tuple[Expression, ...]:
    """Return the conditions of rows that have a value which a reader may take for another."""
    match leaf:
        case EqualTo(value, option):
            values = [option] if _is_zero(option) or _is_nan(option) else []
        case LessThanOrEqual(value, option) | GreaterThanOrEqual(value, option):
            values = [option] if _is_zero(option) else []
        case In(value, options):
            values = [option for option in options if _is_zero(option) or _is_nan(option)]
        case LessThan(value, option) | NotEqualTo(value, option):
            values = _cut([option])
        case NotIn(value, options):
            values = _cut(options)
        case _:
            return ()
    return tuple(EqualTo(value, option) for option in values)


def _is_narrowed(leaf: Expression) -> bool:
    """Whether a Parquet reader may compare, for a leaf, other numbers than those that the rows have.

    A filter is passed on in the type of the *file*, which may have another width than the column:

    - a file of 32 bits gives a column of ``tinyint`` or ``smallint`` what remains of its values, and the filter is held
      against the values: ``v < 0`` leaves out ``40000``, which is read as ``-25536``;
    - of a decimal literal the file's width remains, so that ``v < 10000000000.00`` is ``v < -7273799.68`` for a file of
      ``decimal(5,2)``.  What fits in 32 bits fits in every width that files have.

    Filters of other types are passed on only where the literal's type is the file's, or is as wide.
    """
    if isinstance(leaf, IsNull | IsNotNull) or (isinstance(leaf, Not) and isinstance(leaf.child, IsNull | IsNotNull)):
        return False
    vertices = tuple(leaf.walk())
    return any(v.type in _NARROW for v in vertices if isinstance(v, Column)) or any(
        isinstance(v.value, Decimal) and _unscaled(v.value, v.type) >= _LEAST_WIDE
        for v in vertices
        if isinstance(v, Literal)
    )


def _is_ordered_otherwise(leaf: Expression) -> bool:
    """Whether an ORC reader may compare text in another order than Spark does.

    It holds a filter against the least and the greatest text of a stripe in the order of UTF-16, in which U+1F600 is
    less than U+FF01: ``s > U+FF00`` leaves out U+1F600.  Both orders are one where the literal has no character from
    the surrogates on: where a text first differs from it, the literal's character is before all those on which the
    orders disagree.  What is ``<>`` is left out only where all texts are equal, in any order.
    """
    match leaf:
        case NotEqualTo():
            return False
        case Comparison(_, option):
            options: tuple[Expression, ...] = (option,)
        case In(_, options):
            pass
        case _:
            return False
    texts = (option.value for option in options if isinstance(option, Literal) and isinstance(option.value, str))
    return any(text and max(text) >= _SURROGATES for text in texts)


def _unscaled(value: Decimal, type_: str) -> Decimal:
    """Return how large a literal is in units of its type's scale, nearly."""
    scale = type_.rpartition(",")[2].strip(" )")
    return abs(value).scaleb(int(scale) if scale.isdigit() else 0, _ROUGH)


def _is_zero(operand: Expression) -> bool:
    """Whether an operand is the constant 0.0, whose sign normalisation has taken."""
    return isinstance(operand, Literal) and isinstance(operand.value, float) and operand.value == 0


def _is_nan(operand: Expression) -> bool:
    """Whether an operand is the constant NaN."""
    return isinstance(operand, Literal) and isinstance(operand.value, float) and math.isnan(operand.value)


def _cut(operands: Iterable[Expression]) -> list[Expression]:
    """Cut the constant timestamps to milliseconds that have a part of one."""
    return [
        Literal(operand.value // _MILLISECOND * _MILLISECOND, operand.type)
        for operand in operands
        if isinstance(operand, Literal)
        and operand.type in ("timestamp", "timestamp_ntz")
        and isinstance(operand.value, int)
        and operand.value % _MILLISECOND
    ]


def _is_known(leaf: Expression) -> bool:
    """Whether a leaf says the same of a row each time, and of the row rather than of some element of it."""
    return not any(isinstance(v, Element) or (isinstance(v, Call) and not v.deterministic) for v in leaf.walk())
