"""What each index contributes to a query: the objects it skips alone, and those that only it skips.

The query is planned again with some of the dataset's indexes out of sight, through the same bridge, planner and store,
so that freshness, partition pruning and whatever else decides on an object have their say.  It happens in a clone of
the session: the user's own settings and queries are not touched.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from skipstone import registry
from skipstone.engines.spark.client import Client
from skipstone.errors import MetadataStoreError, SettingError
from skipstone.reporting.stats import ScanStats
from skipstone.stores.metadata_store import Change, Evaluation, IndexRecord, MetadataStore, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from skipstone.querying.clause import Clause

__all__ = ["Contribution", "contributions"]

_STORE = "contributions"
_VIEW_SETTING = "contributions.view"


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one index does for one scan.

    ``alone`` objects are skipped when it is the only index; ``only`` this many fewer are skipped without it.  Of two
    indexes that prove the same both have ``only`` 0; of two that serve the sides of an OR both have ``alone`` 0.
    """

    index: str
    alone: int
    only: int


def contributions(
    df: DataFrame, root: str, store: MetadataStore, scans: Sequence[ScanStats]
) -> list[tuple[Contribution, ...] | None]:
    """Say for each scan of a planned query what the indexes that it used contribute, by its ``used`` order.

    Parameters
    ----------
    df
        The query.
    root
        The dataset whose indexes are looked at; those of others are left in sight.
    store
        Where the metadata is.
    scans
        The query's scans of the dataset with all indexes in sight.

    Returns
    -------
    list
        A tuple per scan; ``None`` when the query was planned into other scans without an index, so that what one scan
        gains cannot be told.
    """
    names = list(dict.fromkeys(name for scan in scans for name in scan.used))
    skipped: dict[tuple[str, bool], list[int] | None] = {}
    with _planned_again(df, root, store) as plan_with:
        for name in names:
            for alone in (True, False):
                seen = plan_with(_alone(name) if alone else _without(name))
                same = [scan.condition for scan in seen] == [scan.condition for scan in scans]
                skipped[name, alone] = [scan.objects.skipped for scan in seen] if same else None
    return [_of_scan(number, scan, skipped) for number, scan in enumerate(scans)]


def _alone(name: str) -> Callable[[str], bool]:
    return lambda index: index == name


def _without(name: str) -> Callable[[str], bool]:
    return lambda index: index != name


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


@contextmanager
def _planned_again(
    df: DataFrame, root: str, store: MetadataStore
) -> Iterator[Callable[[Callable[[str], bool]], list[ScanStats]]]:
    """Give what plans a query with the chosen indexes of a dataset and tells its scans of that dataset."""
    registry.register_store(_STORE, SomeIndexes)
    token = str(threading.get_ident())
    settings = {"store": _STORE, _VIEW_SETTING: token, "force": "false"}
    replan = Client(df.sparkSession).replanner(df, {f"spark.skipstone.{n}": v for n, v in settings.items()})

    def plan_with(chosen: Callable[[str], bool]) -> list[ScanStats]:
        _views[token] = _View(store, root, chosen)
        entries = [ScanStats.of(entry) for entry in replan()]
        return [scan for scan in entries if any(r == root or r.startswith(f"{root.rstrip('/')}/") for r in scan.roots)]

    try:
        yield plan_with
    finally:
        _views.pop(token, None)


@dataclass(frozen=True)
class _View:
    """Which indexes of one dataset a thread's plans may see, and where their metadata is."""

    store: MetadataStore
    root: str
    chosen: Callable[[str], bool]


_views: dict[str, _View] = {}
"""By the number of the thread that plans: the name of the store is all that a session can tell the planner."""


class SomeIndexes(MetadataStore):
    """Another store in which only some of a dataset's indexes are seen; it writes nothing."""

    settings = (_VIEW_SETTING,)

    def __init__(self, token: str) -> None:
        self._token = token

    @classmethod
    def for_session(cls, spark: SparkSession, settings: Mapping[str, str]) -> Self:  # noqa: ARG003  (the contract's)
        """Make the store of the thread whose plans look through it."""
        return cls(settings.get(_VIEW_SETTING, ""))

    @property
    def _view(self) -> _View:
        """What is seen at this moment."""
        view = _views.get(self._token)
        if view is None:
            msg = f"spark.skipstone.store is {_STORE!r}, which is for reports alone; use 'parquet', or unset it"
            raise SettingError(msg)
        return view

    def latest(self, root: str) -> Snapshot | None:
        """Give the newest snapshot with the chosen indexes alone; of other datasets with all."""
        view = self._view
        snapshot = view.store.latest(root)
        if snapshot is None or snapshot.root != view.root:
            return snapshot
        return replace(snapshot, indexes=tuple(index for index in snapshot.indexes if view.chosen(index.name)))

    def objects(self, snapshot: Snapshot, columns: Sequence[str] | None = None) -> pa.Table:
        """Give the snapshot's objects."""
        return self._view.store.objects(snapshot, columns)

    def coverage(self, snapshot: Snapshot, index: IndexRecord) -> npt.NDArray[np.bool_]:
        """Say which objects an index describes."""
        return self._view.store.coverage(snapshot, index)

    def evaluate(self, snapshot: Snapshot, clause: Clause) -> Evaluation:
        """Evaluate a clause."""
        return self._view.store.evaluate(snapshot, clause)

    def size(self, snapshot: Snapshot) -> Mapping[str, int]:
        """Give the stored bytes per index."""
        return self._view.store.size(snapshot)

    def refusal(self, snapshot: Snapshot, index: IndexRecord) -> str | None:
        """Say why an index cannot be used."""
        return self._view.store.refusal(snapshot, index)

    def commit(self, root: str, base: Snapshot | None, change: Change, *, replace: bool = False) -> Snapshot:  # noqa: ARG002
        """Refuse: nothing is written through a view."""
        raise MetadataStoreError(_READ_ONLY)

    def drop(self, root: str) -> None:  # noqa: ARG002
        """Refuse: nothing is dropped through a view."""
        raise MetadataStoreError(_READ_ONLY)


_READ_ONLY = "this view of the metadata cannot be written: use the store that it looks at"
