"""Many documents at once: written and deleted in requests of bounded size, fetched by their ids, removed by a query."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Self

from skipstone.errors import MetadataStoreError
from skipstone.stores.elasticsearch.client import reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from skipstone.stores.elasticsearch.client import Client
    from skipstone.stores.elasticsearch.queries import Query
    from skipstone.stores.parts.part import Meter

__all__ = ["Bulk", "delete_matching", "fetch"]

_REQUEST_BYTES = 4 << 20
_FETCHED_BYTES = 24 << 20
_PAGE = 10_000
_TRIES = 5


class Bulk:
    """Collects what is to be written or deleted and sends it when there is enough; use it in a ``with`` block.

    Parameters
    ----------
    client
        The server.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._entries: list[bytes] = []
        self._bytes = 0
        self.sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.flush()

    def put(self, index: str, identifier: str, document: dict[str, Any]) -> int:
        """Write a document under its id; return how many bytes that takes."""
        content = json.dumps(document, separators=(",", ":")).encode()
        self._add(json.dumps({"index": {"_index": index, "_id": identifier}}).encode() + b"\n" + content + b"\n")
        return len(content)

    def delete(self, index: str, identifier: str) -> None:
        """Delete a document, if it is there."""
        self._add(json.dumps({"delete": {"_index": index, "_id": identifier}}).encode() + b"\n")

    def _add(self, entry: bytes) -> None:
        if self._entries and self._bytes + len(entry) > _REQUEST_BYTES:
            self.flush()
        self._entries.append(entry)
        self._bytes += len(entry)

    def flush(self) -> None:
        """Send what was collected; what the server had no room for is sent again.

        Raises
        ------
        MetadataStoreError
            When the server refuses one of the documents.
        """
        entries, self._entries, self._bytes = self._entries, [], 0
        for attempt in range(_TRIES):
            if not entries:
                return
            content = self._client.call("POST", "_bulk", lines=b"".join(entries), write=True).content
            items = [next(iter(item.values())) for item in content.get("items", ())]
            if len(items) != len(entries):
                msg = f"the search server {self._client.url} answered {len(items)} of {len(entries)} writes"
                raise MetadataStoreError(msg)
            refused = [i for i, e in zip(items, entries, strict=True) if not _is_done(i["status"], e)]
            if refused:
                msg = f"the search server {self._client.url} refuses a document: {reason_of(refused[0])}"
                raise MetadataStoreError(msg)
            self.sent += len(entries)
            entries = [entry for entry, item in zip(entries, items, strict=True) if item["status"] == 429]
            if entries:
                time.sleep(0.2 * 2**attempt)
        msg = f"the search server {self._client.url} has no room for more documents: try again later"
        raise MetadataStoreError(msg)


def _is_done(status: int, entry: bytes) -> bool:
    """Whether the server did what an entry asks, or has no room for it just now."""
    return status < 300 or status == 429 or (status == 404 and entry.startswith(b'{"delete"'))


def fetch(client: Client, index: str, wanted: Sequence[tuple[str, int]], meter: Meter | None) -> dict[str, Any]:
    """Fetch documents by their ids, given with about how many bytes each has; those that are not there are left out."""
    found: dict[str, Any] = {}
    for batch in _batches(wanted):
        path = f"{index}/_mget?filter_path=docs._id,docs.found,docs._source,docs.error"
        answer = client.call("POST", path, {"ids": batch}, accepts=(404,))
        if meter is not None:
            meter.bytes += answer.size
        documents = answer.content.get("docs", ())
        found.update((d["_id"], d["_source"]) for d in documents if d.get("found") and "_source" in d)
    return found


def _batches(wanted: Sequence[tuple[str, int]]) -> Iterator[list[str]]:
    """Cut ids into lists whose documents fit into one answer."""
    batch: list[str] = []
    size = 0
    for identifier, count in wanted:
        if batch and (size + count > _FETCHED_BYTES or len(batch) >= _PAGE):
            yield batch
            batch, size = [], 0
        batch.append(identifier)
        size += count
    if batch:
        yield batch


def delete_matching(client: Client, indices: str, query: Query, *, young: bool = True) -> int:
    """Delete the documents that a query matches, by their ids: not every server can delete by a query.

    Parameters
    ----------
    client, indices, query
        Where, and what.
    young
        Whether documents may be among them that were written a moment ago, and that a search does not find yet.
    """
    deleted = 0
    options = "ignore_unavailable=true&allow_no_indices=true"
    while True:
        if young or deleted:
            client.call("POST", f"{indices}/_refresh?{options}", write=True)
        body = {"size": _PAGE, "_source": False, "query": query}
        answer = client.call("POST", f"{indices}/_search?{options}", body, write=True)
        hits: Iterable[Any] = answer.content["hits"]["hits"]
        with Bulk(client) as bulk:
            for hit in hits:
                bulk.delete(hit["_index"], hit["_id"])
        if not hits:
            return deleted
        deleted += bulk.sent
