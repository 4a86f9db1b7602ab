"""Few boxes that cover many points tightly.

Boxes are the columns of an array of four rows: low and low, high and high, on two axes.  A point is a box without
extent.  Nothing here ever makes a box smaller than what it must cover.
"""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Boxes: TypeAlias = npt.NDArray[np.float64]
    Places: TypeAlias = npt.NDArray[np.intp]

__all__ = ["STATE_BOXES", "best_boxes", "coarser"]

STATE_BOXES = 1024
"""While an object's rows come in, this many boxes are told apart; more become fewer, the nearest ones first."""

QUERY_SIZE = 1 / 64
"""The size of the queries that boxes are chosen for, as a part of the object's extent along each axis."""

_ZOOMS = 3
_LARGEST = np.finfo(np.float64).max


def coarser(boxes: Boxes, most: int | None = None) -> Boxes:
    """Give at most ``most`` boxes that cover the given ones: those in one cell of a grid become one.

    The grid is even over the extent of the boxes, so that every gap of two cells' width stays one.  Where a few boxes
    far out leave most of the others in one cell, that cell is divided by a grid of its own, and so on.
    """
    most = STATE_BOXES if most is None else most
    if boxes.shape[1] <= most:
        return boxes
    found: list[Boxes] = []
    rest, room = boxes, most
    side = int(np.sqrt(most / 2)) or 1
    for zoom in range(_ZOOMS + 1):
        merged, starts, order = _by_cell(rest, side)
        counts = np.diff(starts, append=rest.shape[1])
        heaviest = int(np.argmax(counts))
        room -= merged.shape[1]
        side = int(np.sqrt(room + 1))
        if zoom == _ZOOMS or side <= 1 or 2 * counts[heaviest] < rest.shape[1] or len(starts) == 1:
            found.append(merged)
            break
        found.append(np.delete(merged, heaviest, axis=1))
        room += 1
        rest = rest[:, order[starts[heaviest] : starts[heaviest] + counts[heaviest]]]
    return np.concatenate(found, axis=1)


def _by_cell(boxes: Boxes, side: int) -> tuple[Boxes, Places, Places]:
    """Unite what lies in one cell of a grid; give also where each cell starts in which order of the boxes."""
    cells = np.zeros(boxes.shape[1], np.uint16)
    for low, high in zip(boxes[:2], boxes[2:], strict=True):
        middle = _quarter(low) + _quarter(high)
        least = middle.min()
        extent = middle.max() - least
        middle -= least
        middle *= side / extent if 0 < extent < np.inf and np.isfinite(side / extent) else 0.0
        cells *= np.uint16(side)
        cells += np.minimum(middle, side - 1).astype(np.uint16)
    order = np.argsort(cells, kind="stable")
    ranked = cells[order]
    starts = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1]))
    lows = np.minimum.reduceat(boxes[:2, order], starts, axis=1)
    highs = np.maximum.reduceat(boxes[2:, order], starts, axis=1)
    return np.concatenate([lows, highs]), starts, order


def _quarter(values: Boxes) -> Boxes:
    """Give finite values a quarter as large, so that sums and differences of them are finite, too."""
    quartered = values * 0.25
    return np.clip(quartered, -_LARGEST / 4, _LARGEST / 4, out=quartered)


def best_boxes(boxes: Boxes, count: int) -> Boxes:
    """Choose ``count`` boxes, or fewer, that cover the given ones.

    The aim is the least expected number of boxes that a query box meets.  For a query of width *u* and height *v* in a
    random place, a box of width *w* and height *h* is met with a probability proportional to *(w + u)(h + v)*; so the
    sum of *wh + vw + uh* is made small, with *u* and *v* a fixed part of the object's extent.

    The boxes are divided top-down by straight cuts, at each step the one of all cuts of all parts that lowers the sum
    most, into as many parts as are wanted, and then into some more.  The latter are united again in pairs, at each step
    the two that raise the sum least.  Cuts alone are bound to the first ones made, unions alone see only neighbours;
    the best of both is within a few percent of the best choice there is, as ``tests/indexes/test_geo_box.py`` measures
    by trying all partitions of small sets.
    """
    boxes = np.unique(coarser(boxes), axis=1)
    if boxes.shape[1] <= count:
        return boxes
    scaled = _quarter(boxes)
    extent = (scaled[2:].max(axis=1) - scaled[:2].min(axis=1))[:, None]
    extent[extent == 0] = 1
    found = [
        _united(np.stack([_hull(boxes[:, part]) for part in parts], axis=1), extent, count)
        for parts in _divided(scaled, extent, (count, count + 2, 2 * count + 4))
    ]
    return min(found, key=lambda few: float(_costs(few, extent).sum()))


