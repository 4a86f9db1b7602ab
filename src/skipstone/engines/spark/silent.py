"""Collecting without telling: the index job of a protected index leaves its plan in no event log.

An index with a key may keep values in its options: predicates, origins, names of functions.  They are part of the plan
that collects it, and Spark tells the plan of every SQL execution to its event log and its web interface.  So that plan
is run as a plain job, of which stages and tasks are told and nothing else (docs/security.md).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from skipstone.engines.spark.client import Client

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from skipstone.indexing.source import BoundIndex

__all__ = ["collect_silently", "must_be_silent"]

_LENGTH_BYTES = 4


def must_be_silent(bound: Iterable[BoundIndex]) -> bool:
    """Whether one of the indexes is protected, so that nothing may show what is computed for it."""
    return any(b.index.key is not None for b in bound)


def collect_silently(frame: DataFrame) -> list[bytes]:
    """Return the values of a DataFrame's only column, which is binary, by a job whose plan is in no log."""
    with tempfile.TemporaryDirectory(prefix="skipstone-") as folder:
        file = Path(folder) / "values"
        Client(frame.sparkSession).collect_silently(frame, file)
        data = file.read_bytes()
    found = []
    place = 0
    while place < len(data):
        start = place + _LENGTH_BYTES
        place = start + int.from_bytes(data[place:start], "big")
        found.append(data[start:place])
    return found
