"""Skips objects by the length of a text column."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from skipstone import Clause, Filter, Index, MetadataType
from skipstone.expressions.tree import (
    Call,
    Column,
    Comparison,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    Literal,
)
from skipstone.toolkit import quoted

LONGEST = 2**31 - 1


@dataclass(frozen=True)
class LengthMetadata(MetadataType):
    """The least and the greatest length of some rows; of rows without text the least is greater than the greatest."""

    low: int = LONGEST
    high: int = -1

    @classmethod
    def fields(cls, inputs):
        return {"low": pa.int32(), "high": pa.int32()}

    def merge(self, other):
        return LengthMetadata(min(self.low, other.low), max(self.high, other.high))


@dataclass(frozen=True)
class LengthIndex(Index):
    """The least and the greatest length of a text column in each object."""

    column: str
    metadata_type = LengthMetadata
    functions = ()  # it keeps no results of a user's function

    def supports(self, types):
        return types == ("string",)

    def inputs(self, types):
        return (f"length({quoted(self.column)})",)  # any Spark expression: Spark computes it, Arrow brings it

    def collect_metadata(self, rows):
        lengths = rows.column(0).drop_null()
        return LengthMetadata(pc.min(lengths).as_py(), pc.max(lengths).as_py()) if len(lengths) else LengthMetadata()

    def filters(self):
        return (LengthFilter(self),)


@dataclass(frozen=True)
class LengthClause(Clause):
    """The object's lengths reach into ``shortest … longest``."""

    index: LengthIndex
    shortest: int
    longest: int
    reads = ("low", "high")

    def might_match(self, metadata):
        low, high = (metadata.field(self.index, name) for name in self.reads)
        return pc.and_kleene(pc.less_equal(low, self.longest), pc.greater_equal(high, self.shortest))


@dataclass(frozen=True)
class LengthFilter(Filter):
    """Labels comparisons of ``length(column)`` with a constant.

    Every text of an object has a length between ``low`` and ``high``.  A row satisfies the predicate only if its length
    lies in ``shortest … longest``; then ``low <= longest`` and ``high >= shortest``, and the object is kept.  NULL has
    no length and satisfies no comparison.  Where metadata is absent both comparisons are null, and the object is kept.
    A *user's* function called ``length`` is another function: ``kind`` is empty for Spark's own only.
    """

    index: LengthIndex

    def label_node(self, node):
        match node:
            case Comparison(Call("length", (Column(self.index.column),), kind=""), Literal(int(n))):
                ranges = {
                    EqualTo: (n, n),
                    LessThan: (0, n - 1),
                    LessThanOrEqual: (0, n),
                    GreaterThan: (n + 1, LONGEST),
                    GreaterThanOrEqual: (n, LONGEST),
                }
                return LengthClause(self.index, *ranges[type(node)]) if type(node) in ranges else None
