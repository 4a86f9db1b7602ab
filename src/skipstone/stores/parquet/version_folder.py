"""A folder with one small checked JSON file for each version: what manifests and definitions have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skipstone.errors import MetadataCorruptError, MetadataStoreError
from skipstone.stores.manifest import MAX_MANIFEST_BYTES
from skipstone.stores.parquet.layout import manifest_version

if TYPE_CHECKING:
    from skipstone.stores.parquet.filesystem import FileEntry, FileSystem

__all__ = ["VersionFolder"]


class VersionFolder:
    """The files of one kind of one dataset.

    Parameters
    ----------
    file_system
        Where they lie.
    path
        The folder.
    what
        What such a file is, in a word, for messages.
    """

    def __init__(self, file_system: FileSystem, path: str, what: str) -> None:
        self._file_system = file_system
        self._what = what
        self.path = path

    def versions(self) -> dict[int, FileEntry]:
        """List the versions that are there; none when the folder is not."""
        try:
            entries = self._file_system.list_folder(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            msg = f"the metadata in {self.path} cannot be listed: {error}"
            raise MetadataStoreError(msg) from error
        found = ((manifest_version(entry.name), entry) for entry in entries)
        return {version: entry for version, entry in found if version is not None}

    def data(self, entry: FileEntry) -> bytes | None:
        """Read the bytes of a listed file; ``None`` when it is gone since.

        Raises
        ------
        MetadataCorruptError
            When it is longer than any such file.
        MetadataStoreError
            When it cannot be read.
        """
        path = f"{self.path}/{entry.name}"
        if entry.length > MAX_MANIFEST_BYTES:
            msg = f"the {self._what} {path} has {entry.length} bytes: more than any {self._what}; drop the indexes"
            raise MetadataCorruptError(msg)
        try:
            return self._file_system.read(path, entry.length)
        except FileNotFoundError:
            return None
        except OSError as error:
            msg = f"the {self._what} {path} cannot be read: {error}"
            raise MetadataStoreError(msg) from error
