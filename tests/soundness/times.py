"""A dataset around the odd moments of many time zones, and predicates on functions of times and texts over it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.soundness.datasets import Made, _age
from tests.soundness.predicates import Node

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random

    from tests.soundness.datasets import Spec

ZONES = (
    *("America/New_York", "Asia/Kolkata", "Pacific/Apia", "Europe/Dublin", "Australia/Lord_Howe"),
    *("America/Sao_Paulo", "UTC", "+05:30", "America/St_Johns"),
)
ANCHORS = (
    *("2026-03-08 02:30:00", "2026-11-01 01:30:00"),  # New York: a gap, a fold
    *("2026-03-29 01:30:00", "2026-10-25 01:30:00"),  # Dublin
    *("2018-11-04 00:00:00", "2019-02-16 23:30:00"),  # Sao Paulo: a gap and a fold at midnight
    *("2026-04-05 01:45:00", "2026-10-04 02:15:00"),  # Lord Howe: half an hour
    *("2011-12-30 00:00:00", "2011-12-31 00:00:00"),  # Apia has no December the 30th
    *("2006-04-02 00:31:00", "2006-10-29 00:01:00"),  # St. John's: a minute after midnight
    *("2025-12-31 23:59:59", "2026-01-01 00:00:00", "2024-02-29 12:00:00", "2026-01-10 12:00:00"),
    *("1883-11-18 12:00:00", "1890-06-01 00:00:00", "1945-10-14 23:30:00", "1970-01-01 00:00:00"),  # local mean times
    *("0001-01-01 00:00:00", "1582-10-10 00:00:00", "9999-12-31 20:00:00"),
)
# Hours from UTC before and after, for the first anchors: objects of one row lie at the very moments of the change.
OFFSETS = (
    (-5, -4),
    (-4, -5),
    (0, 1),
    (1, 0),
    (-3, -2),
    (-2, -3),
    (11, 10.5),
    (10.5, 11),
    (-10, 14),
    (-10, 14),
    (-3.5, -2.5),
)
FAR = (253_402_300_800, 300_000_000_000, -62_167_219_200, -80_000_000_000)  # years 10000 and 11476, 0 and -566
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEPS = (0, 0, 1, -1, 1_000_000, -1_000_000, 1_799_999_999, 3_600_000_000, -3_600_000_000, 86_400_000_000)
WORDS = ("ab", "Ab", "AB", "aB", "b", "Zz", "zz", "k", "\u212a", "K", "straße", "STRASSE", "İ", "i", "\u0131", "", " a")
SCHEMA = pa.schema(
    {
        "rid": pa.int32(),
        "ts": pa.timestamp("us", "UTC"),
        "n": pa.timestamp("us"),
        "d": pa.date32(),
        "s": pa.string(),
        "id": pa.int64(),
        "dc": pa.decimal128(10, 2),
        "dbl": pa.float64(),
    }
)
DDL = "rid INT, ts TIMESTAMP, n TIMESTAMP_NTZ, d DATE, s STRING, id BIGINT, dc DECIMAL(10,2), dbl DOUBLE"


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def make_times_dataset(spec: Spec, folder: Path, random: Random) -> Made:
    """Write an object around each anchor, and a few with years that have more or fewer than four digits."""
    data = folder / "data"
    data.mkdir(parents=True)
    centres = [_micros(datetime.fromisoformat(anchor).replace(tzinfo=UTC)) for anchor in ANCHORS]
    centres += [second * 1_000_000 for second in FAR]
    shifted = [c - int(hours * 3_600_000_000) for c, pair in zip(centres, OFFSETS, strict=False) for hours in pair]
    rid = 0
    for number, centre in enumerate([*centres, *shifted]):
        exact = number >= len(centres)
        rows = 1 if exact else random.choice((1, 3, 12, 12))
        spread = 1 if exact else random.choice((0, 3, 20))
        moments = [
            centre + random.choice(_STEPS) + random.randint(-spread, spread) * 1_800_000_000 for _ in range(rows)
        ]
        words = random.sample(WORDS, 3)
        columns: dict[str, list[Any]] = {
            "rid": [*range(rid, rid + rows)],
            "ts": moments,
            "n": [random.choice(moments) for _ in range(rows)],
            "d": [random.choice(moments) // 86_400_000_000 for _ in range(rows)],
            "s": [random.choice(words) for _ in range(rows)],
            "id": [random.choice((number, number * 11, -number, moment // 1_000_000)) for moment in moments],
            "dc": [random.choice((number * 100, number * 10, -number)) for _ in range(rows)],
            "dbl": [random.choice((float(number), number / 10, -0.0, 1e20 * number)) for _ in range(rows)],
        }
        for name in ("ts", "n", "d", "s", "id"):
            columns[name] = [None if random.random() < 0.08 else value for value in columns[name]]
        pq.write_table(
            pa.table([_array(columns[f.name], f.type) for f in SCHEMA], SCHEMA), data / f"o-{number:03d}.parquet"
        )
        rid += rows
    _age(data)
    return Made(spec, str(data), DDL, [], {})


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Make an array of physical values."""
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64()).cast(type_)
    if pa.types.is_date(type_):
        return pa.array(values, pa.int32()).cast(type_)
    if pa.types.is_decimal(type_):
        return pa.array([value / 100 for value in values]).cast(type_, safe=False)
    return pa.array(values, type_)


