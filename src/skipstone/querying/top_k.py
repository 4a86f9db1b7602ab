"""Top-k: where the rows of objects stand in the order of a query, and how many rows surely stand before which place.

``ORDER BY c LIMIT k`` needs no object whose best row comes strictly after a place *T* that at least *k* rows do not
exceed.  Which objects may be counted for *T* only the engine knows, which lists them and compares their states.  So the
planner says of each object where its rows stand, in *ranks*, which no longer have a type; the bridge finds *T* and
drops objects (``TopK.scala``).  The proof is in docs/adr/0015-top-k.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skipstone.expressions.from_spark import read_expression
from skipstone.expressions.tree import And, Column, Expression, IsNotNull
from skipstone.expressions.types import FLOATING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from skipstone.indexing.bounds import Bounds
    from skipstone.indexing.index import Index
    from skipstone.querying.clause import Metadata

    Ranks = npt.NDArray[np.int32]

__all__ = ["FIELDS", "Ordered", "Top", "standings"]

FIELDS = ("best", "worst", "ordinary", "nulls", "nans")
"""What is said of an object, each in 32 bits; see ``standings``."""

_ANYWHERE = -1
"""The rank of what may stand before everything."""
_NOWHERE = np.iinfo(np.int32).max
"""The rank of what does not exist: after everything."""


@dataclass(frozen=True)
class Top:
    """The first ``rows`` rows of a scan, in an order or in any.

    Parameters
    ----------
    rows
        How many: LIMIT and OFFSET together.
    whole
        What a row must satisfy to be among them, where that is not true of all rows anyway.
    key
        The column that decides first; ``None`` when the order is open, or when it is no column of the files.
    descending, nulls_first
        The order of its values.
    """

    rows: int
    whole: Expression | None = None
    key: Column | None = None
    descending: bool = False
    nulls_first: bool = True

    @property
    def not_null(self) -> bool:
        """Whether no row with a NULL key is asked for; Spark puts that beside every comparison of the key."""
        terms = self.whole.terms if isinstance(self.whole, And) else (self.whole,)
        return self.key is not None and any(isinstance(t, IsNotNull) and t.value == self.key for t in terms)

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Self:
        """Read what the bridge says of it."""
        whole = None if said["whole"] is None else read_expression(said["whole"])
        key = None if said["key"] is None else read_expression(said["key"])
        if key is not None and not isinstance(key, Column):
            msg = f"{key} is no column"
            raise ValueError(msg)
        return cls(said["rows"], whole, key, said["descending"], said["nulls_first"])

    def __str__(self) -> str:
        if self.key is None:
            return f"any {self.rows:,} rows that match"
        nulls = "first" if self.nulls_first else "last"
        return f"the first {self.rows:,} rows by {self.key}{' DESC' if self.descending else ''} NULLS {nulls.upper()}"


@dataclass(frozen=True)
class Ordered:
    """The metadata of one snapshot that says where rows stand; ``whole`` has the objects whose rows all match."""

    metadata: Metadata
    index: Index
    bounds: Bounds
    whole: npt.NDArray[np.bool_]


def standings(top: Top, parts: Sequence[Ordered | None]) -> tuple[list[Ranks | None], dict[str, int]]:
    """Return where the rows of the objects of several snapshots stand, in ranks that compare across them.

    Returns
    -------
    tuple
        For each snapshot an array with a row per object and the columns `FIELDS`, or ``None``; and the ranks of NULL
        and NaN.  ``best``: no row that is asked for stands before this rank, -1 when nothing is known.  The others are
        of objects that match wholly, and 0 for all others: at least ``ordinary`` rows stand at ``worst`` or before,
        ``nulls`` at the rank of NULL and ``nans`` at that of NaN or before.  Counts stop at ``top.rows``.

    Notes
    -----
    Ordinary values have ranks by value, equal ones an equal rank (-0.0 is 0.0).  NaN is greater than all of them, and
    NULL comes first or last as the query says.  Bounds may be wider than the values are, since text is cut: a wider
    bound makes ``best`` better and ``worst`` worse, and both stay true.
    """
    known = [part for part in parts if part is not None]
    bounds = [(_bound(part, part.bounds.lower), _bound(part, part.bounds.upper)) for part in known]
    ranks, size = _ranks([side for pair in bounds for side in pair], descending=top.descending)
    places = {"nans": 1 if top.descending else size + 2, "nulls": 0 if top.nulls_first else size + 3}
    pairs = zip(known, ranks[::2], ranks[1::2], strict=True)
    found = iter([_stand(top, part, lower, upper, places) for part, lower, upper in pairs])
    return [None if part is None else next(found) for part in parts], places


def _bound(part: Ordered, name: str) -> pa.Array:
    """Read bounds; what cannot be compared is unknown."""
    array = part.metadata.field(part.index, name)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), None, pc.add(array, pa.scalar(0.0, array.type)))
    return array


def _ranks(arrays: list[pa.Array], *, descending: bool) -> tuple[list[Ranks], int]:
    """Rank values of one type, from 2, equal ones equally; -1 for null.  Give how many ranks there are."""
    if not arrays:
        return [], 0
    together = pa.concat_arrays(arrays)
    known = together.is_valid().to_numpy(zero_copy_only=False)
    ranks = np.full(len(together), _ANYWHERE, np.int32)
    size = 0
    if known.any():
        order = "descending" if descending else "ascending"
        dense = pc.rank(together.drop_null(), order, tiebreaker="dense").to_numpy(zero_copy_only=False)
        ranks[known] = dense + 1
        size = int(dense.max())
    return np.split(ranks, np.cumsum([len(array) for array in arrays])[:-1]), size


def _stand(top: Top, part: Ordered, lower: Ranks, upper: Ranks, places: Mapping[str, int]) -> Ranks:
    """Return where the rows of the objects of one snapshot stand."""
    rows, rows_known = _counts(part.metadata.row_count)
    nulls, nulls_known = _counts(part.metadata.field(part.index, part.bounds.nulls))
    floating = top.key is not None and top.key.type in FLOATING
    if floating:
        nans, nans_known = _counts(part.metadata.field(part.index, part.bounds.nans))
    else:
        nans, nans_known = np.zeros_like(rows), np.ones_like(rows_known)
    sound = rows_known & nulls_known & (nulls >= 0) & (nans >= 0) & (nulls + nans <= rows)
    nans_known &= sound
    first, last = (upper, lower) if top.descending else (lower, upper)

    # What an object may hold, and where the best of that stands.
    no_values = sound & (nulls == rows)
    has_null = ~(sound & (nulls == 0)) if not top.not_null else np.zeros_like(sound)
    has_nan = ~(no_values | (nans_known & (nans == 0))) if floating else np.zeros_like(sound)
    has_ordinary = ~(no_values | (nans_known & (nulls + nans == rows)))
    best = np.full(len(rows), _NOWHERE, np.int32)
    best[has_ordinary] = first[has_ordinary]
    best[has_nan] = np.minimum(best[has_nan], places["nans"])
    best[has_null] = np.minimum(best[has_null], places["nulls"])

    # What it surely holds: only of objects that match wholly.
    counted = part.whole & sound
    worst = last.copy()
    ordinary = np.where(nans_known, rows - nulls - nans, 0)
    if floating and top.descending:  # NaN comes first, so that every value stands at the lower bound or before
        ordinary = np.where(nans_known, ordinary, rows - nulls)
    ordinary = np.where(worst >= 0, ordinary, 0)
    surely_nan = np.where(nans_known, nans, 0)
    if floating and not top.descending:  # NaN comes last, so that every value stands at NaN or before
        surely_nan = np.where(nans_known, nans, rows - nulls)
    counts = [np.where(counted, np.clip(count, 0, top.rows), 0) for count in (ordinary, nulls, surely_nan)]
    return np.column_stack([best, worst, *counts]).astype(np.int32)


def _counts(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return counts, and which of them are known."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    known = array.is_valid().to_numpy(zero_copy_only=False)
    filled = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return filled, known
