"""What a part consists of: identity columns, row groups, a CRC-32 per column chunk, Parquet's footer.

Between the row groups and the Parquet footer a part holds one CRC-32 per column chunk; Parquet readers never look
there, since the footer gives absolute positions.  The manifest has the SHA-256 of everything from those checksums to
the end of the file.  So whatever is read is checked, page headers and dictionaries included (Parquet's own page
checksums leave the headers out), and reading a little stays reading a little.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "CRC",
    "IDENTITY",
    "MAX_ROW_GROUP_ROWS",
    "SIZES",
    "TRAILER",
    "Footer",
    "chunks_of",
    "parse_footer",
    "presence_column",
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
MAX_ROW_GROUP_ROWS = 65_536
"""Objects in a row group at most."""
TRAILER = 8
"""Bytes of Parquet's own footer length and magic."""
CRC = np.dtype("<u4")
"""How a chunk's checksum is stored."""
SIZES = b"skipstone.arrow_bytes"
"""Key of the footer's JSON that has the in-memory bytes of each column."""


def presence_column(index_id: str) -> str:
    """Name the column that says which rows an index covers; a part without it covers all rows of the ids it holds."""
    return f"{index_id}:"


@dataclass(frozen=True, slots=True)
class Footer:
    """A part's footer: the Parquet metadata, the CRC-32 of each chunk by its offset, columns and their Arrow bytes."""

    parquet: Any
    crc_of: Mapping[int, int]
    columns: frozenset[str]
    arrow_bytes: Mapping[str, int]


def parse_footer(data: bytes) -> Footer:
    """Take a footer apart: checksums first, then what Parquet calls the footer."""
    start = len(data) - TRAILER - int.from_bytes(data[-TRAILER:-4], "little")
    metadata = pq.read_metadata(io.BytesIO(data[max(start, 0) :]))
    crcs = np.frombuffer(data[:start], CRC).tolist()
    return Footer(
        parquet=metadata,
        crc_of=dict(zip((offset for _, offset, _ in chunks_of(metadata)), crcs, strict=True)),
        columns=frozenset(metadata.schema.to_arrow_schema().names),
        arrow_bytes={str(k): int(v) for k, v in json.loads((metadata.metadata or {}).get(SIZES, b"{}")).items()},
    )


def chunks_of(metadata: Any, groups: Sequence[int] | None = None) -> list[tuple[str, int, int]]:
    """Give column, offset and length of every chunk, row group by row group in the order of the schema's leaves."""
    found = []
    for group in range(metadata.num_row_groups) if groups is None else groups:
        row_group = metadata.row_group(group)
        for leaf in range(row_group.num_columns):
            chunk = row_group.column(leaf)
            start = chunk.data_page_offset
            if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
                start = chunk.dictionary_page_offset
            found.append((chunk.path_in_schema.split(".", 1)[0], start, chunk.total_compressed_size))
    return found
