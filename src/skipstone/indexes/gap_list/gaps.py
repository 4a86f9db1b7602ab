"""Intervals that hold the values of a column, and the gaps between them: how wide, how useful, which to keep.

Values are in *ordered form* here: what Arrow sorts as Spark does, and short.  Numbers are as they are (-0.0 is 0.0),
booleans are 0 and 1, text and bytes are their first ``BOUND_BYTES + 1`` bytes: cutting keeps the order, and the one
byte more tells a value that was cut from one that just ends there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.indexes.minmax import BOUND_BYTES
from skipstone.toolkit.bounds import successor
from skipstone.toolkit.values import is_binary_like

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from skipstone.indexes.gap_list.workload import Ranges

__all__ = ["Intervals", "ordered_form", "stored_type"]

_LONG_DIGITS = 18
_SAMPLE = 4096
_LEADING = np.array([(1 << 64) - (1 << 8 * (8 - count)) for count in range(9)], np.uint64)
"""Masks for the first so many of eight bytes."""


def stored_type(type_: pa.DataType) -> pa.DataType:
    """Return the type in which bounds of values of a type are stored."""
    return pa.binary() if is_binary_like(type_) else type_


def ordered_form(values: pa.Array) -> pa.Array:
    """Return values, none of them NULL or NaN, in ordered form; texts that repeat, once."""
    type_ = values.type
    if is_binary_like(type_):  # text need not be valid UTF-8, and its order is that of its bytes
        large = pa.types.is_large_string(type_) or pa.types.is_large_binary(type_)
        heads = pc.binary_slice(values.view(pa.large_binary() if large else pa.binary()), 0, BOUND_BYTES + 1)
        heads = heads.cast(pa.binary())
        sample = heads[:_SAMPLE]
        return heads if len(sample.unique()) > 0.9 * _SAMPLE else heads.unique()
    if pa.types.is_floating(type_):
        return pc.add(values, pa.scalar(0.0, type_))
    return values.cast(pa.int8()) if pa.types.is_boolean(type_) else values


@dataclass(frozen=True, slots=True)
class Intervals:
    """Closed intervals in ordered form, ascending and disjoint: no end is as great as the next start."""

    starts: pa.Array
    ends: pa.Array

    def __len__(self) -> int:
        return len(self.starts)

    @classmethod
    def of(cls, values: pa.Array, most: int, workload: Ranges | None) -> Self:
        """Make an interval of each distinct value, in ordered form, and close all but the most useful gaps."""
        if pa.types.is_binary(values.type) and workload is None and len(values) > 2 * most:
            return cls._of_many_bytes(values, most)
        numbers, value_of = _numbers(values)
        ranked = np.sort(numbers)
        once = value_of(ranked[np.concatenate(([True], ranked[1:] > ranked[:-1]))] if len(ranked) else ranked)
        return cls(once, once).with_gaps(most, workload)

    @classmethod
    def _of_many_bytes(cls, values: pa.Array, most: int) -> Self:
        """Find the widest gaps by the numbers that bytes are read as, and sort only the values beside them."""
        ends = pc.min_max(values)
        keys = _keys(values, _common(ends["min"].as_py(), ends["max"].as_py()))
        order = np.argsort(keys)
        keys = keys[order]
        steps = keys[1:] - keys[:-1]
        gaps = np.sort(_best(steps, None, most))
        gaps = gaps[steps[gaps] > 0]
        run = np.zeros(len(keys), np.int64)  # which run of values without a gap each belongs to
        run[gaps + 1] = 1
        run = np.cumsum(run)
        is_outer = (keys == keys[np.append(0, gaps + 1)][run]) | (keys == keys[np.append(gaps, len(keys) - 1)][run])
        outer, run = values.take(pa.array(order[is_outer])), run[is_outer]
        ranked = pc.array_sort_indices(outer)
        cuts = np.searchsorted(run[ranked.to_numpy()], np.arange(len(gaps) + 2))
        return cls(outer.take(ranked.take(pa.array(cuts[:-1]))), outer.take(ranked.take(pa.array(cuts[1:] - 1))))

    @classmethod
    def union(cls, parts: Sequence[Self]) -> Self:
        """Return the fewest intervals that hold what the intervals of all parts hold."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        count = sum(map(len, parts))
        numbers, value_of = _numbers(pa.concat_arrays([p.starts for p in parts] + [p.ends for p in parts]))
        order = np.argsort(numbers[:count], kind="stable")
        starts, reach = numbers[:count][order], np.maximum.accumulate(numbers[count:][order])
        apart = np.flatnonzero(starts[1:] > reach[:-1])
        return cls(value_of(starts[np.append(0, apart + 1)]), value_of(reach[np.append(apart, count - 1)]))

    def with_gaps(self, most: int, workload: Ranges | None) -> Self:
        """Close all but the ``most`` most useful gaps: those with the greatest weight, among equals the widest.

        A gap that no value could lie in is always closed, such as that between the whole numbers 3 and 4.
        """
        if len(self) < 2:
            return self
        widths = self._widths()
        is_dense = not (pa.types.is_floating(self.starts.type) or pa.types.is_binary(self.starts.type))
        gaps = np.flatnonzero(widths > 1) if is_dense else np.arange(len(widths))
        if len(gaps) > most:
            gaps = np.sort(gaps[_best(widths[gaps], None if workload is None else self.weights(workload)[gaps], most)])
        elif len(gaps) == len(widths):
            return self
        return type(self)(self.starts.take(np.append(0, gaps + 1)), self.ends.take(np.append(gaps, len(self) - 1)))

    def weights(self, workload: Ranges) -> npt.NDArray[np.float64]:
        """Return for each gap the total weight of the ranges that lie wholly inside it.

        A range lies in a gap if the intervals that end before it and those that start after it are all there are.
        """
        ranges = workload.of_type(self.starts.type)
        count, many = len(self), len(ranges.weights)
        numbers, _ = _numbers(pa.concat_arrays([self.starts, self.ends, ranges.lows, ranges.highs]))
        starts, ends, lows, highs = np.split(numbers, [count, 2 * count, 2 * count + many])
        before = np.where(ranges.low_open, np.searchsorted(ends, lows, "right"), np.searchsorted(ends, lows, "left"))
        until = np.where(
            ranges.high_open, np.searchsorted(starts, highs, "left"), np.searchsorted(starts, highs, "right")
        )
        inside = (before == until) & (before > 0) & (before < count)
        totals = np.bincount(before[inside] - 1, weights=ranges.weights[inside], minlength=max(count - 1, 0))
        return totals.astype(np.float64, copy=False)

    def bounds(self, type_: pa.DataType) -> pa.Array:
        """Return starts and ends in turn, in the stored form of a column's type.

        Bytes that were cut leave a wider interval, and intervals that then touch become one.  An end that has no
        successor (a long run of 0xFF) is null: everything from the start on.
        """
        if pa.types.is_binary(self.starts.type):
            return pa.array(_cut(self.starts.to_pylist(), self.ends.to_pylist()), pa.binary())
        places = np.arange(2 * len(self)).reshape(2, -1).T.ravel()
        return pa.concat_arrays([self.starts, self.ends]).take(places).cast(stored_type(type_))

    def _widths(self) -> npt.NDArray[Any]:
        """Return the width of each gap, as a number that is comparable among the gaps of these intervals.

        Whole numbers, dates, times: the exact difference.  Floats: the difference, infinite beside an infinity.
        Decimals: the difference in units of the last digit, in double precision.  Text and bytes: the difference of
        the eight bytes that follow what all values have in common, read as numbers.
        """
        type_, below, above = self.starts.type, self.ends[:-1], self.starts[1:]
        if pa.types.is_floating(type_):
            return above.cast(pa.float64()).to_numpy() / 2 - below.cast(pa.float64()).to_numpy() / 2
        if pa.types.is_decimal(type_):
            high_above, low_above = _words(above)
            high_below, low_below = _words(below)
            high = high_above - high_below - (low_above < low_below)
            return high.astype(np.float64) * 2.0**64 + (low_above - low_below).astype(np.float64)
        if pa.types.is_binary(type_):
            skipped = _common(self.starts[0].as_py(), self.ends[-1].as_py())
            return _keys(above, skipped) - _keys(below, skipped)
        return above.cast(pa.int64()).to_numpy().view(np.uint64) - below.cast(pa.int64()).to_numpy().view(np.uint64)


