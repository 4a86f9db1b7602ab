"""Leaf predicates taken apart: what they say of NULL, of NaN, and of every other value of one column.

Spark's rules for NULL and NaN are the same whatever an index stores, so they are stated once, here.  A row is relevant
only if the predicate is TRUE; hence an object might match exactly if

* it has a NULL and the predicate is TRUE for NULL (``on_null``), or
* it has a NaN and the predicate is TRUE for NaN (``on_nan``), or
* it has an *ordinary* value, neither NULL nor NaN, that passes the ``test``.

An index answers the third question only.  Nothing is said by absent counts: null carries through.

Of *some element* of an array or a map the same holds with "element" for "row".  Elements are more or fewer than rows,
so their counts have names of their own, and the number of rows has no part in the answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias
from typing import Literal as OneOf

import pyarrow as pa
import pyarrow.compute as pc

from skipstone.expressions import tree
from skipstone.expressions.tree import Column, Element, Expression, Literal, Not
from skipstone.querying.clause import Clause
from skipstone.toolkit.elements import NAN_ELEMENTS, NULL_ELEMENTS
from skipstone.toolkit.like import LikeTokens, parse_like
from skipstone.toolkit.values import FLOATING, unknown

if TYPE_CHECKING:
    from skipstone.indexing.index import Index
    from skipstone.querying.clause import Metadata

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "Affix",
    "Among",
    "Compare",
    "CountClause",
    "Leaf",
    "Pattern",
    "Test",
    "has_nan",
    "has_nan_element",
    "has_null",
    "has_null_element",
    "has_ordinary",
    "has_value",
    "read_leaf",
]


@dataclass(frozen=True, slots=True)
class Among:
    """The value is (``negated``: is not) one of these; none of them is NULL or NaN."""

    values: tuple[Any, ...] = ()
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Compare:
    """The value stands in this order to another, ordinary one."""

    operator: OneOf["<", "<=", ">", ">="]
    value: Any


@dataclass(frozen=True, slots=True)
class Affix:
    """The text begins with, ends with or contains another (``negated``: does not)."""

    place: OneOf["prefix", "suffix", "part"]
    text: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """The text matches a LIKE pattern (``negated``: does not)."""

    tokens: LikeTokens
    negated: bool = False


Test: TypeAlias = Among | Compare | Affix | Pattern
"""What a predicate asks of every value that is neither NULL nor NaN."""

NOTHING = Among()
"""The test that no ordinary value passes."""

EVERYTHING = Among(negated=True)
"""The test that every ordinary value passes."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf predicate on ``subject``: its test of ordinary values, and its truth for NULL and for NaN."""

    subject: Expression
    test: Test
    on_null: bool = False
    on_nan: bool = False
    floating: bool = False

    def is_on(self, column: str) -> bool:
        """Whether the subject is this column itself and not a function of it."""
        return isinstance(self.subject, Column) and self.subject.name == column

    @property
    def of_elements(self) -> bool:
        """Whether the predicate is about some element and not about the row's value."""
        return isinstance(self.subject, Element)


def read_leaf(node: Expression) -> Leaf | None:
    """Take a vertex of the normalised tree apart, or ``None`` when it is no leaf predicate with constant operands.

    Filters and clauses of one query ask this of the same vertices several times, and a vertex may have a thousand
    options.  So what was read is remembered by the vertex itself.  Equality would not do: ``1``, ``1.0`` and ``TRUE``
    are equal in Python.  Vertices do not change, and no other has its number while it is held here.
    """
    known = _known.get(id(node))
    if known is not None:
        return known[1]
    leaf = _read(node)
    if leaf is not None and not _is_encodable(leaf.test):
        leaf = None
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    _known[id(node)] = (node, leaf)
    return leaf


_MOST_KNOWN = 256
_known: dict[int, tuple[Expression, Leaf | None]] = {}


