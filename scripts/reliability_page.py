"""Write the tables of docs/reliability.md from what runs of the fault campaign counted (docs/reliability.json).

SKIPSTONE_FAULT_COUNTS=/tmp/counts make test PYTEST_ARGS=tests/faults          # counts are written there
python scripts/reliability_page.py /tmp/counts --run default --condition "2 cores"    # adds them to the page
python scripts/reliability_page.py                                               # writes the page again
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- counts: begin -->", "<!-- counts: end -->"
COLUMNS = ("faults", "queries", "wrong", "failed", "skipped", "noticed")
TITLES = (
    "faults",
    "queries checked",
    "wrong answers",
    "failed queries",
    "objects skipped",
    "faults noticed by queries",
)


def collected(folder: Path) -> dict[str, dict[str, dict[str, int]]]:
    """Add up what the workers of one run counted."""
    total: dict[str, dict[str, dict[str, int]]] = {}
    for path in sorted(folder.glob("counts-*.json")):
        for scenario, kinds in json.loads(path.read_text()).items():
            for kind, count in kinds.items():
                into = total.setdefault(scenario, {}).setdefault(kind, dict.fromkeys(count, 0))
                for key, value in count.items():
                    into[key] = into.get(key, 0) + value
    return total


def tables(runs: dict[str, Any]) -> str:
    """Make one table a run: a row for each kind of fault, and the sum."""
    written = []
    for name, run in runs.items():
        written += [f"### The {name} run", "", f"Condition: {run['condition']}.", ""]
        written += [f"| scenario | fault | {' | '.join(TITLES)} |", "|---|---|" + "---:|" * len(TITLES)]
        sums = dict.fromkeys(COLUMNS, 0)
        for scenario, kinds in sorted(run["counts"].items()):
            for kind, count in sorted(kinds.items()):
                written.append(f"| {scenario} | {kind} | {' | '.join(f'{count[c]:,}' for c in COLUMNS)} |")
                sums = {c: sums[c] + count[c] for c in COLUMNS}
        written += [f"| **all** | | {' | '.join(f'**{sums[c]:,}**' for c in COLUMNS)} |", ""]
    return "\n".join(written)


def page(text: str, runs: dict[str, Any]) -> str:
    """Put the tables into the page."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{tables(runs)}{END}{rest.partition(END)[2]}"


def main() -> None:
    """Take up a run's counts, if they are given, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--run", default="default")
    parser.add_argument("--condition", default="not said")
    arguments = parser.parse_args()
    kept = DOCS / "reliability.json"
    runs = json.loads(kept.read_text()) if kept.exists() else {}
    if arguments.folder is not None:
        runs[arguments.run] = {"condition": arguments.condition, "counts": collected(arguments.folder)}
        kept.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n")
    written = DOCS / "reliability.md"
    written.write_text(page(written.read_text(), runs))


if __name__ == "__main__":
    main()
