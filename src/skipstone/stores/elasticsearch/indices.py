"""The three indices of the store and their mappings: heads, chunks of columns, and searchable objects.

A field of an index gets a *slot*, a name that begins with what it holds: ``l0`` a number, ``k0`` a text, ``n0``
intervals or boxes (nested).  Slots are shared by all datasets, so that the mapping is as large as the widest part and
not as the number of datasets, and two datasets never disagree about a type.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from skipstone.errors import MetadataStoreError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skipstone.stores.elasticsearch.client import Client

__all__ = ["FORMAT", "Indices"]

FORMAT = 1
"""Changes with what the documents mean."""

_META = {"skipstone": FORMAT}
_KEYWORD = {"type": "keyword", "ignore_above": 32_766}  # said, so that no template's idea of too long is taken
_LONG = {"type": "long"}
_BLOB = {"type": "binary"}
_HEADS = {"dynamic": "strict", "_meta": _META, "properties": {
    "dataset": _KEYWORD, "writer_id": _KEYWORD, "version": _LONG, "manifest": _BLOB,
}}  # fmt: skip
_CHUNKS = {"dynamic": "strict", "_meta": _META, "properties": {
    "dataset": _KEYWORD, "part": _KEYWORD, "created": _LONG, "data": _BLOB,
}}  # fmt: skip
_OBJECTS = {
    "dynamic": "true",
    "date_detection": False,
    "_meta": _META,
    "_source": {"enabled": False},
    "dynamic_templates": [
        {"numbers": {"match": "l*", "mapping": _LONG}},
        {"texts": {"match": "k*", "mapping": _KEYWORD}},
        {"boxes": {"match": "n*", "mapping": {"type": "nested"}}},
    ],
    "properties": {
        "dataset": _KEYWORD,
        "part": _KEYWORD,
        "created": _LONG,
        "sequence": _LONG,
        "row": _LONG,
        "known": _KEYWORD,
    },
}
_SETTINGS = {"number_of_shards": 1}
_OBJECT_SETTINGS = {
    **_SETTINGS,
    "mapping.total_fields.limit": 4_000,
    "mapping.nested_fields.limit": 100,
    "max_result_window": 10_000,
    "max_terms_count": 65_536,
}
_SLOT = re.compile(r"([lkn])(_(low|high)[01]|[0-9]{1,4})")


class Indices:
    """The names of a store's indices, and their making.

    Parameters
    ----------
    client
        The server.
    prefix
        How the names begin.
    """

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self.heads = f"{prefix}-heads"
        self.chunks = f"{prefix}-chunks"
        self.objects = f"{prefix}-objects"

    @property
    def documents(self) -> str:
        """The indices that hold parts, as a search names them."""
        return f"{self.chunks},{self.objects}"

    def make(self) -> None:
        """Make the indices that are not there, and check that all are as this release makes them."""
        found = self._mappings()
        made = {
            self.heads: (_HEADS, _SETTINGS),
            self.chunks: (_CHUNKS, _SETTINGS),
            self.objects: (_OBJECTS, _OBJECT_SETTINGS),
        }
        missing = [name for name in made if name not in found]
        for name in missing:
            mapping, settings = made[name]
            body = {"settings": {"index": settings}, "mappings": mapping}
            self._client.call("PUT", name, body, accepts=(400,), write=True)  # 400: another writer was first
        self.check(self._mappings() if missing else found)

    def check(self, mappings: Mapping[str, Any] | None = None) -> None:
        """Refuse indices that are not there or have another mapping: their answers would mean something else.

        Raises
        ------
        MetadataStoreError
            With the name of the index and what to do.
        """
        found = self._mappings() if mappings is None else mappings
        for name, expected in ((self.heads, _HEADS), (self.chunks, _CHUNKS), (self.objects, _OBJECTS)):
            difference = _difference(found.get(name), expected)
            if difference:
                msg = (
                    f"the index {name} of {self._client.url} {difference}: it is not this store's or was changed; set "
                    "spark.skipstone.elasticsearch.index to another prefix, or delete that index and create the "
                    "dataset's indexes again"
                )
                raise MetadataStoreError(msg)

    def _mappings(self) -> dict[str, Any]:
        names = f"{self.heads},{self.chunks},{self.objects}"
        content = self._client.call(
            "GET", f"{names}/_mapping?ignore_unavailable=true", accepts=(404,), write=True
        ).content
        return {n: found["mappings"] for n, found in content.items() if isinstance(found, dict) and "mappings" in found}


def _difference(found: Any, expected: Mapping[str, Any]) -> str | None:
    """Return how a mapping differs from what was asked for, or ``None``."""
    if found is None:
        return "is not there"
    if found.get("_meta") != _META or str(found.get("dynamic")) != expected["dynamic"]:
        return "has a mapping of something else"
    if found.get("dynamic_templates", []) != expected.get("dynamic_templates", []):
        return "has other templates of fields"
    own = expected["properties"]
    for name, field in found.get("properties", {}).items():
        if field != own[name] if name in own else not _is_slot(name, field):
            return f"has a field {name!r} of another type"
    missing = sorted(own.keys() - found.get("properties", {}).keys())
    return f"lacks the field {missing[0]!r}" if missing else None


def _is_slot(name: str, field: Mapping[str, Any]) -> bool:
    """Whether a field that documents brought along is a slot, mapped as its name says."""
    kind = _SLOT.fullmatch(name)
    if kind is None:
        return False
    if kind[1] == "n":
        inner = field.get("properties", {})
        return field.get("type") == "nested" and all(_is_slot(n, f) and n[0] != "n" for n, f in inner.items())
    return dict(field) == (_LONG if kind[1] == "l" else _KEYWORD)
