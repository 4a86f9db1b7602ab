"""The GapList index: the most useful gaps between the values of each object (paper, table I and section IV-C)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import SettingError
from skipstone.expressions.tree import And
from skipstone.indexes.gap_list.gaps import Intervals, ordered_form, stored_type
from skipstone.indexes.gap_list.workload import Range, Ranges, read_workload
from skipstone.indexing.index import Index
from skipstone.indexing.metadata_type import MetadataType
from skipstone.querying.clause import Clause
from skipstone.querying.filter import Filter
from skipstone.toolkit.bounds import bounds_might_match, to_bounds
from skipstone.toolkit.leaf import EVERYTHING, NOTHING, has_nan, has_null, has_ordinary, read_leaf
from skipstone.toolkit.values import is_atomic, ordinary_values, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skipstone.expressions.tree import Expression
    from skipstone.indexing.objects import DataObject
    from skipstone.querying.clause import Metadata
    from skipstone.toolkit.leaf import Leaf, Test

__all__ = ["GapListClause", "GapListFilter", "GapListIndex", "GapListMetadata"]

STATE_GAPS = 4096
"""While an object's rows come in, at least this many gaps are told apart; more are closed, the least useful first."""


@dataclass(frozen=True, slots=True)
class GapListMetadata(MetadataType):
    """Intervals that hold the ordinary values (neither NULL nor NaN) of some rows, and how many are not ordinary.

    Stored are ``bounds``: the ends of at most *k* + 1 closed intervals in ascending order, two for each; between them
    lie the *k* gaps.  None at all: there is no ordinary value.
    """

    parts: tuple[Intervals, ...]
    type: pa.DataType
    null_count: int
    nan_count: int
    index: GapListIndex

    @classmethod
    def of(cls, column: pa.Array, index: GapListIndex) -> Self:
        """Collect from a column of physical values."""
        values, nulls, nans = ordinary_values(column)
        found = Intervals.of(ordered_form(values), index.state_gaps, index.ranges)
        return cls((found,), column.type, nulls, nans, index)

    @classmethod
    def fields(cls, inputs: tuple[pa.DataType, ...]) -> Mapping[str, pa.DataType]:
        counts = {"null_count": pa.int64()}
        if pa.types.is_floating(inputs[0]):
            counts["nan_count"] = pa.int64()
        return {"bounds": pa.list_(stored_type(inputs[0])), **counts}

    def merge(self, other: Self) -> Self:
        parts = (*self.parts, *other.parts)
        if sum(map(len, parts)) > 4 * self.index.state_gaps:
            parts = (Intervals.union(parts).with_gaps(self.index.state_gaps, self.index.ranges),)
        nulls, nans = self.null_count + other.null_count, self.nan_count + other.nan_count
        return type(self)(parts, self.type, nulls, nans, self.index)

    def finish(self, data_object: DataObject) -> Mapping[str, Any]:  # noqa: ARG002  (part of the contract)
        chosen = Intervals.union(self.parts).with_gaps(self.index.gaps, self.index.ranges)
        stored = {"bounds": chosen.bounds(self.type), "null_count": self.null_count}
        return {**stored, "nan_count": self.nan_count} if pa.types.is_floating(self.type) else stored


