"""Point lookups: which part of a field a clause looks at, so that a store need not read all of it.

Two kinds of field can be looked up.  A *set* is a list whose order means nothing, such as the distinct values of an
object: who looks for some values need not see the others.  A *filter* is a string of bits, such as a Bloom filter, of
which some places are looked at, given as fractions of its length.  Filters may be *blocked*: all bits of a value lie in
one of a power of two of equal blocks, which the leading bits of the value's hash number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from skipstone.indexing.index import Index

    Rows = npt.NDArray[np.intp]

__all__ = [
    "BLOCKS",
    "FILTER",
    "MOST_BLOCKS",
    "SET",
    "Filters",
    "FiltersOfParts",
    "HasFilters",
    "Lookup",
    "PartFilters",
    "kind_of",
    "turns_and_blocks",
]

SET = "set"
"""What ``MetadataType.lookups`` says of a field that is a list whose order means nothing."""
FILTER = "filter"
"""What it says of a field that is a string of bits, looked at by places."""
BLOCKS = "blocks"
"""What it says of a filter that may be blocked.

The field that says so, as ``turns_and_blocks`` reads it, is named behind a colon: ``blocks:hashes``.
"""
MOST_BLOCKS = 8
"""The binary logarithm of the most blocks of a filter."""
_TURNS_BITS = 16


def kind_of(said: str) -> tuple[str, str]:
    """Return the kind of a field that can be looked up, and the field that says into how many blocks it is divided.

    >>> kind_of("set"), kind_of("blocks:hashes")
    (('set', ''), ('blocks', 'hashes'))
    """
    kind, _, companion = said.partition(":")
    return kind, companion


def turns_and_blocks(numbers: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return how many bits a value sets in each filter, and the binary logarithm of the filter's number of blocks.

    A filter that is not blocked has the number of bits alone; a blocked one has ``-(logarithm << 16 | bits)``: whoever
    does not know of blocks finds a number of bits that makes no sense, and does not use the filter.
    """
    known = numbers.astype(np.int64)
    negated = np.where(known < 0, -known, 0)
    return np.where(known < 0, negated & ((1 << _TURNS_BITS) - 1), known), negated >> _TURNS_BITS


@dataclass(frozen=True, slots=True)
class Lookup:
    """What is looked for in one field: values of a set, or places of a filter.

    A place is a number of 64 bits whose upper half, divided by 2³², is the fraction of the filter's length.  ``blocks``
    has for each value the place whose leading bits number its block in a filter that is blocked.
    """

    values: tuple[Any, ...] = ()
    places: tuple[int, ...] = ()
    blocks: tuple[int, ...] = ()

    @classmethod
    def of_all(cls, lookups: Iterable[Lookup]) -> Lookup:
        """Look for what any of them looks for."""
        found = tuple(lookups)
        return cls(
            tuple(v for one in found for v in one.values),
            tuple(p for one in found for p in one.places),
            tuple(b for one in found for b in one.blocks),
        )


