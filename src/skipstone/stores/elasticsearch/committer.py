"""Committing a version: the new part, compaction when there are too many, the switch of the head, and cleaning up."""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import replace as changed
from typing import TYPE_CHECKING

import pyarrow as pa

from skipstone.errors import CommitConflictError, MetadataStoreError
from skipstone.stores.drafts import GRACE, check_ids, counted, draft, next_sequence, retire
from skipstone.stores.elasticsearch.documents import Bulk, delete_matching
from skipstone.stores.elasticsearch.part import SearchPart
from skipstone.stores.elasticsearch.part_writer import NewPart
from skipstone.stores.manifest import Manifest
from skipstone.stores.metadata_store import field_column
from skipstone.stores.names import part_name
from skipstone.stores.parts.columns import IDENTITY, OBJECT_COLUMNS, presence_column
from skipstone.stores.parts.part import Meter
from skipstone.stores.parts.part_tables import part_table
from skipstone.stores.snapshot_reader import SnapshotReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skipstone.stores.cache import ByteCache
    from skipstone.stores.elasticsearch.client import Client
    from skipstone.stores.elasticsearch.indices import Indices
    from skipstone.stores.elasticsearch.queries import Query
    from skipstone.stores.elasticsearch.versions import Head, Versions
    from skipstone.stores.manifest import PartRecord
    from skipstone.stores.metadata_store import Change, IndexRecord

__all__ = ["Committer"]

_log = logging.getLogger(__name__)


