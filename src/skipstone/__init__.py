"""Skipstone: Spark SQL skips the files that a query cannot need, for any format, column type and UDF."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "BloomFilterIndex",
    "Clause",
    "Dataset",
    "FeatureIndex",
    "Filter",
    "FormattedIndex",
    "GapListIndex",
    "GeoBoxIndex",
    "HybridIndex",
    "Implication",
    "Index",
    "MetadataType",
    "MetricDistanceIndex",
    "MinMaxIndex",
    "PrefixIndex",
    "SkipstoneError",
    "SuffixIndex",
    "ValueListIndex",
    "agents",
    "configure",
    "distances",
    "geo",
    "last_query",
    "skipping_stats",
    "state_version",
    "udf_filter",
]

# Names are imported when they are first used: executors, which unpack index states, have no need of the session side.
_HOMES = {
    "BloomFilterIndex": "skipstone.indexes.bloom_filter",
    "Clause": "skipstone.querying.clause",
    "Dataset": "skipstone.dataset",
    "FeatureIndex": "skipstone.indexes.feature.index",
    "Filter": "skipstone.querying.filter",
    "FormattedIndex": "skipstone.indexes.formatted",
    "GapListIndex": "skipstone.indexes.gap_list.index",
    "GeoBoxIndex": "skipstone.indexes.geo_box.index",
    "HybridIndex": "skipstone.indexes.hybrid",
    "Implication": "skipstone.querying.implication",
    "Index": "skipstone.indexing.index",
    "MetadataType": "skipstone.indexing.metadata_type",
    "MetricDistanceIndex": "skipstone.indexes.metric_distance.index",
    "MinMaxIndex": "skipstone.indexes.minmax",
    "PrefixIndex": "skipstone.indexes.affix",
    "SkipstoneError": "skipstone.errors",
    "SuffixIndex": "skipstone.indexes.affix",
    "ValueListIndex": "skipstone.indexes.value_list",
    "configure": "skipstone.engines.spark.session",
    "last_query": "skipstone.reporting.stats",
    "skipping_stats": "skipstone.reporting.stats",
    "state_version": "skipstone.engines.spark.functions",
    "udf_filter": "skipstone.engines.spark.udf_filters",
}
_MODULES = ("agents", "distances", "geo")

if TYPE_CHECKING:
    from skipstone import agents, distances, geo
    from skipstone.dataset import Dataset
    from skipstone.engines.spark.functions import state_version
    from skipstone.engines.spark.session import configure
    from skipstone.engines.spark.udf_filters import udf_filter
    from skipstone.errors import SkipstoneError
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
    from skipstone.indexing.index import Index
    from skipstone.indexing.metadata_type import MetadataType
    from skipstone.querying.clause import Clause
    from skipstone.querying.filter import Filter
    from skipstone.querying.implication import Implication
    from skipstone.reporting.stats import last_query, skipping_stats


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"skipstone.{name}")
    else:
        msg = f"module 'skipstone' has no attribute {name!r}"
        raise AttributeError(msg)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
