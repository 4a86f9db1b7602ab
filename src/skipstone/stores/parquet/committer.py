"""Writing a version: the new part, compaction when there are too many, and the manifest."""

from __future__ import annotations

import logging
import tempfile
import time
from contextlib import suppress
from dataclasses import replace as changed
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from skipstone.errors import CommitConflictError, KeyUnavailableError, MetadataStoreError
from skipstone.stores.drafts import GRACE, check_ids, counted, draft, next_sequence, retire
from skipstone.stores.manifest import Manifest
from skipstone.stores.names import part_name
from skipstone.stores.parquet.cleaning import clean
from skipstone.stores.parquet.compaction import compact
from skipstone.stores.parquet.encryption import Keys, protected_ids
from skipstone.stores.parquet.layout import MANIFESTS, PARTS
from skipstone.stores.parquet.part import PartFile
from skipstone.stores.parquet.part_writer import PartWriter
from skipstone.stores.parquet.versions import Versions
from skipstone.stores.parts.buckets import buckets_for
from skipstone.stores.parts.part_tables import part_table
from skipstone.stores.snapshot_reader import SnapshotReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skipstone.stores.cache import ByteCache
    from skipstone.stores.manifest import PartRecord
    from skipstone.stores.metadata_store import Change, IndexRecord
    from skipstone.stores.parquet.compaction import MakePart
    from skipstone.stores.parquet.filesystem import FileEntry, FileSystem

__all__ = ["Committer"]

_log = logging.getLogger(__name__)


