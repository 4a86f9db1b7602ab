"""Reading parts: a column at a time, and every byte that is read is checked against what was written."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.errors import MetadataCorruptError, MetadataStoreError
from skipstone.stores.part_footer import MAX_ROW_GROUP_ROWS, Footer, chunks_of, parse_footer
from skipstone.stores.ranges import Ranges, coalesced

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skipstone.stores.cache import ByteCache
    from skipstone.stores.filesystem import FileSystem
    from skipstone.stores.manifest import PartRecord

__all__ = ["Meter", "PartFile"]


@dataclass
class Meter:
    """Adds up the bytes that one call reads."""

    bytes: int = 0


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

    def footer(self, meter: Meter | None = None) -> Footer:
        """Give the checked footer; the meter learns what had to be read."""
        key = ("footer", self.path, self.record.footer_sha256)
        known: Footer | None = self._cache.get(key)
        if known is not None:
            return known
        size = self.record.footer_length
        data = self._read([(self.record.length - size, size)])[0]
        if meter is not None:
            meter.bytes += size
        if hashlib.sha256(data).hexdigest() != self.record.footer_sha256:
            raise self._damaged("its footer is not the one that was written")
        try:
            footer = parse_footer(data)
        except (ValueError, OSError, AttributeError, pa.ArrowException) as error:
            raise self._damaged(f"its footer makes no sense ({error})") from error
        if footer.parquet.num_rows != self.record.rows:
            raise self._damaged(f"it has {footer.parquet.num_rows} rows instead of {self.record.rows}")
        self._cache.put(key, footer, 4 * size)
        return footer

    def column_names(self) -> frozenset[str]:
        """Give the names of the columns that the part has."""
        return self.footer().columns

    def arrow_bytes(self, columns: Iterable[str]) -> int:
        """Say how many bytes columns take in memory, of those the part has."""
        sizes = self.footer().arrow_bytes
        return sum(sizes.get(column, 0) for column in columns)

    def row_group_rows(self) -> list[int]:
        """Give the number of rows of each row group."""
        metadata = self.footer().parquet
        return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]

    def stored_bytes(self, columns: Sequence[str]) -> int:
        """Say how many bytes columns take in the file."""
        return sum(count for name, _, count in chunks_of(self.footer().parquet) if name in columns)

    def read(self, columns: Sequence[str], groups: Sequence[int] | None = None, meter: Meter | None = None) -> pa.Table:
        """Read and check whole columns, or some row groups of them."""
        footer = self.footer(meter)
        wanted = set(columns)
        chunks = sorted((offset, n) for name, offset, n in chunks_of(footer.parquet, groups) if name in wanted)
        if any(offset < 0 or count < 0 or offset + count > self.record.length for offset, count in chunks):
            raise self._damaged("a column lies outside of the file")
        spans = coalesced(chunks, self._file_system.gap)
        blocks = dict(zip((start for start, _ in spans), self._read(spans), strict=True))
        if meter is not None:
            meter.bytes += sum(map(len, blocks.values()))
        source = Ranges(blocks, self.record.length)
        for offset, count in chunks:
            if zlib.crc32(source.view(offset, count)) != footer.crc_of[offset]:
                raise self._damaged("a column is not what was written")
        try:
            reader = pq.ParquetFile(
                pa.PythonFile(source, mode="r"),
                metadata=footer.parquet,
                page_checksum_verification=True,
                pre_buffer=False,  # it would read the gaps between ranges too
            )
            return reader.read_row_groups(
                list(range(footer.parquet.num_row_groups)) if groups is None else list(groups),
                columns=list(columns),
                use_threads=self.record.rows > MAX_ROW_GROUP_ROWS,
            )
        except (ValueError, OSError, pa.ArrowException) as error:
            raise self._damaged(f"a column cannot be decoded ({error})") from error

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
