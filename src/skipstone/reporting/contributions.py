"""What each index contributes to a query: the objects it skips alone, and those that only it skips.

The query is planned again with some of the dataset's indexes out of sight, through the same bridge, planner and store,
so that freshness, partition pruning and whatever else decides on an object have their say.  It happens in a clone of
the session: the user's own settings and queries are not touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skipstone.engines.spark.choice import CHOICE, Choice
from skipstone.engines.spark.client import Client
from skipstone.reporting.stats import ScanStats

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

__all__ = ["Contribution", "contributions", "unneeded"]


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one index does for one scan.

    ``alone`` objects are skipped when it is the only index; ``only`` this many fewer are skipped without it.  Of two
    indexes that prove the same both have ``only`` 0; of two that serve the sides of an OR both have ``alone`` 0.
    """

    index: str
    alone: int
    only: int


def contributions(df: DataFrame, root: str, scans: Sequence[ScanStats]) -> list[tuple[Contribution, ...] | None]:
    """Return for each scan of a planned query what each index that it used contributes, in the order of its ``used``.

    Parameters
    ----------
    df
        The query.
    root
        The dataset whose indexes are looked at; those of others are left in sight.
    scans
        The query's scans of the dataset with all indexes in sight.

    Returns
    -------
    list
        A tuple per scan; ``None`` when the query was planned into other scans without an index, so that what one scan
        gains cannot be told.
    """
    replan = Client(df.sparkSession).replanner(df)
    names = list(dict.fromkeys(name for scan in scans for name in scan.used))
    skipped: dict[tuple[str, bool], list[int] | None] = {}
    for name in names:
        for alone in (True, False):
            settings = {CHOICE: str(Choice(root, (name,), alone)), "force": "false"}
            entries = replan({f"spark.skipstone.{setting}": value for setting, value in settings.items()})
            seen = [scan for scan in map(ScanStats.of, entries) if _reads(scan, root)]
            same = [scan.condition for scan in seen] == [scan.condition for scan in scans]
            skipped[name, alone] = [scan.objects.skipped for scan in seen] if same else None
    return [_of_scan(number, scan, skipped) for number, scan in enumerate(scans)]


def unneeded(
    queries: Sequence[tuple[DataFrame, Sequence[ScanStats]]], root: str, candidates: Sequence[str]
) -> tuple[str, ...]:
    """Return which of some indexes queries can do without, all together: no scan would skip an object less.

    Of two indexes that prove the same one is needed: each is tried with those that were found before it out of sight.

    Parameters
    ----------
    queries
        Queries, each with its scans of the dataset with all indexes in sight.
    root
        The dataset.
    candidates
        The indexes to try, those that one would rather do without first.
    """
    found: tuple[str, ...] = ()
    for name in candidates:
        if all(_does_without(df, scans, root, (*found, name)) for df, scans in queries):
            found = (*found, name)
    return found


def _does_without(df: DataFrame, scans: Sequence[ScanStats], root: str, names: tuple[str, ...]) -> bool:
    """Whether a query's scans skip as much without some indexes."""
    if not any(name in scan.used for scan in scans for name in names):
        return True
    settings = {CHOICE: str(Choice(root, names, alone=False)), "force": "false"}
    entries = Client(df.sparkSession).replanner(df)({f"spark.skipstone.{k}": v for k, v in settings.items()})
    seen = [scan for scan in map(ScanStats.of, entries) if _reads(scan, root)]
    return [(scan.condition, scan.objects.skipped) for scan in seen] == [
        (scan.condition, scan.objects.skipped) for scan in scans
    ]


def _reads(scan: ScanStats, root: str) -> bool:
    """Whether a scan reads a dataset or a part of it."""
    return any(folder == root or folder.startswith(f"{root.rstrip('/')}/") for folder in scan.roots)


def _of_scan(
    number: int, scan: ScanStats, skipped: Mapping[tuple[str, bool], list[int] | None]
) -> tuple[Contribution, ...] | None:
    """Put together what was seen of one scan."""
    found: list[Contribution] = []
    for name in scan.used:
        alone, without = skipped[name, True], skipped[name, False]
        if alone is None or without is None:
            return None
        found.append(Contribution(name, alone[number], scan.objects.skipped - without[number]))
    return tuple(found)
