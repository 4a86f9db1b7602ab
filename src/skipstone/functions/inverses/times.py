"""Functions of dates and timestamps that go forward with time: dates, years, truncated times, seconds since 1970.

Every function here is made of three steps, and a bound on the result is taken back through them one by one:

* *instant to local time*, ``x + offset(x)``: ``ZoneRules.earliest`` and ``latest`` bound the instants, folds and gaps
  included.  A TIMESTAMP_NTZ is a local time already.
* *a step on local time* that never decreases: the start of a period, the number of a period.  If ``start(t) >= b`` then
  ``t`` is not before the first start of a period that is ``>= b``, since an earlier ``t`` has an earlier start, which
  is ``< b``; if ``start(t) < b`` it is before that start.  Both are exact, for every year.
* *local time to instant*: Java gives ``t - o``, where ``o`` is an offset that holds shortly before or after that
  instant (in a gap the one before it; at the start of a day in a gap a value between the two).  So from ``t - o >= b``
  follows ``t >= b + least offset near b``, and from ``t - o < b`` follows ``t < b + greatest offset near b``: an ``o``
  that holds nowhere within three days of ``b`` belongs to a ``t`` that is further from ``b`` than offsets can be.

Calendars: Spark's functions use ``java.time``, which is proleptic Gregorian and has no limit that a timestamp reaches.
What overflows raises an error, which no row survives, except where said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skipstone.expressions.tree import Cast, Expression, Literal
from skipstone.functions.inverses.calendar import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    first_of_year,
    iso_year_start,
    months,
    multiples,
    next_start,
    weeks_from,
)
from skipstone.functions.inverses.inverse import Inverse, first_argument, monotone
from skipstone.functions.inverses.zones import UTC, WIDEST, rules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skipstone.functions.inverses.calendar import Periods
    from skipstone.functions.inverses.inverse import Interval
    from skipstone.functions.inverses.zones import ZoneRules

__all__ = ["CATALYST", "TIMES", "instants_of", "local_of", "whole_units", "zone_of"]

CATALYST = "org.apache.spark.sql.catalyst.expressions."
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_LEAST_TIMESTAMP = -(1 << 63)
_LEAST_DATE = -(1 << 31)
_TWO_YEARS = 732  # days


def zone_of(vertex: Any) -> ZoneRules:
    """Return the rules that a call or cast turns instants into local times by; NTZ timestamps are local times."""
    argument = next((a for a in vertex.children if not isinstance(a, Literal)), None)
    if getattr(argument, "type", "") == "timestamp_ntz":
        return UTC
    return rules_of(vertex.zone if isinstance(vertex, Cast) else vertex.identity)


def instants_of(rules: ZoneRules, local: Interval) -> Interval:
    """Return the instants whose local times may lie in an interval."""
    low, high = local
    return (None if low is None else rules.earliest(low), None if high is None else rules.latest(high))


def local_of(rules: ZoneRules, instants: Interval) -> Interval:
    """Return the local times that an interval of instants may show."""
    low, high = instants
    return (
        None if low is None else low + rules.offsets_near(low)[0],
        None if high is None else high + rules.offsets_near(high)[1],
    )


def _unresolved(rules: ZoneRules, instants: Interval) -> Interval:
    """Return the local times that Java may have turned into an interval of instants."""
    return local_of(rules, instants)  # the same bounds, for the reason in the module's text


def whole_units(interval: Interval, unit: int) -> Interval:
    """Return the whole numbers ``n`` for which ``n * unit`` lies in an interval."""
    low, high = interval
    return (None if low is None else -(-low // unit), None if high is None else -(-high // unit))


def _times(interval: Interval, unit: int) -> Interval:
    low, high = interval
    return (None if low is None else low * unit, None if high is None else high * unit)


def _to_starts(interval: Interval, periods: Periods) -> Interval:
    """Return where a value lies if the start of its period lies in an interval."""
    low, high = interval
    return (
        None if low is None else next_start(periods, low),
        None if high is None else next_start(periods, high),
    )


# --- casts ------------------------------------------------------------------------------------------------------------


def _date_of_timestamp(cast: Any, wanted: Interval, _: Interval) -> Sequence[Interval]:
    """Return the instants of some days: a day begins with its first local time, which several instants may show."""
    return (instants_of(zone_of(cast), _times(wanted, DAY)),)


def _dates_between(cast: Any, within: Interval) -> Interval:
    low, high = local_of(zone_of(cast), within)
    return (None if low is None else low // DAY, None if high is None else -(-high // DAY))


def _timestamp_of_local(unit: int) -> Callable[[Any, Interval, Interval], Sequence[Interval]]:
    """Return the local times (``unit`` microseconds each) that become some instants."""
    return lambda cast, wanted, _: (whole_units(_unresolved(rules_of(cast.zone), wanted), unit),)


def _instants_between(unit: int) -> Callable[[Any, Interval], Interval]:
    """Return the instants that local times become: ``t - o`` by an offset near ``t``, as the module's text says."""

    def image(cast: Any, within: Interval) -> Interval:
        rules = rules_of(cast.zone)
        low, high = _times(within, unit)
        return (
            None if low is None else low - rules.offsets_near(low)[1],
            None if high is None else high - rules.offsets_near(high)[0],
        )

    return image


