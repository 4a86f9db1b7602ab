"""Values of every Spark type that a file can hold: the awkward ones, random ones, and how SQL spells them.

Values are physical, as in ``skipstone.expressions.tree``: days, microseconds, months as ``int``, decimals as
``Decimal``; so they go into Arrow arrays as they are and sort as Spark sorts them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (a wall clock: zones are added where they are meant)
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
_DAY = 86_400_000_000
_LONG = "the same sixty-four bytes and more stand before what differs, so that bounds are cut: "
_STRINGS = [
    *("", " ", "a", "A", "b", "ab", "abc", "abd", "aB", "Z", "zz", "0", "1", "10", "9", "-1", "1.0", "NaN", "true"),
    *("2020-01-01", "a%", "a_", "a_c", "%", "_", "\\", "a\\", "a\\%", "a'b", 'q"q', "x\ny", "\t", "null", "NULL"),
    *("é", "e\u0301", "É", "ß", "ẞ", "İ", "i", "\u0131", "Å", "Å", "ﬀ", "中", "中文", "a\u0000b", "\u007f", "\u0080"),
    *("\uffff", "\ufffd", "😀", "😁", "a😀", "\U0010ffff", "\U0010ffff\U0010ffff", "a\U0010ffff"),
    *(_LONG + tail for tail in ("", "a", "b", "z", "\U0010ffff", "é")),
    *(letter * 70 for letter in ("\U0010ffff", "\u007f", "x")),
    "x" * 70 + "y",
]
_BINARIES = [
    *(b"", b"\x00", b"\x00\x00", b"\x01", b"a", b"ab", b"abc", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\xff\x00"),
    *(b"\xff" * 64, b"\xff" * 65, b"\xff" * 70, b"\xff" * 63 + b"\xfe", b"a" * 64, b"a" * 64 + b"\xff", b"a" * 65),
    *(b"a" * 63 + b"\xff", b"a" * 63 + b"\xff\xff", b"\xc3\x28"),
]
_DOUBLES = [
    *(
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.1,
        -0.1,
        1.5,
        2.0,
        3.0,
        1e10,
        -1e10,
        1e308,
        -1e308,
        5e-324,
        -5e-324,
        2.0**53,
        2.0**53 + 2,
    ),
    *(math.inf, -math.inf, math.nan),
]


@dataclass(frozen=True)
class Kind:
    """One Spark type: its values, their Arrow form, and their spelling."""

    name: str
    arrow: pa.DataType
    special: tuple[Any, ...]
    random: Callable[[Random], Any]
    spell: Callable[[Any], str]
    family: str
    near: Callable[[Any, Random], Any] | None = None

    def order(self, value: Any) -> Any:
        """Return the key by which Spark orders values."""
        if self.family == "float":
            return (1, 0.0) if math.isnan(value) else (0, value)
        return value.encode() if self.family == "string" else value

    def pool(self, random: Random, size: int) -> list[Any]:
        """Return distinct values in Spark's order."""
        wanted = min(size, 2) if self.family == "boolean" else size
        found: dict[Any, Any] = {}
        for _ in range(20 * size):
            value = random.choice(self.special) if random.random() < 0.6 else self.random(random)
            found.setdefault(repr(value), value)
            if len(found) >= wanted:
                break
        return sorted(found.values(), key=self.order)

    def array(self, values: list[Any]) -> pa.Array:
        """Make the Arrow column that is written to the file."""
        if self.family == "float":
            numbers = np.array([0.0 if v is None else v for v in values], self.arrow.to_pandas_dtype())
            return pa.array(numbers, self.arrow, mask=np.array([v is None for v in values], bool))
        return pa.array(values, self.arrow)


def _integers(bits: int, suffix: str) -> dict[str, Any]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return {
        "special": (low, low + 1, -1, 0, 1, 2, 3, 7, 10, 100, high - 1, high),
        "random": lambda random: random.choice([random.randint(-20, 120), random.randint(low, high)]),
        "spell": lambda v: f"CAST('{v}' AS BIGINT)" if v == -(1 << 63) else f"{v}{suffix}",
        "near": lambda v, random: max(low, min(high, v + random.choice((-1, 1)))),
        "family": "integer",
    }


