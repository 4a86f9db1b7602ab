"""Queries on the command line: predicates and SELECTs, as arguments or in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skipstone.cli.support import workload_statements
from skipstone.errors import WorkloadError

if TYPE_CHECKING:
    from skipstone.cli.support import Reading
    from skipstone.reporting.report.workload import Statement

__all__ = ["QueriesArgument", "WorkloadOption", "asked"]

QueriesArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[QUERY]...", help="Predicates, or whole SELECTs in which the dataset is called dataset."),
]
WorkloadOption = Annotated[
    Path | None, typer.Option("--workload", "-w", metavar="FILE", help="More of them, each ended by ;")
]


def asked(
    reading: Reading, path: str | None, queries: list[str] | None, workload: Path | None
) -> tuple[str | None, list[Statement]]:
    """Return the path, which with ``--table`` is a query, and the queries.

    Raises
    ------
    WorkloadError
        When there is no query.
    """
    from skipstone.reporting.report.workload import Statement

    given = list(queries or ())
    if reading.table is not None and path is not None:
        given, path = [path, *given], None
    listed = [Statement(0, text) for text in given] + workload_statements(workload)
    if not listed:
        msg = (
            "give at least one QUERY, a predicate such as \"ts >= '2026-01-01'\" or a whole SELECT, or --workload FILE"
        )
        raise WorkloadError(msg)
    return path, [Statement(number, s.text, s.title) for number, s in enumerate(listed, 1)]