def _read(node: Expression) -> Leaf | None:
    """Read every predicate that has a test, a truth for NULL and a truth for NaN."""
    match node:
        case tree.EqualTo(subject, Literal(value)) if value is not None:
            return _among(subject, (value,), negated=False)
        case tree.NotEqualTo(subject, Literal(value)) if value is not None:
            return _among(subject, (value,), negated=True)
        case tree.EqualNullSafe(subject, Literal(None)) | tree.IsNull(subject):
            return Leaf(subject, NOTHING, on_null=True)
        case Not(tree.EqualNullSafe(subject, Literal(None))) | tree.IsNotNull(subject):
            floating = _is_floating(subject)
            return Leaf(subject, EVERYTHING, on_nan=floating, floating=floating)
        case tree.EqualNullSafe(subject, Literal(value)):
            return _among(subject, (value,), negated=False)
        case Not(tree.EqualNullSafe(subject, Literal(value))):
            return _among(subject, (value,), negated=True, on_null=True)
        case tree.In(subject, options):
            return _among_options(subject, options, negated=False)
        case tree.NotIn(subject, options):
            return _among_options(subject, options, negated=True)
        case tree.LessThan(subject, Literal(value)) if value is not None:
            return _compare(subject, "<", value)
        case tree.LessThanOrEqual(subject, Literal(value)) if value is not None:
            return _compare(subject, "<=", value)
        case tree.GreaterThan(subject, Literal(value)) if value is not None:
            return _compare(subject, ">", value)
        case tree.GreaterThanOrEqual(subject, Literal(value)) if value is not None:
            return _compare(subject, ">=", value)
        case tree.IsNaN(subject):
            return Leaf(subject, NOTHING, on_nan=True, floating=True)
        case Not(tree.IsNaN(subject)):  # isnan(NULL) is FALSE
            return Leaf(subject, EVERYTHING, on_null=True, floating=True)
        case Not(child):
            return _text(child, negated=True)
        case _:
            return _text(node, negated=False)


def _text(node: Expression, *, negated: bool) -> Leaf | None:
    """Read a predicate on text; of NULL each of them, and its negation, is NULL."""
    match node:
        case tree.StartsWith(subject, Literal(str(text))):
            return Leaf(subject, Affix("prefix", text, negated))
        case tree.EndsWith(subject, Literal(str(text))):
            return Leaf(subject, Affix("suffix", text, negated))
        case tree.Contains(subject, Literal(str(text))):
            return Leaf(subject, Affix("part", text, negated))
        case tree.Like(subject, Literal(str(text)), escape):
            tokens = parse_like(text, escape)
            return None if tokens is None else Leaf(subject, Pattern(tokens, negated))
        case _:
            return None


def _among_options(subject: Expression, options: tuple[Expression, ...], *, negated: bool) -> Leaf | None:
    """Read a list of options; a NULL or anything but a literal among them is not for us."""
    values = tuple(option.value for option in options if isinstance(option, Literal) and option.value is not None)
    return _among(subject, values, negated=negated) if len(values) == len(options) else None


def _among(subject: Expression, values: tuple[Any, ...], *, negated: bool, on_null: bool = False) -> Leaf:
    """Read (in)equality: NaN equals itself and nothing else, -0.0 equals 0.0."""
    floating = _is_floating(subject, *values)
    ordinary = tuple(value + 0.0 if isinstance(value, float) else value for value in values if not _is_nan(value))
    names_nan = len(ordinary) < len(values)
    return Leaf(subject, Among(ordinary, negated), on_null, floating and names_nan != negated, floating)


def _compare(subject: Expression, operator: OneOf["<", "<=", ">", ">="], value: Any) -> Leaf:
    """Read an order: NaN equals itself and is greater than everything else."""
    floating = _is_floating(subject, value)
    if _is_nan(value):
        return Leaf(
            subject,
            EVERYTHING if operator in ("<", "<=") else NOTHING,
            on_nan=operator in ("<=", ">="),
            floating=True,
        )
    return Leaf(subject, Compare(operator, value), on_nan=floating and operator in (">", ">="), floating=floating)


def _is_nan(value: Any) -> bool:
    """Whether a literal is NaN."""
    return isinstance(value, float) and math.isnan(value)


def _is_floating(subject: Expression, *values: Any) -> bool:
    """Whether the subject can be NaN."""
    type_ = getattr(subject, "type", "")
    return type_ in FLOATING if type_ else any(isinstance(value, float) for value in values)


def _is_encodable(test: Test) -> bool:
    """Whether all text in a test is Unicode; a lone surrogate is the sign of a literal that was not UTF-8."""
    constants: tuple[Any, ...]
    match test:
        case Among(constants) | Pattern(constants):
            pass
        case Compare(_, constant) | Affix(_, constant):
            constants = (constant,)
    try:
        for text in constants:
            if isinstance(text, str):
                text.encode()
    except UnicodeEncodeError:
        return False
    return True


