"""The Expression Tree (paper, section II): the predicate of a query as frozen dataclasses that ``match`` can read.

Values of literals are *physical*: dates are days since 1970-01-01, timestamps (both kinds) are microseconds, times
nanoseconds, year-month intervals months, day-time intervals microseconds, all ``int``; decimals are ``Decimal``;
strings are ``str``, arrays tuples; everything else is its Python twin.  Types are Spark's catalog strings (``int``,
``decimal(10,2)``, ``string collate UTF8_LCASE``), so that a type that differs in anything that changes values differs
as a string.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from operator import is_
from typing import Any, ClassVar

__all__ = [
    "TOO_DEEP",
    "UNKNOWN_PARAMETERS",
    "And",
    "Call",
    "Cast",
    "Column",
    "Comparison",
    "Contains",
    "Element",
    "EndsWith",
    "EqualNullSafe",
    "EqualTo",
    "Expression",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "IsNaN",
    "IsNotNull",
    "IsNull",
    "LessThan",
    "LessThanOrEqual",
    "Like",
    "Literal",
    "Not",
    "NotEqualTo",
    "NotIn",
    "Or",
    "StartsWith",
]


TOO_DEEP = "<nested deeper than "
"""Begins the name of a call that stands for what lies deeper than the engine lets a tree be."""

UNKNOWN_PARAMETERS = "?"
"""The ``parameters`` of a call of which not everything is known: it equals no other call."""


class Expression:
    """A vertex of the tree.

    A tree may have thousands of terms in one AND or OR, but it is not deep (``from_spark`` says how deep), so that what
    goes over it may recurse.
    """

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()

    @property
    def children(self) -> tuple[Expression, ...]:
        """The vertices directly below, left to right."""
        found: list[Expression] = []
        for name in self.__match_args__:
            value = getattr(self, name)
            if isinstance(value, Expression):
                found.append(value)
            elif type(value) is tuple:
                found.extend([item for item in value if isinstance(item, Expression)])
        return tuple(found)

    def walk(self, into: Callable[[Expression], bool] | None = None) -> Iterator[Expression]:
        """Yield this vertex and those below it, each before what is below it, left to right.

        Parameters
        ----------
        into
            Whether to go on below a vertex; by default below all of them.

        Examples
        --------
        >>> [str(vertex) for vertex in Not(IsNull(Column("x"))).walk()]
        ['NOT (x IS NULL)', 'x IS NULL', 'x']
        """
        waiting = [self]
        while waiting:
            vertex = waiting.pop()
            yield vertex
            if (into is None or into(vertex)) and (children := vertex.children):
                waiting.extend(children[::-1])

    def map_children(self, change: Callable[[Expression], Expression]) -> Expression:
        """Return this vertex with its children changed; this very one if none of them is another afterwards."""
        changed: dict[str, Any] = {}
        for name in self.__match_args__ if self.children else ():
            value = getattr(self, name)
            new = value
            if isinstance(value, Expression):
                new = change(value)
            elif type(value) is tuple:
                new = tuple([change(item) if isinstance(item, Expression) else item for item in value])
                new = value if all(map(is_, new, value)) else new
            if new is not value:
                changed[name] = new
        return replace(self, **changed) if changed else self  # type: ignore[type-var]  # vertices are dataclasses

    def rebuilt(self, change: Callable[[Expression], Expression]) -> Expression:
        """Return the tree with every vertex changed, those below first: a vertex comes with its new children.

        Examples
        --------
        >>> print(IsNull(Column("x")).rebuilt(lambda vertex: Column("y") if isinstance(vertex, Column) else vertex))
        y IS NULL
        """
        done: dict[int, Expression] = {}
        for vertex in reversed([*self.walk()]):
            if id(vertex) not in done:
                done[id(vertex)] = change(vertex.map_children(lambda child: done[id(child)]))
        return done[id(self)]

    def _spelling(self) -> tuple[str | Expression, ...]:
        """Return the text of this vertex, with its children where their text belongs."""
        return (type(self).__name__,)

    def __str__(self) -> str:
        return "".join(map(str, self._spelling()))


@dataclass(frozen=True, slots=True)
class Column(Expression):
    """A column of the scanned files, or a nested struct field of one.

    ``name`` is the canonical Spark spelling: parts joined by dots, a part with odd characters in back-ticks.
    """

    name: str
    type: str = ""
    partition: bool = False

    @property
    def children(self) -> tuple[Expression, ...]:
        """Nothing is below it."""
        return ()

    def _spelling(self) -> tuple[str | Expression, ...]:
        return (self.name,)


@dataclass(frozen=True, slots=True)
class Element(Expression):
    """*Some* element of an array column, or some key or value of a map column (``of``: elements, keys, values).

    A leaf predicate on it is TRUE for a row if one of the row's elements makes it TRUE, NULL elements included; two
    leaves may mean two elements.  ``NOT (element LIKE 'a%')`` is such a leaf: some element is not like it.  No query
    has such vertices; they stand in what array and map functions imply (``querying.elements``), never below a NOT
    that means "no element".
    """

    column: Column
    of: str
    type: str = ""

    def _spelling(self) -> tuple[str | Expression, ...]:
        return (f"some {self.of[:-1]} of ", self.column)


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A constant; ``value`` is physical (see the module's text), ``None`` for NULL."""

    value: Any
    type: str = ""

    @property
    def children(self) -> tuple[Expression, ...]:
        """Nothing is below it."""
        return ()

    def _spelling(self) -> tuple[str | Expression, ...]:
        return (_constant(self.value, self.type),)


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """``CAST(child AS type)`` as Spark left it: a function of the column, not the column."""

    child: Expression
    type: str
    mode: str = "LEGACY"
    zone: str | None = None

    def _spelling(self) -> tuple[str | Expression, ...]:
        return ("cast(", self.child, f" as {self.type})")


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """Any other function: a UDF of any kind by its registered name, or a Spark function by its pretty name.

    ``kind`` is ``python``, ``scala``, ``java`` or empty for Spark's own; ``identity`` tells two definitions of one UDF
    name apart where Spark gives enough to do so.  A call that is not ``deterministic`` is never labelled.
    ``parameters`` is a digest of what else makes a function of Spark's what it is: a unit, a flag, the settings that it
    looks at; ``?`` when that cannot be known, so that the call equals no other.
    """

    name: str
    arguments: tuple[Expression, ...] = ()
    type: str = ""
    kind: str = ""
    class_name: str = ""
    identity: str = ""
    deterministic: bool = True
    parameters: str = ""

    def _spelling(self) -> tuple[str | Expression, ...]:
        return (f"{self.name}(", *_joined(self.arguments, ", "), ")")


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    """A binary comparison; after normalisation a literal stands on the right."""

    left: Expression
    right: Expression

    def _spelling(self) -> tuple[str | Expression, ...]:
        return (self.left, f" {_SYMBOLS[type(self).__name__]} ", self.right)


