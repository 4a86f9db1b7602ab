"""What the tests of stores share: the model that every store is held against, and a little more."""

from __future__ import annotations

from skipstone.testing.store_model import (
    RANGE_FIELDS,
    ROOT,
    TAG_FIELDS,
    HasRows,
    HasTag,
    HasValue,
    Model,
    Row,
    StoredRangeIndex,
    StoredTagsIndex,
    added,
    assert_same,
    commit,
    digest,
    record,
    rows_of,
)

__all__ = [
    "RANGE_FIELDS",
    "ROOT",
    "TAG_FIELDS",
    "HasRows",
    "HasTag",
    "HasValue",
    "Model",
    "Row",
    "StoredRangeIndex",
    "StoredTagsIndex",
    "added",
    "assert_same",
    "commit",
    "digest",
    "record",
    "rows_of",
]
