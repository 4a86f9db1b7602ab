"""The ValueList index: the distinct values of each object (paper, table I), and its clauses for custom indexes."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.indexing.metadata_type import MetadataType
from skipstone.querying.clause import Clause
from skipstone.querying.filter import Filter
from skipstone.querying.lookup import SET, Lookup
from skipstone.toolkit.elements import PartIndex, count_names, describes, elements_of, is_lists
from skipstone.toolkit.leaf import (
    Affix,
    Among,
    Compare,
    CountClause,
    Leaf,
    Pattern,
    has_nan,
    has_null,
    read_leaf,
)
from skipstone.toolkit.letter_case import cased_subject, in_case
from skipstone.toolkit.like import to_regex
from skipstone.toolkit.values import Distinct, exact_array, exact_scalar, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skipstone.expressions.tree import Expression
    from skipstone.indexing.index import Index
    from skipstone.indexing.objects import DataObject
    from skipstone.querying.clause import Metadata
    from skipstone.toolkit.leaf import Test

__all__ = [
    "ValueListCaseClause",
    "ValueListClause",
    "ValueListFilter",
    "ValueListIndex",
    "ValueListMatchClause",
    "ValueListMetadata",
    "passes",
]

MAX_BYTES = 1 << 30
"""A list longer than this is given up: it would be no smaller than the data, and Arrow's lists end at 2 GB."""


@dataclass(frozen=True, slots=True)
class ValueListMetadata(MetadataType):
    """The distinct ordinary values (neither NULL nor NaN) of some rows, and how many are not ordinary.

    Of a column of arrays, ``elements``: those of their elements.  ``values`` is ``None`` when unknown: text that is not
    valid UTF-8 is not listed, since readers disagree on it.

    Examples
    --------
    >>> ValueListMetadata.of(["a", "b", "a", None]).null_count
    1
    """

    lookups: ClassVar[Mapping[str, str]] = {"values": SET}

    values: Distinct | None
    null_count: int
    nan_count: int = 0
    floating: bool = False
    elements: bool = False

    @classmethod
    def of(cls, values: pa.Array | pa.ChunkedArray | Sequence[Any]) -> Self:
        """Collect from a column of physical values, or whatever Arrow can make an array of."""
        column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        counts = cls.counts_of(column)
        once = elements_of(column).unique().drop_null()
        if counts.floating:
            once = pc.add(once.filter(pc.invert(pc.is_nan(once))), pa.scalar(0.0, once.type)).unique()  # -0.0 is 0.0
        found = Distinct((once,), len(once)) if _is_valid(once) else None
        return dataclasses.replace(counts, values=found)

    @classmethod
    def counts_of(cls, column: pa.Array | pa.ChunkedArray) -> Self:
        """Collect the counts alone; the values stay unknown."""
        elements, column = is_lists(column.type), elements_of(column)
        floating = pa.types.is_floating(column.type)
        nans = pc.sum(pc.is_nan(column)).as_py() or 0 if floating else 0
        return cls(None, column.null_count, nans, floating, elements)

    @classmethod
    def fields(cls, inputs: tuple[pa.DataType, ...]) -> Mapping[str, pa.DataType]:
        elements = is_lists(inputs[0])
        kind = inputs[0].value_type if elements else inputs[0]
        nulls, nans = count_names(elements=elements)
        counts = {nulls: pa.int64(), nans: pa.int64()} if pa.types.is_floating(kind) else {nulls: pa.int64()}
        return {"values": pa.list_(_short(kind)), **counts}

    def merge(self, other: Self) -> Self:
        values = None if self.values is None or other.values is None else self.values.merge(other.values)
        if values is not None and values.bytes > MAX_BYTES:
            values = None
        return type(self)(
            values,
            self.null_count + other.null_count,
            self.nan_count + other.nan_count,
            self.floating or other.floating,
            self.elements or other.elements,
        )

    def finish(self, data_object: DataObject) -> Mapping[str, Any]:  # noqa: ARG002  (part of the contract)
        values = self.values.array if self.values is not None else None
        nulls, nans = count_names(elements=self.elements)
        stored = {
            "values": None if values is None else values.cast(_short(values.type)),
            nulls: self.null_count,
        }
        return {**stored, nans: self.nan_count} if self.floating else stored


def _short(type_: pa.DataType) -> pa.DataType:
    """Return the stored type of a value: offsets of 32 bits, whatever Spark sent."""
    if pa.types.is_large_string(type_):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(type_) else type_


