"""``docs/experiments.md`` and its plots, made from the records: the paper's figure beside what was measured here."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import growth
from benchmarks.experiments import plots, reach
from benchmarks.experiments.record import NAMES, RESULTS, SCALES, Finding, Record, load, result_file, thread_counts
from benchmarks.runner import number

DOCS = Path(__file__).parent.parent.parent / "docs"
STORAGES = ("local", "s3")
GROWTH = "experiments/growth.svg"
INTRODUCTION = """# Experiments

The experiments of the paper (section V and its appendix), repeated on [generated data of the same shape](datasets.md).
`make experiments` runs them at the small scale in minutes; `SCALE=medium` or `full`, `STORAGE=s3` and
`EXPERIMENTS="fig8_breakdown"` choose more, or less. Each experiment is one module of `benchmarks/experiments` and
leaves a record in `benchmarks/experiments/results`; this page and its plots are made from the records. A run of hours
that is broken off goes on where it stopped when the same command is given again, by experiments and by their longest
steps, as long as sources, machine and options are the same; what is done is not measured again, unless by `--anew`.

The paper ran Spark 2.3.2 on three machines of 32 cores each against IBM's object storage. Seconds are not comparable
across such a distance; ratios and shares are what to compare. Every figure below stands under its condition. A target
that was missed says so. After the paper's experiments come joins, `ORDER BY … LIMIT`, counts and TPC-H
([where filters do not reach](#where-filters-do-not-reach)), what [building indexes](#building-indexes) takes,
[sizes and memory](#sizes-and-memory), [planning](#planning-and-needle-queries), and
[growth](#growth-with-the-number-of-objects) from a thousand objects to a million.
"""


def write(results: Path = RESULTS, docs: Path = DOCS) -> str:
    """Write the page and the plots; say where they are."""
    records = {name: _records(name, results) for name in NAMES}
    for name, found in records.items():
        for record in found:
            plots.save(_module(name).plot(record), docs / _picture(record))
    grown = growth.results()
    if grown:
        plots.save(growth.plot(grown), docs / GROWTH)
    page = docs / "experiments.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(render(records, grown), encoding="utf-8")
    measured = sum(bool(found) for found in records.values())
    return f"docs/experiments.md shows {measured} of {len(NAMES)} experiments"


def _picture(record: Record) -> str:
    """Return where the plot of a record is, below the docs."""
    storage, threads = record.run["storage"], record.run.get("threads", 0)
    parts = [record.name, *([storage] if storage != STORAGES[0] else []), *([f"{threads}-threads"] if threads else [])]
    return f"experiments/{'-'.join(parts)}.svg"


def render(records: dict[str, list[Record]], grown: list[dict[str, Any]]) -> str:
    """Lay out the page."""
    sections = [INTRODUCTION, _overview(records)]
    sections += [_section(name, found) for name, found in records.items()]
    return "\n".join([*sections, reach.sections(), _growth(grown)])


def _growth(found: list[dict[str, Any]]) -> str:
    """Write up how things grow with the number of objects."""
    lines = [f"## {growth.TITLE}", "", growth.TEXT, ""]
    if not found:
        return "\n".join([*lines, "Not measured.", ""])
    return "\n".join([*lines, f"![{growth.TITLE}]({GROWTH})", "", growth.table(found), ""])


def _module(name: str) -> Any:
    """Return the module of an experiment."""
    return import_module(f"benchmarks.experiments.{name}")


def _records(name: str, results: Path) -> list[Record]:
    """Return the records of an experiment, one for each storage and number of threads: of the largest scale."""
    found = []
    for storage in STORAGES:
        for threads in thread_counts(name, storage, results):
            files = (result_file(name, storage, scale, results, threads=threads) for scale in reversed(SCALES))
            found += list(filter(None, map(load, files)))[:1]
    return found


def _told(record: Record, between: str = ", ") -> str:
    """Return storage and scale of a record, and threads where it has others than most."""
    threads = record.run.get("threads", 0)
    return f"{record.run['storage']}{between}{record.run['scale']}{f', {threads} threads' if threads else ''}"


def _overview(records: dict[str, list[Record]]) -> str:
    """List the experiments: what of the paper, at which scale each was measured, how many targets are met."""
    lines = ["| experiment | in the paper | measured | targets met |", "|---|---|---|---|"]
    for name, found in records.items():
        module = _module(name)
        measured = "; ".join(_told(r, " ") for r in found) or "not measured"
        decided = [f.met for r in found for f in r.findings if f.met is not None and is_judged(r)]
        met = f"{sum(decided)} of {len(decided)}" if decided else "not judged" if found else ""
        lines.append(f"| [{module.TITLE}](#{_anchor(module.TITLE)}) | {module.FIGURE} | {measured} | {met} |")
    return "\n".join([*lines, ""])


def _anchor(title: str) -> str:
    """Return the anchor that a heading gets."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def _section(name: str, found: list[Record]) -> str:
    """Write up one experiment."""
    module = _module(name)
    lines = [f"## {module.TITLE}", "", f"**The paper ({module.FIGURE}).** {module.PAPER}", ""]
    if not found:
        return "\n".join([*lines, "Not measured.", ""])
    for record in found:
        lines += [f"**Measured ({_told(record)}).** {_condition(record)}", ""]
        lines += [f"![{module.TITLE}]({_picture(record)})", ""]
        lines += ["| what | measured | spread | the paper | target |", "|---|---|---|---|---|"]
        lines += [_line(finding, judged=is_judged(record)) for finding in record.findings]
        lines += ["", *(f"- {f.what}: {f.note}" for f in record.findings if f.note)]
        lines += [""] if any(f.note for f in record.findings) else []
    return "\n".join(lines)


def _condition(record: Record) -> str:
    """Return what the figures hold for."""
    run: dict[str, Any] = record.run
    machine = run["machine"]
    return (
        f"{record.condition.rstrip('.')}. {machine['cores']} cores, {machine['memory_gb']:.0f} GB, "
        f"Spark {machine['pyspark']}; load {run['load_before']} at the start, {run['seconds']:.0f} s in all, "
        f"{run['when'][:10]}, commit {machine['commit']}."
    )


def is_judged(record: Record) -> bool:
    """Whether targets apply: they are for datasets of the paper's number of objects, not for the small scale."""
    return record.run["scale"] != "small"


def _line(finding: Finding, *, judged: bool) -> str:
    """Write one finding as a row of the table."""
    spread = "" if finding.low is None else f"{number(finding.low)} to {number(finding.high or 0)}"
    measured = f"{number(finding.measured)} {finding.unit}".strip()
    target = ""
    if finding.target is not None:
        met = ("met" if finding.met else "**missed**") if judged else "not judged at the small scale"
        sign = "≥" if finding.at_least else "≤"
        target = f"{f'{sign} {number(finding.target)} {finding.unit}'.strip()}: {met}"
    return f"| {finding.what} | {measured} | {spread} | {finding.paper} | {target} |"
