"""Heads: one document for each dataset, which holds its present manifest and is replaced by one writer at a time.

A head is data from outside like any manifest: everything in it is checked before it is used.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skipstone.errors import CommitConflictError, MetadataCorruptError, MetadataStoreError
from skipstone.stores.manifest import MAX_MANIFEST_BYTES, Manifest
from skipstone.stores.metadata_store import Recovery
from skipstone.stores.names import normal_root
from skipstone.stores.recovery import names_in, said_of_loss

if TYPE_CHECKING:
    from skipstone.stores.elasticsearch.client import Client

__all__ = ["Head", "Heads", "dataset_id"]

_log = logging.getLogger(__name__)
_COPY = "copy"


def dataset_id(root: str) -> str:
    """Name a dataset: a hash of its root, spelled in one way.

    >>> dataset_id("file:///data/logs/") == dataset_id("file:/data/logs")
    True
    """
    return hashlib.sha256(normal_root(root).encode("utf-8", "surrogatepass")).hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class Head:
    """A head as it is in the server: which write made it, and what it says."""

    seq_no: int
    primary_term: int
    content: Any

    @property
    def writer_id(self) -> str | None:
        """Who wrote it."""
        found = self.content.get("writer_id") if isinstance(self.content, dict) else None
        return found if isinstance(found, str) else None

    @property
    def version(self) -> int:
        """Its number, 0 when it does not say."""
        found = self.content.get("version") if isinstance(self.content, dict) else None
        return found if isinstance(found, int) and 0 <= found < 1 << 50 else 0


class Heads:
    """The heads of a store.

    Parameters
    ----------
    client, index
        The server, and its index of heads.
    """

    def __init__(self, client: Client, index: str) -> None:
        self._client = client
        self._index = index

    def where(self, dataset: str) -> str:
        """Say where a head is, for messages and as a name of the dataset's metadata."""
        return f"{self._client.url}/{self._index}/{dataset}"

    def look(self, dataset: str, *, write: bool = False) -> Head | None:
        """Give a dataset's head without its manifest, or ``None``."""
        return self._get(dataset, "?_source_includes=writer_id,version", write=write)

    def read(self, dataset: str, *, write: bool = False) -> Head | None:
        """Give a dataset's head, or ``None``."""
        return self._get(dataset, "", write=write)

    def manifest(self, dataset: str, head: Head) -> Manifest:
        """Give the checked manifest of a head that was read.

        Raises
        ------
        MetadataCorruptError
            When it is not what was written.
        """
        where = self.where(dataset)
        try:
            text = head.content["manifest"]
            if len(text) > 2 * MAX_MANIFEST_BYTES:
                raise ValueError
            data = base64.b64decode(text, validate=True)
        except (TypeError, KeyError, ValueError, binascii.Error) as error:
            msg = (
                f"the head {where} is damaged: it has no manifest; queries read everything until `refresh()` makes it "
                "again (or `drop_indexes()` and `create_indexes(...)` do)"
            )
            raise MetadataCorruptError(msg) from error
        manifest = Manifest.decode(data, where, head.version)
        if manifest.writer_id != head.writer_id:
            msg = f"the head {where} is damaged: two writers wrote it; drop the indexes and create them again"
            raise MetadataCorruptError(msg)
        return manifest

    def switch(self, dataset: str, before: Head | None, manifest: Manifest) -> None:
        """Make a manifest a dataset's present one, if the head is still the one before.

        Raises
        ------
        CommitConflictError
            When another writer was first.
        """
        condition = (
            "op_type=create" if before is None else f"if_seq_no={before.seq_no}&if_primary_term={before.primary_term}"
        )
        content = {
            "dataset": dataset,
            "writer_id": manifest.writer_id,
            "version": manifest.version,
            "manifest": base64.b64encode(manifest.encode()).decode("ascii"),
        }
        conflict = (
            f"another writer committed version {manifest.version} of {self.where(dataset)} first; nothing of this call "
            "was kept: try again"
        )
        try:
            path = f"{self._index}/_doc/{dataset}?{condition}"
            status = self._client.call("PUT", path, content, accepts=(409,), write=True).status
        except MetadataStoreError:
            # It may or may not be there: what is there says whose it is.
            found = self.look(dataset, write=True)
            if found is None or found.writer_id != manifest.writer_id:
                raise
            status = 200
        if status == 409:  # perhaps it was sent twice, and the first one arrived
            found = self.look(dataset, write=True)
            if found is None or found.writer_id != manifest.writer_id:
                raise CommitConflictError(conflict)
        try:
            self._client.call("PUT", f"{self._index}/_doc/{dataset}.{_COPY}", content, write=True)
            if self.look(dataset, write=True) is None:  # dropped meanwhile: nothing of it may come back
                self._delete(f"{dataset}.{_COPY}")
        except MetadataStoreError as error:  # the version is committed; the copy only helps to repair damage
            _log.info("the copy of the head %s could not be written: %s", self.where(dataset), error)

    def check_newest(self, dataset: str) -> None:
        """Raise when there is a copy of a newer head than the one that is there.

        A head is switched before its copy is written and deleted after it, so that a copy which was there before and
        is there after the head was looked at has one of its version or a higher one, unless that was lost.

        Raises
        ------
        MetadataCorruptError
            With what to do.
        """
        before = self.look(f"{dataset}.{_COPY}", write=True)
        head = self.look(dataset, write=True)
        if before is None or before.version <= (0 if head is None else head.version):
            return
        after = self.look(f"{dataset}.{_COPY}", write=True)
        if after is not None and after.writer_id == before.writer_id and (head is None or head.version):
            msg = (
                f"the head {self.where(dataset)} of version {before.version} is gone, but its copy is still there: "
                "`refresh()` makes its indexes again (or `drop_indexes()` forgets them all)"
            )
            raise MetadataCorruptError(msg)

    def last_version(self, dataset: str) -> int:
        """Give the number of the version that the copy is of, 0 without one."""
        copy = self.look(f"{dataset}.{_COPY}", write=True)
        return 0 if copy is None else copy.version

    def recovery(self, dataset: str) -> Recovery:
        """Give the indexes of the head, or those of its copy, and say what is lost when the copy is older."""
        heads = [self._get(identifier, "", write=True) for identifier in (dataset, f"{dataset}.{_COPY}")]
        found = [(head.version, self._sound(dataset, head)) for head in heads if head is not None]
        newest = max((version for version, _ in found), default=0)
        sound = [manifest for _, manifest in found if manifest is not None]
        named = [name for head in heads if head is not None for name in _names_in(head)]
        if not sound:
            return Recovery(lost=said_of_loss([newest], 0, (), named) if found else ())
        best = max(sound, key=lambda manifest: manifest.version)
        unread = range(newest, best.version, -1)
        lost = said_of_loss(unread, best.version, best.indexes, named)
        return Recovery(best.indexes, f"version {best.version}", lost)

    def _sound(self, dataset: str, head: Head) -> Manifest | None:
        try:
            return self.manifest(dataset, head)
        except MetadataCorruptError:
            return None

    def delete(self, dataset: str) -> None:
        """Delete a dataset's head, after its copy: what was dropped must not be taken for lost."""
        for identifier in (f"{dataset}.{_COPY}", dataset):
            self._delete(identifier)

    def _delete(self, identifier: str) -> None:
        self._client.call("DELETE", f"{self._index}/_doc/{identifier}", accepts=(404,), write=True)

    def _get(self, identifier: str, options: str, *, write: bool) -> Head | None:
        found = self._client.call("GET", f"{self._index}/_doc/{identifier}{options}", accepts=(404,), write=write)
        if found.status == 404:
            return None
        content = found.content
        try:
            return Head(int(content["_seq_no"]), int(content["_primary_term"]), content.get("_source"))
        except (TypeError, KeyError, ValueError) as error:
            msg = f"the head {self.where(identifier)} cannot be read: the answer makes no sense"
            raise MetadataStoreError(msg) from error


def _names_in(head: Head) -> list[str]:
    """Give the names of indexes that can be read in what a head has for a manifest."""
    try:
        return names_in(base64.b64decode(head.content["manifest"]))
    except (TypeError, KeyError, ValueError, binascii.Error):
        return []
