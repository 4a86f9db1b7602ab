"""The Expression Tree (paper, section II): the predicate of a query as frozen dataclasses that ``match`` can read.

Values of literals are *physical*: dates are days since 1970-01-01, timestamps (both kinds) are microseconds, times
nanoseconds, year-month intervals months, day-time intervals microseconds, all ``int``; decimals are ``Decimal``; strings
are ``str``; everything else is its Python twin.  Types are Spark's catalog strings (``int``, ``decimal(10,2)``,
``string collate UTF8_LCASE``), so that a type that differs in anything that changes values differs as a string.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

__all__ = [
    "And",
    "Call",
    "Cast",
    "Column",
    "Comparison",
    "Contains",
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


class Expression:
    """A vertex of the tree."""

    __slots__ = ()

    @property
    def children(self) -> tuple[Expression, ...]:
        """The vertices directly below, left to right."""
        found: list[Expression] = []
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Expression):
                found.append(value)
            elif isinstance(value, tuple):
                found.extend(item for item in value if isinstance(item, Expression))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Column(Expression):
    """A column of the scanned files, or a nested struct field of one.

    ``name`` is the canonical Spark spelling: parts joined by dots, a part with odd characters in back-ticks.
    """

    name: str
    type: str = ""
    partition: bool = False

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A constant; ``value`` is physical (see the module's text), ``None`` for NULL."""

    value: Any
    type: str = ""

    def __str__(self) -> str:
        return "NULL" if self.value is None else repr(self.value)


@dataclass(frozen=True, slots=True)
class Cast(Expression):
    """``CAST(child AS type)`` as Spark left it: a function of the column, not the column."""

    child: Expression
    type: str
    mode: str = "LEGACY"
    zone: str | None = None

    def __str__(self) -> str:
        return f"cast({self.child} as {self.type})"


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """Any other function: a UDF of any kind by its registered name, or a Spark function by its pretty name.

    ``kind`` is ``python``, ``scala``, ``java`` or empty for Spark's own; ``identity`` tells two definitions of one UDF
    name apart where Spark gives enough to do so.  A call that is not ``deterministic`` is never labelled.
    """

    name: str
    arguments: tuple[Expression, ...] = ()
    type: str = ""
    kind: str = ""
    class_name: str = ""
    identity: str = ""
    deterministic: bool = True

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Comparison(Expression):
    """A binary comparison; after normalisation a literal stands on the right."""

    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"{self.left} {_SYMBOLS[type(self).__name__]} {self.right}"


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

    __str__ = Comparison.__str__


@dataclass(frozen=True, slots=True)
class NotEqualTo(Comparison):
    """``left <> right``: NULL when either side is NULL."""

    __str__ = Comparison.__str__


@dataclass(frozen=True, slots=True)
class EqualNullSafe(Comparison):
    """``left <=> right``: never NULL."""

    __str__ = Comparison.__str__


@dataclass(frozen=True, slots=True)
class LessThan(Comparison):
    """``left < right``; NaN is greater than every number."""

    __str__ = Comparison.__str__


@dataclass(frozen=True, slots=True)
class LessThanOrEqual(Comparison):
    """``left <= right``; NaN is greater than every number and equals itself."""

    __str__ = Comparison.__str__


@dataclass(frozen=True, slots=True)
class GreaterThan(Comparison):
    """``left > right``; NaN is greater than every number."""

    __str__ = Comparison.__str__


@dataclass(frozen=True, slots=True)
class GreaterThanOrEqual(Comparison):
    """``left >= right``; NaN is greater than every number and equals itself."""

    __str__ = Comparison.__str__


@dataclass(frozen=True, slots=True)
class In(Expression):
    """``value IN (options)``; after normalisation the options are distinct non-null literals."""

    value: Expression
    options: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.value} IN ({_abbreviated(self.options)})"


@dataclass(frozen=True, slots=True)
class NotIn(Expression):
    """``value NOT IN (options)``; after normalisation the options are distinct non-null literals."""

    value: Expression
    options: tuple[Expression, ...]

    def __str__(self) -> str:
        return f"{self.value} NOT IN ({_abbreviated(self.options)})"


@dataclass(frozen=True, slots=True)
class StartsWith(Expression):
    """``value LIKE 'prefix%'`` as the optimizer writes it."""

    value: Expression
    prefix: Expression

    def __str__(self) -> str:
        return f"startswith({self.value}, {self.prefix})"


@dataclass(frozen=True, slots=True)
class EndsWith(Expression):
    """``value LIKE '%suffix'`` as the optimizer writes it."""

    value: Expression
    suffix: Expression

    def __str__(self) -> str:
        return f"endswith({self.value}, {self.suffix})"


@dataclass(frozen=True, slots=True)
class Contains(Expression):
    """``value LIKE '%part%'`` as the optimizer writes it."""

    value: Expression
    part: Expression

    def __str__(self) -> str:
        return f"contains({self.value}, {self.part})"


@dataclass(frozen=True, slots=True)
class Like(Expression):
    """``value LIKE pattern ESCAPE escape``, for the patterns that the optimizer did not simplify."""

    value: Expression
    pattern: Expression
    escape: str = "\\"

    def __str__(self) -> str:
        return f"{self.value} LIKE {self.pattern}"


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    """``value IS NULL``."""

    value: Expression

    def __str__(self) -> str:
        return f"{self.value} IS NULL"


@dataclass(frozen=True, slots=True)
class IsNotNull(Expression):
    """``value IS NOT NULL``."""

    value: Expression

    def __str__(self) -> str:
        return f"{self.value} IS NOT NULL"


@dataclass(frozen=True, slots=True)
class IsNaN(Expression):
    """``isnan(value)``: FALSE for NULL."""

    value: Expression

    def __str__(self) -> str:
        return f"isnan({self.value})"


@dataclass(frozen=True, slots=True)
class And(Expression):
    """A conjunction of two or more terms."""

    terms: tuple[Expression, ...]

    def __str__(self) -> str:
        return " AND ".join(f"({term})" for term in self.terms)


@dataclass(frozen=True, slots=True)
class Or(Expression):
    """A disjunction of two or more terms."""

    terms: tuple[Expression, ...]

    def __str__(self) -> str:
        return " OR ".join(f"({term})" for term in self.terms)


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """A negation; after normalisation it stands only on leaves that have no mirror image of their own."""

    child: Expression

    def __str__(self) -> str:
        return f"NOT ({self.child})"


def _abbreviated(options: tuple[Expression, ...], limit: int = 5) -> str:
    """Spell a list of options, with a count in place of what is beyond the limit."""
    shown = ", ".join(map(str, options[:limit]))
    return shown if len(options) <= limit else f"{shown}, … {len(options) - limit} more"
