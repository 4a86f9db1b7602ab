"""Finished metadata of many objects on its way to the driver: lists of values become blocks of Arrow columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from skipstone.indexing.failures import PluginRaisedError
from skipstone.indexing.records import field_column, split_field_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["FinishedObjects", "block_schema", "read_blocks", "stored_array"]

_MOST_OBJECTS = 1_000
_MOST_BYTES = 8 << 20
_NUMBER_BYTES = 8


def block_schema(fields: Sequence[Mapping[str, pa.DataType]]) -> pa.Schema:
    """Return the columns of a block: the object's number, its rows, and the fields of each index by its place.

    The column of an index without a field's name says why the index has nothing of an object; null where it has.
    """
    named = [(field_column(str(i), name), type_) for i, one in enumerate(fields) for name, type_ in one.items()]
    reasons = [(field_column(str(i), ""), pa.string()) for i in range(len(fields))]
    return pa.schema([("object", pa.int32()), ("row_count", pa.int64()), *named, *reasons])


class FinishedObjects:
    """Collects finished objects until there are enough for a block; ``owners`` names the indexes."""

    def __init__(self, fields: Sequence[Mapping[str, pa.DataType]], owners: Sequence[str]) -> None:
        self._schema = block_schema(fields)
        self._owners = ["", "", *(owner for one, owner in zip(fields, owners, strict=True) for _ in one), *owners]
        self._names = [tuple(one) for one in fields]
        self._clear()

    def _clear(self) -> None:
        """Start an empty block."""
        self._columns: list[list[Any]] = [[] for _ in self._schema]
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._columns[0])

    @property
    def first(self) -> int:
        """The number of the first object."""
        return int(self._columns[0][0])

    @property
    def is_full(self) -> bool:
        """Whether it is time to take the block."""
        return len(self) >= _MOST_OBJECTS or self._bytes >= _MOST_BYTES

    def add(self, number: int, rows: int, stored: Sequence[Mapping[str, Any] | str]) -> None:
        """Add one object: what each index stores of it, or why it stores nothing."""
        values: list[Any] = [number, rows]
        for one, names in zip(stored, self._names, strict=True):
            values += [None if isinstance(one, str) else one[name] for name in names]
        values += [one if isinstance(one, str) else None for one in stored]
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)
        self._bytes += sum(map(_size, values))

    def take(self) -> pa.RecordBatch:
        """Return the objects so far and start anew."""
        arrays = []
        for values, field, owner in zip(self._columns, self._schema, self._owners, strict=True):
            try:
                arrays.append(stored_array(values, field.type))
            except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError) as error:
                split = split_field_column(field.name)
                raise PluginRaisedError(owner, f"its field {split.name if split else ''}", error) from error
        self._clear()
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def take_table(self) -> pa.Table:
        """Return the objects so far as a table and start anew."""
        return pa.Table.from_batches([self.take()])

    def take_block(self) -> bytes:
        """Return the objects so far as Arrow's stream format and start anew."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._schema) as writer:
            writer.write_batch(self.take())
        return sink.getvalue().to_pybytes()


def read_blocks(blocks: Iterable[bytes], fields: Sequence[Mapping[str, pa.DataType]]) -> pa.Table:
    """Put blocks together, in the order in which they come."""
    tables = [pa.ipc.open_stream(pa.py_buffer(block)).read_all() for block in blocks]
    return pa.concat_tables([block_schema(fields).empty_table(), *tables])


def stored_array(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Make a column of finished values, ``None`` for unknown; those of a list column may be Arrow arrays.

    Examples
    --------
    >>> stored_array([pa.array([1, 2]), None], pa.list_(pa.int64())).to_pylist()
    [[1, 2], None]
    """
    if not any(isinstance(v, pa.Array | pa.ChunkedArray) for v in values):
        return pa.array([v.as_py() if isinstance(v, pa.Scalar) else v for v in values], type_)
    parts = [_list_of(v, type_.value_type) for v in values]
    offsets = np.concatenate(([0], np.cumsum([0 if p is None else len(p) for p in parts])))
    known = [p for p in parts if p is not None and len(p)]
    flat = pa.concat_arrays(known) if known else pa.array([], type_.value_type)
    missing = pa.array([p is None for p in parts])
    kind, width = (pa.LargeListArray, pa.int64()) if pa.types.is_large_list(type_) else (pa.ListArray, pa.int32())
    return kind.from_arrays(pa.array(offsets, width), flat, type=type_, mask=missing)


def _list_of(value: Any, type_: pa.DataType) -> pa.Array | None:
    """Return one object's list as an array of the stored type."""
    if value is None:
        return None
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    made = value if isinstance(value, pa.Array) else pa.array(value, type_)
    return made if made.type == type_ else made.cast(type_)


def _size(value: Any) -> int:
    """Estimate the bytes of a value."""
    if isinstance(value, bytes | str):
        return len(value)
    if isinstance(value, list | tuple):
        return len(value) * _NUMBER_BYTES
    return int(getattr(value, "nbytes", _NUMBER_BYTES))
