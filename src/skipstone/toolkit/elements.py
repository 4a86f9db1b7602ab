"""Which part of a column an index describes: its values, an array's elements, or a map's keys or values.

Arrays and maps are taken apart; what is collected of their elements has counts of its own, since there are more or
fewer elements than rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import SettingError, UnsupportedTypeError
from skipstone.expressions.elements import ELEMENTS, KEYS, VALUES, element_type
from skipstone.expressions.tree import Column, Element
from skipstone.indexing.index import Index
from skipstone.toolkit.hashing import element_hash_expression, hash_expression
from skipstone.toolkit.values import is_atomic, quoted

if TYPE_CHECKING:
    from skipstone.expressions.tree import Expression

__all__ = [
    "NAN_ELEMENTS",
    "NULL_ELEMENTS",
    "PartIndex",
    "count_names",
    "describes",
    "elements_of",
    "is_lists",
    "is_taken_apart",
]

NULL_ELEMENTS = "null_elements"
"""Name of the metadata field that counts the elements that are NULL."""
NAN_ELEMENTS = "nan_elements"
"""Name of the metadata field that counts the elements that are NaN."""

_NOT_CARRIED = ("interval year", "interval month")  # Arrow has no form of them inside an array


def is_taken_apart(type_: str) -> bool:
    """Whether a column of this Spark type is described by its elements."""
    return type_.startswith(("array<", "map<"))


class PartIndex(Index):
    """The base of index types that describe a column's values, an array's elements, or a map's keys or values.

    A subclass has the fields ``column`` and ``of``; ``of`` says which part of a map is described, ``"keys"`` or
    ``"values"``, and is ``None`` for every other column.  This class owns what follows from them: which types of column
    fit, and what is read of it.  ``describes`` says which predicates are about that.
    """

    column: str
    of: str | None

    def __post_init__(self) -> None:
        if self.of not in (None, KEYS, VALUES):
            msg = f'of={self.of!r} is no part of a map: give of="keys" or of="values", and nothing for other columns'
            raise SettingError(msg)
        super().__post_init__()

    @property
    def functions(self) -> tuple[str, ...]:
        """None: no result of a user's function is kept."""
        return ()

    @property
    def evaluated(self) -> tuple[str, ...]:
        """Nothing: hashes and parts of values are the same everywhere."""
        return ()

    def supports(self, types: tuple[str, ...]) -> bool:
        """Whether the part of a column is of an atomic type."""
        (type_,) = types
        part = type_ if self.of is None and not is_taken_apart(type_) else element_type(type_, self.of or ELEMENTS)
        if part is None or not is_atomic((part,)):
            return False
        return part is type_ or not part.startswith(_NOT_CARRIED)

    def check_types(self, types: tuple[str, ...]) -> None:
        """Raise a clear error also where ``of`` and the column's type do not go together."""
        (type_,) = types
        if self.of is None and type_.startswith("map<"):
            which = 'say which part of it: of="keys" or of="values"'
            msg = f"{self.name} cannot be built: {self.column} is {type_}; {which}"
            raise UnsupportedTypeError(msg)
        if self.of is not None and not type_.startswith("map<"):
            msg = f"{self.name} cannot be built: of={self.of!r} is for maps, and {self.column} is {type_}; leave it out"
            raise UnsupportedTypeError(msg)
        super().check_types(types)

    @property
    def values_input(self) -> str:
        """The SQL of the part of the column: the column itself, or an array of a map's keys or values."""
        return self.column if self.of is None else self._part

    def hashes_input(self, types: tuple[str, ...]) -> str:
        """Return the SQL of the hashes of the column's values, or of an array of the hashes of its elements."""
        return element_hash_expression(self._part) if is_taken_apart(types[0]) else hash_expression(self.column)

    @property
    def _part(self) -> str:
        """The SQL of an array of the elements."""
        return quoted(self.column) if self.of is None else f"map_{self.of}({quoted(self.column)})"


def describes(index: Index, subject: Expression) -> bool:
    """Whether an index collected the values of a subject: a column, or a part of one (see ``PartIndex``).

    A column of arrays or maps was taken apart, so what was collected says nothing of the arrays and maps themselves.
    """
    (column,), of = index.columns, getattr(index, "of", None)
    match subject:
        case Column(name, type_):
            return name == column and of is None and not is_taken_apart(type_)
        case Element(Column(name), part):
            return name == column and part == (of or ELEMENTS)
    return False


def count_names(*, elements: bool) -> tuple[str, str]:
    """Name the stored fields with the numbers of NULL and of NaN: of elements, or of rows."""
    return (NULL_ELEMENTS, NAN_ELEMENTS) if elements else ("null_count", "nan_count")


def is_lists(type_: pa.DataType) -> bool:
    """Whether an input holds arrays."""
    return pa.types.is_list(type_) or pa.types.is_large_list(type_)


def elements_of(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return the elements of all arrays of a column, NULL elements among them; any other column as it is."""
    return pc.list_flatten(column) if is_lists(column.type) else column
