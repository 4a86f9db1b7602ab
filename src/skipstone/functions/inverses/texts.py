"""Texts of dates, times and numbers: ``date_format(ts, 'yyyy-MM')``, ``cast(ts AS string)``, ``cast(id AS string)``.

**Texts of times.** A pattern is known here if it is ``yyyy``, ``MM``, ``dd``, ``HH``, ``mm``, ``ss``, ``S…`` in this
order, or a beginning of that, with any punctuation between them.  Java writes each as so many digits, zeros in front,
so of two times in the years 0 to 9999 the earlier one has the lesser text, or the same one: texts are compared byte by
byte, and the first byte in which two of them differ is a digit of the first field in which the times differ.  A cast to
text is such a pattern; it leaves out zeros at the end of a fraction, which leaves the order as it is: a text that ends
sooner is less than one that goes on, and stands for a lesser fraction.  Years after 9999 begin with ``+`` and years
before 0 with ``-``: where a text like that may be wanted, all of those years are.

**Texts of numbers** are not in the order of the numbers.  But a text of a whole number is written in one way, a text of
a decimal says its exact value, and a text of a double is read back as that double (``Double.toString`` promises it).
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from skipstone.expressions.tree import Expression, Literal
from skipstone.functions.inverses.calendar import DAY, HOUR, MINUTE, SECOND, first_of_month, first_of_year, month_index
from skipstone.functions.inverses.inverse import Inverse, first_argument
from skipstone.functions.inverses.ordering import after_prefix, successor
from skipstone.functions.inverses.times import CATALYST, instants_of, whole_units, zone_of
from skipstone.functions.inverses.zones import writes_as_old

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skipstone.functions.inverses.inverse import Interval

__all__ = ["TEXTS"]

_FIELDS = re.compile(
    r"yyyy(?:(?P<b>[^A-Za-z'\[\]{}#]*)MM(?:(?P<c>[^A-Za-z'\[\]{}#]*)dd(?:(?P<d>[^A-Za-z'\[\]{}#]*|'T')HH"
    r"(?:(?P<e>[^A-Za-z'\[\]{}#]*)mm(?:(?P<f>[^A-Za-z'\[\]{}#]*)ss(?:(?P<g>[^A-Za-z'\[\]{}#]*)(?P<s>S{1,6}))?)?)?)?)?)?"
)
_CAST = "yyyy-MM-dd HH:mm:ss"
_YEARS_OF_FOUR_DIGITS = (first_of_year(0) * DAY, first_of_year(10_000) * DAY)
_WHOLE_TEXT = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER_TEXT = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:E[+-]?[0-9]{1,3})?")
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_MOST_DIGITS = 19
_MOST_PLACES = 1024


# --- texts of times ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _steps(pattern: str) -> tuple[int, tuple[str, ...], int] | None:
    """Take a pattern apart: how many fields it has, what stands before each, digits of the fraction; or ``None``."""
    found = _FIELDS.fullmatch(pattern)
    if found is None:
        return None
    between = [found[name] for name in "bcdefg"]
    count = 1 + sum(1 for piece in between if piece is not None)
    pieces = tuple((piece or "").replace("'", "") for piece in between[: count - 1])
    return count, pieces, len(found["s"] or "")


_UNITS = (None, None, DAY, HOUR, MINUTE, SECOND)


@lru_cache(maxsize=4096)
def _fields(day: int) -> tuple[int, int, int]:
    """Return year, month and day; the last steps of a search are all within one day."""
    index = month_index(day)
    return index // 12, index % 12 + 1, day - first_of_month(index) + 1


class _Texts:
    """The texts of a pattern as a sequence in ascending order, one for each unit of local time from year 0 to 9999."""

    def __init__(self, steps: tuple[int, tuple[str, ...], int], *, cut: bool = False) -> None:
        self._count, self._pieces, self._digits = steps
        self._cut = cut
        self._places: dict[str, int] = {}
        low, high = _YEARS_OF_FOUR_DIGITS
        if cut:
            self._unit = 1
        elif self._count == 7:
            self._unit = SECOND // 10**self._digits
        elif self._count > 2:
            self._unit = _UNITS[self._count - 1] or 0
        else:
            self._unit = 0
        months = 1 if self._count == 2 else 12
        self._months = months
        self._size = (high - low) // self._unit if self._unit else 10_000 * 12 // months

    def __len__(self) -> int:
        return self._size

    def start(self, number: int) -> int:
        """Return the first local time that has a text."""
        if self._unit:
            return _YEARS_OF_FOUR_DIGITS[0] + number * self._unit
        return first_of_month(number * self._months) * DAY

    def __getitem__(self, number: int) -> str:
        day, clock = divmod(self.start(number), DAY)
        values = (*_fields(day), clock // HOUR, clock // MINUTE % 60, clock // SECOND % 60)
        text = f"{values[0]:04d}" + "".join(
            f"{piece}{value:02d}" for piece, value in zip(self._pieces, values[1 : self._count], strict=False)
        )
        fraction = f"{clock % SECOND:06d}"
        if self._cut:
            return f"{text}.{fraction}".rstrip("0") if clock % SECOND else text
        return f"{text}{self._pieces[5]}{fraction[: self._digits]}" if self._digits else text

    def _place(self, text: str) -> int:
        """Return the place of the first text that is not less than another; queries ask for the same ones again."""
        place = self._places.get(text)
        if place is None:
            if len(self._places) > _MOST_PLACES:
                self._places.clear()
            place = self._places[text] = bisect_left(self, text)
        return place

    def local_times(self, wanted: Interval) -> list[Interval]:
        """Return the local times whose texts lie in an interval."""
        low, high = wanted
        first = 0 if low is None else self._place(low)
        last = len(self) if high is None else self._place(high)
        found: list[Interval] = [(self.start(first), self.start(last))] if first < last else []
        if (low is None or low < ".") and (high is None or high > "+"):  # a text with a sign, in other years
            found += [(None, _YEARS_OF_FOUR_DIGITS[0]), (_YEARS_OF_FOUR_DIGITS[1], None)]
        return found


@lru_cache(maxsize=256)
def _texts(pattern: str, *, cut: bool = False) -> _Texts | None:
    """Return the texts of a pattern that is known."""
    steps = _steps(pattern)
    return None if steps is None else _Texts(steps, cut=cut)


def _pattern(call: Any) -> str:
    pattern = call.arguments[1]
    return pattern.value if isinstance(pattern, Literal) and isinstance(pattern.value, str) else ""


def _formatted(call: Any) -> Expression | None:
    """Return the time of ``date_format``, unless Spark's old formatter, with another calendar, writes it."""
    return call.arguments[0] if _texts(_pattern(call)) is not None and not writes_as_old() else None


