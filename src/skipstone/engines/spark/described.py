"""The DataFrame that ``Dataset.describe`` gives: one like any other, which notebooks show as a table of indexes.

Its class is made from that of the DataFrame, which is another one in classic sessions and in those of Spark Connect.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from skipstone.showing.notebook import card, count, note, size, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

__all__ = ["described", "indexes_html"]

_ROWS = "_skipstone_rows"


def described(df: DataFrame, rows: Sequence[Mapping[str, Any]] | None = None) -> DataFrame:
    """Let a DataFrame of indexes be shown as such.

    Parameters
    ----------
    df
        What ``describe`` gives.
    rows
        Its rows where they are known, so that nothing is run to show them; else they are collected when it is shown.
    """
    vars(df)[_ROWS] = rows
    kind: Any = type(df)
    df.__class__ = _shown(kind)
    return df


@cache
def _shown(base: Any) -> Any:
    """Make a class of DataFrames whose rows are indexes."""
    return type("DataFrame", (base,), {"__str__": _lines, "_repr_html_": _html, "__module__": base.__module__})


def _lines(df: DataFrame) -> str:
    """Return the indexes as text, a line each."""
    return "\n".join(map(_line, _rows(df))) or "no index"


def _html(df: DataFrame) -> str:
    """Show the indexes."""
    return indexes_html(_rows(df))


def _rows(df: DataFrame) -> Sequence[Mapping[str, Any]]:
    known: Sequence[Mapping[str, Any]] | None = vars(df)[_ROWS]
    return [row.asDict() for row in df.collect()] if known is None else known


def _line(row: Mapping[str, Any]) -> str:
    """Return one index as a line."""
    lacks = "".join(f", {row[what]:,} {what}" for what in ("stale", "missing") if row[what])
    refused = f"; not used: {row['not_used']}" if row["not_used"] else ""
    covered = "" if row["covered"] is None else f": {row['covered']:,} objects covered{lacks}; {size(row['bytes'])}"
    return f"{row['name']}{covered}{refused}"


def indexes_html(rows: Sequence[Mapping[str, Any]]) -> str:
    """Show indexes: what each is of, what it covers, how large it is, and what is wrong with it."""
    if not rows:
        return card("Indexes", note("The dataset has no index: every query reads every object."))
    headings = ["index", "on", "covered", "stale", "missing", "size", "refreshed"]
    cells = [
        (
            row["name"],
            ", ".join(row["columns"]),
            *(count(row[what]) for what in ("covered", "stale", "missing")),
            size(row["bytes"]),
            _moment(row["refreshed"]),
        )
        for row in rows
    ]
    refused = [note(f"{row['name']} is not used: {row['not_used']}", warning=True) for row in rows if row["not_used"]]
    lacking = any(row["stale"] or row["missing"] for row in rows)
    advice = [note("Stale and missing objects are read by every query; refresh() indexes them.")] if lacking else []
    known = [row["bytes"] for row in rows if row["bytes"] is not None]
    said = f"{len(rows):,}, {size(sum(known))} in all" if known else f"{len(rows):,}"
    return card("Indexes", table(headings, cells, numbers=range(2, 6)), *refused, *advice, about=said)


def _moment(written: str | None) -> str:
    """Shorten a point in time to its minutes."""
    return (written or "")[:16].replace("T", " ")
