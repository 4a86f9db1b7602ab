"""The property suite for keys of joins: thousands of sets of keys, each asked for as a join would, against brute force.

No object that holds a key of the set may be left out.  ``join_questions`` tells what of a join such a question covers;
``test_property_joins`` runs whole joins.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random

import pytest

from skipstone import BloomFilterIndex, Dataset, HybridIndex, MinMaxIndex, ValueListIndex
from tests.soundness.join_questions import Fact, JoinQuestion, make_numbered
from tests.soundness.joins import FILES, KEYS, write_fact
from tests.soundness.sizes import KEY_SETS

pytestmark = pytest.mark.slow

MANY, LARGE = 3, 1400
"""Of each fact, key and operator: so many sets of more than a thousand rows."""
INDEXES = {
    "bounds": [MinMaxIndex("*"), MinMaxIndex("st.a")],
    "values": [
        *map(ValueListIndex, ("i", "c", "x", "r", "st.a")),
        *map(BloomFilterIndex, ("l", "t", "b", "d")),
        HybridIndex("s", threshold=3),  # some objects have lists, some filters
    ],
}
_PLANNING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",  # the plan is there at once
    "spark.sql.constraintPropagation.enabled": "false",  # so that NULLs come as far as the keys
}


def numbers(random: Random) -> list[int | None]:
    """Draw numbers that lie close together for a while, some NULL, some twice; then thousands from far and wide."""
    few: list[int | None] = []
    while len(few) < 600:
        near = random.randrange(-1, FILES + 1) * 3
        few += [None if random.random() < 0.2 else near + random.randrange(4) for _ in range(random.randrange(1, 6))]
    return [*few, *(random.choice((1, 100)) * random.randrange(30, 3000) for _ in range(2 * LARGE))]


@pytest.fixture(scope="module")
def outcome(spark, tmp_path_factory, request):
    random, asked, skipped, lost = Random("keys of joins"), Counter(), Counter(), []
    former = {name: spark.conf.get(name) for name in _PLANNING}
    for name, chosen in _PLANNING.items():
        spark.conf.set(name, chosen)
    try:
        for fact, indexes in INDEXES.items():
            folder = tmp_path_factory.mktemp("keys") / fact
            write_fact(folder, random, partitioned=fact == "values")
            Dataset(spark.read.parquet(str(folder))).create_indexes(*indexes)
            spark.read.parquet(str(folder)).createOrReplaceTempView("fact")
            held, drawn = Fact(folder), numbers(random)
            make_numbered(spark, drawn)
            for key, op in product(KEYS, ("=", "<=>")):
                question = JoinQuestion(spark, held, drawn, key, op)
                small = len(drawn) - 2 * LARGE
                starts = [random.randrange(small) for _ in range(KEY_SETS.of(request.config))]
                sets = [(first, first + random.choice((1, 1, 2, 3, 5, 8, 20))) for first in starts]
                sets += [(small + random.randrange(LARGE), len(drawn)) for _ in range(MANY)]
                for first, last in sets:
                    left_out, holding = question.ask(first, last)
                    asked[key] += 1
                    skipped[key] += len(left_out)
                    if left_out & holding:
                        lost.append(f"{key} {op} in {fact}: {drawn[first:last]} loses {sorted(left_out & holding)}")
        yield asked, skipped, lost
    finally:
        for name, chosen in former.items():
            spark.conf.set(name, chosen)


@pytest.mark.timeout(3600)
def test_no_object_with_a_key_is_left_out(outcome, soundness_report):
    asked, skipped, lost = outcome
    soundness_report.append(f"keys of joins: {sum(asked.values())} sets, objects skipped: {dict(skipped)}")
    assert not lost, "\n".join(lost[:5]) + f"\n{len(lost)} in all"
    assert sum(asked.values()) >= 2 * 2 * len(KEYS) * KEY_SETS.every_run


@pytest.mark.timeout(3600)
def test_keys_of_every_type_leave_something_out(outcome):
    _, skipped, _ = outcome
    assert not [key for key in KEYS if key != "function" and not skipped[key]], skipped
