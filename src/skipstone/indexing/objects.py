"""Data objects: the files that are indexed and skipped, and what tells one state of a file from another."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

__all__ = ["DataObject"]


@dataclass(frozen=True, slots=True)
class DataObject:
    """One file as the file system listed it.

    ``path`` is the text of Hadoop's ``FileStatus.getPath`` (not URL-encoded), ``modified`` milliseconds since 1970,
    ``etag`` empty where the file system gives none.
    """

    path: str
    length: int
    modified: int
    etag: str = ""

    @property
    def digest(self) -> bytes:
        """The 16 bytes by which a listing finds the object again."""
        return hashlib.md5(self.path.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
