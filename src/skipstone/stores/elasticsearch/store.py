"""The Elasticsearch / OpenSearch metadata store: immutable parts and a head for each dataset (docs/elasticsearch.md).

A version is made by switching the head, which only one of several writers can: whoever began with the one before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from skipstone.stores.elasticsearch.client import Client
from skipstone.stores.elasticsearch.committer import Committer
from skipstone.stores.elasticsearch.documents import delete_matching
from skipstone.stores.elasticsearch.evaluation import SnapshotSearch
from skipstone.stores.elasticsearch.indices import Indices
from skipstone.stores.elasticsearch.part import SearchPart, load_directories
from skipstone.stores.elasticsearch.search import count_documents
from skipstone.stores.elasticsearch.settings import PREFIX, ServerSettings
from skipstone.stores.elasticsearch.versions import Versions, dataset_id
from skipstone.stores.names import normal_root
from skipstone.stores.versioned import ABSENT_SECONDS, CACHE_BYTES, MAX_PARTS, VersionedStore

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from skipstone.querying.clause import Clause
    from skipstone.stores.manifest import Manifest
    from skipstone.stores.metadata_store import Evaluation, Snapshot

__all__ = ["ElasticsearchStore"]


class ElasticsearchStore(VersionedStore):
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
        return cls(ServerSettings.of(settings), cache_bytes=cls._cache_bytes(settings))

    def __init__(
        self,
        server: ServerSettings,
        *,
        cache_bytes: int = CACHE_BYTES,
        absent_seconds: float = ABSENT_SECONDS,
        max_parts: int = MAX_PARTS,
    ) -> None:
        super().__init__(cache_bytes, absent_seconds, max_parts)
        self.client = Client(server)
        self._indices = Indices(self.client, server.index)

    def objects(self, snapshot: Snapshot, columns: Sequence[str] | None = None) -> pa.Table:
        if columns is None:  # maintenance asks for all: what queries would miss must be noticed
            searched = [part.record for part in self._parts(snapshot) if part.directory().search]
            if searched:
                count_documents(self.client, self._indices.objects, searched)
        return super().objects(snapshot, columns)

    def evaluate(self, snapshot: Snapshot, clause: Clause) -> Evaluation:
        parts = self._parts(snapshot)
        reader = self._reader(snapshot, parts)
        search = SnapshotSearch(self.client, self._indices.objects, reader, parts, self._cache.bound)
        return search.evaluate(clause)

    def _location(self, root: str) -> str:
        return self._versions(root).location

    def _versions(self, root: str) -> Versions:
        return Versions(self.client, self._indices.heads, dataset_id(root))

    def _mark(self, manifest: Manifest) -> Hashable:
        return manifest.version, manifest.writer_id

    def _committer(self, root: str) -> Committer:
        return Committer(
            self.client,
            self._indices,
            self._versions(root),
            dataset=dataset_id(root),
            root=normal_root(root),
            cache=self._cache,
            max_parts=self._max_parts,
        )

    def _delete(self, root: str) -> None:
        self._versions(root).delete()
        delete_matching(self.client, self._indices.documents, {"term": {"dataset": dataset_id(root)}})

    def _parts(self, snapshot: Snapshot) -> list[SearchPart]:
        """Return a snapshot's parts, with what their directories say."""
        records = self._manifest(snapshot).parts
        parts = [SearchPart(self.client, self._indices.chunks, record, self._cache) for record in records]
        load_directories(parts)
        return parts
