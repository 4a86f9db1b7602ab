"""The Formatted index: what a user's function extracts from a formatted text, listed per object (paper, table I)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from skipstone.errors import SettingError, UnsupportedTypeError
from skipstone.expressions.tree import Call, Column
from skipstone.indexes.value_list import ValueListMatchClause, ValueListMetadata
from skipstone.indexing.environment import MACHINE
from skipstone.indexing.index import Index
from skipstone.querying.filter import Filter
from skipstone.toolkit.leaf import read_leaf
from skipstone.toolkit.values import is_atomic, quoted

if TYPE_CHECKING:
    import pyarrow as pa

    from skipstone.expressions.tree import Expression
    from skipstone.indexing.source import Preparation
    from skipstone.querying.clause import Clause

__all__ = ["FormattedFilter", "FormattedIndex", "depends_on_zone"]

_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_INSTANT = re.compile(r"\btimestamp\b")


def depends_on_zone(spark_type: str) -> bool:
    """Whether users' functions see values of a type as wall-clock times of the session's or the machine's zone.

    Examples
    --------
    >>> [depends_on_zone(name) for name in ("string", "timestamp_ntz", "array<timestamp>")]
    [False, False, True]
    """
    return _INSTANT.search(spark_type) is not None


def _is_name(text: Any) -> bool:
    """Whether a value can be the name of a function, qualified or not."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


@dataclass(frozen=True)
class FormattedIndex(Index):
    """The distinct results of a user's function of a column in each object, with counts of NULL and NaN.

    Parameters
    ----------
    column
        The column, usually of text in some format: user agents, addresses, log lines.
    extract
        The registered name of the function that queries call on the column, in whatever language it is written.
    type
        The type of its results, which is found out when the index is made.

    Examples
    --------
    >>> FormattedIndex("user_agent", extract="getAgentName").name
    "formatted(user_agent, extract='getAgentName')"
    """

    metadata_type = ValueListMetadata

    column: str
    extract: str = field(kw_only=True)
    type: str = field(default="", kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if not _is_name(self.extract):
            msg = f"extract={self.extract!r} is not the name of a function: give the name under which it is registered"
            raise SettingError(msg)
        if self.column == "*":
            msg = f"column='*' is not a column for {self.extract}: name the one that queries call it on"
            raise SettingError(msg)
        super().__post_init__()

    @property
    def functions(self) -> tuple[str, ...]:
        return (self.extract,)

    def supports(self, types: tuple[str, ...]) -> bool:
        return not any(map(depends_on_zone, types))

    def prepare(self, scan: Preparation) -> Self:
        (call,) = self.inputs(())
        if not scan.functions_in(call):
            msg = (
                f"{self.name} cannot be built: {self.extract} is a function of Spark's own or one written in SQL, not "
                "one that was registered; queries on it cannot be told from others, so index its result as a column"
            )
            raise SettingError(msg)
        found = scan.type_of(call)
        if not is_atomic((found,)) or depends_on_zone(found):
            msg = (
                f"{self.name} cannot be built: {self.extract} gives {found}, which cannot be listed; "
                "let it give text, a number or a date"
            )
            raise UnsupportedTypeError(msg)
        return replace(self, type=found)

    @property
    def evaluated(self) -> tuple[str, ...]:
        return (MACHINE,)  # no input or result has a zone; settings that reach the function are part of its identity

    def inputs(self, types: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG002  (part of the contract)
        """Return the call; the function's name is quoted, since a manifest may have any text in its place."""
        return (f"{quoted(self.extract)}({quoted(self.column)})",)

    def collect_metadata(self, rows: pa.RecordBatch) -> ValueListMetadata:
        return ValueListMetadata.of(rows.column(0))

    def filters(self) -> tuple[Filter, ...]:
        return (FormattedFilter(self),)

    def reads(self, subject: Any) -> bool:
        """Whether an expression is the function's call on the column, of the type that was indexed."""
        match subject:
            case Call(name, (Column(self.column),), self.type, kind):
                return bool(kind) and name.lower() == self.extract.lower()
        return False


@dataclass(frozen=True, slots=True)
class FormattedFilter(Filter):
    """Labels predicates on ``extract(column)`` with ``ValueListMatchClause``.

    Write ``f`` for the function.  The list has every ordinary result (neither NULL nor NaN) of ``f(column)`` over the
    rows of the object and nothing else, and the counts tell how many results are NULL or NaN.  ``f`` is deterministic,
    the call in the query is of the very same function (the planner compares identities before it asks), its argument is
    the column itself, of the indexed type and read in the same way, and the type of the result is the indexed one.  So
    ``f(column)`` has, for each row, the value that was listed or counted for it, and a predicate ``p(f(column))`` is
    TRUE for some row exactly if ``p`` is TRUE of a listed value, or of NULL or NaN and the object has one.  That is the
    statement about a column which ``ValueListFilter`` proves predicate by predicate, with ``f(column)`` in the column's
    place: a NULL result satisfies ``IS NULL`` and ``NOT (f(c) <=> v)`` alone, whatever the column's own value is.

    A call of Spark's own function of that name (``kind`` is empty), of more or other arguments, or on an expression of
    the column is another value and gets no label.
    """

    index: FormattedIndex

    def label_node(self, node: Expression) -> Clause | None:
        leaf = read_leaf(node)
        return ValueListMatchClause(self.index, node) if leaf is not None and self.index.reads(leaf.subject) else None
