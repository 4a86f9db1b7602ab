"""What the sources of installed distributions import, kept between processes.

To read all sources that pandas may need takes seconds, in every driver and in every worker.  An installer's list of
files has their digests, so that what was found once holds wherever the list is the same.  Whatever fails here, the
sources are read.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from skipstone.functions.identity.own_sources import own_digest
from skipstone.settings import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["kept_imports"]

_LAST = "."
"""Ends a file that was written whole; it names no module."""


def kept_imports(distribution: str, find: Callable[[], frozenset[str]]) -> frozenset[str]:
    """Return the modules that a distribution's sources import, from an earlier process where one has found them.

    Parameters
    ----------
    distribution
        Its name, its version, and the digest of the digests that it lists.  Edits of listed files that leave the list
        as it is are not seen, here as elsewhere (``docs/functions.md``).
    find
        Reads the sources.
    """
    key = hashlib.sha256(f"{own_digest()} {distribution}".encode()).hexdigest()[:32]
    try:
        file = cache_folder() / "imports" / key
    except RuntimeError:  # a worker's user may have no home
        return find()
    try:
        *names, last = file.read_text(encoding="utf-8").split("\n")
        if last == _LAST:
            return frozenset(names)
    except (OSError, UnicodeDecodeError):
        pass  # nobody has looked yet, or the folder is not ours to read
    found = find()
    _keep(file, "\n".join([*sorted(found), _LAST]))
    return found


def _keep(file: Path, text: str) -> None:
    """Write a file whole or not at all; a folder that cannot be written to keeps nothing."""
    temporary = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as written:
            written.write(text)
        Path(temporary).replace(file)
    except OSError:  # a full disk, say: nobody else would delete what was begun
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
