"""The index types, one file each with its metadata type, index, clauses and filter."""

from __future__ import annotations

from skipstone.indexes.bloom_filter import BloomFilterIndex
from skipstone.indexes.formatted import FormattedIndex
from skipstone.indexes.gap_list import GapListIndex
from skipstone.indexes.hybrid import HybridIndex
from skipstone.indexes.minmax import MinMaxIndex
from skipstone.indexes.prefix import PrefixIndex
from skipstone.indexes.suffix import SuffixIndex
from skipstone.indexes.value_list import ValueListIndex

__all__ = [
    "BUILT_IN",
    "BloomFilterIndex",
    "FormattedIndex",
    "GapListIndex",
    "HybridIndex",
    "MinMaxIndex",
    "PrefixIndex",
    "SuffixIndex",
    "ValueListIndex",
]

BUILT_IN = (
    MinMaxIndex,
    ValueListIndex,
    BloomFilterIndex,
    HybridIndex,
    GapListIndex,
    PrefixIndex,
    SuffixIndex,
    FormattedIndex,
)
