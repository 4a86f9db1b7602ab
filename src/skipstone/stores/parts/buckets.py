"""Buckets: a large field that is looked up is kept as many columns, of which a lookup reads few.

A *set* (a list whose order means nothing) is cut by the hash of its values: equal values are in the same bucket in
every object, so that a bucket's dictionary has each of them once.  A *filter* is cut into equal slices; which slice has
a bit follows from the literal alone, whatever an object's filter is long.  Filters that are blocked are cut between
blocks, so that a literal needs one slice: long ones finely, short ones coarsely.  Putting the buckets together gives
the field again, the order of a set aside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.querying.lookup import BLOCKS, FILTER, MOST_BLOCKS, SET, PartFilters, kind_of, turns_and_blocks
from skipstone.stores.metadata_store import field_column
from skipstone.stores.parquet.encodings import stored_size
from skipstone.stores.parts.columns import bucket_column, whole_column
from skipstone.stores.parts.filter_slices import interleaving, joined_filters, levels_for, slices
from skipstone.stores.parts.set_hashes import set_hashes
from skipstone.toolkit.values import exact_array

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from skipstone.querying.lookup import Lookup
    from skipstone.stores.metadata_store import IndexRecord

__all__ = ["Buckets", "buckets_for", "choose_buckets", "filters_of", "is_filter", "joined", "split"]

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
    """How one field of one part is cut: ``count`` is a power of two, above 1.

    Parameters
    ----------
    kind, count
        What is cut, and into how many buckets.
    coarse
        Of blocked filters: the numbers of slices, in descending order, of those with too few blocks for ``count``.
    by
        Of blocked filters: the column that says how they are blocked, which who cuts them needs.
    """

    kind: str
    count: int
    coarse: tuple[int, ...] = ()
    by: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        counts = (self.count, *self.coarse)
        if (
            self.kind not in (SET, FILTER, BLOCKS)
            or (self.coarse and self.kind != BLOCKS)
            or any(not 2 <= count <= 1 << 16 or count & (count - 1) for count in counts)
            or list(counts) != sorted(set(counts), reverse=True)
        ):
            msg = f"buckets of kind {self.kind!r}, {', '.join(map(str, counts))} of them"
            raise ValueError(msg)

    @property
    def levels(self) -> tuple[int, ...]:
        """The numbers of slices that filters are cut into."""
        return (self.count, *self.coarse)

    def columns(self, column: str, numbers: Sequence[int] | None = None) -> tuple[str, ...]:
        """Name the columns that a field is kept in, or those of some buckets; first that of filters left whole."""
        names = [bucket_column(column, number) for number in range(self.count)]
        names += [bucket_column(column, number, count) for count in self.coarse for number in range(count)]
        chosen = names if numbers is None else [names[number] for number in numbers]
        return (*([] if self.kind == SET else [whole_column(column)]), *chosen)

    def samples(self, column: str) -> tuple[str, ...]:
        """Name the columns that tell how large the others are: of each number of slices the first."""
        if self.kind == SET:
            return ()
        coarse = (bucket_column(column, 0, count) for count in self.coarse)
        return (whole_column(column), *([bucket_column(column, 0), *coarse] if self.kind == BLOCKS else []))

    def numbers(self, lookup: Lookup, type_: pa.DataType) -> tuple[int, ...] | None:
        """Number the buckets that a lookup needs, given the field's type; ``None`` for all."""
        if self.kind == SET:
            values = exact_array(lookup.values, type_.value_type)
            hashes = None if values is None else set_hashes(values)
            if hashes is None:
                return None
            return tuple(sorted(set((hashes >> np.uint64(_shift(self.count))).tolist()))) or (0,)
        places = lookup.places if self.kind == FILTER else lookup.blocks or lookup.places
        found: list[int] = []
        for start, count in zip(self._starts(), self.levels, strict=True):
            found += sorted({start + (place >> _shift(count)) for place in places}) or [start]
        return tuple(found)

    def _starts(self) -> list[int]:
        """Return where the slices of each level begin among all."""
        return [sum(self.levels[:n]) for n in range(len(self.levels))]


def _shift(count: int) -> int:
    """Return by how much a number of 64 bits is shifted so that its leading bits number one of ``count`` buckets."""
    return 64 - (count.bit_length() - 1)


def is_filter(said: str | None) -> bool:
    """Whether a kind, as ``MetadataType.lookups`` names it, is one of filters."""
    return said is not None and kind_of(said)[0] in (FILTER, BLOCKS)


def choose_buckets(
    kind: str, column: pa.ChunkedArray, blocks: npt.NDArray[Any] | None = None, by: str = ""
) -> Buckets | None:
    """Choose how to cut a field, by what is in it; ``None`` to leave it whole.

    ``blocks`` has the binary logarithm of each filter's number of blocks, and ``by`` names the column that it is from.
    """
    if column.nbytes < SMALLEST or not _can_cut(kind, column.type):
        return None
    if kind == SET:
        return _set_buckets(column)
    lengths = pc.binary_length(column).fill_null(0).to_numpy()
    logs = np.zeros(len(lengths), np.int64) if blocks is None else blocks
    cost, count = _evenly(lengths, logs, _most(column.nbytes))
    blocked, levels = levels_for(lengths, logs, _BUCKET_BYTES)
    if levels and blocked < cost:
        return Buckets(BLOCKS, levels[0], levels[1:], by)
    return Buckets(FILTER, count, by=by) if count > 1 else None


