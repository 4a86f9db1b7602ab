"""The paths by which Spark collects metadata: Parquet footers, Catalyst's aggregates, or the indexes' own code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from skipstone.engines.spark.aggregates import aggregates_of, collect_with_aggregates, prefers_aggregates
from skipstone.engines.spark.arrow_job import collect_with_arrow
from skipstone.engines.spark.failures import explained_failures
from skipstone.engines.spark.footers import collect_from_footers
from skipstone.engines.spark.silent import must_be_silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skipstone.engines.spark.source import SparkSource
    from skipstone.indexing.objects import DataObject
    from skipstone.indexing.source import BoundIndex

__all__ = ["collect"]


def collect(source: SparkSource, objects: Sequence[DataObject], bound: Sequence[BoundIndex]) -> pa.Table:
    """Collect the metadata of objects of the last listing by the cheapest path that is sound.

    Returns
    -------
    pyarrow.Table
        Columns ``object`` (its place in ``objects``), ``row_count``, and ``i:field`` for the i-th index.
    """
    with explained_failures([name for b in bound for name in b.index.functions or ()]):
        certain = collect_from_footers(source, objects, bound)
        if certain is None:
            return _collect_by_reading(source, objects, bound)
        heard_of = set(certain.column("object").to_pylist())
        rest = [number for number in range(len(objects)) if number not in heard_of]
        if not rest:
            return certain
        read = _collect_by_reading(source, [objects[number] for number in rest], bound)
        renumbered = pa.array(rest, pa.int32()).take(read.column("object"))
        return pa.concat_tables([certain, read.set_column(0, "object", renumbered)])


def _collect_by_reading(source: SparkSource, objects: Sequence[DataObject], bound: Sequence[BoundIndex]) -> pa.Table:
    """Collect by reading the columns."""
    aggregates = None if must_be_silent(bound) else aggregates_of(bound)
    if aggregates is not None and prefers_aggregates(source.relation.format, bound):
        return collect_with_aggregates(source, objects, bound, aggregates)
    return collect_with_arrow(source, objects, bound)
