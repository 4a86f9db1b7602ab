"""What a Parquet footer proves of one column of one object: bounds and counts, or nothing.

Of floating numbers no footer proves anything, since NaN is not in it; of these the bridge has read the values.

Nothing is proved by statistics that are absent, that contradict themselves or come from a writer known for wrong ones,
by a file type that is not just the Spark type (Spark converts then), or by old dates that the reader may rebase.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from dataclasses import dataclass
from decimal import Context
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from skipstone.expressions.types import FLOATING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Bounds", "column_bounds"]

_EXACT = Context(prec=60)
_DECIMAL = re.compile(r"decimal\((\d+),\s?(\d+)\)")
_VERSION = re.compile(r"(?P<writer>parquet-mr|parquet-cpp-arrow) version (?P<major>\d+)\.(?P<minor>\d+)")
# Writers whose bounds of bytes are in the unsigned order (PARQUET-251, PARQUET-686); numbers were never wrong.
_FIRST_GOOD = {"parquet-mr": (1, 10), "parquet-cpp-arrow": (8, 0)}
# Before these the Julian and the Gregorian calendar, or local mean times, differ: the reader may shift the value.
_DAYS_1900 = -25567
_MICROS_1900 = _DAYS_1900 * 86_400_000_000
_FIRST_PROLEPTIC_SPARK = 3


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds (``None``: there are none), NULLs, NaN and rows of a column in an object."""

    lower: Any
    upper: Any
    nulls: int
    rows: int
    nans: int = 0

    def facts(self, roles: Mapping[str, str]) -> dict[str, Any]:
        """Return the facts by the names that an index has for them."""
        values = {"min": self.lower, "max": self.upper, "nulls": self.nulls, "nans": self.nans, "rows": self.rows}
        return {name: values[role] for name, role in roles.items()}


def column_bounds(facts: Mapping[str, Any], type_: str, footer: Mapping[str, Any]) -> Bounds | None:
    """Judge what a footer says of a column that is read with a Spark type; ``None`` when it proves nothing."""
    if "absent" in facts or not footer.get("created_by"):
        return None
    decode = _decoder(facts["physical"], facts["logical"], type_, str(footer["created_by"]))
    if decode is None:
        return None
    lowers: list[Any] = []
    uppers: list[Any] = []
    nulls = nans = rows = 0
    for group in facts["groups"]:
        unordered = 0 if type_ not in FLOATING else group.get("nans")
        if group["nulls"] is None or unordered is None or group["values"] != group["rows"]:
            return None
        if group["nulls"] < 0 or unordered < 0 or group["nulls"] + unordered > group["values"]:
            return None
        nulls += group["nulls"]
        nans += unordered
        rows += group["rows"]
        if group["nulls"] + unordered == group["values"]:
            continue
        lower, upper = _decoded(group["min"], decode), _decoded(group["max"], decode)
        if lower is None or upper is None or lower > upper:
            return None
        lowers.append(lower)
        uppers.append(upper)
    bounds = Bounds(min(lowers, default=None), max(uppers, default=None), nulls, rows, nans)
    return bounds if _calendar_is_certain(bounds, type_, footer.get("meta") or {}) else None


def _decoded(text: str | None, decode: Callable[[bytes], Any]) -> Any:
    """Decode a bound; ``None`` when it is absent or not of the type's length."""
    if text is None:
        return None
    try:
        return decode(base64.b64decode(text, validate=True))
    except (ValueError, binascii.Error):
        return None


