"""What every run has, and what only ``--long`` adds: ``every_run.toml`` names both, and what guards the latter.

Ten minutes on two cores are not enough for all variants of all tests.  Each subsystem, kind of server, type of index,
format of files, rule of the bridge and way in which rows were lost keeps its sharpest tests in every run.
"""

from __future__ import annotations

import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

__all__ = ["EVERY_RUN", "GUARDED", "is_long"]

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())

EVERY_RUN: dict[str, tuple[str, ...]] = {
    f"{file}::{test}": tuple(kept) for file, tests in _TABLES["variants"].items() for test, kept in tests.items()
}
"""By test: patterns of the variants that every run has."""
GUARDED: dict[str, str] = {
    f"{file}::{test}": guard for file, tests in _TABLES["whole"].items() for test, guard in tests.items()
}
"""By test that only ``--long`` runs: the one that guards the same in every run."""


def is_long(name: str) -> bool:
    """Whether a test, named as pytest names it, runs only with ``--long``."""
    test, _, variant = name.partition("[")
    kept = EVERY_RUN.get(test)
    left_out = kept is not None and not any(fnmatchcase(variant.removesuffix("]"), pattern) for pattern in kept)
    return left_out or test in GUARDED
