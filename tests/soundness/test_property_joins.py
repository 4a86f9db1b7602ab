"""The property suite for joins: the same rows with keys of joins on and off, and every kind that may skip does."""

from __future__ import annotations

from collections import Counter
from itertools import cycle
from random import Random
from typing import TYPE_CHECKING

import pytest

from skipstone import BloomFilterIndex, Dataset, HybridIndex, MinMaxIndex, ValueListIndex, skipping_stats
from tests.soundness.joins import KEEPING, KEYS, SKIPPING, Joins, Query, make_dimensions, write_fact, write_file
from tests.soundness.sizes import JOIN_ROUNDS, JOINS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

BATCH = 12
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Compiling takes longer than all the rest of these queries."""
FACTS = ("bounds", "values")


class JoinCampaign:
    """Asks queries in batches, each batch one statement: Spark's own cost of a statement is most of the time."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder, self.random = spark, folder, Random("joins")
        self.skipped: Counter[str] = Counter()
        self.skipped_by_key: Counter[str] = Counter()
        self.queries: Counter[str] = Counter()
        self.failures: list[str] = []
        lists = [*map(ValueListIndex, ("i", "c", "x", "r", "st.a")), HybridIndex("s", threshold=3)]
        indexes = {
            "bounds": [MinMaxIndex("*"), MinMaxIndex("st.a")],
            "values": [*lists, *map(BloomFilterIndex, ("l", "t", "b", "d"))],
        }
        for name in FACTS:
            write_fact(folder / name, self.random, partitioned=name == "values")
            report = Dataset(self.read(name)).create_indexes(*indexes[name])
            assert not report.untrusted

    def read(self, name: str):
        return self.spark.read.parquet(str(self.folder / name))

    def change(self, round_: int) -> None:
        """Let objects be other than the metadata says: one rewritten, one new, and other dimensions."""
        for name in FACTS if round_ else ():
            folder = self.folder / name / ("p=0" if name == "values" else "")
            write_file(folder / "file-01.parquet", 7 + round_, self.random)
            write_file(folder / "file-99.parquet", 9 + round_, self.random)
        make_dimensions(self.spark, self.random)

    def run(self, queries: int, rounds: int) -> None:
        kinds = cycle((*SKIPPING, *KEEPING))
        drawn, number = Joins(self.random), 0
        for round_ in range(rounds):
            self.change(round_)
            for batch in range(queries // rounds // BATCH):
                self.read(FACTS[batch % len(FACTS)]).createOrReplaceTempView("fact")
                self.ask(
                    [drawn.query(number + n, next(kinds)) for n in range(BATCH)],
                    ansi=batch % 2 == 0,
                    interpreted=batch % 5 > 0,
                )
                number += BATCH

    def ask(self, queries: list[Query], *, ansi: bool, interpreted: bool) -> None:
        text = " union all ".join(f"select {q.number} q, a, b, g from ({q.sql})" for q in queries)
        settings = {"spark.sql.ansi.enabled": str(ansi).lower(), **(_INTERPRETED if interpreted else {})}
        for name, chosen in settings.items():
            self.spark.conf.set(name, chosen)
        try:
            with skipping_stats(self.spark) as stats:
                found = self.rows(text)
            self.spark.conf.set("spark.skipstone.joins", "false")
            without = self.rows(text)
        finally:
            for name in ("spark.skipstone.joins", *settings):
                self.spark.conf.unset(name)
        for query in queries:
            self.queries[query.kind] += 1
            asked = [s.joins for s in stats if s.joins is not None and any(map(query.is_in, s.joins.keys))]
            skipped = sum(joins.skipped for joins in asked)
            self.skipped[query.kind] += skipped
            if query.kind not in ("several keys", "star", "self", "value or range"):
                self.skipped_by_key[query.key] += skipped
            if found[query.number] != without[query.number]:
                lost = without[query.number] - found[query.number]
                self.failures.append(
                    f"\n{query.kind} by {query.key}: {query.sql}\n  lost {lost}, skipped {skipped}: {asked}"
                )

    def rows(self, text: str) -> dict[int, Counter]:
        found: dict[int, Counter] = {}
        for q, *row in self.spark.sql(text).collect():
            found.setdefault(q, Counter())[tuple(row)] += 1
        return _Answers(found)


class _Answers(dict):
    def __missing__(self, number: int) -> Counter:
        return Counter()


@pytest.fixture(scope="module")
def campaign(spark, tmp_path_factory, request):
    former = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    made = JoinCampaign(spark, tmp_path_factory.mktemp("joins"))
    try:
        made.run(JOINS.of(request.config), JOIN_ROUNDS.of(request.config))
        yield made
    finally:
        spark.conf.set("spark.sql.session.timeZone", former)


@pytest.mark.timeout(3600)
def test_joins_answer_as_without_their_keys(campaign):
    assert not campaign.failures, "".join(campaign.failures[:5]) + f"\n\n{len(campaign.failures)} failures"
    assert sum(campaign.queries.values()) >= JOINS.every_run


@pytest.mark.timeout(3600)
def test_every_kind_of_join_that_may_skip_does(campaign, soundness_report):
    soundness_report.append(
        f"joins: {sum(campaign.queries.values())} queries, objects skipped: {dict(campaign.skipped)}"
    )
    idle = [kind for kind in SKIPPING if not campaign.skipped[kind]]
    assert not idle, f"nothing was skipped for {idle}: {campaign.skipped}"


@pytest.mark.timeout(3600)
def test_no_other_kind_of_join_skips(campaign):
    assert not [kind for kind in KEEPING if campaign.skipped[kind]], campaign.skipped


@pytest.mark.timeout(3600)
def test_keys_of_every_type_skip(campaign):
    idle = [key for key in KEYS if key != "function" and not campaign.skipped_by_key[key]]
    assert not idle, f"nothing was skipped for {idle}: {campaign.skipped_by_key}"
