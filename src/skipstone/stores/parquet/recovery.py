"""After damage: which indexes a dataset had, by whatever can still be read, and what nobody knows any more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from skipstone.errors import MetadataCorruptError
from skipstone.stores.metadata_store import Recovery
from skipstone.stores.recovery import names_in, said_of_loss

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skipstone.stores.manifest import Manifest
    from skipstone.stores.metadata_store import IndexRecord
    from skipstone.stores.parquet.definitions import Definitions
    from skipstone.stores.parquet.filesystem import FileEntry
    from skipstone.stores.parquet.version_folder import VersionFolder

    Folder: TypeAlias = VersionFolder[Manifest] | VersionFolder[Definitions]

__all__ = ["recover"]

_MOST_READ = 10
"""Damaged versions of which the remains are looked at: someone may have put thousands there."""


@dataclass
class _Remains:
    """What was met before a version that can be read: numbers of versions, and names that stand in their files."""

    versions: list[int] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)


def recover(folders: Sequence[tuple[Folder, Mapping[int, FileEntry]]]) -> Recovery:
    """Find the newest version of which a file can be read, and say what came after it.

    Parameters
    ----------
    folders
        Those that say which indexes a version has, the most trusted first, with their listings.
    """
    remains = _Remains()
    for version in sorted({version for _, entries in folders for version in entries}, reverse=True):
        for folder, entries in folders:
            if version in entries:
                indexes = _sound(folder, version, entries[version], remains)
                if indexes is not None:
                    lost = said_of_loss(remains.versions, version, indexes, list(remains.names))
                    return Recovery(indexes, f"the {folder.what} of version {version}", lost)
        remains.versions.append(version)
    return Recovery(lost=said_of_loss(remains.versions, 0, (), list(remains.names)))


def _sound(folder: Folder, version: int, entry: FileEntry, remains: _Remains) -> tuple[IndexRecord, ...] | None:
    """Return the indexes that a file lists; of a damaged one, remember the names that stand in it."""
    try:
        found = folder.read(version, entry)
    except MetadataCorruptError:
        if len(remains.versions) < _MOST_READ:
            remains.names.update(dict.fromkeys(_remaining_names(folder, entry)))
        return None
    return None if found is None else found.indexes


def _remaining_names(folder: Folder, entry: FileEntry) -> list[str]:
    """Return the names of indexes that can be read in a damaged file."""
    try:
        return names_in(folder.data(entry) or b"")
    except MetadataCorruptError:
        return []
