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
from skipstone.toolkit.hashing import element_hash_expression, hash_expression
from skipstone.toolkit.values import is_atomic, quoted

if TYPE_CHECKING:
    from skipstone.indexing.index import Index

__all__ = [
    "NAN_ELEMENTS",
    "NULL_ELEMENTS",
    "check_of",
    "check_part",
    "elements_of",
    "hash_input",
    "is_lists",
    "is_taken_apart",
    "part_input",
    "takes_part",
]

NULL_ELEMENTS = "null_elements"
NAN_ELEMENTS = "nan_elements"

_NOT_CARRIED = ("interval year", "interval month")  # Arrow has no form of them inside an array


def is_taken_apart(type_: str) -> bool:
    """Say whether a column of this Spark type is described by its elements."""
    return type_.startswith(("array<", "map<"))


def check_of(of: object) -> None:
    """Refuse an ``of`` that names no part of a map."""
    if of not in (None, KEYS, VALUES):
        msg = f'of={of!r} is no part of a map: give of="keys" or of="values", and nothing for other columns'
        raise SettingError(msg)


def takes_part(types: tuple[str, ...], of: str | None) -> bool:
    """Say whether the part of a column is of an atomic type."""
    part = types[0] if of is None and not is_taken_apart(types[0]) else element_type(types[0], of or ELEMENTS)
    if part is None or not is_atomic((part,)):
        return False
    return part is types[0] or not part.startswith(_NOT_CARRIED)


def check_part(index: Index, types: tuple[str, ...], of: str | None) -> None:
    """Raise a clear error where ``of`` and the column's type do not go together."""
    (column,), (type_,) = index.columns, types
    if of is None and type_.startswith("map<"):
        msg = f'{index.name} cannot be built: {column} is {type_}; say which part of it: of="keys" or of="values"'
        raise UnsupportedTypeError(msg)
    if of is not None and not type_.startswith("map<"):
        msg = f"{index.name} cannot be built: of={of!r} is for maps, and {column} is {type_}; leave it out"
        raise UnsupportedTypeError(msg)


def part_input(column: str, of: str | None) -> str:
    """Give the SQL of the part of a column: the column itself, or an array of a map's keys or values."""
    return column if of is None else _source(column, of)


def hash_input(column: str, type_: str, of: str | None) -> str:
    """Give the SQL of the hashes of a column's values, or of an array of the hashes of its elements."""
    return element_hash_expression(_source(column, of)) if is_taken_apart(type_) else hash_expression(column)


def _source(column: str, of: str | None) -> str:
    """Give the SQL of an array of the elements."""
    return quoted(column) if of is None else f"map_{of}({quoted(column)})"


def is_lists(type_: pa.DataType) -> bool:
    """Say whether an input holds arrays."""
    return pa.types.is_list(type_) or pa.types.is_large_list(type_)


def elements_of(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Give the elements of all arrays of a column, NULL elements among them; any other column as it is."""
    return pc.list_flatten(column) if is_lists(column.type) else column
