"""The property suite for functions of times and texts: kept ⊇ relevant in many time zones, and every kind skips."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import cycle
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from skipstone import BloomFilterIndex, Dataset, GapListIndex, HybridIndex, MinMaxIndex, ValueListIndex
from tests.soundness.campaign import Campaign, Counts, _names
from tests.soundness.datasets import Spec
from tests.soundness.sizes import TIME_PAIRS
from tests.soundness.times import KINDS, ZONES, TimedNode, TimePredicates, make_times_dataset

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

TYPES = ("minmax", "valuelist", "hybrid", "gaplist", "bloomfilter")
EXECUTED = 0.0


class TimesCampaign(Campaign):
    """One dataset, asked in one zone after another: files of Parquet are the same in all of them."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.spec = Spec(0, types=TYPES)
        self.counts, self.failures = Counts(), []
        self.skipped_by_kind: Counter[str] = Counter()
        self._types = cycle(TYPES)
        self.made = make_times_dataset(self.spec, folder, Random("times"))
        self.df = self.made.read(spark)
        report = Dataset(self.df).create_indexes(
            MinMaxIndex("*"),
            ValueListIndex("*"),
            GapListIndex("*", gaps=3),
            *(HybridIndex(column, threshold=3) for column in ("ts", "s")),
            *(BloomFilterIndex(column) for column in ("id", "dc", "dbl")),
        )
        assert not report.untrusted
        self.everything = frozenset(_names(self.df._jdf.inputFiles()))

    def _generator(self, random: Random) -> Any:
        return TimePredicates(random)

    def ask(self, zone: str, seed: int, pairs: int) -> None:
        """Try predicates in a zone; every other time without the rules of Spark's that take casts off columns."""
        rules = ("UnwrapCastInBinaryComparison",) if seed % 2 else ()
        self.spec = replace(self.spec, seed=seed, zone=zone, ansi=seed % 3 == 0, excluded_rules=rules)
        self.run(self.counts.pairs + pairs, EXECUTED)

    def _report(self, pair: Any, wrong: Any) -> None:
        """Describe it without the row: Python has no datetime for some of these years."""
        lost = {way: sorted(names) for way, names in wrong.items()}
        self.failures.append(f"\nWRONG SKIP in {self.spec}\n  predicate: {pair.predicate}\n  lost: {lost}")

    def _compare(self, pairs: Any, truth: Any) -> None:
        super()._compare(pairs, truth)
        for pair in pairs:
            if isinstance(pair.predicate, TimedNode):
                self.skipped_by_kind[pair.predicate.kind] += len(self.everything - pair.kept)


@pytest.fixture(scope="module")
def campaign(spark, tmp_path_factory, request):
    made = TimesCampaign(spark, tmp_path_factory.mktemp("times"))
    for seed, zone in enumerate(ZONES):
        made.ask(zone, seed, TIME_PAIRS.of(request.config))
    return made


@pytest.mark.timeout(3600)
def test_no_object_with_a_matching_row_is_skipped(campaign):
    assert not campaign.failures, "".join(campaign.failures[:5]) + f"\n\n{len(campaign.failures)} failures"
    assert campaign.counts.pairs >= TIME_PAIRS.every_run * len(ZONES)


@pytest.mark.timeout(3600)
def test_every_kind_of_predicate_skips(campaign, soundness_report):
    soundness_report.append(f"times, {len(ZONES)} zones: {campaign.counts}")
    assert campaign.counts.skipped > campaign.counts.objects / 4
    idle = [kind for kind in KINDS if not campaign.skipped_by_kind[kind]]
    assert not idle, f"nothing was skipped for {idle}: {campaign.skipped_by_kind}"


@pytest.mark.timeout(3600)
def test_every_type_of_index_skipped_by_itself(campaign):
    for type_ in TYPES:
        assert campaign.counts.skipped_by_values[type_] > campaign.counts.alone[type_] / 10, type_
