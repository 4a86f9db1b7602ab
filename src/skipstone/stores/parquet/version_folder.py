"""A folder with one small checked JSON file for each version: manifests are kept so, and definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from skipstone.errors import MetadataCorruptError, MetadataStoreError
from skipstone.stores.manifest import MAX_MANIFEST_BYTES
from skipstone.stores.parquet.layout import manifest_name, manifest_version

if TYPE_CHECKING:
    from collections.abc import Callable

    from skipstone.stores.parquet.filesystem import FileEntry, FileSystem

__all__ = ["VersionFolder"]

T = TypeVar("T")


@dataclass(slots=True)
class VersionFolder(Generic[T]):
    """The files of one kind of one dataset.

    Parameters
    ----------
    file_system, path
        The folder.
    what
        What such a file is, in a word, for messages.
    decode
        Reads and checks one, given its bytes, its path and the version that it should be of.
    """

    file_system: FileSystem
    path: str
    what: str
    decode: Callable[[bytes, str, int], T]

    def file(self, version: int) -> str:
        """Name a version's file."""
        return f"{self.path}/{manifest_name(version)}"

    def versions(self) -> dict[int, FileEntry]:
        """List the versions that are there; none when the folder is not."""
        try:
            entries = self.file_system.list_folder(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            msg = f"the metadata in {self.path} cannot be listed: {error}"
            raise MetadataStoreError(msg) from error
        found = ((manifest_version(entry.name), entry) for entry in entries)
        return {version: entry for version, entry in found if version is not None}

    def read(self, version: int, entry: FileEntry) -> T | None:
        """Read and check a listed file; ``None`` when it is gone since."""
        data = self.data(entry)
        return None if data is None else self.decode(data, f"{self.path}/{entry.name}", version)

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
            msg = f"the {self.what} {path} has {entry.length} bytes: more than any {self.what}; drop the indexes"
            raise MetadataCorruptError(msg)
        try:
            return self.file_system.read(path, entry.length)
        except FileNotFoundError:
            return None
        except OSError as error:
            msg = f"the {self.what} {path} cannot be read: {error}"
            raise MetadataStoreError(msg) from error
