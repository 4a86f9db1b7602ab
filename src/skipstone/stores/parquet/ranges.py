"""Ranges of a file: which to ask for together, and a file that consists of those that were read."""

from __future__ import annotations

import io
from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Ranges", "coalesced"]


class Ranges:
    """A file of which only some ranges are there, for readers that know which they need.

    Parameters
    ----------
    blocks
        The bytes of each range, by their offset.
    length
        The length of the whole file.
    """

    closed = False

    def __init__(self, blocks: Mapping[int, bytes], length: int) -> None:
        self._starts = sorted(blocks)
        self._blocks = blocks
        self._length = length
        self._place = 0

    def view(self, offset: int, count: int) -> memoryview:
        """Return bytes without copying them.

        Raises
        ------
        OSError
            When they are not all there.
        """
        found = bisect_right(self._starts, offset) - 1
        start = self._starts[found] if found >= 0 else 0
        block = self._blocks[start] if found >= 0 else b""
        if count and offset + count > start + len(block):
            msg = f"bytes {offset} to {offset + count} were not asked for"
            raise OSError(msg)
        return memoryview(block)[offset - start : offset - start + count]

    def read(self, count: int = -1) -> memoryview:
        """Read on from the present place."""
        count = min(count, self._length - self._place) if count >= 0 else self._length - self._place
        found = self.view(self._place, count)
        self._place += count
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        self._place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._length}[whence]
        return self._place

    def tell(self) -> int:
        """Return the present place."""
        return self._place

    def close(self) -> None:
        """Nothing is open."""


def coalesced(chunks: Sequence[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Join ascending (offset, length) ranges that are at most ``gap`` apart.

    >>> coalesced([(0, 4), (4, 4), (20, 2)], gap=0)
    [(0, 8), (20, 2)]
    """
    joined: list[tuple[int, int]] = []
    for offset, count in chunks:
        if joined and offset <= sum(joined[-1]) + gap:
            start, length = joined[-1]
            joined[-1] = (start, max(length, offset + count - start))
        else:
            joined.append((offset, count))
    return joined
