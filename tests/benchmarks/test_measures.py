"""What takes turns has as many rounds as its time allows."""

from __future__ import annotations

import pytest
from benchmarks.measures import Subject, interleave

from benchmarks import measures


@pytest.mark.parametrize(
    ("slow", "budget", "rounds"), [(1, 30, 9), (4, 30, 8), (20, 30, 3), (20, 10_000, 9), (20, None, 9)]
)
def test_rounds_end_with_the_budget_of_the_slowest_and_not_before_three(slow, budget, rounds, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(measures.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(measures, "cpu_seconds", lambda: 0.0)

    def takes(seconds):
        def run():
            clock[0] += seconds

        return Subject(run)

    limit = {} if budget is None else {"budget": budget}
    taken = interleave({"slow": takes(slow), "fast": takes(0.1)}, repeats=9, **limit)
    assert {name: len(sample.seconds) for name, sample in taken.items()} == {"slow": rounds, "fast": rounds}
    assert taken["slow"].median == pytest.approx(slow)
