"""Writing a part: row groups of bounded size, then the table of their chunks between them and the footer.

The fields of the indexes with a key go to a file of that key, encrypted as a whole; when the part is finished these
files are laid between its row groups and its footer, where Parquet readers do not look.
"""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skipstone.errors import KeyUnavailableError
from skipstone.indexing.records import split_field_column
from skipstone.querying.lookup import SET
from skipstone.stores.manifest import PartRecord, Section
from skipstone.stores.parquet.encodings import DICTIONARY_BYTES, with_dictionary
from skipstone.stores.parquet.part_footer import BUCKETS, CHUNK, SIZES, TRAILER, leaf_columns
from skipstone.stores.parts.buckets import blocks_in, split
from skipstone.stores.parts.columns import column_of, rows_per_group, sizes_by_index

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skipstone.stores.parquet.encryption import Keys
    from skipstone.stores.parts.buckets import Buckets

__all__ = ["PartWriter"]

_BLOCK = 1 << 20
_NO_DICTIONARY = ("path", "digest", "length", "modified")


class PartWriter:
    """Writes one part to a local file, in as many steps as there are row groups.

    Parameters
    ----------
    path
        The local file to make.
    schema
        The columns: ``IDENTITY`` first, then those of the indexes.
    buckets
        How to cut columns, of those that are to be cut.
    keys
        What encrypts; needed when anything is to be.
    protected
        The key of each index that has one, by index id.
    footer_key
        The key of everything else; empty for plain.

    Raises
    ------
    KeyUnavailableError
        When a key cannot be had.
    """

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        *,
        buckets: Mapping[str, Buckets] | None = None,
        keys: Keys | None = None,
        protected: Mapping[str, str] | None = None,
        footer_key: str = "",
    ) -> None:
        self._footer_key = footer_key
        self._cut = bool(buckets)
        self._rows = 0
        self._removed = 0
        columns: dict[str, list[pa.Field]] = {"": []}
        for field in schema:
            split = split_field_column(field.name)
            key = protected.get(split.index_id, "") if protected and split is not None and split.name else ""
            columns.setdefault(key, []).append(field)
        self._files: dict[str, _SectionWriter] = {}
        try:
            for number, (key, fields) in enumerate(columns.items()):
                place = path.with_name(f"{path.name}.{number}") if key else path
                cut = {f.name: buckets[f.name] for f in fields if f.name in buckets} if buckets else {}
                self._files[key] = _SectionWriter(place, pa.schema(fields), cut, keys, key or footer_key)
        except BaseException:
            self.close()
            raise

    def write(self, table: pa.Table) -> None:
        """Add rows; ends a row group at the latest when they are written."""
        if not table.num_rows:
            return
        self._rows += table.num_rows
        self._removed += table.column("removed").combine_chunks().true_count
        group = rows_per_group(table.num_rows, table.nbytes, cut=self._cut)
        for start in range(0, table.num_rows, group):
            rows = table.slice(start, group)
            for file in self._files.values():
                file.write(rows.select(file.names))

    def close(self) -> None:
        """Abandon the file, which is incomplete."""
        for file in self._files.values():
            file.close()

    def finish(self, sequence: int, file: str) -> PartRecord:
        """Complete the file and return its record."""
        main = self._files.pop("")
        ends = {key: section.finish() for key, section in self._files.items()}
        sections: dict[str, Section] = {}
        with main.ending() as handle:
            for key, section in self._files.items():
                offset = handle.tell()
                with section.path.open("rb") as encrypted:
                    while block := encrypted.read(_BLOCK):
                        handle.write(block)
                section.path.unlink()
                sections[key] = Section(offset, handle.tell() - offset, *ends[key], tuple(section.names))
            footer_length, footer_sha256 = main.end(handle)
            length = handle.tell()
        taken = [
            (name, part.stored.get(name, 0), size)
            for part in (main, *self._files.values())
            for name, size in part.sizes.items()
        ]
        return PartRecord(
            file=file,
            length=length,
            footer_length=footer_length,
            footer_sha256=footer_sha256,
            rows=self._rows,
            removed=self._removed,
            sequence=sequence,
            indexes=sizes_by_index(taken),
            key=self._footer_key,
            sections=sections,
        )