def has_null(metadata: Metadata, index: Index) -> pa.BooleanArray:
    """Whether an object has a NULL."""
    return pc.greater(metadata.field(index, "null_count"), 0)


def has_value(metadata: Metadata, index: Index) -> pa.BooleanArray:
    """Whether an object has anything but NULL."""
    return pc.less(metadata.field(index, "null_count"), metadata.row_count)


def has_nan(metadata: Metadata, index: Index) -> pa.BooleanArray:
    """Whether an object has a NaN; without a NaN count, only an object of NULLs is known to have none."""
    return pc.and_kleene(pc.greater(metadata.field(index, "nan_count"), 0), has_value(metadata, index))


def has_ordinary(metadata: Metadata, index: Index, *, floating: bool) -> pa.BooleanArray:
    """Whether an object has a value that is neither NULL nor NaN."""
    some = has_value(metadata, index)
    if not floating:
        return some
    others = pc.add(metadata.field(index, "null_count"), metadata.field(index, "nan_count"))
    return pc.and_kleene(some, pc.less(others, metadata.row_count))


def has_null_element(metadata: Metadata, index: Index) -> pa.BooleanArray:
    """Whether some element in an object is NULL."""
    return pc.greater(metadata.field(index, NULL_ELEMENTS), 0)


def has_nan_element(metadata: Metadata, index: Index) -> pa.BooleanArray:
    """Whether some element in an object is NaN."""
    return pc.greater(metadata.field(index, NAN_ELEMENTS), 0)


@dataclass(frozen=True, slots=True)
class CountClause(Clause):
    """Answers a leaf predicate from counts; the base of the clauses that also look at ordinary values.

    ``predicate`` must be one that ``read_leaf`` can read.
    """

    index: Index
    predicate: Expression

    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        """Join by Kleene's OR what NULLs, NaN and ordinary values each make possible."""
        leaf = read_leaf(self.predicate)
        if leaf is None:
            return unknown(len(metadata))
        ways: list[pa.BooleanArray] = []
        if leaf.test == EVERYTHING and not leaf.of_elements:
            ways.append(has_ordinary(metadata, self.index, floating=leaf.floating))
        elif leaf.test != NOTHING:
            ways.append(self.ordinary_might_match(metadata, leaf))
        if leaf.on_null:
            ways.append((has_null_element if leaf.of_elements else has_null)(metadata, self.index))
        if leaf.on_nan:
            ways.append((has_nan_element if leaf.of_elements else has_nan)(metadata, self.index))
        return reduce(pc.or_kleene, ways) if ways else pa.repeat(pa.scalar(False), len(metadata))

    @property
    def requires(self) -> tuple[tuple[Index, str], ...]:
        """The counts that the predicate's parts need, and what the test of ordinary values reads."""
        leaf = read_leaf(self.predicate)
        if leaf is None:
            return ()
        names: list[str] = []
        if leaf.test == EVERYTHING and not leaf.of_elements:
            names += _count_names(leaf)
        elif leaf.test != NOTHING:
            names += self.ordinary_requires(leaf)
        if leaf.on_null:
            names.append(NULL_ELEMENTS if leaf.of_elements else "null_count")
        if leaf.on_nan:
            names += [NAN_ELEMENTS] if leaf.of_elements else ["null_count", "nan_count"]
        return tuple((self.index, name) for name in dict.fromkeys(names))

    def ordinary_might_match(self, metadata: Metadata, leaf: Leaf) -> pa.BooleanArray:  # noqa: ARG002  (for subclasses)
        """Whether some ordinary value of each object might pass the test."""
        return unknown(len(metadata))

    def ordinary_requires(self, leaf: Leaf) -> tuple[str, ...]:  # noqa: ARG002  (for subclasses)
        """Name the fields that ``ordinary_might_match`` reads."""
        return ()

    def __str__(self) -> str:
        return f"{self.index.name}[{self.predicate}]"


def _count_names(leaf: Leaf) -> tuple[str, ...]:
    """Name the fields that ``has_ordinary`` reads."""
    return ("null_count", "nan_count") if leaf.floating else ("null_count",)
