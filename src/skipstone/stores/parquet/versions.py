"""The versions of a dataset in its folder: a manifest for each, and the index records once more as definitions.

A version's definitions are written once its manifest is there, and dropped before it.  So definitions of a version
without a manifest of that number, or a higher one, tell that a manifest was lost.  No commit depends on them: where
they cannot be written there is only one copy of the records, until a refresh that has nothing else to do writes them.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

from skipstone.errors import CommitConflictError, MetadataCorruptError, MetadataStoreError
from skipstone.stores.manifest import MAX_VERSION, Manifest
from skipstone.stores.parquet.definitions import Definitions
from skipstone.stores.parquet.layout import DEFINITIONS, MANIFESTS
from skipstone.stores.parquet.recovery import recover
from skipstone.stores.parquet.version_folder import VersionFolder
from skipstone.stores.versioned import Version

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from skipstone.stores.metadata_store import Recovery
    from skipstone.stores.parquet.filesystem import FileEntry, FileSystem

__all__ = ["Versions"]

_log = logging.getLogger(__name__)


class Versions:
    """The versions of one dataset's metadata.

    Parameters
    ----------
    file_system
        Where they lie.
    folder
        The dataset's metadata folder; manifests are in ``_manifests/`` under it, definitions in ``_definitions/``.
    """

    def __init__(self, file_system: FileSystem, folder: str) -> None:
        self.location = folder
        self._file_system = file_system
        self._manifests = VersionFolder(file_system, f"{folder}/{MANIFESTS}", "manifest", Manifest.decode)
        self._definitions = VersionFolder(file_system, f"{folder}/{DEFINITIONS}", "definitions", Definitions.decode)

    def listed(self) -> dict[int, FileEntry]:
        """List the manifests that are there, by version."""
        return self._manifests.versions()

    def newest(self, known: Hashable | None = None) -> Version | None:  # noqa: ARG002  (a listing costs the same)
        """Find the newest version, or ``None``; its mark is what the listing says of its manifest."""
        versions = self.listed()
        if not versions:
            return None
        version = max(versions)
        return Version(versions[version], lambda: self.read(version, versions[version]))

    def manifest(self, version: int) -> Manifest | None:
        """Read the manifest of a version; ``None`` when it is gone."""
        entry = self.listed().get(version)
        return None if entry is None else self.read(version, entry)

    def read(self, version: int, entry: FileEntry) -> Manifest | None:
        """Read and check a listed manifest; ``None`` when it is gone since."""
        return self._manifests.read(version, entry)

    def sound(self, versions: Mapping[int, FileEntry]) -> Iterator[Manifest]:
        """Yield the listed manifests that can be read, the newest first."""
        for version, entry in sorted(versions.items(), reverse=True):
            with suppress(MetadataCorruptError):
                manifest = self.read(version, entry)
                if manifest is not None:
                    yield manifest

    def last_version(self) -> int:
        """Return the number of the newest version that definitions tell of, 0 without any."""
        return max(self._defined(), default=0)

    def commit(self, manifest: Manifest) -> None:
        """Create a version's manifest, unless another writer did, and then its definitions.

        Raises
        ------
        CommitConflictError
            When that version is another writer's.
        MetadataStoreError
            When the file system failed and the manifest is not there.
        """
        path = self._manifests.file(manifest.version)
        conflict = (
            f"another writer committed version {manifest.version} of {self._manifests.path} first; nothing of this "
            "call was kept: try again"
        )
        try:
            if not self._file_system.create_if_absent(path, manifest.encode()):
                raise CommitConflictError(conflict)
        except OSError as error:
            # It may or may not be there: what lies there says whose it is.
            found = self.manifest(manifest.version)
            if found is None:
                msg = f"the manifest {path} could not be written: {error}"
                raise MetadataStoreError(msg) from error
            if found.writer_id != manifest.writer_id:
                raise CommitConflictError(conflict) from error
        self._define(manifest)

    def mend(self, manifest: Manifest) -> None:
        """Write the newest version's definitions if they are missing or not as they should be; never fails."""
        try:
            entry = self._defined().get(manifest.version)
            fits = entry is not None and self._definitions.data(entry) == Definitions.of(manifest).encode()
        except MetadataCorruptError:
            fits = False
        except MetadataStoreError as error:
            _log.info("whether the definitions of version %s are there is not known: %s", manifest.version, error)
            return
        if not fits:
            self._define(manifest)

    def check_newest(self) -> None:
        """Raise when there are definitions of a version whose manifest is gone.

        A version's manifest is created before its definitions and deleted after them, so that definitions which were
        there before and are there after the manifests were listed have one, unless it was lost.

        Raises
        ------
        MetadataCorruptError
            With what to do.
        """
        before = self._defined()
        newest = max(self.listed(), default=0)
        if not any(version > newest for version in before):
            return
        lost = max((version for version in self._defined() if version in before), default=0)
        if lost > newest:
            msg = (
                f"the manifest of version {lost} is gone from {self._manifests.path}, but its definitions are still "
                "there: `refresh()` makes its indexes again (or `drop_indexes()` forgets them all)"
            )
            raise MetadataCorruptError(msg)

    def recovery(self) -> Recovery:
        """Find the newest version of which the manifest or the definitions can be read, and say what came after it."""
        defined = self._defined()  # listed first: see `check_newest`
        return recover([(self._manifests, self.listed()), (self._definitions, defined)])

    def delete(self) -> None:
        """Delete the dataset's metadata folder.

        Raises
        ------
        MetadataStoreError
            When that fails.
        """
        try:
            # First what tells of lost versions: nothing that was dropped may be taken for lost.
            self._file_system.delete(self._definitions.path, recursive=True)
            # The newest goes last: whoever is killed half-way must not leave an older version as the newest.
            with suppress(MetadataStoreError):  # what cannot be listed is deleted with all the rest
                for version in sorted(self.listed()):
                    self._file_system.delete(self._manifests.file(version))
            self._file_system.delete(self.location, recursive=True)
        except OSError as error:
            msg = f"the metadata in {self.location} could not be deleted: {error}"
            raise MetadataStoreError(msg) from error

    def _defined(self) -> dict[int, FileEntry]:
        """List the definitions that are there, by version, without numbers that no commit could follow."""
        return {version: entry for version, entry in self._definitions.versions().items() if version < MAX_VERSION}

    def _define(self, manifest: Manifest) -> None:
        """Write the definitions of a committed version; never fails, since the version is committed without them."""
        path = self._definitions.file(manifest.version)
        data = Definitions.of(manifest).encode()
        try:
            self._file_system.make_folder(self._definitions.path)
            if not self._file_system.create_if_absent(path, data):  # damaged, or of a version that was lost
                self._file_system.delete(path)
                self._file_system.create_if_absent(path, data)
            if not self._file_system.exists(self._manifests.file(manifest.version)):
                self._file_system.delete(path)  # dropped meanwhile: nothing of it may come back
        except OSError as error:
            _log.info("the definitions %s could not be written: %s", path, error)
