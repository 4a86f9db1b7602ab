"""What the indicators of a query mean, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skipstone.reporting.indicators import Indicators

__all__ = ["verdict"]


def verdict(found: Indicators) -> str:
    """Return what limits skipping for a query.

    Examples
    --------
    >>> from skipstone.reporting.indicators import Indicators
    >>> verdict(Indicators(8, 2, 2, 800, 200, 200, 200))
    'Nothing worth improving: 200 rows are read for the 200 that the query wants, of 800 in all.'
    """
    if not found.relevant_rows:
        kept = f"{found.kept_objects:,} of {_objects(found.objects)} are read in vain" if found.kept_objects else ""
        return f"No row satisfies the condition, so that the factors are undefined; {kept or 'nothing is read'}."
    if found.limit == "layout":
        return (
            f"The layout is the limit: the {_rows(found.relevant_rows)} that the query wants lie in "
            f"{found.relevant_objects:,} of {_objects(found.objects)}, among {found.rows_in_relevant_objects:,} rows. "
            "No index can skip those; data written in the order of the condition's columns would lie in fewer."
        )
    if found.limit == "metadata":
        vain = found.kept_objects - found.relevant_objects
        return (
            f"The metadata is the limit: {vain:,} of the {_objects(found.kept_objects)} read hold no row that the "
            "query wants. An index on another column of the condition, or a finer one, could skip them."
        )
    return (
        f"Nothing worth improving: {_rows(found.rows_in_kept_objects)} are read for the {found.relevant_rows:,} that "
        f"the query wants, of {found.rows:,} in all."
    )


def _objects(count: int) -> str:
    return f"{count:,} object{'' if count == 1 else 's'}"


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"
