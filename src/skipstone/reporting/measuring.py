"""Measuring the indicators of queries: the bridge runs each scan's predicate once more, over every object.

That makes it a check of soundness too: an object that holds a relevant row and is not read is an error here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skipstone.errors import DatasetError, SoundnessError
from skipstone.reporting.indicators import Indicators

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from skipstone.engines.spark.client import Scan

__all__ = ["lost_rows", "measure_indicators", "refuse_unseen"]

_COUNTS = tuple(Indicators.__dataclass_fields__)


def measure_indicators(scan: Scan, root: str, queries: Sequence[DataFrame]) -> list[Indicators]:
    """Measure the indicators of each query, with respect to one dataset.

    Parameters
    ----------
    scan, root
        The dataset: the bridge's handle on its scan, and its folder.
    queries
        DataFrames that read the dataset or a part of it, on their own or among other things.

    Raises
    ------
    SoundnessError
        When skipping lost a row.
    DatasetError
        When a query has no scan of the dataset, an object cannot be read, or has changed since the query listed it.
    """
    return [_of_query(number, scans, root) for number, scans in enumerate(scan.indicators(root, queries), 1)]


def _of_query(number: int, scans: list[dict[str, Any]], root: str) -> Indicators:
    """Sum the counts of a query's scans."""
    refuse_unseen(number, scans, root)
    for scan in scans:
        if scan["lost"]:
            raise lost_rows(scan)
    return Indicators(**{count: sum(scan[count] for scan in scans) for count in _COUNTS})


def refuse_unseen(number: int, scans: list[dict[str, Any]], root: str) -> None:
    """Raise when a query has no scan of a dataset."""
    if not scans:
        msg = (
            f"query {number} has no file scan of {root} that Skipstone can see, so that nothing is measured: it reads "
            "other files, its result is cached, or its source is a DataSource V2 reader "
            "(spark.sql.sources.useV1SourceList)"
        )
        raise DatasetError(msg)


def lost_rows(scan: dict[str, Any]) -> SoundnessError:
    """Return which objects must not have been skipped."""
    named = ", ".join(scan["lost_objects"])
    more = scan["lost"] - len(scan["lost_objects"])
    return SoundnessError(
        f"ROWS ARE LOST: {scan['lost']} of the objects that were skipped hold a row with {scan['condition']}: {named}"
        f"{f' and {more} more' if more else ''}. Set spark.skipstone.enabled=false or drop the dataset's indexes to "
        "get right answers, and report this with the output of Dataset.explain."
    )
