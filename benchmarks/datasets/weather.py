"""Weather: hourly measurements on a grid, 33 columns, laid out by a KD-tree over the grid points (paper, section V).

A month is a folder, ``month=202401``, as the paper's month is a set of objects of its own; in it, each leaf of the tree
is one object.  Everything follows from one number, the objects in all: the tree has the largest power of two of leaves
that divides it, at most 8,192 (the paper's month) and at most a fifth of it, so that there are at least five months.
A leaf holds four neighbouring grid points, all hours of the month, hence 2,688 to 2,976 rows.  More objects are a finer
grid of the same area: the contiguous United States.

Measures are made from latitude, longitude, elevation, season, hour and a front that passes over all points of a leaf,
so that they correlate as weather does; they are rounded as instruments report them.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.datasets.writing import Generated
from benchmarks.datasets.writing import generate as write_all

__all__ = ["Area", "Shape", "generate", "kd_tree", "leaves_in", "research_triangle", "shape", "window"]

LARGEST_MONTH = 8_192
FEWEST_MONTHS = 5
POINTS = 4
SOUTH, NORTH, WEST, EAST = 24.0, 50.0, -125.0, -66.0
START_YEAR = 2024
SEED = 20


@dataclass(frozen=True)
class Shape:
    """What the number of objects stands for."""

    leaves: int
    months: int

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of the grid, both powers of two: the area is twice as wide as high."""
        bits = (self.leaves * POINTS).bit_length() - 1
        return 1 << (bits - 1) // 2, 1 << bits - (bits - 1) // 2

    @property
    def spacing(self) -> tuple[float, float]:
        """Degrees of latitude and longitude between neighbouring points."""
        rows, columns = self.grid
        return (NORTH - SOUTH) / rows, (EAST - WEST) / columns

    @property
    def rows(self) -> int:
        return sum(self.leaves * POINTS * _hours(month) for month in range(self.months))


