"""Clauses (paper, definition 2): conditions on an object's metadata, evaluated for all objects at once.

``might_match`` answers per object: True, a row may satisfy the expression; False, *no* row does; null, unknown.
Unknown keeps the object.  Absent metadata is null, Arrow's comparisons carry null through, and the Kleene connectives
below let one side's proof stand beside the other side's ignorance, so a clause needs no special case for "missing".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skipstone.expressions.tree import Expression
    from skipstone.indexing.index import Index

__all__ = ["AndClause", "Clause", "Metadata", "OrClause", "conjunction", "disjunction"]


class Metadata(Protocol):
    """The stored metadata of ``len(self)`` objects, one Arrow array per index and field, aligned by position."""

    def __len__(self) -> int:
        """Return the number of objects."""
        ...

    def field(self, index: Index, name: str) -> pa.Array:
        """Return one stored field of an index; null where nothing is known of that object."""
        ...

    @property
    def row_count(self) -> pa.Array:
        """The number of rows of each object (int64); null where it is not known."""
        ...


class Clause(ABC):
    """A boolean condition on objects that *represents* an expression (paper, definition 3).

    Subclasses are frozen dataclasses.  The proof that the clause represents the expression it is put on belongs in the
    docstring of the Filter that does so.
    """

    @abstractmethod
    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        """Say for each object whether a row might match: True, False, or null for unknown."""

    @property
    @abstractmethod
    def requires(self) -> tuple[tuple[Index, str], ...]:
        """The (index, field) pairs that ``might_match`` reads: a store loads these and no others."""

    def negate(self, expression: Expression) -> Clause | None:  # noqa: ARG002  (part of the contract)
        """Give a clause that represents ``NOT expression``, where this clause represents ``expression``.

        Most clauses have none: that an object *may* match says nothing of whether a row fails to.
        """
        return None


@dataclass(frozen=True, slots=True)
class AndClause(Clause):
    """Every term holds (paper, lemmas 1 and 2)."""

    terms: tuple[Clause, ...]

    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        """Combine by Kleene's AND: one proof of absence is enough."""
        return reduce(pc.and_kleene, (term.might_match(metadata) for term in self.terms))

    @property
    def requires(self) -> tuple[tuple[Index, str], ...]:
        """What the terms read together."""
        return _united(self.terms)

    def __str__(self) -> str:
        return " AND ".join(f"({term})" if isinstance(term, OrClause) else str(term) for term in self.terms)


@dataclass(frozen=True, slots=True)
class OrClause(Clause):
    """Some term holds (paper, lemma 3)."""

    terms: tuple[Clause, ...]

    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        """Combine by Kleene's OR: absence must be proved for every term."""
        return reduce(pc.or_kleene, (term.might_match(metadata) for term in self.terms))

    @property
    def requires(self) -> tuple[tuple[Index, str], ...]:
        """What the terms read together."""
        return _united(self.terms)

    def __str__(self) -> str:
        return " OR ".join(f"({term})" if isinstance(term, AndClause) else str(term) for term in self.terms)


def conjunction(clauses: Sequence[Clause]) -> Clause | None:
    """Join clauses that all hold; ``None`` (anything goes) when there is none."""
    flat = tuple(dict.fromkeys(part for c in clauses for part in (c.terms if isinstance(c, AndClause) else (c,))))
    return AndClause(flat) if len(flat) > 1 else (flat[0] if flat else None)


def disjunction(clauses: Sequence[Clause]) -> Clause | None:
    """Join clauses of which some must hold; ``None`` (anything goes) when there is none."""
    flat = tuple(dict.fromkeys(part for c in clauses for part in (c.terms if isinstance(c, OrClause) else (c,))))
    return OrClause(flat) if len(flat) > 1 else (flat[0] if flat else None)


def _united(terms: tuple[Clause, ...]) -> tuple[tuple[Index, str], ...]:
    """Collect what several clauses read, each pair once, in order of first use."""
    return tuple(dict.fromkeys(pair for term in terms for pair in term.requires))
