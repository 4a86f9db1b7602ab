"""Random workloads as the paper draws them, and their indicators, with one pass over the data for all queries.

``Dataset.indicators`` runs each query by itself; here each object's column is read once, its distinct values are
counted, and every query of the workload is asked of them.  Which objects a query keeps is Spark's own plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skipstone.reporting.indicators import Indicators, WorkloadIndicators

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from benchmarks.datasets.writing import Generated


@dataclass(frozen=True)
class Query:
    """A predicate as Spark reads it, and as a mask of distinct values."""

    predicate: str
    matches: Callable[[pa.Array], pa.Array]


def objects(generated: Generated) -> list[Path]:
    """Return the files of a dataset in the order of their names."""
    return sorted(path for path in Path(generated.path).rglob("*.parquet") if not path.name.startswith("_"))


# Workloads --------------------------------------------------------------------------------------------------------


def patterns(generated: Generated, column: str, count: int, seed: int, *, suffix: bool = False) -> list[Query]:
    """Draw LIKE patterns: the beginning (or end), of random size, of the column's value in a random row."""
    rng = np.random.default_rng(seed)
    files = objects(generated)
    queries = []
    for _ in range(count):
        values = column_of(files[rng.integers(len(files))], column)
        value = values[int(rng.integers(len(values)))].as_py()
        size = int(rng.integers(1, len(value) + 1))
        queries.append(_ends_with(column, value[-size:]) if suffix else _starts_with(column, value[:size]))
    return queries


def _starts_with(column: str, text: str) -> Query:
    return Query(f"{column} LIKE '{_escaped(text)}%'", lambda values: pc.starts_with(values, text))


def _ends_with(column: str, text: str) -> Query:
    return Query(f"{column} LIKE '%{_escaped(text)}'", lambda values: pc.ends_with(values, text))


def _escaped(text: str) -> str:
    """Write text as part of a LIKE pattern in a SQL literal: wildcards lose their meaning."""
    for character in "\\%_":
        text = text.replace(character, f"\\{character}")
    return text.replace("\\", "\\\\").replace("'", "\\'")


def agents(generated: Generated, count: int, seed: int) -> list[Query]:
    """Draw names of user agents that occur in the dataset, each name as likely as any other."""
    rng = np.random.default_rng(seed)
    distinct = {agent for file in objects(generated) for agent in pc.unique(column_of(file, "user_agent")).to_pylist()}
    names = sorted({agent_name(agent) for agent in distinct})
    return [_agent_is(names[number]) for number in rng.integers(0, len(names), count)]


def _agent_is(name: str) -> Query:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    predicate = f"getAgentName(user_agent) = '{escaped}'"
    return Query(predicate, lambda values: pa.array([agent_name(value) == name for value in values.to_pylist()]))


@cache
def agent_name(user_agent: str) -> str:
    """Return what ``getAgentName`` gives."""
    from ua_parser import parse_user_agent

    agent = parse_user_agent(user_agent)
    return "Other" if agent is None else agent.family


# Indicators -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hits:
    """Relevant rows of each query in each object."""

    names: dict[str, int]  # the place of an object by its path below the dataset's folder
    rows: np.ndarray  # of each object
    hits: np.ndarray  # queries by objects

    def indicators(self, query: int, kept: set[str]) -> Indicators:
        """Return the indicators of a query that keeps these objects."""
        relevant = self.hits[query] > 0
        is_kept = np.zeros(len(self.rows), bool)
        is_kept[[self.names[name] for name in kept]] = True
        return Indicators(
            objects=len(self.rows),
            relevant_objects=int(relevant.sum()),
            kept_objects=int(is_kept.sum()),
            rows=int(self.rows.sum()),
            relevant_rows=int(self.hits[query].sum()),
            rows_in_relevant_objects=int(self.rows[relevant].sum()),
            rows_in_kept_objects=int(self.rows[is_kept].sum()),
        )


def count_hits(generated: Generated, column: str, queries: list[Query]) -> Hits:
    """Count the relevant rows of all queries in one pass."""
    files = objects(generated)
    names = {str(file.relative_to(generated.path)): place for place, file in enumerate(files)}
    rows, hits = np.zeros(len(files), np.int64), np.zeros((len(queries), len(files)), np.int64)
    for place, values, counts in _distinct(files, column):
        rows[place] = counts.sum()
        for number, query in enumerate(queries):
            hits[number, place] = counts[query.matches(values).to_numpy(zero_copy_only=False)].sum()
    return Hits(names, rows, hits)


def workload_indicators(df: DataFrame, root: str, queries: list[Query], hits: Hits) -> WorkloadIndicators:
    """Return the indicators of a workload from what Spark would read for each query."""
    return WorkloadIndicators(
        [hits.indicators(number, kept(df.where(query.predicate), root)) for number, query in enumerate(queries)]
    )


def kept(df: DataFrame, root: str) -> set[str]:
    """Return the objects that a query reads, by their paths below the dataset's folder."""
    below = f"{root.rstrip('/')}/".partition(":")[2].lstrip("/") if ":" in root else f"{root.strip('/')}/"
    return {unquote(file).partition(below)[2] for file in df.inputFiles()}


def column_of(file: Path, column: str) -> pa.Array:
    """Read one column of an object."""
    return pq.ParquetFile(file).read(columns=[column]).column(0).combine_chunks()


def _distinct(files: list[Path], column: str) -> Iterator[tuple[int, pa.Array, np.ndarray]]:
    """Yield, for each object, the distinct values of a column and how many rows have each."""
    for place, file in enumerate(files):
        counted = column_of(file, column).value_counts()
        yield place, counted.field("values"), counted.field("counts").to_numpy()
