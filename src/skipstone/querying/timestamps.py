"""Which timestamps a predicate can be TRUE for: whether old ones, which depend on a zone in files of old writers, are.

Spark stores timestamps in Parquet and Avro as instants.  In files of Spark 2 and of other old writers, and in all files
in the mode LEGACY, instants before 1900 are of another calendar, and Spark's readers move them with the zone of the JVM
(``RebaseDateTime``): by nothing from 1900-01-01 UTC on, and by up to a day between 1582 and then.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from skipstone.expressions.normalize import normalize
from skipstone.expressions.tree import (
    And,
    Column,
    EqualNullSafe,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    Literal,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skipstone.indexing.records import ColumnRecord

__all__ = ["MODERN", "modern", "only_modern"]

MODERN = int((datetime(1900, 1, 3, tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1_000_000
"""The first instant, in microseconds, that no zone moves."""
_TYPES = ("timestamp", "timestamp_ntz")


def modern(column: Column) -> Expression | None:
    """Return that a column of timestamps is modern; ``None`` for other types, which no zone moves."""
    if column.type not in _TYPES:
        return None
    return GreaterThanOrEqual(column, Literal(MODERN, column.type))


def only_modern(condition: Expression, columns: Iterable[ColumnRecord]) -> bool:
    """Whether every row that satisfies a condition has timestamps of 1900-01-03 or later in all these columns.

    Then metadata that was collected under another zone of the JVM represents the condition all the same.  Take a row
    that satisfies it as it is read here.  Its timestamps are modern, so the reader moved none of them: an instant
    before 1900-01-01 stays before 1900-01-03 when moved.  Therefore the row has the same timestamps under every zone,
    it satisfies the condition as it was read when indexed, and the clause, which represents the condition there, holds
    for its object.  A term of the conjunction is enough for a column: where the whole is TRUE, each term is, and a NULL
    timestamp makes none of these terms TRUE.

    Examples
    --------
    >>> from skipstone.indexing.records import ColumnRecord
    >>> ts = Column("ts", "timestamp")
    >>> only_modern(GreaterThan(ts, Literal(0, "timestamp")), [ColumnRecord("ts", "timestamp")])
    True
    >>> only_modern(GreaterThan(Literal(0, "timestamp"), ts), [ColumnRecord("ts", "timestamp")])
    False
    """
    tree = normalize(condition)
    bounded = {name for term in (tree.terms if isinstance(tree, And) else (tree,)) if (name := _modern_column(term))}
    return all(column.name in bounded for column in columns if "timestamp" in column.type.lower())


def _modern_column(term: Expression) -> str | None:
    """Return the column whose value is modern wherever a predicate is TRUE, or ``None``."""
    match term:
        case (
            EqualTo(Column(name, type_), Literal() as literal)
            | EqualNullSafe(Column(name, type_), Literal() as literal)
            | GreaterThan(Column(name, type_), Literal() as literal)
            | GreaterThanOrEqual(Column(name, type_), Literal() as literal)
        ) if type_ in _TYPES and _is_modern(literal, type_):
            return name
        case In(Column(name, type_), options) if type_ in _TYPES:
            known = [o for o in options if not (isinstance(o, Literal) and o.value is None)]
            if all(isinstance(o, Literal) and _is_modern(o, type_) for o in known):
                return name
    return None


def _is_modern(literal: Literal, type_: str) -> bool:
    """Whether a literal of a column's own type is 1900-01-03 or later."""
    return literal.type == type_ and isinstance(literal.value, int) and literal.value >= MODERN