class Filters(Protocol):
    """The filters of some objects, or those parts of them that were looked up."""

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Whether each object's filter is known."""
        ...

    @property
    def sizes(self) -> npt.NDArray[np.uint64]:
        """The bits of each object's filter."""
        ...

    def might_be_set(self, place: int, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return for some objects, whose filters are known and not empty, whether the bit at a place may be set.

        It may where that part of the filter was not looked up.
        """
        ...


@runtime_checkable
class HasFilters(Protocol):
    """Metadata that can give filters without putting all of their bits together."""

    def filters(self, index: Index, name: str) -> Filters:
        """Return the filters that a field of an index holds."""
        ...


class PartFilters:
    """Filters that are whole, or cut into equal slices of which some are there.

    Parameters
    ----------
    whole
        A binary array; null where the filter is not known or is in slices.
    levels
        By the number of slices that a filter is cut into, a power of two: binary arrays by the number of the slice;
        null where the filter is not cut into so many.
    """

    def __init__(self, whole: pa.Array, levels: Mapping[int, Mapping[int, pa.Array]] | None = None) -> None:
        self._whole = _Bytes(whole)
        self._levels = [_Level(count, slices, len(whole)) for count, slices in (levels or {}).items()]
        valid = np.asarray(whole.is_valid())
        self.known = valid.copy()
        self.sizes = np.where(valid, self._whole.lengths, 0).astype(np.uint64) * np.uint64(8)
        for level in self._levels:
            self.known |= level.cut
            np.copyto(self.sizes, level.width * np.uint64(level.count), where=level.width > 0)

    def might_be_set(self, place: int, rows: Rows) -> npt.NDArray[np.bool_]:
        """Look at the byte that has the bit; a slice has just the places whose leading bits are its number."""
        positions = (np.uint64(place >> 32) * self.sizes[rows]) >> np.uint64(32)
        answer = np.ones(len(rows), np.bool_)
        whole = np.ones(len(rows), np.bool_)
        for level in self._levels:
            cut = level.width[rows] > 0
            if cut.any():
                answer[cut] = level.bits(place, rows[cut], positions[cut])
                whole &= ~cut
        if whole.any():
            answer[whole] = self._whole.bits(rows[whole], positions[whole])
        return answer


class _Level:
    """Filters that are cut into one number of slices."""

    def __init__(self, count: int, slices: Mapping[int, pa.Array], rows: int) -> None:
        self.count = count
        self._shift = 64 - (count.bit_length() - 1)
        self._slices = {number: _Bytes(array) for number, array in slices.items()}
        self.cut = np.zeros(rows, np.bool_)
        self.width = np.zeros(rows, np.uint64)  # bits of a slice
        for array, one in zip(slices.values(), self._slices.values(), strict=True):
            here = np.asarray(array.is_valid())
            self.cut |= here
            self.width[here] = one.lengths[here].astype(np.uint64) * np.uint64(8)

    def bits(self, place: int, rows: Rows, positions: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Return the bits at a place; all may be set where its slice is not there."""
        number = place >> self._shift
        if number not in self._slices:
            return np.ones(len(rows), np.bool_)
        return self._slices[number].bits(rows, positions - np.uint64(number) * self.width[rows])


class FiltersOfParts:
    """Filters of objects whose metadata is spread over several parts.

    Parameters
    ----------
    parts
        The filters in each part, ``None`` for one that has none.
    offsets
        The first global row of each part, and the total.
    rows
        The global row of each object; negative where there is none.
    """

    def __init__(
        self, parts: Sequence[PartFilters | None], offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
    ) -> None:
        self._parts = parts
        self._offsets = offsets
        self._rows = rows
        self.known = np.zeros(len(rows), np.bool_)
        self.sizes = np.zeros(len(rows), np.uint64)
        for number, part in enumerate(parts):
            if part is not None:
                here = self._inside(number, rows)
                local = rows[here] - offsets[number]
                self.known[here] = part.known[local]
                self.sizes[here] = part.sizes[local]

    def might_be_set(self, place: int, rows: Rows) -> npt.NDArray[np.bool_]:
        """Ask each part for the objects that it has."""
        places = self._rows[rows]
        answer = np.ones(len(rows), np.bool_)
        for number, part in enumerate(self._parts):
            here = self._inside(number, places)
            if part is not None and here.any():
                answer[here] = part.might_be_set(place, (places[here] - self._offsets[number]).astype(np.intp))
        return answer

    def _inside(self, number: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        return (rows >= self._offsets[number]) & (rows < self._offsets[number + 1])


class _Bytes:
    """A binary array as NumPy sees it, without a copy of the bytes."""

    def __init__(self, array: pa.Array) -> None:
        if pa.types.is_null(array.type):
            array = array.cast(pa.binary())
        _, offsets, data = array.buffers()
        width = np.int64 if pa.types.is_large_binary(array.type) else np.int32
        if offsets is None:  # an array without rows may have none
            self.starts = np.zeros(len(array) + 1, np.int64)
        else:
            self.starts = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1].astype(np.int64)
        self.lengths = np.diff(self.starts)
        self._data = np.frombuffer(data if data is not None else b"", np.uint8)

    def bits(self, rows: Rows, positions: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Return one bit of each of some rows."""
        byte = self._data[self.starts[rows] + (positions >> np.uint64(3)).astype(np.int64)]
        found: npt.NDArray[np.bool_] = (byte >> (positions & np.uint64(7)).astype(np.uint8)) & 1 == 1
        return found