def _is_valid(values: pa.Array) -> bool:
    """Whether the values may be listed: text must be UTF-8, which neither Spark nor Arrow checks."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return values.nbytes <= MAX_BYTES


@dataclass(frozen=True)
class ValueListIndex(PartIndex):
    """The distinct values of a column in each object, with counts of NULL and NaN.

    Parameters
    ----------
    column
        The column; of an array column the elements are listed.
    of
        For a map column, and only for that: which part of it is listed, ``"keys"`` or ``"values"``.

    Examples
    --------
    >>> ValueListIndex("db_name").name
    'valuelist(db_name)'
    >>> ValueListIndex("attributes", of="keys").name
    "valuelist(attributes, of='keys')"
    """

    metadata_type = ValueListMetadata

    column: str
    of: str | None = field(default=None, kw_only=True)

    def inputs(self, types: tuple[str, ...]) -> tuple[str, ...]:  # noqa: ARG002  (part of the contract)
        return (self.values_input,)

    def collect_metadata(self, rows: pa.RecordBatch) -> ValueListMetadata:
        return ValueListMetadata.of(rows.column(0))

    def filters(self) -> tuple[Filter, ...]:
        return (ValueListFilter(self),)


@dataclass(frozen=True, slots=True)
class ValueListClause(Clause):
    """The object's list has one of these values; ``None`` among them stands for NULL, NaN for NaN."""

    index: Index
    values: tuple[Any, ...]

    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        """Look for the ordinary values in the lists, and for the others in the counts."""
        ways = [_some_value_passes(metadata.field(self.index, "values"), Among(self._ordinary))]
        if self._names_null:
            ways.append(has_null(metadata, self.index))
        if self._names_nan:
            ways.append(has_nan(metadata, self.index))
        return reduce(pc.or_kleene, ways)

    @property
    def requires(self) -> tuple[tuple[Index, str], ...]:
        """The lists; the counts only for NULL and NaN."""
        names = ["values"]
        if self._names_null or self._names_nan:
            names.append("null_count")
        if self._names_nan:
            names.append("nan_count")
        return tuple((self.index, name) for name in names)

    @property
    def lookups(self) -> Mapping[tuple[Index, str], Lookup]:
        """The ordinary values in the lists."""
        return {(self.index, "values"): Lookup(values=self._ordinary)}

    @property
    def _ordinary(self) -> tuple[Any, ...]:
        return tuple(v + 0.0 if isinstance(v, float) else v for v in self.values if v is not None and v == v)  # noqa: PLR0124

    @property
    def _names_null(self) -> bool:
        return any(value is None for value in self.values)

    @property
    def _names_nan(self) -> bool:
        return any(isinstance(value, float) and math.isnan(value) for value in self.values)

    def __str__(self) -> str:
        shown = ", ".join(map(repr, self.values[:5]))
        more = f", … {len(self.values) - 5} more" if len(self.values) > 5 else ""
        return f"{self.index.name}[values contain {shown}{more}]"


@dataclass(frozen=True, slots=True)
class ValueListMatchClause(CountClause):
    """Some value of the object's list satisfies the predicate, whose subject is what the list was collected of."""

    def ordinary_might_match(self, metadata: Metadata, leaf: Leaf) -> pa.BooleanArray:
        """Apply the test to every listed value."""
        return _some_value_passes(metadata.field(self.index, "values"), leaf.test)

    def ordinary_requires(self, leaf: Leaf) -> tuple[str, ...]:  # noqa: ARG002  (part of the contract)
        return ("values",)

    @property
    def lookups(self) -> Mapping[tuple[Index, str], Lookup]:
        """The values that an equality or IN names: whether they are listed is all that it asks."""
        leaf = read_leaf(self.predicate)
        if leaf is None or not isinstance(leaf.test, Among) or leaf.test.negated:
            return {}
        return {(self.index, "values"): Lookup(values=leaf.test.values)}


@dataclass(frozen=True, slots=True)
class ValueListCaseClause(CountClause):
    """Some value of the object's list satisfies a predicate on ``lower`` or ``upper`` of it, or is not ASCII."""

    def ordinary_might_match(self, metadata: Metadata, leaf: Leaf) -> pa.BooleanArray:
        """Apply the test to every listed value in that case; one that is not ASCII might pass it."""
        return _some_value_passes(metadata.field(self.index, "values"), leaf.test, of=leaf.subject)

    def ordinary_requires(self, leaf: Leaf) -> tuple[str, ...]:  # noqa: ARG002  (part of the contract)
        return ("values",)


