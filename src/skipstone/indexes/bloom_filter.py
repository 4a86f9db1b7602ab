"""The BloomFilter index: a Bloom filter over the distinct values of each object, sized from them (paper, table I)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import SettingError
from skipstone.expressions.tree import Column, Element, EqualNullSafe, EqualTo, In, IsNotNull, IsNull, Literal, Not
from skipstone.indexes.filter_blocks import blocks_for, turns_for
from skipstone.indexing.metadata_type import MetadataType
from skipstone.querying.clause import Clause
from skipstone.querying.filter import Filter
from skipstone.querying.lookup import MOST_BLOCKS, HasFilters, Lookup, PartFilters, turns_and_blocks
from skipstone.toolkit.elements import PartIndex, count_names, describes, elements_of, is_lists
from skipstone.toolkit.hashing import spark_hash
from skipstone.toolkit.leaf import CountClause
from skipstone.toolkit.values import Distinct, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from skipstone.expressions.tree import Expression
    from skipstone.indexing.index import Index
    from skipstone.indexing.objects import DataObject
    from skipstone.querying.clause import Metadata
    from skipstone.querying.lookup import Filters
    from skipstone.toolkit.leaf import Leaf

__all__ = ["BloomFilterClause", "BloomFilterFilter", "BloomFilterIndex", "BloomFilterMetadata"]

MAX_PROBES = 8_000_000
"""Literals times objects that one clause looks up (some tenths of a second); objects beyond that are kept."""

_MOST_SLICES, _LEAST_SLICE = 256, 16
"""The length of a filter without blocks is a multiple of the largest power of two up to 256 that leaves 16 bytes."""
_WORD = 0xFFFFFFFFFFFFFFFF
_MULTIPLIER, _INCREMENT = 6364136223846793005, 1442695040888963407  # Knuth's, for words of 64 bits


def check_fpp(fpp: object) -> None:
    """Refuse a false-positive probability that is none."""
    if isinstance(fpp, bool) or not isinstance(fpp, int | float) or not 0 < fpp < 1:
        msg = f"fpp={fpp!r} is not a probability: give a number above 0 and below 1, such as 0.01"
        raise SettingError(msg)


def make_filter(hashes: pa.Array, fpp: float, *, blocked: bool = True) -> Mapping[str, Any]:
    """Make the stored fields ``bits`` and ``hashes`` of the distinct 64-bit hashes of an object's values.

    ``m = ⌈-n ln f / ln² 2⌉`` bits, rounded up to whole bytes of equal blocks or slices (by a sixteenth at most), and
    ``k = m/n ln 2`` positions per value.  No value, no bits: such a filter has nothing in it.

    With blocks all positions of a value lie in the one that the leading bits of its hash number, so that who looks for
    it needs no other.  Some blocks get more values than others; ``blocks_for`` says how that is made up for.
    """
    count = len(hashes)
    if count == 0:
        return {"bits": b"", "hashes": 0}
    least = math.ceil(-count * math.log(fpp) / math.log(2) ** 2 / 8)
    length, log = blocks_for(least, fpp) if blocked else (0, 0)
    if not log:
        slices = min(_MOST_SLICES, 1 << max(least // _LEAST_SLICE, 1).bit_length() - 1)
        length = math.ceil(least / slices) * slices
    size = 8 * length
    if size >= 1 << 32:  # half a billion values in one object
        return {"bits": None, "hashes": None}
    turns = turns_for(size / count)
    bits = np.zeros(size, np.bool_)
    state = hashes.to_numpy().view(np.uint64)
    first = state & np.uint64(_leading(log))
    if log:
        state = state * np.uint64(_MULTIPLIER) + np.uint64(_INCREMENT)
    for _ in range(turns):
        places = first | state >> np.uint64(log) if log else state
        bits[(((places >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32)).view(np.int64)] = True
        state = state * np.uint64(_MULTIPLIER) + np.uint64(_INCREMENT)
    return {
        "bits": np.packbits(bits, bitorder="little").tobytes(),
        "hashes": -(log << 16 | turns) if log else turns,
    }


def _leading(log: int) -> int:
    """Return the mask of so many leading bits of a word."""
    return _WORD ^ (_WORD >> log)


def _might_contain(filters: Filters, hashes: pa.Array, literals: tuple[int, ...]) -> pa.BooleanArray:
    """Look literals' hashes up in the filters of all objects; null for a filter that is not known.

    The places are those of ``make_filter``: the hash, well mixed by XXH64, starts a linear congruential sequence, whose
    upper halves are scaled down to the filter's size.  Two hashes that meet once part at the next step, which the usual
    double hashing does not give in filters of a few bytes.
    """
    known = filters.known & np.asarray(hashes.is_valid())
    turns, blocks = turns_and_blocks(hashes.fill_null(0).to_numpy(zero_copy_only=False))
    known &= (turns > 0) | (filters.sizes == 0)
    known &= (blocks <= MOST_BLOCKS) & (filters.sizes % (8 << np.minimum(blocks, MOST_BLOCKS)).astype(np.uint64) == 0)
    found = np.zeros(len(hashes), np.bool_)
    open_ = np.flatnonzero(known & (filters.sizes > 0))
    alike = [(log, open_[blocks[open_] == log]) for log in np.flatnonzero(np.bincount(blocks[open_])).tolist()]
    budget = MAX_PROBES
    for literal in literals:
        left = sum(len(candidates) for _, candidates in alike)
        budget -= left
        if budget < 0:
            for _, candidates in alike:
                known[candidates] = False
            break
        for place, (log, candidates) in enumerate(alike):
            hits = _probe(literal, candidates, filters, turns, log)
            if len(hits):
                found[hits] = True
                alike[place] = (log, candidates[~found[candidates]])
    return pa.array(found, mask=~known)


def _probe(
    literal: int, candidates: npt.NDArray[np.intp], filters: Filters, turns: npt.NDArray[Any], log: int = 0
) -> npt.NDArray[np.intp]:
    """Return those candidates, all with as many blocks, whose filter has every bit of one literal set."""
    hits = []
    for turn, place in enumerate(_places(literal, log)):
        done = turns[candidates] <= turn
        if done.any():
            hits.append(candidates[done])
            candidates = candidates[~done]
        if not len(candidates):
            break
        candidates = candidates[filters.might_be_set(place, candidates)]
    return np.concatenate(hits) if hits else candidates


def _places(literal: int, log: int = 0) -> Iterator[int]:
    """Yield the places of a literal, as fractions of a filter's length: see ``Lookup``.

    In a filter with blocks the leading bits are those of the literal, and the sequence gives the place in its block.
    """
    state = literal & _WORD
    first = state & _leading(log)
    if log:
        state = (state * _MULTIPLIER + _INCREMENT) & _WORD
    while True:
        yield first | state >> log if log else state
        state = (state * _MULTIPLIER + _INCREMENT) & _WORD


@dataclass(frozen=True, slots=True)
class BloomFilterMetadata(MetadataType):
    """The distinct hashes of some rows' values, of which the filter is made at the end, and the number of NULLs."""

    lookups: ClassVar[Mapping[str, str]] = {"bits": "blocks:hashes"}

    hashes: Distinct
    null_count: int
    fpp: float
    elements: bool = False

    @classmethod
    def fields(cls, inputs: tuple[pa.DataType, ...]) -> Mapping[str, pa.DataType]:
        nulls, _ = count_names(elements=is_lists(inputs[0]))
        return {"bits": pa.binary(), "hashes": pa.int32(), nulls: pa.int64()}

    def merge(self, other: Self) -> Self:
        hashes, nulls = self.hashes.merge(other.hashes), self.null_count + other.null_count
        return type(self)(hashes, nulls, self.fpp, self.elements or other.elements)

    def finish(self, data_object: DataObject) -> Mapping[str, Any]:  # noqa: ARG002  (part of the contract)
        nulls, _ = count_names(elements=self.elements)
        filter_ = make_filter(self.hashes.array, self.fpp, blocked=not self.elements)
        return {**filter_, nulls: self.null_count}


