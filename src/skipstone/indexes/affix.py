"""The Prefix and the Suffix index: the distinct first or last characters of each object's texts (paper, table I).

A listed piece with fewer than *b* characters is a whole value: the predicate itself is applied to it.  One with *b* may
be cut: then a *necessary* condition is applied, which the piece of every matching value passes.  ``cut_prefix`` and
``cut_suffix`` give these conditions.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.errors import SettingError
from skipstone.indexes.value_list import MAX_BYTES, passes
from skipstone.indexing.index import Index
from skipstone.indexing.metadata_type import MetadataType
from skipstone.querying.filter import Filter
from skipstone.toolkit.leaf import Affix, Among, Compare, CountClause, Pattern, read_leaf
from skipstone.toolkit.like import LikeTokens, Wildcard
from skipstone.toolkit.values import Distinct, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skipstone.expressions.tree import Expression
    from skipstone.indexing.objects import DataObject
    from skipstone.querying.clause import Clause, Metadata
    from skipstone.toolkit.leaf import Leaf, Test

__all__ = [
    "AffixClause",
    "AffixFilter",
    "AffixIndex",
    "AffixMetadata",
    "PrefixClause",
    "PrefixFilter",
    "PrefixIndex",
    "PrefixMetadata",
    "SuffixClause",
    "SuffixFilter",
    "SuffixIndex",
    "SuffixMetadata",
    "cut_prefix",
    "cut_suffix",
]


def cut_prefix(test: Test, length: int) -> Test | None:
    """Return a test that the first ``length`` characters of every longer value that passes ``test`` pass, if any."""
    match test:
        case Among(values, False) if all(isinstance(value, str) for value in values):
            return Among(tuple(value[:length] for value in values))
        case Compare("<" | "<="):
            return test
        case Compare(_, str(value)):
            return Compare(">=", value[:length])
        case Affix("prefix", text, False):
            return Affix("prefix", text[:length])
        case Affix("prefix", text, True) if len(text) <= length:
            return test
        case Pattern(tokens, False):
            return Pattern(_head(tokens, length))
        case Pattern(tokens, True) if tokens[-1:] == (Wildcard.ANY,):
            return test
    return _both_sides(test)


def cut_suffix(test: Test, length: int) -> Test | None:
    """Return a test that the last ``length`` characters of every longer value that passes ``test`` pass, if any."""
    match test:
        case Among(values, False) if all(isinstance(value, str) for value in values):
            return Among(tuple(value[-length:] for value in values))
        case Affix("suffix", text, False):
            return Affix("suffix", text[-length:])
        case Affix("suffix", text, True) if len(text) <= length:
            return test
        case Pattern(tokens, False):
            return Pattern(_reversed(_head(_reversed(tokens), length)))
        case Pattern(tokens, True) if tokens[:1] == (Wildcard.ANY,):
            return test
    return _both_sides(test)


def _both_sides(test: Test) -> Test | None:
    """Return what holds of every piece: a value without some text has no piece with it."""
    return test if isinstance(test, Affix) and test.place == "part" and test.negated else None


def _head(tokens: LikeTokens, length: int) -> LikeTokens:
    """Return the pattern that the first ``length`` characters of a longer matching text match."""
    head: list[str | Wildcard] = []
    for token in tokens:
        if token is Wildcard.ANY:
            return (*head, token)
        piece = token if token is Wildcard.ONE else str(token)[:length]
        head.append(piece)
        length -= 1 if piece is Wildcard.ONE else len(str(piece))
        if length == 0:
            break
    return tuple(head)


def _reversed(tokens: LikeTokens) -> LikeTokens:
    """Turn a pattern round: it matches a text exactly if the other matches that text turned round."""
    return tuple(token if isinstance(token, Wildcard) else token[::-1] for token in reversed(tokens))


@dataclass(frozen=True, slots=True)
class AffixMetadata(MetadataType):
    """The distinct pieces of some rows' values and the number of NULLs.

    ``pieces`` is ``None`` when unknown: text that is not valid UTF-8 has no characters to count.
    """

    field_name: ClassVar[str]

    pieces: Distinct | None
    null_count: int

    @classmethod
    def of(cls, column: pa.Array, start: int, stop: int | None) -> Self:
        """Collect from a column of text the characters from ``start`` to ``stop``."""
        try:
            column.validate(full=True)  # neither Spark nor Arrow checks that text is UTF-8
        except pa.ArrowInvalid:
            return cls(None, column.null_count)
        pieces = pc.utf8_slice_codeunits(column, start, stop).cast(pa.string())
        return cls(Distinct.of(pieces.drop_null()), column.null_count)

    @classmethod
    def fields(cls, inputs: tuple[pa.DataType, ...]) -> Mapping[str, pa.DataType]:  # noqa: ARG003  (the contract)
        return {cls.field_name: pa.list_(pa.string()), "null_count": pa.int64()}

    def merge(self, other: Self) -> Self:
        pieces = None if self.pieces is None or other.pieces is None else self.pieces.merge(other.pieces)
        if pieces is not None and pieces.bytes > MAX_BYTES:
            pieces = None
        return type(self)(pieces, self.null_count + other.null_count)

    def finish(self, data_object: DataObject) -> Mapping[str, Any]:  # noqa: ARG002  (part of the contract)
        pieces = None if self.pieces is None else self.pieces.array
        if pieces is not None:
            pieces = pieces.take(pc.array_sort_indices(pieces))  # neighbours that are alike take less space
        return {self.field_name: pieces, "null_count": self.null_count}


@dataclass(frozen=True)
class AffixIndex(Index):
    """The distinct pieces of a text column in each object, of ``length`` characters each."""

    column: str
    length: int = field(kw_only=True)

    def __post_init__(self) -> None:
        _check_length(self.length)
        super().__post_init__()

    @property
    def functions(self) -> tuple[str, ...]:
        return ()

    def supports(self, types: tuple[str, ...]) -> bool:
        return types == ("string",)


def _check_length(length: Any) -> None:
    """Raise unless ``length`` is a number of characters."""
    if not isinstance(length, int) or isinstance(length, bool) or length < 1:
        msg = f"length={length!r} is not a number of characters: give a positive whole number"
        raise SettingError(msg)


@dataclass(frozen=True, slots=True)
class AffixClause(CountClause):
    """Some listed piece might be that of a value that satisfies the predicate."""

    length: int

    field_name: ClassVar[str]

    @abstractmethod
    def cut(self, test: Test) -> Test | None:
        """Return a test that the piece of every value as long as a piece passes if the value passes ``test``."""

    def ordinary_might_match(self, metadata: Metadata, leaf: Leaf) -> pa.BooleanArray:
        """Test all pieces as one array; what passes is then counted between the offsets."""
        lists = metadata.field(self.index, self.field_name)
        if pa.types.is_null(lists.type):
            return unknown(len(lists))
        offsets = lists.offsets.to_numpy()
        pieces = lists.values.slice(offsets[0], offsets[-1] - offsets[0])
        is_whole = pc.less(pc.utf8_length(pieces), self.length)
        passing = pc.if_else(is_whole, _might_pass(pieces, leaf.test), _might_pass(pieces, self.cut(leaf.test)))
        places = np.flatnonzero(passing.fill_null(True).to_numpy(zero_copy_only=False))
        ends = np.searchsorted(places, offsets - offsets[0])
        return pc.if_else(lists.is_valid(), pa.array(ends[:-1] < ends[1:]), None)

    def ordinary_requires(self, leaf: Leaf) -> tuple[str, ...]:  # noqa: ARG002  (part of the contract)
        return (self.field_name,)


def _might_pass(pieces: pa.Array, test: Test | None) -> pa.Array | pa.Scalar:
    """Apply a test to pieces one by one; all might pass one that is not known or cannot be applied."""
    passing = None if test is None else passes(pieces, test)
    return pa.scalar(True) if passing is None else passing


@dataclass(frozen=True, slots=True)
class AffixFilter(Filter):
    """Labels predicates on the column with the clause for its pieces; the subclasses say why that loses no row."""

    clause_type: ClassVar[type[AffixClause]]

    index: AffixIndex

    def label_node(self, node: Expression) -> Clause | None:
        leaf = read_leaf(node)
        if leaf is None or not leaf.is_on(self.index.column):
            return None
        return self.clause_type(self.index, node, self.index.length)


@dataclass(frozen=True, slots=True)
class PrefixMetadata(AffixMetadata):
    """The distinct prefixes of some rows' texts, and the number of NULLs."""

    field_name = "prefixes"


