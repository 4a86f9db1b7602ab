"""Filters cut into slices: how finely, how they are cut, and put together again."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.querying.lookup import MOST_BLOCKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

__all__ = ["interleaving", "joined_filters", "levels_for", "slices"]

_LEVELS = 3
"""Numbers of slices that the blocked filters of a field are cut into, at most."""
_COLUMN_BYTES = 256
"""What a further column adds to what a lookup reads: its place in the footer, and the beginning of its page."""


def levels_for(lengths: npt.NDArray[Any], logs: npt.NDArray[Any], least: int) -> tuple[float, tuple[int, ...]]:
    """Return what a lookup reads of blocked filters, each cut as finely as its blocks allow, and the best levels.

    Filters that are not blocked stay whole.  A level is worth it when its slices have ``least`` bytes.
    """
    sizes = np.bincount(np.clip(logs, 0, MOST_BLOCKS), weights=lengths, minlength=MOST_BLOCKS + 1)
    best: tuple[float, tuple[int, ...]] = (float(sizes.sum()), ())
    for number in range(1, _LEVELS + 1):
        for chosen in combinations(range(MOST_BLOCKS, 0, -1), number):
            ends = (MOST_BLOCKS + 1, *chosen)
            held = [float(sizes[log:end].sum()) for log, end in zip(chosen, ends, strict=False)]
            if any(size / (1 << log) < least for size, log in zip(held, chosen, strict=True)):
                continue
            read = sum(size / (1 << log) + (_COLUMN_BYTES << log) for size, log in zip(held, chosen, strict=True))
            cost = read + float(sizes[: chosen[-1]].sum())
            if cost < best[0]:
                best = (cost, tuple(1 << log for log in chosen))
    return best


def slices(
    filters: pa.BinaryArray, count: int, cut: npt.NDArray[np.bool_], lengths: npt.NDArray[Any]
) -> Iterator[pa.Array]:
    """Cut some filters into slices; null for the others."""
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


def joined_filters(pieces: Sequence[pa.BinaryArray]) -> pa.Array:
    """Put filters together: those that were left whole come first, then the slices of each level."""
    whole, *cut = pieces
    lengths = np.stack([pc.binary_length(piece).fill_null(0).to_numpy() for piece in cut])
    order, ends = interleaving(lengths)
    content = np.concatenate([_content(piece.drop_null()) for piece in cut])
    offsets = np.concatenate(([0], ends)).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content[order])]
    together = pa.Array.from_buffers(whole.type, len(whole), buffers)
    return pc.if_else(pa.array(lengths.any(axis=0)), together, whole)


def _content(array: pa.BinaryArray) -> npt.NDArray[np.uint8]:
    """Return the bytes of an array without nulls, one value after the other."""
    _, offsets, data = array.buffers()
    if data is None or not len(array):
        return np.zeros(0, np.uint8)
    places = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data, np.uint8)[places[0] : places[-1]]


def interleaving(lengths: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Order the items of pieces, which lie piece after piece, by rows; return that order and where each row ends.

    ``lengths`` has a row per piece and a column per row of the field.
    """
    sources = (np.cumsum(lengths) - lengths.ravel()).reshape(lengths.shape).T.ravel()
    by_row = lengths.T.ravel()
    ends = np.cumsum(by_row)
    order = np.repeat(sources - (ends - by_row), by_row) + np.arange(int(ends[-1]) if len(ends) else 0)
    return order, np.cumsum(lengths.sum(axis=0))
