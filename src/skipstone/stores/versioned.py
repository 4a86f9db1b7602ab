"""What every store does that keeps immutable parts and a manifest for each version.

Readers take the newest version and see it whole.  Writers put their part first and then make the next version; only one
of several can, the others get ``CommitConflictError``.  A writer that dies in between leaves a part that no manifest
names, which a later commit deletes.  Where versions and parts are kept is all that such stores differ in.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple, Protocol

from skipstone.errors import CommitConflictError, MetadataStoreError, SettingError
from skipstone.settings import read_bytes
from skipstone.stores.absences import ABSENCES
from skipstone.stores.cache import ByteCache
from skipstone.stores.evaluation import read_fields
from skipstone.stores.metadata_store import MetadataStore, Snapshot
from skipstone.stores.parts.columns import OBJECT_COLUMNS
from skipstone.stores.parts.part import Meter
from skipstone.stores.snapshot_reader import SnapshotReader

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from skipstone.indexing.index import Index
    from skipstone.querying.clause import Metadata
    from skipstone.stores.manifest import Manifest
    from skipstone.stores.metadata_store import Change, IndexRecord, Recovery
    from skipstone.stores.parts.part import Part

__all__ = ["ABSENT_SECONDS", "CACHE_BYTES", "MAX_PARTS", "Committer", "Version", "VersionedStore", "Versions"]

CACHE_BYTES = 1 << 30
ABSENT_SECONDS = 30.0
MAX_PARTS = 8
_SNAPSHOTS_KEPT = 256
_LOOKS = 5


class Version(NamedTuple):
    """A version that was found.

    Parameters
    ----------
    mark
        What it is known again by, without reading its manifest.
    read
        Returns its manifest, or ``None`` when that is gone since.
    """

    mark: Hashable
    read: Callable[[], Manifest | None]


class Versions(Protocol):
    """The versions of one dataset's metadata."""

    @property
    def location(self) -> str:
        """Where they are, as messages and snapshots name it."""
        ...

    def newest(self, known: Hashable | None) -> Version | None:
        """Find the newest version, or ``None``; ``known`` is the mark of the one that the caller has."""
        ...

    def manifest(self, version: int) -> Manifest | None:
        """Read the manifest of a version; ``None`` when it is gone."""
        ...

    def check_newest(self) -> None:
        """Raise when something tells of a newer version than the newest that is there."""
        ...

    def recovery(self) -> Recovery:
        """Return the indexes of the newest version that can be read, and what is lost."""
        ...


class Committer(Protocol):
    """Commits changes to one dataset's metadata."""

    def commit(self, previous: Manifest | None, change: Change, *, replace: bool) -> Manifest:
        """Make a change the version after ``previous``; with ``replace``, the next one whatever is there."""
        ...

    def clean(self, manifest: Manifest) -> int:
        """Delete what the newest version does not need and nobody has used for an hour; never fails."""
        ...


