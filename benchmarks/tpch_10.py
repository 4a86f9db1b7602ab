"""The 22 queries of TPC-H at scale 10; see ``benchmarks.tpch``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.tpch import Rounds, every_query

if TYPE_CHECKING:
    from benchmarks.measures import Row


def measure(*, small: bool) -> list[Row]:
    """Measure every query twice and short ones more often, after a run in which their answers are compared."""
    return every_query(0.01, Rounds(2, 2), small=True) if small else every_query(10, Rounds(least=2), small=False)
