"""Buckets: a large field that is looked up is kept as many columns, of which a lookup reads few.

A *set* (a list whose order means nothing) is cut by the hash of its values: equal values are in the same bucket in
every object, so that a bucket's dictionary has each of them once.  A *filter* is cut into equal slices; which slice has
a bit follows from the literal alone, whatever an object's filter is long.  Putting the buckets together gives the field
again, the order of a set aside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.querying.lookup import FILTER, SET, PartFilters
from skipstone.stores.metadata_store import field_column
from skipstone.stores.parquet.encodings import stored_size
from skipstone.toolkit.values import exact_array, is_binary_like

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from skipstone.querying.lookup import Lookup
    from skipstone.stores.metadata_store import IndexRecord

__all__ = ["Buckets", "buckets_for", "choose_buckets", "filters_of", "joined", "split"]

MOST = 256
"""Buckets of a field at most: a lookup of one value reads a 256th of a set."""
SMALLEST = 256 << 10
"""A field with fewer bytes stays one column."""
_BUCKET_BYTES = 16 << 10
MOST_GROWTH = 1.3
"""How many times the bytes a cut field may take in the file."""
_SAMPLE_BYTES = 128 << 20
"""How much of a field is written both ways to compare: enough to see what many objects share."""
LEAST_SLICE = 16
"""Bytes of a slice at least; filters that are shorter stay whole."""
_PROBES = 8
"""Places of a filter that a lookup of one value is taken to look at, to weigh slices against whole filters."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """How one field of one part is cut: ``count`` is a power of two, above 1."""

    kind: str
    count: int

    def __post_init__(self) -> None:
        if self.kind not in (SET, FILTER) or not 2 <= self.count <= 1 << 16 or self.count & (self.count - 1):
            msg = f"buckets of kind {self.kind!r}, {self.count} of them"
            raise ValueError(msg)

    def columns(self, column: str, numbers: Sequence[int] | None = None) -> tuple[str, ...]:
        """Name the columns that a field is kept in, or those of some buckets; first that of filters left whole."""
        chosen = range(self.count) if numbers is None else numbers
        names = tuple(f"{column}#{number}" for number in chosen)
        return (f"{column}#whole", *names) if self.kind == FILTER else names

    def numbers(self, lookup: Lookup, type_: pa.DataType) -> tuple[int, ...] | None:
        """Number the buckets that a lookup needs, given the field's type; ``None`` for all."""
        shift = 64 - (self.count.bit_length() - 1)
        if self.kind == FILTER:
            found = {place >> shift for place in lookup.places}
        else:
            values = exact_array(lookup.values, type_.value_type)
            hashes = None if values is None else set_hashes(values)
            if hashes is None:
                return None
            found = set((hashes >> np.uint64(shift)).tolist())
        return tuple(sorted(found)) or (0,)


def choose_buckets(kind: str, column: pa.ChunkedArray) -> Buckets | None:
    """Choose how to cut a field, by what is in it; ``None`` to leave it whole."""
    if column.nbytes < SMALLEST or not _can_cut(kind, column.type):
        return None
    if kind == SET:
        return _set_buckets(column)
    most = _most(column.nbytes)
    lengths = pc.binary_length(column).fill_null(0).to_numpy()
    total = int(lengths.sum())
    costs = {1: float(total)}
    count = 2
    while count <= most:
        cut = int(lengths[_is_cut(lengths, count)].sum())
        costs[count] = total - cut + cut * _PROBES / count
        count *= 2
    best = min(costs, key=lambda n: (costs[n], n))
    return Buckets(kind, best) if best > 1 else None


def _set_buckets(column: pa.ChunkedArray) -> Buckets | None:
    """Choose how to cut lists: by what they take in the file, and only if cut they do not take much more.

    Lists of consecutive numbers, for one, compress well in their order and badly in any other.
    """
    rows = max(1, int(len(column) * min(1.0, _SAMPLE_BYTES / column.nbytes)))
    sample = pa.concat_arrays(column.slice(0, rows).chunks)
    whole = stored_size(pa.table({"c": sample}))
    stored = whole * len(column) // rows
    if stored < SMALLEST or _most(stored) < 2:
        return None
    cut = Buckets(SET, _most(stored))
    pieces = pa.table(dict(zip(cut.columns("c"), split(sample, cut), strict=True)))
    return cut if stored_size(pieces) <= MOST_GROWTH * whole else None


def buckets_for(table: pa.Table, indexes: Sequence[IndexRecord]) -> dict[str, Buckets]:
    """Choose how to cut the columns of a new part."""
    return {
        column: cut
        for column, kind in _looked_up(indexes)
        if column in table.column_names and (cut := choose_buckets(kind, table.column(column))) is not None
    }


