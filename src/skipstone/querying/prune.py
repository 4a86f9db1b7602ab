"""Pruning: from the planner's answer and a listing to the objects that a scan reads.

An engine's last step, for any engine that can list files.  The bridge to Spark does the same over arrays, for a million
objects in milliseconds (``Listing.scala``, ``Snapshot.scala`` and ``SkipstoneRule.choose``); a property test holds the
two equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from skipstone.errors import MetadataStoreError
from skipstone.indexing.objects import describes, recorded_states

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa

    from skipstone.indexing.objects import DataObject, State
    from skipstone.querying.plan import Decision, Plan
    from skipstone.stores.metadata_store import Snapshot

__all__ = ["Pruned", "prune"]

_METADATA_FOLDER = "/_skipstone/"


@dataclass(frozen=True)
class Pruned:
    """The objects of a listing, in its order: what a scan must read, and what it may leave out.

    ``stale`` and ``unindexed`` are those of the kept objects that no metadata describes as they are: there is metadata
    of the former in another state, and none at all of the latter.
    """

    kept: tuple[DataObject, ...]
    skipped: tuple[DataObject, ...]
    stale: tuple[DataObject, ...]
    unindexed: tuple[DataObject, ...]


def prune(plan: Plan, listing: Iterable[DataObject], objects: Callable[[Snapshot], pa.Table]) -> Pruned:
    """Decide which objects of a listing a scan must read.

    An object is *fresh* in a snapshot that has one row of its path, and in that row a state that describes the object
    as it is listed (``objects.describes``).  It is skipped if a snapshot in which it is fresh does not keep its row.  A
    path of which a snapshot has two rows is known, but never fresh; files of metadata that a listing shows are no data
    and known to none.  What was deleted is in no listing, so its rows are not looked at.

    *Skipping is sound*: no row of a skipped object satisfies the scan's condition.  Let *r* be the row of an object
    that is fresh in a snapshot which does not keep *r*.

    1. *r* was collected from a file of the same path (by its MD5) in the same state, and whatever *r* says of it holds
       now.  An index job lists before and after it reads, and records only objects that are equal in both listings.  An
       object so young that it may be written once more without its time changing is recorded as not trusted, and then
       nothing is recorded but its state: the clause is null on it, which keeps, or holds for no object whatever.  So
       trust needs no look here.
    2. The clause is false on *r*, since null keeps.  It represents the condition: the planner lets an index serve only
       a scan that reads the same values as the index job did, and Merge-Clause keeps to what filters have proved.  A
       clause that represents a condition holds for every object with a row that makes the condition TRUE (paper,
       definition 3); this one does not hold, so there is no such row.
    3. Nothing of this looks at other objects or at other snapshots.  So one proof is enough where datasets are nested
       and several snapshots know the object, whether the others are silent, stale or would keep it.

    All that is left, whatever the reason, is kept.

    Parameters
    ----------
    plan
        The planner's answer for the scan.
    listing
        The objects that are left after the engine's own partition pruning, as the scan is going to read them.
    objects
        Returns the objects of a snapshot in row order, as ``MetadataStore.objects`` does: ``digest`` and
        ``STATE_COLUMNS`` are enough.

    Raises
    ------
    MetadataStoreError
        When a snapshot's objects are not as many as its answer is for; everything has to be read then.
    """
    answers = [_Answer.of(decision, objects(decision.snapshot)) for decision in plan.decisions]
    kept: list[DataObject] = []
    skipped: list[DataObject] = []
    stale: list[DataObject] = []
    unindexed: list[DataObject] = []
    for listed in listing:
        said = [] if _METADATA_FOLDER in listed.path else [answer.says_of(listed) for answer in answers]
        if _Said.SKIP in said:
            skipped.append(listed)
            continue
        kept.append(listed)
        if _Said.KEEP not in said:
            (stale if _Said.STALE in said else unindexed).append(listed)
    return Pruned(tuple(kept), tuple(skipped), tuple(stale), tuple(unindexed))


class _Said(Enum):
    """What one snapshot says of a listed object."""

    KEEP = auto()
    SKIP = auto()
    STALE = auto()
    UNKNOWN = auto()


@dataclass(frozen=True)
class _Answer:
    """A decision, with the state of each object of its snapshot and whether the decision keeps it, by digest."""

    rows: Mapping[bytes, tuple[State, bool] | None]

    @classmethod
    def of(cls, decision: Decision, objects: pa.Table) -> _Answer:
        """Put together what was decided and what it was decided on."""
        count, evaluation = decision.snapshot.object_count, decision.evaluation
        kept = [True] * count if evaluation is None else evaluation.kept.tolist()
        if not objects.num_rows == len(kept) == count:
            msg = f"{decision.snapshot.id} has {objects.num_rows} objects and {len(kept)} answers instead of {count}"
            raise MetadataStoreError(msg)
        rows: dict[bytes, tuple[State, bool] | None] = {}
        for (digest, state), keep in zip(recorded_states(objects, "digest"), kept, strict=True):
            rows[digest] = None if digest in rows else (state, keep)
        return cls(rows)

    def says_of(self, listed: DataObject) -> _Said:
        """Return what is known of an object as it is listed."""
        digest = listed.digest
        if digest not in self.rows:
            return _Said.UNKNOWN
        row = self.rows[digest]
        if row is None or not describes(row[0], listed.state):
            return _Said.STALE
        return _Said.KEEP if row[1] else _Said.SKIP