def _best(widths: npt.NDArray[Any], weights: npt.NDArray[np.float64] | None, most: int) -> npt.NDArray[np.intp]:
    """Return the places of the greatest, by weight and then by width; there are more than ``most``."""
    heavy = np.flatnonzero(weights) if weights is not None else np.zeros(0, np.intp)
    if weights is None or not len(heavy):
        return np.argpartition(widths, len(widths) - most)[-most:]
    if len(heavy) >= most:
        return heavy[np.lexsort((widths[heavy], weights[heavy]))[-most:]]
    light = np.flatnonzero(weights == 0)
    return np.concatenate((heavy, light[_best(widths[light], None, most - len(heavy))]))


def _numbers(values: pa.Array) -> tuple[npt.NDArray[Any], Callable[[npt.NDArray[Any]], pa.Array]]:
    """Return numbers in the same order as the values, and a function from these numbers back to the values."""
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return values.to_numpy(zero_copy_only=False), lambda numbers: pa.array(numbers, values.type)
    if pa.types.is_decimal128(values.type) and values.type.precision <= _LONG_DIGITS:
        return _words(values)[1].view(np.int64), lambda numbers: _decimals(numbers, values.type)
    ranks = pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy()
    places = np.zeros(len(values) + 1, np.int64)
    places[ranks] = np.arange(len(values))
    return ranks, lambda numbers: values.take(pa.array(places[numbers]))