def _looked_up(indexes: Sequence[IndexRecord]) -> Iterator[tuple[str, str]]:
    """Yield the columns that are looked up, and their kinds."""
    for record in indexes:
        for name, kind in record.lookups.items():
            yield field_column(record.id, name), kind


def _most(size: int) -> int:
    """Return the most buckets for a column of some bytes: each is to be worth a request."""
    return max(1, min(MOST, 1 << (size // _BUCKET_BYTES).bit_length() - 1)) if size >= _BUCKET_BYTES else 1


def _can_cut(kind: str, type_: pa.DataType) -> bool:
    """Whether a field of a type can be cut."""
    if kind == FILTER:
        return bool(pa.types.is_binary(type_))
    return bool(kind == SET and pa.types.is_list(type_) and set_hashes(pa.array([], type_.value_type)) is not None)


def _is_cut(lengths: npt.NDArray[Any], count: int) -> npt.NDArray[np.bool_]:
    """Return which filters are cut: those that give slices of whole bytes, not too short ones."""
    found: npt.NDArray[np.bool_] = (lengths % count == 0) & (lengths >= LEAST_SLICE * count)
    return found


def split(column: pa.Array, buckets: Buckets) -> list[pa.Array]:
    """Cut a field, in the order of ``Buckets.columns``."""
    return list(_split_filter(column, buckets.count) if buckets.kind == FILTER else _split_set(column, buckets.count))


def _split_set(lists: pa.ListArray, count: int) -> Iterator[pa.Array]:
    """Cut lists by the hashes of their values; a list that is not known is not known in any bucket."""
    flat = lists.flatten()
    lengths = pc.list_value_length(lists).fill_null(0).to_numpy()
    owners = np.repeat(np.arange(len(lists)), lengths)
    hashes = set_hashes(flat)
    if hashes is None:
        msg = f"values of type {flat.type} have no bucket"
        raise TypeError(msg)
    numbers = (hashes >> np.uint64(64 - (count.bit_length() - 1))).astype(np.uint16)
    order = np.argsort(numbers, kind="stable")
    cuts = np.searchsorted(numbers[order], np.arange(count + 1))
    missing = lists.is_null() if lists.null_count else None
    for number in range(count):
        here = order[cuts[number] : cuts[number + 1]]
        ends = np.cumsum(np.bincount(owners[here], minlength=len(lists)))
        offsets = pa.array(np.concatenate(([0], ends)).astype(np.int32))
        yield pa.ListArray.from_arrays(offsets, flat.take(pa.array(here)), type=lists.type, mask=missing)


def _split_filter(filters: pa.BinaryArray, count: int) -> Iterator[pa.Array]:
    """Cut filters into slices; return those that are too short for it whole."""
    lengths = pc.binary_length(filters).fill_null(0).to_numpy()
    cut = np.asarray(filters.is_valid()) & _is_cut(lengths, count)
    yield pc.if_else(pa.array(cut), pa.scalar(None, filters.type), filters)
    _, offsets, data = filters.buffers()
    starts = np.frombuffer(offsets, np.int32)[filters.offset : filters.offset + len(filters)].astype(np.int64)
    content = np.frombuffer(data if data is not None else b"", np.uint8)
    widths = np.where(cut, lengths // count, 0)
    ends = np.cumsum(widths)
    places = np.concatenate(([0], ends)).astype(np.int32)
    within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - widths, widths)
    first = np.repeat(starts, widths)
    step = np.repeat(widths, widths)
    known = pa.array(cut)
    for number in range(count):
        bytes_ = content[first + number * step + within]
        whole = pa.Array.from_buffers(filters.type, len(filters), [None, pa.py_buffer(places), pa.py_buffer(bytes_)])
        yield pc.if_else(known, whole, pa.scalar(None, filters.type))


def joined(kind: str, pieces: Sequence[pa.Array]) -> pa.Array:
    """Put pieces of a field together, row by row: all of them, or those of a set that were looked up."""
    if len(pieces) == 1:
        return pieces[0]
    return _joined_filters(pieces) if kind == FILTER else _joined_sets(pieces)


def _joined_sets(pieces: Sequence[pa.ListArray]) -> pa.Array:
    lengths = np.stack([pc.list_value_length(piece).fill_null(0).to_numpy() for piece in pieces])
    order, ends = _interleaving(lengths)
    flat = pa.concat_arrays([piece.flatten() for piece in pieces]).take(pa.array(order))
    offsets = pa.array(np.concatenate(([0], ends)).astype(np.int32))
    missing = pieces[0].is_null() if pieces[0].null_count else None
    return pa.ListArray.from_arrays(offsets, flat, type=pieces[0].type, mask=missing)


def _joined_filters(pieces: Sequence[pa.BinaryArray]) -> pa.Array:
    whole, *slices = pieces
    lengths = np.stack([pc.binary_length(piece).fill_null(0).to_numpy() for piece in slices])
    order, ends = _interleaving(lengths)
    content = np.concatenate([_content(piece.drop_null()) for piece in slices])
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content[order])]
    together = pa.Array.from_buffers(whole.type, len(whole), buffers)
    return pc.if_else(slices[0].is_valid(), together, whole)


def _content(array: pa.BinaryArray) -> npt.NDArray[np.uint8]:
    """Return the bytes of an array without nulls, one value after the other."""
    _, offsets, data = array.buffers()
    if data is None or not len(array):
        return np.zeros(0, np.uint8)
    places = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data, np.uint8)[places[0] : places[-1]]