_SYMBOLS = {
    "EqualTo": "=",
    "NotEqualTo": "<>",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}


@dataclass(frozen=True, slots=True)
class EqualTo(Comparison):
    """``left = right``: NULL when either side is NULL."""


@dataclass(frozen=True, slots=True)
class NotEqualTo(Comparison):
    """``left <> right``: NULL when either side is NULL."""


@dataclass(frozen=True, slots=True)
class EqualNullSafe(Comparison):
    """``left <=> right``: never NULL."""


@dataclass(frozen=True, slots=True)
class LessThan(Comparison):
    """``left < right``; NaN is greater than every number."""


@dataclass(frozen=True, slots=True)
class LessThanOrEqual(Comparison):
    """``left <= right``; NaN is greater than every number and equals itself."""


@dataclass(frozen=True, slots=True)
class GreaterThan(Comparison):
    """``left > right``; NaN is greater than every number."""


@dataclass(frozen=True, slots=True)
class GreaterThanOrEqual(Comparison):
    """``left >= right``; NaN is greater than every number and equals itself."""


@dataclass(frozen=True, slots=True)
class In(Expression):
    """``value IN (options)``; after normalisation the options are distinct non-null literals."""

    value: Expression
    options: tuple[Expression, ...]

    def _spelling(self) -> tuple[str | Expression, ...]:
        return (self.value, " IN (", *_abbreviated(self.options), ")")


@dataclass(frozen=True, slots=True)
class NotIn(Expression):
    """``value NOT IN (options)``; after normalisation the options are distinct non-null literals."""

    value: Expression
    options: tuple[Expression, ...]

    def _spelling(self) -> tuple[str | Expression, ...]:
        return (self.value, " NOT IN (", *_abbreviated(self.options), ")")


@dataclass(frozen=True, slots=True)
class StartsWith(Expression):
    """``value LIKE 'prefix%'`` as the optimizer writes it."""

    value: Expression
    prefix: Expression

    def _spelling(self) -> tuple[str | Expression, ...]:
        return ("startswith(", self.value, ", ", self.prefix, ")")


