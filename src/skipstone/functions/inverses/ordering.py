"""The order of Spark's values, as far as ranges need it: the least value above another, and above all with a prefix."""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from typing import Any

from skipstone.expressions.types import BITS

__all__ = ["after_prefix", "successor"]

_DECIMAL = re.compile(r"decimal\(\d+,\s?(-?\d+)\)")
_EXACT = Context(prec=100)
_LAST = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)


def successor(value: Any, type_: str) -> Any:
    r"""Return the least value of a type above another one, or ``None`` where that is not known.

    Examples
    --------
    >>> successor(7, "int"), successor("a", "string"), successor(Decimal("1.5"), "decimal(4,2)")
    (8, 'a\x00', Decimal('1.51'))
    """
    if isinstance(value, bool):
        return None
    if type_ in BITS and isinstance(value, int):
        return value + 1
    if type_ == "string" and isinstance(value, str):
        return value + "\0"
    if type_ == "double" and isinstance(value, float) and math.isfinite(value):
        return math.nextafter(value, math.inf)
    found = _DECIMAL.fullmatch(type_)
    if found and isinstance(value, Decimal):
        return _EXACT.add(value, Decimal(1).scaleb(-int(found[1])))
    return None


def after_prefix(prefix: str) -> str | None:
    """Return the least text above all that begin with ``prefix``, or ``None`` when there is none.

    Code points and the bytes of UTF-8 are in the same order.

    Examples
    --------
    >>> after_prefix("2026-01")
    '2026-02'
    """
    while prefix:
        last = ord(prefix[-1])
        if last < _LAST:
            after = last + 1
            return prefix[:-1] + chr(_SURROGATES[1] + 1 if _SURROGATES[0] <= after <= _SURROGATES[1] else after)
        prefix = prefix[:-1]
    return None
