"""How much the random suites try: in every run, and with ``--long``.  Seeds are fixed, so the same is tried each time.

Every run has 5,170 pairs of a predicate and a dataset in the main suite, and about 6,400 questions of joins, first
rows, counts and extremes:

- 5,356 sets of keys of joins, by 13 types of key, two operators and two facts, and 96 whole joins of 32 kinds;
- 400 questions for first rows, of which 30 run;
- up to 505 conditions under which objects are counted, and 60 aggregations that run.

Most of these ask the planner only; what runs as a query costs ten times as much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pytest


class Size(NamedTuple):
    """Of how many a run consists."""

    every_run: int
    long: int

    def of(self, config: pytest.Config) -> int:
        """Return the number for a run."""
        return self.long if config.getoption("--long") else self.every_run


PAIRS = Size(470, 470)
"""Predicates on each dataset of the main suite: 11 datasets in every run, 32 with ``--long``."""
FUNCTION_PAIRS = Size(350, 720)
"""Predicates that call functions, on each of 2 or 4 datasets."""
TIME_PAIRS = Size(31, 372)
"""Predicates on times, in each of nine zones."""
TERNARY = Size(36, 180)
"""Predicates that are asked with their negation and their unknown."""
JOINS, JOIN_ROUNDS = Size(96, 2400), Size(2, 10)
"""Whole joins, and how often the objects change between them."""
KEY_SETS = Size(100, 800)
"""Sets of a few keys of a join, for each fact, type of key and operator."""
TOP_QUERIES = Size(40, 300)
"""``ORDER BY … LIMIT`` on each of five datasets, before and after objects change."""
TALLIES, AGGREGATIONS = Size(100, 1000), Size(1, 20)
"""Conditions under which objects are counted, and batches of aggregations that run, on each of five datasets."""
