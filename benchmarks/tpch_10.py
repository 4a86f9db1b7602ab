"""The 22 queries of TPC-H at scale 10; see ``benchmarks.tpch``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.tpch import every_query

if TYPE_CHECKING:
    from benchmarks.measures import Row


def measure(*, small: bool) -> list[Row]:
    """Measure every query twice, after a run in which their answers are compared."""
    return every_query(0.01 if small else 10, rounds=2, small=small)
