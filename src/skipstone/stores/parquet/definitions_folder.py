"""The folder of a dataset's definitions: written after each commit, read when a manifest is damaged or gone.

A version's definitions are written once its manifest is there, and dropped before it.  So definitions of a version
without a manifest of that number, or a higher one, tell that a manifest was lost.  No commit depends on them: where
they cannot be written there is only one copy of the records, until a refresh that has nothing else to do writes them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from skipstone.errors import MetadataCorruptError, MetadataStoreError
from skipstone.stores.manifest import MAX_VERSION
from skipstone.stores.parquet.definitions import Definitions
from skipstone.stores.parquet.layout import DEFINITIONS, MANIFESTS, manifest_name
from skipstone.stores.parquet.version_folder import VersionFolder

if TYPE_CHECKING:
    from skipstone.stores.manifest import Manifest
    from skipstone.stores.parquet.filesystem import FileEntry, FileSystem

__all__ = ["DefinitionsFolder"]

_log = logging.getLogger(__name__)


class DefinitionsFolder(VersionFolder):
    """The definitions of one dataset.

    Parameters
    ----------
    file_system
        Where they lie.
    folder
        The dataset's metadata folder; the definitions are in ``_definitions/`` under it.
    """

    def __init__(self, file_system: FileSystem, folder: str) -> None:
        super().__init__(file_system, f"{folder}/{DEFINITIONS}", "definitions")
        self._manifests = f"{folder}/{MANIFESTS}"

    def versions(self) -> dict[int, FileEntry]:
        """List the versions that are there, without numbers that no commit could follow."""
        return {version: entry for version, entry in super().versions().items() if version < MAX_VERSION}

    def read(self, version: int, entry: FileEntry) -> Definitions | None:
        """Read and check listed definitions; ``None`` when they are gone since."""
        data = self.data(entry)
        return None if data is None else Definitions.decode(data, f"{self.path}/{entry.name}", version)

    def keep(self, manifest: Manifest) -> None:
        """Write the definitions of a committed version; never fails, since the version is committed without them."""
        path = f"{self.path}/{manifest_name(manifest.version)}"
        data = Definitions.of(manifest).encode()
        try:
            self._file_system.make_folder(self.path)
            if not self._file_system.create_if_absent(path, data):  # damaged, or of a version that was lost
                self._file_system.delete(path)
                self._file_system.create_if_absent(path, data)
            if not self._file_system.exists(f"{self._manifests}/{manifest_name(manifest.version)}"):
                self._file_system.delete(path)  # dropped meanwhile: nothing of it may come back
        except OSError as error:
            _log.info("the definitions %s could not be written: %s", path, error)

    def mend(self, manifest: Manifest) -> None:
        """Write the newest version's definitions if they are missing or not as they should be; never fails."""
        try:
            entry = self.versions().get(manifest.version)
            fits = entry is not None and self.data(entry) == Definitions.of(manifest).encode()
        except MetadataCorruptError:
            fits = False
        except MetadataStoreError as error:
            _log.info("whether the definitions of version %s are there is not known: %s", manifest.version, error)
            return
        if not fits:
            self.keep(manifest)
