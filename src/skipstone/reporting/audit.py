"""Auditing queries: some of the objects that they leave out are read all the same, by the queries' own conditions.

What no test of ours can guard is guarded by this: promises of a user's ``udf_filter``, plug-ins, functions that changed
unseen.  It looks at what filters leave out.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from skipstone.errors import DatasetError
from skipstone.reporting.measuring import lost_rows, refuse_unseen
from skipstone.settings import read_bytes
from skipstone.showing.format import FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from skipstone.engines.spark.client import Scan

__all__ = ["Audit", "AuditedScan", "audit_bounds", "audit_queries"]

_MOST_OBJECTS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class AuditedScan:
    """One scan of one query: of the objects that it left out, how many were looked into.

    Parameters
    ----------
    query
        Which of the queries, from 1.
    condition
        What the scan asks for, in SQL.
    objects, skipped, looked_into
        How many objects there are for the scan, it left out, and were read after all.
    bytes_skipped, bytes_looked_into
        Their sizes.
    """

    query: int
    condition: str | None
    objects: int
    skipped: int
    looked_into: int
    bytes_skipped: int
    bytes_looked_into: int


@dataclass(frozen=True, slots=True)
class Audit:
    """What was looked into; had a row been found that a query asks for, there would be an error instead.

    Examples
    --------
    >>> print(Audit((AuditedScan(1, "id = 3", 100, 80, 16, 8_000_000, 1_600_000),)))
    16 of 80 skipped objects (20.0%) were looked into, 1.60 MB of 8.00 MB: no row is lost
    """

    scans: tuple[AuditedScan, ...]

    def __str__(self) -> str:
        looked, skipped = (sum(getattr(s, name) for s in self.scans) for name in ("looked_into", "skipped"))
        sizes = (sum(getattr(s, name) for s in self.scans) for name in ("bytes_looked_into", "bytes_skipped"))
        if not skipped:
            return "nothing was skipped"
        size = " of ".join(map(FORMATS["size"], sizes))
        objects = f"{looked:,} of {skipped:,} skipped objects ({looked / skipped:.1%})"
        return f"{objects} were looked into, {size}: no row is lost"

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {"scans": [asdict(scan) for scan in self.scans]}


def audit_queries(
    scan: Scan, root: str, queries: Sequence[DataFrame], *, objects: int, max_bytes: int | str, seed: int
) -> Audit:
    """Look into some of the objects that queries leave out.

    Raises
    ------
    SoundnessError
        When one of them holds a row that a query asks for.
    DatasetError
        When a query has no scan of the dataset, an object cannot be read, or has changed since the query listed it; or
        when a bound makes no sense.
    """
    found = []
    for number, scans in enumerate(scan.audit(root, queries, *audit_bounds(objects, max_bytes), seed), 1):
        refuse_unseen(number, scans, root)
        for told in scans:
            if told["lost"]:
                raise lost_rows(told)
            counts = {name: told[name] for name in AuditedScan.__dataclass_fields__ if name != "query"}
            found.append(AuditedScan(query=number, **counts))
    return Audit(tuple(found))


def audit_bounds(objects: int, max_bytes: int | str) -> tuple[int, int]:
    """Return how many objects and bytes to read at most.

    Raises
    ------
    DatasetError
        When that makes no sense.
    """
    try:
        size = read_bytes(str(max_bytes))
    except ValueError:
        size = 0
    if size <= 0 or not 0 < objects <= _MOST_OBJECTS:
        msg = f"an audit reads at least one object and byte, such as 16 and '256m', not {objects!r} and {max_bytes!r}"
        raise DatasetError(msg)
    return objects, size
