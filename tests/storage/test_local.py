"""Two processes that write to one local disk at the same instants: one winner each time, nothing lost."""

from __future__ import annotations

from tests.storage.races import race
from tests.storage.workers import workers


def test_two_processes_have_one_winner_each_time(tmp_path):
    with workers(2, tmp_path) as processes:
        race(processes, f"file:{tmp_path}/a b%20c", files=300, versions=40)
