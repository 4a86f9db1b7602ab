"""Clauses (paper, definition 2): conditions on an object's metadata, evaluated for all objects at once.

``might_match`` answers per object: True, a row may satisfy the expression; False, *no* row does; null, unknown.
Unknown keeps the object.  Absent metadata is null, Arrow's comparisons carry null through, and the Kleene connectives
below let one side's proof stand beside the other side's ignorance, so a clause needs no special case for "missing".
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, ClassVar, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from skipstone.querying.lookup import Lookup

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skipstone.expressions.tree import Expression
    from skipstone.indexing.index import Index

__all__ = [
    "AndClause",
    "Clause",
    "Metadata",
    "NeverClause",
    "OrClause",
    "conjunction",
    "conjuncts",
    "disjunction",
    "lookups_of",
    "walk_clause",
]


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

    reads: ClassVar[tuple[str, ...]] = ()
    """The stored fields that a clause with one ``index`` reads; a clause that reads others overrides ``requires``."""

    @abstractmethod
    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        """Return for each object whether a row might match: True, False, or null for unknown."""

    @property
    def requires(self) -> tuple[tuple[Index, str], ...]:
        """The (index, field) pairs that ``might_match`` reads: a store loads these and no others."""
        index: Index = self.index  # type: ignore[attr-defined]  # a clause without one overrides this
        return tuple((index, name) for name in self.reads)

    @property
    def lookups(self) -> Mapping[tuple[Index, str], Lookup]:
        """What ``might_match`` looks for in a field, where that is not all of it.

        Of a set it may then be given lists without some values that it does not look for, and must answer the same.
        Only for fields that the index's ``MetadataType.lookups`` names; not believed of a subclass that changes
        anything and does not state them anew.
        """
        return {}

    def negate(self, expression: Expression) -> Clause | None:  # noqa: ARG002  (part of the contract)
        """Return a clause that represents ``NOT expression``, where this clause represents ``expression``.

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
        return _united(self)

    def __str__(self) -> str:
        return _spelled(self)


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
        return _united(self)

    def __str__(self) -> str:
        return _spelled(self)


@dataclass(frozen=True, slots=True)
class NeverClause(Clause):
    """Holds for no object: it represents an expression that is TRUE for no row, such as ``x = NULL``."""

    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        """Return False for every object."""
        return pa.repeat(pa.scalar(False), len(metadata))

    @property
    def requires(self) -> tuple[tuple[Index, str], ...]:
        """Nothing: no metadata is needed."""
        return ()

    def __str__(self) -> str:
        return "never"


def conjunction(clauses: Sequence[Clause]) -> Clause | None:
    """Join clauses that all hold; ``None`` (anything goes) when there is none."""
    flat = tuple(dict.fromkeys(part for c in clauses for part in (c.terms if isinstance(c, AndClause) else (c,))))
    return AndClause(flat) if len(flat) > 1 else (flat[0] if flat else None)


def disjunction(clauses: Sequence[Clause]) -> Clause | None:
    """Join clauses of which some must hold; ``None`` (anything goes) when there is none."""
    flat = tuple(dict.fromkeys(part for c in clauses for part in (c.terms if isinstance(c, OrClause) else (c,))))
    return OrClause(flat) if len(flat) > 1 else (flat[0] if flat else None)


def walk_clause(root: Clause) -> Iterator[Clause]:
    """Yield a clause and those that it joins, from left to right."""
    yield root
    if isinstance(root, AndClause | OrClause):
        for term in root.terms:
            yield from walk_clause(term)


def _united(root: AndClause | OrClause) -> tuple[tuple[Index, str], ...]:
    """Collect what the parts of nested joins read, each pair once, in order of first use."""
    return tuple(dict.fromkeys(pair for clause in _leaves(root) for pair in clause.requires))


def lookups_of(root: Clause) -> dict[tuple[Index, str], Lookup]:
    """Collect what a clause looks for in the fields of which none of its parts needs all."""
    found: dict[tuple[Index, str], list[Lookup]] = {}
    whole: set[tuple[Index, str]] = set()
    leaves = [*_leaves(root)]
    own = {kind for kind in set(map(type, leaves)) if _are_its_own(kind)}
    parts = [(clause, clause.lookups if type(clause) in own else {}) for clause in leaves]
    if not any(lookups for _, lookups in parts):
        return {}
    for clause, lookups in parts:
        for pair in clause.requires:
            if pair not in lookups:
                whole.add(pair)
            else:
                found.setdefault(pair, []).append(lookups[pair])
    return {pair: Lookup.of_all(lookups) for pair, lookups in found.items() if pair not in whole}


def _are_its_own(kind: type[Clause]) -> bool:
    """Whether lookups of a class of clauses describe what it does: not if a subclass changed anything and left them.

    A subclass that answers more than its parent looks at more, too, and would not find it among what the parent names.
    """
    for cls in kind.__mro__:
        if "lookups" in cls.__dict__:
            return True
        fields = inspect.get_annotations(cls)
        if any(not name.startswith(("__", "_abc_")) and name not in fields for name in cls.__dict__):
            return False
    return False


def _leaves(root: Clause) -> Iterator[Clause]:
    """Yield the clauses that nested joins join, from left to right."""
    return (clause for clause in walk_clause(root) if not isinstance(clause, AndClause | OrClause))


def conjuncts(clause: Clause) -> dict[str, list[Clause]]:
    """Return the terms of a conjunction by how they are written; a clause that is none is its own term.

    Several terms may be written alike: a Hybrid index asks its values and its filters, each about other objects.
    """
    if type(clause) is AndClause:  # a subclass may mean something else by its terms
        return _written(clause)
    return {str(clause): [clause]}


def _written(clause: AndClause | OrClause) -> dict[str, list[Clause]]:
    """Return the terms of a join by how they are written in it, with brackets around a join of the other kind."""
    other = OrClause if isinstance(clause, AndClause) else AndClause
    found: dict[str, list[Clause]] = {}
    for term in clause.terms:
        if isinstance(term, AndClause | OrClause):
            inner = _written(term)
            spelled = _joined(term, inner)
            text = f"({spelled})" if isinstance(term, other) and len(inner) > 1 else spelled
        else:
            text = str(term)
        found.setdefault(text, []).append(term)
    return found


def _spelled(clause: AndClause | OrClause) -> str:
    """Write a join; what is written alike is written once."""
    return _joined(clause, _written(clause))


def _joined(clause: AndClause | OrClause, written: Mapping[str, list[Clause]]) -> str:
    return (" AND " if isinstance(clause, AndClause) else " OR ").join(written)