@dataclass(frozen=True)
class GapListIndex(Index):
    """The least and the greatest value of a column in each object and the most useful gaps between its values.

    Parameters
    ----------
    column
        The column.
    gaps
        The number *k* of gaps to keep of each object.
    workload
        What queries ask for: ranges ``(low, high)`` or ``(low, high, weight)``, ``None`` for an open end, or recorded
        predicates (trees of ``skipstone.expressions``), alone or as ``(predicate, weight)``.  Not given: the widest
        gaps are kept.

    Notes
    -----
    With a workload the gaps with the greatest total weight of the ranges that lie wholly inside them are kept, the
    widest among equals.  *That is optimal for single ranges*: an object can be skipped for a range exactly if no value
    lies in the range, that is, if the range lies inside one gap between consecutive values (or beyond the least or the
    greatest value, which are always kept).  Gaps are disjoint, so that a range lies in at most one of them.  What a set
    of gaps makes skippable is therefore the *sum*, over its gaps, of the weights of the ranges inside each; no set of
    *k* has a greater sum than the *k* greatest summands.  A predicate of several ranges (IN, OR) needs several gaps at
    once, for which the problem is NP-hard (paper, section IV-C); its ranges are given equal shares of its weight.

    Nothing is lost when an object is read in parts: a gap of the whole lies inside a gap of each part, and at least as
    many gaps are told apart as there are ranges, so that each part keeps every gap that holds a range.

    Examples
    --------
    >>> GapListIndex("ts", gaps=4).name
    'gaplist(ts, gaps=4)'
    >>> GapListIndex("price", workload=[(10, 20), (50, None, 2.5)]).ranges[0]
    Range(low=10, high=20, weight=1.0, low_open=False, high_open=False)
    """

    metadata_type = GapListMetadata

    column: str
    gaps: int = field(default=8, kw_only=True)
    workload: Iterable[Any] | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        _check_gaps(self.gaps)
        if self.workload is not None and not isinstance(self.workload, Ranges):
            object.__setattr__(self, "workload", read_workload(self.workload, self.column) or None)
        super().__post_init__()

    @property
    def ranges(self) -> Ranges | None:
        """The workload as ranges; ``None`` when there is none."""
        return self.workload if isinstance(self.workload, Ranges) else None

    @property
    def state_gaps(self) -> int:
        """The number of gaps that are told apart while rows come in."""
        return max(STATE_GAPS, 4 * self.gaps, len(self.ranges or ()))

    @property
    def functions(self) -> tuple[str, ...]:
        return ()

    def supports(self, types: tuple[str, ...]) -> bool:
        return is_atomic(types)

    def check_types(self, types: tuple[str, ...]) -> None:
        super().check_types(types)
        misfit = None if self.ranges is None else self.ranges.misfit(types[0])
        if misfit is not None:
            msg = (
                f"{self.name} cannot be built: {self.column} is {types[0]}, and the workload asks for values from "
                f"{misfit.low!r} to {misfit.high!r}; give values of the column's type"
            )
            raise SettingError(msg)

    def collect_metadata(self, rows: pa.RecordBatch) -> GapListMetadata:
        return GapListMetadata.of(rows.column(0), self)

    def filters(self) -> tuple[Filter, ...]:
        return (GapListFilter(self),)

    def options(self) -> Mapping[str, Any]:
        workload = None if self.ranges is None else [one.to_json() for one in self.ranges]
        return {**super().options(), "workload": workload}

    @classmethod
    def from_options(cls, name: str, options: Mapping[str, Any]) -> Self:
        kept = options.get("workload")
        workload = None if kept is None else Ranges(map(Range.from_json, kept))
        return super().from_options(name, {**options, "workload": workload})


def _check_gaps(gaps: Any) -> None:
    """Raise unless ``gaps`` is a number of gaps."""
    if not isinstance(gaps, int) or isinstance(gaps, bool) or gaps < 1:
        msg = f"gaps={gaps!r} is not a number of gaps: give a positive whole number"
        raise SettingError(msg)


@dataclass(frozen=True, slots=True)
class GapListClause(Clause):
    """Some interval of the object might hold a value that satisfies every one of the predicates.

    Each predicate must be a leaf on the index's column that bounds can answer.
    """

    index: GapListIndex
    predicates: tuple[Expression, ...]

    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        """Join by Kleene's OR what NULLs, NaN and ordinary values each make possible."""
        leaves, tests = self._read()
        ways: list[pa.BooleanArray] = []
        if NOTHING not in tests:
            if tests:
                ways.append(_some_interval_passes(metadata.field(self.index, "bounds"), tests, self.index))
            else:
                ways.append(has_ordinary(metadata, self.index, floating=any(leaf.floating for leaf in leaves)))
        if all(leaf.on_null for leaf in leaves):
            ways.append(has_null(metadata, self.index))
        if all(leaf.on_nan for leaf in leaves):
            ways.append(has_nan(metadata, self.index))
        return reduce(pc.or_kleene, ways) if ways else pa.repeat(pa.scalar(False), len(metadata))

    @property
    def requires(self) -> tuple[tuple[Index, str], ...]:
        """The bounds, or the counts, or both, as the predicates need them."""
        leaves, tests = self._read()
        by_nan = all(leaf.on_nan for leaf in leaves)
        by_counts = not tests
        names = []
        if tests and NOTHING not in tests:
            names.append("bounds")
        if by_nan or by_counts or all(leaf.on_null for leaf in leaves):
            names.append("null_count")
        if by_nan or (by_counts and any(leaf.floating for leaf in leaves)):
            names.append("nan_count")
        return tuple((self.index, name) for name in names)

    def _read(self) -> tuple[list[Leaf], list[Test]]:
        """Return the leaves, and the tests that say anything of an ordinary value."""
        leaves = [leaf for predicate in self.predicates if (leaf := read_leaf(predicate)) is not None]
        return leaves, [leaf.test for leaf in leaves if leaf.test != EVERYTHING]

    def __str__(self) -> str:
        return f"{self.index.name}[{' AND '.join(map(str, self.predicates))}]"


