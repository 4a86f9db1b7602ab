"""Merging parts: what is known of each object when a later part replaces, adds to or removes what earlier ones say.

Parts are applied in sequence.  A row of an object in a new state (other length, time or e-tag), a row that is not
trusted, and a removal end what earlier parts know of the object; a trusted row in the same state adds its indexes to
it, and where two parts hold the same index, the later one counts.  An object once replaced or removed never meets its
older metadata again, not even when it comes back with its old length and time.

Vectorised: every object gets a number (the order of its first appearance), every row of every part a global row
number, and each index one array that says from which global row an object's metadata comes.
"""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    Booleans = npt.NDArray[np.bool_]
    Rows = npt.NDArray[np.int64]

__all__ = ["NOWHERE", "Merge", "PartRows", "gather", "merge_parts"]

NOWHERE = -1
"""The global row of an object of which nothing is known."""


@dataclass(frozen=True, slots=True)
class PartRows:
    """The identity columns of one part."""

    digest: pa.FixedSizeBinaryArray
    length: Rows
    modified: Rows
    etag: pa.StringArray
    trusted: Booleans
    removed: Booleans


@dataclass(frozen=True)
class Merge:
    """The live objects of a sequence of parts, and where each one's newest row is.

    ``newest`` has a global row per live object; ``offsets`` the first global row of each part and, last, the total.
    """

    newest: Rows
    offsets: Rows
    live: Rows
    era: Rows
    codes: tuple[npt.NDArray[np.int32], ...]
    usable: tuple[Booleans, ...]
    _sources: dict[object, Rows] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        return len(self.newest)

    @property
    def nbytes(self) -> int:
        """An estimate of the memory taken, a few sources included."""
        return sum(a.nbytes for a in (*self.codes, *self.usable)) + 8 * len(self.era) + 6 * self.newest.nbytes

    def sources(self, covered: Mapping[int, Booleans | None], key: object = None) -> Rows:
        """Return for each live object the global row that has an index's metadata, or ``NOWHERE``.

        Parameters
        ----------
        covered
            For each part (by number) that holds the index, the rows it covers; ``None`` for all of them.
        key
            Equal keys promise equal ``covered``: the answer is then made once.
        """
        if key is None and all(rows is None for rows in covered.values()):
            key = tuple(sorted(covered))
        if key is not None and key in self._sources:
            return self._sources[key]
        found = np.full(len(self.era), NOWHERE, np.int64)
        for part in sorted(covered):
            rows = covered[part]
            usable = self.usable[part] if rows is None else self.usable[part] & rows
            local = np.flatnonzero(usable)
            found[self.codes[part][local]] = local + self.offsets[part]
        found[found < self.era] = NOWHERE
        found = found[self.live]
        if key is not None:
            with self._lock:
                self._sources[key] = found
        return found


def merge_parts(parts: Sequence[PartRows]) -> Merge:
    """Merge parts, given in ascending sequence."""
    offsets = np.concatenate([[0], np.cumsum([len(part.length) for part in parts])]).astype(np.int64)
    codes = _split(_codes([part.digest for part in parts]), offsets)
    etags = _split(_codes([part.etag for part in parts]), offsets)
    objects = 1 + max((int(code.max()) for code in codes if len(code)), default=-1)
    alive = np.zeros(objects, np.bool_)
    length = np.zeros(objects, np.int64)
    modified = np.zeros(objects, np.int64)
    etag = np.zeros(objects, np.int32)
    newest = np.full(objects, NOWHERE, np.int64)
    era = np.zeros(objects, np.int64)
    usable = []
    for number, part in enumerate(parts):
        code = codes[number]
        here = part.trusted & ~part.removed
        adds = (
            here
            & alive[code]
            & (length[code] == part.length)
            & (modified[code] == part.modified)
            & (etag[code] == etags[number])
        )
        era[code[~adds]] = offsets[number]
        alive[code] = ~part.removed
        length[code] = part.length
        modified[code] = part.modified
        etag[code] = etags[number]
        newest[code] = np.arange(offsets[number], offsets[number + 1])
        usable.append(here)
    live = np.flatnonzero(alive)
    return Merge(newest[live], offsets, live, era, tuple(codes), tuple(usable))


def gather(
    offsets: Rows, rows: Rows, kind: pa.DataType, column: Callable[[int], pa.Array | pa.ChunkedArray]
) -> pa.Array:
    """Take global rows of a column that is spread over parts; null where the row is ``NOWHERE``.

    Parameters
    ----------
    offsets
        The first global row of each part, and the total.
    rows
        Global rows.
    kind
        The column's type.
    column
        Returns a part's column by the part's number; asked only for parts that are needed.
    """
    needed = [n for n in range(len(offsets) - 1) if np.any((rows >= offsets[n]) & (rows < offsets[n + 1]))]
    chunks: list[pa.Array] = []
    shifted = np.zeros(len(rows), np.int64)
    start = 0
    for number in needed:
        found = column(number)
        pieces = found.chunks if isinstance(found, pa.ChunkedArray) else [found]
        chunks.extend(piece.cast(kind) if piece.type != kind else piece for piece in pieces)
        inside = (rows >= offsets[number]) & (rows < offsets[number + 1])
        shifted[inside] = rows[inside] - offsets[number] + start
        start += int(offsets[number + 1] - offsets[number])
    if not chunks:
        return pa.nulls(len(rows), kind)
    whole = pa.concat_arrays(chunks) if len(chunks) > 1 else chunks[0]
    return whole.take(pa.array(shifted, mask=rows == NOWHERE))


def _codes(arrays: Sequence[pa.Array]) -> npt.NDArray[np.int32]:
    """Number equal values equally, in the order of their first appearance."""
    filled = [array for array in arrays if len(array)]
    if not filled:
        return np.zeros(0, np.int32)
    return (
        pa.concat_arrays(filled).dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    )


def _split(codes: npt.NDArray[np.int32], offsets: Rows) -> list[npt.NDArray[np.int32]]:
    """Cut one array of all parts' rows back into one per part."""
    return [codes[start:stop] for start, stop in itertools.pairwise(offsets)]
