"""Point lookups: which part of a field a clause looks at, so that a store need not read all of it.

Two kinds of field can be looked up.  A *set* is a list whose order means nothing, such as the distinct values of an
object: who looks for some values need not see the others.  A *filter* is a string of bits, such as a Bloom filter, of
which some places are looked at, given as fractions of its length.
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

__all__ = ["FILTER", "SET", "Filters", "FiltersOfParts", "HasFilters", "Lookup", "PartFilters"]

SET, FILTER = "set", "filter"
"""The kinds of field that can be looked up, as ``MetadataType.lookups`` names them."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """What is looked for in one field: values of a set, or places of a filter.

    A place is a number of 64 bits whose upper half, divided by 2³², is the fraction of the filter's length.
    """

    values: tuple[Any, ...] = ()
    places: tuple[int, ...] = ()

    @classmethod
    def of_all(cls, lookups: Iterable[Lookup]) -> Lookup:
        """Look for what any of them looks for."""
        found = tuple(lookups)
        return cls(tuple(v for one in found for v in one.values), tuple(p for one in found for p in one.places))


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
    slices
        Binary arrays by their number; null where the filter is not in slices.
    count
        How many slices a filter has: a power of two.
    """

    def __init__(self, whole: pa.Array, slices: Mapping[int, pa.Array] | None = None, count: int = 1) -> None:
        self._whole = _Bytes(whole)
        self._slices = {number: _Bytes(array) for number, array in (slices or {}).items()}
        self._shift = 64 - (count.bit_length() - 1)
        valid = np.asarray(whole.is_valid())
        self.known = valid.copy()
        self.sizes = np.where(valid, self._whole.lengths, 0).astype(np.uint64) * np.uint64(8)
        self._width = np.zeros(len(whole), np.uint64)  # bits of a slice
        for array, one in zip((slices or {}).values(), self._slices.values(), strict=True):
            cut = np.asarray(array.is_valid())
            self.known |= cut
            self._width[cut] = one.lengths[cut].astype(np.uint64) * np.uint64(8)
        np.copyto(self.sizes, self._width * np.uint64(count), where=self._width > 0)

    def might_be_set(self, place: int, rows: Rows) -> npt.NDArray[np.bool_]:
        """Look at the byte that has the bit; a slice has just the places whose leading bits are its number."""
        positions = (np.uint64(place >> 32) * self.sizes[rows]) >> np.uint64(32)
        answer = np.ones(len(rows), np.bool_)
        cut = self._width[rows] > 0
        if not cut.all():
            answer[~cut] = self._whole.bits(rows[~cut], positions[~cut])
        number = place >> self._shift if self._shift < 64 else 0
        if cut.any() and number in self._slices:
            here = rows[cut]
            answer[cut] = self._slices[number].bits(here, positions[cut] - np.uint64(number) * self._width[here])
        return answer


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
