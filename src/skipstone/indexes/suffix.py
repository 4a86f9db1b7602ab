"""The Suffix index: the distinct suffixes of each object's texts (paper, table I)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skipstone.indexes.affix import AffixClause, AffixMetadata, check_length, cut_suffix
from skipstone.indexing.index import Index
from skipstone.querying.filter import Filter
from skipstone.toolkit.leaf import read_leaf

if TYPE_CHECKING:
    import pyarrow as pa

    from skipstone.expressions.tree import Expression
    from skipstone.querying.clause import Clause
    from skipstone.toolkit.leaf import Test

__all__ = ["SuffixClause", "SuffixFilter", "SuffixIndex", "SuffixMetadata"]


@dataclass(frozen=True, slots=True)
class SuffixMetadata(AffixMetadata):
    """The distinct suffixes of some rows' texts, and the number of NULLs."""

    field_name = "suffixes"


@dataclass(frozen=True)
class SuffixIndex(Index):
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

    column: str
    length: int = field(kw_only=True)

    def __post_init__(self) -> None:
        check_length(self.length)
        super().__post_init__()

    @property
    def functions(self) -> tuple[str, ...]:
        return ()

    def supports(self, types: tuple[str, ...]) -> bool:
        return types == ("string",)

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
class SuffixFilter(Filter):
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

    index: SuffixIndex

    def label_node(self, node: Expression) -> Clause | None:
        leaf = read_leaf(node)
        if leaf is None or not leaf.is_on(self.index.column):
            return None
        return SuffixClause(self.index, node, self.index.length)