def _before_date_format(call: Any, wanted: Interval, _: Interval) -> Sequence[Interval] | None:
    texts = _texts(_pattern(call))
    rules = zone_of(call)
    return None if texts is None else [instants_of(rules, local) for local in texts.local_times(wanted)]


def _before_from_unixtime(call: Any, wanted: Interval, within: Interval) -> Sequence[Interval] | None:
    """Return the seconds.

    Spark multiplies them without looking: those that are too great for a timestamp wrap round, to any time (a column of
    microseconds, say, that is taken for one of seconds).  So all of these may be meant by any text.
    """
    instants = _before_date_format(call, wanted, within)
    if instants is None:
        return None
    most = ((1 << 63) - 1) // SECOND
    return [*(whole_units(instant, SECOND) for instant in instants), (None, -most), (most + 1, None)]


def _before_text_of_timestamp(cast: Any, wanted: Interval, _: Interval) -> Sequence[Interval] | None:
    texts = _texts(_CAST, cut=True)
    rules = zone_of(cast)
    return None if texts is None else [instants_of(rules, local) for local in texts.local_times(wanted)]


def _written_date(cast: Any) -> Expression | None:
    """Return the date of a text, unless Spark's old formatter writes it; timestamps are never written by that."""
    return None if writes_as_old() else cast.child