def shape(objects: int) -> Shape:
    """Return leaves and months of a number of objects."""
    leaves = LARGEST_MONTH
    while leaves > 1 and (objects % leaves or leaves * FEWEST_MONTHS > objects):
        leaves //= 2
    if objects < FEWEST_MONTHS:
        msg = f"weather has at least {FEWEST_MONTHS} objects, one a month; {objects} were asked for"
        raise ValueError(msg)
    return Shape(leaves, objects // leaves)


def generate(objects: int) -> Generated:
    """Return the dataset of a number of objects."""
    wanted = shape(objects)
    name = partial(_name, wanted.leaves)
    return write_all(f"weather-kd-{objects}", objects, wanted.rows, name, partial(write, wanted))


def _name(leaves: int, number: int) -> str:
    return f"month={month_name(number // leaves)}/part-{number % leaves:05d}.parquet"


def month_name(month: int) -> int:
    """Return the name of the n-th month, a number: 202401 is the first."""
    return (START_YEAR + month // 12) * 100 + month % 12 + 1


def window(months: int) -> str:
    """Return the predicate of the first months."""
    return f"month BETWEEN {month_name(0)} AND {month_name(months - 1)}"


@dataclass(frozen=True)
class Area:
    """A triangle around the Research Triangle in North Carolina, and the box around it."""

    south: float
    north: float
    west: float
    east: float

    @property
    def contains(self) -> str:
        """Return the predicate as a user writes it, by functions on geometries."""
        middle = (self.west + self.east) / 2
        corners = f"{self.west} {self.south}, {self.east} {self.south}, {middle} {self.north}, {self.west} {self.south}"
        return f"ST_Contains(ST_WKTToSQL('POLYGON (({corners}))'), ST_Point(lat, lng))"

    @property
    def box(self) -> str:
        """Return the ranges that a user adds by hand, so that min/max statistics help."""
        return f"lat BETWEEN {self.south} AND {self.north} AND lng BETWEEN {self.west} AND {self.east}"


def research_triangle(wanted: Shape) -> Area:
    """Return the area; on a coarse grid it is larger, so that a point lies in it, and always centred on one."""
    lat, lng = _grid(wanted)
    nearest = int(np.argmin((lat - 35.9) ** 2 + (lng + 78.9) ** 2))
    high, wide = (max(0.2, 0.6 * step) for step in wanted.spacing)
    south, north = float(lat[nearest]) - high, float(lat[nearest]) + high
    west, east = float(lng[nearest]) - wide, float(lng[nearest]) + wide
    return Area(*(round(side, 4) for side in (south, north, west, east)))


def leaves_in(wanted: Shape, area: Area) -> list[int]:
    """Return the leaves whose bounds meet an area's box: the objects of a month that a query on it needs."""
    lat, lng = (coordinate[_leaves(wanted)] for coordinate in _grid(wanted))
    high = (lat.min(axis=1) <= area.north) & (lat.max(axis=1) >= area.south)
    wide = (lng.min(axis=1) <= area.east) & (lng.max(axis=1) >= area.west)
    return [int(leaf) for leaf in np.flatnonzero(high & wide)]


@lru_cache(maxsize=2)
def _grid(wanted: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Return latitude and longitude of all points."""
    rows, columns = wanted.grid
    high, wide = wanted.spacing
    lat = np.round(SOUTH + (np.arange(rows) + 0.5) * high, 4)
    lng = np.round(WEST + (np.arange(columns) + 0.5) * wide, 4)
    return np.repeat(lat, columns), np.tile(lng, rows)


def kd_tree(lat: np.ndarray, lng: np.ndarray, leaves: int) -> np.ndarray:
    """Split points at the median of the wider side, again and again; gives the points of each leaf, a row each."""
    groups = np.arange(len(lat))[None, :]
    while len(groups) < leaves:
        by_lat = np.ptp(lat[groups], axis=1) >= np.ptp(lng[groups], axis=1)
        order = np.argsort(np.where(by_lat[:, None], lat[groups], lng[groups]), axis=1, kind="stable")
        groups = np.take_along_axis(groups, order, axis=1).reshape(2 * len(groups), -1)
    return groups


@lru_cache(maxsize=2)
def _leaves(wanted: Shape) -> np.ndarray:
    return kd_tree(*_grid(wanted), wanted.leaves)


def _hours(month: int) -> int:
    return 24 * monthrange(START_YEAR + month // 12, month % 12 + 1)[1]


def write(wanted: Shape, number: int, path: Path) -> None:
    """Write one leaf in one month, its rows ordered by time."""
    month, leaf = divmod(number, wanted.leaves)
    rng = np.random.default_rng([SEED, number])
    points = _leaves(wanted)[leaf]
    hours = _hours(month)
    start = np.datetime64(f"{START_YEAR + month // 12}-{month % 12 + 1:02d}-01", "us")
    when = start + np.arange(hours) * np.timedelta64(1, "h")
    place = np.tile(points, hours)
    lat, lng = (coordinate[place] for coordinate in _grid(wanted))
    measures = _measures(rng, lat, lng, np.repeat(np.arange(hours), POINTS), month)
    condition = np.select(
        [measures["snow_fall"] > 0, measures["precip_rate"] > 0, measures["cloud_cover"] > 60],
        ["snow", "rain", "cloudy"],
        "clear",
    )
    columns = {
        "lat": pa.array(lat),
        "lng": pa.array(lng),
        "ts": pa.array(np.repeat(when, POINTS), pa.timestamp("us", tz="UTC")),
        "station": pa.array(place),
        "condition": pa.array(condition),
        **{name: pa.array(values.astype(np.float32)) for name, values in measures.items()},
    }
    pq.write_table(pa.table(columns), path, compression="snappy", version="2.6")


def _measures(
    rng: np.random.Generator, lat: np.ndarray, lng: np.ndarray, hour: np.ndarray, month: int
) -> dict[str, np.ndarray]:
    """Make the 28 measures of one object's rows."""
    n = len(lat)

    def noise(scale: float) -> np.ndarray:
        return rng.normal(0, scale, n)

    def front(scale: float) -> np.ndarray:
        """Return what all points of the leaf have in common and what changes slowly: a walk that tends to zero."""
        steps = rng.normal(0, 1, int(hour[-1]) + 1)
        walk = np.convolve(steps, 0.9 ** np.arange(48))[: len(steps)]
        return scale * walk[hour]

    elevation = 0.4 + 0.4 * np.sin(lng / 7) * np.cos(lat / 5)  # kilometres
    season = np.cos(2 * np.pi * (month % 12 + hour / 730 - 6.5) / 12)
    sun = np.maximum(0, np.cos(2 * np.pi * (hour % 24 - 12 + (lng + 95) / 15) / 24)) * (0.75 + 0.25 * season)
    low = front(1.0)
    cloud = np.clip(45 + 15 * low + noise(8), 0, 100)
    temp = 30 - 0.6 * (lat - SOUTH) + 12 * season + 9 * sun - 6.5 * elevation - 1.5 * low + noise(0.4)
    dew = temp - np.clip(9 - 2 * low + 5 * sun + noise(0.5), 0.1, 30)
    humidity = np.clip(100 - 5 * (temp - dew), 3, 100)
    pressure = 1013 * np.exp(-elevation / 8.4) - 3 * low + noise(0.2)
    wind = np.abs(3 + 1.5 * front(0.6) + noise(0.5))
    gust = wind * (1.25 + np.abs(noise(0.15)))
    wet = np.where(cloud > 70, np.maximum(0, 0.15 * (cloud - 70) + noise(0.8)), 0)
    snow = np.where(temp < 0, wet, 0)
    chill = temp - np.where(temp < 10, 0.6 * np.sqrt(wind), 0)
    heat = temp + np.where(temp > 26, 0.05 * humidity, 0)
    soil = 0.7 * temp + 4 + 0.3 * front(1.0)
    exact = {
        "temp": temp, "dew_point": dew, "humidity": humidity, "pressure": pressure, "wind_speed": wind,
        "wind_dir": (180 + 40 * low + noise(10)) % 360, "wind_gust": gust, "visibility": np.clip(16 - wet * 3, 0.1, 16),
        "cloud_cover": cloud, "uv_index": 11 * sun * (1 - cloud / 150), "precip_rate": wet,
        "precip_total": np.cumsum(wet) / POINTS, "snow_depth": np.cumsum(snow) / 10, "snow_fall": snow,
        "solar_radiation": 1_000 * sun * (1 - cloud / 130), "heat_index": heat, "wind_chill": chill,
        "feels_like": np.where(temp < 10, chill, heat), "soil_temp": soil,
        "soil_moisture": np.clip(0.25 + 0.02 * low + noise(0.01), 0.02, 0.6),
        "evaporation": np.maximum(0, 0.4 * sun + 0.01 * temp),
        "ceiling": np.clip(12 - cloud / 10 + noise(0.3), 0.1, 12),
        "altimeter": pressure * 0.02953, "sea_level": pressure * np.exp(elevation / 8.4),
        "pressure_change": front(0.4), "temp_change": np.gradient(temp), "max_temp": temp + 4 + noise(0.3),
        "min_temp": temp - 5 + noise(0.3),
    }  # fmt: skip
    fine = {"soil_moisture": 3, "altimeter": 2, "precip_rate": 2, "snow_fall": 2, "evaporation": 2}
    whole = {"wind_dir", "cloud_cover", "solar_radiation", "humidity"}
    return {name: np.round(v, 0 if name in whole else fine.get(name, 1)) for name, v in exact.items()}
