"""The versions of a dataset in the server: its head, which has the present manifest and is replaced by one at a time.

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
from skipstone.stores.versioned import Version

if TYPE_CHECKING:
    from collections.abc import Hashable

    from skipstone.stores.elasticsearch.client import Client

__all__ = ["Head", "Versions", "dataset_id"]

_log = logging.getLogger(__name__)
_ABOUT = "?_source_includes=writer_id,version"


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

    @property
    def mark(self) -> tuple[int, str | None]:
        """What its version is known again by."""
        return self.version, self.writer_id


class Versions:
    """The versions of one dataset's metadata: the present one in its head, which has a copy.

    Parameters
    ----------
    client, index
        The server, and its index of heads.
    dataset
        The dataset, by its id.
    """

    def __init__(self, client: Client, index: str, dataset: str) -> None:
        self._client = client
        self._index = index
        self._head = dataset
        self._copy = f"{dataset}.copy"
        self.location = f"{client.url}/{index}/{dataset}"

    def newest(self, known: Hashable | None) -> Version | None:
        """Find the present version, or ``None``; its manifest is fetched only when it is not the one known."""
        head = self.read() if known is None else self.look()
        if known is not None and head is not None and head.mark != known:
            head = self.read()
        return None if head is None else Version(head.mark, lambda: self._decoded(head))

    def manifest(self, version: int) -> Manifest | None:
        """Read the manifest of a version; ``None`` when that is not the present one."""
        head = self.read()
        return self._decoded(head) if head is not None and head.version == version else None

    def look(self, *, write: bool = False) -> Head | None:
        """Return the head without its manifest, or ``None``."""
        return self._get(self._head, _ABOUT, write=write)

    def read(self) -> Head | None:
        """Return the head, or ``None``."""
        return self._get(self._head)

    def _decoded(self, head: Head) -> Manifest:
        """Return the checked manifest of a head that was read.

        Raises
        ------
        MetadataCorruptError
            When it is not what was written.
        """
        try:
            text = head.content["manifest"]
            if len(text) > 2 * MAX_MANIFEST_BYTES:
                raise ValueError
            data = base64.b64decode(text, validate=True)
        except (TypeError, KeyError, ValueError, binascii.Error) as error:
            msg = (
                f"the head {self.location} is damaged: it has no manifest; queries read everything until `refresh()` "
                "makes it again (or `drop_indexes()` and `create_indexes(...)` do)"
            )
            raise MetadataCorruptError(msg) from error
        manifest = Manifest.decode(data, self.location, head.version)
        if manifest.writer_id != head.writer_id:
            msg = f"the head {self.location} is damaged: two writers wrote it; drop the indexes and create them again"
            raise MetadataCorruptError(msg)
        return manifest

    def switch(self, before: Head | None, manifest: Manifest) -> None:
        """Make a manifest the present one, if the head is still the one before.

        Raises
        ------
        CommitConflictError
            When another writer was first.
        """
        condition = (
            "op_type=create" if before is None else f"if_seq_no={before.seq_no}&if_primary_term={before.primary_term}"
        )
        content = {
            "dataset": self._head,
            "writer_id": manifest.writer_id,
            "version": manifest.version,
            "manifest": base64.b64encode(manifest.encode()).decode("ascii"),
        }
        conflict = (
            f"another writer committed version {manifest.version} of {self.location} first; nothing of this call was "
            "kept: try again"
        )
        try:
            path = f"{self._index}/_doc/{self._head}?{condition}"
            status = self._client.call("PUT", path, content, accepts=(409,), write=True).status
        except MetadataStoreError:
            # It may or may not be there: what is there says whose it is.
            found = self.look(write=True)
            if found is None or found.writer_id != manifest.writer_id:
                raise
            status = 200
        if status == 409:  # perhaps it was sent twice, and the first one arrived
            found = self.look(write=True)
            if found is None or found.writer_id != manifest.writer_id:
                raise CommitConflictError(conflict)
        try:
            self._client.call("PUT", f"{self._index}/_doc/{self._copy}", content, write=True)
            if self.look(write=True) is None:  # dropped meanwhile: nothing of it may come back
                self._delete(self._copy)
        except MetadataStoreError as error:  # the version is committed; the copy only helps to repair damage
            _log.info("the copy of the head %s could not be written: %s", self.location, error)

    def check_newest(self) -> None:
        """Raise when there is a copy of a newer head than the one that is there.

        A head is switched before its copy is written and deleted after it, so that a copy which was there before and
        is there after the head was looked at has one of its version or a higher one, unless that was lost.

        Raises
        ------
        MetadataCorruptError
            With what to do.
        """
        before = self._get(self._copy, _ABOUT, write=True)
        head = self.look(write=True)
        if before is None or before.version <= (0 if head is None else head.version):
            return
        after = self._get(self._copy, _ABOUT, write=True)
        if after is not None and after.writer_id == before.writer_id and (head is None or head.version):
            msg = (
                f"the head {self.location} of version {before.version} is gone, but its copy is still there: "
                "`refresh()` makes its indexes again (or `drop_indexes()` forgets them all)"
            )
            raise MetadataCorruptError(msg)

    def last_version(self) -> int:
        """Return the number of the version that the copy is of, 0 without one."""
        copy = self._get(self._copy, _ABOUT, write=True)
        return 0 if copy is None else copy.version

    def recovery(self) -> Recovery:
        """Return the indexes of the head, or those of its copy, and what is lost when the copy is older."""
        heads = [self._get(identifier, write=True) for identifier in (self._head, self._copy)]
        found = [(head.version, self._sound(head)) for head in heads if head is not None]
        newest = max((version for version, _ in found), default=0)
        sound = [manifest for _, manifest in found if manifest is not None]
        named = [name for head in heads if head is not None for name in _names_in(head)]
        if not sound:
            return Recovery(lost=said_of_loss([newest], 0, (), named) if found else ())
        best = max(sound, key=lambda manifest: manifest.version)
        unread = range(newest, best.version, -1)
        lost = said_of_loss(unread, best.version, best.indexes, named)
        return Recovery(best.indexes, f"version {best.version}", lost)

    def _sound(self, head: Head) -> Manifest | None:
        try:
            return self._decoded(head)
        except MetadataCorruptError:
            return None

    def delete(self) -> None:
        """Delete the head, after its copy: what was dropped must not be taken for lost."""
        for identifier in (self._copy, self._head):
            self._delete(identifier)

    def _delete(self, identifier: str) -> None:
        self._client.call("DELETE", f"{self._index}/_doc/{identifier}", accepts=(404,), write=True)

    def _get(self, identifier: str, options: str = "", *, write: bool = False) -> Head | None:
        found = self._client.call("GET", f"{self._index}/_doc/{identifier}{options}", accepts=(404,), write=write)
        if found.status == 404:
            return None
        content = found.content
        try:
            return Head(int(content["_seq_no"]), int(content["_primary_term"]), content.get("_source"))
        except (TypeError, KeyError, ValueError) as error:
            msg = f"the head {self._client.url}/{self._index}/{identifier} cannot be read: the answer makes no sense"
            raise MetadataStoreError(msg) from error


def _names_in(head: Head) -> list[str]:
    """Return the names of indexes that can be read in what a head has for a manifest."""
    try:
        return names_in(base64.b64decode(head.content["manifest"]))
    except (TypeError, KeyError, ValueError, binascii.Error):
        return []
