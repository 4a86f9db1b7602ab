"""What an index job asks of an engine: the objects of a dataset, read in one way.

An engine implements ``Source``; ``create``, ``refresh`` and ``repair`` are jobs over it and know no other thing of the
engine.  docs/engines.md walks through an implementation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from skipstone.indexing.index import Index
    from skipstone.indexing.objects import DataObject
    from skipstone.indexing.records import ColumnRecord
    from skipstone.indexing.relation import Relation

__all__ = ["BoundIndex", "Outcome", "Preparation", "Source"]


@dataclass(frozen=True)
class BoundIndex:
    """An index whose columns were found in a dataset's schema; ``id`` names its columns in the metadata."""

    id: str
    index: Index
    columns: tuple[ColumnRecord, ...]

    @property
    def types(self) -> tuple[str, ...]:
        """The types of the columns, as catalog strings."""
        return tuple(column.type for column in self.columns)


@dataclass(frozen=True)
class Outcome:
    """What an index job gave.

    ``table`` is as ``Change.added`` wants it; ``fields`` spells the Arrow types of each index's stored fields, by the
    index's id; ``listed`` counts the objects that were to be indexed, ``left_out`` those that changed or vanished
    meanwhile, ``untrusted`` those written too shortly before to tell a later write apart.  ``failures`` says what an
    index raised, by its id and the object's path: that index has nothing of that object.  ``laps`` has the monotonic
    time at which each phase of the job ended.
    """

    table: pa.Table
    fields: Mapping[str, Mapping[str, str]]
    listed: int
    left_out: int
    untrusted: int
    failures: Mapping[tuple[str, str], str] = field(default_factory=dict)
    laps: tuple[tuple[str, float], ...] = ()


class Preparation(Protocol):
    """What an index may ask of a dataset before it is built; each method raises ``IndexingError`` on nonsense."""

    @property
    def reads_as(self) -> Mapping[str, str]:
        """What the declared schema says of columns besides their types, by name: char(n), a default, a field's id."""

    def type_of(self, expression: str) -> str:
        """Return the type of a SQL expression over the dataset's columns."""

    def functions_in(self, expression: str) -> tuple[str, ...]:
        """Name the users' functions that a SQL expression over the dataset's columns calls."""

    def condition(self, predicate: str) -> Mapping[str, Any]:
        """Return a SQL predicate over the dataset's columns as a query's condition would reach the planner.

        It is what ``expressions.from_spark.read_expression`` reads, after the engine's own optimizer has been over it.
        """


class Source(Protocol):
    """The objects of a dataset, as one engine reads them in one way that stays the same while a job runs."""

    @property
    def relation(self) -> Relation:
        """How the dataset is read, as it was when the source was made."""

    def relation_now(self) -> Relation:
        """Return how the dataset is read at this moment: what others share may have changed meanwhile."""

    @property
    def preparation(self) -> Preparation:
        """What indexes may ask before they are built."""

    def refuse_visible_folder(self, folder: str | None) -> None:
        """Raise ``DatasetError`` when the dataset's reader would take the files of a metadata folder for data."""

    def refuse_unsteady_rows(self) -> None:
        """Raise ``IndexingError`` when what the reader gives depends on more than the file: see ``unsteady``."""

    def bind(self, indexes: Iterable[Index]) -> list[BoundIndex]:
        """Find the columns of indexes, give each index an id, and check that its type takes its columns."""

    def list_objects(self, paths: Iterable[str] | None = None) -> list[DataObject]:
        """List all objects anew, or only those of some objects and folders, each once."""

    def changed(self, objects: Sequence[DataObject]) -> frozenset[str] | None:
        """Return the paths of those objects of the last listing that are in another state now, or gone.

        ``None`` where to list them anew is the way to tell, as always in object stores.
        """

    def gone(self, paths: Sequence[str]) -> list[str]:
        """Return those of some paths that are in no file system any more; asked of table formats."""

    def collect(self, objects: Sequence[DataObject], bound: Sequence[BoundIndex]) -> pa.Table:
        """Collect the metadata of objects of the last listing, by the cheapest path that is sound.

        Columns ``object`` (its place in ``objects``), ``row_count``, and ``i:field`` for the i-th index; ``i:`` says
        why an index has nothing of an object.
        """

    def functions(self, bound: BoundIndex, when: Literal["collecting", "collected"]) -> dict[str, str]:
        """Return the identities of the users' functions whose results an index holds, by name."""

    def progress(self, objects: Sequence[DataObject], *, wanted: bool | None) -> AbstractContextManager[None]:
        """Show how far the jobs inside a block are that read these objects; by default on a terminal."""
