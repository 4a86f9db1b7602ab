"""The folder of a dataset's manifests: finding the newest, and committing the next with exactly one winner."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from skipstone.errors import CommitConflictError, MetadataCorruptError, MetadataStoreError
from skipstone.stores.layout import MANIFESTS, manifest_name, manifest_version
from skipstone.stores.manifest import MAX_MANIFEST_BYTES, Manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skipstone.stores.filesystem import FileEntry, FileSystem

__all__ = ["ABSENCES", "Absences", "ManifestFolder"]


class ManifestFolder:
    """The manifests of one dataset.

    Parameters
    ----------
    file_system
        Where they lie.
    folder
        The dataset's metadata folder; the manifests are in ``_manifests/`` under it.
    """

    def __init__(self, file_system: FileSystem, folder: str) -> None:
        self._file_system = file_system
        self.path = f"{folder}/{MANIFESTS}"

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

    def read(self, version: int, entry: FileEntry) -> Manifest | None:
        """Read and check a listed manifest; ``None`` when it is gone since."""
        path = f"{self.path}/{entry.name}"
        if entry.length > MAX_MANIFEST_BYTES:
            msg = f"the manifest {path} has {entry.length} bytes: more than any manifest; drop the indexes"
            raise MetadataCorruptError(msg)
        try:
            data = self._file_system.read(path, entry.length)
        except FileNotFoundError:
            return None
        except OSError as error:
            msg = f"the manifest {path} cannot be read: {error}"
            raise MetadataStoreError(msg) from error
        return Manifest.decode(data, path, version)

    def sound(self, versions: Mapping[int, FileEntry]) -> Iterator[Manifest]:
        """Give the listed manifests that can be read, the newest first."""
        for version, entry in sorted(versions.items(), reverse=True):
            with suppress(MetadataCorruptError):
                manifest = self.read(version, entry)
                if manifest is not None:
                    yield manifest

    def commit(self, manifest: Manifest) -> None:
        """Create a version's manifest, unless another writer did.

        Raises
        ------
        CommitConflictError
            When that version is another writer's.
        MetadataStoreError
            When the file system failed and the manifest is not there.
        """
        path = f"{self.path}/{manifest_name(manifest.version)}"
        conflict = (
            f"another writer committed version {manifest.version} of {self.path} first; nothing of this call was kept: "
            "try again"
        )
        try:
            created = self._file_system.create_if_absent(path, manifest.encode())
        except OSError as error:
            # It may or may not be there: what lies there says whose it is.
            entry = self.versions().get(manifest.version)
            found = None if entry is None else self.read(manifest.version, entry)
            if found is None:
                msg = f"the manifest {path} could not be written: {error}"
                raise MetadataStoreError(msg) from error
            if found.writer_id != manifest.writer_id:
                raise CommitConflictError(conflict) from error
            return
        if not created:
            raise CommitConflictError(conflict)


class Absences:
    """Remembers, for all stores of the process, which folders had no metadata, and when that was seen.

    A commit forgets; a look that began before the commit must not be remembered after it, hence the generations.
    """

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}
        self._generations: dict[str, int] = {}
        self._lock = threading.Lock()

    def generation(self, folder: str) -> int:
        """Give what ``remember`` must be told of the time before looking."""
        return self._generations.get(folder, 0)

    def is_known(self, folder: str, now: float, seconds: float) -> bool:
        """Say whether a folder was found without metadata within the last ``seconds``."""
        seen = self._seen.get(folder)
        return seen is not None and now - seen < seconds

    def remember(self, folder: str, now: float, generation: int) -> None:
        """Remember that there was nothing, unless something was committed since ``generation``."""
        with self._lock:
            if self._generations.get(folder, 0) == generation:
                if len(self._seen) > 10_000:
                    self._seen.clear()
                self._seen[folder] = now

    def forget(self, folder: str) -> None:
        """Let the next look be a real one."""
        with self._lock:
            self._generations[folder] = self._generations.get(folder, 0) + 1
            self._seen.pop(folder, None)


ABSENCES = Absences()