def _before_text_of_date(_: Any, wanted: Interval, __: Interval) -> Sequence[Interval] | None:
    texts = _texts("yyyy-MM-dd")
    if texts is None:
        return None
    return [whole_units(local, DAY) for local in texts.local_times(wanted)]


# --- beginnings of texts ----------------------------------------------------------------------------------------------


def _beginning(call: Any) -> Expression | None:
    """Return the text of ``substring(text, 1, n)`` and ``left(text, n)``."""
    match call.arguments:
        case (subject, Literal(1, "int"), Literal(int(n), "int")) if n > 0 and getattr(subject, "type", "") == "string":
            return subject
    return None


def _before_substring(call: Any, wanted: Interval, _: Interval) -> Sequence[Interval]:
    """Return the texts with some beginning of ``n`` characters.

    A text is not less than its beginning, so ``low`` bounds it.  If its beginning is less than ``high`` but the text is
    not, ``high`` goes on where the beginning ends, so it is longer than ``n``: then its own beginning bounds the text.
    """
    low, high = wanted
    n = call.arguments[2].value
    return ((low, high if high is None or len(high) <= n else after_prefix(high[:n])),)


# --- texts of numbers -------------------------------------------------------------------------------------------------


def _is_one(wanted: Interval) -> bool:
    """Whether an interval of texts holds one text alone."""
    low, high = wanted
    return low is not None and high == successor(low, "string")


def _before_text_of_whole(_: Any, wanted: Interval, __: Interval) -> Sequence[Interval] | None:
    """Return the number of a text, or the numbers whose texts begin with one: ``7``, ``70`` to ``79``, and so on."""
    low, high = wanted
    if _is_one(wanted):
        return ((int(low), int(low) + 1),) if _WHOLE_TEXT.fullmatch(low) and len(low) < 30 else ()
    if low is None or high is None or high != after_prefix(low) or not _WHOLE_TEXT.fullmatch(low):
        return None
    if low == "0":
        return ((0, 1),)
    first, by = int(low.removeprefix("-")), -1 if low[0] == "-" else 1
    ranges = [(first * 10**n, (first + 1) * 10**n) for n in range(_MOST_DIGITS - len(str(first)) + 1)]
    return [(a, b) if by > 0 else (1 - b, 1 - a) for a, b in ranges]


def _before_text_of_decimal(cast: Any, wanted: Interval, _: Interval) -> Sequence[Interval] | None:
    low, _high = wanted
    if not _is_one(wanted) or not _NUMBER_TEXT.fullmatch(low):
        return None
    value = Decimal(low)
    above = successor(value, cast.child.type)
    return None if above is None else ((value, above),)


def _before_text_of_double(_: Any, wanted: Interval, __: Interval) -> Sequence[Interval] | None:
    low, _high = wanted
    if not _is_one(wanted) or not _NUMBER_TEXT.fullmatch(low):
        return None
    value = float(low)
    return ((value, successor(value, "double")),) if math.isfinite(value) else None


def _text_of(preimage: Callable[[Any, Interval, Interval], Sequence[Interval] | None]) -> Inverse:
    return Inverse(first_argument, preimage)


_LIKE_DATES = "write a pattern such as 'yyyy-MM-dd', whose texts are in the order of time, or a range of {column}"

TEXTS: Mapping[str, Inverse] = {
    CATALYST + "DateFormatClass": Inverse(_formatted, _before_date_format, hint=_LIKE_DATES),
    CATALYST + "FromUnixTime": Inverse(_formatted, _before_from_unixtime, hint=_LIKE_DATES),
    CATALYST + "Substring": Inverse(_beginning, _before_substring),
    "cast(timestamp as string)": _text_of(_before_text_of_timestamp),
    "cast(timestamp_ntz as string)": _text_of(_before_text_of_timestamp),
    "cast(date as string)": Inverse(_written_date, _before_text_of_date),
    "cast(decimal as string)": _text_of(_before_text_of_decimal),
    "cast(double as string)": _text_of(_before_text_of_double),
    **{f"cast({type_} as string)": _text_of(_before_text_of_whole) for type_ in _WHOLE},
}
"""The functions that give texts, by what they are known by (``inverse.key_of``)."""