_SAME = Inverse(first_argument, lambda _, wanted, __: (wanted,), lambda _, within: within)

_CASTS: Mapping[str, Inverse] = {
    "cast(timestamp as date)": Inverse(first_argument, _date_of_timestamp, _dates_between),
    "cast(timestamp_ntz as date)": Inverse(first_argument, _date_of_timestamp, _dates_between),
    "cast(timestamp as timestamp_ntz)": Inverse(
        first_argument,
        lambda cast, wanted, _: (instants_of(rules_of(cast.zone), wanted),),
        lambda cast, within: local_of(rules_of(cast.zone), within),
    ),
    "cast(timestamp_ntz as timestamp)": Inverse(first_argument, _timestamp_of_local(1), _instants_between(1)),
    "cast(date as timestamp)": Inverse(first_argument, _timestamp_of_local(DAY), _instants_between(DAY)),
    "cast(date as timestamp_ntz)": Inverse(
        first_argument, lambda _, wanted, __: (whole_units(wanted, DAY),), lambda _, within: _times(within, DAY)
    ),
    "cast(timestamp as bigint)": monotone(lambda bound: bound * SECOND),  # Math.floorDiv
    **{f"cast({a} as {b})": _SAME for n, a in enumerate(_WHOLE) for b in _WHOLE[n + 1 :]},
}


# --- truncation -------------------------------------------------------------------------------------------------------

_OF_DATES: Mapping[str, Periods] = {
    "WEEK": weeks_from(),
    **dict.fromkeys(("MON", "MONTH", "MM"), months(1)),
    "QUARTER": months(3),
    **dict.fromkeys(("YEAR", "YYYY", "YY"), months(12)),
}
_OF_CLOCKS = {"MINUTE": MINUTE, "HOUR": HOUR, "DAY": DAY, "DD": DAY}
_OF_INSTANTS = {"MICROSECOND": 1, "MILLISECOND": 1000, "SECOND": SECOND}  # no offset has a part of a second


def _unit(call: Any, place: int) -> str:
    """Return a unit as Spark reads it; empty when it is no literal."""
    unit = call.arguments[place]
    return unit.value.upper() if isinstance(unit, Literal) and isinstance(unit.value, str) else ""


def _truncated_date(call: Any) -> Expression | None:
    """Return the date of ``trunc(date, unit)``; of a unit that Spark does not know the result is NULL."""
    return call.arguments[0] if _unit(call, 1) in _OF_DATES else None


def _truncated_timestamp(call: Any) -> Expression | None:
    """Return the timestamp of ``date_trunc(unit, timestamp)``."""
    unit = _unit(call, 0)
    return call.arguments[1] if unit in _OF_DATES or unit in _OF_CLOCKS or unit in _OF_INSTANTS else None


def with_ends(found: Interval, wanted: Interval, least: int, width: int) -> Sequence[Interval]:
    """Add the ends of a type of whole numbers to a preimage, if what is wanted reaches into one of them.

    Spark subtracts what it cuts off, and releases differ in whether that raises an error or wraps round at the ends of
    the type.  Whatever it does there: an argument further than ``width`` from both ends gives a result that is right,
    and one that is nearer gives a result near one of the ends, or an error.  So nearer arguments count only when
    results near an end are wanted, and then all of them do.

    Parameters
    ----------
    found
        The preimage without overflow.
    wanted
        The results.
    least
        The least value of the type, of which the greatest is ``-least - 1``.
    width
        More than the function and any zone together take away or add.
    """
    low, high = wanted
    is_near = low is None or high is None or low < least + 2 * width or high > -least - 2 * width
    return (found, (None, least + width), (-least - width, None)) if is_near else (found,)


def _before_trunc(call: Any, wanted: Interval, _: Interval) -> Sequence[Interval]:
    """Return the dates that are truncated to some dates: within a year of the least one they wrap round."""
    return with_ends(_to_starts(wanted, _OF_DATES[_unit(call, 1)]), wanted, _LEAST_DATE, _TWO_YEARS)


def _before_date_trunc(call: Any, wanted: Interval, _: Interval) -> Sequence[Interval]:
    """Return the instants that are truncated to some instants.

    Seconds and less are cut off the instant itself.  The least timestamps may wrap round to the greatest.
    """
    return with_ends(_truncated_to(call, wanted), wanted, _LEAST_TIMESTAMP, _TWO_YEARS * DAY)