@dataclass(frozen=True)
class BloomFilterIndex(PartIndex):
    """A Bloom filter over a column's values in each object, as large as their number asks for.

    Values are hashed in the JVM (``xxhash64``), so that long strings do not travel.

    Parameters
    ----------
    column
        The column; of an array column the elements go into the filter.
    fpp
        The false-positive probability: how often an object without the value is read all the same.
    of
        For a map column, and only for that: which part of it, ``"keys"`` or ``"values"``.

    Examples
    --------
    >>> BloomFilterIndex("account", fpp=0.001).name
    'bloomfilter(account, fpp=0.001)'
    """

    metadata_type = BloomFilterMetadata

    column: str
    fpp: float = field(default=0.01, kw_only=True)
    of: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_fpp(self.fpp)
        super().__post_init__()

    def inputs(self, types: tuple[str, ...]) -> tuple[str, ...]:
        return (self.hashes_input(types),)

    def collect_metadata(self, rows: pa.RecordBatch) -> BloomFilterMetadata:
        column = rows.column(0)
        hashes = elements_of(column)
        once = hashes.unique().drop_null()
        return BloomFilterMetadata(Distinct((once,), len(once)), hashes.null_count, self.fpp, is_lists(column.type))

    def filters(self) -> tuple[Filter, ...]:
        return (BloomFilterFilter(self),)


