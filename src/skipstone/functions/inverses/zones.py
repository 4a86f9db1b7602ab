"""Time zones as the JVM knows them: which instants may show a local time.

A local time is an instant plus the zone's offset then.  At a *fold* (clocks go back) two instants show the same local
time and later instants show earlier ones; at a *gap* local times are left out, a whole day in Apia in 2011.  Both are
exact here, since a zone is a list of pieces with one offset each.  Its rules come from the JVM that evaluates the
query, never from Python's own database: releases of the time zone database differ, in old years as well.  Where the
rules are not known, offsets are: Java's are at most 18 hours.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from skipstone.functions.inverses.calendar import DAY, HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["UTC", "Surroundings", "ZoneRules", "read_rules", "rules_of", "writes_as_old"]

WIDEST = 18 * HOUR
_FAR = 1 << 70
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d\d):(\d\d)(?::(\d\d))?")


@dataclass(frozen=True, slots=True)
class ZoneRules:
    """A zone's offsets, all in microseconds.

    ``offsets[i]`` holds from ``starts[i]`` (an instant) until the next one; the first has held for ever.  Nothing is
    known of instants from ``until`` on.

    Examples
    --------
    >>> HOUR = 3_600_000_000
    >>> zone = ZoneRules((-_FAR, 100 * HOUR), (2 * HOUR, 1 * HOUR), _FAR)  # a fold: 102:00 becomes 101:00
    >>> zone.earliest(101 * HOUR) // HOUR, zone.latest(102 * HOUR) // HOUR
    (99, 101)
    """

    starts: tuple[int, ...]
    offsets: tuple[int, ...]
    until: int

    def earliest(self, local: int) -> int:
        """Return the first instant whose local time is ``local`` or later.

        Every such instant lies within 18 hours of ``local``, or after them; of the pieces there the first that has one
        decides.
        """
        for start, end, offset in self._pieces(local - WIDEST, local + WIDEST):
            first = max(start, local - offset)
            if first < end:
                return first
        return local - WIDEST

    def latest(self, local: int) -> int:
        """Return the first instant from which on no local time is before ``local``."""
        for start, end, offset in reversed(self._pieces(local - WIDEST, local + WIDEST)):
            last = min(end, local - offset)
            if last > start:
                return last
        return local + WIDEST

    def offsets_near(self, instant: int) -> tuple[int, int]:
        """Return the least and the greatest offset that hold at some time within three days of an instant."""
        found = [offset for _, _, offset in self._pieces(instant - 3 * DAY, instant + 3 * DAY)]
        return (min(found), max(found)) if found else (-WIDEST, WIDEST)

    def _pieces(self, low: int, high: int) -> list[tuple[int, int, int]]:
        """Return the pieces that have instants from ``low`` to ``high``; none when not all is known there."""
        if high >= self.until:
            return []
        first = max(bisect_right(self.starts, low) - 1, 0)
        last = bisect_right(self.starts, high)
        ends = (*self.starts[first + 1 : last + 1], _FAR)
        return [*zip(self.starts[first:last], ends, self.offsets[first:last], strict=False)]


UTC = ZoneRules((-_FAR,), (0,), _FAR)
_UNKNOWN = ZoneRules((-_FAR,), (0,), -_FAR)


@dataclass
class Surroundings:
    """What functions of times look at besides their arguments, in the session and the JVMs that evaluate a query.

    Parameters
    ----------
    rules
        Returns the rules of a zone, or ``None`` when they are not known or not the same in all JVMs.
    old_formatter
        Whether Spark writes dates as Spark 2 did (``spark.sql.legacy.timeParserPolicy=LEGACY``), in another calendar.
    """

    rules: Callable[[str], ZoneRules | None] = lambda _: None
    old_formatter: bool = False
    asked_rules: bool = False
    asked_formatter: bool = False

    @contextmanager
    def hold(self) -> Iterator[Surroundings]:
        """Let these be what functions look at inside the block; ``asked_…`` says afterwards what was looked at."""
        token = _surroundings.set(self)
        try:
            yield self
        finally:
            _surroundings.reset(token)


_surroundings: ContextVar[Surroundings | None] = ContextVar("surroundings", default=None)


def writes_as_old() -> bool:
    """Whether Spark writes dates in the way of Spark 2."""
    here = _surroundings.get()
    if here is None:
        return False
    here.asked_formatter = True
    return here.old_formatter


def rules_of(zone: str | None) -> ZoneRules:
    """Return the rules of a zone by the name that Spark gives it.

    Examples
    --------
    >>> rules_of("+05:30").earliest(0) // 60_000_000
    -330
    >>> rules_of("Europe/Dublin").earliest(0) // 3_600_000_000  # outside of a query: nothing is known of it
    -18
    """
    fixed = _fixed(zone) if zone else None
    if fixed is not None:
        return fixed
    here = _surroundings.get()
    if here is None or not zone:
        return _UNKNOWN
    found = here.rules(zone)
    here.asked_rules = here.asked_rules or found is not None
    return found or _UNKNOWN


@lru_cache(maxsize=256)
def _fixed(zone: str) -> ZoneRules | None:
    """Return the rules of a zone whose name says its offset."""
    if zone in ("UTC", "Z", "GMT", "Etc/UTC", "Etc/GMT"):
        return UTC
    found = _OFFSET.fullmatch(zone)
    if found is None:
        return None
    size = int(found[2]) * HOUR + int(found[3]) * MINUTE + int(found[4] or 0) * SECOND
    return ZoneRules((-_FAR,), (-size if found[1] == "-" else size,), _FAR)


def read_rules(transitions: Sequence[tuple[int, int]], first: int, until: int) -> ZoneRules:
    """Make rules of transitions: seconds since 1970, and the offset in seconds from then on; ``first`` holds before."""
    starts = (-_FAR, *(second * SECOND for second, _ in transitions))
    return ZoneRules(starts, (first * SECOND, *(offset * SECOND for _, offset in transitions)), until * SECOND)
