"""Time zones made by hand, and what Spark's functions give there, from Java's definitions and Python's calendar."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from skipstone.functions.inverses.zones import Surroundings, read_rules

if TYPE_CHECKING:
    pass

HOUR, DAY = 3_600_000_000, 86_400_000_000
_EPOCH = date(1970, 1, 1)


def _at(year: int, month: int, day: int, hour: float = 0) -> int:
    """Return the second of a moment in UTC."""
    return int((date(year, month, day) - _EPOCH).days * 86_400 + hour * 3600)


# The offset before all transitions, and the transitions: the second (UTC) and the offset from then on.
ZONES: dict[str, tuple[int, list[tuple[int, int]]]] = {
    "Test/New_York": (-18_000, [(_at(2026, 3, 8, 7), -14_400), (_at(2026, 11, 1, 6), -18_000)]),
    "Test/Sao_Paulo": (-10_800, [(_at(2018, 11, 4, 3), -7_200), (_at(2019, 2, 17, 2), -10_800)]),  # at midnight
    "Test/Apia": (-36_000, [(_at(2011, 12, 30, 10), 50_400)]),  # a day that is left out
    "Test/Manila": (-57_360, [(_at(2026, 1, 1, 15.5), 29_040)]),  # and a day of seconds, as local mean times have
    "Test/Kwajalein": (43_200, [(_at(2026, 5, 31, 12), -43_200)]),  # a day twice
    "Test/Lord_Howe": (39_600, [(_at(2026, 4, 4, 15), 37_800), (_at(2026, 10, 3, 15.5), 39_600)]),
    "Test/St_Johns": (-12_600, [(_at(2006, 4, 2, 3.5 + 1 / 60), -9_000), (_at(2006, 10, 29, 2.5 + 1 / 60), -12_600)]),
}
UNTIL = _at(2200, 1, 1)


def surroundings() -> Surroundings:
    """Let the zones be known."""
    return Surroundings(lambda zone: read_rules(ZONES[zone][1], ZONES[zone][0], UNTIL) if zone in ZONES else None)


def offset(zone: str, instant: int) -> int:
    """Return the offset that holds at an instant, in microseconds."""
    first, transitions = ZONES[zone]
    for second, after in transitions:
        if instant >= second * 1_000_000:
            first = after
    return first * 1_000_000


def local(zone: str, instant: int) -> int:
    """Return the local time of an instant."""
    return instant + offset(zone, instant)


def resolved(zone: str, wanted: int, preferred: int | None = None, *, start_of_day: bool = False) -> int:
    """Return the instant of a local time as Java does: the earlier at a fold, later by the gap in a gap."""
    offsets = dict.fromkeys([ZONES[zone][0], *(after for _, after in ZONES[zone][1])])
    valid = [o * 1_000_000 for o in offsets if offset(zone, wanted - o * 1_000_000) == o * 1_000_000]
    if preferred in valid:
        return wanted - preferred
    if valid:
        return wanted - max(valid)
    before, instant = ZONES[zone][0], 0
    for second, after in ZONES[zone][1]:
        if (second + before) * 1_000_000 <= wanted < (second + after) * 1_000_000:
            instant = second * 1_000_000
            break
        before = after
    return instant if start_of_day else wanted - before * 1_000_000


def day_of(value: int) -> date:
    """Return the date of a local time."""
    return _EPOCH + timedelta(days=value // DAY)


def days(value: date) -> int:
    """Return the number of a date."""
    return (value - _EPOCH).days


def start(value: date, unit: str) -> date:
    """Return the first day of a date's period."""
    match unit:
        case "WEEK":
            return value - timedelta(days=value.weekday())
        case "MONTH":
            return value.replace(day=1)
        case "QUARTER":
            return value.replace(day=1, month=(value.month - 1) // 3 * 3 + 1)
    return value.replace(day=1, month=1)


def date_trunc(zone: str, unit: str, instant: int) -> int:
    """Return what ``date_trunc`` gives."""
    here = local(zone, instant)
    lengths = {"MINUTE": 60_000_000, "HOUR": HOUR, "DAY": DAY}
    if unit in lengths:
        return resolved(zone, here - here % lengths[unit], offset(zone, instant))
    return resolved(zone, days(start(day_of(here), unit)) * DAY, start_of_day=True)


def text(zone: str, instant: int) -> str:
    """Return what a cast to text gives."""
    here = local(zone, instant)
    of_day = here % DAY
    seconds = of_day // 1_000_000
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{day_of(here)} {clock}" + (f".{of_day % 1_000_000:06d}".rstrip("0") if of_day % 1_000_000 else "")


def moments(zone: str) -> list[int]:
    """Return instants around all transitions of a zone, and around the ends of a year."""
    found = []
    for second, _ in [*ZONES[zone][1], (_at(2026, 1, 1), 0)]:
        found += [second * 1_000_000 + step * HOUR // 2 + more for step in range(-80, 81) for more in (-1, 0, 1)]
    return found
