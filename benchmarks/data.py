"""Generated inputs of the benchmarks; the datasets of the experiments are in ``benchmarks.datasets``."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks.datasets.writing import WRITTEN, Generated, Write, folder, generate, parts

__all__ = ["WRITTEN", "Generated", "folder"]

YEAR_2024 = 1_704_067_200  # seconds
DAY = 86_400


def _generate(name: str, objects: int, suffix: str, rows: int, write: Write) -> Generated:
    """Write objects that lie in one folder."""
    return generate(name, objects, rows, parts(suffix), write)


# Weather: 33 columns, a grid of cells in space and time; each object holds one cell in one span of time.
LATITUDES, LONGITUDES = 16, 16
ROWS_PER_CELL = 700
SPAN_DAYS = 10
MEASURES = (
    "temp", "dew_point", "humidity", "pressure", "wind_speed", "wind_dir", "wind_gust", "visibility", "cloud_cover",
    "uv_index", "precip_rate", "precip_total", "snow_depth", "snow_fall", "solar_radiation", "heat_index",
    "wind_chill", "feels_like", "soil_temp", "soil_moisture", "evaporation", "ceiling", "altimeter", "sea_level",
    "pressure_change", "temp_change", "max_temp", "min_temp",
)  # fmt: skip


def weather(objects: int = 8_192) -> Generated:
    """Return the weather dataset: lat, lng, ts, station, 28 measures and a remark, laid out by place and time."""
    return _generate(f"weather-{objects}", objects, "parquet", objects * ROWS_PER_CELL, write_weather)


def write_weather(number: int, path: Path) -> None:
    """Write one cell of the grid in one span of time."""
    rng = np.random.default_rng([1, number])
    cell, span = number % (LATITUDES * LONGITUDES), number // (LATITUDES * LONGITUDES)
    south = -90 + (cell // LONGITUDES) * (180 / LATITUDES)
    west = -180 + (cell % LONGITUDES) * (360 / LONGITUDES)
    n = ROWS_PER_CELL
    seconds = np.sort(rng.integers(0, SPAN_DAYS * DAY, n)) + YEAR_2024 + span * SPAN_DAYS * DAY
    columns: dict[str, pa.Array] = {
        "lat": pa.array(south + rng.random(n) * (180 / LATITUDES)),
        "lng": pa.array(west + rng.random(n) * (360 / LONGITUDES)),
        "ts": pa.array(seconds * 1_000_000, pa.timestamp("us", tz="UTC")),
        "station": pa.array(cell * 1_000 + rng.integers(0, 1_000, n)),
        "remark": pa.array(np.char.add("remark-", rng.integers(0, 50, n).astype(str))),
    }
    for measure in MEASURES:
        columns[measure] = pa.array(np.round(rng.normal(15, 10, n), 3).astype(np.float32))
    pq.write_table(pa.table(columns), path, compression="snappy", version="2.6")


def needle(objects: int) -> tuple[str, list[int]]:
    """Return a predicate on a small box and a span of time, and the numbers of the three objects that it needs."""
    cells = LATITUDES * LONGITUDES
    cell = 9 * LONGITUDES + 5
    south, west = -90 + 9 * (180 / LATITUDES), -180 + 5 * (360 / LONGITUDES)
    first = max(0, min(7, objects // cells - 3))
    begin = YEAR_2024 + (first * SPAN_DAYS + 5) * DAY
    end = begin + 2 * SPAN_DAYS * DAY
    predicate = (
        f"lat BETWEEN {south + 4} AND {south + 5} AND lng BETWEEN {west + 8} AND {west + 9} "
        f"AND ts BETWEEN timestamp_seconds({begin}) AND timestamp_seconds({end})"
    )
    return predicate, [span * cells + cell for span in range(first, min(first + 3, -(-objects // cells)))]


def events(objects: int = 8_192, rows: int = 1_000) -> Generated:
    """Return events in the order in which they came: ts, account and a payload."""
    return _generate(f"events-{objects}", objects, "parquet", objects * rows, partial(write_events, rows))


def write_events(rows: int, number: int, path: Path) -> None:
    """Write the events of one span of time."""
    rng = np.random.default_rng([3, number])
    moments = (YEAR_2024 + number * rows + np.arange(rows)) * 1_000_000
    columns = {
        "ts": pa.array(moments, pa.timestamp("us", tz="UTC")),
        "account": pa.array(rng.integers(1, 1_000_000, rows)),
        "payload": pa.array([f"payload {n}" for n in rng.integers(0, 1_000_000, rows)]),
    }
    pq.write_table(pa.table(columns), path)


# Logs: for indexing speed; one long string of high cardinality, one of few values, one in between.
def logs(objects: int = 400, rows: int = 25_000) -> Generated:
    """The log dataset: ts, db_name (64 values), account (32 characters, all distinct), host (4,000 an object)."""
    return _generate(f"logs-{objects}", objects, "parquet", objects * rows, partial(write_logs, rows))


def write_logs(rows: int, number: int, path: Path) -> None:
    """Write one object of the logs."""
    rng = np.random.default_rng([2, number])
    text = pa.py_buffer(rng.bytes(16 * rows).hex().encode())
    offsets = pa.py_buffer(np.arange(0, 32 * rows + 1, 32, dtype=np.int32))
    hosts = np.char.add("host-", (number * 500 + rng.integers(0, 4_000, rows)).astype(str))
    table = pa.table(
        {
            "ts": pa.array(
                (YEAR_2024 + number * 3_600 + np.sort(rng.integers(0, 3_600, rows))) * 1_000_000,
                pa.timestamp("us", tz="UTC"),
            ),
            "db_name": pa.array(np.char.add("database-", rng.integers(0, 64, rows).astype(str))),
            "account": pa.StringArray.from_buffers(rows, offsets, text),
            "host": pa.array(hosts),
            "status": pa.array(rng.integers(200, 600, rows).astype(np.int32)),
            "bytes_sent": pa.array(rng.integers(0, 1 << 40, rows)),
        }
    )
    pq.write_table(table, path, compression="snappy", version="2.6")


TEXT_SCHEMA = "id long, price double, name string, ts timestamp, quantity int, city string"


def text(objects: int = 400, rows: int = 10_000) -> Generated:
    """Return a CSV dataset; read it with ``TEXT_SCHEMA``."""
    return _generate(f"text-{objects}", objects, "csv", objects * rows, partial(write_text, rows))


def write_text(rows: int, number: int, path: Path) -> None:
    """Write one CSV object."""
    rng = np.random.default_rng([3, number])
    seconds = YEAR_2024 + number * 3_600 + np.sort(rng.integers(0, 3_600, rows))
    table = pa.table(
        {
            "id": pa.array(number * rows + np.arange(rows)),
            "price": pa.array(np.round(rng.random(rows) * 1_000, 2)),
            "name": pa.array(np.char.add("customer-", rng.integers(0, 1_000_000, rows).astype(str))),
            "ts": pa.array(np.datetime_as_string(seconds.astype("datetime64[s]"), unit="s")),
            "quantity": pa.array(rng.integers(0, 100, rows).astype(np.int32)),
            "city": pa.array(np.char.add("city-", rng.integers(0, 500, rows).astype(str))),
        }
    )
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
    pyarrow.csv.write_csv(table, path, options)


def numbers(objects: int = 400, rows: int = 100_000) -> Generated:
    """Return objects of about 3 MB: four columns of types whose footer statistics say all that MinMax needs."""
    return _generate(f"numbers-{objects}", objects, "parquet", objects * rows, partial(write_numbers, rows))


def write_numbers(rows: int, number: int, path: Path) -> None:
    """Write one object of random numbers and times."""
    rng = np.random.default_rng([4, number])
    table = pa.table(
        {
            "ts": pa.array(YEAR_2024 * 1_000_000 + rng.integers(0, 3_600_000_000, rows), pa.timestamp("us", tz="UTC")),
            "a": pa.array(rng.integers(0, 1 << 62, rows)),
            "b": pa.array(rng.integers(0, 1 << 62, rows)),
            "c": pa.array(rng.integers(0, 1 << 62, rows)),
        }
    )
    pq.write_table(table, path, compression="snappy", version="2.6", use_dictionary=False)


AGENTS = tuple(
    f"Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) {browser}/{version}.0.{build} Safari/537.36"
    for system in ("X11; Linux x86_64", "Windows NT 10.0; Win64; x64", "Macintosh; Intel Mac OS X 10_15_7")
    for browser in ("Chrome", "Edg", "OPR")
    for version in range(90, 110)
    for build in range(4)
)
DIMENSIONS = 16


def mixed(objects: int = 100, rows: int = 20_000) -> Generated:
    """Return a column for every type of index: numbers, text, places, geometries, vectors, arrays, user agents."""
    return _generate(f"mixed-{objects}", objects, "parquet", objects * rows, partial(write_mixed, rows))


def write_mixed(rows: int, number: int, path: Path) -> None:
    """Write one object; its rows lie near each other in every column."""
    rng = np.random.default_rng([5, number])
    places = np.array([rng.uniform(-80, 80), rng.uniform(-170, 170)])[:, None] + rng.normal(0, 0.5, (2, rows))
    vectors = rng.normal(0, 1, DIMENSIONS) * 10 + rng.normal(0, 1, (rows, DIMENSIONS))
    offsets = np.arange(0, rows * DIMENSIONS + 1, DIMENSIONS, dtype=np.int32)
    tags = np.char.add("tag-", rng.integers(number * 10, number * 10 + 40, rows * 3).astype(str))
    table = pa.table(
        {
            "n": pa.array(np.round(rng.exponential(1e6, rows) ** 2).astype(np.int64)),
            "url": pa.array(np.char.add(f"https://host-{number % 50}/", rng.integers(0, 1 << 40, rows).astype(str))),
            "lat": pa.array(places[0]),
            "lng": pa.array(places[1]),
            "shape": pa.array([f"POINT({x:.6f} {y:.6f})" for y, x in places.T]),
            "v": pa.ListArray.from_arrays(offsets, vectors.ravel()),
            "tags": pa.ListArray.from_arrays(np.arange(0, rows * 3 + 1, 3, dtype=np.int32), pa.array(tags)),
            "user_agent": pa.array(np.array(AGENTS)[rng.integers(0, len(AGENTS), rows)]),
        }
    )
    pq.write_table(table, path, compression="snappy", version="2.6")


MANY_LENGTH = 4_096
MANY_SCHEMA = "a long, b double, ts timestamp, other long"


def many(objects: int) -> Generated:
    """Return very many files that can be listed but hold nothing: for planning, which never opens them."""
    return _generate(f"many-{objects}", objects, "parquet", 0, write_hollow)


def write_hollow(number: int, path: Path) -> None:  # noqa: ARG001  (all are alike)
    """Write a file that has a length and no contents."""
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    os.ftruncate(descriptor, MANY_LENGTH)
    os.close(descriptor)


# A star: a fact laid out by day and store, so that one day of one store is in eight objects.
STORES, OBJECTS_PER_STORE, SALES = 8, 8, 500
PRODUCTS = 100_000


def star(objects: int = 8_192) -> Generated:
    """Return the fact of a star: day and store tell objects apart, every object has products from all over."""
    return _generate(f"star-{objects}", objects, "parquet", objects * SALES, write_star)


def write_star(number: int, path: Path) -> None:
    """Write an eighth of one day of one store."""
    rng = np.random.default_rng([7, number])
    products = rng.integers(0, PRODUCTS, SALES)
    products[:2] = 0, PRODUCTS - 1
    table = pa.table(
        {
            "day": pa.array(np.full(SALES, number // (STORES * OBJECTS_PER_STORE), np.int32)),
            "store": pa.array(np.full(SALES, number // OBJECTS_PER_STORE % STORES, np.int32)),
            "product": pa.array(products),
            "amount": pa.array(np.round(rng.random(SALES) * 100, 2)),
            "note": pa.array(np.char.add("note-", rng.integers(0, 1 << 40, SALES).astype(str))),
        }
    )
    pq.write_table(table, path, compression="snappy", version="2.6")
