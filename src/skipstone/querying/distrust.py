"""Indexes that an audit caught leaving out a row: no plan of this process uses them any more.

An audit reads objects that a query left out (``engines/spark/bridge/Audits.scala``).  What it finds travels with the
requests of later queries, so that a planner that was started anew knows it too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["SWITCHED_OFF", "distrust", "distrusted"]

SWITCHED_OFF = "an audit found a row in an object that it left out: drop it, mend what it rests on, and create it anew"

_caught: set[str] = set()


def distrust(ids: Iterable[str]) -> None:
    """From now on use none of these indexes, named by their ids: an index that is made anew has another one."""
    _caught.update(ids)


def distrusted(index_id: str) -> str | None:
    """Return why an index is not used if an audit caught it, else ``None``."""
    return SWITCHED_OFF if index_id in _caught else None
