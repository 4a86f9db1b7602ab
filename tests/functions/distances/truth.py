"""Distances as the functions of a query give them for one row, and awkward values to ask them about."""

import math
from functools import cache

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from skipstone.functions.distances import vectorised

NAN = math.nan
POINTS = (None, [0.0, 0.0], [89.0, 10.0], [-89.5, 170.0], [10.0, 180.0], [10.0, -180.0], [91.0, 0.0], [NAN, 0.0], [1.0])
WORDS = (None, "", "a", "ab", "skip", "skips", "stone", "é", "😀a", "a\0")
AWKWARD = [
    0.0, -0.0, 1.0, 0.1, 0.2, 0.3, 1 / 3, 1e16, 1e16 + 2, 1e-16, 1e154, 1.3e154, 1e200, 1.7e308, -1.7e308, 1e-160,
    1e-170, 5e-324, 2.3e-308, 1 + 2**-52, 1e8, 1e8 + 1,
]  # fmt: skip
FINITE = st.sampled_from(AWKWARD) | st.floats(allow_nan=False, allow_infinity=False)


@cache
def by_function(function, one, other):
    def column(value):
        if isinstance(value, frozenset):
            return pa.array([dict(value)])
        floats = [v for v in value if isinstance(v, float)]
        return pa.array([list(value)], pa.list_(pa.float64()) if floats or not value else None)

    return function(column(one), column(other))[0].as_py()


def row_function(function):
    def distance(one, other):
        if one is None or other is None:
            return None
        return by_function(function, *(frozenset(v.items()) if isinstance(v, dict) else tuple(v) for v in (one, other)))

    return distance


def plain_levenshtein(one, other):
    if one is None or other is None:
        return None
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        before, row = row, [number]
        for place, there in enumerate(other, 1):
            row.append(min(before[place] + 1, row[-1] + 1, before[place - 1] + (letter != there)))
    return row[-1]


def l2_of_floats(one, other, _):
    """As a function in C or Java would compute with floats of 32 bits."""
    if one is None or other is None or len(one) != len(other) or None in one or None in other:
        return None
    with np.errstate(all="ignore"):
        total = np.float32(0)
        for a, b in zip(one, other, strict=True):
            total += (np.float32(a) - np.float32(b)) ** 2
        return float(np.sqrt(total))


FUNCTIONS = {
    **{function.__name__: row_function(function) for function in vectorised.FUNCTIONS},
    "levenshtein": plain_levenshtein,
    "staticinvoke": l2_of_floats,
}
