"""The demo's two datasets: a weather grid and a service's logs, written by pyarrow, the same at every run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

__all__ = ["Scale", "account", "database", "user", "write_logs", "write_weather"]

_SEED = 42
_YEAR_START = 1_735_689_600_000_000  # 2025-01-01T00:00:00Z in microseconds
_HOUR = 3_600_000_000
_HOURS = 8_760
# fmt: off
_STEMS = (
    "Alder", "Amber", "Anda", "Ben", "Bora", "Brack", "Cal", "Cedar", "Clan", "Dar", "Dun", "Elm", "Esk", "Fen",
    "Gala", "Glen", "Hala", "Hamp", "Iven", "Jana", "Kal", "Kirk", "Lan", "Lock", "Mar", "Mill", "Nar", "Nor",
    "Oaken", "Ost", "Pem", "Quar", "Raj", "Rock", "Sita", "Stan", "Tam", "Thorn", "Ulm", "Vale",
)
_ENDINGS = (
    "wick", "ton", "ham", "berg", "ford", "ville", "abad", "dale", "field", "mouth", "nagar", "pur", "haven",
    "stead", "mere", "gate",
)
# fmt: on
_ACCOUNTS = 3_000
_USERS = 100


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large the datasets are; the defaults make a million rows in each."""

    latitudes: int = 8
    longitudes: int = 16
    quarters: int = 4
    weather_rows: int = 2_000
    log_objects: int = 200
    log_rows: int = 5_000


def write_weather(folder: Path, scale: Scale) -> None:
    """Write readings laid out by quarter and grid cell: an object covers a small box of the map and three months.

    Every cell has five cities of its own, whose names end alike along a meridian.  It is warmer near the equator, in
    summer and at noon, so that a range of temperatures is somewhere, not everywhere.
    """
    folder.mkdir(parents=True)
    random = np.random.default_rng(_SEED)
    rows = scale.weather_rows
    for quarter in range(scale.quarters):
        for cell in range(scale.latitudes * scale.longitudes):
            y, x = divmod(cell, scale.longitudes)
            hour = np.sort(random.integers(quarter * _HOURS // 4, (quarter + 1) * _HOURS // 4, rows))
            lat = -90 + 180 * (y + random.random(rows)) / scale.latitudes
            lng = -180 + 360 * (x + random.random(rows)) / scale.longitudes
            summer = np.sin(2 * np.pi * (hour / _HOURS - 0.25)) * np.sign(lat)
            noon = np.sin(2 * np.pi * (hour % 24 / 24 - 0.25))
            temp = 32 - 50 * (lat / 90) ** 2 + 9 * summer + 5 * noon + random.normal(0, 2, rows)
            cities = [_STEMS[(y * 5 + i) % len(_STEMS)] + _ENDINGS[x % len(_ENDINGS)] for i in range(5)]
            table = pa.table(
                {
                    "ts": _instants(hour * _HOUR),
                    "lat": np.round(lat, 5),
                    "lng": np.round(lng, 5),
                    "city": _picked(cities, random.integers(0, len(cities), rows)),
                    "temp": np.round(temp, 1),
                    "wind": np.round(random.gamma(2.0, 8.0, rows), 1),
                }
            )
            pq.write_table(table, folder / f"q{quarter + 1}-{y:02}-{x:02}.parquet")


def write_logs(folder: Path, scale: Scale) -> None:
    """Write requests sorted by account: a few large accounts fill many objects, dozens of small ones share one.

    Databases and users belong to one account each; status, path and time are everywhere.
    """
    folder.mkdir(parents=True)
    random = np.random.default_rng(_SEED + 1)
    rows = scale.log_objects * scale.log_rows
    ranks = np.arange(_ACCOUNTS)
    weights = 1 / (ranks + 5)
    by_name = np.array(sorted(ranks.tolist(), key=account))
    position = np.sort(random.choice(_ACCOUNTS, rows, p=(weights / weights.sum())[by_name]))
    rank = by_name[position]
    owned = {"db_name": (database, 3), "user": (user, _USERS)}
    paths = [f"/api/v{version}/{verb}" for version in (1, 2) for verb in ("query", "load", "list", "login")]
    columns = {
        "ts": _instants(random.integers(0, _HOURS * _HOUR, rows)),
        "account": _picked([account(r) for r in range(_ACCOUNTS)], rank),
        **{
            name: _picked(
                [spell(r, i) for r in range(_ACCOUNTS) for i in range(of)], rank * of + random.integers(0, of, rows)
            )
            for name, (spell, of) in owned.items()
        },
        "status": pa.array(random.choice([200, 201, 304, 404, 429, 500, 503], rows), pa.int32()),
        "path": _picked(paths, random.integers(0, len(paths), rows)),
        "millis": np.round(random.gamma(1.5, 60.0, rows), 1),
    }
    table = pa.table(columns)
    for number in range(scale.log_objects):
        part = table.slice(number * scale.log_rows, scale.log_rows)
        pq.write_table(part, folder / f"part-{number:04}.parquet")


def account(rank: int) -> str:
    """Name the account that is the ``rank``-th largest, from 0; names say nothing of the size."""
    return f"acc-{rank * 7_919 % 100_003:05}"


def database(rank: int, number: int) -> str:
    """Name one of the three databases of an account."""
    return f"db_{(rank * 3 + number) * 5_003 % 1_000_003:06}"


def user(rank: int, number: int) -> str:
    """Name one of the users of an account."""
    return f"u{(rank * _USERS + number) * 2_654_435_761 % 4_294_967_296:08x}"


def _instants(microseconds: npt.NDArray[Any]) -> pa.Array:
    """Return points in time of the year."""
    return pa.array(_YEAR_START + microseconds, pa.timestamp("us", tz="UTC"))


def _picked(words: list[str], positions: npt.NDArray[Any]) -> pa.Array:
    """Return the words at these positions as plain strings."""
    return pa.array(words).take(pa.array(positions))
