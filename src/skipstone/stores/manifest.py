"""Manifests: one small JSON file per version that says which indexes a dataset has and which parts hold them.

A manifest is data from outside.  Everything in it is checked before use: its own checksum, names that could lead out
of the folder, sizes and counts.  Nothing is imported, unpickled or run because a manifest says so.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skipstone.indexing.records import ReaderRecord, split_field_column
from skipstone.stores import checked_json
from skipstone.stores.checked_json import FORMAT_VERSION, damaged
from skipstone.stores.metadata_store import ColumnRecord, IndexRecord, ReadProfile
from skipstone.stores.names import is_part_name, is_plain_name

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "FORMAT_VERSION",
    "MAX_MANIFEST_BYTES",
    "MAX_VERSION",
    "Manifest",
    "PartRecord",
    "RetiredPart",
    "Section",
    "read_indexes",
]

MAX_MANIFEST_BYTES = 64 << 20
MAX_VERSION = 1 << 50
_MAX_FILE_BYTES = 1 << 50
_MAX_ROWS = 1 << 31
_MAX_PARTS = 10_000
_LEAST_ROW_BYTES = 16
"""What a row takes in a part at least: digests are MD5s, which nothing compresses."""


@dataclass(frozen=True, slots=True)
class Section:
    """One Parquet file inside a part: where it lies, its end from the table of chunks on, and its columns.

    The fields of all indexes with the same key are a section of their own, encrypted as a whole.
    """

    offset: int
    length: int
    footer_length: int
    footer_sha256: str
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartRecord:
    """What the manifest keeps of one part.

    ``footer_length`` and ``footer_sha256`` cover the end of the file from the column checksums on; ``rows`` counts all
    rows, ``removed`` those that only say that an object is gone; ``indexes`` maps each index id in the part to its
    stored (compressed) and Arrow (in-memory) bytes.  ``key`` names the footer key, by which everything outside the
    sections is encrypted (empty: plain); ``sections`` has the encrypted ones by the names of their keys.
    """

    file: str
    length: int
    footer_length: int
    footer_sha256: str
    rows: int
    removed: int
    sequence: int
    indexes: Mapping[str, tuple[int, int]]
    key: str = ""
    sections: Mapping[str, Section] = field(default_factory=dict)

    @property
    def main(self) -> Section:
        """What is not in a section of its own: the identity columns and the indexes without a key."""
        return Section(0, self.length, self.footer_length, self.footer_sha256)


@dataclass(frozen=True, slots=True)
class RetiredPart:
    """A part that no index needs any more, kept for readers of older versions until ``since`` (ms) is an hour ago."""

    file: str
    since: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version of a dataset's metadata; parts are in ascending sequence."""

    version: int
    root: str
    writer: str
    writer_id: str
    created: str
    object_count: int
    indexes: tuple[IndexRecord, ...]
    parts: tuple[PartRecord, ...]
    retired: tuple[RetiredPart, ...] = ()
    format_version: int = field(default=FORMAT_VERSION)

    def encode(self) -> bytes:
        """Write the manifest, its checksum last."""
        return checked_json.encode(dataclasses.asdict(self))

    @classmethod
    def decode(cls, data: bytes, path: str, version: int) -> Manifest:
        """Read a manifest and check all of it.

        Raises
        ------
        MetadataTooNewError
            When a later format wrote it.
        MetadataCorruptError
            When anything in it is not as written, or makes no sense.
        """
        manifest = checked_json.decode(data, path, "manifest", _manifest)
        if manifest.version != version:
            raise damaged(path, "manifest", f"it says that it is version {manifest.version}")
        return manifest

    @property
    def index_ids(self) -> frozenset[str]:
        """The ids of the indexes that this version has."""
        return frozenset(record.id for record in self.indexes)


def _manifest(content: Mapping[str, Any]) -> Manifest:
    """Build the typed manifest; unknown keys of a later release of this format are left out."""
    if content["format_version"] != FORMAT_VERSION:
        _refuse(f"format {content['format_version']!r}")
    parts = tuple(map(_part, _list(content["parts"], _MAX_PARTS)))
    if [part.sequence for part in parts] != sorted({part.sequence for part in parts}):
        _refuse("parts out of sequence")
    if len({part.file for part in parts}) != len(parts):
        _refuse("a part is listed twice")
    rows = sum(part.rows for part in parts)
    return Manifest(
        version=_number(content["version"], MAX_VERSION),
        root=_text(content["root"]),
        writer=_text(content["writer"]),
        writer_id=_text(content["writer_id"]),
        created=_text(content["created"]),
        object_count=_number(content["object_count"], rows),
        indexes=read_indexes(content["indexes"]),
        parts=parts,
        retired=tuple(
            RetiredPart(_part_name(item["file"]), _number(item["since"], 1 << 62))
            for item in _list(content["retired"], 1_000_000)
        ),
    )


