"""Spark's ``xxhash64``: the expression that hashes a column in the JVM, and the same hash of a literal in Python."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

from skipstone.toolkit.values import quoted

if TYPE_CHECKING:
    from decimal import Decimal

__all__ = ["element_hash_expression", "hash_expression", "spark_hash", "unscaled"]

_SEED = 42  # Spark's default
_INTS = ("boolean", "tinyint", "smallint", "int", "date")
_LONGS = ("bigint", "timestamp", "timestamp_ntz")
_INT_PREFIXES = ("interval year", "interval month")
_LONG_PREFIXES = ("time(", "interval day", "interval hour", "interval minute", "interval second")
_LONG_DIGITS = 18


def hash_expression(column: str) -> str:
    """Return the SQL that hashes a column: NULL for NULL, one hash for all NaN and one for both zeros."""
    name = quoted(column)
    return f"CASE WHEN {name} IS NOT NULL THEN xxhash64({name}) END"


def element_hash_expression(array: str) -> str:
    """Return the SQL that hashes each element of an array, from the last one on: NULL for a NULL element or array.

    The elements are put in a new array first, by something that looks whether each is NULL.  ``transform`` reads all of
    them, and a columnar reader may have an invalid number of a dictionary's entry in the place of NULL.
    """
    return f"transform(reverse({array}), element -> CASE WHEN element IS NOT NULL THEN xxhash64(element) END)"


def spark_hash(value: Any, type_: str) -> int | None:
    """Hash one literal as ``xxhash64`` does; ``None`` for a value or type that is not covered.

    Notes
    -----
    ``xxhash`` is imported here and not above: executors do not have it.

    Examples
    --------
    >>> spark_hash("Spark", "string")
    -4294468057691064905
    """
    from xxhash import xxh64_intdigest

    try:
        data = _bytes(value, type_)
    except (struct.error, OverflowError, TypeError, ValueError, AttributeError):
        return None
    if data is None:
        return None
    digest = xxh64_intdigest(data, _SEED)
    return digest - (1 << 64) if digest >= 1 << 63 else digest


def _bytes(value: Any, type_: str) -> bytes | None:
    """Return the bytes that Spark hashes for a value: the JVM's own form of it, little-endian."""
    if type_ in _INTS or type_.startswith(_INT_PREFIXES):
        return struct.pack("<i", value)
    if type_ in _LONGS or type_.startswith(_LONG_PREFIXES):
        return struct.pack("<q", value)
    if type_ == "float":
        if math.isnan(value):
            return struct.pack("<I", 0x7FC00000)
        data = struct.pack("<f", value + 0.0)
        return data if struct.unpack("<f", data)[0] == value else None
    if type_ == "double":
        return struct.pack("<Q", 0x7FF8 << 48) if math.isnan(value) else struct.pack("<d", value + 0.0)
    if type_.startswith("decimal("):
        precision, scale = map(int, type_[len("decimal(") : -1].split(","))
        number = unscaled(value, scale)
        if precision <= _LONG_DIGITS:
            return struct.pack("<q", number)
        bits = (number if number >= 0 else ~number).bit_length()
        return number.to_bytes(bits // 8 + 1, "big", signed=True)
    if type_ == "string":
        return value.encode()
    if type_ == "binary":
        return bytes(value)
    return None


def unscaled(value: Decimal, scale: int) -> int:
    """Return ``value · 10^scale`` exactly; ``Decimal``'s own arithmetic would round to its context.

    Raises
    ------
    ValueError
        When the value has digits beyond the scale.
    """
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        msg = f"{value} is not a number"
        raise ValueError(msg)
    number = int("".join(map(str, digits)) or "0")
    shift = exponent + scale
    if shift < 0:
        number, rest = divmod(number, 10**-shift)
        if rest:
            msg = f"{value} has more than {scale} digits after the point"
            raise ValueError(msg)
        shift = 0
    number *= 10**shift
    return -number if sign else number
