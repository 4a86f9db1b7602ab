"""Asking the server which rows a query refutes: all queries of a clause in one request, the smaller side of each.

The rows that are *kept* are asked for first, since a selective query keeps few; a first page, with their number, says
which side is shorter.  That is sound only while every row has its document: a row whose document is missing would look
refuted.  So each answer also counts the documents of every part, in the same search, and is not believed unless the
counts are those of the manifest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skipstone.errors import MetadataCorruptError, MetadataStoreError
from skipstone.stores.elasticsearch.client import reason_of
from skipstone.stores.elasticsearch.queries import Query, absent, every, one_of, some

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from skipstone.stores.elasticsearch.client import Client
    from skipstone.stores.manifest import PartRecord
    from skipstone.stores.parts.part import Meter

    Truths = npt.NDArray[np.bool_]

__all__ = ["count_documents", "kept_rows"]

_FIRST_PAGE = 1_000
_PAGE = 10_000
_SHOWN = ("error", "status", "timed_out", "_shards", "hits.total", "hits.hits.sort", "aggregations")
_PATH = "_msearch?filter_path=" + ",".join(f"responses.{name}" for name in _SHOWN)


@dataclass
class _Search:
    """One query, and what is known of its answer."""

    parts: Sequence[PartRecord]
    refutation: Query
    answer: list[Truths]
    kept_side: bool = True
    total: int = -1
    received: int = 0
    after: list[int] | None = None
    done: bool = False

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    def body(self) -> dict[str, Any]:
        """Return the search: the documents of the parts are counted, and those of the wanted side are listed."""
        names = [part.file for part in self.parts]
        body: dict[str, Any] = {
            "size": _FIRST_PAGE if self.total < 0 and self.kept_side else _PAGE,
            "stored_fields": "_none_",
            "track_total_hits": True,
            "query": {"bool": {"filter": [{"terms": {"part": names}}]}},
            "aggs": {"parts": {"terms": {"field": "part", "size": len(names)}}},
            "post_filter": absent(self.refutation) if self.kept_side else self.refutation,
            "sort": ["sequence", "row"],
        }
        return body if self.after is None else {**body, "search_after": self.after}

    def take(self, answer: Mapping[str, Any]) -> None:
        """Take a page; decide whether there is another, or whether the other side is shorter."""
        _check(answer, self.parts)
        total = int(answer["hits"]["total"]["value"])
        hits = [hit["sort"] for hit in answer["hits"].get("hits", ())]
        if self.total < 0 and self.kept_side and self.rows - total < total - len(hits):
            self.kept_side = False
            return
        if self.total < 0:
            self.total = total
            for bits in self.answer:
                bits[:] = not self.kept_side
        self._mark(hits)
        self.received += len(hits)
        self.after = hits[-1] if hits else None
        if total != self.total or self.received > total or (not hits and self.received < total):
            _refuse("gave pages that do not belong together")
        self.done = self.received == total

    def _mark(self, hits: Sequence[Sequence[int]]) -> None:
        if not hits:
            return
        pairs = np.array(hits, np.int64)
        for part, bits in zip(self.parts, self.answer, strict=True):
            rows = pairs[pairs[:, 0] == part.sequence, 1]
            if len(rows) and (rows.min() < 0 or rows.max() >= len(bits)):
                _refuse("named a row that its part does not have")
            bits[rows] = self.kept_side


def kept_rows(
    client: Client,
    index: str,
    parts: Sequence[PartRecord],
    refutations: Sequence[Mapping[int, Query]],
    meter: Meter,
) -> list[list[Truths]]:
    """Return for each query, part and row whether the row is kept; the rows of parts without a query are.

    Parameters
    ----------
    client, index
        The server, and its index of searchable documents.
    parts
        The parts of the snapshot.
    refutations
        For each query: what refutes, by part (its number).
    meter
        Learns how many bytes the answers had.
    """
    kept = [[np.ones(part.rows, np.bool_) for part in parts] for _ in refutations]
    searches = []
    for by_part, answer in zip(refutations, kept, strict=True):
        numbers = sorted(by_part)
        query = _any_part({parts[n].file: by_part[n] for n in numbers})
        searches.append(_Search([parts[n] for n in numbers], query, [answer[n] for n in numbers]))
    waiting = [search for search in searches if search.rows]
    while waiting:
        lines = [line for search in waiting for line in ({"index": index}, search.body())]
        found = client.call("POST", _PATH, lines=lines)
        meter.bytes += found.size
        answers = found.content.get("responses", ())
        if len(answers) != len(waiting):
            _refuse("did not answer every query")
        for search, answer in zip(waiting, answers, strict=True):
            try:
                search.take(answer)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                _refuse(f"gave an answer that makes no sense ({type(error).__name__})")
        waiting = [search for search in waiting if not search.done]
    return kept


def _any_part(by_name: Mapping[str, Query]) -> Query:
    """Return one query for several parts; parts with equal queries share one."""
    shared: dict[str, tuple[Query, list[str]]] = {}
    for name, query in by_name.items():
        shared.setdefault(json.dumps(query), (query, []))[1].append(name)
    if len(shared) == 1:
        return next(iter(shared.values()))[0]
    found = some(every([one_of("part", names), query]) for query, names in shared.values())
    assert found is not None  # noqa: S101  (no term of it is)
    return found


def count_documents(client: Client, index: str, parts: Sequence[PartRecord]) -> None:
    """Check that every row of parts has its document.

    Raises
    ------
    MetadataCorruptError
        When it has not.
    """
    search = {**_Search(parts, {"match_none": {}}, []).body(), "size": 0}
    answers = client.call("POST", _PATH, lines=[{"index": index}, search]).content.get("responses", ())
    if not answers:
        _refuse("did not answer every query")
    _check(answers[0], parts)


def _check(answer: Mapping[str, Any], parts: Sequence[PartRecord]) -> None:
    """Believe an answer only if it is whole and about documents that are all there."""
    if "error" in answer or answer.get("status", 200) >= 300:
        text = reason_of(answer)
        if "index_not_found" in text:
            _missing("their index is gone")
        _refuse(f"answered a query with {answer.get('status')}: {text}")
    if answer.get("timed_out") is not False or answer["_shards"].get("failed") or not answer["_shards"].get("total"):
        _refuse("answered a query only in part")
    buckets = answer["aggregations"]["parts"]["buckets"]
    counts = {bucket["key"]: bucket["doc_count"] for bucket in buckets}
    if any(counts.get(part.file, 0) != part.rows for part in parts):
        _missing("some were deleted by hand, or replaced meanwhile")


def _missing(what: str) -> None:
    msg = f"the searchable documents of the metadata are not all there: {what}; `refresh()` makes the metadata again"
    raise MetadataCorruptError(msg)


def _refuse(what: str) -> None:
    msg = f"the search server {what}; everything is read"
    raise MetadataStoreError(msg)
