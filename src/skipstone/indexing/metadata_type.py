"""Metadata types (paper, II-A): what is collected of one object, as a state that merges and is finished at the end."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from skipstone.indexing.objects import DataObject

__all__ = ["MetadataType"]


class MetadataType(ABC):
    """The state collected of (a part of) one object for one index.

    It is made by ``Index.collect_metadata``, or by ``from_aggregates`` where the index has ``facts`` or ``aggregates``.

    ``collect → merge → finish``: a large object is read in several parts, each gives a state, states of one object
    merge in any order, and only then is the stored form made, since a Bloom filter's size or which gaps are widest is
    known only then.  States travel between Spark's workers, so they must be picklable.
    """

    lookups: ClassVar[Mapping[str, str]] = {}
    """The stored fields of which clauses look up some of the content: a ``"set"``, a list whose order means nothing, or
    a ``"filter"``, bits of which some are looked at.  A store may keep them so that a lookup reads little; what is
    looked up, a clause says in ``Clause.lookups``."""

    @classmethod
    def from_aggregates(cls, row: Mapping[str, Any]) -> Self:
        """Make the state of a whole object from the values of ``Index.facts`` or ``Index.aggregates``, by name.

        For the types of indexes that have these; an index whose type does not override it is collected from rows.
        """
        raise NotImplementedError

    @classmethod
    @abstractmethod
    def fields(cls, inputs: tuple[pa.DataType, ...]) -> Mapping[str, pa.DataType]:
        """Name the stored fields and their Arrow types, given the Arrow types of the index's inputs."""

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """Join the states of two parts of one object; associative and commutative."""

    def finish(self, data_object: DataObject) -> Mapping[str, Any]:  # noqa: ARG002  (part of the contract)
        """Make the stored form: a value per field, ``None`` for unknown; a list field takes an Arrow array.

        By default the state's own fields, for a state that is a dataclass of what is stored.
        """
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
