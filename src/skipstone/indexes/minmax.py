"""The MinMax index: the least and the greatest value of each object (paper, table I)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from skipstone.indexing.bounds import Bounds
from skipstone.indexing.facts import Fact
from skipstone.indexing.index import Index
from skipstone.indexing.metadata_type import MetadataType
from skipstone.querying.filter import Filter
from skipstone.toolkit.bounds import bounds_might_match, successor, to_bounds
from skipstone.toolkit.leaf import Compare, CountClause, Leaf, has_ordinary, read_leaf
from skipstone.toolkit.values import FLOATING, is_atomic, is_binary_like, ordinary_values, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skipstone.expressions.tree import Expression
    from skipstone.indexing.objects import DataObject
    from skipstone.querying.clause import Clause, Metadata

__all__ = ["BOUND_BYTES", "MinMaxClause", "MinMaxFilter", "MinMaxIndex", "MinMaxMetadata"]

BOUND_BYTES = 64
"""Bounds of text and bytes are cut to this length, so that one long value does not make metadata long."""


@dataclass(frozen=True, slots=True)
class MinMaxMetadata(MetadataType):
    """Bounds of the ordinary values (neither NULL nor NaN) of some rows, and how many are not ordinary.

    ``lower ≤ v ≤ upper`` for every ordinary value, in Spark's order; text and bytes are ``bytes``.  A bound of ``None``
    is unknown, unless the counts add up to ``row_count``: then there is no ordinary value.  A count of ``None`` is
    unknown.
    """

    lower: Any
    upper: Any
    row_count: int
    null_count: int | None
    nan_count: int | None = 0
    floating: bool = False

    @classmethod
    def of(cls, column: pa.Array) -> Self:
        """Collect from a column of physical values."""
        if is_binary_like(column.type):  # text need not be valid UTF-8, and its order is that of its bytes
            large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
            column = column.view(pa.large_binary() if large else pa.binary())
        values, nulls, nans = ordinary_values(column)
        bounds = pc.min_max(values)
        floating = pa.types.is_floating(column.type)
        return cls(bounds["min"].as_py(), bounds["max"].as_py(), len(column), nulls, nans, floating)

    @classmethod
    def from_aggregates(cls, row: Mapping[str, Any]) -> Self:
        """Make the state from the facts that ``MinMaxIndex`` declares."""
        floating = "nan_count" in row
        return cls(row["lower"], row["upper"], row["row_count"], row["null_count"], row.get("nan_count", 0), floating)

    @classmethod
    def fields(cls, inputs: tuple[pa.DataType, ...]) -> Mapping[str, pa.DataType]:
        bound = pa.binary() if is_binary_like(inputs[0]) else inputs[0]
        counts = {"null_count": pa.int64()}
        if pa.types.is_floating(inputs[0]):
            counts["nan_count"] = pa.int64()
        return {"lower": bound, "upper": bound, **counts}

    @property
    def is_void(self) -> bool:
        """Whether the rows are known to have no ordinary value."""
        return _sum(self.null_count, self.nan_count) == self.row_count

    def merge(self, other: Self) -> Self:
        lower, upper = self.lower, self.upper
        if self.is_void:
            lower, upper = other.lower, other.upper
        elif not other.is_void:
            lower = None if lower is None or other.lower is None else min(lower, other.lower)
            upper = None if upper is None or other.upper is None else max(upper, other.upper)
        return type(self)(
            lower,
            upper,
            self.row_count + other.row_count,
            _sum(self.null_count, other.null_count),
            _sum(self.nan_count, other.nan_count),
            self.floating or other.floating,
        )

    def finish(self, data_object: DataObject) -> Mapping[str, Any]:  # noqa: ARG002  (part of the contract)
        stored = {"lower": _cut_lower(self.lower), "upper": _cut_upper(self.upper), "null_count": self.null_count}
        return {**stored, "nan_count": self.nan_count} if self.floating else stored


def _sum(one: int | None, other: int | None) -> int | None:
    """Add two counts, of which an unknown one makes the sum unknown."""
    return None if one is None or other is None else one + other


def _cut_lower(bound: Any) -> Any:
    """Cut a lower bound: a prefix is never greater than the whole."""
    return bound[:BOUND_BYTES] if isinstance(bound, bytes) else bound


def _cut_upper(bound: Any) -> Any:
    """Cut an upper bound: the cut bytes plus one are greater than everything that begins with them."""
    return successor(bound[:BOUND_BYTES]) if isinstance(bound, bytes) and len(bound) > BOUND_BYTES else bound


@dataclass(frozen=True)
class MinMaxIndex(Index):
    """The least and the greatest value of a column in each object, with counts of NULL and NaN.

    Examples
    --------
    >>> MinMaxIndex("ts").name
    'minmax(ts)'
    """

    metadata_type = MinMaxMetadata

    column: str

    @property
    def functions(self) -> tuple[str, ...]:
        return ()

    def supports(self, types: tuple[str, ...]) -> bool:
        return is_atomic(types)

    def collect_metadata(self, rows: pa.RecordBatch) -> MinMaxMetadata:
        return MinMaxMetadata.of(rows.column(0))

    def filters(self) -> tuple[Filter, ...]:
        return (MinMaxFilter(self),)

    def bounds(self, column: str) -> Bounds | None:
        return Bounds(exact=True) if column == self.column else None  # text, which is cut, is never taken as exact

    def facts(self, types: tuple[str, ...]) -> Mapping[str, Fact]:
        bounds = {"lower": Fact("min", self.column), "upper": Fact("max", self.column)}
        counts = {"null_count": Fact("nulls", self.column), "row_count": Fact("rows")}
        if types[0] in FLOATING:
            counts["nan_count"] = Fact("nans", self.column)
        return {**bounds, **counts}


@dataclass(frozen=True, slots=True)
class MinMaxClause(CountClause):
    """Some value between the bounds might satisfy the predicate."""

    def ordinary_might_match(self, metadata: Metadata, leaf: Leaf) -> pa.BooleanArray:
        """Hold the bounds against the test; without an ordinary value nothing can pass it."""
        test = to_bounds(leaf.test)
        if test is None:
            return unknown(len(metadata))
        within = bounds_might_match(metadata, self.index, test)
        return pc.and_kleene(within, has_ordinary(metadata, self.index, floating=leaf.floating))

    def ordinary_requires(self, leaf: Leaf) -> tuple[str, ...]:
        counts = ("null_count", "nan_count") if leaf.floating else ("null_count",)
        match leaf.test:
            case Compare("<" | "<="):
                return ("lower", *counts)
            case Compare():
                return ("upper", *counts)
            case _:
                return ("lower", "upper", *counts)


@dataclass(frozen=True, slots=True)
class MinMaxFilter(Filter):
    """Labels predicates on the column with ``MinMaxClause``.

    An object's ordinary values (neither NULL nor NaN) all lie in ``[L, U]``.  "Ordinary" below means that the object
    has such values (``null_count + nan_count < row_count``), "NaN" that it has NaN; a row with NULL satisfies none of
    the predicates but those that name NULL.  A cut bound is only wider, so every line holds for it too.

    ========================== =========================================================================================
    predicate                  kept when (``v`` ordinary; otherwise see ``_leaf``)
    ========================== =========================================================================================
    ``c = v``, ``c <=> v``     ordinary and ``L ≤ v ≤ U``: else no value can be ``v``
    ``c IN (…)``               ordinary and some option lies in ``[L, U]``; or NaN, if NaN is an option
    ``c <> v``                 ordinary and not ``L = U = v``; or NaN, which differs from ``v``
    ``c NOT IN (…)``           ordinary and not ``L = U ∈ options``; or NaN, unless NaN is an option
    ``NOT (c <=> v)``          as ``c <> v``, or a NULL
    ``c < v``, ``c <= v``      ordinary and ``L < v`` (``L ≤ v``); NaN is greater than ``v``
    ``c > v``, ``c >= v``      ordinary and ``U > v`` (``U ≥ v``); or NaN, which is greater than ``v``
    ``startswith(c, p)``       ordinary and ``L < p⁺`` and ``U ≥ p``: what begins with ``p`` is ``≥ p`` and below
                               ``p⁺``, the least bytes above all that begin with ``p``
    ``NOT startswith(c, p)``   ordinary and not ``p ≤ L`` and ``U < p⁺``, which would make every value begin with ``p``
    ``c LIKE 'p…'``            as ``startswith(c, p)`` for the literal prefix ``p``, up to U+FFFD, which Java also puts
                               for invalid bytes
    ``c NOT LIKE 'p%'``        as ``NOT startswith(c, p)``; ``c NOT LIKE 'p'`` as ``c <> 'p'``; no other shape
    ``c IS NULL``              ``null_count > 0``
    ``c IS NOT NULL``          ordinary, or NaN
    ``isnan(c)``               NaN
    ``NOT isnan(c)``           ordinary, or a NULL, of which ``isnan`` is FALSE
    ========================== =========================================================================================
    """

    index: MinMaxIndex

    def label_node(self, node: Expression) -> Clause | None:
        leaf = read_leaf(node)
        if leaf is None or not leaf.is_on(self.index.column) or to_bounds(leaf.test) is None:
            return None
        return MinMaxClause(self.index, node)