@dataclass(frozen=True)
class PrefixIndex(AffixIndex):
    """The distinct prefixes of a text column in each object.

    Parameters
    ----------
    column
        The column.
    length
        The number of characters (code points) that are kept of each value; shorter values are kept whole.

    Examples
    --------
    >>> PrefixIndex("url", length=4).name
    'prefix(url, length=4)'
    """

    metadata_type = PrefixMetadata

    def collect_metadata(self, rows: pa.RecordBatch) -> PrefixMetadata:
        return PrefixMetadata.of(rows.column(0), 0, self.length)

    def filters(self) -> tuple[Filter, ...]:
        return (PrefixFilter(self),)


@dataclass(frozen=True, slots=True)
class PrefixClause(AffixClause):
    """Some listed prefix might be that of a value that satisfies the predicate."""

    field_name = "prefixes"

    def cut(self, test: Test) -> Test | None:
        return cut_prefix(test, self.length)


@dataclass(frozen=True, slots=True)
class PrefixFilter(AffixFilter):
    """Labels predicates on the column with ``PrefixClause``.

    The list has the first *b* characters of every value but NULL, and nothing else; it is unknown for an object with
    text that is not UTF-8, so that bytes and characters tell the same.  If a row with the value ``v`` satisfies a
    predicate, then ``x``, the listed prefix of ``v``, passes:

    * if ``x`` has fewer than *b* characters, ``v = x``: the predicate itself, whatever it is;
    * otherwise ``x = v[:b]``, and ``v`` may go on:

    ============================= ======================================================================================
    predicate                     ``x`` passes when
    ============================= ======================================================================================
    ``c = u``, ``<=>``, ``IN``    ``x = u[:b]`` (for some option ``u``): equal texts have equal prefixes
    ``c < u``, ``c <= u``         ``x < u`` (``x ≤ u``): a prefix is not greater than the whole
    ``c > u``, ``c >= u``         ``x ≥ u[:b]``: of texts in order, the prefixes are in order
    ``startswith(c, p)``          ``x`` starts with ``p[:b]``: so it does whether ``p`` is shorter or longer
    ``NOT startswith(c, p)``      ``x`` does not start with ``p``, if ``p`` has at most *b* characters: then ``x``
                                  starts with ``p`` exactly if ``v`` does.  Always, if ``p`` is longer
    ``c LIKE 'p…'``               ``x`` matches the pattern up to *b* characters or the first ``%``; never, if the
                                  pattern is for fewer than *b* characters
    ``c NOT LIKE '…%'``           ``x`` does not match: what follows ``x`` in ``v`` matches the last ``%`` as well, so
                                  that ``v`` would match if ``x`` did.  Always, for a pattern that ends otherwise
    ``NOT contains(c, t)``        ``x`` does not contain ``t``
    ``<>``, ``NOT IN``            always, as for ``endswith``, ``contains`` and ``NOT endswith``: ``x`` says nothing
    ============================= ======================================================================================

    Every prefix belongs to some value, so that ``IS NULL`` and ``IS NOT NULL`` are the counts'; ``NOT (c <=> u)`` also
    keeps an object with a NULL.
    """

    clause_type = PrefixClause


