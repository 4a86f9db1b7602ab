"""Writing a part to the server: chunks of its columns, searchable documents of its rows, then its directory."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skipstone.indexing.row_counts import known_counts
from skipstone.stores.elasticsearch.directory import (
    PIECE_BYTES,
    Chunk,
    Directory,
    StoredColumn,
    chunk_ids,
    directory_id,
    object_id,
)
from skipstone.stores.elasticsearch.searchable import search_fields
from skipstone.stores.elasticsearch.translation import Slot
from skipstone.stores.manifest import PartRecord
from skipstone.stores.metadata_store import field_column
from skipstone.stores.parts.columns import rows_per_group, sizes_by_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skipstone.stores.elasticsearch.documents import Bulk
    from skipstone.stores.elasticsearch.indices import Indices
    from skipstone.stores.elasticsearch.searchable import SearchField
    from skipstone.stores.metadata_store import IndexRecord

__all__ = ["NewPart"]

_MOST_SLOTS = {"l": 1_000, "k": 1_000, "n": 60}
"""A part with more fields than this leaves the rest to Arrow: mappings are bounded."""
_MOST_NESTED = 10_000
"""Intervals and boxes in one document: servers refuse more."""
_MOST_CHARACTERS = 8 << 20
"""Of the values in one document: servers refuse requests of 100 MB, and a character may take 12 bytes in JSON."""


@dataclass(frozen=True, slots=True)
class NewPart:
    """A part that is about to be written.

    Parameters
    ----------
    dataset, file
        The dataset's id, and the part's name.
    sequence
        The part's place among the dataset's parts.
    created
        When, in milliseconds since 1970: by it the leavings of a writer that died are told from work under way.
    """

    dataset: str
    file: str
    sequence: int
    created: int

    def write(self, bulk: Bulk, indices: Indices, table: pa.Table, records: Sequence[IndexRecord]) -> PartRecord:
        """Write rows; the directory comes last, when everything that it names is there."""
        table = table.combine_chunks()
        groups = _groups(table)
        columns: dict[str, StoredColumn] = {}
        stored = 0
        for number, name in enumerate(table.column_names):
            column = StoredColumn(number, table.column(name).nbytes, ())
            start = 0
            for group, rows in enumerate(groups):
                data = _stream(table.select([name]).slice(start, rows))
                start += rows
                chunk = Chunk(len(data), hashlib.sha256(data).hexdigest())
                column = StoredColumn(number, column.arrow_bytes, (*column.chunks, chunk))
                for piece, identifier in enumerate(chunk_ids(self.file, column, group)):
                    stored += self._put(
                        bulk, indices, identifier, data[piece * PIECE_BYTES : (piece + 1) * PIECE_BYTES]
                    )
            columns[name] = column
        search, fields = self._searchable(table, records)
        stored += self._objects(bulk, indices, table.num_rows, fields) if fields else 0
        directory = Directory(table.num_rows, groups, columns, search).encode()
        self._put(bulk, indices, directory_id(self.file), directory)
        taken = [(n, sum(chunk.length for chunk in c.chunks), c.arrow_bytes) for n, c in columns.items()]
        return PartRecord(
            file=self.file,
            length=stored + len(directory),
            footer_length=len(directory),
            footer_sha256=hashlib.sha256(directory).hexdigest(),
            rows=table.num_rows,
            removed=sum(column.true_count for column in table.column("removed").chunks),
            sequence=self.sequence,
            indexes=sizes_by_index(taken),
        )

    def _put(self, bulk: Bulk, indices: Indices, identifier: str, data: bytes) -> int:
        text = base64.b64encode(data).decode("ascii")
        document = {"dataset": self.dataset, "part": self.file, "created": self.created, "data": text}
        return bulk.put(indices.chunks, identifier, document)

    def _searchable(
        self, table: pa.Table, records: Sequence[IndexRecord]
    ) -> tuple[dict[tuple[str, str], Slot], dict[str, SearchField]]:
        """Assign slots to the searchable fields; return both."""
        search: dict[tuple[str, str], Slot] = {}
        fields: dict[str, SearchField] = {}
        used = dict.fromkeys(_MOST_SLOTS, 0)
        nested = characters = 0
        row_count = known_counts(_whole(table, "row_count"))
        for record in records:
            names = {name: field_column(record.id, name) for name in record.fields}
            if not names or not all(column in table.column_names for column in names.values()):
                continue
            stored = {name: _whole(table, column) for name, column in names.items()}
            for name, field in search_fields(record, stored, row_count).items():
                boxes, size = _largest(field)
                if nested + boxes > _MOST_NESTED or characters + size > _MOST_CHARACTERS:
                    continue
                if used[field.kind] < _MOST_SLOTS[field.kind]:
                    nested, characters = nested + boxes, characters + size
                    slot = f"{field.kind}{used[field.kind]}"
                    used[field.kind] += 1
                    search[record.id, name] = Slot(slot, field.type)
                    fields[slot] = field
        return search, fields

    def _objects(self, bulk: Bulk, indices: Indices, rows: int, fields: dict[str, SearchField]) -> int:
        """Write a searchable document for each row; return how many bytes that takes."""
        base = {"dataset": self.dataset, "part": self.file, "created": self.created, "sequence": self.sequence}
        taken = 0
        for row in range(rows):
            document: dict[str, Any] = {**base, "row": row}
            known = []
            for slot, field in fields.items():
                value = field.rows[row]
                if value is None:
                    continue
                if field.listed:
                    known.append(slot)
                document[slot] = value
            taken += bulk.put(indices.objects, object_id(self.file, row), {**document, "known": known})
        return taken


def _largest(field: SearchField) -> tuple[int, int]:
    """Return how many nested documents and, about, how many characters a field has in its largest row."""
    if not field.listed:
        return 0, max((len(v) if isinstance(v, str) else 20 for v in field.rows if v is not None), default=0)
    lists = [row for row in field.rows if row]
    if field.kind == "n":
        boxes = max(map(len, lists), default=0)
        return boxes, 200 * boxes
    if field.kind == "l":
        return 0, 20 * max(map(len, lists), default=0)
    return 0, max((sum(map(len, row)) + 4 * len(row) for row in lists), default=0)


def _groups(table: pa.Table) -> tuple[int, ...]:
    """Cut rows into groups that are bounded in rows and bytes."""
    step = rows_per_group(table.num_rows, table.nbytes)
    return tuple(min(step, table.num_rows - start) for start in range(0, table.num_rows, step))


def _stream(table: pa.Table) -> bytes:
    """Write a column as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _whole(table: pa.Table, name: str) -> pa.Array:
    """Return a column as one array."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
