"""Columns that the bridge sent as bytes, instead of rows that Spark made of them (``ColumnBatches.scala``).

The bytes are Arrow's own buffers: an array is a view of them, and nothing is copied.
"""

from __future__ import annotations

import struct
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["read_batches"]

_HEAD = struct.Struct("<qq")
_WORD = 8


def read_batches(rows: Iterable[pa.RecordBatch], types: Sequence[pa.DataType]) -> Iterator[pa.RecordBatch]:
    """Yield the batches of columns of these types that the values of the only column are."""
    for batch in rows:
        for value in batch.column(0):
            yield _read_batch(value.as_buffer(), types)


def _read_batch(data: pa.Buffer, types: Sequence[pa.DataType]) -> pa.RecordBatch:
    """Take a value apart: rows and number of buffers, the length of each, and the buffers, padded to whole words."""
    rows, count = _HEAD.unpack_from(data)
    lengths = struct.unpack_from(f"<{count}q", data, _HEAD.size)
    starts = accumulate((-(-n // _WORD) * _WORD for n in lengths), initial=_HEAD.size + count * _WORD)
    buffers = iter([data.slice(start, length) for start, length in zip(starts, lengths, strict=False)])
    columns = [_column(type_, rows, buffers) for type_ in types]
    return pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(types))])


def _column(type_: pa.DataType, length: int, buffers: Iterator[pa.Buffer]) -> pa.Array:
    """Make an array of the next buffers; without bits that say which values are NULL, none is."""
    valid = next(buffers)
    own = [valid if valid.size else None, next(buffers)]
    if pa.types.is_list(type_):
        ends = own[1]
        elements = int.from_bytes(ends.slice(4 * length, 4).to_pybytes(), "little")
        return pa.Array.from_buffers(type_, length, own, children=[_column(type_.value_type, elements, buffers)])
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        own.append(next(buffers))
    return pa.Array.from_buffers(type_, length, own)
