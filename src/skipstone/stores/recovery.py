"""After damage: which indexes a dataset had, by whatever can still be read, and what nobody knows any more."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skipstone.errors import MetadataCorruptError
from skipstone.stores.metadata_store import Recovery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skipstone.stores.metadata_store import IndexRecord
    from skipstone.stores.parquet.definitions_folder import DefinitionsFolder
    from skipstone.stores.parquet.filesystem import FileEntry
    from skipstone.stores.parquet.version_folder import VersionFolder
    from skipstone.stores.parquet.versions import ManifestFolder

__all__ = ["check_newest", "names_in", "recover", "said_of_loss"]

_NAME = re.compile(rb'"name":("(?:[^"\\\x00-\x1f]|\\["\\/bfnrtu]){1,300}"),"type_name":')
_MOST_READ = 10
"""Damaged versions of which the remains are looked at: someone may have put thousands there."""
_MOST_NAMES = 20


@dataclass
class _Remains:
    """What was met before a version that can be read: numbers of versions, and names that stand in their files."""

    versions: list[int] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)


def check_newest(manifests: ManifestFolder, definitions: DefinitionsFolder) -> None:
    """Raise when there are definitions of a version whose manifest is gone.

    A version's manifest is created before its definitions and deleted after them, so that definitions which were there
    before and are there after the manifests were listed have one, unless it was lost.

    Raises
    ------
    MetadataCorruptError
        With what to do.
    """
    before = definitions.versions()
    newest = max(manifests.versions(), default=0)
    if not any(version > newest for version in before):
        return
    lost = max((version for version in definitions.versions() if version in before), default=0)
    if lost > newest:
        msg = (
            f"the manifest of version {lost} is gone from {manifests.path}, but its definitions are still there: "
            "`refresh()` makes its indexes again (or `drop_indexes()` forgets them all)"
        )
        raise MetadataCorruptError(msg)


def recover(manifests: ManifestFolder, definitions: DefinitionsFolder) -> Recovery:
    """Find the newest version of which the manifest or the definitions can be read, and say what came after it."""
    kinds: Sequence[tuple[ManifestFolder | DefinitionsFolder, Mapping[int, FileEntry]]] = [
        (definitions, definitions.versions()),  # listed first: see `check_newest`
        (manifests, manifests.versions()),
    ]
    remains = _Remains()
    for version in sorted({v for _, entries in kinds for v in entries}, reverse=True):
        for folder, entries in reversed(kinds):
            if version in entries:
                indexes = _sound(folder, version, entries[version], remains)
                if indexes is not None:
                    kept_in = "manifest" if folder is manifests else "definitions"
                    lost = said_of_loss(remains.versions, version, indexes, list(remains.names))
                    return Recovery(indexes, f"the {kept_in} of version {version}", lost)
        remains.versions.append(version)
    return Recovery(lost=said_of_loss(remains.versions, 0, (), list(remains.names)))


def _sound(
    folder: ManifestFolder | DefinitionsFolder, version: int, entry: FileEntry, remains: _Remains
) -> tuple[IndexRecord, ...] | None:
    """Give the indexes that a file lists; of a damaged one, remember the names that stand in it."""
    try:
        found = folder.read(version, entry)
    except MetadataCorruptError:
        if len(remains.versions) < _MOST_READ:
            remains.names.update(dict.fromkeys(_remaining_names(folder, entry)))
        return None
    return None if found is None else found.indexes


def _remaining_names(folder: VersionFolder, entry: FileEntry) -> list[str]:
    """Give the names of indexes that can be read in a damaged file."""
    try:
        return names_in(folder.data(entry) or b"")
    except MetadataCorruptError:
        return []


def names_in(data: bytes) -> list[str]:
    """Give the names of indexes that stand in what is left of a manifest: a hint for people, nothing to act on.

    >>> names_in(b'{"indexes":[{"id":"a","name":"minmax(ts)","type_name":"minmax"},{"id":"b","name":"valu')
    ['minmax(ts)']
    """
    return list(dict.fromkeys(_spelled(data)))[:_MOST_NAMES]


def _spelled(data: bytes) -> Iterator[str]:
    for found in _NAME.finditer(data):
        try:
            name = json.loads(found[1])
        except ValueError:
            continue
        yield "".join(letter if letter.isprintable() else "?" for letter in name)


def said_of_loss(
    unread: Sequence[int], version: int, indexes: Sequence[IndexRecord], named: Sequence[str]
) -> tuple[str, ...]:
    """Say what is lost when versions after the one that could be read cannot.

    Parameters
    ----------
    unread
        The versions that cannot be read, the newest first.
    version, indexes
        The one that can, 0 for none, and the indexes that it has.
    named
        Names of indexes that can still be read in what is left of the others.
    """
    if not unread:
        return ()
    known = [record.name for record in indexes]
    which = f"version {unread[0]} was" if len(unread) == 1 else f"versions {unread[-1]} to {unread[0]} were"
    gone = [name for name in named if name not in known]
    missing = f"; what is left of it names {', '.join(gone)}: create again what you need of these" if gone else ""
    if not version:
        return (f"{which} damaged and cannot be read, and nothing else says which indexes there were{missing}",)
    said = (
        f"{which} damaged and cannot be read; what changed after version {version} is lost: an index made since then "
        f"is gone{missing}; one dropped since then is back, and drop_indexes(…) drops it again; here are, as of "
        f"version {version}: {', '.join(known) or 'none'}"
    )
    return (said,)
