"""Reading a part from the server: columns from chunk documents, every byte checked against what was written."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skipstone.errors import MetadataCorruptError
from skipstone.stores.arrow_types import parse_type
from skipstone.stores.elasticsearch.directory import PIECE_BYTES, Directory, chunk_ids, directory_id
from skipstone.stores.elasticsearch.documents import fetch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skipstone.stores.cache import ByteCache
    from skipstone.stores.elasticsearch.client import Client
    from skipstone.stores.elasticsearch.directory import StoredColumn
    from skipstone.stores.manifest import PartRecord
    from skipstone.stores.parts.buckets import Buckets
    from skipstone.stores.parts.part import Meter

__all__ = ["SearchPart", "load_directories"]


class SearchPart:
    """Reads columns of one part, as the manifest describes it.

    Parameters
    ----------
    client, index
        The server, and its index of chunks.
    record
        What the manifest says of the part.
    cache
        Keeps directories, so that a second column costs one request.
    """

    def __init__(self, client: Client, index: str, record: PartRecord, cache: ByteCache) -> None:
        self.record = record
        self.path = f"{client.url}/{index}/{record.file}"
        self._client = client
        self._index = index
        self._cache = cache

    @property
    def _key(self) -> tuple[str, str, str]:
        return ("directory", self.path, self.record.footer_sha256)

    @property
    def is_known(self) -> bool:
        """Whether the directory is in memory."""
        return self._cache.get(self._key) is not None

    def directory(self, meter: Meter | None = None) -> Directory:
        """Return the checked directory."""
        known: Directory | None = self._cache.get(self._key)
        return self.take_directory(self._fetched([directory_id(self.record.file)], meter)) if known is None else known

    def take_directory(self, documents: dict[str, Any]) -> Directory:
        """Check the directory among fetched documents, and keep it."""
        data = self._data(documents, [directory_id(self.record.file)])
        if hashlib.sha256(data).hexdigest() != self.record.footer_sha256:
            raise self._damaged("its directory is not the one that was written")
        try:
            found = Directory.decode(data)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise self._damaged(f"its directory makes no sense ({type(error).__name__})") from error
        if found.rows != self.record.rows:
            raise self._damaged(f"it has {found.rows} rows instead of {self.record.rows}")
        self._cache.put(self._key, found, 4 * len(data))
        return found

    def column_names(self) -> frozenset[str]:
        """Return the names of the columns that the part has."""
        return frozenset(self.directory().columns)

    def arrow_bytes(self, columns: Iterable[str]) -> int:
        """Return how many bytes columns take in memory, of those the part has."""
        found = self.directory().columns
        return sum(found[name].arrow_bytes for name in columns if name in found)

    def open(self, columns: Iterable[str], meter: Meter) -> None:  # noqa: ARG002  (as other parts have it)
        """Read the directory."""
        self.directory(meter)

    def buckets(self, column: str) -> Buckets | None:  # noqa: ARG002  (as other parts have it)
        """Return ``None``: all columns are whole here."""
        return None

    def row_group_rows(self) -> list[int]:
        """Return the number of rows of each row group."""
        return list(self.directory().groups)

    def stored_bytes(self, columns: Sequence[str]) -> int:
        """Return how many bytes columns take in the server, before it compresses them."""
        found = self.directory().columns
        return sum(chunk.length for name in columns if name in found for chunk in found[name].chunks)

    def read(self, columns: Sequence[str], groups: Sequence[int] | None = None, meter: Meter | None = None) -> pa.Table:
        """Read and check whole columns, or some row groups of them."""
        directory = self.directory(meter)
        chosen = list(range(len(directory.groups))) if groups is None else list(groups)
        wanted = [
            (identifier, min(PIECE_BYTES, column.chunks[group].length) * 4 // 3)
            for column in (directory.columns[name] for name in columns)
            for group in chosen
            for identifier in chunk_ids(self.record.file, column, group)
        ]
        documents = fetch(self._client, self._index, wanted, meter)
        arrays = {
            name: [self._chunk(documents, directory.columns[name], g, directory.groups[g]) for g in chosen]
            for name in columns
        }
        return pa.table({name: pa.chunked_array(chunks) for name, chunks in arrays.items()}) if chosen else pa.table({})

    def _chunk(self, documents: dict[str, Any], column: StoredColumn, group: int, rows: int) -> pa.Array:
        """Put a chunk together from its documents, check and decode it."""
        chunk = column.chunks[group]
        data = self._data(documents, chunk_ids(self.record.file, column, group))
        if len(data) != chunk.length or hashlib.sha256(data).hexdigest() != chunk.sha256:
            raise self._damaged("a column is not what was written")
        try:
            stream = pa.ipc.open_stream(data)
            for field in stream.schema:  # of other types not even casts are safe: pyarrow ends the process on some
                if parse_type(str(field.type)) != field.type:
                    raise ValueError(str(field.type)[:80])
            table = stream.read_all()
            table.validate(full=True)
        except (ValueError, OSError, pa.ArrowException) as error:
            raise self._damaged(f"a column cannot be decoded ({error})") from error
        if table.num_columns != 1 or table.num_rows != rows:
            raise self._damaged("a column has another number of rows")
        found = table.column(0)
        return found.chunk(0) if found.num_chunks == 1 else pa.concat_arrays(found.chunks)

    def _fetched(self, identifiers: Sequence[str], meter: Meter | None) -> dict[str, Any]:
        return fetch(self._client, self._index, [(identifier, 0) for identifier in identifiers], meter)

    def _data(self, documents: dict[str, Any], identifiers: Sequence[str]) -> bytes:
        """Return what documents hold together."""
        try:
            return b"".join(base64.b64decode(documents[i]["data"], validate=True) for i in identifiers)
        except KeyError as error:
            raise self._damaged("a document of it is not there: deleted by hand, or replaced meanwhile") from error
        except (TypeError, ValueError, binascii.Error) as error:
            raise self._damaged("a document of it is not what was written") from error

    def _damaged(self, what: str) -> MetadataCorruptError:
        return MetadataCorruptError(
            f"the part {self.path} is damaged: {what}; `refresh()` makes the metadata again (queries read everything "
            "until then)"
        )


def load_directories(parts: Sequence[SearchPart], meter: Meter | None = None) -> None:
    """Fetch the directories that are not in memory, all in one request."""
    missing = [part for part in parts if not part.is_known]
    if missing:
        documents = missing[0]._fetched([directory_id(part.record.file) for part in missing], meter)
        for part in missing:
            part.take_directory(documents)
