"""How a notebook shows the indicators of a query and of a workload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skipstone.showing.format import FORMATS
from skipstone.showing.notebook import card, count, facts, note, percent, share, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skipstone.reporting.indicators import Indicators, WorkloadIndicators

__all__ = ["indicators_html", "workload_html"]

_NAMES = ("selectivity σ", "layout factor λ", "metadata factor μ", "scanning factor ψ")
_LIMITS = {
    "layout": "The layout is the limit: wanted rows are spread over more objects than they would fill.",
    "metadata": "The metadata is the limit: objects are read that hold no wanted row.",
    None: "Neither a better layout nor better metadata would halve what is read.",
}


def indicators_html(found: Indicators) -> str:
    """Show the indicators of one query."""
    skipped = found.objects - found.kept_objects
    counts = facts(
        [
            ("objects read", f"{count(found.kept_objects)} of {count(found.objects)}"),
            ("objects with a wanted row", count(found.relevant_objects)),
            ("rows wanted", f"{count(found.relevant_rows)} of {count(found.rows)}"),
            ("rows read", f"{count(found.rows_in_kept_objects)} ({_share_of(found.rows_in_kept_objects, found.rows)})"),
        ]
    )
    if found.selectivity is None:
        said = note("No row is wanted, so that the four factors are undefined.")
    else:
        said = note(_LIMITS[found.limit])
    factors = facts(zip(_NAMES, _spelled(found.factors()), strict=True))
    return card("Indicators", share(skipped, found.objects), factors, counts, said, about="shares of rows")


def workload_html(found: WorkloadIndicators) -> str:
    """Show the indicators of a workload: a row per query, and the geometric means."""
    rows = [
        (
            f"query {number}",
            *_spelled(query.factors()),
            f"{count(query.kept_objects)} of {count(query.objects)}",
            query.limit or "\N{EN DASH}",
        )
        for number, query in enumerate(found, 1)
    ]
    means = ("geometric mean", *_spelled(found.factors()), "", found.limit or "\N{EN DASH}")
    headings = ["", *_NAMES, "objects read", "limit"]
    left = [note(f"{found.left_out:,} without a wanted row: left out of the means.")] if found.left_out else []
    made = table(headings, [means, *rows], numbers=range(1, 6))
    return card("Indicators", made, *left, about=f"{len(found):,} queries")


def _spelled(factors: Sequence[float | None]) -> list[str]:
    return ["undefined" if factor is None else FORMATS["factor"](factor) for factor in factors]


def _share_of(part: int, whole: int) -> str:
    return percent(part / whole if whole else None)
