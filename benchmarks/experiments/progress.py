"""A run of hours that is broken off goes on where it stopped: what is done is kept, and found by whoever starts again.

Two things are kept below ``benchmarks/output/progress``: which experiments of a run are done, and of an experiment
that is under way the steps that took long.  Both belong to one *run*: its options, the machine and the sources that are
measured.  Whatever was begun otherwise is begun anew: figures of two codes are not one figure.  A commit that touches
documents or results is the same code.  What is done stays done, whether all was asked for at once or one by one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["STEPS", "Progress", "once"]

STEPS = "SKIPSTONE_BENCH_STEPS"
"""Names, in the environment of an experiment, the file of its steps."""

T = TypeVar("T")


def once(step: str, make: Callable[[], T]) -> T:
    """Return what a step gave before the experiment was broken off; make it, and keep it, if there is nothing.

    What a step gives consists of JSON's types, and nothing after it rests on what else it did.
    """
    file = os.environ.get(STEPS)
    if not file:
        return make()
    kept = _read(Path(file))
    if step not in kept:
        kept[step] = make()
        _write(Path(file), kept)
    return kept[step]


@dataclass(frozen=True)
class Progress:
    """What is done of a run; ``run`` describes it, in JSON's types."""

    folder: Path
    run: Mapping[str, Any]

    def begin(self, anew: Collection[str] = ()) -> list[str]:
        """Return the experiments that are done, without those that are wanted anew.

        There are none if this run is another one than was begun.
        """
        kept = _read(self._file)
        if kept.get("run") != dict(self.run):
            for file in self.folder.glob("*.json"):
                file.unlink()
            kept = {"done": []}
        for name in anew:
            self.steps(name).unlink(missing_ok=True)
        done = [name for name in kept["done"] if name not in anew]
        _write(self._file, {"run": dict(self.run), "done": done})
        return done

    def steps(self, name: str) -> Path:
        """Return the file of the steps of an experiment."""
        return self.folder / f"{name}-steps.json"

    def ended(self, name: str) -> None:
        """Keep that an experiment is done: its record is written."""
        _write(self._file, {"run": dict(self.run), "done": [*_read(self._file)["done"], name]})
        self.steps(name).unlink(missing_ok=True)

    @property
    def _file(self) -> Path:
        return self.folder / "done.json"


def _read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def _write(file: Path, kept: Mapping[str, Any]) -> None:
    """Write a file as a whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".fresh")
    fresh.write_text(json.dumps(kept), encoding="utf-8")
    fresh.replace(file)
