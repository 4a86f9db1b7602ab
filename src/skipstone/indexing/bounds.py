"""What an index says of the order of a column's values in each object."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bounds"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The stored fields that bound a column's values, by name.

    ``lower ≤ v ≤ upper`` for every ordinary value (neither NULL nor NaN) of the object, in Spark's order and in the
    physical form of literals, text as bytes.  ``nulls`` and ``nans`` are counts of rows, exact or null; ``nans`` is
    looked at for ``float`` and ``double`` only.  A bound need not be a value, unless ``exact`` says so: then they are
    the least and the greatest ordinary value wherever they are not null, and answer ``min`` and ``max``.
    """

    lower: str = "lower"
    upper: str = "upper"
    nulls: str = "null_count"
    nans: str = "nan_count"
    exact: bool = False
