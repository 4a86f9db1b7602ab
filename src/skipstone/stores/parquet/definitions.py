"""Definitions: the index records of a version once more, in a file of their own beside its manifest.

Only a refresh that finds the manifest damaged or gone reads them, to know which indexes to collect anew.  No query
looks at them, so that whatever is in them, no object is skipped because of it.  Like a manifest they are data from
outside: everything is checked before use.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skipstone.stores import checked_json
from skipstone.stores.checked_json import FORMAT_VERSION, damaged
from skipstone.stores.manifest import read_indexes

if TYPE_CHECKING:
    from skipstone.stores.manifest import Manifest
    from skipstone.stores.metadata_store import IndexRecord

__all__ = ["Definitions"]


@dataclass(frozen=True, slots=True)
class Definitions:
    """Which indexes a version has; the records are the manifest's own, so that what is sealed there is sealed here."""

    version: int
    root: str
    writer_id: str
    created: str
    indexes: tuple[IndexRecord, ...]
    format_version: int = FORMAT_VERSION

    @classmethod
    def of(cls, manifest: Manifest) -> Definitions:
        """Take the definitions out of a manifest."""
        return cls(manifest.version, manifest.root, manifest.writer_id, manifest.created, manifest.indexes)

    def encode(self) -> bytes:
        """Write the definitions, their checksum last."""
        return checked_json.encode(dataclasses.asdict(self))

    @classmethod
    def decode(cls, data: bytes, path: str, version: int) -> Definitions:
        """Read definitions and check all of them.

        Raises
        ------
        MetadataTooNewError
            When a later format wrote them.
        MetadataCorruptError
            When anything in them is not as written, or makes no sense.
        """
        found = checked_json.decode(data, path, "definitions", cls._of_json)
        if found.version != version or found.format_version != FORMAT_VERSION:
            raise damaged(path, "definitions", f"they say that they are of version {str(found.version)[:40]}")
        return found

    @classmethod
    def _of_json(cls, content: Any) -> Definitions:
        return cls(
            version=content["version"],
            root=str(content["root"]),
            writer_id=str(content["writer_id"]),
            created=str(content["created"]),
            indexes=read_indexes(content["indexes"]),
            format_version=content["format_version"],
        )
