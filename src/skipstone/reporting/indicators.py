"""The indicators of skipping effectiveness (paper, section IV-A): selectivity, layout, metadata and scanning factor.

Of a query, D are the rows of the dataset and O its objects; D_r the rows that satisfy the predicate and O_r the objects
that hold one; O_m the objects that the metadata keeps.  All four factors are shares of rows:

    selectivity σ = |D_r| / |D|              layout factor λ   = |D_r| / rows in O_r
    scanning    ψ = rows in O_m / |D|        metadata factor μ = rows in O_r / rows in O_m

so that ψ = σ / (λ μ).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, overload

from skipstone.errors import SkipstoneError
from skipstone.reporting.indicators_html import indicators_html, workload_html

__all__ = ["FACTORS", "Indicators", "WorkloadIndicators"]

FACTORS = ("selectivity", "layout_factor", "metadata_factor", "scanning_factor")

_ROUNDING = 1e-9
_WORTH = 2.0
"""What a better layout and better metadata must save together, as a ratio of rows scanned, to be worth a word."""


Limit = Literal["layout", "metadata"]
_Four = tuple[float | None, float | None, float | None, float | None]


class _Factors(ABC):
    """The four factors of a query or of a workload, and what follows from them."""

    __slots__ = ()

    @abstractmethod
    def factors(self) -> _Four:
        """Return σ, λ, μ and ψ."""

    @property
    def selectivity(self) -> float | None:
        """The share of relevant rows, σ."""
        return self.factors()[0]

    @property
    def layout_factor(self) -> float | None:
        """The share of relevant rows in the objects that hold one, λ."""
        return self.factors()[1]

    @property
    def metadata_factor(self) -> float | None:
        """The share of the rows kept that lie in objects with a relevant row, μ."""
        return self.factors()[2]

    @property
    def scanning_factor(self) -> float | None:
        """The share of rows in the objects kept, ψ."""
        return self.factors()[3]

    @property
    @abstractmethod
    def limit(self) -> Limit | None:
        """What there is more to gain from: a better layout, or better metadata; ``None``: from neither."""

    def check(self) -> None:
        """Check ψ = σ / (λ μ) to rounding.

        Raises
        ------
        SkipstoneError
            When it does not hold: the counts were not taken from one state of the dataset.
        """
        sigma, lam, mu, psi = self.factors()
        if sigma is None or lam is None or mu is None or psi is None:
            return
        if not math.isclose(psi, sigma / (lam * mu), rel_tol=_ROUNDING):
            msg = f"the indicators contradict each other: ψ = {psi!r}, but σ / (λ μ) = {sigma / (lam * mu)!r}"
            raise SkipstoneError(msg)

    def _shown(self) -> str:
        """Spell the factors."""
        named = zip(("selectivity", "layout", "metadata", "scanning"), self.factors(), strict=True)
        return ", ".join(f"{name}={'undefined' if value is None else f'{value:.3g}'}" for name, value in named)


@dataclass(frozen=True, slots=True)
class Indicators(_Factors):
    """What skipping achieves for one query.

    A query that scans the dataset several times, such as a self-join, has the sums over its scans.  Where no row is
    relevant the four factors are undefined (``None``), and the counts still tell what was kept in vain.

    Parameters
    ----------
    objects, relevant_objects, kept_objects
        |O|, |O_r|, |O_m|.
    rows, relevant_rows
        |D|, |D_r|.
    rows_in_relevant_objects, rows_in_kept_objects
        The sums of the rows of the objects in O_r and in O_m.

    Examples
    --------
    >>> found = Indicators(4, 1, 2, 400, 10, 100, 200)
    >>> found.selectivity, found.layout_factor, found.metadata_factor, found.scanning_factor
    (0.025, 0.1, 0.5, 0.5)
    >>> found.limit
    'metadata'
    """

    objects: int
    relevant_objects: int
    kept_objects: int
    rows: int
    relevant_rows: int
    rows_in_relevant_objects: int
    rows_in_kept_objects: int

    def __post_init__(self) -> None:
        ordered = (
            0 <= self.relevant_objects <= self.kept_objects <= self.objects
            and 0 <= self.relevant_rows <= self.rows_in_relevant_objects <= self.rows_in_kept_objects <= self.rows
            and (self.relevant_rows == 0) == (self.relevant_objects == 0)
        )
        if not ordered:
            msg = f"these counts cannot be those of a query: {asdict(self)}"
            raise SkipstoneError(msg)
        self.check()

    def factors(self) -> _Four:
        """Return σ, λ, μ and ψ; all ``None`` when no row is relevant."""
        if not self.relevant_rows:
            return None, None, None, None
        return (
            self.relevant_rows / self.rows,
            self.relevant_rows / self.rows_in_relevant_objects,
            self.rows_in_relevant_objects / self.rows_in_kept_objects,
            self.rows_in_kept_objects / self.rows,
        )

    @property
    def fewest_objects(self) -> int:
        """How many objects of the dataset's mean size the relevant rows would fill: no layout can do with fewer."""
        return -(-self.relevant_rows * self.objects // self.rows) if self.rows else 0

    @property
    def costs(self) -> tuple[float, float]:
        """How many times as many rows are scanned because of the layout, and because of the metadata.

        The layout's cost is the rows in relevant objects over those of the fewest objects that could hold the relevant
        rows, the metadata's is 1/μ.  One row in one object costs the layout nothing, however low λ is.
        """
        if not self.relevant_rows:
            return 1.0, 1.0
        fewest = self.fewest_objects * self.rows / self.objects
        layout = max(1.0, self.rows_in_relevant_objects / fewest)
        return layout, self.rows_in_kept_objects / self.rows_in_relevant_objects

    @property
    def limit(self) -> Limit | None:
        """What there is more to gain from: a better layout, or better metadata; ``None``: not even half from both.

        When both would gain the same it is the metadata, which is cheaper to change than the layout.
        """
        return _greater(*self.costs)

    def as_dict(self) -> dict[str, Any]:
        """Return the counts, the factors and the limit, ready for JSON."""
        return {**asdict(self), **dict(zip(FACTORS, self.factors(), strict=True)), "limit": self.limit}

    def __str__(self) -> str:
        return f"Indicators({self._shown()})"

    def _repr_html_(self) -> str:
        return indicators_html(self)


class WorkloadIndicators(_Factors, Sequence[Indicators]):
    """The indicators of several queries, and their geometric means as the same four properties.

    Queries without a relevant row, whose factors are undefined, are left out of the means; ``left_out`` counts them.

    Examples
    --------
    >>> both = WorkloadIndicators([Indicators(4, 1, 1, 400, 100, 100, 100), Indicators(4, 1, 4, 400, 100, 100, 400)])
    >>> both.selectivity, both.metadata_factor, both.scanning_factor
    (0.25, 0.5, 0.5)
    """

    __slots__ = ("_queries",)

    def __init__(self, queries: Sequence[Indicators]) -> None:
        self._queries = tuple(queries)
        self.check()

    @overload
    def __getitem__(self, position: int) -> Indicators: ...
    @overload
    def __getitem__(self, position: slice) -> tuple[Indicators, ...]: ...
    def __getitem__(self, position: int | slice) -> Indicators | tuple[Indicators, ...]:
        return self._queries[position]

    def __len__(self) -> int:
        return len(self._queries)

    @property
    def left_out(self) -> int:
        """How many queries have no relevant row."""
        return sum(query.selectivity is None for query in self._queries)

    def factors(self) -> _Four:
        """Return the geometric means of σ, λ, μ and ψ over the queries that have them."""
        defined = [four for query in self._queries if None not in (four := query.factors())]
        if not defined:
            return None, None, None, None
        sigma, lam, mu, psi = (
            _geometric_mean([v for v in column if v is not None]) for column in zip(*defined, strict=True)
        )
        return sigma, lam, mu, psi

    @property
    def limit(self) -> Limit | None:
        """What there is more to gain from, over the queries that have a limit; ``None`` when none has."""
        limited = [query.costs for query in self._queries if query.limit is not None]
        return _greater(*map(_geometric_mean, zip(*limited, strict=True))) if limited else None

    def as_dict(self) -> dict[str, Any]:
        """Return every query's indicators, the means and the limit, ready for JSON."""
        return {
            "queries": [query.as_dict() for query in self._queries],
            "left_out": self.left_out,
            "geometric_means": dict(zip(FACTORS, self.factors(), strict=True)),
            "limit": self.limit,
        }

    def __repr__(self) -> str:
        return f"WorkloadIndicators({len(self)} queries, {self.left_out} left out, geometric means: {self._shown()})"

    def _repr_html_(self) -> str:
        return workload_html(self)


def _greater(layout: float, metadata: float) -> Limit | None:
    """Name the greater of two costs, if they matter together."""
    if layout * metadata < _WORTH * (1 - _ROUNDING):
        return None
    return "layout" if layout > metadata * (1 + _ROUNDING) else "metadata"


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))
