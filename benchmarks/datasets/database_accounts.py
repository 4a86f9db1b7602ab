"""Accounts and databases of the database logs, and which of a day's objects hold them.

A day's objects are *slices* of the accounts in the order of their names.  Most slices hold accounts with names of
companies; a few hold very many small accounts with generated names; some large accounts fill several slices each.
``docs/datasets.md`` derives the numbers below from the paper's tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RECIPE = 1  # part of the folder's name: another recipe is another dataset
HEIGHT = 1_200_000  # rows of the paper's objects
SHARE = 100  # the dataset's objects have a hundredth of them
GENERATED_SHARE = 0.03  # of the slices hold accounts with generated names
GENERATED_FROM = 0.77  # where these lie in the order of names: they begin with "u-"
FIRST_DAY = np.datetime64("2024-01-01")
OTHER_APPLICATIONS = 0.2  # of an account's databases belong to another application than most of them
SPAN = 3  # slices of a large account
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
        """Return the Hybrid index's threshold that stands to these objects as 10,000 does to the paper's."""
        return self.distinct(HYBRID_THRESHOLD)

    def distinct(self, of_paper: float) -> int:
        """Return the number of distinct values for one of the paper's objects."""
        return max(1, round(of_paper / self.share**0.5))

    def day(self, number: int) -> str:
        return str(FIRST_DAY + number // self.slices)

    def name(self, number: int) -> str:
        """Return an object's path: a folder for each day."""
        return f"day={self.day(number)}/part-{number % self.slices:05d}.parquet"


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
    """Return whose accounts a slice holds: generated, large, or named."""
    first, count = generated_slices(shape)
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
    rank = np.arange(total) - np.repeat(np.cumsum(count) - count, count)  # within the account
    noun = (np.repeat(rng.integers(0, len(NOUNS), known), count) + 7 * rank) % len(NOUNS)
    application = np.repeat(rng.integers(0, len(APPLICATIONS), known), count)  # an account has one, and seldom others
    others = rng.random(total) < OTHER_APPLICATIONS
    application[others] = rng.integers(0, len(APPLICATIONS), int(others.sum()))
    return Slice(
        _account_names(shape, number if large is None else large, kind, known, rng),
        np.cumsum(count) - count,
        count,
        application,
        noun,
        rank // len(NOUNS) + 1,
        (accounts, databases),
    )


def generated_slices(shape: Shape) -> tuple[int, int]:
    """Return the first of the slices with generated names, and their number."""
    count = max(1, round(GENERATED_SHARE * shape.slices))
    return round(GENERATED_FROM * (shape.slices - count)), count


def _large_account(shape: Shape, number: int) -> int | None:
    """Return the first slice of the large account that a slice belongs to, if any."""
    first, _ = generated_slices(shape)
    every = max(8, shape.slices // 3)
    start = number - (number % every)
    return start if number - start < SPAN and start + SPAN <= first else None


def _account_names(shape: Shape, number: int, kind: str, count: int, rng: np.random.Generator) -> list[str]:
    """Make names that lie between those of the slices before and after."""
    first, generated = generated_slices(shape)
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
