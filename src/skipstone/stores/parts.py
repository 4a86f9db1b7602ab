"""Parts: immutable Parquet files of metadata, read a column at a time and checked byte for byte.

Between the row groups and the Parquet footer a part holds one CRC-32 per column chunk; Parquet readers never look
there, since the footer gives absolute positions.  The manifest has the SHA-256 of everything from those checksums to
the end of the file.  So whatever is read is checked, page headers and dictionaries included (Parquet's own page
checksums leave the headers out), and reading a little stays reading a little.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.errors import MetadataCorruptError, MetadataStoreError
from skipstone.stores.manifest import PartRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skipstone.stores.cache import ByteCache
    from skipstone.stores.filesystem import FileSystem

__all__ = ["IDENTITY", "MAX_ROW_GROUP_ROWS", "PartFile", "PartWriter", "presence_column", "rows_per_group"]

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
_ROW_GROUP_BYTES = 64 << 20
_TRAILER = 8
_CRC = np.dtype("<u4")
_SIZES = b"skipstone.arrow_bytes"


def presence_column(index_id: str) -> str:
    """Name the column that says which rows an index covers; a part without it covers all rows of the ids it holds."""
    return f"{index_id}:"


def rows_per_group(rows: int, size: int) -> int:
    """Choose the rows of a row group: bounded in objects and, by the average object, in bytes."""
    return max(1, min(MAX_ROW_GROUP_ROWS, _ROW_GROUP_BYTES * rows // max(size, 1) if rows else MAX_ROW_GROUP_ROWS))


class PartWriter:
    """Writes one part to a local file, in as many steps as there are row groups.

    Parameters
    ----------
    path
        The local file to make.
    schema
        The columns: ``IDENTITY`` first, then those of the indexes.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._sizes = dict.fromkeys(schema.names, 0)
        self._rows = 0
        self._removed = 0
        self._writer = pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            use_dictionary=[name for name in schema.names if name not in ("path", "digest", "length", "modified")],
            write_statistics=False,
            write_page_checksum=True,
            use_compliant_nested_type=False,  # the item's name is part of the type's text
        )

    def write(self, table: pa.Table) -> None:
        """Add rows; ends a row group at the latest when they are written."""
        if not table.num_rows:
            return
        for name in table.column_names:
            self._sizes[name] += table.column(name).nbytes
        self._rows += table.num_rows
        self._removed += table.column("removed").combine_chunks().true_count
        self._writer.write_table(table, row_group_size=rows_per_group(table.num_rows, table.nbytes))

    def close(self) -> None:
        """Give up: the file is incomplete."""
        self._writer.close()

    def finish(self, sequence: int, file: str) -> PartRecord:
        """Complete the file and give its record."""
        self._writer.add_key_value_metadata({_SIZES.decode(): json.dumps(self._sizes)})
        self._writer.close()
        with self._path.open("rb+") as handle:
            footer_start = handle.seek(-_TRAILER, io.SEEK_END)
            footer_start -= int.from_bytes(handle.read(4), "little")
            handle.seek(footer_start)
            footer = handle.read()
            metadata = pq.read_metadata(io.BytesIO(footer))
            crcs = []
            stored: dict[str, int] = {}
            for name, offset, count in _chunks(metadata):
                handle.seek(offset)
                crcs.append(zlib.crc32(handle.read(count)))
                stored[name] = stored.get(name, 0) + count
            footer = np.array(crcs, _CRC).tobytes() + footer
            handle.seek(footer_start)
            handle.write(footer)
        indexes: dict[str, tuple[int, int]] = {}
        for name, size in self._sizes.items():
            index_id, colon, _ = name.partition(":")
            if colon:
                known = indexes.get(index_id, (0, 0))
                indexes[index_id] = (known[0] + stored.get(name, 0), known[1] + size)
        return PartRecord(
            file=file,
            length=footer_start + len(footer),
            footer_length=len(footer),
            footer_sha256=hashlib.sha256(footer).hexdigest(),
            rows=self._rows,
            removed=self._removed,
            sequence=sequence,
            indexes=indexes,
        )


