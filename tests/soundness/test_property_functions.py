"""The property suite for index types that serve functions: kept ⊇ relevant, by all indexes and by each type alone."""

from __future__ import annotations

from itertools import cycle
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from skipstone import Dataset
from tests.soundness.campaign import Campaign, Counts, _names
from tests.soundness.datasets import RAW_RULES, Spec
from tests.soundness.functions import (
    FUNCTION_TYPES,
    FunctionPredicates,
    indexes,
    make_function_dataset,
    register,
)
from tests.soundness.sizes import FUNCTION_PAIRS
from tests.support import conf

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

SPECS = (
    Spec(1, types=FUNCTION_TYPES, objects=14),
    Spec(2, types=FUNCTION_TYPES, objects=14, gaps=4, threshold=1),
    Spec(3, types=FUNCTION_TYPES, objects=14, excluded_rules=RAW_RULES),
    Spec(4, types=FUNCTION_TYPES, objects=14, ansi=True, split=True),
)
EVERY_RUN = tuple(spec for spec in SPECS if spec.seed in {1, 3})
EXECUTED = 0.05


class FunctionCampaign(Campaign):
    """A dataset whose predicates call functions."""

    def __init__(self, spark: SparkSession, spec: Spec, folder: Path) -> None:
        self.spark, self.spec = spark, spec
        self.counts, self.failures = Counts(), []
        self._types = cycle(spec.types)
        register(spark)
        with conf(spark, spec.conf):
            self.made = make_function_dataset(spec, folder, Random(f"functions {spec.seed}"))
            self.df = self.made.read(spark)
            splits = {"spark.sql.files.maxPartitionBytes": "512", "spark.sql.files.openCostInBytes": "0"}
            with conf(spark, splits if spec.split else {}):
                report = Dataset(self.df).create_indexes(*indexes(spec))
            assert report.indexed == spec.objects
            assert not report.problems
        self.everything = frozenset(_names(self.df._jdf.inputFiles()))

    def _generator(self, random: Random) -> Any:
        return FunctionPredicates(random)


@pytest.fixture(scope="module")
def outcomes(spark, tmp_path_factory, request):
    pairs = FUNCTION_PAIRS.of(request.config)
    folder = tmp_path_factory.mktemp("functions")
    found = {}

    def of(spec):
        if spec not in found:
            found[spec] = FunctionCampaign(spark, spec, folder / f"dataset-{spec.seed}").run(pairs, EXECUTED)
        return found[spec]

    return of


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "spec",
    [pytest.param(s, id=f"seed-{s.seed}", marks=() if s in EVERY_RUN else pytest.mark.long) for s in SPECS],
)
def test_no_object_with_a_matching_row_is_skipped(outcomes, spec):
    outcome = outcomes(spec)
    assert not outcome.failures, "".join(outcome.failures[:5]) + f"\n\n{len(outcome.failures)} failures"
    assert outcome.counts.skipped, f"nothing was skipped in {spec}: the test says nothing"


@pytest.mark.timeout(3600)
def test_every_type_of_index_skipped_by_itself(outcomes, soundness_report, request):
    total = Counts()
    specs = SPECS if request.config.getoption("--long") else EVERY_RUN
    for spec in specs:
        total += outcomes(spec).counts
    soundness_report.append(f"functions, {len(specs)} datasets: {total}")
    assert total.pairs >= 700
    assert total.skipped > total.objects / 10
    for type_ in FUNCTION_TYPES:
        assert total.skipped_by_values[type_] > total.alone[type_] / 4, f"{type_} hardly skips: {total}"