def _some_value_passes(lists: pa.ListArray, test: Test, of: Expression | None = None) -> pa.BooleanArray:
    """Return for each list whether some value in it passes; null for a list that is not known.

    All lists are tested as one array of values; what passes is then counted between the offsets.  ``of`` is a call of
    ``lower`` or ``upper`` whose results are tested.
    """
    if pa.types.is_null(lists.type):
        return unknown(len(lists))
    offsets = lists.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    values = lists.values.slice(first, last - first)
    if of is None:
        passing = passes(values, test)
    else:
        cased, undecided = in_case(values, of)
        passing = passes(cased, test)
        passing = None if passing is None else pc.or_kleene(passing, undecided)
    if passing is None:
        return unknown(len(lists))
    places = np.flatnonzero(passing.fill_null(True).to_numpy(zero_copy_only=False)) + first
    found = np.searchsorted(places, offsets[:-1]) < np.searchsorted(places, offsets[1:])
    return pc.if_else(lists.is_valid(), pa.array(found), None)


_OPERATORS = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
_PLACES = {"prefix": pc.starts_with, "suffix": pc.ends_with, "part": pc.match_substring}


def passes(values: pa.Array, test: Test) -> pa.BooleanArray | None:
    """Apply a test to values one by one; ``None`` when it cannot be done exactly."""
    negated = not isinstance(test, Compare) and test.negated
    passing: pa.BooleanArray | None = None
    try:
        match test:
            case Among((value,)):
                scalar = exact_scalar(value, values.type)
                passing = None if scalar is None else pc.equal(values, scalar)
            case Among(options):
                value_set = exact_array(options, values.type)
                passing = None if value_set is None else pc.is_in(values, value_set=value_set)
            case Compare(operator, value):
                scalar = exact_scalar(value, values.type)
                passing = None if scalar is None else _OPERATORS[operator](values, scalar)
            case Affix(place, text):
                passing = _PLACES[place](values, pattern=text)
            case Pattern(tokens):
                passing = pc.match_substring_regex(values, pattern=to_regex(tokens))
    except pa.ArrowException:  # a pattern too long for RE2, or values that are no text
        return None
    return pc.invert(passing) if negated and passing is not None else passing


@dataclass(frozen=True, slots=True)
class ValueListFilter(Filter):
    """Labels predicates on the column with ``ValueListMatchClause``; also serves the list form of a hybrid index.

    The list has every ordinary value (neither NULL nor NaN) of the object and nothing else, so the object has a row
    that satisfies a predicate exactly if a listed value does, or NULL or NaN does and the object has one.  Values are
    compared as Spark compares them: text by its bytes, LIKE by code points, -0.0 as 0.0, and only with a literal that
    the values' type holds exactly.

    ============================================= ======================================================================
    predicate                                     kept when
    ============================================= ======================================================================
    ``= <=> IN < <= LIKE startswith endswith      some listed value satisfies it
    contains``, and NOT of the last four
    ``> >= <> NOT IN``                            some listed value satisfies it; or NaN, which is greater than and
                                                  different from every ordinary literal
    ``= <=> IN`` with NaN                         likewise for the others; or NaN, which equals itself
    ``<> NOT IN`` with NaN                        some listed value satisfies it; NaN does not differ from itself
    ``<`` and ``<=`` NaN                          there is an ordinary value; for ``<=``, or NaN
    ``>`` and ``>=`` NaN                          never; for ``>=``, NaN
    ``NOT (c <=> v)``                             as ``<>``, or a NULL
    ``IS NULL``, ``IS NOT NULL``                  ``null_count > 0``; there is an ordinary value or NaN
    ``isnan``, ``NOT isnan``                      NaN; there is an ordinary value or a NULL, of which ``isnan`` is FALSE
    ============================================= ======================================================================

    Of an array's elements, and of a map's keys or values, the list has every ordinary one in the object's rows, and
    ``null_elements`` and ``nan_elements`` count the others.  So the same holds of *some element* (``tree.Element``),
    with one difference: that there is an ordinary element is seen in the list and never in counts, since the rows do
    not say how many elements there are.  NULL arrays have none.  Of the arrays themselves (``tags IS NULL``) nothing is
    known.

    A predicate on ``lower(column)`` or ``upper(column)`` is asked of the listed values in that case, where they are
    ASCII: then Spark's result is known (``toolkit.letter_case``).  A value that is not ASCII keeps its object.  Either
    function is NULL for NULL and for nothing else.
    """

    index: Index

    def label_node(self, node: Expression) -> Clause | None:
        leaf = read_leaf(node)
        if leaf is None:
            return None
        if describes(self.index, leaf.subject):
            return ValueListMatchClause(self.index, node)
        cased = cased_subject(leaf.subject)
        return ValueListCaseClause(self.index, node) if cased is not None and describes(self.index, cased) else None
