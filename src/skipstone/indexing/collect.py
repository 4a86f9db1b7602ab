"""Collect → merge → finish inside an engine's Python workers: Arrow batches in, finished metadata out.

Everything here runs on executors, so it needs pyarrow and numpy only.  Rows of one object come in runs, which are found
on the column of object numbers and sliced: nothing is hashed and nothing is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from skipstone.indexing.failures import raised
from skipstone.indexing.finished import FinishedObjects
from skipstone.indexing.objects import STATE_COLUMNS, DataObject
from skipstone.indexing.physical import physical_array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from skipstone.indexing.index import Index
    from skipstone.indexing.metadata_type import MetadataType

    Outcome = TypeVar("Outcome")

__all__ = ["EMITTED", "CollectPlan", "IndexPlan", "ObjectStates", "collect_parts", "merge_parts"]

EMITTED = "object int, finished boolean, data binary"
_EMITTED = pa.schema([("object", pa.int32()), ("finished", pa.bool_()), ("data", pa.binary())])


@dataclass(frozen=True)
class IndexPlan:
    """One index, which of the columns read are its inputs, and the fields that it stores."""

    index: Index
    inputs: tuple[int, ...]
    fields: Mapping[str, pa.DataType]


@dataclass(frozen=True)
class CollectPlan:
    """What a task must know: the indexes, the physical types of the columns read, and what is read whole.

    An object longer than ``whole_up_to`` may be read in parts by several tasks.  With ``has_flaws`` one more column is
    read, the last, that is TRUE for rows that another read may return differently.
    """

    indexes: tuple[IndexPlan, ...]
    types: tuple[pa.DataType, ...]
    whole_up_to: int
    has_flaws: bool = False

    @property
    def arriving(self) -> tuple[pa.DataType, ...]:
        """The physical types of all columns of a batch."""
        return (pa.int32(), *self.types, *((pa.bool_(),) if self.has_flaws else ()))

    def flaws_of(self, batch: pa.RecordBatch) -> pa.Array | None:
        """Return the column that marks flawed rows, or ``None``."""
        return batch.column(batch.num_columns - 1) if self.has_flaws else None

    def columns_of(self, batch: pa.RecordBatch) -> list[pa.RecordBatch]:
        """Return the inputs of each index, as physical values."""
        columns = [physical_array(batch.column(i + 1), type_) for i, type_ in enumerate(self.types)]
        return [_batch([columns[i] for i in plan.inputs], batch.num_rows) for plan in self.indexes]

    def finished_objects(self) -> FinishedObjects:
        """Return the place for what these indexes store."""
        return FinishedObjects([p.fields for p in self.indexes], [p.index.name for p in self.indexes])

    def no_rows(self) -> list[pa.RecordBatch]:
        """Return an empty batch of inputs for each index."""
        return [_batch([pa.array([], self.types[i]) for i in plan.inputs], 0) for plan in self.indexes]


def _batch(columns: list[pa.Array], rows: int) -> pa.RecordBatch:
    """Make a batch of columns named by their place; without columns it still has its rows."""
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])


@dataclass
class ObjectStates:
    """The states of one object so far, one for each index, and its rows so far.

    In place of an index's state stands, as text, why it has none: what it raised.  It may have raised on one row of a
    damaged object; the other indexes and the other objects go on.
    """

    plan: CollectPlan
    data_object: DataObject
    states: list[MetadataType | str] | None = None
    rows: int = 0

    def add(self, batches: list[pa.RecordBatch], rows: int) -> None:
        """Collect from some of the object's rows."""
        known: Sequence[MetadataType | str | None] = self.states or [None] * len(batches)
        made = [
            before if isinstance(before, str) else self._tried(plan.index, plan.index.collect_metadata, batch)
            for plan, batch, before in zip(self.plan.indexes, batches, known, strict=True)
        ]
        self.merge(made, rows)

    def spoil(self) -> None:
        """Record nothing of the object: it has a row that other reads would return differently."""
        said = f"{self.data_object.path} holds records that cannot be read: it is always read"
        self.merge([f"{plan.index.name}: {said}" for plan in self.plan.indexes], 0)

    def merge(self, states: Sequence[MetadataType | str], rows: int) -> None:
        """Merge the states of a part of the object."""
        if self.states is None:
            self.states = list(states)
        else:
            self.states = [
                self._merged(plan.index, one, other)
                for plan, one, other in zip(self.plan.indexes, self.states, states, strict=True)
            ]
        self.rows += rows

    def finish(self) -> list[Mapping[str, Any] | str]:
        """Make the stored form of every index."""
        if self.states is None:
            self.add(self.plan.no_rows(), 0)
        made = zip(self.plan.indexes, self.states or (), strict=True)
        return [state if isinstance(state, str) else self._stored(plan, state) for plan, state in made]

    def _stored(self, plan: IndexPlan, state: MetadataType) -> Mapping[str, Any] | str:
        """Make the stored form of one index."""
        return self._tried(plan.index, _finished, state, self.data_object, plan.fields)

    def _merged(self, index: Index, one: MetadataType | str, other: MetadataType | str) -> MetadataType | str:
        """Merge two states, or say why one of them is missing."""
        if isinstance(one, str) or isinstance(other, str):
            return one if isinstance(one, str) else other
        return self._tried(index, one.merge, other)

    def _tried(self, index: Index, step: Callable[..., Outcome], *arguments: Any) -> Outcome | str:
        """Run a plug-in's code, and say what it raised."""
        try:
            return step(*arguments)
        except Exception as error:  # noqa: BLE001  (a plug-in may raise anything; the object is reported as not indexed)
            return raised(index.name, self.data_object.path, error)


