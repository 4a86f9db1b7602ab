"""Metadata in memory, and an index held against the row-level truth: every clause must represent its predicate."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from skipstone.indexing.objects import DataObject
from skipstone.querying.clause import lookups_of
from skipstone.querying.generate_clause import generate_clause
from skipstone.testing.truth import evaluate
from skipstone.toolkit.hashing import hash_expression, spark_hash
from skipstone.toolkit.values import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from skipstone.expressions.tree import Expression
    from skipstone.indexing.index import Index
    from skipstone.querying.clause import Clause
    from skipstone.querying.implication import Implication

__all__ = [
    "InMemoryMetadata",
    "Outcome",
    "assert_merges",
    "assert_monotone",
    "assert_represents",
    "collect",
    "kept_objects",
]


@dataclass(frozen=True)
class InMemoryMetadata:
    """The metadata of some objects for one index, as a store would give it to a clause."""

    fields: Mapping[str, pa.Array]
    row_count: pa.Array

    def __len__(self) -> int:
        return len(self.row_count)

    def field(self, index: Index, name: str) -> pa.Array:  # noqa: ARG002  (there is one index)
        """Return one stored field."""
        return self.fields[name]

    def without(self, name: str) -> InMemoryMetadata:
        """Forget one field (or ``row_count``) of every object."""
        if name == "row_count":
            return dataclasses.replace(self, row_count=pa.nulls(len(self), pa.int64()))
        return dataclasses.replace(self, fields={**self.fields, name: pa.nulls(len(self), self.fields[name].type)})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check saw: pairs of predicate and object, how many were relevant, and how many were skipped."""

    pairs: int
    relevant: int
    skipped: int


def collect(
    index: Index,
    objects: Sequence[pa.RecordBatch],
    types: Mapping[str, str],
    *,
    inputs: Mapping[str, Callable[[pa.RecordBatch], pa.Array]] | None = None,
    rows_per_part: int | None = None,
    length: int = 1_000_000,
) -> InMemoryMetadata:
    """Collect metadata as the index job would: parts of an object are collected, merged and finished.

    Parameters
    ----------
    index
        The index.
    objects
        The rows of each object, a column per name in ``types``.
    types
        The Spark types of the columns, by name.
    inputs
        How to compute the index's input expressions, where they are neither columns nor Skipstone's hash of one.
    rows_per_part
        Split objects into parts of so many rows; whole when not given.
    length
        The length in bytes that the objects pretend to have.
    """
    expressions = index.inputs(tuple(types[column] for column in index.columns))
    finished = []
    field_types: Mapping[str, pa.DataType] = {}
    for number, rows in enumerate(objects):
        step = rows_per_part or max(1, rows.num_rows)
        states = []
        for start in range(0, max(1, rows.num_rows), step):
            part = rows.slice(start, step)
            columns = [_input(expression, part, types, inputs or {}) for expression in expressions]
            states.append(index.collect_metadata(pa.RecordBatch.from_arrays(columns, list(expressions))))
            field_types = index.metadata_type.fields(tuple(column.type for column in columns))
        merged = reduce(lambda one, other: one.merge(other), states)
        finished.append(merged.finish(DataObject(f"object-{number}", length, 0)))
    fields = {
        name: pa.array([_plain(stored[name]) for stored in finished], type_) for name, type_ in field_types.items()
    }
    return InMemoryMetadata(fields, pa.array([rows.num_rows for rows in objects], pa.int64()))


def _input(
    expression: str,
    rows: pa.RecordBatch,
    types: Mapping[str, str],
    inputs: Mapping[str, Callable[[pa.RecordBatch], pa.Array]],
) -> pa.Array:
    """Compute one input expression of an index."""
    if expression in inputs:
        return inputs[expression](rows)
    for name, type_ in types.items():
        if expression in (name, quoted(name)):
            return rows.column(name)
        if expression == hash_expression(name):
            values = rows.column(name).to_pylist()
            return pa.array([None if v is None else spark_hash(v, type_) for v in values], pa.int64())
    msg = f"say in inputs= how to compute {expression!r}"
    raise KeyError(msg)


def _plain(value: Any) -> Any:
    """Turn a finished list into what ``pa.array`` takes."""
    return value.to_pylist() if isinstance(value, pa.Array) else value