def _words(decimals: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return the upper and the lower 64 bits of the unscaled values, of which none is null."""
    if not pa.types.is_decimal128(decimals.type):
        decimals = decimals.cast(pa.decimal128(decimals.type.precision, decimals.type.scale))
    words = np.frombuffer(decimals.buffers()[1], np.uint64, 2 * len(decimals), 16 * decimals.offset).reshape(-1, 2)
    return np.ascontiguousarray(words[:, 1]).view(np.int64), np.ascontiguousarray(words[:, 0])


def _decimals(unscaled: npt.NDArray[np.int64], type_: pa.DataType) -> pa.Array:
    """Return decimals of given unscaled values."""
    words = np.stack((unscaled, unscaled >> 63), axis=1)
    return pa.Array.from_buffers(type_, len(unscaled), [None, pa.py_buffer(np.ascontiguousarray(words))])


def _common(one: bytes, other: bytes) -> int:
    """Count the bytes with which both begin."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _keys(values: pa.Array, skipped: int) -> npt.NDArray[np.uint64]:
    """Read eight bytes of each value as a number, zeros where it has ended, after those that are ``skipped``."""
    offsets = np.frombuffer(values.buffers()[1], np.int32, len(values) + 1, 4 * values.offset).astype(np.int64)
    held = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    data = np.zeros(len(held) + 8, np.uint8)
    data[:-8] = held
    each = np.ndarray((len(held) + 1,), ">u8", data, strides=(1,))  # the eight bytes from each place on
    places = np.minimum(offsets[:-1] + skipped, offsets[1:])
    return each[places].astype(np.uint64) & _LEADING[np.minimum(offsets[1:] - places, 8)]


def _cut(starts: list[bytes], ends: list[bytes]) -> list[bytes | None]:
    """Cut bounds outward to their stored length: a prefix is not greater, its successor greater than the whole."""
    bounds: list[bytes | None] = []
    for start, end in zip(starts, ends, strict=True):
        lower = start[:BOUND_BYTES]
        upper = end if len(end) <= BOUND_BYTES else successor(end[:BOUND_BYTES])
        if not bounds:
            bounds = [lower, upper]
        elif (last := bounds[-1]) is not None and last < lower:
            bounds += [lower, upper]
        elif last is not None:
            bounds[-1] = None if upper is None else max(last, upper)
    return bounds
