"""Parts of dates and times that come again: month, day of the month, hour.

``month(d) = 3`` alone leaves a stretch of every year, from which no object with a year of rows can be told.  Together
with bounds on the column (``year(d) = 2026``, ``d >= …``) few stretches are left: those are what these functions give,
as long as they are few.  Within a cycle (a year, a month, a day) a part goes forward with time, so each cycle has one
stretch. Hours and less are of local time; each stretch of local time becomes the instants that may show it (``times``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skipstone.functions.inverses.calendar import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    first_of_month,
    first_of_year,
    iso_year_start,
    months,
    multiples,
    weeks_from,
    year_of,
)
from skipstone.functions.inverses.inverse import Inverse, first_argument, intersection
from skipstone.functions.inverses.times import CATALYST, instants_of, local_of, zone_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skipstone.functions.inverses.calendar import Periods
    from skipstone.functions.inverses.inverse import Interval

__all__ = ["MOST_CYCLES", "PARTS"]

MOST_CYCLES = 32
"""Of more cycles than this nothing is said: so many ranges cost more than they leave out."""

_SUNDAY = 3  # 1970-01-04
_YEARS, _MONTHS = months(12), months(1)
_ADD = "say which years: add AND year({column}) = …, or a range of {column}"
_ADD_MONTHS = "say which months: add a range of {column}"
_ADD_DAYS = "say which days: add a range of {column}"


def _iso_year(day: int) -> int:
    """Return the year that the week of a day counts in."""
    year = year_of(day)
    return year + 1 if day >= iso_year_start(year + 1) else year if day >= iso_year_start(year) else year - 1


def _stretches(
    cycles: Periods, first: int, place: Callable[[int, int], int], wanted: Interval, within: Interval
) -> list[Interval] | None:
    """Return where a part is wanted, cycle by cycle.

    Parameters
    ----------
    cycles
        The cycles in which the part goes forward.
    first
        The part's least value: what is below it is the whole cycle's.
    place
        Returns the first place in a cycle, by its number, at which the part is some value or greater.
    wanted, within
        See ``Inverse``.
    """
    low, high = within
    if low is None or high is None:
        return None
    number, start = cycles
    last = number(high - 1)
    if last - number(low) >= MOST_CYCLES:
        return None
    found = []
    for cycle in range(number(low), last + 1):
        begin, end = start(cycle), start(cycle + 1)
        at = begin if wanted[0] is None or wanted[0] <= first else place(cycle, wanted[0])
        to = end if wanted[1] is None else begin if wanted[1] <= first else place(cycle, wanted[1])
        stretch = intersection((max(at, begin), min(to, end)), within) if at < to else None
        if stretch is not None:
            found.append(stretch)
    return found


def _of_days(cycles: Periods, first: int, place: Callable[[int, int], int], hint: str) -> Inverse:
    """State a part of a date."""
    return Inverse(
        first_argument,
        lambda _, wanted, within: _stretches(cycles, first, place, wanted, within),
        repeats=True,
        hint=hint,
    )


def _of_clock(cycle: int, unit: int) -> Inverse:
    """State a part of local time: how many units have passed of a cycle."""
    cycles = multiples(cycle)

    def place(number: int, value: int) -> int:
        return number * cycle + value * unit

    def preimage(call: Any, wanted: Interval, within: Interval) -> Sequence[Interval] | None:
        rules = zone_of(call)
        found = _stretches(cycles, 0, place, wanted, local_of(rules, within))
        return None if found is None else [instants_of(rules, stretch) for stretch in found]

    return Inverse(first_argument, preimage, repeats=True, hint=_ADD_DAYS)


PARTS: Mapping[str, Inverse] = {
    CATALYST + "Month": _of_days(_YEARS, 1, lambda year, month: first_of_month(year * 12 + month - 1), _ADD),
    CATALYST + "Quarter": _of_days(_YEARS, 1, lambda year, n: first_of_month(year * 12 + 3 * (n - 1)), _ADD),
    CATALYST + "DayOfYear": _of_days(_YEARS, 1, lambda year, day: first_of_year(year) + day - 1, _ADD),
    CATALYST + "WeekOfYear": _of_days(
        (_iso_year, iso_year_start), 1, lambda year, n: iso_year_start(year) + 7 * (n - 1), _ADD
    ),
    CATALYST + "DayOfMonth": _of_days(_MONTHS, 1, lambda month, day: first_of_month(month) + day - 1, _ADD_MONTHS),
    CATALYST + "DayOfWeek": _of_days(weeks_from(_SUNDAY), 1, lambda n, day: n * 7 + _SUNDAY + day - 1, _ADD_DAYS),
    CATALYST + "WeekDay": _of_days(weeks_from(), 0, lambda n, day: weeks_from()[1](n) + day, _ADD_DAYS),
    CATALYST + "Hour": _of_clock(DAY, HOUR),
    CATALYST + "Minute": _of_clock(HOUR, MINUTE),
    CATALYST + "Second": _of_clock(MINUTE, SECOND),
}
"""The parts that come again, by what they are known by (``inverse.key_of``)."""
