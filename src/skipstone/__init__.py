"""Skipstone: Spark SQL skips the files that a query cannot need, for any format, column type and UDF."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "BloomFilterIndex",
    "Clause",
    "Dataset",
    "Filter",
    "HybridIndex",
    "Index",
    "MetadataType",
    "MinMaxIndex",
    "SkipstoneError",
    "ValueListIndex",
    "configure",
    "last_query",
    "skipping_stats",
]

# Names are imported when they are first used: executors, which unpack index states, have no need of the session side.
_HOMES = {
    "BloomFilterIndex": "skipstone.indexes.bloom_filter",
    "Clause": "skipstone.querying.clause",
    "Dataset": "skipstone.dataset",
    "Filter": "skipstone.querying.filter",
    "HybridIndex": "skipstone.indexes.hybrid",
    "Index": "skipstone.indexing.index",
    "MetadataType": "skipstone.indexing.metadata_type",
    "MinMaxIndex": "skipstone.indexes.minmax",
    "SkipstoneError": "skipstone.errors",
    "ValueListIndex": "skipstone.indexes.value_list",
    "configure": "skipstone.session",
    "last_query": "skipstone.reporting.stats",
    "skipping_stats": "skipstone.reporting.stats",
}

if TYPE_CHECKING:
    from skipstone.dataset import Dataset
    from skipstone.errors import SkipstoneError
    from skipstone.indexes.bloom_filter import BloomFilterIndex
    from skipstone.indexes.hybrid import HybridIndex
    from skipstone.indexes.minmax import MinMaxIndex
    from skipstone.indexes.value_list import ValueListIndex
    from skipstone.indexing.index import Index
    from skipstone.indexing.metadata_type import MetadataType
    from skipstone.querying.clause import Clause
    from skipstone.querying.filter import Filter
    from skipstone.reporting.stats import last_query, skipping_stats
    from skipstone.session import configure


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    msg = f"module 'skipstone' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
