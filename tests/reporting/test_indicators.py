"""The indicators as numbers: the paper's definitions, their equation, means over a workload, and what is the limit."""

from __future__ import annotations

import json
import math
import statistics
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skipstone.errors import SkipstoneError
from skipstone.reporting.explain import indicator_lines
from skipstone.reporting.indicators import FACTORS, Indicators, WorkloadIndicators

# Five objects of 100, 100, 100, 50 and 50 rows; 30 and 10 rows of the first and the fourth are relevant; the metadata
# keeps these two and the second.
BY_HAND = Indicators(
    objects=5,
    relevant_objects=2,
    kept_objects=3,
    rows=400,
    relevant_rows=40,
    rows_in_relevant_objects=150,
    rows_in_kept_objects=250,
)
NOTHING = Indicators(5, 0, 2, 400, 0, 0, 200)


def test_the_definitions_by_hand():
    assert BY_HAND.selectivity == 40 / 400
    assert BY_HAND.layout_factor == 40 / 150
    assert BY_HAND.metadata_factor == 150 / 250
    assert BY_HAND.scanning_factor == 250 / 400
    assert BY_HAND.factors() == tuple(getattr(BY_HAND, factor) for factor in FACTORS)


@st.composite
def counts(draw: st.DrawFn) -> Indicators:
    """Draw objects with rows, relevant rows and whether they are kept, and count."""
    objects = draw(
        st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.booleans()), max_size=8).map(
            lambda drawn: [(rows, min(rows, hits), kept or min(rows, hits) > 0) for rows, hits, kept in drawn]
        )
    )
    relevant = [(rows, hits) for rows, hits, _ in objects if hits]
    kept = [rows for rows, _, keep in objects if keep]
    return Indicators(
        objects=len(objects),
        relevant_objects=len(relevant),
        kept_objects=len(kept),
        rows=sum(rows for rows, _, _ in objects),
        relevant_rows=sum(hits for _, hits in relevant),
        rows_in_relevant_objects=sum(rows for rows, _ in relevant),
        rows_in_kept_objects=sum(kept),
    )


@given(counts())
def test_the_equation_and_the_bounds(found):
    if found.relevant_rows == 0:
        assert found.factors() == (None, None, None, None)
        assert found.limit is None
        return
    sigma = Fraction(found.relevant_rows, found.rows)
    lam = Fraction(found.relevant_rows, found.rows_in_relevant_objects)
    mu = Fraction(found.rows_in_relevant_objects, found.rows_in_kept_objects)
    psi = sigma / (lam * mu)
    assert found.factors() == pytest.approx([float(f) for f in (sigma, lam, mu, psi)])
    assert 0 < sigma <= psi <= 1
    assert lam <= 1
    assert mu <= 1
    layout, metadata = found.costs
    assert layout >= 1
    assert metadata == pytest.approx(1 / float(mu))
    assert found.limit == (
        None if layout * metadata < 2 - 1e-6 else "layout" if layout > metadata * (1 + 1e-6) else "metadata"
    )


@given(st.lists(counts(), max_size=6))
def test_means_are_geometric_and_keep_the_equation(queries):
    workload = WorkloadIndicators(queries)
    defined = [q for q in queries if q.relevant_rows]
    assert list(workload) == queries
    assert workload.left_out == len(queries) - len(defined)
    if not defined:
        assert workload.factors() == (None, None, None, None)
        return
    for factor in FACTORS:
        assert getattr(workload, factor) == pytest.approx(
            statistics.geometric_mean([getattr(q, factor) for q in defined])
        )
    product = workload.layout_factor * workload.metadata_factor
    assert workload.scanning_factor == pytest.approx(workload.selectivity / product)
    assert (workload.limit is None) == all(q.limit is None for q in defined)


def test_an_empty_workload_and_an_empty_dataset():
    assert WorkloadIndicators([]).as_dict() == {
        "queries": [],
        "left_out": 0,
        "geometric_means": dict.fromkeys(FACTORS),
        "limit": None,
    }
    assert Indicators(0, 0, 0, 0, 0, 0, 0).factors() == (None, None, None, None)
    assert Indicators(2, 0, 2, 0, 0, 0, 0).limit is None


@pytest.mark.parametrize(
    "impossible",
    [
        (5, 3, 2, 400, 40, 150, 250),  # a relevant object that is not kept
        (5, 2, 6, 400, 40, 150, 250),
        (5, 2, 3, 400, 160, 150, 250),
        (5, 2, 3, 400, 40, 260, 250),
        (5, 2, 3, 200, 40, 150, 250),
        (5, 2, 3, 400, 0, 150, 250),
        (5, 0, 3, 400, 40, 150, 250),
        (-1, 0, 0, 0, 0, 0, 0),
    ],
)
def test_counts_that_cannot_be_are_refused(impossible):
    with pytest.raises(SkipstoneError, match="cannot be those of a query"):
        Indicators(*impossible)


@pytest.mark.parametrize(
    ("found", "limit", "said"),
    [
        # 100 relevant rows, which one object of 100 could hold, are spread over all ten.
        (Indicators(10, 10, 10, 1000, 100, 1000, 1000), "layout", "over 10 objects and would fit into 1"),
        # They lie in one object, and all are read.
        (Indicators(10, 1, 10, 1000, 100, 100, 1000), "metadata", "9 of the 10 objects that are read hold no relevant"),
        # Both cost the same: metadata is cheaper to change.
        (Indicators(100, 5, 25, 10_000, 100, 500, 2_500), "metadata", "20 of the 25"),
        # One row of one object: the layout factor is 0.01, and no layout could do better.
        (Indicators(10, 1, 1, 1000, 1, 100, 100), None, "Neither"),
        (Indicators(10, 10, 10, 1000, 900, 1000, 1000), None, "Neither"),
    ],
)
def test_what_is_the_limit(found, limit, said):
    assert found.limit == limit
    text = "\n".join(indicator_lines(found))
    assert said in text
    assert ("is the limit" in text) == (limit is not None)
    for value in found.factors():
        assert f"{value:.3g}" in text


def test_the_limit_of_a_workload_is_that_of_the_queries_that_have_one():
    needle = Indicators(10, 1, 1, 1000, 1, 100, 100)
    spread = Indicators(10, 10, 10, 1000, 100, 1000, 1000)
    vague = Indicators(10, 1, 2, 1000, 100, 100, 200)
    assert WorkloadIndicators([needle, needle]).limit is None
    assert WorkloadIndicators([needle, spread, vague]).limit == "layout"
    assert WorkloadIndicators([needle, vague, vague]).limit == "metadata"


def test_without_a_relevant_row_the_text_says_what_was_read_in_vain():
    text = "\n".join(indicator_lines(NOTHING))
    assert "no row of 400 is relevant" in text
    assert "2 objects are read" in text
    assert "metadata is the limit" in text
    assert "limit" not in "\n".join(indicator_lines(Indicators(5, 0, 0, 400, 0, 0, 0)))


def test_json_has_counts_factors_and_limit():
    document = json.loads(json.dumps(WorkloadIndicators([BY_HAND, NOTHING]).as_dict()))
    assert document["left_out"] == 1
    assert document["queries"][0]["rows_in_kept_objects"] == 250
    assert document["queries"][0]["scanning_factor"] == 0.625
    assert document["queries"][1]["scanning_factor"] is None
    assert math.isclose(document["geometric_means"]["metadata_factor"], 0.6)
