"""The Prefix index: the distinct prefixes of each object's texts (paper, table I)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skipstone.indexes.affix import AffixClause, AffixMetadata, check_length, cut_prefix
from skipstone.indexing.index import Index
from skipstone.querying.filter import Filter
from skipstone.toolkit.leaf import read_leaf

if TYPE_CHECKING:
    import pyarrow as pa

    from skipstone.expressions.tree import Expression
    from skipstone.querying.clause import Clause
    from skipstone.toolkit.leaf import Test

__all__ = ["PrefixClause", "PrefixFilter", "PrefixIndex", "PrefixMetadata"]


@dataclass(frozen=True, slots=True)
class PrefixMetadata(AffixMetadata):
    """The distinct prefixes of some rows' texts, and the number of NULLs."""

    field_name = "prefixes"


@dataclass(frozen=True)
class PrefixIndex(Index):
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
class PrefixFilter(Filter):
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

    index: PrefixIndex

    def label_node(self, node: Expression) -> Clause | None:
        leaf = read_leaf(node)
        if leaf is None or not leaf.is_on(self.index.column):
            return None
        return PrefixClause(self.index, node, self.index.length)
