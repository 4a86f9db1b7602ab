"""The parts of ``docs/experiments.md`` beyond the paper, from results of ``python -m benchmarks`` at the full scale."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.runner import RESULTS, number

if TYPE_CHECKING:
    from pathlib import Path

MOST_TOGETHER = 2
"""Conditions that are told above a table as they are; of more, each has a number, which its rows name."""


@dataclass(frozen=True)
class Section:
    """Benchmarks that are written up together: what they are about, and how to run them again."""

    title: str
    text: str
    names: tuple[str, ...]


SECTIONS = (
    Section(
        "Where filters do not reach",
        """Beyond the paper: keys of joins, `ORDER BY … LIMIT`, counts, tables of formats, and the queries of TPC-H, by
`python -m benchmarks joins top_k aggregates tables tpch tpch_10`. The ways that are compared take turns within one run.
Each table stands under its condition, the load when it began among it: on a machine that is shared with other work,
ratios within a run are what to look at, and seconds are pessimistic. "Of the best" compares the best runs, and
"processor time" the work of all processes, which other load hardly touches. Runs on different processors are not to be
compared with each other.

A query of TPC-H is timed in at most nine rounds, and in three or more until its runs without skipping have taken half a
minute; at scale 10 in two or more. `benchmarks/results/full.json` has all figures of each. Queries can be measured one
by one, at any scale, and a run goes on where it was stopped: `python -m benchmarks.tpch Q6 Q14 --scale 10`, and last
`python -m benchmarks tpch tpch_10`, which writes down all of them.""",
        ("joins", "top_k", "aggregates", "tables", "tpch", "tpch_10"),
    ),
    Section(
        "Building indexes",
        """What a call that builds indexes takes, against Spark reading the same columns, against other calls, and
against what Delta and Iceberg take for their own minima and maxima. A job for each object is the published shape of
xskipper, whose releases end with Spark 3: code of our own, on a sample of the objects, extrapolated to all of them.""",
        ("index_once", "index_text", "index_sharing", "index_types", "footers", "index_many", "bounds"),
    ),
    Section(
        "Sizes and memory",
        """Bytes of metadata beside the least that is known for what they say, and what a session keeps in memory.""",
        ("sizes", "memory"),
    ),
    Section(
        "Planning and needle queries",
        """What planning adds to a query: warm, in the first query of a new process, through a companion, with other
stores and with keys; and queries that read few objects of many.""",
        (
            "planning",
            "first_query",
            "needle",
            "geo_udf",
            "companion",
            "elasticsearch",
            "encryption",
            "s3_requests",
            "cluster_metadata",
        ),
    ),
)


def sections(file: Path = RESULTS / "full.json") -> str:
    """Write up what was measured, a table for each benchmark."""
    results = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"runs": {}}
    return "\n".join(_section(section, results["runs"]) for section in SECTIONS)


def _section(section: Section, runs: dict[str, Any]) -> str:
    """Write up the benchmarks of a section; those without a result are named."""
    lines = [f"## {section.title}", "", section.text, ""]
    for name in section.names:
        if name in runs:
            lines += _table(name, runs[name])
    missing = [f"`{name}`" for name in section.names if name not in runs]
    if missing:
        lines += [f"No result at the full scale yet: {', '.join(missing)}.", ""]
    return "\n".join(lines)


def _table(name: str, run: dict[str, Any]) -> list[str]:
    """Write up one benchmark."""
    rows = run["rows"]
    queries = [row for row in rows if "objects_skipped" in row["details"]]
    conditions = list(dict.fromkeys(row["conditions"] for row in rows))
    numbered = [f"({number}) {text}" for number, text in enumerate(conditions, 1)]
    numbers = dict(zip(conditions, numbered, strict=True)) if len(conditions) > MOST_TOGETHER else {}
    heads = ["what", "measured", "spread", "of the best", "processor time", "to reach"]
    heads += ["condition"] if numbers else []
    lines = [f"**{name}.** {_condition(run, numbered if numbers else conditions)}", ""]
    lines += [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [_line(row, numbers) for row in rows if row not in queries]
    return [*lines, "", *(_queries(queries) if queries else ())]


def _condition(run: dict[str, Any], conditions: list[str]) -> str:
    """Return what the figures hold for."""
    machine = run["machine"]
    return (
        f"{'; '.join(conditions)}. {machine['cores']} cores ({machine['processor']}), {machine['memory_gb']:.0f} GB, "
        f"Spark {machine['pyspark']}; "
        f"load {run['load_before']} at the start, {run['seconds']:.0f} s in all, {run['when'][:10]}, "
        f"commit {run['commit']}."
    )


def _line(row: dict[str, Any], numbers: dict[str, str]) -> str:
    """Write one figure as a row of the table."""
    spread = "" if row["low"] is None else f"{number(row['low'])} to {number(row['high'])}"
    parts = ", ".join(f"{part} {number(ms)} ms" for part, ms in row["details"].get("parts_ms", {}).items())
    cells = [f"{row['what']} ({parts})" if parts else row["what"], f"{number(row['measured'])} {row['unit']}", spread]
    cells += [_detail(row, "of_best"), _detail(row, "cpu_ratio"), _verdict(row)]
    cells += [numbers[row["conditions"]].partition(" ")[0]] if numbers else []
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _detail(row: dict[str, Any], name: str) -> str:
    value = row["details"].get(name)
    return "" if value is None else f"{number(value)} {row['unit']}"


def _verdict(row: dict[str, Any]) -> str:
    """Return what was to be reached, and whether it was."""
    if row["target"] is None:
        return ""
    sign = "≥" if row["at_least"] else "≤"
    return f"{sign} {number(row['target'])} {row['unit']}: {'met' if row['met'] else '**missed**'}"


def _queries(rows: list[dict[str, Any]]) -> list[str]:
    """Write a row for each query: its times, and what was skipped by filters alone and by everything."""
    heads = ["query", "off", "on / off", "of the best", "processor time", "filters alone / off"]
    heads += [f"{what} skipped by filters, by everything" for what in ("objects", "bytes")]
    heads += ["planning and asking", "to reach"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for row in rows:
        told = row["details"]
        skipped = [
            ", ".join(f"{100 * told[f'{what}_skipped'][way]:.0f} %" for way in ("filters alone", "on"))
            for what in ("objects", "bytes")
        ]
        cells = [row["what"].partition(":")[0], f"{number(told['off']['median'])} s", number(row["measured"])]
        cells += [number(told["of_best"]), number(told["cpu_ratio"]), number(told["filters_alone"]), *skipped]
        cells += [f"{1_000 * told['planning_and_asking']:.0f} ms", _verdict(row).replace(" x", "")]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]