class Committer:
    """Commits changes to one dataset's metadata folder.

    Parameters
    ----------
    file_system, folder
        Where the dataset's metadata lies.
    root
        The dataset.
    cache
        The store's cache, which reads of older parts go through.
    max_parts
        More parts than this are compacted.
    keys
        What encrypts and decrypts, for a user who has any keys.
    """

    def __init__(
        self,
        file_system: FileSystem,
        folder: str,
        root: str,
        cache: ByteCache,
        max_parts: int,
        *,
        keys: Keys | None = None,
    ) -> None:
        self._file_system = file_system
        self._folder = folder
        self._parts_folder = f"{folder}/{PARTS}"
        self._root = root
        self._cache = cache
        self._max_parts = max_parts
        self._keys = keys
        self._versions = Versions(file_system, folder)

    def commit(self, previous: Manifest | None, change: Change, *, replace: bool) -> Manifest:
        """Make a change the version after ``previous``; with ``replace``, the next one whatever is there."""
        started = time.time()
        versions = self._versions.listed()
        newest = max(versions, default=0)
        if replace:  # a lost version's number is not used again
            newest = max(newest, self._versions.last_version())
        else:
            self._check_base(previous, versions)
        kept = () if previous is None else previous.parts
        table = part_table(change, keep_removed=bool(kept))
        check_ids(previous, change, self._folder)
        mine: list[str] = []
        try:
            self._make_folders()
            with tempfile.TemporaryDirectory(prefix="skipstone-") as scratch:
                making = self._making(change.indexes, kept or self._last_parts(versions))
                parts = (
                    kept
                    if table is None
                    else (*kept, self._put_table(table, change.indexes, making, next_sequence(kept), scratch, mine))
                )
                manifest = draft(previous, change, newest + 1, self._root, parts)
                manifest = changed(manifest, indexes=tuple(map(self._sealed, change.indexes)))
                manifest = counted(manifest, previous, self._reader)
                if len(parts) > self._max_parts and manifest.object_count:
                    manifest = self._compacted(manifest, change.indexes, making, scratch, mine)
            manifest = retire(manifest, previous)
            manifest = Manifest.decode(manifest.encode(), self._folder, manifest.version)
        except MetadataStoreError:
            self._delete(mine)
            raise
        except OSError as error:
            self._delete(mine)
            msg = (
                f"metadata could not be written to {self._folder}: {error}; if the data may only be read, set "
                "spark.skipstone.location to a folder that may be written"
            )
            raise MetadataStoreError(msg) from error
        try:
            self._check_time(started)
            if not replace:  # after a drop the number is free again, and what this version builds on is gone
                self._check_base(previous, self._versions.listed())
            self._versions.commit(manifest)
        except CommitConflictError:  # on any other failure the manifest may yet appear, and needs its part
            self._delete(mine)
            raise
        self._delete([file for file in mine if file not in {part.file for part in manifest.parts}])
        return manifest

    def _check_base(self, previous: Manifest | None, versions: Mapping[int, FileEntry]) -> None:
        """Refuse early what the commit would refuse later, before anything is written."""
        newest = max(versions, default=0)
        version_before = 0 if previous is None else previous.version
        current = None
        if newest and newest == version_before:
            current = self._versions.read(newest, versions[newest])
        expected = None if previous is None else previous.writer_id
        if newest != version_before or (None if current is None else current.writer_id) != expected:
            now = f"version {newest}" if newest else "nothing"
            msg = (
                f"the metadata in {self._folder} was changed meanwhile: it was version {version_before} when this call "
                f"began and is {now} now; nothing of this call was kept: try again"
            )
            raise CommitConflictError(msg)

    def _check_time(self, started: float) -> None:
        """Refuse to commit so late that the manifest of another writer under this number may be deleted again."""
        if (time.time() - started) * 1000 > GRACE / 2:
            msg = f"writing metadata to {self._folder} took too long; nothing of this call was kept: try again"
            raise CommitConflictError(msg)

    def _make_folders(self) -> None:
        for name in (PARTS, MANIFESTS):
            self._file_system.make_folder(f"{self._folder}/{name}")

    def _making(self, indexes: Sequence[IndexRecord], kept: Sequence[PartRecord]) -> MakePart:
        """Return what begins a part for these indexes, encrypted as they want it.

        What the last part protects by a footer key stays protected, whoever writes.
        """
        footer_key = (self._keys.footer_key if self._keys is not None else "") or (kept[-1].key if kept else "")
        return lambda path, schema, buckets: PartWriter(
            path, schema, buckets=buckets, keys=self._keys, protected=protected_ids(indexes), footer_key=footer_key
        )

    def _last_parts(self, versions: Mapping[int, FileEntry]) -> tuple[PartRecord, ...]:
        """Return the parts that the newest sound manifest with any has: damage must not end their protection."""
        return next((m.parts for m in self._versions.sound(versions) if m.parts), ())

    def _compacted(
        self, manifest: Manifest, indexes: Sequence[IndexRecord], making: MakePart, scratch: str, mine: list[str]
    ) -> Manifest:
        """Make one part of a manifest's parts, unless this user lacks a key: then they wait for one who has all."""
        reader = self._reader(manifest)
        sequence = manifest.parts[-1].sequence
        try:
            sealed = tuple(self._sealed(record, anew=True) for record in indexes)
            compacted = self._put(
                lambda path, file: compact(reader, indexes, path, making, sequence=sequence, file=file), scratch, mine
            )
        except KeyUnavailableError as error:
            _log.info("the parts of %s stay as they are: %s", self._folder, error)
            return manifest
        return changed(manifest, indexes=sealed, parts=(compacted,))

    def _sealed(self, record: IndexRecord, *, anew: bool = False) -> IndexRecord:
        """Return a record as the manifest may hold it."""
        if record.key is None:
            return record
        if self._keys is None:
            if record.sealed:
                return Keys.shut(record)
            msg = f"no key {record.key!r} for {record.name}: spark.skipstone.kms.class names no key provider"
            raise KeyUnavailableError(msg)
        return self._keys.sealed(record, anew=anew)

    def _put_table(
        self,
        table: pa.Table,
        indexes: Sequence[IndexRecord],
        making: MakePart,
        sequence: int,
        scratch: str,
        mine: list[str],
    ) -> PartRecord:
        """Write rows as a part."""

        def write(path: Path, file: str) -> PartRecord:
            writer = making(path, table.schema, buckets_for(table, indexes))
            try:
                writer.write(table)
            except BaseException:
                writer.close()
                raise
            return writer.finish(sequence, file)

        return self._put(write, scratch, mine)

    def _put(self, write: Callable[[Path, str], PartRecord], scratch: str, mine: list[str]) -> PartRecord:
        """Write a part locally and bring it to its place; ``mine`` learns its name first."""
        file = part_name()
        local = Path(scratch) / file
        try:
            record = write(local, file)
        except pa.ArrowException as error:
            msg = f"metadata could not be written as Parquet: {error}"
            raise MetadataStoreError(msg) from error
        mine.append(file)
        self._file_system.put(f"{self._parts_folder}/{file}", local)
        return record

    def _reader(self, manifest: Manifest) -> SnapshotReader:
        files = [
            PartFile(self._file_system, self._parts_folder, part, self._cache, keys=self._keys)
            for part in manifest.parts
        ]
        return SnapshotReader(manifest, files, self._cache)

    def clean(self, manifest: Manifest) -> int:
        """Delete what the newest version does not need and nobody has used for an hour; return how many files went."""
        return clean(self._file_system, self._folder, manifest)

    def _delete(self, files: Sequence[str]) -> None:
        """Delete own parts that no manifest names; what fails is left to cleaning."""
        for file in files:
            with suppress(OSError):
                self._file_system.delete(f"{self._parts_folder}/{file}")
