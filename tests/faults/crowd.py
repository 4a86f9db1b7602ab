"""Writers and readers of one lake, each a process of its own.

A reader knows the truth without stopping anybody: an object that was skipped and is still in the state in which it was
listed, before and after its rows are read, must hold no row that the query asks for.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from skipstone.errors import IndexExistsError, IndexNotFoundError, SkipstoneError
from skipstone.indexing.failures import ReadFailedError
from skipstone.testing.truth import evaluate
from tests.faults.lake import INDEXES, QUERIES, Lake, listing, read_rows, write_object

if TYPE_CHECKING:
    from pathlib import Path

WRITERS, READERS = 4, 8
_NUMBERS = 12


def write_for_a_while(folder: Path, number: int, commits: int, ended: Any, said: Any) -> None:
    """Change objects and refresh until enough was committed; now and then drop everything and make it anew."""
    chosen = random.Random(number)
    lake = Lake(folder, objects=0, max_parts=4)
    done = {"changes": 0, "commits": 0, "refused": 0}
    while done["commits"] < commits:
        _change(lake, chosen)
        done["changes"] += 1
        try:
            if number == 0 and chosen.random() < 0.1:
                lake.drop()
            lake.refresh()
            done["commits"] += 1
        except IndexNotFoundError:
            try:
                lake.create(*INDEXES)
                done["commits"] += 1
            except (IndexExistsError, SkipstoneError):
                done["refused"] += 1
        except SkipstoneError:  # another writer was faster once too often, or dropped what this one began with
            done["refused"] += 1
    ended.release()
    said.put(done)


def _change(lake: Lake, chosen: random.Random) -> None:
    """Add, replace or delete an object; most of them get the time of this moment."""
    number = chosen.randrange(_NUMBERS)
    path = lake.path(number)
    if chosen.random() < 0.2:
        path.unlink(missing_ok=True)
        return
    name = chosen.choice([None, None, "changed", f"name-{chosen.randrange(5)}"])
    write_object(path, number if chosen.random() < 0.7 else chosen.randrange(5), name, modified=None)


def read_for_a_while(folder: Path, number: int, checks: int, ended: Any, said: Any) -> None:
    """Plan queries, and look into every object that was skipped, until enough was and the writers have ended."""
    chosen = random.Random(1000 + number)
    lake = Lake(folder, objects=0, max_parts=4)
    done = {"queries": 0, "wrong": 0, "failed": 0, "skipped": 0, "checked": 0}
    while done["checked"] < checks or ended.get_value() < WRITERS:
        if chosen.random() < 0.2:
            lake = lake.reopened()
        query = chosen.choice(QUERIES)
        done["queries"] += 1
        listed = listing(folder)
        try:
            skipped = lake.skipped(query, listed, [])
        except Exception:  # noqa: BLE001  counted, and the test fails for it
            done["failed"] += 1
            continue
        done["skipped"] += len(skipped)
        for path in skipped:
            try:
                rows = read_rows(path).to_pylist()
            except ReadFailedError:  # deleted since
                continue
            if listing(folder).get(path) == listed[path]:
                done["checked"] += 1
                done["wrong"] += any(evaluate(query, row) is True for row in rows)
    said.put(done)
