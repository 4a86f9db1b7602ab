"""The proleptic Gregorian calendar of Java's ``LocalDate``, for any year; days count from 1970-01-01."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = [
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "Periods",
    "first_of_month",
    "first_of_year",
    "iso_year_start",
    "month_index",
    "months",
    "multiples",
    "next_start",
    "weeks_from",
    "year_of",
]

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_MONDAY = 4  # 1970-01-05

Periods: TypeAlias = tuple[Callable[[int], int], Callable[[int], int]]
"""A division of time into periods: the number of the period that holds a value, and the first value of a period."""


def first_of_month(index: int) -> int:
    """Return the first day of a month, which is counted from January of the year 0.

    Examples
    --------
    >>> first_of_month(1970 * 12), first_of_month(2026 * 12 + 2)
    (0, 20513)
    """
    year, month = divmod(index, 12)
    years = year - (month < 2)  # a year that begins in March has its leap day last
    era, of_era = divmod(years, 400)
    of_year = (153 * ((month + 10) % 12) + 2) // 5
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def month_index(day: int) -> int:
    """Return the month that a day is in, counted from January of the year 0.

    Examples
    --------
    >>> divmod(month_index(20512), 12), divmod(month_index(-1), 12)
    ((2026, 1), (1969, 11))
    """
    guess = (day + 719_528) * 4_800 // 146_097  # of months of equal length: at most one away
    while first_of_month(guess) > day:
        guess -= 1
    while first_of_month(guess + 1) <= day:
        guess += 1
    return guess


def first_of_year(year: int) -> int:
    """Return January the first."""
    return first_of_month(year * 12)


def year_of(day: int) -> int:
    """Return the year of a day."""
    return month_index(day) // 12


def iso_year_start(year: int) -> int:
    """Return the Monday of the week of January the fourth: the first day of an ISO year."""
    fourth = first_of_year(year) + 3
    return fourth - (fourth - _MONDAY) % 7


def months(count: int) -> Periods:
    """Return periods of so many months, in days: 1, 3 or 12."""
    return lambda day: month_index(day) // count, lambda number: first_of_month(number * count)


def weeks_from(monday: int = _MONDAY) -> Periods:
    """Return weeks in days; by default they begin on Mondays."""
    return lambda day: (day - monday) // 7, lambda number: number * 7 + monday


def multiples(unit: int) -> Periods:
    """Return periods of one length, from zero on."""
    return lambda value: value // unit, lambda number: number * unit


def next_start(periods: Periods, value: int) -> int:
    """Return the first beginning of a period that is not before a value."""
    number, start = periods
    here = start(number(value))
    return here if here == value else start(number(value) + 1)
