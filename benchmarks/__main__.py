"""``python -m benchmarks [names…] [--scale small|full] [--output text|json]``: run, print a table, keep the results."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.runner import NAMES, RESULTS, run_all, run_one, table


def main() -> int:
    """Run the benchmarks that the command line names, each in a process of its own."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure what Skipstone promises on speed."
    )
    parser.add_argument("names", nargs="*", metavar="name", help=f"which to run, by default all: {', '.join(NAMES)}")
    parser.add_argument("--scale", choices=("small", "full"), default="full", help="small: two minutes, no targets")
    parser.add_argument("--output", choices=("text", "json"), default="text", help="what to print at the end")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the results as JSON")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in NAMES]
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if arguments.child:
        run_one(arguments.names[0], arguments.scale, arguments.child)
        return 0
    results = run_all(arguments.names or NAMES, arguments.scale, arguments.results)
    print(json.dumps(results, indent=2) if arguments.output == "json" else table(results))
    return 1 if any("failed" in run for run in results["runs"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
