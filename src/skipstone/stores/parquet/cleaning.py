"""Cleaning up: what the newest version does not need goes, once nobody can be using it any more."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from skipstone.stores.drafts import GRACE
from skipstone.stores.names import is_part_name
from skipstone.stores.parquet.layout import (
    DEFINITIONS,
    MANIFESTS,
    PARTS,
    is_temporary_name,
    manifest_name,
    manifest_version,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skipstone.stores.manifest import Manifest
    from skipstone.stores.parquet.filesystem import FileEntry, FileSystem

__all__ = ["clean"]

_log = logging.getLogger(__name__)
_CLOCK_DOUBT = 23 * 3_600_000
"""Milliseconds by which this computer's clock may be ahead of the file system's."""
_MANIFESTS_KEPT = 10


def clean(file_system: FileSystem, folder: str, manifest: Manifest) -> int:
    """Delete what the newest version does not need and nobody has used for an hour; return how many files went.

    That is parts that no manifest names (a writer died) or that were compacted away, temporary files, and all but the
    last manifests and definitions; a younger manifest must stay, or a writer that was slow could create its number
    again.  Ages are by the file system's own clock, the newest manifest being "now"; after a day without commits this
    computer's clock is good enough.  Never fails: what cannot be deleted now is found again.
    """
    deleted = 0
    try:
        manifests = file_system.list_folder(f"{folder}/{MANIFESTS}")
        parts = file_system.list_folder(f"{folder}/{PARTS}")
        now = max((int(time.time() * 1000) - _CLOCK_DOUBT, *(entry.modified for entry in manifests)))
        doomed = _superfluous(MANIFESTS, manifests, manifest.version, now)
        definitions = _listed(file_system, f"{folder}/{DEFINITIONS}")
        doomed += _superfluous(DEFINITIONS, definitions, manifest.version, now)
        needed = {part.file for part in manifest.parts} | {part.file for part in manifest.retired}
        for kind, entries in ((MANIFESTS, manifests), (DEFINITIONS, definitions), (PARTS, parts)):
            for entry in entries:
                garbage = (kind == PARTS and is_part_name(entry.name)) or is_temporary_name(entry.name)
                if garbage and entry.name not in needed and now - entry.modified > GRACE:
                    doomed.append(f"{kind}/{entry.name}")
    except OSError as error:
        _log.info("what is no longer needed in %s could not be listed: %s", folder, error)
        return 0
    for name in doomed:
        try:
            file_system.delete(f"{folder}/{name}")
            deleted += 1
        except OSError as error:
            _log.info("%s/%s is no longer needed but could not be deleted: %s", folder, name, error)
    return deleted


def _superfluous(kind: str, entries: Sequence[FileEntry], newest: int, now: int) -> list[str]:
    """Name the files of versions that are neither among the last ones nor young."""
    ages = {number: now - e.modified for e in entries if (number := manifest_version(e.name)) is not None}
    older = sorted(number for number in ages if number <= newest)[:-_MANIFESTS_KEPT]
    return [f"{kind}/{manifest_name(number)}" for number in older if ages[number] > GRACE]


def _listed(file_system: FileSystem, folder: str) -> list[FileEntry]:
    """List a folder that need not be there: older releases do not write it."""
    try:
        return file_system.list_folder(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