def _finished(state: MetadataType, data_object: DataObject, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Finish a state and check that it gives the fields that its type announced."""
    stored = state.finish(data_object)
    if stored.keys() != fields.keys():
        msg = f"finish gave the fields {sorted(stored)}, but the metadata type announced {sorted(fields)}"
        raise ValueError(msg)
    return stored


def collect_parts(
    plan: CollectPlan, objects: pa.Table, batches: Iterable[pa.RecordBatch], dumps: Callable[[Any], bytes]
) -> Iterator[pa.RecordBatch]:
    """Collect the metadata of a task's rows; the first column of the batches numbers the object.

    An object that is read whole is finished here and leaves in a block of many; one that may be read in parts leaves as
    its states so far, which ``dumps`` pickles.
    """
    finished = plan.finished_objects()
    number, current = -1, None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        inputs, flaws = plan.columns_of(batch), plan.flaws_of(batch)
        for found, start, rows in _runs(batch.column(0)):
            if found != number or current is None:
                if current is not None:
                    yield from _leave(number, current, finished, dumps)
                number, current = found, ObjectStates(plan, _object(objects, found))
            current.add([b.slice(start, rows) for b in inputs], rows)
            if flaws is not None and flaws.slice(start, rows).true_count:
                current.spoil()
    if current is not None:
        yield from _leave(number, current, finished, dumps)
    yield from _flush(finished)


def merge_parts(
    plan: CollectPlan, objects: pa.Table, batches: Iterable[pa.RecordBatch], loads: Callable[[Any], Any]
) -> Iterator[pa.RecordBatch]:
    """Merge what ``collect_parts`` emitted, sorted by object: blocks pass, states (``loads``) merge and finish."""
    finished = plan.finished_objects()
    number, current = -1, None
    for batch in batches:
        for found, is_finished, data in zip(*(batch.column(i) for i in range(3)), strict=True):
            if is_finished.as_py():
                yield _emitted(found.as_py(), data.as_py(), finished=True)
                continue
            if found.as_py() != number or current is None:
                if current is not None:
                    finished.add(number, current.rows, current.finish())
                number = found.as_py()
                current = ObjectStates(plan, _object(objects, number))
                if finished.is_full:
                    yield from _flush(finished)
            states, rows = loads(data.as_buffer())
            current.merge(states, rows)
    if current is not None:
        finished.add(number, current.rows, current.finish())
    yield from _flush(finished)


def _runs(numbers: pa.Array) -> Iterator[tuple[int, int, int]]:
    """Yield (object, first row, rows) for each run of equal object numbers.

    Examples
    --------
    >>> list(_runs(pa.array([7, 7, 8], pa.int32())))
    [(7, 0, 2), (8, 2, 1)]
    """
    values = numbers.to_numpy()
    starts = np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1))
    ends = np.append(starts[1:], len(values))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield int(values[start]), start, end - start


def _object(objects: pa.Table, number: int) -> DataObject:
    """Return the object of a number."""
    return DataObject(*(objects.column(name)[number].as_py() for name in ("path", *STATE_COLUMNS)))


def _leave(
    number: int, states: ObjectStates, finished: FinishedObjects, dumps: Callable[[Any], bytes]
) -> Iterator[pa.RecordBatch]:
    """Let an object go whose rows, as far as this task has them, have all been seen."""
    if states.data_object.length <= states.plan.whole_up_to:
        finished.add(number, states.rows, states.finish())
        if finished.is_full:
            yield from _flush(finished)
    else:
        yield _emitted(number, dumps((states.states, states.rows)), finished=False)


def _flush(finished: FinishedObjects) -> Iterator[pa.RecordBatch]:
    """Emit the finished objects as one block, keyed by the first of them."""
    if len(finished):
        first = finished.first
        yield _emitted(first, finished.take_block(), finished=True)


def _emitted(number: int, data: bytes, *, finished: bool) -> pa.RecordBatch:
    """Make a row of what the job gives."""
    columns = [pa.array([number], pa.int32()), pa.array([finished]), pa.array([data], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=_EMITTED)
