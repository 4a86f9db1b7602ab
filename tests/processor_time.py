"""How much processor time a run took, with every JVM, server and Python worker that it started.

Ten minutes on two cores are 1,200 s.  Unlike the time that passes, this hardly depends on what else a machine does, so
it is what to look at before and after a change of the tests.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ProcessorTime"]

_TICKS = os.sysconf("SC_CLK_TCK")


def processor_time() -> float:
    """Return the seconds that this process and all below it have taken; those that have ended as well."""
    if not Path("/proc/self/stat").exists():
        return sum(os.times()[:4])
    taken, children = Counter[int](), dict[int, list[int]]()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                # The name of a program, in brackets, may hold spaces.
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue  # it has ended
            children.setdefault(int(fields[1]), []).append(int(folder.name))
            taken[int(folder.name)] = sum(map(int, fields[11:15]))
    below = [os.getpid()]
    for process in below:
        below += children.get(process, ())
    return sum(taken[process] for process in below) / _TICKS


class ProcessorTime:
    """A plug-in of pytest: adds up what all workers of a run take, by file, and says it at the end."""

    def __init__(self) -> None:
        self._files: Counter[str] = Counter()
        self._before, self._file, self._of_workers = 0.0, "", False

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Count what happened so far: imports, and classes archived on first use."""
        self._turn("before the first test")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Turn to the next file.  What a file's fixtures take to end is its own."""
        file = item.nodeid.partition("::")[0]
        if file != self._file:
            self._turn(file)
        return (yield)

    def _turn(self, file: str) -> None:
        now = processor_time()
        self._files[self._file or file] += now - self._before
        self._before, self._file = now, file

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let the workers report; the process that leads them has their sums by now."""
        if "workeroutput" in vars(session.config):
            self._turn("")
            session.config.workeroutput["processor_time"] = dict(self._files)
        elif not self._of_workers:
            self._turn("")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object) -> None:
        """Add what a worker took."""
        self._of_workers = True
        self._files += Counter(getattr(node, "workeroutput", {}).get("processor_time", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """Write the sum, and with ``--durations=N`` the dearest files."""
        terminalreporter.write_line(f"processor time: {sum(self._files.values()):,.0f} s")
        if dearest := config.option.durations:
            for file, seconds in self._files.most_common(dearest):
                terminalreporter.write_line(f"{seconds:8.1f} s {file}")