@dataclass(frozen=True, slots=True)
class _EachInterval:
    """The intervals of all objects, each as if it were an object with its bounds."""

    lower: pa.Array
    upper: pa.Array

    def __len__(self) -> int:
        return len(self.lower)

    def field(self, index: Index, name: str) -> pa.Array:  # noqa: ARG002  (there is one index)
        """Return the lower or the upper bounds."""
        return self.lower if name == "lower" else self.upper

    @property
    def row_count(self) -> pa.Array:
        """The rows in each interval, which are not known."""
        return pa.nulls(len(self), pa.int64())


def _some_interval_passes(lists: pa.ListArray, tests: Sequence[Test], index: Index) -> pa.BooleanArray:
    """Return for each object whether one of its intervals might hold a value that passes all tests.

    All intervals are tested as one array; what passes is then counted between the offsets.
    """
    if pa.types.is_null(lists.type):
        return unknown(len(lists))
    offsets = lists.offsets.to_numpy().astype(np.int64)
    first, count = offsets[0], offsets[-1] - offsets[0]
    if ((offsets - first) % 2).any():  # not what was stored
        return unknown(len(lists))
    bounds = lists.values.slice(first, count)
    each = _EachInterval(bounds.take(pa.array(np.arange(0, count, 2))), bounds.take(pa.array(np.arange(1, count, 2))))
    passing = np.ones(len(each), np.bool_)
    for test in tests:
        bounded = to_bounds(test)
        if bounded is not None:
            answer = bounds_might_match(each, index, bounded)
            passing &= answer.fill_null(True).to_numpy(zero_copy_only=False)
    places = np.flatnonzero(passing)
    ends = np.searchsorted(places, (offsets - first) // 2)
    return pc.if_else(lists.is_valid(), pa.array(ends[:-1] < ends[1:]), None)


@dataclass(frozen=True, slots=True)
class GapListFilter(Filter):
    """Labels predicates on the column, and conjunctions of them, with ``GapListClause``.

    Every ordinary value (neither NULL nor NaN) of an object lies in one of its intervals ``[L, U]``; cutting bounds and
    closing gaps makes intervals wider, never narrower.  So if a row with an ordinary value satisfies a predicate, one
    of the intervals *might hold a value that satisfies it*, which for each predicate means:

    ========================== =========================================================================================
    predicate                  the interval might hold such a value when (``v`` ordinary; otherwise see ``_leaf``)
    ========================== =========================================================================================
    ``c = v``, ``c <=> v``     ``L ≤ v ≤ U``
    ``c IN (…)``               some option lies in ``[L, U]``
    ``c <> v``, ``NOT IN``     not ``L = U = v`` (not ``L = U ∈ options``)
    ``c < v``, ``c <= v``      ``L < v`` (``L ≤ v``)
    ``c > v``, ``c >= v``      ``U > v`` (``U ≥ v``); an unknown ``U`` might be
    ``startswith(c, p)``       ``L < p⁺`` and ``U ≥ p``, where ``p⁺`` is the least text above all that begin with ``p``
    ``NOT startswith(c, p)``   not ``p ≤ L`` and ``U < p⁺``
    ``c LIKE 'p…'``            as ``startswith(c, p)`` for the literal prefix, up to U+FFFD (``MinMaxFilter`` says why)
    ``c NOT LIKE 'p%'``, 'p'   as ``NOT startswith(c, p)``, ``c <> 'p'``; no other shape
    ``a AND b AND …``          so it is for each term on the column.  If a row satisfies the conjunction, its value
                               satisfies every term on the column, and the one interval that holds the value passes all
                               of them.  Terms on anything else are left out: they can only make fewer rows match.
    ========================== =========================================================================================

    A conjunction can thus refute an object that none of its terms refutes: for ``c > 10 AND c < 20`` and the intervals
    ``[0, 9]`` and ``[30, 40]``, the first fails the first term and the second fails the second.

    NULL and NaN are not in the intervals.  ``IS NULL`` keeps an object with a NULL, ``IS NOT NULL`` one with an
    ordinary value or NaN, ``isnan`` one with NaN, ``NOT isnan`` one with an ordinary value or a NULL.  NaN satisfies
    ``>``, ``>=``, ``<>``, ``NOT IN`` and equality with NaN, NULL satisfies ``NOT (c <=> v)``: then objects with such a
    row are kept too.  A conjunction is satisfied by NULL (NaN) only if each of its terms is, and those left out do not
    matter.
    """

    index: GapListIndex

    def label_node(self, node: Expression) -> Clause | None:
        terms = tuple(filter(self._serves, node.terms if isinstance(node, And) else (node,)))
        is_served = len(terms) > 1 if isinstance(node, And) else bool(terms)
        return GapListClause(self.index, terms) if is_served else None

    def _serves(self, node: Expression) -> bool:
        """Whether a vertex is a leaf on the column that bounds can answer."""
        leaf = read_leaf(node)
        return leaf is not None and leaf.is_on(self.index.column) and to_bounds(leaf.test) is not None
