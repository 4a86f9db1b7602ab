"""The Elasticsearch / OpenSearch metadata store: immutable parts and a head for each dataset (docs/elasticsearch.md).

Readers take the head and see that version whole.  Writers put their part first and then switch the head, if it is still
the one that they began with; only one of several can, the others get ``CommitConflictError``.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, ClassVar, Self

from skipstone.errors import CommitConflictError, MetadataStoreError, SettingError
from skipstone.stores.cache import ByteCache
from skipstone.stores.elasticsearch.client import Client
from skipstone.stores.elasticsearch.committer import Committer
from skipstone.stores.elasticsearch.documents import delete_matching
from skipstone.stores.elasticsearch.evaluation import SnapshotSearch
from skipstone.stores.elasticsearch.indices import Indices
from skipstone.stores.elasticsearch.part import SearchPart, load_directories
from skipstone.stores.elasticsearch.search import count_documents
from skipstone.stores.elasticsearch.settings import PREFIX, ServerSettings
from skipstone.stores.elasticsearch.versions import Heads, dataset_id
from skipstone.stores.metadata_store import Change, Evaluation, IndexRecord, MetadataStore, Recovery, Snapshot
from skipstone.stores.names import normal_root
from skipstone.stores.parquet.versions import Absences
from skipstone.stores.parts.columns import OBJECT_COLUMNS
from skipstone.stores.parts.part import Meter
from skipstone.stores.snapshot_reader import SnapshotReader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from skipstone.querying.clause import Clause
    from skipstone.stores.manifest import Manifest

__all__ = ["ElasticsearchStore"]

_SNAPSHOTS_KEPT = 256
_CACHE_BYTES = 1 << 30
_ABSENCES = Absences()


class ElasticsearchStore(MetadataStore):
    """Keeps metadata in Elasticsearch or OpenSearch, and lets the server evaluate what it can.

    Parameters
    ----------
    server
        Where it is, and how to be let in.
    cache_bytes
        How much the driver may remember.
    absent_seconds
        How long "this dataset has no metadata" is believed; commits of this process are seen at once.
    max_parts
        A commit that would leave more parts than this compacts them into one.
    """

    settings: ClassVar[tuple[str, ...]] = (PREFIX, "cacheBytes")

    @classmethod
    def for_session(cls, spark: SparkSession, settings: Mapping[str, str]) -> Self:  # noqa: ARG003  (part of the contract)
        cache = settings.get("cacheBytes") or str(_CACHE_BYTES)
        if not cache.isascii() or not cache.isdigit():
            msg = f"spark.skipstone.cacheBytes is {cache!r}: give a number of bytes, for example {_CACHE_BYTES}"
            raise SettingError(msg)
        return cls(ServerSettings.of(settings), cache_bytes=int(cache))

    def __init__(
        self,
        server: ServerSettings,
        *,
        cache_bytes: int = _CACHE_BYTES,
        absent_seconds: float = 30.0,
        max_parts: int = 8,
    ) -> None:
        self.client = Client(server)
        self._indices = Indices(self.client, server.index)
        self._heads = Heads(self.client, self._indices.heads)
        self._cache = ByteCache(cache_bytes)
        self._absent_seconds = absent_seconds
        self._max_parts = max_parts
        self._lock = threading.Lock()
        self._newest: dict[str, Snapshot] = {}
        self._manifests: OrderedDict[str, Manifest] = OrderedDict()

    def latest(self, root: str) -> Snapshot | None:
        dataset = dataset_id(root)
        where = self._heads.where(dataset)
        now = time.monotonic()
        if _ABSENCES.is_known(where, now, self._absent_seconds):
            return None
        generation = _ABSENCES.generation(where)
        found = self._look(root, dataset)
        if found is None:
            _ABSENCES.remember(where, now, generation)
        return found

    def objects(self, snapshot: Snapshot, columns: Sequence[str] | None = None) -> pa.Table:
        parts = self._parts(snapshot)
        if columns is None:  # maintenance asks for all: what queries would miss must be noticed
            searched = [part.record for part in parts if part.directory().search]
            if searched:
                count_documents(self.client, self._indices.objects, searched)
        return self._reader(snapshot, parts).identity(OBJECT_COLUMNS if columns is None else columns, Meter())

    def coverage(self, snapshot: Snapshot, index: IndexRecord) -> npt.NDArray[np.bool_]:
        return self._reader(snapshot, self._parts(snapshot)).coverage(index.id, Meter())

    def evaluate(self, snapshot: Snapshot, clause: Clause) -> Evaluation:
        parts = self._parts(snapshot)
        reader = self._reader(snapshot, parts)
        search = SnapshotSearch(self.client, self._indices.objects, reader, parts, self._cache.bound)
        return search.evaluate(clause)

    def size(self, snapshot: Snapshot) -> Mapping[str, int]:
        parts = self._manifest(snapshot).parts
        ids = [record.id for record in snapshot.indexes]
        sizes = {i: sum(part.indexes[i][0] for part in parts if i in part.indexes) for i in ids}
        return {**sizes, "": sum(part.length for part in parts) - sum(sizes.values())}

    def commit(self, root: str, base: Snapshot | None, change: Change, *, replace: bool = False) -> Snapshot:
        dataset = dataset_id(root)
        committer = self._committer(root)
        previous = None if base is None or replace else self._base(base)
        try:
            manifest = committer.commit(previous, change, replace=replace)
        finally:
            _ABSENCES.forget(self._heads.where(dataset))  # after a conflict too: another writer made what was absent
        snapshot = self._remember(root, dataset, manifest)
        committer.clean(manifest)
        return snapshot

    def check_newest(self, root: str) -> None:
        self._heads.check_newest(dataset_id(root))

    def recoverable_indexes(self, root: str) -> tuple[IndexRecord, ...]:
        return self.recovery(root).indexes

    def recovery(self, root: str) -> Recovery:
        return self._heads.recovery(dataset_id(root))

    def drop(self, root: str) -> None:
        dataset = dataset_id(root)
        try:
            self._heads.delete(dataset)
            delete_matching(self.client, self._indices.documents, {"term": {"dataset": dataset}})
        finally:
            _ABSENCES.forget(self._heads.where(dataset))
            with self._lock:
                self._newest.pop(dataset, None)

    def _committer(self, root: str) -> Committer:
        return Committer(
            self.client,
            self._indices,
            self._heads,
            dataset=dataset_id(root),
            root=normal_root(root),
            cache=self._cache,
            max_parts=self._max_parts,
        )

    def _look(self, root: str, dataset: str) -> Snapshot | None:
        """Find the present version; the manifest is fetched only when it is not the one known."""
        known = self._newest.get(dataset)
        if known is not None:
            head = self._heads.look(dataset)
            if head is None:
                return None
            if known.id == self._snapshot_id(dataset, head.version, head.writer_id):
                return known
        head = self._heads.read(dataset)
        return None if head is None else self._remember(root, dataset, self._heads.manifest(dataset, head))

    def _snapshot_id(self, dataset: str, version: int, writer_id: str | None) -> str:
        return f"{self._heads.where(dataset)}@{version}@{writer_id}"

    def _remember(self, root: str, dataset: str, manifest: Manifest) -> Snapshot:
        """Make the snapshot of a manifest and keep the manifest for it."""
        snapshot = Snapshot(
            id=self._snapshot_id(dataset, manifest.version, manifest.writer_id),
            root=root,
            location=self._heads.where(dataset),
            version=manifest.version,
            indexes=manifest.indexes,
            object_count=manifest.object_count,
        )
        with self._lock:
            self._newest[dataset] = snapshot
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
        dataset = dataset_id(snapshot.root)
        head = self._heads.read(dataset)
        if head is None or self._snapshot_id(dataset, head.version, head.writer_id) != snapshot.id:
            msg = f"version {snapshot.version} of the metadata in {snapshot.location} is gone; ask for the latest"
            raise MetadataStoreError(msg)
        manifest = self._heads.manifest(dataset, head)
        self._remember(snapshot.root, dataset, manifest)
        return manifest

    def _base(self, snapshot: Snapshot) -> Manifest:
        try:
            return self._manifest(snapshot)
        except MetadataStoreError as error:
            msg = f"the metadata that this call began with is gone; nothing of it was kept: try again ({error})"
            raise CommitConflictError(msg) from error

    def _parts(self, snapshot: Snapshot) -> list[SearchPart]:
        """Give a snapshot's parts, with what their directories say."""
        records = self._manifest(snapshot).parts
        parts = [SearchPart(self.client, self._indices.chunks, record, self._cache) for record in records]
        load_directories(parts)
        return parts

    def _reader(self, snapshot: Snapshot, parts: Sequence[SearchPart]) -> SnapshotReader:
        return SnapshotReader(self._manifest(snapshot), parts, self._cache)