@dataclass(frozen=True, slots=True)
class BloomFilterClause(Clause):
    """The object's filter has one of these hashes; they are made on the driver, where ``xxhash`` is."""

    index: Index
    hashes: tuple[int, ...]
    predicate: str = ""

    def might_match(self, metadata: Metadata) -> pa.BooleanArray:
        """Look every hash up in every filter."""
        turns = metadata.field(self.index, "hashes")
        if not len(metadata) or pa.types.is_null(turns.type):
            return unknown(len(metadata))
        if isinstance(metadata, HasFilters):
            return _might_contain(metadata.filters(self.index, "bits"), turns, self.hashes)
        bits = metadata.field(self.index, "bits")
        return _might_contain(PartFilters(bits), turns, self.hashes)

    @property
    def requires(self) -> tuple[tuple[Index, str], ...]:
        """The filter's bits and how many of them a value sets."""
        return ((self.index, "bits"), (self.index, "hashes"))

    @property
    def lookups(self) -> Mapping[tuple[Index, str], Lookup]:
        """The first places of each literal: as many as a filter of this false-positive rate uses.

        A filter whose rounding gave it more is looked at in these alone, which only keeps more.
        """
        fpp = getattr(self.index, "fpp", 0.01)
        most = round(-math.log2(fpp)) + 1
        places = tuple(p for h in self.hashes for p in islice(_places(h), most))
        return {(self.index, "bits"): Lookup(places=places, blocks=tuple(h & _WORD for h in self.hashes))}

    def __str__(self) -> str:
        return f"{self.index.name}[{self.predicate}]"


@dataclass(frozen=True, slots=True)
class SomeHashClause(CountClause):
    """The object has something that is not NULL; for elements, which no row count counts, its filter shows that."""

    def ordinary_might_match(self, metadata: Metadata, leaf: Leaf) -> pa.BooleanArray:  # noqa: ARG002  (as inherited)
        """Look whether a value sets any bits."""
        return pc.greater(metadata.field(self.index, "hashes"), 0)

    def ordinary_requires(self, leaf: Leaf) -> tuple[str, ...]:  # noqa: ARG002  (as inherited)
        return ("hashes",)


@dataclass(frozen=True, slots=True)
class BloomFilterFilter(Filter):
    """Labels equality on the column with ``BloomFilterClause``; also serves the Bloom form of a hybrid index.

    The filter has the hash of every value but NULL, and ``xxhash64`` gives equal values equal hashes: one for all NaN,
    one for -0.0 and 0.0.  So a hash that the filter does not have belongs to no row, and NULL satisfies none of the
    first two predicates.

    ======================================= ==================================================================
    predicate                               kept when
    ======================================= ==================================================================
    ``c = v``, ``c <=> v``                  the filter might have the hash of ``v``
    ``c IN (…)``                            the filter might have the hash of some option
    ``c IS NULL``, ``c <=> NULL``           ``null_count > 0``
    ``c IS NOT NULL``, ``NOT c <=> NULL``   ``null_count < row_count``
    ======================================= ==================================================================

    Of *some element* of an array or a map (``tree.Element``) the same holds of the elements' hashes, with
    ``null_elements`` for ``null_count``, and ``IS NOT NULL`` when there is any hash at all: the number of rows does not
    say how many elements there are.

    ``<>``, NOT IN and orders are not served: that a value is there says nothing of which others are.
    """

    index: Index

    def label_node(self, node: Expression) -> Clause | None:
        match node:
            case IsNull(subject) | EqualNullSafe(subject, Literal(None)) if describes(self.index, subject):
                return CountClause(self.index, IsNull(_untyped(subject)))
            case IsNotNull(subject) | Not(EqualNullSafe(subject, Literal(None))) if describes(self.index, subject):
                return SomeHashClause(self.index, IsNotNull(_untyped(subject)))
            case EqualTo(subject, option) | EqualNullSafe(subject, option) if describes(self.index, subject):
                return self._lookup(node, subject, (option,))
            case In(subject, options) if describes(self.index, subject):
                return self._lookup(node, subject, options)
            case _:
                return None

    def _lookup(self, node: Expression, subject: Expression, options: tuple[Expression, ...]) -> Clause | None:
        """Hash the options as Spark hashes the column; no clause when one of them cannot be."""
        hashes = []
        for option in options:
            if not isinstance(option, Literal) or option.value is None or not isinstance(subject, Column | Element):
                return None
            hashed = spark_hash(option.value, subject.type)
            if hashed is None:
                return None
            hashes.append(hashed)
        return BloomFilterClause(self.index, tuple(hashes), str(node))


def _untyped(subject: Expression) -> Expression:
    """Leave the type out where values are counted: NaN is a value like any other here."""
    return dataclasses.replace(subject, type="")  # type: ignore[type-var]
