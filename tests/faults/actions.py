"""What is done to a lake while a fault strikes, here and in processes that are killed at it."""

from __future__ import annotations

from typing import TYPE_CHECKING

# Imported late otherwise, in every one of the processes that are made to be killed.
import pandas as pd  # noqa: F401
import pyarrow.compute  # noqa: F401
import pyspark.sql.types  # noqa: F401

from tests.faults.injectors import die_at
from tests.faults.lake import Lake, make_indexed, write_object

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def create(lake: Lake) -> None:
    lake.create()


def refresh(lake: Lake) -> None:
    """Refresh after an object was replaced, one was added and one vanished."""
    write_object(lake.path(1), 1, modified=1_700_002_000)
    write_object(lake.folder / "object-7.parquet", 7)
    lake.path(3).unlink(missing_ok=True)
    lake.refresh()


def drop_one(lake: Lake) -> None:
    lake.drop("minmax(price)")


def drop_all(lake: Lake) -> None:
    lake.drop()


SCENES: dict[str, tuple[Callable[[Lake], None], int, int]] = {
    "create": (create, 0, 8),
    "refresh": (refresh, 3, 8),
    "compaction": (refresh, 3, 3),
    "drop of one index": (drop_one, 3, 8),
    "drop of all": (drop_all, 3, 8),
}
"""By name: what is done, how many versions there are before, and how many parts may be there without compaction."""


def make_scene(name: str, folder: Path) -> Lake:
    """Make the lake that an action is tried on."""
    _, versions, max_parts = SCENES[name]
    return make_indexed(folder, versions=versions, max_parts=max_parts) if versions else Lake(folder)


def act_and_die(step: int, name: str, folder: Path) -> None:
    """Do it in this process, which is killed at a step of it."""
    action, _, max_parts = SCENES[name]
    lake = Lake(folder, objects=0, max_parts=max_parts)
    die_at(step, lake.metadata)
    action(lake)