@dataclass(frozen=True, slots=True)
class EndsWith(Expression):
    """``value LIKE '%suffix'`` as the optimizer writes it."""

    value: Expression
    suffix: Expression

    def _spelling(self) -> tuple[str | Expression, ...]:
        return ("endswith(", self.value, ", ", self.suffix, ")")


@dataclass(frozen=True, slots=True)
class Contains(Expression):
    """``value LIKE '%part%'`` as the optimizer writes it."""

    value: Expression
    part: Expression

    def _spelling(self) -> tuple[str | Expression, ...]:
        return ("contains(", self.value, ", ", self.part, ")")


@dataclass(frozen=True, slots=True)
class Like(Expression):
    """``value LIKE pattern ESCAPE escape``, for the patterns that the optimizer did not simplify."""

    value: Expression
    pattern: Expression
    escape: str = "\\"

    def _spelling(self) -> tuple[str | Expression, ...]:
        return (self.value, " LIKE ", self.pattern)


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    """``value IS NULL``."""

    value: Expression

    def _spelling(self) -> tuple[str | Expression, ...]:
        return (self.value, " IS NULL")


@dataclass(frozen=True, slots=True)
class IsNotNull(Expression):
    """``value IS NOT NULL``."""

    value: Expression

    def _spelling(self) -> tuple[str | Expression, ...]:
        return (self.value, " IS NOT NULL")


@dataclass(frozen=True, slots=True)
class IsNaN(Expression):
    """``isnan(value)``: FALSE for NULL."""

    value: Expression

    def _spelling(self) -> tuple[str | Expression, ...]:
        return ("isnan(", self.value, ")")


@dataclass(frozen=True, slots=True)
class And(Expression):
    """A conjunction of two or more terms."""

    terms: tuple[Expression, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        """The terms."""
        return self.terms

    def _spelling(self) -> tuple[str | Expression, ...]:
        return ("(", *_joined(self.terms, ") AND ("), ")")


@dataclass(frozen=True, slots=True)
class Or(Expression):
    """A disjunction of two or more terms."""

    terms: tuple[Expression, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        """The terms."""
        return self.terms

    def _spelling(self) -> tuple[str | Expression, ...]:
        return ("(", *_joined(self.terms, ") OR ("), ")")


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """A negation; after normalisation it stands only on leaves that have no mirror image of their own."""

    child: Expression

    def _spelling(self) -> tuple[str | Expression, ...]:
        return ("NOT (", self.child, ")")


_SHOWN_ITEMS = 5
_SHOWN_BYTES = 16


def _constant(value: Any, type_: str) -> str:
    """Spell a constant as a person would write it in SQL, as far as Python's calendar goes."""
    match value:
        case None:
            return "NULL"
        case int() if type_ in _CALENDAR:
            try:
                return f"{type_} '{_CALENDAR[type_](value)}'"
            except OverflowError:
                return str(value)
        case Decimal():
            return str(value)
        case bytes() if len(value) > _SHOWN_BYTES:
            return f"X'{value[:_SHOWN_BYTES].hex()}…' of {len(value)} bytes"
        case bytes():
            return f"X'{value.hex()}'"
        case tuple():
            shown = [_constant(item, "") for item in value[:_SHOWN_ITEMS]]
            more = [f"… {len(value) - _SHOWN_ITEMS} more"] if len(value) > _SHOWN_ITEMS else []
            return f"array({', '.join([*shown, *more])})"
    return repr(value)


_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (an instant is spelled in UTC)
_CALENDAR: Mapping[str, Callable[[int], object]] = {
    "date": lambda days: (_EPOCH + timedelta(days=days)).date(),
    "timestamp": lambda micros: f"{_EPOCH + timedelta(microseconds=micros)}Z",
    "timestamp_ntz": lambda micros: _EPOCH + timedelta(microseconds=micros),
}


def _joined(vertices: tuple[Expression, ...], separator: str) -> list[str | Expression]:
    """Put a separator between vertices."""
    pieces: list[str | Expression] = []
    for vertex in vertices:
        pieces += (separator, vertex)
    return pieces[1:]


def _abbreviated(options: tuple[Expression, ...], limit: int = _SHOWN_ITEMS) -> list[str | Expression]:
    """Spell a list of options, with a count in place of what is beyond the limit."""
    shown = _joined(options[:limit], ", ")
    return shown if len(options) <= limit else [*shown, f", … {len(options) - limit} more"]