class VersionedStore(MetadataStore):
    """Keeps versions of metadata, and remembers what it has seen of them.

    Parameters
    ----------
    cache_bytes
        How much the driver may remember.
    absent_seconds
        How long "this dataset has no metadata" is believed; commits of this process are seen at once.
    max_parts
        A commit that would leave more parts than this compacts them into one.
    """

    def __init__(self, cache_bytes: int, absent_seconds: float, max_parts: int) -> None:
        self._cache = ByteCache(cache_bytes)
        self._absent_seconds = absent_seconds
        self._max_parts = max_parts
        self._user = ""
        self._lock = threading.Lock()
        self._newest: dict[str, tuple[Hashable, Snapshot]] = {}
        self._manifests: OrderedDict[str, Manifest] = OrderedDict()

    @abstractmethod
    def _location(self, root: str) -> str:
        """Name the place of a dataset's metadata."""

    @abstractmethod
    def _versions(self, root: str) -> Versions:
        """Return the versions of a dataset's metadata."""

    @abstractmethod
    def _committer(self, root: str) -> Committer:
        """Return what commits changes to a dataset's metadata."""

    @abstractmethod
    def _parts(self, snapshot: Snapshot) -> Sequence[Part]:
        """Return a snapshot's parts, in ascending sequence."""

    @abstractmethod
    def _delete(self, root: str) -> None:
        """Delete everything of a dataset, first what tells of lost versions: what is dropped is not lost."""

    def _mark(self, manifest: Manifest) -> Hashable | None:  # noqa: ARG002  (for those that know)
        """Return the mark of a version that this store committed; ``None`` when only looking for it tells."""
        return None

    def latest(self, root: str) -> Snapshot | None:
        location = self._location(root)
        now = time.monotonic()
        if ABSENCES.is_known(location, now, self._absent_seconds):
            return None
        generation = ABSENCES.generation(location)
        found = self._look(root)
        if found is None:
            ABSENCES.remember(location, now, generation)
        return found

    def objects(self, snapshot: Snapshot, columns: Sequence[str] | None = None) -> pa.Table:
        return self._reader(snapshot).identity(OBJECT_COLUMNS if columns is None else columns, Meter())

    def coverage(self, snapshot: Snapshot, index: IndexRecord) -> npt.NDArray[np.bool_]:
        return self._reader(snapshot).coverage(index.id, Meter())

    def fields(self, snapshot: Snapshot, wanted: Sequence[tuple[Index, str]]) -> Metadata | None:
        return read_fields(self._reader(snapshot), wanted, self._cache.bound)

    def size(self, snapshot: Snapshot) -> Mapping[str, int]:
        parts = self._manifest(snapshot).parts
        ids = [record.id for record in snapshot.indexes]
        sizes = {i: sum(part.indexes[i][0] for part in parts if i in part.indexes) for i in ids}
        return {**sizes, "": sum(part.length for part in parts) - sum(sizes.values())}

    def commit(self, root: str, base: Snapshot | None, change: Change, *, replace: bool = False) -> Snapshot:
        location = self._location(root)
        committer = self._committer(root)
        previous = None if base is None or replace else self._base(base)
        try:
            manifest = committer.commit(previous, change, replace=replace)
        finally:
            ABSENCES.forget(location)  # after a conflict too: another writer made what was absent
        snapshot = self._remember(root, location, manifest, self._mark(manifest))
        committer.clean(manifest)
        return snapshot

    def check_newest(self, root: str) -> None:
        self._versions(root).check_newest()

    def recoverable_indexes(self, root: str) -> tuple[IndexRecord, ...]:
        return self.recovery(root).indexes

    def recovery(self, root: str) -> Recovery:
        return self._versions(root).recovery()

    def drop(self, root: str) -> None:
        location = self._location(root)
        try:
            self._delete(root)
        finally:
            ABSENCES.forget(location)
            with self._lock:
                self._newest.pop(location, None)

    def _look(self, root: str) -> Snapshot | None:
        """Find the newest version; its manifest is read only when it is not the one known."""
        versions = self._versions(root)
        location = versions.location
        for _ in range(_LOOKS):  # a manifest may be deleted between being found and being read
            mark, snapshot = self._newest.get(location, (None, None))
            found = versions.newest(mark)
            if found is None:
                return None
            if found.mark == mark:
                return snapshot
            manifest = found.read()
            if manifest is not None:
                return self._remember(root, location, manifest, found.mark)
        msg = f"the metadata in {location} changes faster than it can be read"
        raise MetadataStoreError(msg)

    def _remember(self, root: str, location: str, manifest: Manifest, mark: Hashable | None = None) -> Snapshot:
        """Make the snapshot of a manifest and keep the manifest for it; as the newest, if its mark is known."""
        snapshot = Snapshot(
            id=f"{location}@{manifest.version}@{manifest.writer_id}{self._user}",
            root=root,
            location=location,
            version=manifest.version,
            indexes=manifest.indexes,
            object_count=manifest.object_count,
        )
        with self._lock:
            if mark is not None:
                self._newest[location] = (mark, snapshot)
            self._manifests[snapshot.id] = manifest
            self._manifests.move_to_end(snapshot.id)
            while len(self._manifests) > _SNAPSHOTS_KEPT:
                self._manifests.popitem(last=False)
        return snapshot

    def _manifest(self, snapshot: Snapshot) -> Manifest:
        """Return a snapshot's manifest, read again if it was forgotten."""
        known = self._manifests.get(snapshot.id)
        if known is not None:
            return known
        versions = self._versions(snapshot.root)
        manifest = versions.manifest(snapshot.version)
        if manifest is None or self._remember(snapshot.root, versions.location, manifest).id != snapshot.id:
            msg = f"version {snapshot.version} of the metadata in {snapshot.location} is gone; ask for the latest"
            raise MetadataStoreError(msg)
        return manifest

    def _base(self, snapshot: Snapshot) -> Manifest:
        """Return the manifest that a commit builds on."""
        try:
            return self._manifest(snapshot)
        except MetadataStoreError as error:
            msg = f"the metadata that this call began with is gone; nothing of it was kept: try again ({error})"
            raise CommitConflictError(msg) from error

    def _reader(self, snapshot: Snapshot, parts: Sequence[Part] | None = None) -> SnapshotReader:
        return SnapshotReader(self._manifest(snapshot), self._parts(snapshot) if parts is None else parts, self._cache)

    @staticmethod
    def _cache_bytes(settings: Mapping[str, str]) -> int:
        """Read the bound on what the driver remembers of metadata."""
        setting = settings.get("cacheBytes") or str(CACHE_BYTES)
        try:
            return read_bytes(setting)
        except ValueError:
            msg = f"spark.skipstone.cacheBytes is {setting!r}: give a number of bytes, for example 1g"
            raise SettingError(msg) from None
