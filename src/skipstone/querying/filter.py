"""Filters (paper, definition 4): they label the vertices of an Expression Tree with clauses that represent them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skipstone.expressions.tree import Expression
    from skipstone.indexing.index import Index
    from skipstone.querying.clause import Clause

__all__ = ["Filter"]


class Filter(ABC):
    """Knows how the metadata of one index serves predicates.

    Subclasses are frozen dataclasses with a field ``index``.  ``label_node`` sees every boolean vertex of the
    normalised tree (literal on the right, NOT on the leaves), the AND, OR and NOT vertices included, and is only asked
    when the index's columns have, in this query, the very types and the way of being read that were indexed.
    """

    index: Index

    @abstractmethod
    def label_node(self, node: Expression) -> Clause | Iterable[Clause] | None:
        """Return the clauses that represent ``node``, or ``None``.

        The docstring of an implementation says *why* each clause represents its expression, nulls and NaN included.
        """
