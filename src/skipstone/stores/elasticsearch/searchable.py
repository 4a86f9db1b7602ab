"""Index-time translation: how the stored fields of a metadata type become fields that the server can search.

The registry is by *metadata type*, which settles what is stored.  Another package makes its own searchable by

    @searchable(MyMetadata)
    def my_fields(record, stored, row_count):
        return {"least": plain(stored["least"])}

and a clause on it translatable by ``translation.translates``.  What is not registered is not searchable: its clauses
are evaluated by Arrow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone import registry
from skipstone.indexes.affix import PrefixMetadata, SuffixMetadata
from skipstone.indexes.bloom_filter import BloomFilterMetadata
from skipstone.indexes.feature.index import FeatureMetadata
from skipstone.indexes.gap_list.index import GapListMetadata
from skipstone.indexes.geo_box.index import GeoBoxMetadata
from skipstone.indexes.hybrid import HybridMetadata
from skipstone.indexes.minmax import MinMaxMetadata
from skipstone.indexes.value_list import ValueListMetadata
from skipstone.indexing.metadata_type import MetadataType
from skipstone.stores.elasticsearch.encoding import encoded, kind_of
from skipstone.stores.metadata_store import IndexRecord
from skipstone.toolkit.elements import NAN_ELEMENTS, NULL_ELEMENTS

__all__ = ["SearchField", "Stored", "boxes", "lists", "plain", "search_fields", "searchable"]

_MOST_BOXES = 1_000
_MOST_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class SearchField:
    """A searchable field of all rows of a part.

    ``kind`` is ``l``, ``k`` or ``n`` (nested), ``type`` the Arrow type of the single values, by which literals are
    encoded.  A row is a value, or ``None`` where nothing is known; of ``listed`` fields a list, which may be empty.
    """

    kind: str
    type: pa.DataType
    rows: list[Any]
    listed: bool = False


Stored: TypeAlias = Mapping[str, pa.Array]
SearchFields: TypeAlias = Mapping[str, SearchField | None]
Translation: TypeAlias = Callable[[IndexRecord, Stored, pa.Array], SearchFields]
_T = TypeVar("_T", bound=Translation)

_translations: dict[type[MetadataType], Translation] = {}


def searchable(*metadata_types: type[MetadataType]) -> Callable[[_T], _T]:
    """Register how the fields of metadata types become searchable; a later registration replaces an earlier one.

    The function gets the index's record, its stored fields by name, and the row counts of the part's rows.  It gives
    fields by the names that query-time translations ask for; ``None`` for one that cannot be searched.
    """

    def register(function: _T) -> _T:
        for metadata_type in metadata_types:
            _translations[metadata_type] = function
        return function

    return register


def search_fields(record: IndexRecord, stored: Stored, row_count: pa.Array) -> dict[str, SearchField]:
    """Return the searchable fields of an index in a part; none for a type that is not known or has no translation."""
    index_type = registry.find_index(record.type_name)
    function = None if index_type is None else _translations.get(index_type.metadata_type)
    if function is None:
        return {}
    return {n: found for n, found in function(record, stored, row_count).items() if found is not None}


def plain(array: pa.Array | None) -> SearchField | None:
    """Make a field of single values searchable."""
    kind = None if array is None else kind_of(array.type)
    rows = None if array is None or kind is None else encoded(array)
    return None if array is None or kind is None or rows is None else SearchField(kind, array.type, rows)


def lists(array: pa.Array | None) -> SearchField | None:
    """Make a field of lists searchable: a document has all values of its row."""
    if array is None or not pa.types.is_list(array.type) or array.nbytes > _MOST_BYTES:
        return None
    kind, type_ = kind_of(array.type.value_type), array.type.value_type
    offsets, values = _flat(array)
    forms = None if kind is None or values.null_count else encoded(values)
    if kind is None or forms is None:
        return None
    return SearchField(kind, type_, _split(array, offsets, forms), listed=True)


def boxes(array: pa.Array | None, ends: tuple[str, ...]) -> SearchField | None:
    """Make a field of lists of boxes searchable, each box with as many numbers as it has ends."""
    if array is None or not pa.types.is_list(array.type):
        return None
    kind, type_ = kind_of(array.type.value_type), array.type.value_type
    offsets, values = _flat(array)
    forms = None if kind is None else encoded(values)
    counts = np.diff(offsets)
    if kind is None or forms is None or (counts % len(ends)).any() or counts.max(initial=0) > _MOST_BOXES:
        return None
    names = [f"{kind}_{end}" for end in ends]
    each = [
        {name: form for name, form in zip(names, forms[n : n + len(ends)], strict=True) if form is not None}
        for n in range(0, len(forms), len(ends))
    ]
    return SearchField("n", type_, _split(array, offsets // len(ends), each), listed=True)


def _flat(array: pa.ListArray) -> tuple[Any, pa.Array]:
    """Return the offsets of lists, from 0, and their values."""
    offsets = array.offsets.to_numpy().astype(np.int64)
    return offsets - offsets[0], array.values.slice(offsets[0], offsets[-1] - offsets[0])


def _split(array: pa.ListArray, offsets: Any, values: list[Any]) -> list[Any]:
    """Cut values into the lists that they came from."""
    valid = array.is_valid().to_pylist()
    ends = offsets.tolist()
    return [values[ends[n] : ends[n + 1]] if known else None for n, known in enumerate(valid)]


def _counts(stored: Stored, row_count: pa.Array) -> dict[str, SearchField | None]:
    """Make counts searchable, and with them how many rows are not NULL, and how many are neither NULL nor NaN.

    A query cannot compare two fields of a document; the differences are null where a count is, as in Arrow.
    """
    names = ("null_count", "nan_count", NULL_ELEMENTS, NAN_ELEMENTS)
    found = {name: plain(stored[name]) for name in names if name in stored}
    if "null_count" in stored:
        present = pc.subtract(row_count, stored["null_count"])
        found["present"] = plain(present)
        if "nan_count" in stored:
            found["ordinary"] = plain(pc.subtract(present, stored["nan_count"]))
    return found


@searchable(MinMaxMetadata)
def _bounds(record: IndexRecord, stored: Stored, row_count: pa.Array) -> SearchFields:  # noqa: ARG001
    return {"lower": plain(stored["lower"]), "upper": plain(stored["upper"]), **_counts(stored, row_count)}


@searchable(ValueListMetadata, BloomFilterMetadata, HybridMetadata)
def _values(record: IndexRecord, stored: Stored, row_count: pa.Array) -> SearchFields:  # noqa: ARG001
    found = {"values": lists(stored.get("values")), "hashes": plain(stored.get("hashes"))}
    return {**found, **_counts(stored, row_count)}


@searchable(PrefixMetadata, SuffixMetadata)
def _pieces(record: IndexRecord, stored: Stored, row_count: pa.Array) -> SearchFields:
    """Separate whole values from cut ones, because other tests apply to these."""
    name = "prefixes" if "prefixes" in stored else "suffixes"
    length = record.options.get("length")
    found = lists(stored[name])
    if found is None or not isinstance(length, int):
        return _counts(stored, row_count)
    whole = [None if row is None else [piece for piece in row if len(piece) < length] for row in found.rows]
    cut = [None if row is None else [piece for piece in row if len(piece) >= length] for row in found.rows]
    pieces = {key: SearchField("k", found.type, rows, listed=True) for key, rows in (("whole", whole), ("cut", cut))}
    return {**pieces, **_counts(stored, row_count)}


@searchable(GapListMetadata)
def _intervals(record: IndexRecord, stored: Stored, row_count: pa.Array) -> SearchFields:  # noqa: ARG001
    return {"intervals": boxes(stored["bounds"], ("low0", "high0")), **_counts(stored, row_count)}


@searchable(GeoBoxMetadata)
def _places(record: IndexRecord, stored: Stored, row_count: pa.Array) -> SearchFields:  # noqa: ARG001
    numbers = stored["boxes"]
    if pa.types.is_list(numbers.type) and numbers.type.value_type == pa.float32():
        numbers = numbers.cast(pa.list_(pa.float64()))
    counts = {name: plain(stored[name]) for name in ("nan_count", "empty_count") if name in stored}
    return {"boxes": boxes(numbers, ("low0", "low1", "high0", "high1")), **counts}


@searchable(FeatureMetadata)
def _features(record: IndexRecord, stored: Stored, row_count: pa.Array) -> SearchFields:  # noqa: ARG001
    return {name: plain(array) for name, array in stored.items()}