def _interleaving(lengths: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Order the items of pieces, which lie piece after piece, by rows; return that order and where each row ends.

    ``lengths`` has a row per piece and a column per row of the field.
    """
    sources = (np.cumsum(lengths) - lengths.ravel()).reshape(lengths.shape).T.ravel()
    by_row = lengths.T.ravel()
    ends = np.cumsum(by_row)
    order = np.repeat(sources - (ends - by_row), by_row) + np.arange(int(ends[-1]) if len(ends) else 0)
    return order, np.cumsum(lengths.sum(axis=0))


def filters_of(columns: Mapping[str, pa.Array], column: str, buckets: Buckets) -> PartFilters:
    """Return the filters of a part, made of the column of whole filters and of the slices that were read."""
    slices = {n: columns[name] for n in range(buckets.count) if (name := f"{column}#{n}") in columns}
    return PartFilters(columns[f"{column}#whole"], slices, buckets.count)


_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
_FEW = 32
"""Texts that are hashed faster one by one than a byte of each at a time: a single long one would take seconds."""


def set_hashes(values: pa.Array) -> npt.NDArray[np.uint64] | None:
    """Hash values to 64 bits, equal ones alike; ``None`` for a type that has no hash here.

    Text and binary: FNV-1a of the bytes.  Numbers, dates and times: their value as a signed number of 64 bits, of
    floating point the bits of the double with one zero and one NaN, of decimals both halves of the unscaled number, the
    upper one hashed first.  Each goes through the finaliser of SplitMix64.  A null, which no lookup looks for, is 0.
    """
    type_ = values.type
    if is_binary_like(type_):
        return _text_hashes(values)
    if pa.types.is_floating(type_):
        numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        return _mixed(np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64))
    if pa.types.is_decimal128(type_):
        filled = values.fill_null(0)
        halves = np.frombuffer(filled.buffers()[1] or b"", np.uint64)
        halves = halves[2 * filled.offset : 2 * (filled.offset + len(filled))].reshape(-1, 2)
        return _mixed(_mixed(halves[:, 1]) ^ halves[:, 0])
    if pa.types.is_boolean(type_) or pa.types.is_integer(type_):
        signed = values.view(pa.int64()) if pa.types.is_uint64(type_) else values.cast(pa.int64())
        return _mixed(signed.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64))
    if pa.types.is_temporal(type_) and type_.bit_width in (32, 64) and not pa.types.is_interval(type_):
        plain = values.view(pa.int32() if type_.bit_width == 32 else pa.int64())
        return set_hashes(plain)
    return None


def _text_hashes(values: pa.Array) -> npt.NDArray[np.uint64]:
    """Hash each distinct text once, a byte of all of them at a time."""
    encoded = values.dictionary_encode()
    texts = encoded.dictionary
    width = np.int64 if pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type) else np.int32
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets if offsets is not None else b"", width)
    starts = starts[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    content = np.frombuffer(data if data is not None else b"", np.uint8)
    hashes = np.full(len(texts), _FNV_OFFSET, np.uint64)
    if len(texts):
        lengths = np.diff(starts)
        rest = np.argsort(-lengths, kind="stable")
        for place in range(int(lengths.max())):
            rest = rest[: np.searchsorted(-lengths[rest], -place)]  # those longer than this
            if len(rest) < _FEW:
                for text in rest.tolist():
                    hashes[text] = _continued(int(hashes[text]), content[starts[text] + place : starts[text + 1]])
                break
            hashes[rest] = (hashes[rest] ^ content[starts[rest] + place]) * np.uint64(_FNV_PRIME)
    mixed = _mixed(hashes)
    codes = encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)
    return np.append(mixed, np.uint64(0))[codes]


def _continued(found: int, content: npt.NDArray[np.uint8]) -> int:
    """Hash on over the rest of one text."""
    for byte in content.tobytes():
        found = (found ^ byte) * _FNV_PRIME & 0xFFFFFFFFFFFFFFFF
    return found


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Let every bit of a number change every other (the finaliser of SplitMix64)."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))