@dataclass(frozen=True)
class TimedNode(Node):
    """A predicate that knows what kind of function it is about."""

    kind: str = ""


class TimePredicates:
    """Makes predicates, one kind after another."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._next = random.randrange(len(KINDS))

    def predicate(self) -> Node:
        """Make a predicate: most are of one kind, some are joined with others or negated."""
        node = self._leaf()
        match self.random.randrange(12):
            case 0:
                return Node("NOT {}", (node,))
            case 1:
                return Node("{} OR {}", (node, self._leaf()))
            case 2:
                return Node("{} AND {}", (node, self._leaf()))
        return node

    def _leaf(self) -> Node:
        self._next = (self._next + 1) % len(KINDS)
        kind = (*KINDS,)[self._next]
        return TimedNode(KINDS[kind](self), kind=kind)

    def one(self, *options: Any) -> Any:
        return self.random.choice(options)

    def moment(self) -> datetime:
        """Return a moment near an anchor, as a local time."""
        anchor = datetime.fromisoformat(self.random.choice(ANCHORS))
        step = timedelta(minutes=30 * self.random.randint(-60, 60), microseconds=self.one(0, 0, 0, 1, -1, 500_000))
        try:
            return anchor + self.one(timedelta(), timedelta(), step)
        except OverflowError:
            return anchor

    def order(self) -> str:
        return self.one("=", "=", "=", "<", "<=", ">", ">=", "<>", "<=>")

    def compared(self, function: str, literals: Callable[[], str]) -> str:
        """Compare a function in one of the ways people do."""
        match self.random.randrange(6):
            case 0:
                return (
                    f"{function} {self.one('', 'NOT ')}IN ({', '.join(literals() for _ in range(self.one(1, 2, 3)))})"
                )
            case 1:
                low, high = sorted((literals(), literals()))
                return f"{function} BETWEEN {low} AND {high}"
            case 2:
                return f"{literals()} {self.one('=', '<', '>=')} {function}"
        return f"{function} {self.order()} {literals()}"

    def column(self) -> str:
        return self.one("ts", "ts", "n", "d")

    def day(self) -> str:
        return f"DATE'{self.moment():%Y-%m-%d}'".replace("'1-", "'0001-")

    def second(self) -> str:
        moment = self.moment()
        return f"TIMESTAMP'{moment.isoformat(sep=' ')}'"

    def year(self) -> int:
        return self.moment().year + self.one(0, 0, 0, 1, -1)

    def stretch(self, column: str) -> str:
        """Return a range of a column of a few days or weeks."""
        start = self.moment()
        try:
            end = start + timedelta(days=self.one(1, 2, 9, 40))
        except OverflowError:
            end = start
        if self.one(True, False):
            return f"{column} >= TIMESTAMP_NTZ'{start}' AND {column} < TIMESTAMP_NTZ'{end}'"
        return f"date_trunc('month', {column}) = date_trunc('month', TIMESTAMP'{start}')"

    def text(self, size: int) -> str:
        """Return a text of a moment, whole or cut."""
        return "'" + f"{self.moment():%Y-%m-%d %H:%M:%S.%f}".zfill(26).rstrip("0").rstrip(".")[:size] + "'"


_FORMATS = {
    "yyyy": "{0.year:04d}",
    "yyyy-MM": "{0.year:04d}-{0.month:02d}",
    "yyyyMM": "{0.year:04d}{0.month:02d}",
    "yyyy-MM-dd": "{0.year:04d}-{0.month:02d}-{0.day:02d}",
    "yyyyMMdd": "{0.year:04d}{0.month:02d}{0.day:02d}",
    "yyyy/MM/dd HH": "{0.year:04d}/{0.month:02d}/{0.day:02d} {0.hour:02d}",
    "yyyy-MM-dd HH:mm": "{0.year:04d}-{0.month:02d}-{0.day:02d} {0.hour:02d}:{0.minute:02d}",
}
_UNITS = ("year", "YYYY", "yy", "quarter", "month", "mon", "MM", "week", "day", "DD", "hour", "minute", "second")
_MORE_UNITS = ("millisecond", "microsecond", "nonsense")


def _formatted(g: TimePredicates, subject: str) -> str:
    pattern = g.one(*_FORMATS)
    return g.compared(f"date_format({subject}, '{pattern}')", lambda: f"'{_FORMATS[pattern].format(g.moment())}'")


def _with_year(g: TimePredicates, function: str, high: int) -> str:
    column = g.column()
    years = g.one(f"year({column}) = {g.year()}", f"year({column}) BETWEEN {g.year()} AND {g.year() + 2}")
    return f"{years} AND {g.compared(f'{function}({column})', lambda: str(g.random.randint(0, high)))}"


def _in_stretch(g: TimePredicates, function: str, high: int, *columns: str) -> str:
    column = g.one(*(columns or ("ts", "n", "d")))
    return f"{g.stretch(column)} AND {g.compared(f'{function}({column})', lambda: str(g.random.randint(0, high)))}"


def _hour(g: TimePredicates) -> str:
    column = g.one("ts", "ts", "n")
    hour = g.compared(f"hour({column})", lambda: str(g.random.randint(0, 23)))
    return f"{hour} AND to_date({column}) = {g.day()}"


KINDS: dict[str, Callable[[TimePredicates], str]] = {
    "year": lambda g: g.compared(f"year({g.column()})", lambda: str(g.year())),
    "extract": lambda g: g.compared(f"extract({g.one('YEAR', 'YEAROFWEEK')} FROM {g.column()})", lambda: str(g.year())),
    "month": lambda g: _with_year(g, "month", 13),
    "quarter": lambda g: _with_year(g, "quarter", 5),
    "dayofyear": lambda g: _with_year(g, "dayofyear", 367),
    "weekofyear": lambda g: _with_year(g, "weekofyear", 54),
    "dayofmonth": lambda g: _in_stretch(g, "dayofmonth", 32),
    "dayofweek": lambda g: _in_stretch(g, g.one("dayofweek", "weekday"), 8),
    "hour": _hour,
    "minute": lambda g: _in_stretch(g, g.one("hour", "minute", "second"), 60, "ts", "n"),
    "date_trunc": lambda g: g.compared(f"date_trunc('{g.one(*_UNITS, *_MORE_UNITS)}', {g.column()})", g.second),
    "date_trunc of itself": lambda g: (
        f"date_trunc('{(u := g.one(*_UNITS))}', {g.column()}) {g.one('=', '<', '>=')} date_trunc('{u}', {g.second()})"
    ),
    "trunc": lambda g: g.compared(f"trunc({g.column()}, '{g.one(*_UNITS[:8], 'day')}')", g.day),
    "trunc of itself": lambda g: f"trunc({g.column()}, '{(u := g.one(*_UNITS[:8]))}') = trunc({g.day()}, '{u}')",
    "date_format": lambda g: _formatted(g, g.column()),
    "from_unixtime": lambda g: _formatted(g, "id").replace("date_format", "from_unixtime"),
    "to_date": lambda g: g.compared(f"{g.one('to_date({})', 'cast({} AS date)').format(g.one('ts', 'n'))}", g.day),
    "unix_timestamp": lambda g: g.compared(
        f"{g.one('unix_timestamp', 'to_unix_timestamp')}({g.column()})", lambda: f"unix_timestamp({g.second()})"
    ),
    "unix_seconds": lambda g: g.compared(
        f"{g.one('unix_seconds(ts)', 'cast(ts AS bigint)')}", lambda: f"unix_timestamp({g.second()})"
    ),
    "timestamp_seconds": lambda g: g.compared("timestamp_seconds(id)", g.second),
    "like": lambda g: f"{g.column()} LIKE {g.text(g.one(2, 4, 5, 7, 10, 13, 16))[:-1]}{g.one('%', '%', '_%', '%5')}'",
    "startswith": lambda g: f"startswith(cast({g.column()} AS string), {g.text(g.one(4, 7, 10, 13, 19, 21))})",
    "text of a time": lambda g: g.compared(f"cast({g.column()} AS string)", lambda: g.text(g.one(4, 10, 19, 26))),
    "beginning": lambda g: (
        g.one("left({}, {})", "substring({}, 1, {})").format(f"cast({g.column()} AS string)", n := g.one(4, 7, 10, 13))
        + f" {g.order()} {g.text(g.one(n, n, 4, 16))}"
    ),
    "zones": lambda g: g.compared(
        g.one("cast(ts AS timestamp_ntz)", "cast(n AS timestamp)", "cast(d AS timestamp)", "cast(d AS timestamp_ntz)"),
        g.second,
    ),
    "date_add": lambda g: g.compared(f"{g.one('date_add', 'date_sub')}(d, {g.one(-3, 1, 400)})", g.day),
    "text of an id": lambda g: g.compared(
        "cast(id AS string)", lambda: f"'{g.one(0, 3, 7, 44, -5, '07', '+3', 'x', 1767225600)}'"
    ),
    "beginning of an id": lambda g: f"id LIKE '{g.one(1, 2, 17, 176, -1, '-', 0, 'a', '01')}%'",
    "text of a number": lambda g: (
        g.one("cast(dc AS string)", "cast(dbl AS string)")
        + f" {g.one('=', 'IN')} ('{g.one(3, '3.00', '0.30', '0.3', '3.0', '-0.0', '1.0E21', '-0.05', '7.00', 'NaN')}')"
    ),
    "lower": lambda g: g.compared(f"{g.one('lower', 'upper')}(s)", lambda: f"'{g.one(*WORDS)}'"),
    "lower like": lambda g: (
        f"{g.one('lower', 'upper')}(s) {g.one('', 'NOT ')}LIKE '{g.one('a', 'A', 'z', 'k', 'K', 's')}%'"
    ),
}
