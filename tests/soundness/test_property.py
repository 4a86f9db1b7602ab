"""The property suite: kept ⊇ relevant for every pair of a random dataset and a random predicate, and the same rows.

The seed is fixed, so that a failure repeats.  Every run has over five thousand pairs on eleven datasets; ``--long`` has
all datasets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skipstone.stores.parts import buckets
from tests.soundness.campaign import Campaign, Counts, Outcome
from tests.soundness.datasets import RAW_RULES, Spec
from tests.soundness.planning import INDEX_TYPES
from tests.soundness.sizes import PAIRS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

_SOME = ("OptimizeIn", "BooleanSimplification", "UnwrapCastInBinaryComparison")
_NUMBERS, _TEXTS = ("integer", "decimal", "float"), ("string", "binary")
_TIMES, _REST = ("date", "moment", "clock"), ("boolean", "months", "seconds", "clock")

SPECS = (
    # every type of column under every type of index
    Spec(1),
    Spec(2, by_spark=True, zone="America/New_York"),
    Spec(3, split=True, threshold=1, zone="Asia/Kolkata"),
    Spec(4, format="orc", threshold=10_000),
    Spec(5, format="json", fpp=0.3),
    Spec(6, format="csv"),
    Spec(7, inferred=True, ansi=True),
    Spec(8, excluded_rules=RAW_RULES),
    # fewer columns: more predicates on each, and more that meet on one column
    Spec(11, families=("float",), threshold=2),
    Spec(12, families=("string",), threshold=3),
    Spec(13, families=_TEXTS, by_spark=True),
    Spec(14, families=_NUMBERS, excluded_rules=_SOME),
    Spec(15, families=_TIMES, zone="America/New_York"),
    Spec(16, families=_REST, fpp=0.001),
    Spec(17, families=("float", "decimal"), excluded_rules=RAW_RULES, split=True),
    Spec(18, families=("integer", "boolean"), ansi=True),
    Spec(19, families=("string", "date", "moment"), format="json", zone="America/New_York"),
    Spec(20, families=("float", "string"), format="csv", excluded_rules=_SOME),
    Spec(21, families=("moment", "decimal", "float"), format="orc", zone="Asia/Kolkata"),
    Spec(22, families=_TEXTS, excluded_rules=RAW_RULES),
    Spec(23, families=("date", "moment"), ansi=True, excluded_rules=_SOME),
    # one type of index alone; bounds come from footers, from Spark's aggregates, or from the rows
    Spec(31, types=("minmax",)),
    Spec(32, types=("minmax",), by_spark=True, families=(*_NUMBERS, *_TEXTS)),
    Spec(33, types=("minmax",), format="csv"),
    Spec(34, types=("minmax",), families=(*_TIMES, "string"), zone="America/New_York"),
    Spec(35, types=("valuelist",), families=(*_NUMBERS, "string")),
    Spec(36, types=("bloomfilter",), families=(*_NUMBERS, *_TEXTS, "date"), fpp=0.05),
    Spec(37, types=("hybrid",), families=(*_NUMBERS, "string", "moment"), threshold=2),
    Spec(38, types=("gaplist",), gaps=1),
    Spec(39, types=("gaplist",), gaps=6, families=(*_NUMBERS, *_TEXTS), split=True),
    Spec(40, types=("prefix", "suffix"), families=("string",), length=1),
    Spec(41, types=("prefix", "suffix"), families=("string",), length=5, excluded_rules=RAW_RULES),
)
# Making and indexing a dataset takes as long as planning hundreds of predicates on it.  Every run has every type of
# column, index and file, each way to collect, ANSI, zones, and conditions as they were written.
_EVERY_RUN = {1, 3, 4, 6, 7, 8, 12, 15, 17, 19, 41}
EVERY_RUN = tuple(spec for spec in SPECS if spec.seed in _EVERY_RUN)
EXECUTED = 0.085


class Runs:
    """The datasets' shares that have run so far, in whatever order the tests ask for them."""

    def __init__(self, spark: SparkSession, folder: Path, pairs: int) -> None:
        self._spark, self._folder, self._pairs = spark, folder, pairs
        self._outcomes: dict[Spec, Outcome] = {}

    def of(self, spec: Spec) -> Outcome:
        if spec not in self._outcomes:
            with pytest.MonkeyPatch.context() as patch:
                if spec.seed % 2:  # keep sets and filters in buckets, however small they are
                    for name, value in (
                        ("SMALLEST", 0),
                        ("_BUCKET_BYTES", 16),
                        ("LEAST_SLICE", 1),
                        ("MOST_GROWTH", 1e9),
                    ):
                        patch.setattr(buckets, name, value)
                campaign = Campaign(self._spark, spec, self._folder / f"dataset-{spec.seed}")
                self._outcomes[spec] = campaign.run(self._pairs, EXECUTED)
        return self._outcomes[spec]


@pytest.fixture(scope="module")
def runs(spark, tmp_path_factory, request):
    return Runs(spark, tmp_path_factory.mktemp("soundness"), PAIRS.of(request.config))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "spec",
    [pytest.param(s, id=f"seed-{s.seed}", marks=() if s in EVERY_RUN else pytest.mark.long) for s in SPECS],
)
def test_no_object_with_a_matching_row_is_skipped(runs, spec):
    outcome = runs.of(spec)
    assert not outcome.failures, "".join(outcome.failures[:5]) + f"\n\n{len(outcome.failures)} failures"
    assert outcome.counts.skipped, f"nothing was skipped in {spec}: the test says nothing"


@pytest.mark.timeout(3600)
def test_enough_was_tried_and_every_type_of_index_skipped_by_itself(runs, soundness_report, request):
    total = Counts()
    specs = SPECS if request.config.getoption("--long") else EVERY_RUN
    for spec in specs:
        total += runs.of(spec).counts
    soundness_report.append(f"{len(specs)} datasets: {total}")
    assert total.pairs >= 5_000
    assert total.executed >= 400
    assert total.skipped > total.objects / 5
    for type_ in INDEX_TYPES:
        # More objects than its counts of NULLs alone would skip, and many of them.
        assert total.skipped_by_values[type_] > total.alone[type_] / 2, f"{type_} hardly skips: {total}"
