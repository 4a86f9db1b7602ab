"""``skipstone indicators``: the indicators of skipping effectiveness of some queries, or of a workload in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skipstone.cli.asked import QueriesArgument, WorkloadOption, asked
from skipstone.cli.output import Output, console, print_json
from skipstone.cli.support import PathArgument, Reading, dataset_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    import typer

    from skipstone.reporting.indicators import Indicators, WorkloadIndicators
    from skipstone.reporting.report.workload import Statement

__all__ = ["add_indicators"]

_FACTORS = ("selectivity σ", "layout λ", "metadata μ", "scanning ψ")


def add_indicators(app: typer.Typer) -> None:
    """Add the command to the command line."""
    dataset_command(app)(indicators)


def indicators(
    reading: Reading,
    path: PathArgument = None,
    queries: QueriesArgument = None,
    workload: WorkloadOption = None,
) -> None:
    """Measure what skipping achieves: selectivity, layout, metadata and scanning factor, and what is the limit.

    The predicates are run over every object of the dataset.
    """
    from skipstone.reporting.report.workload import analysed

    path, statements = asked(reading, path, queries, workload)
    dataset = reading.dataset(path)
    measured = dataset.indicators(analysed(dataset.dataframe, statements))
    if reading.output is Output.JSON:
        print_json(_document(dataset.root, statements, measured))
    else:
        _print(dataset.root, statements, measured)


def _document(root: str, statements: Sequence[Statement], measured: WorkloadIndicators) -> dict[str, Any]:
    """Return what programs read: the workload's indicators, each query with its text."""
    found = measured.as_dict()
    named = [{"query": s.text, "title": s.title} | q for s, q in zip(statements, found["queries"], strict=True)]
    return {"root": root} | found | {"queries": named}


def _print(root: str, statements: Sequence[Statement], measured: WorkloadIndicators) -> None:
    """Print what people read: a line per query, and the geometric means."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("query", overflow="fold", min_width=16)
    for heading in ("relevant rows", "objects: relevant", "read", "all", *_FACTORS):
        table.add_column(heading, justify="right")
    table.add_column("limit")
    for statement, found in zip(statements, measured, strict=True):
        table.add_row(escape(statement.title or " ".join(statement.text.split())), *_counts(found), *_shown(found))
    if len(measured) > 1:
        table.add_section()
        table.add_row("geometric mean", *[""] * 4, *_shown(measured))
    out = console()
    out.print(root, style="bold", markup=False, highlight=False, soft_wrap=True)
    out.print(table, highlight=False)
    if measured.left_out:
        left = "query has" if measured.left_out == 1 else "queries have"
        out.print(f"{measured.left_out} {left} no relevant row: no factors, left out of the means.", highlight=False)


def _counts(found: Indicators) -> list[str]:
    counts = (found.relevant_rows, found.relevant_objects, found.kept_objects, found.objects)
    return [f"{count:,}" for count in counts]


def _shown(found: Indicators | WorkloadIndicators) -> list[str]:
    return [*("-" if value is None else f"{value:.3g}" for value in found.factors()), found.limit or ""]
