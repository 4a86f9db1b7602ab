"""Levenshtein distances of many texts from one: by rapidfuzz where it is installed, else in numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

__all__ = ["edit_distances"]

_MOST_CELLS = 1 << 21
_MOST_SHORT = 1 << 15


def edit_distances(texts: Sequence[str], origin: str) -> npt.NDArray[np.int64]:
    """Return the Levenshtein distance of every text from one, counted in code points.

    Examples
    --------
    >>> edit_distances(["kitten", "", "sitting"], "sitting").tolist()
    [3, 7, 0]
    """
    try:
        from rapidfuzz.distance import Levenshtein
        from rapidfuzz.process import cdist
    except ImportError:
        return _in_matrices(texts, origin)
    if not texts:
        return np.zeros(0, np.int64)
    found: npt.NDArray[np.int64] = cdist([origin], texts, scorer=Levenshtein.distance, dtype=np.int64)[0]
    return found


def _in_matrices(texts: Sequence[str], origin: str) -> npt.NDArray[np.int64]:
    """Compute for texts of similar length together, so that one long text does not make all of them wide."""
    lengths = np.array([len(text) for text in texts], np.int64)
    found = np.zeros(len(texts), np.int64)
    order = np.argsort(lengths, kind="stable")
    start = 0
    while start < len(order):
        widest = max(8, 2 * int(lengths[order[start]]))
        end = int(np.searchsorted(lengths[order], widest, side="right"))
        end = min(end, start + max(1, _MOST_CELLS // widest))
        rows = order[start:end]
        found[rows] = _matrix([texts[row] for row in rows], lengths[rows], origin)
        start = end
    return found


def _matrix(texts: list[str], lengths: npt.NDArray[np.int64], origin: str) -> npt.NDArray[np.int64]:
    """Fill the classic table for all texts at once, a row of it for each character of the origin.

    Within a row a cell is the least of what the row before gives and of its left neighbour plus one; less its column
    number, that is a running minimum.
    """
    width = int(lengths.max())
    letters = np.array(texts, dtype=f"U{max(1, width)}").view(np.uint32).reshape(len(texts), -1)[:, :width]
    columns: npt.NDArray[Any] = np.arange(width + 1, dtype=np.int16 if width + len(origin) < _MOST_SHORT else np.int64)
    row: npt.NDArray[Any] = np.broadcast_to(columns, (len(texts), width + 1))
    for number, letter in enumerate(map(ord, origin), 1):
        cells = np.empty_like(row)
        cells[:, 0] = number
        np.minimum(row[:, 1:] + 1, row[:, :-1] + (letters != letter), out=cells[:, 1:])
        cells -= columns
        row = np.minimum.accumulate(cells, axis=1) + columns
    return row[np.arange(len(texts)), lengths]
