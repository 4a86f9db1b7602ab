"""The paper's Cloud Storage Logs: 99 columns, a folder for each hour, no layout within it.

User agents are programs, browsers and, rarely, robots; a robot comes for an hour or so and leaves a few requests.
``docs/datasets.md`` derives the numbers below from the paper's description.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.datasets import writing
from benchmarks.datasets.columns import dictionary, fillers, identifier
from benchmarks.datasets.user_agents import STORAGE_CLIENTS, browsers, clients, robots
from benchmarks.datasets.writing import Generated

RECIPE = 1  # part of the folder's name: another recipe is another dataset
COLUMNS = 99
HEIGHT = 300_000  # rows of the paper's objects
SHARE = 100  # the dataset's objects have a hundredth of them
ROWS = HEIGHT // SHARE
HOURS_AT_ONE = 80  # the paper's 46,000 objects are 80 days of 24 objects an hour
FIRST_HOUR = np.datetime64("2024-01-01T00", "h")
ACCOUNTS = 5_000
CONTAINERS = 20_000
SESSION = 12  # requests of one client that follow each other
BROWSERS = 0.245  # of the sessions
ROBOTS_AN_HOUR = 6


@dataclass(frozen=True)
class Shape:
    """How many objects, and how many of them an hour has."""

    objects: int

    @property
    def per_hour(self) -> int:
        return max(1, round((self.objects / HOURS_AT_ONE) ** 0.5))

    def hour(self, number: int) -> np.datetime64:
        return FIRST_HOUR + number // self.per_hour

    def name(self, number: int) -> str:
        """Return an object's path: a folder for each hour."""
        hour = str(self.hour(number)).replace("T", "-")
        return f"hour={hour}/part-{number % self.per_hour:05d}.parquet"


def generate(objects: int) -> Generated:
    """Return the dataset; the paper's has 46,000 objects."""
    shape = Shape(objects)
    name = f"storage-logs-r{RECIPE}-{objects}"
    return writing.generate(name, objects, objects * ROWS, shape.name, partial(write, shape))


def write(shape: Shape, number: int, path: Path) -> None:
    """Write one object."""
    rng = np.random.default_rng([21, RECIPE, number])
    start = shape.hour(number).astype("datetime64[us]").astype(np.int64)
    account = np.minimum(rng.zipf(1.3, ROWS), ACCOUNTS) - 1
    container = (account * 31 + np.minimum(rng.zipf(1.5, ROWS), 40)) % CONTAINERS
    names = _containers().take(pa.array(container))
    columns = {
        "ts": pa.array(start + np.sort(rng.integers(0, 3_600_000_000, ROWS)), pa.timestamp("us", tz="UTC")),
        "account_name": dictionary(account, _accounts()),
        "container_name": dictionary(container, _containers()),
        "object_name": pc.binary_join_element_wise(names, identifier(rng, ROWS, 12), "/"),
        "user_agent": dictionary(_agents(shape, number, rng), _user_agents()),
        "http_status": pa.array(rng.choice(np.array([200, 206, 304, 404], np.int32), ROWS, p=(0.8, 0.1, 0.06, 0.04))),
    }
    columns |= fillers(rng, ROWS, COLUMNS - len(columns) - 1)  # hour is the folder's
    pq.write_table(pa.table(columns), path, compression="snappy", version="2.6", store_schema=False)


@cache
def _accounts() -> pa.Array:
    return pa.array([f"account-{number:05d}" for number in range(ACCOUNTS)])


@cache
def _containers() -> pa.Array:
    return pa.array([f"container-{number % 97:02d}-{number:05d}" for number in range(CONTAINERS)])


@cache
def _user_agents() -> pa.Array:
    return pa.array([*clients(STORAGE_CLIENTS), *browsers(), *robots()])


def _agents(shape: Shape, number: int, rng: np.random.Generator) -> np.ndarray:
    """Choose user agents: by session a program or a browser, and over them the robots of this hour."""
    programs = len(clients(STORAGE_CLIENTS))
    sessions = ROWS // SESSION + 1
    agents = np.minimum(rng.geometric(0.07, sessions), programs) - 1
    seen = programs + np.minimum(rng.geometric(0.015, sessions), len(browsers())) - 1
    agents = np.where(rng.random(sessions) < BROWSERS, seen, agents)
    agents = np.resize(np.repeat(agents, rng.geometric(1 / SESSION, sessions)), ROWS)
    of_hour = np.random.default_rng([22, RECIPE, number // shape.per_hour])  # the same for the hour's objects
    for robot in np.minimum(of_hour.zipf(1.2, ROBOTS_AN_HOUR), len(robots())) - 1:
        visited = of_hour.integers(0, shape.per_hour)
        requests = int(of_hour.geometric(0.2))
        if visited == number % shape.per_hour:
            agents[rng.integers(0, ROWS, requests)] = programs + len(browsers()) + _shuffled()[robot]
    return agents


@cache
def _shuffled() -> np.ndarray:
    """Return the robots in an order of frequency that has nothing to do with their names."""
    return np.random.default_rng([23, RECIPE]).permutation(len(robots()))
