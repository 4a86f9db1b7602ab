"""The index types, each with its metadata type, index, clauses and filter in one module (``affix`` has two of them)."""

from __future__ import annotations

from skipstone.indexes.affix import PrefixIndex, SuffixIndex
from skipstone.indexes.bloom_filter import BloomFilterIndex
from skipstone.indexes.feature.index import FeatureIndex
from skipstone.indexes.formatted import FormattedIndex
from skipstone.indexes.gap_list.index import GapListIndex
from skipstone.indexes.geo_box.index import GeoBoxIndex
from skipstone.indexes.hybrid import HybridIndex
from skipstone.indexes.metric_distance.index import MetricDistanceIndex
from skipstone.indexes.minmax import MinMaxIndex
from skipstone.indexes.value_list import ValueListIndex

__all__ = [
    "BUILT_IN",
    "BloomFilterIndex",
    "FeatureIndex",
    "FormattedIndex",
    "GapListIndex",
    "GeoBoxIndex",
    "HybridIndex",
    "MetricDistanceIndex",
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
    MetricDistanceIndex,
    GeoBoxIndex,
    FeatureIndex,
)
