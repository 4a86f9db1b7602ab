"""The columns of a part, wherever it is kept: what identifies objects, which rows an index covers, rows in a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from skipstone.indexing.records import field_column, split_field_column

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["IDENTITY", "MAX_ROW_GROUP_ROWS", "OBJECT_COLUMNS", "presence_column", "rows_per_group", "sizes_by_index"]

IDENTITY = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("digest", pa.binary(16), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("modified", pa.int64(), nullable=False),
        pa.field("etag", pa.string(), nullable=False),
        pa.field("row_count", pa.int64()),
        pa.field("trusted", pa.bool_(), nullable=False),
        pa.field("removed", pa.bool_(), nullable=False),
    ]
)
OBJECT_COLUMNS = tuple(name for name in IDENTITY.names if name != "removed")
"""What ``MetadataStore.objects`` gives of each object."""
MAX_ROW_GROUP_ROWS = 65_536
"""Objects in a row group at most."""
_ROW_GROUP_BYTES = 64 << 20
_CUT_ROW_GROUP_BYTES = 256 << 20
"""Of a part with buckets, which are many chunks in each row group, and of which lookups read few."""


def presence_column(index_id: str) -> str:
    """Name the column that says which rows an index covers; a part without it covers all rows of the ids it holds."""
    return field_column(index_id, "")


def rows_per_group(rows: int, size: int, *, cut: bool = False) -> int:
    """Choose the rows of a row group: bounded in objects and, by the average object, in bytes."""
    most = _CUT_ROW_GROUP_BYTES if cut else _ROW_GROUP_BYTES
    return max(1, min(MAX_ROW_GROUP_ROWS, most * rows // max(size, 1) if rows else MAX_ROW_GROUP_ROWS))


def sizes_by_index(columns: Iterable[tuple[str, int, int]]) -> dict[str, tuple[int, int]]:
    """Add up the stored and the in-memory bytes of columns by the index that they belong to.

    >>> sizes_by_index([("path", 9, 90), ("a:min", 1, 10), ("a:max", 2, 20)])
    {'a': (3, 30)}
    """
    sizes: dict[str, tuple[int, int]] = {}
    for column, stored, in_memory in columns:
        if (split := split_field_column(column)) is not None:
            known = sizes.get(split.index_id, (0, 0))
            sizes[split.index_id] = (known[0] + stored, known[1] + in_memory)
    return sizes
