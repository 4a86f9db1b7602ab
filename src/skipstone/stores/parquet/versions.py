"""The folder of a dataset's manifests: finding the newest, and committing the next with exactly one winner."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from skipstone.errors import CommitConflictError, MetadataCorruptError, MetadataStoreError
from skipstone.stores.manifest import Manifest
from skipstone.stores.parquet.layout import MANIFESTS, manifest_name
from skipstone.stores.parquet.version_folder import VersionFolder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skipstone.stores.parquet.filesystem import FileEntry, FileSystem

__all__ = ["ABSENCES", "Absences", "ManifestFolder"]


class ManifestFolder(VersionFolder):
    """The manifests of one dataset.

    Parameters
    ----------
    file_system
        Where they lie.
    folder
        The dataset's metadata folder; the manifests are in ``_manifests/`` under it.
    """

    def __init__(self, file_system: FileSystem, folder: str) -> None:
        super().__init__(file_system, f"{folder}/{MANIFESTS}", "manifest")

    def read(self, version: int, entry: FileEntry) -> Manifest | None:
        """Read and check a listed manifest; ``None`` when it is gone since."""
        data = self.data(entry)
        return None if data is None else Manifest.decode(data, f"{self.path}/{entry.name}", version)

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
