"""Dropping indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skipstone.errors import IndexNotFoundError
from skipstone.indexing.reading import newest_reader, with_reader
from skipstone.indexing.records import Change
from skipstone.indexing.target import commit, named

if TYPE_CHECKING:
    from skipstone.indexing.target import Target
    from skipstone.stores.metadata_store import Snapshot

__all__ = ["drop_indexes"]


def drop_indexes(target: Target, names: tuple[str, ...]) -> None:
    """Drop indexes by name, or everything that the store has of the dataset."""
    if not names:
        target.store.drop(target.root)
        return
    target.store.check_newest(target.root)
    base = target.store.latest(target.root)
    present = base.indexes if base is not None else ()
    unknown = [name for name in names if name not in {r.name for r in present}]
    if unknown:
        msg = f"{target.root} has no index named {', '.join(unknown)}; it has: {named(present)}"
        raise IndexNotFoundError(msg)
    if all(r.name in names for r in present):
        target.store.drop(target.root)
        return

    def change(current: Snapshot | None) -> Change:
        there = current.indexes if current is not None else ()
        kept = tuple(r for r in there if r.name not in names)
        return Change(with_reader(kept, newest_reader(there)))

    commit(target, base, change)
