"""Reading a section: one Parquet file inside a part, plain or encrypted; every byte that is read is checked."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.errors import KeyUnavailableError, MetadataCorruptError, MetadataStoreError
from skipstone.stores.parquet.part_footer import Footer, parse_footer
from skipstone.stores.parquet.ranges import Ranges, coalesced
from skipstone.stores.parts.buckets import joined
from skipstone.stores.parts.columns import MAX_ROW_GROUP_ROWS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skipstone.stores.cache import ByteCache
    from skipstone.stores.manifest import PartRecord, Section
    from skipstone.stores.parquet.encryption import Keys
    from skipstone.stores.parquet.filesystem import FileSystem
    from skipstone.stores.parts.part import Meter

__all__ = ["SectionFile"]


@dataclass(frozen=True, eq=False)
class SectionFile:
    """Reads columns of one section.

    Parameters
    ----------
    file_system, path, record
        The part: where it lies, and what the manifest says of it.
    section
        Where in the part the section lies.
    key
        The name of its key; empty when it is plain.
    keys
        What decrypts, for a user who has any keys.
    cache
        Keeps footers, so that a second column costs one read.
    """

    file_system: FileSystem
    path: str
    record: PartRecord
    section: Section
    key: str
    keys: Keys | None
    cache: ByteCache

    def footer(self, meter: Meter | None = None) -> Footer:
        """Return the checked footer; the meter learns what had to be read.

        Raises
        ------
        KeyUnavailableError
            When the section is encrypted with a key that cannot be had.
        MetadataCorruptError
            When it is not what was written.
        """
        known: Footer | None = self.cache.get(("footer", self.path, self.section))
        if known is not None:
            return known
        if self.key and self.keys is None:
            msg = f"no key {self.key!r}: spark.skipstone.kms.class names no key provider"
            raise KeyUnavailableError(msg)
        size = self.section.footer_length
        data = self._read([(self.section.length - size, size)], meter)[0]
        if hashlib.sha256(data).hexdigest() != self.section.footer_sha256:
            raise self._damaged("its footer is not the one that was written")
        footer = self._parsed(data)
        if footer.parquet.num_rows != self.record.rows:
            raise self._damaged(f"it has {footer.parquet.num_rows} rows instead of {self.record.rows}")
        self.cache.put(("footer", self.path, self.section), footer, 4 * size)
        return footer

    def _parsed(self, data: bytes) -> Footer:
        """Take a footer apart that is the one that was written; an encrypted one opens with the right key only."""
        decryption = self.keys.decryption(self.key) if self.key and self.keys is not None else None
        try:
            return parse_footer(data, decryption)
        except KeyUnavailableError:
            raise
        except (ValueError, OSError, AttributeError, pa.ArrowException) as error:
            if self.key:
                msg = f"the key {self.key!r} does not open the part {self.path} ({type(error).__name__})"
                raise KeyUnavailableError(msg) from error
            raise self._damaged(f"its footer makes no sense ({error})") from error

    def read(self, columns: Sequence[str], groups: Sequence[int] | None = None, meter: Meter | None = None) -> pa.Table:
        """Read and check whole columns or buckets of them, or some row groups of those."""
        footer = self.footer(meter)
        if not footer.columns.issuperset(columns):
            raise self._damaged(f"it lacks the column {min(set(columns) - footer.columns)!r}")
        stored = dict.fromkeys(name for column in columns for name in footer.stored(column))
        table = self._read_columns(footer, list(stored), groups, meter)
        if list(stored) == list(columns):
            return table
        return pa.table({name: _assembled(table, name, footer) for name in columns})

    def _read_columns(
        self, footer: Footer, columns: Sequence[str], groups: Sequence[int] | None, meter: Meter | None
    ) -> pa.Table:
        """Read and check columns of the Parquet file."""
        chunks = footer.chunks_of(set(columns), None if groups is None else set(groups))
        if any(chunk.offset + chunk.length > self.section.length for chunk in chunks):
            raise self._damaged("a column lies outside of the file")
        spans = coalesced([(chunk.offset, chunk.length) for chunk in chunks], self.file_system.gap)
        blocks = dict(zip((start for start, _ in spans), self._read(spans, meter), strict=True))
        source = Ranges(blocks, self.section.length)
        for chunk in chunks:
            if zlib.crc32(source.view(chunk.offset, chunk.length)) != chunk.crc:
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
        except KeyUnavailableError:
            raise
        except (ValueError, OSError, pa.ArrowException) as error:
            raise self._damaged(f"a column cannot be decoded ({error})") from error

    def _read(self, ranges: Sequence[tuple[int, int]], meter: Meter | None) -> list[bytes]:
        """Read ranges of the section, and make sure that all of each came back."""
        wanted = [(self.section.offset + offset, count) for offset, count in ranges]
        try:
            if self.record.length <= self.file_system.gap:  # no two ranges of it are worth two requests
                whole = self.cache.get_or_load(("part", self.path, self.record.main), lambda: self._whole(meter))
                found = [whole[offset : offset + count] for offset, count in wanted]
            else:
                found = self.file_system.read_ranges(self.path, wanted, self.record.length)
                _add(meter, sum(map(len, found)))
        except FileNotFoundError as error:
            msg = (
                f"the part {self.path} is gone: the metadata was replaced or dropped meanwhile, or deleted by hand; "
                "queries read everything until `refresh()` makes it again"
            )
            raise MetadataCorruptError(msg) from error
        except OSError as error:
            msg = f"the part {self.path} cannot be read: {error}"
            raise MetadataStoreError(msg) from error
        if any(len(block) != count for block, (_, count) in zip(found, ranges, strict=True)):
            raise self._damaged("it is shorter than it was")
        return found

    def _whole(self, meter: Meter | None) -> tuple[bytes, int]:
        """Read all of the part."""
        whole = self.file_system.read(self.path, self.record.length)
        _add(meter, len(whole))
        return whole, len(whole)

    def _damaged(self, what: str) -> MetadataCorruptError:
        return MetadataCorruptError(
            f"the part {self.path} is damaged: {what}; drop the indexes and create them again (queries read everything "
            "until then)"
        )


def _assembled(table: pa.Table, column: str, footer: Footer) -> pa.ChunkedArray:
    """Put a column together from its buckets, row group by row group."""
    cut = footer.buckets.get(column)
    if cut is None:
        return table.column(column)
    batches = table.select(list(cut.columns(column))).to_batches()
    kind = table.schema.field(cut.columns(column)[0]).type
    return pa.chunked_array([joined(cut.kind, batch.columns) for batch in batches], kind)


def _add(meter: Meter | None, count: int) -> None:
    if meter is not None:
        meter.bytes += count
