"""Ensuring indexes: what a nightly job states once, and may state again every night."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skipstone.errors import IndexExistsError, IndexingError, MetadataCorruptError
from skipstone.indexing.create import create_indexes
from skipstone.indexing.refresh import refresh
from skipstone.indexing.work import as_kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skipstone.indexing.index import Index
    from skipstone.indexing.records import IndexRecord
    from skipstone.indexing.report import IndexingReport
    from skipstone.indexing.source import BoundIndex
    from skipstone.indexing.target import Target

__all__ = ["ensure_indexes", "missing_indexes"]


def ensure_indexes(target: Target, indexes: Sequence[Index]) -> IndexingReport:
    """Refresh the indexes that are there, and create those of the given ones that are not.

    Indexes that are there and were not given are refreshed as well.  When the metadata is gone, with an overwritten
    dataset perhaps, all given indexes are created.

    Raises
    ------
    IndexingError
        When an index of the same name was made in another way; nothing is changed then.
    """
    if not indexes:
        msg = "ensure_indexes needs at least one index, for example MinMaxIndex('ts')"
        raise IndexingError(msg)
    try:
        return _ensure(target, indexes)
    except IndexExistsError:  # another writer made one meanwhile
        return _ensure(target, indexes)
    except MetadataCorruptError:
        refresh(target)  # makes it anew
        return _ensure(target, indexes)


def missing_indexes(target: Target, indexes: Sequence[Index]) -> tuple[Index, ...]:
    """Return those of some indexes that the dataset does not have, each on the columns that it would be made for.

    Raises
    ------
    IndexingError
        When an index of the same name was made in another way.
    """
    return tuple(bound.index for bound in _sorted(target, indexes)[0])


def _ensure(target: Target, indexes: Sequence[Index]) -> IndexingReport:
    missing, present = _sorted(target, indexes)
    base = target.store.latest(target.root)
    if base is None or not base.indexes:
        return create_indexes(target, indexes)
    refreshed = refresh(target, None, [bound.index for bound in present if bound.index.runs_sql])
    if not missing:
        return refreshed
    return _together(refreshed, create_indexes(target, [bound.index for bound in missing]))


def _sorted(target: Target, indexes: Sequence[Index]) -> tuple[list[BoundIndex], list[BoundIndex]]:
    """Return the indexes that are missing, and those that are there as they should be."""
    base = target.store.latest(target.root)
    there = {record.name: record for record in base.indexes} if base is not None else {}
    preparation = target.source.preparation
    missing, present = [], []
    for bound in target.source.bind([index.prepare(preparation) for index in indexes]):
        record = there.get(bound.index.name)
        if record is None:
            missing.append(bound)
            continue
        if _differs(bound, record):
            msg = (
                f"{target.root} has an index named {record.name} that was made in another way; drop it first, or give "
                "the new one another name="
            )
            raise IndexingError(msg)
        present.append(bound)
    return missing, present


def _differs(bound: BoundIndex, record: IndexRecord) -> bool:
    """Whether an index is not the one that a record describes."""
    columns = [column.name for column in bound.columns] != [column.name for column in record.columns]
    kinds = bound.index.type_name != record.type_name or bound.index.key != record.key
    return columns or kinds or as_kept(bound.index.options()) != as_kept(record.options)


def _together(refreshed: IndexingReport, created: IndexingReport) -> IndexingReport:
    """Return one report of both jobs; objects that both read count in both."""
    return replace(
        created,
        indexes=tuple(dict.fromkeys((*refreshed.indexes, *created.indexes))),
        indexed=max(refreshed.indexed, created.indexed),
        removed=refreshed.removed,
        left_out=max(refreshed.left_out, created.left_out),
        untrusted=max(refreshed.untrusted, created.untrusted),
        rows=refreshed.rows + created.rows,
        seconds=refreshed.seconds + created.seconds,
        phases={
            phase: refreshed.phases.get(phase, 0.0) + created.phases.get(phase, 0.0)
            for phase in dict.fromkeys((*refreshed.phases, *created.phases))
        },
        problems=(*refreshed.problems, *created.problems),
        repaired=refreshed.repaired,
        lost=refreshed.lost,
    )
