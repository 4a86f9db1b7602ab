"""The soundness suite for an author's index type, in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from skipstone.expressions.tree import And, Not, Or
from skipstone.testing.represents import Outcome, assert_monotone, assert_represents, collect
from skipstone.testing.strategies import leaf_predicates, physical_type, values_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hypothesis.strategies import SearchStrategy

    from skipstone.expressions.tree import Expression
    from skipstone.indexing.index import Index
    from skipstone.querying.implication import Implication

__all__ = ["assert_sound"]

_MOST_OBJECTS = 4
_MOST_ROWS = 5


def assert_sound(
    index: Index,
    types: Mapping[str, str],
    *,
    predicates: SearchStrategy[Expression] | None = None,
    values: Mapping[str, SearchStrategy[Any]] | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    implications: Sequence[Implication] = (),
    inputs: Mapping[str, Callable[[pa.RecordBatch], pa.Array]] | None = None,
    examples: int = 200,
) -> Outcome:
    """Attack an index type with random objects and predicates; fail at the first row that it would lose.

    Every example makes a few small objects, collects them whole and in parts, and holds random combinations (AND, OR,
    NOT) of the predicates against the row-level truth.  It fails, too, if knowing less skips more, or if nothing was
    skipped in all examples together: a test in which nothing is skipped proves nothing.

    Parameters
    ----------
    index
        The index to attack.
    types
        The Spark types of its columns, by name.
    predicates
        A Hypothesis strategy for predicates; those that ``leaf_predicates`` gives for every column when left out.
    values
        Hypothesis strategies for the physical values of columns; those of ``values_of`` where left out.
    functions
        Python functions by the name by which predicates call them, for the truth.
    implications
        What predicates imply, where the index relies on it.
    inputs
        How to compute the index's input expressions, where they are neither columns nor Skipstone's hash of one.
    examples
        How many examples to try.

    Returns
    -------
    Outcome
        How many pairs of predicate and object were tried, how many had a matching row, how many were skipped.

    Examples
    --------
    >>> from skipstone.indexes.minmax import MinMaxIndex
    >>> assert_sound(MinMaxIndex("n"), {"n": "int"}, examples=50).skipped > 0
    True
    """
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st

    leaves = predicates if predicates is not None else st.one_of([leaf_predicates(c, t) for c, t in types.items()])
    trees = st.recursive(
        leaves,
        lambda inner: (
            inner.map(Not)
            | st.lists(inner, min_size=2, max_size=3).map(lambda terms: And(tuple(terms)))
            | st.lists(inner, min_size=2, max_size=3).map(lambda terms: Or(tuple(terms)))
        ),
        max_leaves=4,
    )
    columns = {name: (values or {}).get(name, values_of(type_)) for name, type_ in types.items()}
    rows = st.lists(st.fixed_dictionaries(columns), max_size=_MOST_ROWS)
    counts = [0, 0, 0]

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(rows, min_size=1, max_size=_MOST_OBJECTS), st.lists(trees, min_size=1, max_size=3))
    def attack(objects: list[list[dict[str, Any]]], asked: list[Expression]) -> None:
        batches = [_batch(rows, types) for rows in objects]
        for size in (None, 1):
            metadata = collect(index, batches, types, inputs=inputs, rows_per_part=size)
            seen = assert_represents(
                index, asked, batches, types, functions=functions, implications=implications, metadata=metadata
            )
            assert_monotone(index, asked, metadata, implications)
            for place, count in enumerate((seen.pairs, seen.relevant, seen.skipped)):
                counts[place] += count

    attack()
    outcome = Outcome(*counts)
    if not outcome.skipped:
        msg = f"{index.name} skipped nothing in {outcome.pairs} tries: give predicates= that it serves"
        raise AssertionError(msg)
    return outcome


def _batch(rows: list[dict[str, Any]], types: Mapping[str, str]) -> pa.RecordBatch:
    """Make an object's rows."""
    return pa.RecordBatch.from_arrays(
        [pa.array([row[name] for row in rows], physical_type(type_)) for name, type_ in types.items()], list(types)
    )
