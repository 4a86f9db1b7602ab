"""The Parquet metadata store: immutable parts and a versioned manifest per dataset (docs/format.md).

Readers take the newest manifest and see that version whole.  Writers put their part first and then create the next
manifest; only one of several can, the others get ``CommitConflictError``.  A writer that dies in between leaves a part
that no manifest names, which a later commit deletes.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace as changed
from typing import TYPE_CHECKING, ClassVar, Self

import pyarrow as pa

from skipstone.errors import (
    CommitConflictError,
    KeyUnavailableError,
    MetadataStoreError,
    SettingError,
)
from skipstone.stores.cache import ByteCache
from skipstone.stores.evaluation import DriverPartEvaluator, evaluate
from skipstone.stores.metadata_store import Change, Evaluation, IndexRecord, MetadataStore, Recovery, Snapshot
from skipstone.stores.names import normal_root
from skipstone.stores.parquet.cleaning import clean
from skipstone.stores.parquet.committer import Committer
from skipstone.stores.parquet.definitions_folder import DefinitionsFolder
from skipstone.stores.parquet.encryption import Keys
from skipstone.stores.parquet.filesystem import FileSystem, local_file_system, scheme_of
from skipstone.stores.parquet.layout import DEFINITIONS, PARTS, dataset_folder
from skipstone.stores.parquet.part import PartFile
from skipstone.stores.parquet.versions import ABSENCES, ManifestFolder
from skipstone.stores.parts.columns import OBJECT_COLUMNS
from skipstone.stores.parts.part import Meter
from skipstone.stores.recovery import check_newest, recover
from skipstone.stores.services import services_of
from skipstone.stores.snapshot_reader import SnapshotReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    from pyspark.sql import SparkSession

    from skipstone.querying.clause import Clause
    from skipstone.stores.evaluation import PartEvaluator
    from skipstone.stores.manifest import Manifest
    from skipstone.stores.parquet.filesystem import FileEntry

__all__ = ["ParquetStore"]

_log = logging.getLogger(__name__)
_SNAPSHOTS_KEPT = 256
_WITH_FOLDERS = ("file", "hdfs", "viewfs", "webhdfs")
_CACHE_BYTES = 1 << 30
_KMS = "kms."


class ParquetStore(MetadataStore):
    """Keeps metadata in Parquet files on any file system.

    Parameters
    ----------
    file_systems
        Gives the file system of a path, such as an engine's; by default local disks.
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
            cache_bytes=_byte_count(settings.get("cacheBytes", "")),
            part_evaluator=services.evaluator,
            keys=Keys(kms) if kms else None,
        )

    def __init__(
        self,
        file_systems: Callable[[str], FileSystem] = local_file_system,
        location: str | None = None,
        *,
        cache_bytes: int = _CACHE_BYTES,
        absent_seconds: float = 30.0,
        part_evaluator: PartEvaluator | None = None,
        max_parts: int = 8,
        keys: Keys | None = None,
    ) -> None:
        self._file_systems = file_systems
        self._location = None if location is None else _qualified(file_systems, location)
        self._cache = ByteCache(cache_bytes)
        self._absent_seconds = absent_seconds
        self._part_evaluator = part_evaluator or DriverPartEvaluator()
        self._max_parts = max_parts
        self._keys = keys
        # What one user decrypted is no other's: nor is what else the engine remembers of a snapshot.
        self._user = "" if keys is None else f"@{uuid.uuid4().hex}"
        self._lock = threading.Lock()
        self._warned: set[str] = set()
        self._newest: dict[str, tuple[FileEntry, Snapshot]] = {}
        self._manifests: OrderedDict[str, Manifest] = OrderedDict()

    def folder(self, root: str) -> str:
        """Name the folder that holds (or would hold) a dataset's metadata."""
        return dataset_folder(root, self._location)

    def latest(self, root: str) -> Snapshot | None:
        folder = self.folder(root)
        now = time.monotonic()
        if ABSENCES.is_known(folder, now, self._absent_seconds):
            return None
        generation = ABSENCES.generation(folder)
        found = self._look(root, folder)
        if found is None:
            ABSENCES.remember(folder, now, generation)
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

    def objects(self, snapshot: Snapshot, columns: Sequence[str] | None = None) -> pa.Table:
        return self._reader(snapshot).identity(OBJECT_COLUMNS if columns is None else columns, Meter())

    def coverage(self, snapshot: Snapshot, index: IndexRecord) -> npt.NDArray[np.bool_]:
        if index.key is not None and self.refusal(snapshot, index) is None:
            for part in self._parts(snapshot):
                part.open_section(index.id)  # what is damaged covers nothing, and a refresh makes it anew
        return self._reader(snapshot).coverage(index.id, Meter())

    def evaluate(self, snapshot: Snapshot, clause: Clause) -> Evaluation:
        return evaluate(self._reader(snapshot), clause, self._cache.bound, self._part_evaluator)

    def size(self, snapshot: Snapshot) -> Mapping[str, int]:
        parts = self._manifest(snapshot).parts
        ids = [record.id for record in snapshot.indexes]
        sizes = {i: sum(part.indexes[i][0] for part in parts if i in part.indexes) for i in ids}
        return {**sizes, "": sum(part.length for part in parts) - sum(sizes.values())}

    def commit(self, root: str, base: Snapshot | None, change: Change, *, replace: bool = False) -> Snapshot:
        folder = self.folder(root)
        file_system = self._file_systems(folder)
        self._check_location(file_system)
        self._warn_once(file_system, folder)
        committer = Committer(file_system, folder, normal_root(root), self._cache, self._max_parts, keys=self._keys)
        previous = None if base is None or replace else self._base(base)
        try:
            manifest = committer.commit(previous, change, replace=replace)
        finally:
            ABSENCES.forget(folder)  # after a conflict too: another writer made what was absent
        snapshot = self._remember(root, folder, manifest)
        clean(file_system, folder, manifest)
        return self._opened(snapshot)

    def check_newest(self, root: str) -> None:
        check_newest(*self._folders(root))

    def recoverable_indexes(self, root: str) -> tuple[IndexRecord, ...]:
        return self.recovery(root).indexes

    def recovery(self, root: str) -> Recovery:
        found = recover(*self._folders(root))
        return changed(found, indexes=tuple(map(self._opened_record, found.indexes)))

    def clean(self, root: str) -> int:
        folder = self.folder(root)
        try:
            snapshot = self._look(root, folder)
            manifest = None if snapshot is None else self._manifest(snapshot)
        except MetadataStoreError as error:
            _log.info("nothing in %s was cleaned: %s", folder, error)
            return 0
        if manifest is None:
            return 0
        DefinitionsFolder(self._file_systems(folder), folder).mend(manifest)
        return clean(self._file_systems(folder), folder, manifest)

    def drop(self, root: str) -> None:
        folder = self.folder(root)
        file_system = self._file_systems(folder)
        manifests = ManifestFolder(file_system, folder)
        try:
            # First what tells of lost versions: nothing that was dropped may be taken for lost.
            file_system.delete(f"{folder}/{DEFINITIONS}", recursive=True)
            # The newest goes last: whoever is killed half-way must not leave an older version as the newest.
            with suppress(MetadataStoreError):  # what cannot be listed is deleted with all the rest
                for _, entry in sorted(manifests.versions().items()):
                    file_system.delete(f"{manifests.path}/{entry.name}")
            file_system.delete(folder, recursive=True)
        except OSError as error:
            msg = f"the metadata in {folder} could not be deleted: {error}"
            raise MetadataStoreError(msg) from error
        finally:
            ABSENCES.forget(folder)
            with self._lock:
                self._newest.pop(folder, None)

    def atomic_commits(self, root: str) -> bool:
        """Say whether several processes may write a dataset's metadata at once."""
        folder = self.folder(root)
        return self._file_systems(folder).atomic_commits(folder)

    def _folders(self, root: str) -> tuple[ManifestFolder, DefinitionsFolder]:
        folder = self.folder(root)
        file_system = self._file_systems(folder)
        return ManifestFolder(file_system, folder), DefinitionsFolder(file_system, folder)

    def _look(self, root: str, folder: str) -> Snapshot | None:
        """Find the newest version; the manifest is read only when it is not the one known."""
        manifests = ManifestFolder(self._file_systems(folder), folder)
        for _ in range(5):  # a manifest may be deleted between being listed and being read
            versions = manifests.versions()
            if not versions:
                return None
            version = max(versions)
            entry = versions[version]
            known = self._newest.get(folder)
            if known is not None and known[0] == entry:
                return known[1]
            manifest = manifests.read(version, entry)
            if manifest is not None:
                snapshot = self._remember(root, folder, manifest)
                with self._lock:
                    self._newest[folder] = (entry, snapshot)
                return snapshot
        msg = f"the metadata in {folder} changes faster than it can be read"
        raise MetadataStoreError(msg)

    def _remember(self, root: str, folder: str, manifest: Manifest) -> Snapshot:
        """Make the snapshot of a manifest and keep the manifest for it."""
        snapshot = Snapshot(
            id=f"{folder}@{manifest.version}@{manifest.writer_id}{self._user}",
            root=root,
            location=folder,
            version=manifest.version,
            indexes=manifest.indexes,
            object_count=manifest.object_count,
        )
        with self._lock:
            self._manifests[snapshot.id] = manifest
            self._manifests.move_to_end(snapshot.id)
            while len(self._manifests) > _SNAPSHOTS_KEPT:
                self._manifests.popitem(last=False)
        return snapshot

    def _manifest(self, snapshot: Snapshot) -> Manifest:
        """Give a snapshot's manifest, read again if it was forgotten."""
        known = self._manifests.get(snapshot.id)
        if known is not None:
            return known
        manifests = ManifestFolder(self._file_systems(snapshot.location), snapshot.location)
        entry = manifests.versions().get(snapshot.version)
        manifest = None if entry is None else manifests.read(snapshot.version, entry)
        if manifest is None or self._remember(snapshot.root, snapshot.location, manifest).id != snapshot.id:
            msg = f"version {snapshot.version} of the metadata in {snapshot.location} is gone; ask for the latest"
            raise MetadataStoreError(msg)
        return manifest

    def _base(self, snapshot: Snapshot) -> Manifest:
        try:
            return self._manifest(snapshot)
        except MetadataStoreError as error:
            msg = f"the metadata that this call began with is gone; nothing of it was kept: try again ({error})"
            raise CommitConflictError(msg) from error

    def _reader(self, snapshot: Snapshot) -> SnapshotReader:
        return SnapshotReader(self._manifest(snapshot), self._parts(snapshot), self._cache)

    def _parts(self, snapshot: Snapshot) -> list[PartFile]:
        manifest = self._manifest(snapshot)
        file_system = self._file_systems(snapshot.location)
        folder = f"{snapshot.location}/{PARTS}"
        return [PartFile(file_system, folder, record, self._cache, keys=self._keys) for record in manifest.parts]

    def _require_footer_key(self, snapshot: Snapshot) -> None:
        """Raise when what every query needs is encrypted with a key that this user has not."""
        if any(record.key for record in self._manifest(snapshot).parts):
            for part in self._parts(snapshot):
                part.footer()

    def _opened(self, snapshot: Snapshot) -> Snapshot:
        """Give a snapshot with the options of the protected indexes, of those whose key this user has."""
        if all(record.key is None for record in snapshot.indexes):
            return snapshot
        return changed(snapshot, indexes=tuple(map(self._opened_record, snapshot.indexes)))

    def _opened_record(self, record: IndexRecord) -> IndexRecord:
        try:
            return record if self._keys is None else self._keys.opened(record)
        except KeyUnavailableError:  # `refusal` says why
            return record

    def _warn_once(self, file_system: FileSystem, folder: str) -> None:
        """Say that a file system cannot tell two writers apart, the first time this store writes to it."""
        scheme = scheme_of(folder)
        if scheme not in self._warned and not file_system.atomic_commits(folder):
            self._warned.add(scheme)
            _log.warning("%s: this file system has no atomic create; let one process at a time write metadata", folder)

    def _check_location(self, file_system: FileSystem) -> None:
        """Refuse to write to a base folder that is not there: more likely a slip of the pen than a wish."""
        location = self._location
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


def _byte_count(setting: str) -> int:
    """Read the bound on what the driver remembers of metadata."""
    if not setting:
        return _CACHE_BYTES
    if not setting.isascii() or not setting.isdigit():
        msg = f"spark.skipstone.cacheBytes is {setting!r}: give a number of bytes, for example {_CACHE_BYTES}"
        raise SettingError(msg)
    return int(setting)
