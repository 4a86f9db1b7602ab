"""The Parquet metadata store: immutable parts and a versioned manifest per dataset (docs/format.md).

A version is made by creating its manifest, which only one of several writers can.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import replace as changed
from typing import TYPE_CHECKING, ClassVar, Self

from skipstone.errors import KeyUnavailableError, MetadataStoreError, SettingError
from skipstone.stores.evaluation import DriverPartEvaluator, evaluate
from skipstone.stores.metadata_store import Change, Evaluation, IndexRecord, Recovery, Snapshot
from skipstone.stores.names import normal_root
from skipstone.stores.parquet.committer import Committer
from skipstone.stores.parquet.encryption import Keys
from skipstone.stores.parquet.filesystem import FileSystem, local_file_system, scheme_of
from skipstone.stores.parquet.layout import PARTS, dataset_folder
from skipstone.stores.parquet.part import PartFile
from skipstone.stores.parquet.versions import Versions
from skipstone.stores.services import services_of
from skipstone.stores.versioned import ABSENT_SECONDS, CACHE_BYTES, MAX_PARTS, VersionedStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    from pyspark.sql import SparkSession

    from skipstone.querying.clause import Clause
    from skipstone.stores.evaluation import PartEvaluator

__all__ = ["ParquetStore"]

_log = logging.getLogger(__name__)
_WITH_FOLDERS = ("file", "hdfs", "viewfs", "webhdfs")
_KMS = "kms."


class ParquetStore(VersionedStore):
    """Keeps metadata in Parquet files on any file system.

    Parameters
    ----------
    file_systems
        Returns the file system of a path, such as an engine's; by default local disks.
    location
        Base folder for the metadata of all datasets; beside the data when not given.
    cache_bytes
        How much the driver may remember, and up to which size columns are evaluated in its memory.
    absent_seconds
        How long "this folder has no metadata" is believed; commits of this process are seen at once.
    part_evaluator
        Evaluates clauses whose columns exceed ``cache_bytes``: the engine gives one that runs on Spark.
    max_parts
        A commit that would leave more parts than this compacts them into one.
    keys
        What encrypts and decrypts; without it, indexes with a key are not used.
    """

    settings: ClassVar[tuple[str, ...]] = ("location", "cacheBytes", _KMS)

    @classmethod
    def for_session(cls, spark: SparkSession, settings: Mapping[str, str]) -> Self:
        kms = {name.removeprefix(_KMS): value for name, value in settings.items() if name.startswith(_KMS)}
        services = services_of(spark)
        return cls(
            services.file_systems,
            settings.get("location") or None,
            cache_bytes=cls._cache_bytes(settings),
            part_evaluator=services.evaluator,
            keys=Keys(kms) if kms else None,
        )

    def __init__(
        self,
        file_systems: Callable[[str], FileSystem] = local_file_system,
        location: str | None = None,
        *,
        cache_bytes: int = CACHE_BYTES,
        absent_seconds: float = ABSENT_SECONDS,
        part_evaluator: PartEvaluator | None = None,
        max_parts: int = MAX_PARTS,
        keys: Keys | None = None,
    ) -> None:
        super().__init__(cache_bytes, absent_seconds, max_parts)
        self._file_systems = file_systems
        self._base_folder = None if location is None else _qualified(file_systems, location)
        self._part_evaluator = part_evaluator or DriverPartEvaluator()
        self._keys = keys
        # What one user decrypted is no other's: nor is what else the engine remembers of a snapshot.
        self._user = "" if keys is None else f"@{uuid.uuid4().hex}"
        self._warned: set[str] = set()

    def folder(self, root: str) -> str:
        """Name the folder that holds (or would hold) a dataset's metadata."""
        return dataset_folder(root, self._base_folder)

    def latest(self, root: str) -> Snapshot | None:
        found = super().latest(root)
        if found is None:
            return None
        self._require_footer_key(found)
        return self._opened(found)

    def refusal(self, snapshot: Snapshot, index: IndexRecord) -> str | None:
        if index.key is None:
            return None
        known = ("usable", snapshot.id, index.id)
        if self._cache.get(known):
            return None
        try:
            if self._keys is None:
                return f"no key {index.key!r}: spark.skipstone.kms.class names no key provider"
            self._keys.opened(index)
            for part in self._parts(snapshot):
                part.open_section(index.id)
        except KeyUnavailableError as error:
            return str(error)
        except MetadataStoreError:
            return None  # evaluation meets it too, and says so
        self._cache.put(known, True, 256)
        return None

    def check_keys(self, keys: Sequence[str]) -> None:
        footer_key = self._keys.footer_key if self._keys is not None else ""
        for key in dict.fromkeys([*keys, *([footer_key] if footer_key else [])]):
            if self._keys is None:
                msg = f"no key {key!r}: set spark.skipstone.kms.class to a key provider (docs/security.md)"
                raise KeyUnavailableError(msg)
            self._keys.forget_refusals()
            self._keys.encryption(key)

    def coverage(self, snapshot: Snapshot, index: IndexRecord) -> npt.NDArray[np.bool_]:
        if index.key is not None and self.refusal(snapshot, index) is None:
            for part in self._parts(snapshot):
                part.open_section(index.id)  # what is damaged covers nothing, and a refresh makes it anew
        return super().coverage(snapshot, index)

    def evaluate(self, snapshot: Snapshot, clause: Clause) -> Evaluation:
        return evaluate(self._reader(snapshot), clause, self._cache.bound, self._part_evaluator)

    def commit(self, root: str, base: Snapshot | None, change: Change, *, replace: bool = False) -> Snapshot:
        folder = self.folder(root)
        file_system = self._file_systems(folder)
        self._check_base_folder(file_system)
        self._warn_once(file_system, folder)
        return self._opened(super().commit(root, base, change, replace=replace))

    def recovery(self, root: str) -> Recovery:
        found = super().recovery(root)
        return changed(found, indexes=tuple(map(self._opened_record, found.indexes)))

    def clean(self, root: str) -> int:
        try:
            snapshot = self._look(root)
            manifest = None if snapshot is None else self._manifest(snapshot)
        except MetadataStoreError as error:
            _log.info("nothing in %s was cleaned: %s", self.folder(root), error)
            return 0
        if manifest is None:
            return 0
        self._versions(root).mend(manifest)
        return self._committer(root).clean(manifest)

    def atomic_commits(self, root: str) -> bool:
        """Whether several processes may write a dataset's metadata at once."""
        folder = self.folder(root)
        return self._file_systems(folder).atomic_commits(folder)

    def _location(self, root: str) -> str:
        return self.folder(root)

    def _versions(self, root: str) -> Versions:
        folder = self.folder(root)
        return Versions(self._file_systems(folder), folder)

    def _committer(self, root: str) -> Committer:
        folder = self.folder(root)
        return Committer(
            self._file_systems(folder), folder, normal_root(root), self._cache, self._max_parts, keys=self._keys
        )

    def _delete(self, root: str) -> None:
        self._versions(root).delete()

    def _parts(self, snapshot: Snapshot) -> list[PartFile]:
        manifest = self._manifest(snapshot)
        file_system = self._file_systems(snapshot.location)
        folder = f"{snapshot.location}/{PARTS}"
        return [PartFile(file_system, folder, record, self._cache, keys=self._keys) for record in manifest.parts]

    def _require_footer_key(self, snapshot: Snapshot) -> None:
        """Raise when what every query needs is encrypted with a key that this user does not have."""
        if any(record.key for record in self._manifest(snapshot).parts):
            for part in self._parts(snapshot):
                part.footer()

    def _opened(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot with the options of the protected indexes, of those whose key this user has."""
        if all(record.key is None for record in snapshot.indexes):
            return snapshot
        return changed(snapshot, indexes=tuple(map(self._opened_record, snapshot.indexes)))

    def _opened_record(self, record: IndexRecord) -> IndexRecord:
        try:
            return record if self._keys is None else self._keys.opened(record)
        except KeyUnavailableError:  # `refusal` says why
            return record

    def _warn_once(self, file_system: FileSystem, folder: str) -> None:
        """Warn, the first time this store writes to a file system, if that cannot keep two writers apart."""
        scheme = scheme_of(folder)
        if scheme not in self._warned and not file_system.atomic_commits(folder):
            self._warned.add(scheme)
            _log.warning("%s: this file system has no atomic create; let one process at a time write metadata", folder)

    def _check_base_folder(self, file_system: FileSystem) -> None:
        """Refuse to write to a base folder that does not exist: its name is probably misspelled."""
        location = self._base_folder
        if location is None or scheme_of(location) not in _WITH_FOLDERS:
            return
        try:
            there = file_system.exists(location)
        except OSError as error:
            msg = f"the folder {location} that spark.skipstone.location names cannot be reached: {error}"
            raise MetadataStoreError(msg) from error
        if not there:
            msg = f"the folder {location} does not exist: create it, or correct the setting spark.skipstone.location"
            raise MetadataStoreError(msg)


def _qualified(file_systems: Callable[[str], FileSystem], location: str) -> str:
    """Spell the base folder in the one way that its file system has for it."""
    try:
        return file_systems(location).qualify(location)
    except OSError as error:
        msg = f"the folder {location} that spark.skipstone.location names cannot be reached: {error}"
        raise SettingError(msg) from error
