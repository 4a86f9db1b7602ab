"""The paper's Cloud Database Logs: 62 columns, a folder for each day, laid out by account_name within it.

Three forms: the dataset itself, few objects of the paper's own height, and db_name alone with the paper's distinct
values.  ``docs/datasets.md`` says where the numbers come from.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.datasets import writing
from benchmarks.datasets.columns import dictionary, fillers, identifier
from benchmarks.datasets.database_accounts import RECIPE, Shape, Slice, generated_slices, make_slice
from benchmarks.datasets.user_agents import DATABASE_CLIENTS, clients, robots
from benchmarks.datasets.writing import Generated

COLUMNS = 62
SESSION = 24  # requests of one account that follow each other
SYSTEM = (("_replicator/scheduled/transient-jobs", 0.33), ("_users/sessions/password-resets", 0.10))
METHODS = ("GET", "GET", "GET", "POST", "PUT", "GET", "HEAD", "DELETE")
TAILS = (
    "/_find?bookmark=",
    "/_all_docs?include_docs=true&limit=",
    "/_design/app/_view/by-date?startkey=",
    "/_changes?since=",
)


def generate(objects: int) -> Generated:
    """Return the dataset; the paper's has 4,000 objects."""
    shape = Shape(objects)
    name = f"database-logs-r{RECIPE}-{objects}"
    return writing.generate(name, objects, objects * shape.rows, shape.name, partial(write, shape))


# An object: a slice on one day -----------------------------------------------------------------------------------


def write(shape: Shape, number: int, path: Path) -> None:
    """Write one object."""
    rng = np.random.default_rng([12, RECIPE, number])
    table = pa.table(_key_columns(shape, number, rng))
    for name, column in fillers(rng, shape.rows, COLUMNS - table.num_columns - 1).items():  # day is the folder's
        table = table.append_column(name, column)
    pq.write_table(table, path, compression="snappy", version="2.6", store_schema=False)


def _key_columns(shape: Shape, number: int, rng: np.random.Generator) -> dict[str, pa.Array]:
    """Make the columns that experiments use."""
    rows = shape.rows
    start = np.datetime64(shape.day(number), "us").astype(np.int64)
    times = start + np.sort(rng.integers(0, 86_400_000_000, rows))
    drawn = _requests(make_slice(shape, number % shape.slices), rows, rng)
    return {
        "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
        "account_name": drawn.accounts,
        "db_name": drawn.databases,
        "http_request": _http_requests(rng, drawn.databases.dictionary_decode()),
        "user_agent": drawn.agents,
        "http_status": _statuses(rng, rows),
    }


class _Requests(NamedTuple):
    """Who asked for what by which program, a row each."""

    accounts: pa.Array
    databases: pa.Array
    agents: pa.Array