def _decimals(precision: int, scale: int) -> dict[str, Any]:
    top = 10**precision - 1
    unit = Decimal(1).scaleb(-scale)

    def made(unscaled: int) -> Decimal:
        sign = 1 if unscaled < 0 else 0
        return Decimal((sign, tuple(map(int, str(abs(unscaled)))), -scale))

    one = 10**scale
    return {
        "special": tuple(map(made, (-top, 1 - top, -one, -1, 0, 1, one, 2 * one, one + 1, 10 * one, top - 1, top))),
        "random": lambda random: made(random.choice([random.randint(-500, 12_000), random.randint(-top, top)])),
        "spell": lambda v: f"CAST('{v:f}' AS DECIMAL({precision},{scale}))" if precision == 38 else f"{v:f}BD",
        "near": lambda v, random: (
            made(max(-top, min(top, int(v.scaleb(scale)) + random.choice((-1, 1))))) if precision < 28 else v + unit * 0
        ),
        "family": "decimal",
    }


def text(value: str) -> str:
    """Spell a string: Spark's parser takes a backslash for an escape."""
    plain = value.replace("\\", "\\\\").replace("'", "\\'").replace("\u0000", "\\0")
    return f"'{plain}'"


def day(days: int) -> str:
    """Spell a date without its keyword."""
    return (date(1970, 1, 1) + timedelta(days=days)).isoformat()


def moment(micros: int) -> str:
    """Spell a wall-clock time without its keyword."""
    at = _EPOCH + timedelta(microseconds=micros)
    return f"{at.year:04d}-{at:%m-%d %H:%M:%S.%f}"


def _float(value: float, name: str) -> str:
    if math.isnan(value) or math.isinf(value):
        said = "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
        return f"{name}('{said}')"
    return f"CAST('{value!r}' AS {name})" if name == "float" else f"{value!r}D"


def _seconds(micros: int) -> str:
    sign = "-" if micros < 0 else ""
    days, rest = divmod(abs(micros), _DAY)
    return f"INTERVAL '{sign}{days} {_hours(rest)}' DAY TO SECOND"


def _months(months: int) -> str:
    sign = "-" if months < 0 else ""
    return f"INTERVAL '{sign}{abs(months) // 12}-{abs(months) % 12}' YEAR TO MONTH"


def _clock(nanos: int) -> str:
    return f"TIME'{_hours(nanos // 1000)}'"


def _hours(micros: int) -> str:
    seconds = micros // 1_000_000
    return f"{seconds // 3_600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{micros % 1_000_000:06d}"


_DAYS = (
    *(_FIRST_DAY, _FIRST_DAY + 1, -141_428, -141_427, -1, 0, 1, 18_262, 18_263, 18_321, 19_782),
    *(_LAST_DAY - 1, _LAST_DAY),
)
_MOMENTS = (
    *(d * _DAY for d in _DAYS),
    *(_LAST_DAY * _DAY + _DAY - 1, -1, 1, 999, 1000),
    *(18_262 * _DAY + 1, 18_262 * _DAY - 1, 18_300 * _DAY + 7_200_000_000),
)
_TEXTS = "abcdefxyzABC019 _%é中😀\U0010ffff"


