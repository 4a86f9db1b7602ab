"""The metadata store contract (paper, III-B): snapshots of a dataset's metadata, evaluated and committed as a whole.

The flow is one-way: the index job hands a ``Change`` to ``commit``; the planner asks for the ``latest`` snapshot, gives
it a clause, and gets back which objects to keep.  Readers see a commit whole or not at all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from skipstone.errors import MetadataStoreError
from skipstone.indexing.records import Change, ColumnRecord, IndexRecord, ReadProfile, field_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from skipstone.indexing.index import Index
    from skipstone.querying.clause import Clause, Metadata

__all__ = [
    "Change",
    "ColumnRecord",
    "Evaluation",
    "IndexRecord",
    "MetadataStore",
    "ReadProfile",
    "Recovery",
    "Snapshot",
    "field_column",
]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One committed state of a dataset's metadata; ``id`` is unique across datasets and versions."""

    id: str
    root: str
    location: str
    version: int
    indexes: tuple[IndexRecord, ...]
    object_count: int


@dataclass(frozen=True)
class Evaluation:
    """The outcome of a clause on a snapshot: which of its objects to keep (by row), and what it cost to know.

    ``idle`` are the terms of the clause, as ``conjuncts`` writes them, that are known to be false of no object.
    """

    kept: npt.NDArray[np.bool_]
    bytes_read: int
    by_spark: bool = False
    idle: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Recovery:
    """What damaged metadata can be made again from.

    Parameters
    ----------
    indexes
        The indexes to collect anew; none when nothing says which there were.
    source
        Where they are known from, in words.
    lost
        A sentence for whatever cannot be brought back, or may come back although it was dropped, with what to do.
    """

    indexes: tuple[IndexRecord, ...] = ()
    source: str = "the newest version"
    lost: tuple[str, ...] = ()


class MetadataStore(ABC):
    """Where metadata is kept.  Every method may raise ``MetadataStoreError``; the planner then reads all.

    A store is a plug-in: a module registers its class by ``skipstone.registry.register_store(name, Class)``, and
    ``spark.skipstone.store`` chooses it by that name (docs/stores.md).
    """

    settings: ClassVar[tuple[str, ...]] = ()
    """The settings, without ``spark.skipstone.``, that ``for_session`` reads: one store is made for equal values.

    One that ends with a dot stands for all settings that begin with it.
    """

    @classmethod
    def for_session(cls, spark: SparkSession, settings: Mapping[str, str]) -> Self:
        """Make the store that the settings of a session describe.

        Raises
        ------
        SettingError
            When a setting is missing or makes no sense.
        """
        raise NotImplementedError

    def folder(self, root: str) -> str | None:  # noqa: ARG002  (part of the contract)
        """Name the folder that holds (or would hold) a dataset's metadata; ``None`` where that is in no files."""
        return None

    @abstractmethod
    def latest(self, root: str) -> Snapshot | None:
        """Return the newest snapshot of the dataset rooted at ``root``, or ``None``.  Cheap when warm."""

    @abstractmethod
    def objects(self, snapshot: Snapshot, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the snapshot's objects, in row order: the columns of ``Change.added`` before the index fields.

        ``columns`` chooses some of them: paths are most of the bytes, and a planner needs none.
        """

    @abstractmethod
    def coverage(self, snapshot: Snapshot, index: IndexRecord) -> npt.NDArray[np.bool_]:
        """Return for each row of ``objects`` whether the index has metadata of that object in its present state."""

    @abstractmethod
    def evaluate(self, snapshot: Snapshot, clause: Clause) -> Evaluation:
        """Evaluate a clause for every object; unknown keeps.  Reads only the fields that the clause requires."""

    def fields(self, snapshot: Snapshot, wanted: Sequence[tuple[Index, str]]) -> Metadata | None:  # noqa: ARG002
        """Return stored fields of indexes for every object, in row order, as clauses see them.

        ``None`` where the store answers clauses only, or where the fields take more memory than it may use: then
        queries that need them (``ORDER BY … LIMIT``) are planned without.
        """
        return None

    @abstractmethod
    def size(self, snapshot: Snapshot) -> Mapping[str, int]:
        """Return the stored bytes per index id; the key ``""`` has what belongs to no index."""

    @abstractmethod
    def commit(self, root: str, base: Snapshot | None, change: Change, *, replace: bool = False) -> Snapshot:
        """Make ``change`` the state after ``base`` (``None``: the first), all or nothing.

        With ``replace`` the change is all there is afterwards, whatever was there before, readable or not (``base`` is
        not looked at): so is damaged metadata made again, without a moment in which there is none.

        Raises
        ------
        CommitConflictError
            When another writer has committed after ``base``.
        """

    def refusal(self, snapshot: Snapshot, index: IndexRecord) -> str | None:  # noqa: ARG002  (part of the contract)
        """Return why this caller cannot use an index of a snapshot (a missing key, for one), or ``None`` if it can.

        The planner leaves such an index out and says why; the others serve.
        """
        return None

    def check_keys(self, keys: Sequence[str]) -> None:
        """Make sure, before anything is collected, that this caller can encrypt with these keys.

        Raises
        ------
        MetadataStoreError
            When a key cannot be had, or the store does not encrypt.
        """
        if keys:
            msg = (
                f"{type(self).__name__} does not encrypt, so an index with the key {keys[0]!r} cannot be kept: leave "
                "key= out for plain metadata, or use the parquet store"
            )
            raise MetadataStoreError(msg)

    def check_newest(self, root: str) -> None:  # noqa: B027  (a store that cannot tell has nothing to check)
        """Make sure that the version which ``latest`` gives is the newest that was ever committed.

        Whoever is about to change the metadata asks this first: a version committed on top of an older one would hide
        that a newer one was lost.

        Raises
        ------
        MetadataCorruptError
            When something tells of a newer version that is gone.
        """

    def recoverable_indexes(self, root: str) -> tuple[IndexRecord, ...]:
        """Return the indexes to make again when ``latest`` or a commit finds damage; empty when nothing says which.

        They are for collecting anew and committing with ``replace``, under new ids: their metadata is not to be used.
        """
        try:
            found = self.latest(root)
        except MetadataStoreError:
            return ()
        return () if found is None else found.indexes

    def recovery(self, root: str) -> Recovery:
        """Return the indexes to make again after damage, and what of the damaged metadata is lost.

        A store that keeps nothing beside its newest version needs ``recoverable_indexes`` only.
        """
        return Recovery(self.recoverable_indexes(root))

    def clean(self, root: str) -> int:  # noqa: ARG002  (part of the contract)
        """Delete what writers that died have left behind, and return how many files went; never fails.

        What they did not come to write beside their version is written.  A commit does both too; a refresh that has
        nothing to commit calls this.
        """
        return 0

    @abstractmethod
    def drop(self, root: str) -> None:
        """Remove everything that the store holds of a dataset."""
