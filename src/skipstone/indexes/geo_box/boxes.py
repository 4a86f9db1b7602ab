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
    """Return at most ``most`` boxes that cover the given ones: those in one cell of a grid become one.

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
    """Unite what lies in one cell of a grid; return also where cells start in an order of the boxes, and that order."""
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
    """Return a quarter of finite values, so that their sums and differences are finite, too."""
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
    boxes = _distinct(coarser(boxes))
    if boxes.shape[1] <= count:
        return boxes
    corners = np.concatenate([_quarter(boxes[:2]), -_quarter(boxes[2:])])
    extent = _sizes(_hull(corners))
    extent[extent == 0] = 1
    corners /= np.tile(extent, 2)[:, None]
    best, least = None, np.inf
    for parts in _divided(corners, (count, count + 2, 2 * count + 4)):
        found = _united(parts, np.stack([_hull(corners[:, part]) for part in parts], axis=1), count)
        total = sum(float(_cost(_hull(corners[:, part]))) for part in found)
        if total < least:
            best, least = found, total
    assert best is not None  # noqa: S101  (a total is finite)
    return np.stack([np.append(boxes[:2, p].min(axis=1), boxes[2:, p].max(axis=1)) for p in best], axis=1)


def _distinct(boxes: Boxes) -> Boxes:
    """Return each box once, in an order that does not depend on how they came."""
    ranked = boxes[:, np.lexsort(boxes[::-1])]
    return ranked[:, np.append(True, (ranked[:, 1:] != ranked[:, :-1]).any(axis=0))] if ranked.size else ranked


# Below, boxes have their high ends negated, so that to unite them is to take the least of each number, and their sizes
# are parts of the extent of all.


def _hull(corners: Boxes) -> Boxes:
    """Return the one box that covers boxes."""
    hull: Boxes = np.minimum.reduce(corners, axis=1)
    return hull


def _sizes(corners: Boxes) -> Boxes:
    """Return the sizes of boxes along both axes."""
    return -(corners[:2] + corners[2:])


def _cost(corners: Boxes) -> Boxes:
    """Return what boxes add to the sum that is to be small."""
    width, height = _sizes(corners)
    cost: Boxes = width * height + QUERY_SIZE * (width + height)
    return cost


def _divided(corners: Boxes, sizes: tuple[int, ...]) -> Iterator[list[Places]]:
    """Cut a set of boxes into more and more parts, at each step where it saves most; show them at some sizes."""
    numbers = itertools.count()
    waiting: list[tuple[float, int, Places, Places]] = []  # with a number that decides between equals
    single: list[Places] = []

    def add(part: Places) -> None:
        if len(part) == 1:
            single.append(part)
        else:
            change, left, right = _best_cut(corners[:, part])
            heapq.heappush(waiting, (change, next(numbers), part[left], part[right]))

    add(np.arange(corners.shape[1]))
    for size in sizes:
        while waiting and len(waiting) + len(single) < size:
            _, _, left, right = heapq.heappop(waiting)
            add(left)
            add(right)
        yield single + [np.append(left, right) for _, _, left, right in waiting]


def _best_cut(corners: Boxes) -> tuple[float, Places, Places]:
    """Find the cut that saves most: what it changes, and the boxes on either side."""
    best: tuple[float, Places, Places] | None = None
    for axis in (0, 1):
        order = np.argsort(corners[axis], kind="stable")
        ranked = corners[:, order]
        left = _cost(np.minimum.accumulate(ranked, axis=1))
        right = _cost(np.minimum.accumulate(ranked[:, :0:-1], axis=1))
        costs = left[:-1] + right[::-1]
        cut = int(costs.argmin())
        change = float(costs[cut] - left[-1])
        if best is None or change < best[0]:
            best = (change, order[: cut + 1], order[cut + 1 :])
    assert best is not None  # noqa: S101  (there are two axes)
    return best


def _united(parts: list[Places], hulls: Boxes, count: int) -> list[Places]:
    """Unite pairs of parts until ``count`` are left, at each step the pair that costs least."""
    parts = list(parts)
    while len(parts) > count:
        alone = _cost(hulls)
        rise = _cost(np.minimum(hulls[:, :, None], hulls[:, None])) - alone[:, None] - alone
        np.fill_diagonal(rise, np.inf)
        one, other = divmod(int(rise.argmin()), len(parts))
        hulls[:, one] = np.minimum(hulls[:, one], hulls[:, other])
        hulls = np.delete(hulls, other, axis=1)
        parts[one] = np.append(parts[one], parts[other])
        del parts[other]
    return parts