@dataclass(frozen=True, slots=True)
class SuffixMetadata(AffixMetadata):
    """The distinct suffixes of some rows' texts, and the number of NULLs."""

    field_name = "suffixes"


@dataclass(frozen=True)
class SuffixIndex(AffixIndex):
    """The distinct suffixes of a text column in each object.

    Parameters
    ----------
    column
        The column.
    length
        The number of characters (code points) that are kept of each value; shorter values are kept whole.

    Examples
    --------
    >>> SuffixIndex("file", length=4).name
    'suffix(file, length=4)'
    """

    metadata_type = SuffixMetadata

    def collect_metadata(self, rows: pa.RecordBatch) -> SuffixMetadata:
        return SuffixMetadata.of(rows.column(0), -self.length, None)

    def filters(self) -> tuple[Filter, ...]:
        return (SuffixFilter(self),)


@dataclass(frozen=True, slots=True)
class SuffixClause(AffixClause):
    """Some listed suffix might be that of a value that satisfies the predicate."""

    field_name = "suffixes"

    def cut(self, test: Test) -> Test | None:
        return cut_suffix(test, self.length)


@dataclass(frozen=True, slots=True)
class SuffixFilter(AffixFilter):
    """Labels predicates on the column with ``SuffixClause``.

    The list has the last *b* characters of every value but NULL, and nothing else; it is unknown for an object with
    text that is not UTF-8, so that bytes and characters tell the same.  If a row with the value ``v`` satisfies a
    predicate, then ``x``, the listed suffix of ``v``, passes:

    * if ``x`` has fewer than *b* characters, ``v = x``: the predicate itself, whatever it is;
    * otherwise ``x = v[-b:]``, and more may come before it in ``v``:

    ============================= ======================================================================================
    predicate                     ``x`` passes when
    ============================= ======================================================================================
    ``c = u``, ``<=>``, ``IN``    ``x = u[-b:]`` (for some option ``u``): equal texts have equal suffixes
    ``endswith(c, s)``            ``x`` ends with ``s[-b:]``: so it does whether ``s`` is shorter or longer
    ``NOT endswith(c, s)``        ``x`` does not end with ``s``, if ``s`` has at most *b* characters: then ``x`` ends
                                  with ``s`` exactly if ``v`` does.  Always, if ``s`` is longer
    ``c LIKE '…s'``               ``x`` matches the pattern from its end up to *b* characters or the last ``%``; never,
                                  if the pattern is for fewer than *b* characters
    ``c NOT LIKE '%…'``           ``x`` does not match: what precedes ``x`` in ``v`` matches the first ``%`` as well, so
                                  that ``v`` would match if ``x`` did.  Always, for a pattern that begins otherwise
    ``NOT contains(c, t)``        ``x`` does not contain ``t``
    ``<>``, ``NOT IN``, order     always, as for ``startswith``, ``contains`` and ``NOT startswith``: ``x`` says nothing
    ============================= ======================================================================================

    Every suffix belongs to some value, so that ``IS NULL`` and ``IS NOT NULL`` are the counts'; ``NOT (c <=> u)`` also
    keeps an object with a NULL.
    """

    clause_type = SuffixClause
