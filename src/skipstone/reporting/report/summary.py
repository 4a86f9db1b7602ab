"""A report in short: for a terminal, and for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skipstone.showing.format import FORMATS
from skipstone.showing.notebook import Html, card, count, facts, note, percent, share, size, table, written

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["gain", "summary_html", "summary_lines"]


def gain(step: dict[str, Any]) -> str:
    """Return what a step may save."""
    if step["objects"]:
        return f"up to {step['objects']:,} objects fewer read"
    return f"{size(step['bytes'])} of metadata" if step["bytes"] else ""


def summary_lines(data: dict[str, Any]) -> Iterator[str]:
    """Return a report in a few lines."""
    work = data["workload"]
    objects = work["objects"]
    yield (
        f"{data['dataset']['root']}: {len(data['indexes']):,} indexes, {work['queries']:,} queries; "
        f"skipped {objects['skipped']:,} of {objects['total']:,} objects"
    )
    if data.get("compared"):
        then, now = data["compared"]["before"], data["compared"]["after"]
        yield (
            f"  in the {data['compared']['queries_in_both']:,} queries of both reports: "
            f"{then['objects_read']:,} objects read before, {now['objects_read']:,} now"
        )
    for number, step in enumerate(data["do_first"], 1):
        saved = f" ({said})" if (said := gain(step)) else ""
        yield f"  {number}. {step['what']}{saved}: {step['python'] or step['why']}"


def summary_html(data: dict[str, Any]) -> str:
    """Show a report in short: what to do first, and what the workload reads."""
    work = data["workload"]
    objects = work["objects"]
    parts: list[Html] = []
    if work["queries"]:
        parts = [
            share(objects["skipped"], objects["total"]),
            facts(
                [
                    ("objects skipped, sum", f"{count(objects['skipped'])} of {count(objects['total'])}"),
                    ("bytes skipped, sum", f"{size(work['bytes_skipped'])} of {size(work['bytes_total'])}"),
                    ("rows scanned", _scanned(work)),
                ]
            ),
        ]
    if data.get("compared"):
        parts += _compared(data["compared"])
    steps = [(step["what"], gain(step), written(step["python"] or step["command"] or "")) for step in data["do_first"]]
    parts.append(
        table(["do first", "gain", "run"], steps) if steps else note("Nothing to do: see the page for the rest.")
    )
    parts.append(note("write('report.html') makes the whole page."))
    return card("Report", *parts, about=data["dataset"]["root"])


def _scanned(work: dict[str, Any]) -> str | None:
    """Return which share of rows is scanned, and that this is a mean."""
    found = work["indicators"]
    psi = None if found is None else found["geometric_means"]["scanning_factor"]
    return None if psi is None else f"{percent(psi)} (geometric mean of {count(found['queries'])} queries)"


def _compared(found: dict[str, Any]) -> list[Html]:
    """Show what has changed since an earlier report."""
    then, now = found["before"], found["after"]
    rows = [
        ("objects read", count(then["objects_read"]), count(now["objects_read"])),
        ("bytes read", size(then["bytes_read"]), size(now["bytes_read"])),
        ("metadata", size(then["metadata_bytes"]), size(now["metadata_bytes"])),
    ]
    if then["scanning_factor"] is not None and now["scanning_factor"] is not None:
        factors = [FORMATS["factor"](one["scanning_factor"]) for one in (then, now)]
        rows.append(("scanning factor ψ, geometric mean", factors[0], factors[1]))
    said = [note(f"In the {found['queries_in_both']:,} queries of both reports:")]
    return [*said, table(["", "before", "after"], rows, numbers=(1, 2)), *map(note, found["differences"])]
