"""Writing generated data: seeded, object by object, so that an interrupted run goes on where it stopped.

Datasets lie in ``$SKIPSTONE_BENCH_DATA`` or ``benchmarks/data`` and are kept from run to run.  File times are set well
into the past: an object written within the clock's granularity of being indexed would not be trusted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

WRITTEN = 1_700_000_000  # the modification time of every object, in seconds
CHUNK = 256

Name = Callable[[int], str]
Write = Callable[[int, Path], None]


def folder() -> Path:
    """Return the folder of generated data, made if it is not there."""
    chosen = Path(os.environ.get("SKIPSTONE_BENCH_DATA") or Path(__file__).parent.parent / "data").resolve()
    chosen.mkdir(parents=True, exist_ok=True)
    return chosen


@dataclass(frozen=True)
class Generated:
    """A dataset on disk."""

    path: str
    objects: int
    rows: int
    bytes: int

    def __str__(self) -> str:
        size = self.bytes / self.objects
        of_rows = f", {self.rows / 1e6:,.1f} M rows" if self.rows else ""
        return f"{self.objects:,} objects of {size / 1000:,.0f} KB{of_rows}"


def parts(suffix: str) -> Name:
    """Name objects by their number, all in one folder."""
    return partial(_part, suffix)


def _part(suffix: str, number: int) -> str:
    return f"part-{number:07d}.{suffix}"


def generate(name: str, count: int, rows: int, object_name: Name, write: Write) -> Generated:
    """Write what is missing of a dataset and sum it up; a note beside it says that it is complete.

    ``object_name`` gives an object's path below the dataset's folder; it and ``write`` are called in other processes.
    """
    root = folder() / name
    note = folder() / f"{name}.json"
    if not note.exists():
        root.mkdir(parents=True, exist_ok=True)
        missing = _missing(root, count, object_name)
        chunk = max(1, min(CHUNK, len(missing) // (4 * (os.cpu_count() or 1))))
        task = partial(_write_some, root, object_name, write)
        chunks = [missing[i : i + chunk] for i in range(0, len(missing), chunk)]
        with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
            list(pool.map(task, chunks))
        note.write_text(json.dumps({"objects": count, "rows": rows, "bytes": _size(root)}))
    return Generated(str(root), **json.loads(note.read_text()))


def _missing(root: Path, count: int, object_name: Name) -> list[int]:
    """Return the numbers of the objects that are not there yet; folders are made on the way."""
    names = [object_name(number) for number in range(count)]
    there: set[str] = set()
    for below in {os.path.dirname(name) for name in names}:  # noqa: PTH120  (a million Path objects are slow)
        (root / below).mkdir(parents=True, exist_ok=True)
        prefix = f"{below}/" if below else ""
        there.update(f"{prefix}{entry}" for entry in os.listdir(root / below))  # noqa: PTH208
    return [number for number, name in enumerate(names) if name not in there]


def _size(root: Path) -> int:
    """Sum up the bytes of a dataset's objects, not of what an interrupted run may have left beside them."""
    return sum(
        entry.stat().st_size
        for below, _, _ in os.walk(root)
        for entry in os.scandir(below)
        if entry.is_file() and not entry.name.startswith("_")
    )


def _write_some(root: Path, object_name: Name, write: Write, numbers: list[int]) -> None:
    """Write some objects, each complete or not at all."""
    for number in numbers:
        target = root / object_name(number)
        temporary = target.with_name(f"_{number:07d}")
        write(number, temporary)
        os.utime(temporary, (WRITTEN, WRITTEN))
        temporary.rename(target)
