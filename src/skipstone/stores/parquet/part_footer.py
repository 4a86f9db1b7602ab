"""What a part consists of: identity columns, row groups, a table of column chunks with their CRC-32, Parquet's footer.

Between the row groups and the Parquet footer a part holds the place, length and CRC-32 of each column chunk; Parquet
readers never look there, since the footer gives absolute positions.  The manifest has the SHA-256 of everything from
that table to the end of the file.  So whatever is read is checked, page headers and dictionaries included (Parquet's
own page checksums leave the headers out), and reading a little stays reading a little.  The table also spares asking
pyarrow for a chunk's metadata, which ends the process when a (damaged or hostile) file has that encrypted.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from skipstone.stores.parts.buckets import Buckets
from skipstone.stores.parts.columns import column_of, sample_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = [
    "BUCKETS",
    "CHUNK",
    "SIZES",
    "TRAILER",
    "Chunk",
    "Footer",
    "leaf_columns",
    "parse_footer",
]

TRAILER = 8
"""Bytes of Parquet's own footer length and magic."""
CHUNK = np.dtype([("offset", "<u8"), ("length", "<u8"), ("crc", "<u4")])
"""How a chunk's place, length and checksum are stored."""
SIZES = b"skipstone.arrow_bytes"
"""Key of the footer's JSON that has the in-memory bytes of each column."""
BUCKETS = b"skipstone.buckets"
"""Key of the footer's JSON that says which columns are kept in buckets: their kind and number."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One column of one row group: its place in the file and the CRC-32 of its bytes."""

    column: str
    group: int
    offset: int
    length: int
    crc: int


@dataclass(frozen=True, slots=True)
class Footer:
    """A part's footer: the Parquet metadata, the chunks, the columns and their Arrow bytes.

    ``columns`` has the names of columns that are kept in buckets and those of their buckets.
    """

    parquet: Any
    chunks: tuple[Chunk, ...]
    columns: frozenset[str]
    arrow_bytes: Mapping[str, int]
    buckets: Mapping[str, Buckets]

    def stored(self, column: str) -> tuple[str, ...]:
        """Name the columns of the Parquet file that a column is kept in."""
        return self.buckets[column].columns(column) if column in self.buckets else (column,)

    def bytes_in_memory(self, column: str) -> int:
        """Return how many bytes a column, or one of its buckets on average, takes in memory."""
        whole = column_of(column)
        size = self.arrow_bytes.get(column, self.arrow_bytes.get(whole, 0))
        if column in self.arrow_bytes or whole not in self.buckets:
            return size
        alike = sample_of(column)
        return size if alike is None else self.arrow_bytes.get(alike, size // self.buckets[whole].count)

    def chunks_of(self, columns: Collection[str], groups: Collection[int] | None = None) -> list[Chunk]:
        """Return the chunks of some columns, in some row groups or in all, in the order in which they lie."""
        found = (c for c in self.chunks if c.column in columns and (groups is None or c.group in groups))
        return sorted(found, key=lambda chunk: chunk.offset)


def parse_footer(data: bytes, decryption: Any = None) -> Footer:
    """Take a footer apart: the table of chunks first, then what Parquet calls the footer."""
    start = len(data) - TRAILER - int.from_bytes(data[-TRAILER:-4], "little")
    metadata = pq.read_metadata(io.BytesIO(data[max(start, 0) :]), decryption_properties=decryption)
    table = np.frombuffer(data[: max(start, 0)], CHUNK)
    leaves = leaf_columns(metadata)
    if len(table) != len(leaves) * metadata.num_row_groups:
        msg = f"{len(table)} chunks of {len(leaves)} columns in {metadata.num_row_groups} row groups"
        raise ValueError(msg)
    rows = zip(*(table[name].tolist() for name in ("offset", "length", "crc")), strict=True)
    said = metadata.metadata or {}
    columns = frozenset(metadata.schema.to_arrow_schema().names)
    buckets = {name: _buckets(name, cut, columns) for name, cut in json.loads(said.get(BUCKETS, b"{}")).items()}
    return Footer(
        parquet=metadata,
        chunks=tuple(Chunk(leaves[n % len(leaves)], n // len(leaves), *row) for n, row in enumerate(rows)),
        columns=columns.union(buckets),
        arrow_bytes={str(k): int(v) for k, v in json.loads(said.get(SIZES, b"{}")).items()},
        buckets=buckets,
    )


def _buckets(column: str, said: Any, columns: Collection[str]) -> Buckets:
    """Read how a column is cut, and make sure that it is."""
    match said:
        case [str() as kind, int() as count, *coarse] if all(type(n) is int for n in coarse):
            cut = Buckets(kind, count, tuple(coarse))
            there = {name for name in columns if column_of(name) == column}
            if there == set(cut.columns(column)):  # no more of them either: of another count, values lie elsewhere
                return cut
    msg = f"{column[:80]!r} is to be in buckets as {str(said)[:80]} and is not"
    raise ValueError(msg)


def leaf_columns(metadata: Any) -> list[str]:
    """Name the column of each leaf of the schema, in the order in which a row group has them."""
    schema = metadata.schema
    return [schema.column(leaf).path.split(".", 1)[0] for leaf in range(metadata.num_columns)]
