"""The columns of a part, wherever it is kept: what identifies objects, which rows an index covers, names of buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from skipstone.indexing.records import field_column, split_field_column

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "IDENTITY",
    "MAX_ROW_GROUP_ROWS",
    "OBJECT_COLUMNS",
    "bucket_column",
    "column_of",
    "presence_column",
    "rows_per_group",
    "sample_of",
    "sizes_by_index",
    "whole_column",
]

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
_OF = "#"
"""Between the name of a column and that of its bucket; no index's id and no field's name has it."""
_AMONG = "-"
"""Between the number of slices and that of one of them, where filters are cut into several numbers."""


def presence_column(index_id: str) -> str:
    """Name the column that says which rows an index covers; a part without it covers all rows of the ids it holds."""
    return field_column(index_id, "")


def bucket_column(column: str, number: int, among: int | None = None) -> str:
    """Name the column of a bucket.

    Filters may be cut into several numbers of slices; the name of one among fewer says among how many.
    """
    return f"{column}{_OF}{number}" if among is None else f"{column}{_OF}{among}{_AMONG}{number}"


def whole_column(column: str) -> str:
    """Name the column of the filters that are left whole, where others are in buckets."""
    return f"{column}{_OF}whole"


def column_of(stored: str) -> str:
    """Return the column of which a column of a part's file is a bucket; itself where it is none.

    Examples
    --------
    >>> column_of(bucket_column("3f2a:bits", 7)), column_of(whole_column("3f2a:bits")), column_of("path")
    ('3f2a:bits', '3f2a:bits', 'path')
    """
    return stored.partition(_OF)[0]


def sample_of(stored: str) -> str | None:
    """Return the bucket that tells how large another one is: the first of as many; ``None`` for what is no bucket.

    Examples
    --------
    >>> sample_of("3f2a:bits#7"), sample_of("3f2a:bits#2-1"), sample_of("path")
    ('3f2a:bits#0', '3f2a:bits#2-0', None)
    """
    column, _, bucket = stored.partition(_OF)
    if not bucket:
        return None
    among, coarse, _ = bucket.partition(_AMONG)
    return f"{column}{_OF}{among}{_AMONG}0" if coarse else bucket_column(column, 0)


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