def _divided(scaled: Boxes, extent: Boxes, sizes: tuple[int, ...]) -> Iterator[list[Places]]:
    """Cut a set of boxes into more and more parts, at each step where it saves most; show them at some sizes."""
    numbers = itertools.count()
    waiting: list[tuple[float, int, Places, Places]] = []  # with a number that decides between equals
    single: list[Places] = []

    def add(part: Places) -> None:
        if len(part) == 1:
            single.append(part)
        else:
            change, left, right = _best_cut(scaled[:, part], extent)
            heapq.heappush(waiting, (change, next(numbers), part[left], part[right]))

    add(np.arange(scaled.shape[1]))
    for size in sizes:
        while waiting and len(waiting) + len(single) < size:
            _, _, left, right = heapq.heappop(waiting)
            add(left)
            add(right)
        yield single + [np.append(left, right) for _, _, left, right in waiting]


def _best_cut(scaled: Boxes, extent: Boxes) -> tuple[float, Places, Places]:
    """Find the cut that saves most: what it changes, and the boxes on either side."""
    best: tuple[float, Places, Places] | None = None
    for axis in (0, 1):
        order = np.argsort(scaled[axis], kind="stable")
        low, high = scaled[:2, order], scaled[2:, order]
        left = np.maximum.accumulate(high, axis=1) - np.minimum.accumulate(low, axis=1)
        right = np.maximum.accumulate(high[:, ::-1], axis=1) - np.minimum.accumulate(low[:, ::-1], axis=1)
        costs = _cost(left[:, :-1] / extent) + _cost(right[:, -2::-1] / extent)
        cut = int(np.argmin(costs))
        change = float(costs[cut] - _cost(left[:, -1:] / extent)[0])
        if best is None or change < best[0]:
            best = (change, order[: cut + 1], order[cut + 1 :])
    assert best is not None  # noqa: S101  (there are two axes)
    return best


def _cost(sizes: Boxes) -> Boxes:
    """Give what boxes of these sizes, relative to the extent, add to the sum."""
    cost: Boxes = sizes[0] * sizes[1] + QUERY_SIZE * (sizes[0] + sizes[1])
    return cost


def _costs(boxes: Boxes, extent: Boxes) -> Boxes:
    """Give what boxes add to the sum."""
    scaled = _quarter(boxes)
    return _cost((scaled[2:] - scaled[:2]) / extent)


def _united(boxes: Boxes, extent: Boxes, count: int) -> Boxes:
    """Unite pairs of boxes until ``count`` are left, at each step the pair that costs least."""
    while boxes.shape[1] > count:
        scaled = _quarter(boxes)
        sizes = np.maximum(scaled[2:, :, None], scaled[2:, None]) - np.minimum(scaled[:2, :, None], scaled[:2, None])
        alone = _costs(boxes, extent)
        rise = _cost(sizes / extent[:, :, None]) - alone[:, None] - alone
        np.fill_diagonal(rise, np.inf)
        pair = divmod(int(np.argmin(rise)), boxes.shape[1])
        boxes = np.append(np.delete(boxes, pair, axis=1), _hull(boxes[:, pair])[:, None], axis=1)
    return boxes


def _hull(boxes: Boxes) -> Boxes:
    """Give the one box that covers boxes."""
    return np.append(boxes[:2].min(axis=1), boxes[2:].max(axis=1))