def _evenly(lengths: npt.NDArray[Any], logs: npt.NDArray[Any], most: int) -> tuple[float, int]:
    """Return what a lookup reads of filters that all are cut into one number of slices, and the best such number."""
    total = int(lengths.sum())
    costs = {1: float(total)}
    count = 2
    while count <= most:
        cut = int(lengths[_is_cut(lengths, count, logs)].sum())
        costs[count] = total - cut + cut * _PROBES / count
        count *= 2
    best = min(costs, key=lambda n: (costs[n], n))
    return costs[best], best


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
    found: dict[str, Buckets] = {}
    for column, kind, by in _looked_up(indexes):
        if column in table.column_names:
            blocks = blocks_in(table, by)
            cut = choose_buckets(kind, table.column(column), blocks, "" if blocks is None else by)
            if cut is not None:
                found[column] = cut
    return found


def _looked_up(indexes: Sequence[IndexRecord]) -> Iterator[tuple[str, str, str]]:
    """Yield the columns that are looked up, their kinds, and the columns that say how they are blocked, if any."""
    for record in indexes:
        for name, said in record.lookups.items():
            kind, companion = kind_of(said)
            yield field_column(record.id, name), kind, field_column(record.id, companion) if companion else ""


def blocks_in(table: pa.Table, by: str) -> npt.NDArray[np.int64] | None:
    """Return the binary logarithm of the number of blocks of each row's filter; ``None`` where nothing says that."""
    if by not in table.column_names or not pa.types.is_integer(table.schema.field(by).type):
        return None
    return turns_and_blocks(table.column(by).fill_null(0).to_numpy())[1]


def _most(size: int) -> int:
    """Return the most buckets for a column of some bytes: each is to be worth a request."""
    return max(1, min(MOST, 1 << (size // _BUCKET_BYTES).bit_length() - 1)) if size >= _BUCKET_BYTES else 1


def _can_cut(kind: str, type_: pa.DataType) -> bool:
    """Whether a field of a type can be cut."""
    if kind in (FILTER, BLOCKS):
        return bool(pa.types.is_binary(type_))
    return bool(kind == SET and pa.types.is_list(type_) and set_hashes(pa.array([], type_.value_type)) is not None)


def _is_cut(lengths: npt.NDArray[Any], count: int, logs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which filters are cut: those that give slices of whole bytes, not too short ones, and whole blocks."""
    found: npt.NDArray[np.bool_] = (lengths % count == 0) & (lengths >= LEAST_SLICE * count)
    return found & ((logs == 0) | (1 << logs >= count))


def split(column: pa.Array, buckets: Buckets, blocks: npt.NDArray[Any] | None = None) -> list[pa.Array]:
    """Cut a field, in the order of ``Buckets.columns``; ``blocks`` is as in ``choose_buckets``."""
    if buckets.kind == SET:
        return list(_split_set(column, buckets.count))
    lengths = pc.binary_length(column).fill_null(0).to_numpy()
    logs = np.zeros(len(column), np.int64) if blocks is None else blocks
    valid = np.asarray(column.is_valid())
    rest = valid & (lengths > 0)
    cuts = []
    for count in buckets.levels:
        here = rest & (_is_cut(lengths, count, logs) if buckets.kind == FILTER else _holds(lengths, logs, count))
        cuts.append(here)
        rest &= ~here
    whole = pc.if_else(pa.array(np.logical_or.reduce(cuts)), pa.scalar(None, column.type), column)
    return [whole, *(s for n, cut in zip(buckets.levels, cuts, strict=True) for s in slices(column, n, cut, lengths))]


def _holds(lengths: npt.NDArray[Any], logs: npt.NDArray[Any], count: int) -> npt.NDArray[np.bool_]:
    """Return which filters have blocks enough for a number of slices."""
    found: npt.NDArray[np.bool_] = (1 << np.clip(logs, 0, MOST_BLOCKS) >= count) & (lengths % count == 0)
    return found


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


def joined(kind: str, pieces: Sequence[pa.Array]) -> pa.Array:
    """Put pieces of a field together, row by row: all of them, or those of a set that were looked up."""
    if len(pieces) == 1:
        return pieces[0]
    return _joined_sets(pieces) if kind == SET else joined_filters(pieces)


def _joined_sets(pieces: Sequence[pa.ListArray]) -> pa.Array:
    lengths = np.stack([pc.list_value_length(piece).fill_null(0).to_numpy() for piece in pieces])
    order, ends = interleaving(lengths)
    flat = pa.concat_arrays([piece.flatten() for piece in pieces]).take(pa.array(order))
    offsets = pa.array(np.concatenate(([0], ends)).astype(np.int32))
    missing = pieces[0].is_null() if pieces[0].null_count else None
    return pa.ListArray.from_arrays(offsets, flat, type=pieces[0].type, mask=missing)


def filters_of(columns: Mapping[str, pa.Array], column: str, buckets: Buckets) -> PartFilters:
    """Return the filters of a part, made of the column of whole filters and of the slices that were read."""
    names = iter(buckets.columns(column)[1:])
    levels = {
        count: {n: columns[name] for n, name in enumerate(islice(names, count)) if name in columns}
        for count in buckets.levels
    }
    return PartFilters(columns[whole_column(column)], levels)
