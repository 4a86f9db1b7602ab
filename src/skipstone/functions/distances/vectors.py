"""Arrays of numbers, from Arrow columns to matrices of doubles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["NO_VECTOR", "Vectors", "read_vectors"]

NO_VECTOR = -1
"""The length of a row that is NULL or has a NULL in it."""

_SECOND_FIRST = ("lng", "lon", "long", "longitude")


@dataclass(frozen=True, slots=True)
class Vectors:
    """The numbers of every row, one after the other; row ``i`` begins at ``starts[i]``."""

    values: npt.NDArray[np.float64]
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]

    def matrix(self, rows: npt.NDArray[np.intp], length: int) -> npt.NDArray[np.float64]:
        """Return rows of one length as a matrix, without copying where they follow one another."""
        starts = self.starts[rows]
        if not len(rows):
            return np.zeros((0, length))
        if (np.diff(starts) == length).all():
            return self.values[starts[0] : starts[0] + len(rows) * length].reshape(len(rows), length)
        return self.values[starts[:, np.newaxis] + np.arange(length)]


def read_vectors(column: pa.Array) -> Vectors:
    """Read a column of arrays of numbers, or of structs of a latitude and a longitude.

    Every number becomes the double that is nearest to it.

    Examples
    --------
    >>> found = read_vectors(pa.array([[1, 2], None, [3, None], [4, 5]]))
    >>> found.lengths.tolist(), found.matrix(np.array([0, 3]), 2).tolist()
    ([2, -1, -1, 2], [[1.0, 2.0], [4.0, 5.0]])
    """
    if pa.types.is_null(column.type):
        return Vectors(np.zeros(0), np.zeros(len(column), np.int64), np.full(len(column), NO_VECTOR, np.int64))
    if pa.types.is_struct(column.type):
        column = _points(column)
    elif pa.types.is_fixed_size_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    offsets = column.offsets.to_numpy().astype(np.int64)
    children = column.values.slice(offsets[0], offsets[-1] - offsets[0])
    offsets -= offsets[0]
    starts, lengths = offsets[:-1], np.diff(offsets)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = NO_VECTOR
    if children.null_count:
        so_far = np.concatenate(([0], np.cumsum(children.is_null().to_numpy(zero_copy_only=False))))
        lengths[so_far[offsets[1:]] > so_far[starts]] = NO_VECTOR
    return Vectors(_doubles(children), starts, lengths)


def _points(column: pa.StructArray) -> pa.Array:
    """Return structs of a latitude and a longitude as arrays of the two, in this order."""
    names = [field.name.lower() for field in column.type]
    parts = [_doubles_or_null(child) for child in column.flatten()]  # a field of a NULL is NULL
    one, other = parts[::-1] if names[0] in _SECOND_FIRST else parts
    pairs = np.empty(2 * len(column))
    pairs[0::2], pairs[1::2] = one[0], other[0]
    missing = np.empty(2 * len(column), np.bool_)
    missing[0::2], missing[1::2] = one[1], other[1]
    offsets = pa.array(np.arange(0, 2 * len(column) + 1, 2, dtype=np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array(pairs, pa.float64(), mask=missing))


def _doubles_or_null(numbers: pa.Array) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Return numbers as doubles, and which of them are NULL."""
    return _doubles(numbers), numbers.is_null().to_numpy(zero_copy_only=False)


def _doubles(numbers: pa.Array) -> npt.NDArray[np.float64]:
    """Return the nearest doubles; anything in place of NULL.

    Decimals go through text: that is rounded once and correctly, as Python's ``float`` does with a literal.
    """
    if pa.types.is_decimal(numbers.type):
        numbers = pc.cast(numbers, pa.string())
    doubles = pc.cast(numbers, pa.float64(), safe=False)
    return doubles.fill_null(0.0).to_numpy(zero_copy_only=False) if doubles.null_count else doubles.to_numpy()