def _part(item: Mapping[str, Any]) -> PartRecord:
    length = _number(item["length"], _MAX_FILE_BYTES)
    rows = _number(item["rows"], min(_MAX_ROWS, length // _LEAST_ROW_BYTES))
    indexes = {}
    for index_id, sizes in item["indexes"].items():
        if not is_plain_name(index_id):
            _refuse(f"index id {index_id!r}")
        stored, in_memory = sizes
        indexes[index_id] = (_number(stored, length), _number(in_memory, _MAX_FILE_BYTES))
    sections = {key: _section(section, length) for key, section in item.get("sections", {}).items()}
    columns = [split_field_column(column) for section in sections.values() for column in section.columns]
    if len(set(columns)) != len(columns) or not {c.index_id for c in columns if c is not None} <= indexes.keys():
        _refuse("columns of sections that are there twice, or of an index that the part does not hold")
    return PartRecord(
        file=_part_name(item["file"]),
        length=length,
        footer_length=_number(item["footer_length"], min(length, 1 << 31)),
        footer_sha256=_digest(item["footer_sha256"]),
        rows=rows,
        removed=_number(item["removed"], rows),
        sequence=_number(item["sequence"], _MAX_FILE_BYTES),
        indexes=indexes,
        key=_text(item.get("key", "")),
        sections=sections,
    )


def _section(item: Mapping[str, Any], file_length: int) -> Section:
    offset = _number(item["offset"], file_length)
    length = _number(item["length"], file_length - offset)
    columns = tuple(map(_text, _list(item["columns"], 1_000_000)))
    if not all(is_plain_name(name) for column in columns for name in split_field_column(column) or ("",)):
        _refuse("the name of a column")
    return Section(
        offset=offset,
        length=length,
        footer_length=_number(item["footer_length"], min(length, 1 << 31)),
        footer_sha256=_digest(item["footer_sha256"]),
        columns=columns,
    )


def read_indexes(items: object) -> tuple[IndexRecord, ...]:
    """Read the records of indexes from what JSON gave; ``ValueError`` and its like for whatever makes no sense."""
    indexes = tuple(map(_index, _list(items, 1_000_000)))
    if len({record.id for record in indexes}) != len(indexes) or len({r.name for r in indexes}) != len(indexes):
        _refuse("an index is listed twice")
    return indexes


def _index(item: Mapping[str, Any]) -> IndexRecord:
    if not is_plain_name(item["id"]):
        _refuse(f"index id {item['id']!r}")
    fields = {name: _text(kind) for name, kind in item["fields"].items()}
    if not all(map(is_plain_name, fields)):
        _refuse("a field name")
    profile = item["profile"]
    key = item.get("key")
    return IndexRecord(
        id=item["id"],
        name=_text(item["name"]),
        type_name=_text(item["type_name"]),
        options=dict(item["options"].items()),
        columns=tuple(
            ColumnRecord(
                _text(column["name"]),
                _text(column["type"]),
                partition=_truth(column["partition"]),
                reads_as=_text(column["reads_as"]),
            )
            for column in _list(item["columns"], 100_000)
        ),
        profile=ReadProfile(
            _text(profile["format"]), _texts(profile["options"]), _texts(profile["settings"]), _text(profile["schema"])
        ),
        fields=fields,
        key=None if key is None else _text(key),
        created=_text(item.get("created", "")),
        refreshed=_text(item.get("refreshed", "")),
        functions=_texts(item.get("functions", {})),
        sealed=_text(item.get("sealed", "")),
        lookups=_texts(item.get("lookups", {})),
        reader=_reader(item.get("reader")),
    )


def _reader(item: Mapping[str, Any] | None) -> ReaderRecord | None:
    if item is None:
        return None
    return ReaderRecord(_text(item["format"]), _texts(item["options"]), _text(item["schema"]))


def _digest(value: object) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", _text(value)):
        _refuse(f"footer hash {str(value)[:80]!r}")
    return value  # type: ignore[return-value]


def _refuse(what: str) -> None:
    raise ValueError(what)


def _number(value: object, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        _refuse(f"{str(value)[:40]} where a number from 0 to {most} belongs")
    return value  # type: ignore[return-value]


def _text(value: object) -> str:
    if not isinstance(value, str):
        _refuse(f"{str(value)[:40]} where a text belongs")
    return value  # type: ignore[return-value]


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        _refuse(f"{str(value)[:40]} where true or false belongs")
    return value  # type: ignore[return-value]


def _texts(value: Mapping[str, Any]) -> dict[str, str]:
    return {key: _text(text) for key, text in value.items()}


def _list(value: object, most: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > most:
        _refuse("something else where a list belongs, or too long a list")
    return value  # type: ignore[return-value]


def _part_name(value: object) -> str:
    if not is_part_name(value):
        _refuse(f"{str(value)[:80]!r} is not the name of a part")
    return value  # type: ignore[return-value]
