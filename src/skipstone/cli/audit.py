"""``skipstone audit``: looks into some of the objects that queries leave out, for rows that they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from skipstone.cli.asked import QueriesArgument, WorkloadOption, asked
from skipstone.cli.output import Output, console, print_json
from skipstone.cli.support import PathArgument, Reading, dataset_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skipstone.reporting.audit import Audit
    from skipstone.reporting.report.workload import Statement

__all__ = ["add_audit"]


def add_audit(app: typer.Typer) -> None:
    """Add the command to the command line."""
    dataset_command(app)(audit)


def audit(
    reading: Reading,
    path: PathArgument = None,
    queries: QueriesArgument = None,
    workload: WorkloadOption = None,
    objects: Annotated[
        int, typer.Option("--objects", metavar="N", min=1, help="The most objects to read, for each scan.")
    ] = 16,
    size: Annotated[
        str, typer.Option("--bytes", metavar="SIZE", help="The most to read, for each scan: 512k, 256m, 1g.")
    ] = "256m",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Which objects: another seed, others.")] = 0,
) -> None:
    """Read some of the objects that queries leave out, and fail if one holds a row that they ask for."""
    from skipstone.reporting.audit import audit_bounds
    from skipstone.reporting.report.workload import analysed

    path, statements = asked(reading, path, queries, workload)
    audit_bounds(objects, size)
    dataset = reading.dataset(path)
    found = dataset.audit(analysed(dataset.dataframe, statements), objects=objects, max_bytes=size, seed=seed)
    if reading.output is Output.JSON:
        print_json({"root": dataset.root, "queries": [s.text for s in statements], **found.as_dict()})
    else:
        _print(dataset.root, statements, found)


def _print(root: str, statements: Sequence[Statement], found: Audit) -> None:
    """Print what people read: a line per scan, and the sum."""
    out = console()
    out.print(root, style="bold", markup=False, highlight=False, soft_wrap=True)
    for scan in found.scans:
        text = " ".join(statements[scan.query - 1].text.split())
        counts = f"{scan.looked_into:,} of {scan.skipped:,} skipped objects looked into, of {scan.objects:,}"
        out.print(f"  {text}: {counts}", markup=False, highlight=False, soft_wrap=True)
    out.print(str(found), markup=False, highlight=False, soft_wrap=True)
