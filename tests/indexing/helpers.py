"""What the index job's tests share: a scan of files, and what was collected of it by object."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from skipstone.engines.spark.client import Client, Scan
from skipstone.engines.spark.source import SparkSource
from skipstone.indexing.job import index_objects
from skipstone.indexing.records import field_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from skipstone.indexing.index import Index
    from skipstone.indexing.source import BoundIndex, Outcome


def scan_of(df: DataFrame) -> Scan:
    return Client(df.sparkSession).scan(df)


def source_of(df: DataFrame) -> SparkSource:
    return SparkSource(scan_of(df))


def bind(df: DataFrame, *indexes: Index) -> list[BoundIndex]:
    return source_of(df).bind(indexes)


def run(df: DataFrame, *indexes: Index) -> tuple[Outcome, dict[str, dict[str, Any]]]:
    """Index a DataFrame's files; give the outcome, and by file name what each index (by name) stored."""
    source = source_of(df)
    bound = source.bind(indexes)
    outcome = index_objects(source, bound)
    return outcome, by_file(outcome, bound)


def by_file(outcome: Outcome, bound: Sequence[BoundIndex]) -> dict[str, dict[str, Any]]:
    found = {}
    for row in outcome.table.to_pylist():
        stored = {b.index.name: {name: row[field_column(b.id, name)] for name in outcome.fields[b.id]} for b in bound}
        found[row["path"].rpartition("/")[2]] = {"rows": row["row_count"], "trusted": row["trusted"], **stored}
    return found


def source_and_objects(df: DataFrame) -> tuple[SparkSource, list[Any]]:
    source = source_of(df)
    return source, source.list_objects()


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """Return a block table by object, NaN made comparable and both zeros one."""
    return [{k: _plain(v) for k, v in row.items()} for row in table.sort_by("object").to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, list):
        return sorted(map(_plain, value), key=repr)
    return value
