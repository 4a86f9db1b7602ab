"""``skipstone report``: one page on a dataset, its indexes and what they do for a workload."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from skipstone.cli.output import Output, console, print_json
from skipstone.cli.support import PathArgument, Reading, dataset_command, workload_statements
from skipstone.errors import WorkloadError

if TYPE_CHECKING:
    from skipstone.reporting.report.make import Report

__all__ = ["add_report"]


def add_report(app: typer.Typer) -> None:
    """Add the command to the command line."""
    dataset_command(app, pages=True)(report)


def report(
    reading: Reading,
    path: PathArgument = None,
    workload: Annotated[
        Path | None,
        typer.Option(
            "--workload",
            "-w",
            metavar="FILE",
            help="Queries of the view dataset, or predicates, each ended by ;",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="PAGE", help="The page, with -o json.")] = None,
    compare: Annotated[
        Path | None,
        typer.Option("--compare", metavar="FILE", help="An earlier report's page or JSON: say what has changed since."),
    ] = None,
    plan_only: Annotated[bool, typer.Option("--plan-only", help="Do not read the data: no indicators.")] = False,
) -> None:
    """Write a page on a dataset: its indexes, what they skip for each query of a workload, and what limits them."""
    out = out or reading.page
    if out is None and reading.output is Output.TEXT:
        msg = "name the page to write with -o report.html, or ask for its data with -o json"
        raise WorkloadError(msg)
    statements = workload_statements(workload)
    from skipstone.reporting.report.make import make_report

    stderr = console(stderr=True)
    say = (lambda text: stderr.print(text, style="dim", highlight=False)) if stderr.is_terminal else lambda _: None
    made = make_report(reading.dataset(path), statements, measure=not plan_only, compare=compare, say=say)
    if out is not None:
        made.write(out)
    if reading.output is Output.JSON:
        print_json(made.as_dict())
    else:
        typer.echo(_summary(made, out))


def _summary(made: Report, out: Path | None) -> str:
    """Return what was written."""
    data = made.as_dict()
    work = data["workload"]
    objects = work["objects"]
    return (
        f"{out}: {len(data['indexes'])} indexes, {work['queries']} queries; "
        f"skipped {objects['skipped']:,} of {objects['total']:,} objects, "
        f"{work['bytes_skipped']:,} of {work['bytes_total']:,} bytes"
    )
