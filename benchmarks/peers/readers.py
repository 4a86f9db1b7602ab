"""DuckDB and Polars on the files themselves: the same predicate, as each of them spells it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

__all__ = ["DuckDB", "Polars", "versions"]


def versions() -> dict[str, str]:
    """Return which releases were measured."""
    from importlib.metadata import version

    return {name: version(name) for name in ("duckdb", "polars")}


class DuckDB:
    """DuckDB over all files below a folder, found again for each query."""

    def __init__(self, root: str, threads: int) -> None:
        import duckdb

        self._root = root
        self._connection = duckdb.connect(config={"threads": threads})
        self._connection.execute("SET TimeZone = 'UTC'")

    def ask(self, predicate: str, columns: list[str]) -> list[Any]:
        """Run a query to its answer."""
        query = (
            f"SELECT {', '.join(columns)} FROM read_parquet('{self._root}/*/*.parquet', hive_partitioning = true) "
            f"WHERE {predicate}"
        )
        return list(self._connection.execute(query).fetchall()[0])


class Polars:
    """Polars over all files below a folder, found again for each query."""

    def __init__(self, root: str, options: dict[str, str] | None = None) -> None:
        self._root = root
        self._options = options

    def ask(self, box: tuple[float, float, float, float], span: tuple[datetime, datetime]) -> list[Any]:
        """Count the rows of a box and a span of time, with the mean of ``temp`` and the greatest ``wind_gust``."""
        import polars as pl

        south, north, west, east = box
        scan = pl.scan_parquet(f"{self._root}/*/*.parquet", hive_partitioning=True, storage_options=self._options)
        found = scan.filter(
            pl.col("lat").is_between(south, north)
            & pl.col("lng").is_between(west, east)
            & pl.col("ts").is_between(*span)
        )
        answer = found.select(pl.len(), pl.col("temp").cast(pl.Float64).mean(), pl.col("wind_gust").max()).collect()
        return list(answer.row(0))
