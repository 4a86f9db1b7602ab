"""The index types, one file each with its metadata type, index, clauses and filter."""

from __future__ import annotations

from skipstone.indexes.bloom_filter import BloomFilterIndex
from skipstone.indexes.hybrid import HybridIndex
from skipstone.indexes.minmax import MinMaxIndex
from skipstone.indexes.value_list import ValueListIndex

__all__ = ["BUILT_IN", "BloomFilterIndex", "HybridIndex", "MinMaxIndex", "ValueListIndex"]

BUILT_IN = (MinMaxIndex, ValueListIndex, BloomFilterIndex, HybridIndex)