def kept_objects(
    index: Index, predicate: Expression, metadata: InMemoryMetadata, implications: Sequence[Implication] = ()
) -> npt.NDArray[np.bool_]:
    """Return which objects a query with this predicate would read; all of them when no filter serves it."""
    labelled = generate_clause(predicate, index.filters(), implications)
    if labelled.problems:
        raise AssertionError("; ".join(labelled.problems))
    if labelled.clause is None:
        return np.ones(len(metadata), np.bool_)
    read = dataclasses.replace(metadata, fields={name: metadata.fields[name] for _, name in labelled.clause.requires})
    kept: npt.NDArray[np.bool_] = labelled.clause.might_match(read).fill_null(True).to_numpy(zero_copy_only=False)
    narrowed = dataclasses.replace(read, fields=_looked_up(read.fields, labelled.clause))
    if (kept != labelled.clause.might_match(narrowed).fill_null(True).to_numpy(zero_copy_only=False)).any():
        msg = f"{labelled.clause} answers otherwise when it is given only the values that its lookups name"
        raise AssertionError(msg)
    return kept


def _looked_up(fields: Mapping[str, pa.Array], clause: Clause) -> dict[str, pa.Array]:
    """Leave in sets only what a clause says it looks for."""
    found = dict(fields)
    for (_, name), lookup in lookups_of(clause).items():
        if pa.types.is_list(fields[name].type):
            lists = fields[name].to_pylist()
            wanted = [None if values is None else [v for v in values if v in lookup.values] for values in lists]
            found[name] = pa.array(wanted, fields[name].type)
    return found


def assert_represents(
    index: Index,
    predicates: Sequence[Expression],
    objects: Sequence[pa.RecordBatch],
    types: Mapping[str, str],
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    implications: Sequence[Implication] = (),
    metadata: InMemoryMetadata | None = None,
    **collecting: Any,
) -> Outcome:
    """Fail if, for any predicate, an object with a matching row would be skipped.

    Parameters
    ----------
    index
        The index to hold against the truth.
    predicates
        Predicates over the columns.
    objects, types, collecting
        As for ``collect``.
    functions
        Python functions by the name by which predicates call them, for the row-level truth.
    implications
        What predicates imply, where the index relies on it.
    metadata
        Metadata to use in place of what is collected of the objects.

    Examples
    --------
    >>> from skipstone.expressions.tree import Column, GreaterThan, Literal
    >>> from skipstone.indexes.minmax import MinMaxIndex
    >>> objects = [pa.record_batch({"n": pa.array(rows, pa.int32())}) for rows in ([1, 2], [None], [3])]
    >>> assert_represents(MinMaxIndex("n"), [GreaterThan(Column("n", "int"), Literal(2, "int"))], objects, {"n": "int"})
    Outcome(pairs=3, relevant=1, skipped=2)
    """
    metadata = metadata or collect(index, objects, types, **collecting)
    rows_of = [rows.to_pylist() for rows in objects]
    relevant_count = skipped = 0
    for predicate in predicates:
        truth: dict[str, bool] = {}
        kept = kept_objects(index, predicate, metadata, implications)
        for number, rows in enumerate(rows_of):
            relevant = False
            for row in rows:
                key = repr(row)
                if key not in truth:
                    truth[key] = evaluate(predicate, row, functions) is True
                relevant = relevant or truth[key]
            if relevant and not kept[number]:
                msg = f"{index.name} skips an object that has a row with {predicate}: {rows}"
                raise AssertionError(msg)
            relevant_count += relevant
            skipped += not kept[number]
    return Outcome(len(predicates) * len(objects), relevant_count, skipped)


def assert_monotone(
    index: Index,
    predicates: Sequence[Expression],
    metadata: InMemoryMetadata,
    implications: Sequence[Implication] = (),
) -> None:
    """Fail if forgetting a field makes an object skipped that was kept: ignorance must only ever keep."""
    for predicate in predicates:
        kept = kept_objects(index, predicate, metadata, implications)
        for name in (*metadata.fields, "row_count"):
            still = kept_objects(index, predicate, metadata.without(name), implications)
            if (kept & ~still).any():
                msg = f"{index.name} skips more for {predicate} when {name} is not known"
                raise AssertionError(msg)


def assert_merges(index: Index, rows: pa.RecordBatch, types: Mapping[str, str], **collecting: Any) -> None:
    """Fail if an object read in parts gets other metadata than the same object read at once; lists are sets."""
    whole = _comparable(collect(index, [rows], types, **collecting))
    for size in range(1, max(2, rows.num_rows)):
        parts = _comparable(collect(index, [rows], types, rows_per_part=size, **collecting))
        if parts != whole:
            msg = f"{index.name} gives {parts} in parts of {size} rows, but {whole} at once"
            raise AssertionError(msg)


def _comparable(metadata: InMemoryMetadata) -> str:
    """Spell metadata so that equal spelling is equal meaning."""
    stored = {name: array[0].as_py() for name, array in metadata.fields.items()}
    return repr({name: sorted(value) if isinstance(value, list) else value for name, value in stored.items()})
