"""Bounds and counts from Parquet footers, for calls in which no index asks for more and the footers prove them.

A footer is used only when what it says is certain to hold of the values that Spark's reader gives; every object of
which that cannot be said is read instead.  The bridge reports facts (``Footers.scala``); they are judged here.  Of
floating numbers footers prove nothing, since NaN is not in them: the task that reads the footer reads those columns
too, where the object is not too large for one task.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any

from skipstone.engines.spark.aggregates import takes_aggregates
from skipstone.engines.spark.arrow_job import plan_inputs
from skipstone.engines.spark.footer_values import Bounds, column_bounds
from skipstone.expressions.names import parse_column
from skipstone.expressions.types import FLOATING
from skipstone.indexing.collect import ObjectStates
from skipstone.indexing.index import Index

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from skipstone.engines.spark.source import SparkSource
    from skipstone.indexing.facts import Fact
    from skipstone.indexing.objects import DataObject
    from skipstone.indexing.records import ColumnRecord
    from skipstone.indexing.source import BoundIndex

__all__ = ["collect_from_footers", "footer_roles"]

# Types that Spark converts on reading are not here.
_SERVED = re.compile(
    r"boolean|tinyint|smallint|int|bigint|float|double|decimal\(\d+,\s?\d+\)|string|binary|date|timestamp|timestamp_ntz"
)
_SAMPLED = 8
# The footers of so few are read sooner than those of a sample and then theirs.
_FEW = 64
_IN_FOOTERS = ("min", "max", "nulls", "nans", "rows")


def footer_roles(bound: BoundIndex) -> Mapping[str, str] | None:
    """Return the kinds of an index's facts, by name, or ``None`` when a footer cannot give them all.

    An index that has aggregates of its own is made of more than its facts.

    Examples
    --------
    ``MinMaxIndex("n")`` gives ``{"lower": "min", "upper": "max", "null_count": "nulls", "row_count": "rows"}``.
    """
    if len(bound.columns) != 1 or bound.columns[0].partition or not _SERVED.fullmatch(bound.types[0]):
        return None
    if type(bound.index).aggregates is not Index.aggregates or not takes_aggregates(bound):
        return None
    facts = bound.index.facts(bound.types)
    column = parse_column(bound.columns[0].name)
    if facts is None or not all(_is_in_footer(fact, column) for fact in facts.values()):
        return None
    return {name: fact.kind for name, fact in facts.items()}


def _is_in_footer(fact: Fact, column: tuple[str, ...]) -> bool:
    """Whether a footer has a fact of a column."""
    return fact.kind in _IN_FOOTERS and (fact.kind == "rows" or parse_column(fact.column) == column)


def collect_from_footers(
    source: SparkSource, objects: Sequence[DataObject], bound: Sequence[BoundIndex]
) -> pa.Table | None:
    """Collect the metadata of those objects whose footers suffice; a block table, or ``None`` when none can."""
    by_id = source.relation.reader_settings.get("spark.sql.parquet.fieldId.read.enabled") == "true"
    if source.relation.format != "parquet" or by_id:
        return None
    roles = [footer_roles(b) for b in bound]
    known_roles = [r for r in roles if r is not None]
    if len(known_roles) != len(bound) or not objects:
        return None
    columns = list(dict.fromkeys(b.columns[0] for b in bound))
    if _is_sample_due(objects, columns) and not any(_certain_bounds(source, _sample(objects), columns)):
        return None
    certain = _certain_bounds(source, objects, columns)
    if (first := next(certain, None)) is None:
        return None
    place = {column: i for i, column in enumerate(columns)}
    frame, whole_up_to = source.read(objects[:1])
    _, plan = plan_inputs(frame, bound, whole_up_to)
    finished = plan.finished_objects()
    for footer, bounds in chain((first,), certain):
        number = footer["o"]
        states = ObjectStates(plan, objects[number])
        made: list[Any] = [
            b.index.metadata_type.from_aggregates(bounds[place[b.columns[0]]].facts(role))
            for b, role in zip(bound, known_roles, strict=True)
        ]
        states.merge(made, footer["rows"])
        finished.add(number, footer["rows"], states.finish())
    return finished.take_table()


def _is_sample_due(objects: Sequence[DataObject], columns: Sequence[ColumnRecord]) -> bool:
    """Whether to look at a few footers before all: not where these are all, and where values are read, even at few."""
    return len(objects) > (_SAMPLED if any(c.type in FLOATING for c in columns) else _FEW)


def _sample(objects: Sequence[DataObject]) -> Sequence[DataObject]:
    """Return a few objects from all over: files of one dataset mostly have one writer, so these stand for the rest."""
    return objects[:: max(1, len(objects) // _SAMPLED)][:_SAMPLED]


def _certain_bounds(
    source: SparkSource, objects: Sequence[DataObject], columns: Sequence[ColumnRecord]
) -> Iterator[tuple[dict[str, Any], list[Bounds]]]:
    """Yield the footers that suffice, with the bounds of the columns."""
    for footer in source.footers(objects, [parse_column(c.name) for c in columns]):
        bounds = _object_bounds(footer, [c.type for c in columns])
        if bounds is not None:
            yield footer, bounds


def _object_bounds(footer: Mapping[str, Any], types: Sequence[str]) -> list[Bounds] | None:
    """Return the bounds of every column asked for, or ``None`` when one of them is not certain."""
    if "error" in footer or len(footer["columns"]) != len(types):
        return None
    found: list[Bounds] = []
    for facts, type_ in zip(footer["columns"], types, strict=True):
        bounds = column_bounds(facts, type_, footer)
        if bounds is None or bounds.rows != footer["rows"]:
            return None
        found.append(bounds)
    return found