class Committer:
    """Commits changes to one dataset's metadata.

    Parameters
    ----------
    client, indices
        The server, and its indices.
    versions
        The dataset's versions in it.
    dataset, root
        The dataset, by its id and its root.
    cache
        The store's cache, which reads of older parts go through.
    max_parts
        More parts than this are compacted.
    """

    def __init__(
        self,
        client: Client,
        indices: Indices,
        versions: Versions,
        *,
        dataset: str,
        root: str,
        cache: ByteCache,
        max_parts: int,
    ) -> None:
        self._client = client
        self._indices = indices
        self._versions = versions
        self._dataset = dataset
        self._root = root
        self._cache = cache
        self._max_parts = max_parts

    def commit(self, previous: Manifest | None, change: Change, *, replace: bool) -> Manifest:
        """Make a change the version after ``previous``; with ``replace``, the next one whatever is there."""
        _refuse_keys(change.indexes)
        kept = () if previous is None else previous.parts
        table = part_table(change, keep_removed=bool(kept))
        check_ids(previous, change, self._versions.location)
        self._indices.make()
        before = self._versions.look(write=True)
        if not replace:
            self._check_base(previous, before)
        mine: list[str] = []
        try:
            manifest = self._written(previous, before, change, table, mine)
            self._client.call("POST", f"{self._indices.objects}/_refresh", write=True)
            self._indices.check()  # an index deleted meanwhile would have been made anew by the documents
        except MetadataStoreError:
            self._delete(mine)
            raise
        try:
            self._versions.switch(before, manifest)
        except CommitConflictError:  # on any other failure the head may yet be switched, and needs its part
            self._delete(mine)
            raise
        self._delete([file for file in mine if file not in {part.file for part in manifest.parts}])
        return manifest

    def _check_base(self, previous: Manifest | None, before: Head | None) -> None:
        """Refuse early what the switch would refuse later, before anything is written."""
        expected = None if previous is None else previous.writer_id
        if (None if before is None else before.writer_id) != expected or (before is not None and previous is None):
            now = f"version {before.version}" if before is not None else "nothing"
            then = "nothing" if previous is None else f"version {previous.version}"
            msg = (
                f"the metadata in {self._versions.location} was changed meanwhile: it was {then} when this "
                f"call began and is {now} now; nothing of this call was kept: try again"
            )
            raise CommitConflictError(msg)

    def _written(
        self, previous: Manifest | None, before: Head | None, change: Change, table: pa.Table | None, mine: list[str]
    ) -> Manifest:
        """Write the new part, compact if that is due, and return the manifest, checked as a reader would check it."""
        parts: tuple[PartRecord, ...] = () if previous is None else previous.parts
        if table is not None:
            parts = (*parts, self._put(table, change.indexes, next_sequence(parts), mine))
        # Without a version before, a copy of a lost one may tell which number not to use again.
        last = self._versions.last_version() if previous is None else previous.version
        number = 1 + max(0 if before is None else before.version, last)
        manifest = counted(draft(previous, change, number, self._root, parts), previous, self._reader)
        if len(manifest.parts) > self._max_parts and manifest.object_count:
            whole = _compacted(self._reader(manifest), change.indexes)
            manifest = changed(manifest, parts=(self._put(whole, change.indexes, parts[-1].sequence, mine),))
        manifest = retire(manifest, previous)
        return Manifest.decode(manifest.encode(), self._versions.location, manifest.version)

    def _put(self, table: pa.Table, records: Sequence[IndexRecord], sequence: int, mine: list[str]) -> PartRecord:
        """Write rows as a part; ``mine`` learns its name first."""
        part = NewPart(self._dataset, part_name(), sequence, int(time.time() * 1000))
        mine.append(part.file)
        with Bulk(self._client) as bulk:
            return part.write(bulk, self._indices, table, records)

    def _reader(self, manifest: Manifest) -> SnapshotReader:
        parts = [SearchPart(self._client, self._indices.chunks, part, self._cache) for part in manifest.parts]
        return SnapshotReader(manifest, parts, self._cache)

    def _delete(self, files: Sequence[str]) -> None:
        """Delete own parts that no manifest names; what fails is left to cleaning."""
        if files:
            with contextlib.suppress(MetadataStoreError):
                delete_matching(self._client, self._indices.documents, {"terms": {"part": list(files)}})

    def clean(self, manifest: Manifest, grace: int = GRACE) -> int:
        """Delete what the newest version does not need and nobody has used for an hour; return how many documents went.

        That is parts that no manifest names (a writer died) or that were compacted away.  Never fails: what cannot be
        deleted now is found again by the next commit.
        """
        needed = [*(part.file for part in manifest.parts), *(part.file for part in manifest.retired)]
        query: Query = {
            "bool": {
                "filter": [
                    {"term": {"dataset": self._dataset}},
                    {"range": {"created": {"lt": int(time.time() * 1000) - grace}}},
                ],
                "must_not": [{"terms": {"part": needed}}],
            }
        }
        try:
            return delete_matching(self._client, self._indices.documents, query, young=False)
        except MetadataStoreError as error:
            _log.info("not everything that is no longer needed of %s could be deleted: %s", self._root, error)
            return 0


def _refuse_keys(indexes: Sequence[IndexRecord]) -> None:
    """Raise for an index that asks to be encrypted: better no index than one that is readable after all."""
    keyed = [record.name for record in indexes if record.key]
    if keyed:
        msg = f"{keyed[0]} cannot be kept: this store does not encrypt; leave key= out for plain metadata"
        raise MetadataStoreError(msg)


def _compacted(reader: SnapshotReader, indexes: Sequence[IndexRecord]) -> pa.Table:
    """Return the merged view of a snapshot as the rows of one part: live objects and live indexes only."""
    meter = Meter()
    columns: dict[str, pa.Array] = {}
    identity = reader.identity(OBJECT_COLUMNS, meter)
    for name in OBJECT_COLUMNS:
        columns[name] = identity.column(name)
    columns["removed"] = pa.repeat(pa.scalar(False), len(reader))
    for record in indexes:
        covered = reader.coverage(record.id, meter)
        if not covered.any():
            continue
        found = reader.load([(record, name) for name in record.fields], meter).fields
        if not covered.all():
            columns[presence_column(record.id)] = pa.array(covered)
        for name in record.fields:
            columns[field_column(record.id, name)] = found[record.id, name]
    fields = [IDENTITY.field(n) if n in IDENTITY.names else pa.field(n, c.type) for n, c in columns.items()]
    return pa.table(list(columns.values()), schema=pa.schema(fields))
