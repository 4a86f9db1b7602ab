"""The blocks of a Bloom filter: as many as its rate of false positives allows, so that a lookup reads little of it."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from skipstone.querying.lookup import MOST_BLOCKS

__all__ = ["blocks_for", "turns_for"]

_LEAST_BLOCK = 64
"""Bytes of a block at least."""
_MOST_GROWTH = 16
"""A filter is at most a sixteenth longer than the formula asks for."""
_STEPS = 128


def turns_for(bits: float) -> int:
    """Return how many positions a value gets, by the bits there are for each."""
    return max(1, round(bits * math.log(2)))


def blocks_for(least: int, fpp: float) -> tuple[int, int]:
    """Return the bytes of a filter and the binary logarithm of its number of blocks: as many as can be.

    A block has 64 bytes at least, and the filter is at most a sixteenth longer than ``least``, the length without
    blocks, with which its expected rate of false positives is no higher than asked for.
    """
    for log in range(MOST_BLOCKS, 0, -1):
        width = least >> log
        if width >= _LEAST_BLOCK:
            nominal = width & -8 if width < 2 * _LEAST_BLOCK else 1 << width.bit_length() - 1
            length = math.ceil(least * _growth(fpp, nominal) / _STEPS / (1 << log)) << log
            if _MOST_GROWTH * length <= (_MOST_GROWTH + 1) * least:
                return length, log
    return 0, 0


@lru_cache(maxsize=1_024)
def _growth(fpp: float, width: int) -> int:
    """Return by how many 128ths a filter has to be as long as one without blocks, with blocks of so many bytes.

    A block gets ``i`` of the ``n`` values with the probability of the binomial distribution, which is narrower than
    Poisson's of the same mean; a position in it is then free with probability ``(1 - 1/b)^(k i)``.  So the expected
    rate is ``Σ P(i) (1 - (1 - 1/b)^(k i))^k``, and the smallest ``b`` that brings it to ``f`` is taken.
    """
    mean = 8 * width / (-math.log(fpp) / math.log(2) ** 2)  # values in a block, if it is as long as without blocks
    spread = 10 * math.sqrt(mean) + 10
    loads = np.arange(max(0, math.floor(mean - spread)), math.ceil(mean + spread))
    logs = np.concatenate(([0.0], np.cumsum(np.log(mean / loads[1:]))))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    steps = _STEPS
    while steps < 2 * _STEPS:
        bits = 8 * width * steps / _STEPS
        turns = turns_for(bits / mean)
        taken = -np.expm1(turns * loads * math.log1p(-1 / bits))
        if float(weights @ taken**turns) <= fpp:
            break
        steps += 1
    return steps