class _SectionWriter:
    """Writes one Parquet file with a table of its chunks before the footer, plain or encrypted with one key."""

    def __init__(
        self, path: Path, schema: pa.Schema, buckets: Mapping[str, Buckets], keys: Keys | None, key: str
    ) -> None:
        self.path = path
        self.names = schema.names
        self.sizes = dict.fromkeys(schema.names, 0)
        self.stored: dict[str, int] = {}
        self._samples: dict[str, int] = {}
        if key and keys is None:
            msg = f"no key {key!r}: spark.skipstone.kms.class names no key provider"
            raise KeyUnavailableError(msg)
        self._encryption = keys.encryption(key) if keys is not None and key else None
        self._decryption = keys.decryption(key) if keys is not None and key else None
        self._footer = b""
        self._buckets = buckets
        self._schema = _stored_schema(schema, buckets)
        self._writer: pq.ParquetWriter | None = None

    def _opened(self, first: pa.Table) -> pq.ParquetWriter:
        """Return the writer of the file; the first rows decide which columns get a dictionary."""
        if self._writer is None:
            slices = [n for column, cut in self._buckets.items() if cut.kind != SET for n in cut.columns(column)]
            self._writer = pq.ParquetWriter(
                self.path,
                self._schema,
                compression="zstd",
                use_dictionary=with_dictionary(first, {*_NO_DICTIONARY, *slices}),
                dictionary_pagesize_limit=DICTIONARY_BYTES,
                column_encoding=dict.fromkeys(slices, "DELTA_LENGTH_BYTE_ARRAY") or None,
                write_statistics=False,
                write_page_checksum=True,
                use_compliant_nested_type=False,  # the item's name is part of the type's text
                encryption_properties=self._encryption,
            )
        return self._writer

    def write(self, table: pa.Table) -> None:
        """Write one row group."""
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        for name in table.column_names:
            column = table.column(name)
            self.sizes[name] += column.nbytes
            cut = self._buckets.get(name)
            if cut is None:
                columns[name] = column
            else:
                pieces = split(_whole(column), cut, blocks_in(table, cut.by))
                columns |= dict(zip(cut.columns(name), pieces, strict=True))
                for sample in cut.samples(name):  # filters left whole may be most of them, or none
                    self._samples[sample] = self._samples.get(sample, 0) + columns[sample].nbytes
        rows = pa.table(columns, schema=self._schema)
        self._opened(rows).write_table(rows, row_group_size=table.num_rows)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()

    def finish(self) -> tuple[int, str]:
        """Complete the file; return the length and the SHA-256 of its end."""
        with self.ending() as handle:
            return self.end(handle)

    def ending(self) -> Any:
        """Open the complete Parquet file where its footer was: that is written again by ``end``."""
        said = {SIZES.decode(): json.dumps(self.sizes | self._samples)}
        if self._buckets:
            cuts = {name: [cut.kind, *cut.levels] for name, cut in self._buckets.items()}
            said[BUCKETS.decode()] = json.dumps(cuts)
        writer = self._opened(self._schema.empty_table())
        writer.add_key_value_metadata(said)
        writer.close()
        handle = self.path.open("rb+")
        start = handle.seek(-TRAILER, io.SEEK_END)
        start -= int.from_bytes(handle.read(4), "little")
        handle.seek(start)
        self._footer = handle.read()
        handle.seek(start)
        return handle

    def end(self, handle: Any) -> tuple[int, str]:
        """Write the table of chunks and the footer; return their length and SHA-256."""
        metadata = pq.read_metadata(io.BytesIO(self._footer), decryption_properties=self._decryption)
        place = handle.tell()
        chunks = []
        leaves = leaf_columns(metadata)
        for group in range(metadata.num_row_groups):
            for leaf, name in enumerate(leaves):
                offset, length = _extent(metadata.row_group(group).column(leaf))
                handle.seek(offset)
                chunks.append((offset, length, zlib.crc32(handle.read(length))))
                column = column_of(name)
                self.stored[column] = self.stored.get(column, 0) + length
        end = np.array(chunks, CHUNK).tobytes() + self._footer
        handle.seek(place)
        handle.write(end)
        return len(end), hashlib.sha256(end).hexdigest()


def _stored_schema(schema: pa.Schema, buckets: Mapping[str, Buckets]) -> pa.Schema:
    """Return the columns of the Parquet file: a column that is cut has one for each bucket."""
    fields: list[pa.Field] = []
    for field in schema:
        cut = buckets.get(field.name)
        fields += [field] if cut is None else [field.with_name(name) for name in cut.columns(field.name)]
    return pa.schema(fields)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """Make one array of a column's chunks."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def _extent(chunk: Any) -> tuple[int, int]:
    """Return the place and length of a chunk of a file that was written just now."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
        start = chunk.dictionary_page_offset
    return start, chunk.total_compressed_size
