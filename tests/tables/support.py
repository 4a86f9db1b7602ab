"""What tests of table formats share: the same query with skipping on and off, and what was skipped."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from skipstone import skipping_stats
from tests.support import conf, skipping_off

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from skipstone.engines.spark.scan_stats import ScanStats

__all__ = ["Twins", "conf", "skipping_off", "streamed", "twins"]


class Twins:
    """The scans of a query that gave the same rows twice, and the rows."""

    def __init__(self, scans: tuple[ScanStats, ...], rows: int) -> None:
        self.scans, self.rows = scans, rows

    @property
    def skipped(self) -> int:
        return sum(scan.objects.skipped for scan in self.scans)

    @property
    def said(self) -> str:
        return "\n".join(reason for scan in self.scans for reason in (*scan.not_used, scan.error or ""))


def twins(spark: SparkSession, query: str | Callable[[], DataFrame]) -> Twins:
    """Run a query without and with skipping, compare the rows, and give what happened to its scans."""

    def asked() -> DataFrame:
        return spark.sql(query) if isinstance(query, str) else query()

    with skipping_off(spark):
        expected = Counter(map(repr, asked().collect()))
    with skipping_stats(spark) as stats:
        found = Counter(map(repr, asked().collect()))
    assert found == expected, f"lost {expected - found}, gained {found - expected}"
    errors = [scan.error for scan in stats if scan.error]
    assert not errors, errors
    return Twins(tuple(stats), sum(found.values()))


def streamed(rows: DataFrame, checkpoint: Path, *, target: str = "", path: str = "", format_: str) -> str:
    """Append what a stream has to a table, and return the plan of its last batch."""
    started = rows.writeStream.format(format_).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = started.toTable(target) if target else started.start(path)
    query.awaitTermination()
    return str(query._jsq.explainInternal(False))  # type: ignore[attr-defined]
