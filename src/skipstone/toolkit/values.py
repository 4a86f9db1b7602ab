"""Values in Arrow form: which Spark types the built-in indexes take, exact literals, and distinct values in parts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from skipstone.expressions.names import quote_parts
from skipstone.expressions.types import FLOATING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "FLOATING",
    "Distinct",
    "exact_array",
    "exact_scalar",
    "is_atomic",
    "is_binary_like",
    "name_parts",
    "ordinary_values",
    "quoted",
    "unknown",
]

# Anchored on purpose: `string collate X`, `interval` (calendar) and types of later releases do not match.
_ATOMIC = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|decimal\(\d+,\s?-?\d+\)|string|binary|date|timestamp|timestamp_ntz"
    r"|time\(\d\)|interval (year|month|day|hour|minute|second)( to (month|hour|minute|second))?"
)
_NAME_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def is_atomic(types: tuple[str, ...]) -> bool:
    """Whether every type is one that Spark orders and hashes by its physical value alone."""
    return all(_ATOMIC.fullmatch(name) for name in types)


def is_binary_like(type_: pa.DataType) -> bool:
    """Whether an Arrow type holds bytes or text."""
    return (
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
    )


def name_parts(column: str) -> tuple[str, ...]:
    """Take a column's Spark spelling apart.

    Examples
    --------
    >>> name_parts("s.`odd.name`")
    ('s', 'odd.name')
    """
    return tuple(m[1].replace("``", "`") if m[1] is not None else m[2] for m in _NAME_PART.finditer(column))


def quoted(column: str) -> str:
    """Return a column as the SQL of an index's ``inputs`` must spell it: with every part of its name in back-ticks.

    SQL cannot take it for anything else then: a column may be called ``null`` or ``current_date``.

    Examples
    --------
    >>> quoted("s.null")
    '`s`.`null`'
    """
    return quote_parts(name_parts(column))


def unknown(length: int) -> pa.BooleanArray:
    """Return the answer that keeps every object."""
    return pa.nulls(length, pa.bool_())


def exact_scalar(value: Any, type_: pa.DataType) -> pa.Scalar | None:
    """Return ``value`` as a scalar of a stored type, or ``None`` when the type cannot hold just that value."""
    made = exact_array((value,), type_)
    return None if made is None else made[0]


def exact_array(values: Sequence[Any], type_: pa.DataType) -> pa.Array | None:
    """Return ``values`` as an array of a stored type, or ``None`` when the type cannot hold just these values.

    Arrow rounds and truncates silently (1.5 as an int32 is 1), and a literal that has moved is another predicate.
    """
    try:
        if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
            values = [v.encode() if isinstance(v, str) else v for v in values]
        made = pa.array(values, type=type_)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return made if made.null_count == 0 and made.to_pylist() == list(values) else None


def ordinary_values(array: pa.Array) -> tuple[pa.Array, int, int]:
    """Split a column: the values that are neither NULL nor NaN, the number of NULLs, and the number of NaN."""
    nulls = array.null_count
    nans = 0
    if pa.types.is_floating(array.type):
        is_nan = pc.is_nan(array)
        nans = pc.sum(is_nan).as_py() or 0
        if nans:
            array = array.filter(pc.invert(is_nan))
    return (array.drop_null() if nulls else array), nulls, nans


@dataclass(frozen=True, slots=True)
class Distinct:
    """The distinct values of some rows, kept in parts that become one whenever they have doubled.

    Making them one at every merge would cost quadratic time for an object that comes in many batches.
    """

    parts: tuple[pa.Array, ...]
    settled: int

    @classmethod
    def of(cls, array: pa.Array) -> Self:
        """Start from the values of one batch, which must have no NULL."""
        once = array.unique()
        return cls((once,), len(once))

    def __iter__(self) -> Iterator[pa.Array]:
        return iter(self.parts)

    @property
    def bytes(self) -> int:
        """The memory that the parts take."""
        return sum(part.nbytes for part in self.parts)

    def merge(self, other: Self) -> Self:
        """Join two sets of values."""
        parts = tuple(part for part in (*self.parts, *other.parts) if len(part)) or self.parts
        merged = type(self)(parts, max(self.settled, other.settled))
        return merged.settle() if sum(map(len, parts)) > 2 * merged.settled + 4096 else merged

    def settle(self) -> Self:
        """Make the parts one, each value once."""
        return self if len(self.parts) == 1 else type(self).of(pa.chunked_array(self.parts))

    @property
    def array(self) -> pa.Array:
        """The values, each once."""
        return self.settle().parts[0]