@lru_cache(maxsize=256)  # thousands of files have few writers
def _decoder(physical: str, logical: str | None, type_: str, created_by: str) -> Callable[[bytes], Any] | None:
    """Return the function that reads a bound, or ``None`` unless the file's type is just the Spark type."""
    decimal = _DECIMAL.fullmatch(type_)
    if decimal:
        return _decimal_decoder(physical, logical, (int(decimal[1]), int(decimal[2])), created_by)
    match type_, physical, logical:
        case "boolean", "BOOLEAN", None:
            return _boolean
        case "tinyint", "INT32", "INTEGER(8,true)":
            return _integer(4)
        case "smallint", "INT32", "INTEGER(16,true)":
            return _integer(4)
        case "int", "INT32", None | "INTEGER(32,true)":
            return _integer(4)
        case "bigint", "INT64", None | "INTEGER(64,true)":
            return _integer(8)
        case ("float", "FLOAT", None) | ("double", "DOUBLE", None):
            return _floating("<f" if type_ == "float" else "<d")
        case "date", "INT32", "DATE":
            return _integer(4)
        case ("timestamp", "INT64", "TIMESTAMP(MICROS,true)") | ("timestamp_ntz", "INT64", "TIMESTAMP(MICROS,false)"):
            return _integer(8)
        case ("timestamp", "INT64", "TIMESTAMP(MILLIS,true)") | ("timestamp_ntz", "INT64", "TIMESTAMP(MILLIS,false)"):
            millis = _integer(8)
            return lambda data: millis(data) * 1000
        case ("string", "BINARY", "STRING") | ("binary", "BINARY", None):
            return bytes if _orders_bytes(created_by) else None
    return None


def _decimal_decoder(
    physical: str, logical: str | None, digits: tuple[int, int], created_by: str
) -> Callable[[bytes], Any] | None:
    """Return the function that reads a decimal bound of the very precision and scale."""
    precision, scale = digits
    if logical != f"DECIMAL({precision},{scale})":
        return None
    match physical:
        case "INT32":
            unscaled: Callable[[bytes], int] = _integer(4)
        case "INT64":
            unscaled = _integer(8)
        case "BINARY" | "FIXED_LEN_BYTE_ARRAY" if _orders_bytes(created_by):
            unscaled = _big_endian
        case _:
            return None
    return lambda data: _EXACT.scaleb(_EXACT.create_decimal(unscaled(data)), -scale)


def _boolean(data: bytes) -> bool:
    """Read a boolean bound."""
    if data not in {b"\0", b"\1"}:
        msg = "not a boolean"
        raise ValueError(msg)
    return data == b"\1"


def _integer(width: int) -> Callable[[bytes], int]:
    """Return the function that reads a bound of so many little-endian bytes."""

    def read(data: bytes) -> int:
        if len(data) != width:
            msg = f"{len(data)} bytes where {width} belong"
            raise ValueError(msg)
        return int.from_bytes(data, "little", signed=True)

    return read


def _floating(form: str) -> Callable[[bytes], float]:
    """Return the function that reads a bound of a floating type."""

    def read(data: bytes) -> float:
        try:
            return float(struct.unpack(form, data)[0])
        except struct.error as error:
            raise ValueError(str(error)) from error

    return read


def _big_endian(data: bytes) -> int:
    """Read the unscaled value of a decimal bound."""
    if not data:
        msg = "no bytes"
        raise ValueError(msg)
    return int.from_bytes(data, "big", signed=True)


def _orders_bytes(created_by: str) -> bool:
    """Whether a writer is known to order bytes, and decimals in bytes, as Spark does."""
    found = _VERSION.match(created_by)
    return found is not None and (int(found["major"]), int(found["minor"])) >= _FIRST_GOOD[found["writer"]]


def _calendar_is_certain(bounds: Bounds, type_: str, meta: Mapping[str, str]) -> bool:
    """Whether dates and times are read as they stand in the file."""
    if type_ not in {"date", "timestamp", "timestamp_ntz"} or bounds.lower is None:
        return True
    if "org.apache.spark.legacyDateTime" in meta:
        return False
    version = meta.get("org.apache.spark.version", "")
    major = version.partition(".")[0]
    if major.isdigit() and int(major) >= _FIRST_PROLEPTIC_SPARK:
        return True
    return bool(bounds.lower >= (_DAYS_1900 if type_ == "date" else _MICROS_1900))
