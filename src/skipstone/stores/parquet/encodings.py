"""How columns of metadata are encoded in Parquet, and how many bytes that gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["DICTIONARY_BYTES", "stored_size", "with_dictionary"]

DICTIONARY_BYTES = 16 << 20
_SHARED = 0.5
"""Distinct items among all items of lists, up to which a dictionary makes them smaller."""


def with_dictionary(rows: pa.Table, others: Collection[str] = ()) -> list[str]:
    """Name the leaves that get a dictionary: single values, and items of lists that many lists share."""
    names = []
    for field in rows.schema:
        if field.name in others:
            continue
        if not pa.types.is_nested(field.type):
            names.append(field.name)
        elif pa.types.is_list(field.type) and not pa.types.is_nested(field.type.value_type):
            items = rows.column(field.name).combine_chunks().flatten()
            if pa.types.is_null(items.type):  # nothing to count
                continue
            if pc.count_distinct(items).as_py() <= _SHARED * len(items):
                names.append(f"{field.name}.list.{field.type.value_field.name}")
    return names


def stored_size(rows: pa.Table) -> int:
    """Return the bytes that rows take in a part, its footer included."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows,
        sink,
        compression="zstd",
        use_dictionary=with_dictionary(rows),
        dictionary_pagesize_limit=DICTIONARY_BYTES,
        write_statistics=False,
        use_compliant_nested_type=False,
    )
    return int(sink.tell())
