"""The paper's Cloud Database Logs: 62 columns, a folder for each day, laid out by account_name within it.

A day's objects are *slices* of the accounts in the order of their names.  Most slices hold accounts with names of
companies; a few hold very many small accounts with generated names; some large accounts fill several slices each.
``docs/datasets.md`` derives the numbers below from the paper's tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.datasets import writing
from benchmarks.datasets.columns import dictionary, fillers, identifier
from benchmarks.datasets.user_agents import DATABASE_CLIENTS, clients, robots
from benchmarks.datasets.writing import Generated

RECIPE = 1  # part of the folder's name: another recipe is another dataset
COLUMNS = 62
HEIGHT = 1_200_000  # rows of the paper's objects
SHARE = 100  # the dataset's objects have a hundredth of them
GENERATED_SHARE = 0.03  # of the slices hold accounts with generated names
GENERATED_FROM = 0.77  # where these lie in the order of names: they begin with "u-"
FIRST_DAY = np.datetime64("2024-01-01")
SESSION = 24  # requests of one account that follow each other
OTHER_APPLICATIONS = 0.2  # of an account's databases belong to another application than most of them
SPAN = 3  # slices of a large account
SYSTEM = (("_replicator/scheduled/transient-jobs", 0.33), ("_users/sessions/password-resets", 0.10))
HYBRID_THRESHOLD = 10_000
APPLICATIONS = (
    "production", "staging", "billing", "mobile", "iot-hub", "web", "analytics", "crm", "inventory", "support",
    "search", "identity", "eu-west", "us-east", "archive", "internal",
)  # fmt: skip
NOUNS = (
    "orders", "customers", "events", "devices", "invoices", "sessions", "payments", "messages", "tickets", "products",
    "locations", "readings", "users", "shipments", "reviews", "documents", "contracts", "employees", "catalogue",
    "subscriptions", "alerts", "profiles", "assets", "campaigns",
)  # fmt: skip
SYLLABLES = (
    "al", "ber", "cor", "dan", "el", "fin", "gra", "hol", "in", "jor", "kel", "lo", "mar", "nor", "ol", "pra", "qui",
    "ros", "sta", "ter", "ul", "ven", "wes", "xen", "yor", "zan",
)  # fmt: skip
METHODS = ("GET", "GET", "GET", "POST", "PUT", "GET", "HEAD", "DELETE")
TAILS = (
    "/_find?bookmark=",
    "/_all_docs?include_docs=true&limit=",
    "/_design/app/_view/by-date?startkey=",
    "/_changes?since=",
)


@dataclass(frozen=True)
class Shape:
    """How many objects, and what share of the paper's rows each has.

    Distinct values grow with the square root of the rows (Heaps' law), so a hundredth of the rows has a tenth of them.
    """

    objects: int
    share: int = SHARE

    @property
    def days(self) -> int:
        return max(1, round((0.4 * self.objects) ** 0.5))

    @property
    def slices(self) -> int:
        return -(-self.objects // self.days)

    @property
    def rows(self) -> int:
        return HEIGHT // self.share

    @property
    def threshold(self) -> int:
        """Give the Hybrid index's threshold that stands to these objects as 10,000 does to the paper's."""
        return self.distinct(HYBRID_THRESHOLD)

    def distinct(self, of_paper: float) -> int:
        """Give the number of distinct values for one of the paper's objects."""
        return max(1, round(of_paper / self.share**0.5))

    def day(self, number: int) -> str:
        return str(FIRST_DAY + number // self.slices)

    def name(self, number: int) -> str:
        """Give an object's path: a folder for each day."""
        return f"day={self.day(number)}/part-{number % self.slices:05d}.parquet"


def generate(objects: int) -> Generated:
    """Give the dataset; the paper's has 4,000 objects."""
    shape = Shape(objects)
    name = f"database-logs-r{RECIPE}-{objects}"
    return writing.generate(name, objects, objects * shape.rows, shape.name, partial(write, shape))


# A slice of the accounts ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slice:
    """The databases of a slice's accounts, those of one account beside each other, the busiest account first."""

    accounts: list[str]
    first: np.ndarray  # of each account, the number of its first database
    count: np.ndarray  # of each account
    application: np.ndarray  # of each database
    noun: np.ndarray
    serial: np.ndarray
    active: tuple[int, int]  # accounts and databases of one day

    def names(self, databases: np.ndarray, accounts: np.ndarray) -> list[str]:
        """Spell the names of some databases: application, account, collection."""
        parts = (self.application, self.noun, self.serial)
        return [
            f"{APPLICATIONS[p]}/{self.accounts[a]}/{NOUNS[n]}-{s:03d}"
            for a, p, n, s in zip(accounts.tolist(), *(part[databases].tolist() for part in parts), strict=True)
        ]


def kind_of(shape: Shape, number: int) -> str:
    """Say whose accounts a slice holds: generated, large, or named."""
    first, count = _generated_slices(shape)
    if first <= number < first + count:
        return "generated"
    return "large" if _large_account(shape, number) is not None else "named"


def make_slice(shape: Shape, number: int) -> Slice:
    """Make a slice's accounts and databases, the same ones for every day."""
    kind = kind_of(shape, number)
    large = _large_account(shape, number) if kind == "large" else None
    rng = np.random.default_rng([11, RECIPE, number if large is None else large])
    spread = float(np.exp(rng.normal(-0.32, 0.8))) if kind == "named" else 1.0  # of mean one
    per_day = {"named": (350 * spread, 700 * spread), "large": (1, 700), "generated": (9_500, 100_000)}[kind]
    accounts, databases = map(shape.distinct, per_day)
    known = accounts if kind == "large" else 3 * accounts // 2 + 1
    mean = 1.5 * databases / known
    count = rng.geometric(1 / max(1.01, mean), known) if kind != "large" else np.array([3 * databases // 2])
    total = int(count.sum())
    serial = np.minimum(rng.zipf(1.6, total), 999)
    application = np.repeat(rng.integers(0, len(APPLICATIONS), known), count)  # an account has one, and seldom others
    others = rng.random(total) < OTHER_APPLICATIONS
    application[others] = rng.integers(0, len(APPLICATIONS), int(others.sum()))
    return Slice(
        _account_names(shape, number if large is None else large, kind, known, rng),
        np.cumsum(count) - count,
        count,
        application,
        rng.integers(0, len(NOUNS), total),
        serial,
        (accounts, databases),
    )


def _generated_slices(shape: Shape) -> tuple[int, int]:
    """Give the first of the slices with generated names, and their number."""
    count = max(1, round(GENERATED_SHARE * shape.slices))
    return round(GENERATED_FROM * (shape.slices - count)), count


def _large_account(shape: Shape, number: int) -> int | None:
    """Give the first slice of the large account that a slice belongs to, if any."""
    first, _ = _generated_slices(shape)
    every = max(8, shape.slices // 3)
    start = number - (number % every)
    return start if number - start < SPAN and start + SPAN <= first else None


def _account_names(shape: Shape, number: int, kind: str, count: int, rng: np.random.Generator) -> list[str]:
    """Make names that lie between those of the slices before and after."""
    first, generated = _generated_slices(shape)
    if kind == "generated":
        begin = 16**3 * max(0, number - first) // generated
        heads = begin + rng.integers(0, max(1, 16**3 // generated), count)
        tails = rng.integers(0, 16**9, count)
        return [f"u-{h:03x}{t:09x}" for h, t in zip(heads.tolist(), tails.tolist(), strict=True)]
    after = number >= first + generated
    places = (number - first - generated, shape.slices - first - generated) if after else (number, max(1, first))
    low, high = (20 / 26, 1.0) if after else (0.0, 20 / 26)
    step = (high - low) / max(1, places[1])
    places_of = (low + step * (places[0] + rng.random(count))) * 26**3
    syllables = rng.integers(0, len(SYLLABLES), (count, 3)).tolist()
    return [
        f"{_letters(int(place))}{SYLLABLES[a]}{SYLLABLES[b]}-{SYLLABLES[c]}{i:x}"
        for i, (place, (a, b, c)) in enumerate(zip(places_of.tolist(), syllables, strict=True))
    ]


def _letters(place: int) -> str:
    """Spell a place in the alphabet by three letters."""
    return "".join(chr(97 + place // 26**power % 26) for power in (2, 1, 0))


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
    (accounts, agents), database, names = _requests(make_slice(shape, number % shape.slices), rows, rng)
    databases = pa.array(names)
    return {
        "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
        "account_name": accounts,
        "db_name": dictionary(database, databases),
        "http_request": _http_requests(rng, databases.take(pa.array(database))),
        "user_agent": agents,
        "http_status": _statuses(rng, rows),
    }


def _requests(
    part: Slice, rows: int, rng: np.random.Generator
) -> tuple[tuple[pa.Array, pa.Array], np.ndarray, list[str]]:
    """Draw requests: accounts and user agents by session, databases by request, every active database at least once."""
    accounts = _some(rng, len(part.accounts), part.active[0], 0.8)
    databases, owner = _active_databases(rng, part, accounts)
    first = np.searchsorted(owner, np.arange(len(accounts)))
    count = np.diff(np.append(first, len(owner)))
    weight = 1 / (np.arange(len(accounts)) + 1) ** 0.7 * (count > 0)
    sessions = rows // SESSION + 1
    of_session = rng.choice(len(accounts), sessions, p=weight / weight.sum())
    lengths = rng.geometric(1 / SESSION, 2 * sessions)[:sessions]
    session = np.repeat(np.arange(sessions), lengths)
    session = np.resize(session, rows)
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
    account_names = dictionary(account, pa.array([part.accounts[a] for a in accounts.tolist()]))
    return (account_names, dictionary(agents[session], pa.array(_user_agents()))), database, names


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
    """Give few objects with the paper's rows and distinct values, of the columns that its table indexes.

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
    first, generated = _generated_slices(shape)
    slices = range(first, first + generated) if kind == "generated" else range(first)
    number_of_slice = slices[number * len(slices) // objects]
    (accounts, agents), database, names = _requests(make_slice(shape, number_of_slice), shape.rows, rng)
    columns = {
        "account_name": accounts,
        "db_name": dictionary(database, pa.array(names)),
        "user_agent": agents,
        "http_status": _statuses(rng, shape.rows),
    }
    pq.write_table(pa.table(columns), path, compression="snappy", version="2.6", store_schema=False)


# Objects with the paper's distinct values, and few more rows than these ----------------------------------------------


def flat(objects: int) -> Generated:
    """Give db_name alone, with as many distinct values in each object as the paper's: for reading metadata only."""
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
    _, database, names = _requests(part, _flat_rows(part), rng)
    column = dictionary(database, pa.array(names))
    pq.write_table(pa.table({"db_name": column}), path, compression="snappy", version="2.6", store_schema=False)
