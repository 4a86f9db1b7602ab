"""Facts of one object that metadata may be made of, without a look at its rows.

An index declares them (``Index.facts``); how they are found is the engine's matter: by aggregates that Spark computes,
or by what a file's own statistics prove.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from skipstone.expressions.names import parse_column, quote_parts
from skipstone.expressions.types import FLOATING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Fact", "aggregates_of_facts"]

_SECONDS = "CAST(CAST(CAST({} AS INTERVAL SECOND) AS DECIMAL(20, 6)) * 1000000 AS BIGINT)"
# The SQL of a bound's physical value, by type; of other types values are physical already.
_PHYSICAL = {
    "string": "CAST({} AS BINARY)",
    "date": "unix_date({})",
    "timestamp": "unix_micros({})",
    "timestamp_ntz": _SECONDS.format("{} - TIMESTAMP_NTZ'1970-01-01 00:00:00'"),
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of the rows of an object.

    Parameters
    ----------
    kind
        ``"min"`` or ``"max"``: the least or the greatest value of a column that is neither NULL nor NaN, as a physical
        value (text as its bytes, a date as days, and so on), ``None`` when there is none.  Of text and bytes it may be
        less, or greater, than every value, where the writer of a file has cut its statistics.  ``"nulls"`` or
        ``"nans"``: how many values of a column are NULL or NaN.  ``"rows"``: how many rows there are.
    column
        The column, one of the index's; none for the number of rows.
    """

    kind: Literal["min", "max", "nulls", "nans", "rows"]
    column: str = ""


def aggregates_of_facts(facts: Mapping[str, Fact], types: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return the Spark SQL aggregates that compute facts, by their names, or ``None`` when one of them has none.

    Parameters
    ----------
    facts
        The facts by name.
    types
        The Spark types of the columns, as catalog strings.

    Examples
    --------
    >>> aggregates_of_facts({"upper": Fact("max", "d"), "rows": Fact("rows")}, {"d": "date"})
    {'upper': 'unix_date(max(`d`))', 'rows': 'count(*)'}
    """
    found: dict[str, str] = {}
    for name, fact in facts.items():
        aggregate = "count(*)" if fact.kind == "rows" else _aggregate(fact, types[fact.column])
        if aggregate is None:
            return None
        found[name] = aggregate
    return found


def _aggregate(fact: Fact, type_: str) -> str | None:
    """Return the aggregate of a column that computes a fact."""
    column = quote_parts(parse_column(fact.column))
    match fact.kind:
        case "nulls":
            return f"count_if({column} IS NULL)"
        case "nans":
            return f"count_if(isnan({column}))"
    value = f"CASE WHEN NOT isnan({column}) THEN {column} END" if type_ in FLOATING else column
    physical = _physical(type_)
    return None if physical is None else physical.format(f"{fact.kind}({value})")


def _physical(type_: str) -> str | None:
    """Return the SQL of a bound's physical value, or ``None`` when there is no exact one in all releases of Spark."""
    if type_.startswith("time("):
        return None
    if type_.startswith(("interval year", "interval month")):
        return "CAST(CAST({} AS INTERVAL MONTH) AS INT)"
    return _SECONDS if type_.startswith("interval") else _PHYSICAL.get(type_, "{}")