def _requests(part: Slice, rows: int, rng: np.random.Generator) -> _Requests:
    """Draw requests: accounts and user agents by session, databases by request, every active database at least once."""
    accounts = _some(rng, len(part.accounts), part.active[0], 0.8)
    databases, owner = _active_databases(rng, part, accounts)
    first = np.searchsorted(owner, np.arange(len(accounts)))
    count = np.diff(np.append(first, len(owner)))
    weight = 1 / (np.arange(len(accounts)) + 1) ** 0.7 * (count > 0)
    sessions = rows // SESSION + 1
    of_session = rng.choice(len(accounts), sessions, p=weight / weight.sum())
    lengths = rng.geometric(1 / SESSION, 2 * sessions)[:sessions]
    session = np.resize(np.repeat(np.arange(sessions), lengths), rows)
    account = of_session[session]
    database = first[account] + (count[account] * rng.random(rows) ** 2).astype(np.int64)
    places = rng.permutation(rows)[: len(databases)]
    database[places] = np.arange(len(places))
    account[places] = owner[: len(places)]
    names = part.names(databases, accounts[owner])
    for name, presence in SYSTEM:
        if rng.random() < presence:
            database[rng.integers(0, rows, max(1, rows // 500))] = len(names)
            names.append(name)
    agents = _agents(rng, accounts, of_session)
    return _Requests(
        dictionary(account, pa.array([part.accounts[a] for a in accounts.tolist()])),
        dictionary(database, pa.array(names)),
        dictionary(agents[session], pa.array(_user_agents())),
    )


def _some(rng: np.random.Generator, known: int, count: int, exponent: float) -> np.ndarray:
    """Choose some of the known, those with small numbers more often; in the order of their numbers."""
    if count >= known:
        return np.arange(known)
    keys = -exponent * np.log(np.arange(known) + 1) + rng.gumbel(size=known)
    return np.sort(np.argpartition(-keys, count)[:count])


def _active_databases(rng: np.random.Generator, part: Slice, accounts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Choose the databases of one day among those of its accounts; with each, the place of its account."""
    owner = np.repeat(np.arange(len(accounts)), part.count[accounts])
    rank = np.arange(len(owner)) - np.repeat(
        np.cumsum(part.count[accounts]) - part.count[accounts], part.count[accounts]
    )
    all_databases = part.first[accounts][owner] + rank
    count = min(part.active[1], len(owner))
    keys = -0.8 * np.log(rank + 1) + rng.gumbel(size=len(owner))
    chosen = np.sort(np.argpartition(-keys, count - 1)[:count])
    return all_databases[chosen], owner[chosen]


def _user_agents() -> list[str]:
    return [*clients(DATABASE_CLIENTS), *robots()]


def _agents(rng: np.random.Generator, accounts: np.ndarray, of_session: np.ndarray) -> np.ndarray:
    """Choose a user agent for each session: of the account's own few clients, or, rarely, a robot."""
    known = len(clients(DATABASE_CLIENTS))
    own = (accounts[of_session] * 7919 + rng.geometric(0.7, len(of_session))) % 13
    agents = np.minimum(own + 16 * (rng.geometric(0.6, len(of_session)) - 1), known - 1)
    robot = rng.random(len(of_session)) < 0.0002
    agents[robot] = known + rng.integers(0, len(robots()), int(robot.sum()))
    return agents


def _http_requests(rng: np.random.Generator, names: pa.Array) -> pa.Array:
    """Spell requests: method, database, document or view with parameters."""
    rows = len(names)
    method = pa.array(METHODS).take(pa.array(rng.integers(0, len(METHODS), rows)))
    documents = pc.binary_join_element_wise("", identifier(rng, rows, 16), "/")
    numbers = pa.array(rng.integers(10, 10_000, rows)).cast(pa.string())
    views = pc.binary_join_element_wise(pa.array(TAILS).take(pa.array(rng.integers(0, len(TAILS), rows))), numbers, "")
    tail = pc.if_else(pa.array(rng.random(rows) < 0.5), documents, views)
    head = pc.binary_join_element_wise(method, names, " /")
    return pc.binary_join_element_wise(head, tail, "")


def _statuses(rng: np.random.Generator, rows: int) -> pa.Array:
    return pa.array(
        rng.choice(np.array([200, 201, 304, 404, 409, 500], np.int32), rows, p=(0.86, 0.06, 0.04, 0.03, 0.008, 0.002))
    )


# Objects of the paper's height ------------------------------------------------------------------------------------


def tall(objects: int, kind: str) -> Generated:
    """Return few objects with the paper's rows and distinct values, of the columns that its table indexes.

    ``kind`` is named or generated: of the paper's objects 97 and 3 percent.
    """
    shape = Shape(4_000, share=1)
    name = f"database-logs-tall-{kind}-r{RECIPE}-{objects}"
    return writing.generate(name, objects, objects * shape.rows, _tall_name, partial(_write_tall, shape, kind, objects))


def _tall_name(number: int) -> str:
    return f"part-{number:05d}.parquet"


def _write_tall(shape: Shape, kind: str, objects: int, number: int, path: Path) -> None:
    """Write one tall object: a slice of the kind; the slices of all objects lie evenly among those of the kind."""
    rng = np.random.default_rng([13, RECIPE, number])
    first, generated = generated_slices(shape)
    slices = range(first, first + generated) if kind == "generated" else range(first)
    number_of_slice = slices[number * len(slices) // objects]
    drawn = _requests(make_slice(shape, number_of_slice), shape.rows, rng)
    columns = {
        "account_name": drawn.accounts,
        "db_name": drawn.databases,
        "user_agent": drawn.agents,
        "http_status": _statuses(rng, shape.rows),
    }
    pq.write_table(pa.table(columns), path, compression="snappy", version="2.6", store_schema=False)


# Objects with the paper's distinct values, and few more rows than these ----------------------------------------------


def flat(objects: int) -> Generated:
    """Return db_name alone, with as many distinct values in each object as the paper's: for reading metadata only."""
    shape = Shape(objects, share=1)
    rows = [_flat_rows(make_slice(shape, number)) for number in range(shape.slices)]
    total = sum(rows[number % shape.slices] for number in range(objects))
    name = f"database-logs-flat-r{RECIPE}-{objects}"
    return writing.generate(name, objects, total, shape.name, partial(_write_flat, shape))


def _flat_rows(part: Slice) -> int:
    return 5 * part.active[1] // 4 + 64


def _write_flat(shape: Shape, number: int, path: Path) -> None:
    rng = np.random.default_rng([14, RECIPE, number])
    part = make_slice(shape, number % shape.slices)
    drawn = _requests(part, _flat_rows(part), rng)
    pq.write_table(
        pa.table({"db_name": drawn.databases}), path, compression="snappy", version="2.6", store_schema=False
    )
