"""The Spark job that serves every kind of index: one scan of the distinct inputs, collected in Python from Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from skipstone.engines.spark.classic_frames import expression, map_in_arrow
from skipstone.engines.spark.client import Client
from skipstone.engines.spark.column_batches import read_batches
from skipstone.engines.spark.physical import arrived_type, physical_expression
from skipstone.engines.spark.shipping import dump_for_executors, dump_on_executor, load_on_executor, ship
from skipstone.engines.spark.silent import collect_silently, must_be_silent
from skipstone.errors import IndexingError
from skipstone.expressions.names import parse_column
from skipstone.indexing.collect import EMITTED, CollectPlan, IndexPlan, ObjectStates, collect_parts, merge_parts
from skipstone.indexing.finished import read_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from skipstone.engines.spark.source import SparkSource
    from skipstone.indexing.objects import DataObject
    from skipstone.indexing.source import BoundIndex

__all__ = ["COLUMNAR", "OBJECT_COLUMN", "collect_with_arrow", "object_table", "plan_inputs"]

COLUMNAR = frozenset({"parquet", "orc", "delta", "iceberg"})
"""The formats whose readers find a column without reading the others."""
OBJECT_COLUMN = "__skipstone_object"
"""The column of a scan of objects that numbers them."""

_MERGING_TASKS_PER_CORE = 2
_MOST_ROWS = 65_536
_MOST_ROWS_OF_ANY_LENGTH = 10_000
_MOST_BYTES = 128 << 20
_UNBOUNDED = (1 << 31) - 1


def collect_with_arrow(source: SparkSource, objects: Sequence[DataObject], bound: Sequence[BoundIndex]) -> pa.Table:
    """Collect the metadata of objects in one Spark job; a block table (see ``finished``) with a row for each object."""
    frame, whole_up_to = source.read(objects)
    selected, plan = plan_inputs(frame, bound, whole_up_to, source.flaw)
    columns = Client(selected.sparkSession).column_batches(selected)
    _bound_batches(selected.sparkSession, plan.types, source.relation.format, in_columns=columns is not None)
    context = source.spark.sparkContext
    ship(selected.sparkSession)
    payload = dump_for_executors(plan, [b.index for b in bound])
    known = context.broadcast(object_table(objects))

    in_columns = columns is not None

    def collect(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan: CollectPlan = load_on_executor(payload)
        arrived = read_batches(batches, plan.arriving) if in_columns else batches
        return collect_parts(plan, known.value, arrived, dump_on_executor)

    def merge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return merge_parts(load_on_executor(payload), known.value, batches, load_on_executor)

    emitted = map_in_arrow(selected if columns is None else columns, collect, EMITTED)
    in_parts = sum(o.length > whole_up_to for o in objects)
    if in_parts:
        tasks = min(in_parts, context.defaultParallelism * _MERGING_TASKS_PER_CORE)
        sorted_parts = emitted.repartition(tasks, "object").sortWithinPartitions("object")
        emitted = map_in_arrow(sorted_parts, merge, EMITTED)
    try:
        found = emitted.select("data")
        silent = must_be_silent(bound)
        blocks = collect_silently(found) if silent else [bytes(row.data) for row in found.collect()]
    finally:
        known.destroy()
    fields = [p.fields for p in plan.indexes]
    return with_rowless(read_blocks(blocks, fields), plan, objects)


def _bound_batches(spark: SparkSession, types: Sequence[pa.DataType], file_format: str, *, in_columns: bool) -> None:
    """Choose how much travels to Python at once, in the session that reads.

    Spark holds a batch's bytes against their bound after every row, which takes longer than filling and sending the
    batch (10 M rows of four columns: 60 % of the JVM's time).  Rows of numbers need no such bound; values of any length
    in a columnar format have a bound on rows instead, Spark's own one before it had one on bytes, and not much above
    the rows that its reader holds at once.  Text formats are read row by row, so nothing else bounds theirs.
    """
    fixed = all(_is_fixed_width(t) for t in types)
    unbounded = fixed or file_format in COLUMNAR
    rows = 1 if in_columns else _MOST_ROWS if fixed or not unbounded else _MOST_ROWS_OF_ANY_LENGTH
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(rows))
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(_UNBOUNDED if unbounded else _MOST_BYTES))


def _is_fixed_width(type_: pa.DataType) -> bool:
    """Whether every value takes the same room."""
    return pa.types.is_primitive(type_) or pa.types.is_decimal(type_)


def plan_inputs(
    frame: DataFrame, bound: Sequence[BoundIndex], whole_up_to: int, flaw: str | None = None
) -> tuple[DataFrame, CollectPlan]:
    """Select the distinct inputs of all indexes after the object's number; return also which index gets which of them.

    A predicate that tells flawed rows comes last.
    """
    wanted = [tuple(_input(e, b) for e in b.index.inputs(b.types)) for b in bound]
    distinct = list(dict.fromkeys(expression for one in wanted for expression in one))
    as_asked = _select(frame, distinct)
    carried = [physical_expression(e, f.dataType) for e, f in zip(distinct, as_asked.schema.fields[1:], strict=True)]
    with_flaw = [*carried, *([flaw] if flaw is not None else [])]
    selected = as_asked if with_flaw == distinct else _select(frame, with_flaw)
    fields = selected.schema.fields[1 : 1 + len(carried)]
    types = tuple(arrived_type(e, f.dataType) for e, f in zip(carried, fields, strict=True))
    place = {expression: i for i, expression in enumerate(distinct)}
    plans = [
        IndexPlan(b.index, inputs := tuple(place[e] for e in one), stored_fields(b, tuple(types[i] for i in inputs)))
        for b, one in zip(bound, wanted, strict=True)
    ]
    return selected, CollectPlan(tuple(plans), types, whole_up_to, has_flaws=flaw is not None)


def stored_fields(bound: BoundIndex, types: tuple[pa.DataType, ...]) -> Mapping[str, pa.DataType]:
    """Ask a metadata type for its fields."""
    try:
        return dict(bound.index.metadata_type.fields(types))
    except Exception as error:
        msg = f"{bound.index.name} cannot be built: its fields raised {type(error).__name__}: {error}"
        raise IndexingError(msg) from error


def with_rowless(collected: pa.Table, plan: CollectPlan, objects: Sequence[DataObject]) -> pa.Table:
    """Add the objects without rows, which a job that reads rows does not see, and check that none came twice.

    Raises
    ------
    IndexingError
        When an object that should have been read whole came in parts: its metadata would describe a part of it.
    """
    numbers = collected.column("object").to_pylist()
    heard_of = set(numbers)
    if len(heard_of) != len(numbers):
        msg = "an object was read in parts that were not merged; please report this with your Spark version"
        raise IndexingError(msg)
    rowless = plan.finished_objects()
    for number, data_object in enumerate(objects):
        if number not in heard_of:
            rowless.add(number, 0, ObjectStates(plan, data_object).finish())
    return pa.concat_tables([collected, rowless.take_table()]) if len(rowless) else collected


def object_table(objects: Sequence[DataObject]) -> pa.Table:
    """Return objects as columns: compact, and quick to send."""
    return pa.table(
        {
            "path": pa.array([o.path for o in objects], pa.large_string()),
            "length": pa.array([o.length for o in objects], pa.int64()),
            "modified": pa.array([o.modified for o in objects], pa.int64()),
            "etag": pa.array([o.etag for o in objects], pa.string()),
        }
    )


def _input(expression: str, bound: BoundIndex) -> str:
    """Quote an input that is a bare column: one may be called ``null`` or ``current_date``."""
    if expression not in bound.index.columns:
        return expression
    return ".".join(f"`{part.replace('`', '``')}`" for part in parse_column(expression))


def _select(frame: DataFrame, expressions: Sequence[str]) -> DataFrame:
    """Select expressions after the object's number, named by their place."""
    from pyspark.errors import PySparkException

    try:
        return frame.select(OBJECT_COLUMN, *(expression(frame, e).alias(str(i)) for i, e in enumerate(expressions)))
    except PySparkException as error:
        msg = f"Spark cannot compute what the indexes ask for ({', '.join(expressions)}): {str(error).splitlines()[0]}"
        raise IndexingError(msg) from error