class PartFile:
    """Reads columns of one part, as the manifest describes it.

    Parameters
    ----------
    file_system, folder
        Where the part lies.
    record
        What the manifest says of it.
    cache
        Keeps footers, so that a second column costs one read.
    """

    def __init__(self, file_system: FileSystem, folder: str, record: PartRecord, cache: ByteCache) -> None:
        self.record = record
        self.path = f"{folder}/{record.file}"
        self._file_system = file_system
        self._cache = cache

    def footer(self) -> tuple[Any, dict[int, int], int]:
        """Give the Parquet metadata, the CRC by a chunk's offset, and the bytes that had to be read to know."""
        known = self._cache.get(("footer", self.path, self.record.footer_sha256))
        if known is not None:
            return (*known, 0)
        size = self.record.footer_length
        footer = self._read([(self.record.length - size, size)])[0]
        if hashlib.sha256(footer).hexdigest() != self.record.footer_sha256:
            raise self._damaged("its footer is not the one that was written")
        try:
            start = size - _TRAILER - int.from_bytes(footer[-_TRAILER:-4], "little")
            metadata = pq.read_metadata(io.BytesIO(footer[max(start, 0) :]))
            crcs = np.frombuffer(footer[:start], _CRC).tolist()
            offsets = [offset for _, offset, _ in _chunks(metadata)]
            crc_of = dict(zip(offsets, crcs, strict=True))
        except (ValueError, OSError, pa.ArrowException) as error:
            raise self._damaged(f"its footer makes no sense ({error})") from error
        if metadata.num_rows != self.record.rows:
            raise self._damaged(f"it has {metadata.num_rows} rows instead of {self.record.rows}")
        self._cache.put(("footer", self.path, self.record.footer_sha256), (metadata, crc_of), 4 * size)
        return metadata, crc_of, size

    def column_names(self) -> frozenset[str]:
        """Give the names of the columns that the part has."""
        metadata, _, _ = self.footer()
        return frozenset(metadata.schema.to_arrow_schema().names)

    def arrow_bytes(self, columns: Iterable[str]) -> int:
        """Say how many bytes columns take in memory, of those the part has."""
        metadata, _, _ = self.footer()
        sizes = json.loads((metadata.metadata or {}).get(_SIZES, b"{}"))
        return sum(sizes.get(column, 0) for column in columns)

    def row_group_rows(self) -> list[int]:
        """Give the number of rows of each row group."""
        metadata, _, _ = self.footer()
        return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]

    def chunks(self, columns: Sequence[str], groups: Sequence[int] | None = None) -> list[tuple[int, int]]:
        """Give offset and length of the stored chunks of columns."""
        metadata, _, _ = self.footer()
        wanted = set(columns)
        return [(offset, count) for name, offset, count in _chunks(metadata, groups) if name in wanted]

    def read(self, columns: Sequence[str], groups: Sequence[int] | None = None) -> tuple[pa.Table, int]:
        """Read and check whole columns, or some row groups of them; says how many bytes were read."""
        metadata, crc_of, footer_read = self.footer()
        chunks = sorted(self.chunks(columns, groups))
        if any(offset < 0 or count < 0 or offset + count > self.record.length for offset, count in chunks):
            raise self._damaged("a column lies outside of the file")
        spans = _coalesced(chunks, self._file_system.gap)
        blocks = dict(zip((start for start, _ in spans), self._read(spans), strict=True))
        source = _Ranges(blocks, self.record.length)
        for offset, count in chunks:
            if zlib.crc32(source.view(offset, count)) != crc_of[offset]:
                raise self._damaged("a column is not what was written")
        wanted = list(range(metadata.num_row_groups)) if groups is None else list(groups)
        try:
            reader = pq.ParquetFile(pa.PythonFile(source, mode="r"), metadata=metadata, page_checksum_verification=True)
            table = reader.read_row_groups(wanted, columns=list(columns), use_threads=True)
        except (ValueError, OSError, pa.ArrowException) as error:
            raise self._damaged(f"a column cannot be decoded ({error})") from error
        return table, footer_read + sum(map(len, blocks.values()))

    def _read(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read ranges, and make sure that all of each came back."""
        try:
            found = self._file_system.read_ranges(self.path, ranges, self.record.length)
        except FileNotFoundError as error:
            msg = f"the part {self.path} is gone: the metadata was replaced or dropped meanwhile, or deleted by hand"
            raise MetadataStoreError(msg) from error
        except OSError as error:
            msg = f"the part {self.path} cannot be read: {error}"
            raise MetadataStoreError(msg) from error
        if any(len(block) != count for block, (_, count) in zip(found, ranges, strict=True)):
            raise self._damaged("it is shorter than it was")
        return found

    def _damaged(self, what: str) -> MetadataCorruptError:
        return MetadataCorruptError(
            f"the part {self.path} is damaged: {what}; drop the indexes and create them again (queries read everything "
            "until then)"
        )


class _Ranges:
    """A file of which only some ranges are there."""

    closed = False

    def __init__(self, blocks: Mapping[int, bytes], length: int) -> None:
        self._starts = sorted(blocks)
        self._blocks = blocks
        self._length = length
        self._place = 0

    def view(self, offset: int, count: int) -> memoryview:
        found = bisect_right(self._starts, offset) - 1
        start = self._starts[found] if found >= 0 else 0
        block = self._blocks[start] if found >= 0 else b""
        if count and offset + count > start + len(block):
            msg = f"bytes {offset} to {offset + count} were not asked for"
            raise OSError(msg)
        return memoryview(block)[offset - start : offset - start + count]

    def read(self, count: int = -1) -> memoryview:
        count = min(count, self._length - self._place) if count >= 0 else self._length - self._place
        found = self.view(self._place, count)
        self._place += count
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._length}[whence]
        return self._place

    def tell(self) -> int:
        return self._place

    def close(self) -> None:
        """Nothing is open."""


def _chunks(metadata: Any, groups: Sequence[int] | None = None) -> list[tuple[str, int, int]]:
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


def _coalesced(chunks: Sequence[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Join neighbouring ranges into one request each."""
    joined: list[tuple[int, int]] = []
    for offset, count in chunks:
        if joined and offset <= sum(joined[-1]) + gap:
            start, length = joined[-1]
            joined[-1] = (start, max(length, offset + count - start))
        else:
            joined.append((offset, count))
    return joined
