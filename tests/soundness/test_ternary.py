"""Ternary partition: p, NOT p and p IS NULL split the rows, with skipping as without."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.soundness.campaign import INTERPRETED, SPARK_ERRORS, Campaign, truths
from tests.soundness.datasets import RAW_RULES, Spec
from tests.soundness.predicates import Generator
from tests.soundness.sizes import TERNARY
from tests.support import conf

pytestmark = pytest.mark.slow

SPECS = (Spec(51, objects=8), Spec(52, objects=8, families=("float", "string", "boolean"), excluded_rules=RAW_RULES))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"seed-{spec.seed}")
def test_a_predicate_its_negation_and_its_unknown_split_the_rows(spark, tmp_path, spec, request):
    campaign = Campaign(spark, spec, tmp_path / "dataset")
    generator = Generator(campaign.made, Random("ternary"))
    wanted = TERNARY.of(request.config)
    tried = skipped = 0
    # What Spark pushes into Parquet loses NaN, and dates that the Julian calendar lacks, by itself.
    with conf(spark, {**spec.conf, "spark.sql.parquet.filterPushdown": "false"}):
        every = Counter(row.rid for row in campaign.df.select("rid").collect())
        while tried < wanted:
            predicates = [generator.predicate(2) for _ in range(6)]
            try:
                known = truths(spark, campaign.df, predicates)
            except SPARK_ERRORS:  # not analysable, or an error at run time
                continue
            parts = _parts(spark, campaign.df, predicates)
            for predicate, truth, (true, false, unknown) in zip(predicates, known, parts, strict=True):
                said = f"{predicate} in {spec}"
                assert true + false + unknown == every, f"{said}: {true} + {false} + {unknown} is not {every}"
                assert true == truth.rows, f"{said}: {true} where {truth.rows} are TRUE"
                assert (false.total(), unknown.total()) == (truth.false, truth.null), said
            tried += len(predicates)
            skipped += sum(len(campaign.everything) - len(p.kept) for p in map(campaign.plan, predicates) if p)
    assert skipped > tried


def _parts(spark, df, predicates):
    """Run three queries for each predicate, all in one job, with skipping."""
    joined = None
    for number, predicate in enumerate(predicates):
        for place, shape in enumerate(("{}", "NOT ({})", "({}) IS NULL")):
            some = df.where(shape.format(predicate)).selectExpr(f"{number} AS n", f"{place} AS place", "rid")
            joined = some if joined is None else joined.unionAll(some)
    with conf(spark, INTERPRETED):
        rows = joined.collect()
    found = [(Counter(), Counter(), Counter()) for _ in predicates]
    for row in rows:
        found[row.n][row.place][row.rid] += 1
    return found