def _narrow(value: float) -> float:
    return float(np.float32(value))


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("boolean", pa.bool_(), (False, True), lambda r: r.random() < 0.5, lambda v: str(v).upper(), "boolean"),
        Kind("tinyint", pa.int8(), **_integers(8, "Y")),
        Kind("smallint", pa.int16(), **_integers(16, "S")),
        Kind("int", pa.int32(), **_integers(32, "")),
        Kind("bigint", pa.int64(), **_integers(64, "L")),
        Kind(
            "float",
            pa.float32(),
            tuple(_narrow(v) for v in (*_DOUBLES, 16777216.0, 16777218.0) if abs(v) < 3e38 or not math.isfinite(v)),
            lambda r: _narrow(r.choice([r.randint(-50, 50) / 4, r.uniform(-1e6, 1e6)])),
            lambda v: _float(v, "float"),
            "float",
        ),
        Kind(
            "double",
            pa.float64(),
            tuple(_DOUBLES),
            lambda r: r.choice([r.randint(-50, 50) / 4, r.uniform(-1e6, 1e6)]),
            lambda v: _float(v, "double"),
            "float",
            lambda v, r: v if not math.isfinite(v) else math.nextafter(v, r.choice((-math.inf, math.inf))),
        ),
        Kind("decimal(9,2)", pa.decimal128(9, 2), **_decimals(9, 2)),
        Kind("decimal(18,4)", pa.decimal128(18, 4), **_decimals(18, 4)),
        Kind("decimal(38,10)", pa.decimal128(38, 10), **_decimals(38, 10)),
        Kind(
            "string",
            pa.string(),
            tuple(_STRINGS),
            lambda r: "".join(r.choice(_TEXTS) for _ in range(r.randint(0, 6))),
            text,
            "string",
            lambda v, r: r.choice([v + "a", v[:-1], v + "\u0000".replace("\u0000", "!"), v.swapcase()]),
        ),
        Kind(
            "binary",
            pa.binary(),
            tuple(_BINARIES),
            lambda r: bytes(r.choice((0, 1, 97, 98, 127, 128, 254, 255)) for _ in range(r.randint(0, 4))),
            lambda v: f"X'{v.hex()}'",
            "binary",
            lambda v, r: r.choice([v + b"\x00", v[:-1], v + b"\xff"]),
        ),
        Kind(
            "date",
            pa.date32(),
            _DAYS,
            lambda r: r.choice([r.randint(18_250, 18_350), r.randint(_FIRST_DAY, _LAST_DAY)]),
            lambda v: f"DATE'{day(v)}'",
            "date",
            lambda v, r: max(_FIRST_DAY, min(_LAST_DAY, v + r.choice((-1, 1)))),
        ),
        *(
            Kind(
                name,
                pa.timestamp("us", tz="UTC" if name == "timestamp" else None),
                _MOMENTS if name == "timestamp_ntz" else tuple(m for m in _MOMENTS if abs(m) < _LAST_DAY * _DAY),
                lambda r: r.choice(
                    [r.randint(18_250, 18_350) * _DAY + r.randint(0, 23) * 3_600_000_000, r.randint(-(10**16), 10**17)]
                ),
                (lambda v: f"TIMESTAMP_NTZ'{moment(v)}'")
                if name == "timestamp_ntz"
                else (lambda v: f"TIMESTAMP_LTZ'{moment(v)}Z'"),
                "moment",
                lambda v, r: max(_FIRST_DAY * _DAY, min((_LAST_DAY + 1) * _DAY - 1, v + r.choice((-1, 1)))),
            )
            for name in ("timestamp", "timestamp_ntz")
        ),
        Kind(
            "interval year to month",
            pa.int32(),
            (-(1 << 31) + 1, -13, -12, -1, 0, 1, 11, 12, 13, 24, (1 << 31) - 1),
            lambda r: r.randint(-100, 100),
            _months,
            "months",
        ),
        Kind(
            "interval day to second",
            pa.int64(),
            (-_DAY, -1_000_000, -1, 0, 1, 999_999, 1_000_000, _DAY, _DAY + 1, 10**15),
            lambda r: r.randint(-50, 50) * r.choice((1, 1_000_000, _DAY)),
            _seconds,
            "seconds",
        ),
        Kind(
            "time(6)",
            pa.time64("us"),
            (0, 1000, 999_000, 43_200_000_000_000, 86_399_999_999_000),
            lambda r: r.randint(0, 86_399) * 1_000_000_000,
            _clock,
            "clock",
        ),
    )
}


def to_arrow(kind: Kind, value: Any) -> Any:
    """Return a physical value as the Arrow column takes it: only times differ, which Parquet keeps in microseconds."""
    return value // 1000 if value is not None and kind.family == "clock" else value
