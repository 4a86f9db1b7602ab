"""``python -m benchmarks.experiments [names…] [--scale small|medium|full] [--storage local|s3]``: run and write up.

Each experiment runs in a process of its own and keeps its record as soon as it is done; ``docs/experiments.md`` and the
plots are made from the records that there are, of this run or of earlier ones.  What is done is not measured again by
the same sources, so that a run that was broken off goes on when the same command is given again (``progress``).
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.conditions import Conditions, default_threads
from benchmarks.experiments import page
from benchmarks.experiments.progress import STEPS, Progress
from benchmarks.experiments.record import NAMES, RESULTS, SCALES, Record, result_file, run_name, save
from benchmarks.runner import LOGS, run_child

OPTIONS = ("scale", "storage", "latency", "bandwidth", "threads")


def main() -> int:
    """Run the experiments that the command line names."""
    arguments = _arguments()
    conditions = Conditions(
        arguments.storage,
        latency=arguments.latency / 1_000,
        bandwidth=arguments.bandwidth * 1e6,
        threads=arguments.threads,
    )
    if arguments.child:
        run = import_module(f"benchmarks.experiments.{arguments.names[0]}").run
        arguments.child.write_text(json.dumps(run(SCALES[arguments.scale], conditions).described()))
        return 0
    failed = 0 if arguments.page else _run_all(arguments)
    print(page.write(arguments.results), file=sys.stderr)
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.experiments", description="Repeat the paper's experiments and write them up."
    )
    parser.add_argument("names", nargs="*", metavar="name", help=f"which to run, by default all: {', '.join(NAMES)}")
    parser.add_argument("--scale", choices=tuple(SCALES), default="small", help="how large the datasets are")
    parser.add_argument("--storage", choices=("local", "s3"), default="local", help="where the data lies")
    parser.add_argument("--latency", type=float, default=30, metavar="MS", help="first-byte latency of s3 (default 30)")
    parser.add_argument("--bandwidth", type=float, default=50, metavar="MB/S", help="of one answer of s3 (default 50)")
    parser.add_argument("--threads", type=int, default=0, help="tasks at a time (default: cores, on s3 four a core)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the records")
    parser.add_argument("--anew", action="store_true", help="measure again what was measured by these sources")
    parser.add_argument("--page", action="store_true", help="run nothing, only make page and plots from the records")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in NAMES]
    if unknown:
        parser.error(f"no experiment is called {', '.join(unknown)}; there are {', '.join(NAMES)}")
    if arguments.threads == default_threads(arguments.storage):
        arguments.threads = 0
    return arguments


def _run_all(arguments: argparse.Namespace) -> int:
    """Run what is not done yet; return how many experiments failed."""
    here = machine.describe_machine()
    options = {option: getattr(arguments, option) for option in OPTIONS}
    run = {**options, "results": str(arguments.results), "machine": machine.measured()}
    progress = Progress(LOGS / "progress" / run_name(arguments.storage, arguments.scale, arguments.threads), run)
    names = arguments.names or NAMES
    done = progress.begin(names if arguments.anew else ())
    if there := [name for name in names if name in done and _file(name, arguments).exists()]:
        print(f"done before, by these sources: {', '.join(there)} (--anew measures them again)", file=sys.stderr)
    failed = 0
    for name in names:
        if name in there:
            continue
        if not _run(name, arguments, here, progress.steps(name)):
            failed += 1
        elif machine.sources() == run["machine"]["sources"]:
            progress.ended(name)
        else:
            print(f"{name}: sources changed while it ran, so that it is not done", file=sys.stderr, flush=True)
            failed += 1
    return failed


def _run(name: str, arguments: argparse.Namespace, here: dict[str, Any], steps: Path) -> bool:
    """Run one experiment in a child process and keep its record; say how it went."""
    print(f"{name} …{' (goes on)' if steps.exists() else ''}", file=sys.stderr, flush=True)
    options = {option: getattr(arguments, option) for option in OPTIONS}
    command = ["benchmarks.experiments", name, *(f"--{option}={value}" for option, value in options.items())]
    log = LOGS / f"{name}-{run_name(arguments.storage, arguments.scale, arguments.threads)}.log"
    run = run_child(command, log, {STEPS: str(steps)})
    answer = run.pop("answer", None)
    print(f"{name}: {run.get('failed', 'done')}, {run['seconds']:.0f} s", file=sys.stderr, flush=True)
    if answer is None:
        return False
    record = Record.of({**answer, "run": {**options, **run, "machine": here}})
    save(record, _file(name, arguments))
    return True


def _file(name: str, arguments: argparse.Namespace) -> Path:
    """Return where the record of an experiment goes."""
    return result_file(name, arguments.storage, arguments.scale, arguments.results, threads=arguments.threads)


if __name__ == "__main__":
    sys.exit(main())