def _truncated_to(call: Any, wanted: Interval) -> Interval:
    """Return the instants that are truncated to some instants, where nothing overflows."""
    unit = _unit(call, 0)
    if unit in _OF_INSTANTS:
        return _to_starts(wanted, multiples(_OF_INSTANTS[unit]))
    rules = rules_of(call.identity)
    local = _unresolved(rules, wanted)
    if unit in _OF_CLOCKS:
        return instants_of(rules, _to_starts(local, multiples(_OF_CLOCKS[unit])))
    days = _to_starts(whole_units(local, DAY), _OF_DATES[unit])
    return instants_of(rules, _times(days, DAY))


# --- seconds since 1970 -----------------------------------------------------------------------------------------------


def _known_moment(call: Any) -> Expression | None:
    """Return the argument of ``unix_timestamp`` if it is no text to be parsed."""
    subject = call.arguments[0]
    return subject if getattr(subject, "type", "") in ("date", "timestamp", "timestamp_ntz") else None


def _before_unix_timestamp(call: Any, wanted: Interval, _: Interval) -> Sequence[Interval]:
    """Return the moments of some seconds.

    Some releases round towards zero and some down, which is a second's difference.  A date is its first instant.  NTZ
    timestamps are taken as of some zone, so up to 18 hours more.
    """
    low, high = wanted
    instants = (None if low is None else (low - 1) * SECOND + 1, None if high is None else high * SECOND)
    type_ = getattr(call.arguments[0], "type", "")
    if type_ == "timestamp":
        return (instants,)
    if type_ == "date":
        return (whole_units(_unresolved(rules_of(call.identity), instants), DAY),)
    low, high = instants
    return ((None if low is None else low - WIDEST, None if high is None else high + WIDEST),)


def _whole(call: Any) -> Expression | None:
    """Return the argument of a function that takes fractions, too, if it is a whole number."""
    return call.arguments[0] if getattr(call.arguments[0], "type", "") in _WHOLE else None


def _count_of(unit: int, argument: Callable[[Any], Expression | None] = first_argument) -> Inverse:
    """State ``floor(x / unit)``."""
    return monotone(lambda bound: bound * unit, argument=argument)


def _multiple_of(unit: int) -> Inverse:
    """State ``x * unit``, which raises an error when it overflows."""
    return Inverse(_whole, lambda _, wanted, __: (whole_units(wanted, unit),), lambda _, within: _times(within, unit))


# --- days that are added ----------------------------------------------------------------------------------------------


def _shifted(sign: int) -> Inverse:
    """State ``date + n`` and ``date - n`` for a literal ``n``, whole numbers of 32 bits that may wrap round."""

    def argument(call: Any) -> Expression | None:
        first, second = call.arguments
        known = isinstance(second, Literal) and isinstance(second.value, int) and not isinstance(second.value, bool)
        return first if known else None

    def preimage(call: Any, wanted: Interval, _: Interval) -> Sequence[Interval]:
        by, half = sign * call.arguments[1].value, 1 << 31
        low = -half if wanted[0] is None else wanted[0]
        high = half if wanted[1] is None else wanted[1]
        return tuple((low - by + turn, high - by + turn) for turn in (-2 * half, 0, 2 * half))

    return Inverse(argument, preimage)


TIMES: Mapping[str, Inverse] = {
    **_CASTS,
    CATALYST + "Year": monotone(first_of_year),
    CATALYST + "YearOfWeek": monotone(iso_year_start),
    CATALYST + "TruncDate": Inverse(_truncated_date, _before_trunc),
    CATALYST + "TruncTimestamp": Inverse(_truncated_timestamp, _before_date_trunc),
    CATALYST + "UnixTimestamp": Inverse(_known_moment, _before_unix_timestamp),
    CATALYST + "ToUnixTimestamp": Inverse(_known_moment, _before_unix_timestamp),
    CATALYST + "UnixSeconds": _count_of(SECOND),
    CATALYST + "UnixMillis": _count_of(1000),
    CATALYST + "UnixMicros": _SAME,
    CATALYST + "UnixDate": _SAME,
    CATALYST + "DateFromUnixDate": _SAME,
    CATALYST + "SecondsToTimestamp": _multiple_of(SECOND),
    CATALYST + "MillisToTimestamp": _multiple_of(1000),
    CATALYST + "MicrosToTimestamp": _multiple_of(1),
    CATALYST + "DateAdd": _shifted(1),
    CATALYST + "DateSub": _shifted(-1),
    CATALYST + "DateDiff": _shifted(-1),
}
"""The functions of times that go forward with time, by what they are known by (``inverse.key_of``)."""
