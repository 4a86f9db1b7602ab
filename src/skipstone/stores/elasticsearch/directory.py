"""The directory of a part: which columns it has, in which documents, with which checksums, and what is searchable.

It is to a part in the server what the footer is to a part in a file: the manifest has its length and SHA-256, so that
everything that is read can be checked.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from skipstone.stores.arrow_types import parse_type
from skipstone.stores.elasticsearch.translation import Slot

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PIECE_BYTES", "Chunk", "Directory", "StoredColumn", "chunk_ids", "directory_id", "object_id"]

PIECE_BYTES = 3 << 20
"""Bytes of a chunk that one document holds at most."""
_MOST = 1 << 40


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column's values of one row group: an Arrow IPC stream, cut into documents of ``PIECE_BYTES``."""

    length: int
    sha256: str


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """Where a column is, and what it takes in memory."""

    number: int
    arrow_bytes: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class Directory:
    """What a part consists of; ``search`` maps an index id and the name of a searchable field to its slot."""

    rows: int
    groups: tuple[int, ...]
    columns: Mapping[str, StoredColumn]
    search: Mapping[tuple[str, str], Slot]

    def encode(self) -> bytes:
        """Write it as JSON."""
        content = {
            "rows": self.rows,
            "groups": self.groups,
            "columns": {name: asdict(column) for name, column in self.columns.items()},
            "search": [[index, name, slot.name, str(slot.type)] for (index, name), slot in self.search.items()],
        }
        return json.dumps(content, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> Directory:
        """Read it back.

        Raises
        ------
        ValueError, TypeError, KeyError, AttributeError
            When it makes no sense.
        """
        content = json.loads(data)
        groups = tuple(_number(rows) for rows in content["groups"])
        columns = {name: _column(column, len(groups)) for name, column in content["columns"].items()}
        search = {(i, name): Slot(_slot_name(slot), parse_type(kind)) for i, name, slot, kind in content["search"]}
        if sum(groups) != content["rows"]:
            msg = "its groups do not have its rows"
            raise ValueError(msg)
        return cls(_number(content["rows"]), groups, columns, search)


def directory_id(part: str) -> str:
    """Name the document with a part's directory."""
    return f"{part}.directory"


def chunk_ids(part: str, column: StoredColumn, group: int) -> list[str]:
    """Name the documents of a column's row group."""
    pieces = -(-column.chunks[group].length // PIECE_BYTES)
    return [f"{part}.{column.number}.{group}.{piece}" for piece in range(pieces)]


def object_id(part: str, row: int) -> str:
    """Name the searchable document of a row."""
    return f"{part}.{row}"


def _column(content: Any, groups: int) -> StoredColumn:
    chunks = tuple(Chunk(_number(chunk["length"]), str(chunk["sha256"])) for chunk in content["chunks"])
    if len(chunks) != groups:
        msg = "a column lacks a row group"
        raise ValueError(msg)
    return StoredColumn(_number(content["number"]), _number(content["arrow_bytes"]), chunks)


def _slot_name(value: Any) -> str:
    if not isinstance(value, str) or not value[:1].isalpha() or not value.isalnum():
        msg = f"{str(value)[:40]!r} is no slot"
        raise ValueError(msg)
    return value


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MOST:
        msg = f"{str(value)[:40]} where a number belongs"
        raise ValueError(msg)
    return value
