"""How numbers and foreign text are spelled for people, on pages and in notebooks."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any, Final

__all__ = ["FORMATS", "visible"]

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_STEP = 1_000
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Kinds of characters that show nothing, move others, or are no text: control, format, surrogate, unassigned, lines."""


def visible(text: str) -> str:
    r"""Write characters that cannot be seen, or that turn others around, as escapes; letters of any script stay.

    Examples
    --------
    >>> visible("a\u202eb\u2028c\x00")
    'a\\u202eb\\u2028c\\x00'
    """
    return "".join(
        letter if letter in "\n\t" or unicodedata.category(letter) not in _HIDDEN else _escape(letter)
        for letter in text
    )


def _escape(letter: str) -> str:
    number = ord(letter)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _count(value: int) -> str:
    return f"{value:,}"


def _size(value: int) -> str:
    """Spell bytes.

    Examples
    --------
    >>> _size(999), _size(1_000), _size(2_173_517), _size(999_999)
    ('999 B', '1.00 kB', '2.17 MB', '1.00 MB')
    """
    amount, unit = float(value), 0
    while unit + 1 < len(_UNITS) and float(f"{amount:.3g}") >= _STEP:
        amount, unit = amount / _STEP, unit + 1
    if unit == 0:
        return f"{value} B"
    return f"{amount:#.3g}".rstrip(".") + f" {_UNITS[unit]}"


def _percent(value: float) -> str:
    """Spell a share; only all is 100%, only nothing is 0%.

    Examples
    --------
    >>> _percent(1.0), _percent(0.99996), _percent(0.96875), _percent(0.00021), _percent(0.0)
    ('100%', '99.996%', '96.9%', '0.021%', '0%')
    """
    if value in (0, 1):
        return f"{value:.0%}"
    hundred = 100 * value
    if hundred < 10:
        return f"{_plain(hundred, 2)}%"
    for digits in (1, 2, 3, 4, 5):
        if (shown := f"{hundred:.{digits}f}") != f"{100:.{digits}f}":
            return f"{shown}%"
    return "<100%"


def _factor(value: float) -> str:
    """Spell a factor by three digits.

    Examples
    --------
    >>> _factor(1.0), _factor(0.5), _factor(0.012345), _factor(0.0000123456)
    ('1', '0.5', '0.0123', '0.0000123')
    """
    return _plain(value, 3)


def _plain(value: float, digits: int) -> str:
    """Spell a number by some significant digits, without an exponent."""
    shown = f"{value:.{digits}g}"
    if "e" in shown:
        places = max(0, digits - 1 - int(shown.partition("e")[2]))
        shown = f"{value:.{places}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.1f} ms"


FORMATS: Final[dict[str, Callable[[Any], str]]] = {
    "count": _count,
    "size": _size,
    "percent": _percent,
    "factor": _factor,
    "milliseconds": _milliseconds,
}
