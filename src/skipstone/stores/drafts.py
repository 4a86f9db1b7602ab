"""What every store with parts and manifests does when it commits: number parts, draft the manifest, retire parts."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from skipstone.errors import MetadataStoreError
from skipstone.stores.manifest import Manifest, RetiredPart
from skipstone.stores.parts.part import Meter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skipstone.stores.manifest import PartRecord
    from skipstone.stores.metadata_store import Change
    from skipstone.stores.snapshot_reader import SnapshotReader

__all__ = ["GRACE", "check_ids", "counted", "draft", "next_sequence", "retire"]

GRACE = 3_600_000
"""Milliseconds for which readers of older versions, and writers at work, keep what they need."""


def next_sequence(parts: Sequence[PartRecord]) -> int:
    """Number the part that comes after others."""
    return parts[-1].sequence + 1 if parts else 1


def check_ids(previous: Manifest | None, change: Change, where: str) -> None:
    """Refuse an index id that an older index had: its columns may still lie in the parts."""
    if previous is None:
        return
    used = {index_id for part in previous.parts for index_id in part.indexes} - previous.index_ids
    again = sorted(used.intersection(record.id for record in change.indexes))
    if again:
        msg = f"the index id {again[0]!r} was used before in {where}: give the index a new id"
        raise MetadataStoreError(msg)


def draft(previous: Manifest | None, change: Change, number: int, root: str, parts: Sequence[PartRecord]) -> Manifest:
    """Make the manifest of a version, its objects still uncounted."""
    return Manifest(
        version=number,
        root=root,
        writer=f"skipstone {_product_version()}",
        writer_id=uuid.uuid4().hex,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        object_count=0,
        indexes=change.indexes,
        parts=tuple(parts),
        retired=() if previous is None else previous.retired,
    )


def counted(manifest: Manifest, previous: Manifest | None, reader_of: Callable[[Manifest], SnapshotReader]) -> Manifest:
    """Fill in the number of objects, taken from the merged parts."""
    parts = manifest.parts
    if previous is not None and parts == previous.parts:
        return replace(manifest, object_count=previous.object_count)
    if len(parts) == 1 and not parts[0].removed:
        return replace(manifest, object_count=parts[0].rows)
    count = reader_of(manifest).count_objects(Meter()) if parts else 0
    return replace(manifest, object_count=count, parts=parts if count else ())


def retire(manifest: Manifest, previous: Manifest | None) -> Manifest:
    """Note which parts the new version no longer needs, so that readers of the older ones keep them for a while."""
    if previous is None:
        return manifest
    now = int(time.time() * 1000)
    needed = {part.file for part in manifest.parts}
    young = [part for part in manifest.retired if now - part.since < GRACE]
    left = [RetiredPart(part.file, now) for part in previous.parts if part.file not in needed]
    return replace(manifest, retired=(*young, *left))


def _product_version() -> str:
    try:
        return version("skipstone")
    except PackageNotFoundError:  # run from a source tree
        return "unknown"
