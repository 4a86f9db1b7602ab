"""What must hold after any fault, and how it is checked."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from skipstone.errors import IndexNotFoundError, MetadataCorruptError
from tests.faults.lake import FEW_QUERIES, QUERIES, Lake, listing, needed_files, write_object

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.tally import Count, Tally


class Scene:
    """A lake in a state to which it can be put back, as often as faults are tried on it."""

    def __init__(self, lake: Lake, keep: Path) -> None:
        self.lake, self._keep = lake, keep
        shutil.copytree(lake.folder, keep)
        self.skipped = lake.reopened().ask(QUERIES).skipped

    def again(self) -> Lake:
        """Put everything back."""
        shutil.rmtree(self.lake.folder)
        shutil.copytree(self._keep, self.lake.folder)
        return self.lake.reopened()


def check_aftermath(lake: Lake, tally: Tally, count: Count) -> None:
    """Check what must hold after a fault, and leave the lake repaired.

    Queries answer as without skipping and none fails; the store opens; a refresh (or, where nothing says which indexes
    there were, making them) repairs it, and objects are skipped again; once an hour has passed, nothing remains that
    the newest version does not need.
    """
    count.faults += 1
    lake = lake.reopened()
    before = lake.ask(QUERIES)
    tally.asked(count, before)
    count.noticed += bool(before.said)
    repair(lake)
    after = lake.ask(QUERIES)
    tally.asked(count, after)
    assert after.skipped >= 18, f"a refresh did not bring skipping back: {after}"
    present = len(listing(lake.folder))
    assert all(row[4] == present for row in lake.describe()), "describe does not show that all objects are covered"
    count.repaired += 1
    lake.age()
    write_object(lake.path(2), 2, modified=1_700_009_000)
    lake.refresh()
    tally.asked(count, lake.reopened().ask(FEW_QUERIES))
    left = set(lake.metadata_files()) - needed_files(lake)
    count.left_behind += len(left)
    assert not left, f"left behind for ever: {sorted(left)}"


def repair(lake: Lake) -> None:
    """Bring the metadata up to date, as a user would and as the messages say."""
    try:
        lake.refresh()
    except IndexNotFoundError:
        lake.create()
    except MetadataCorruptError:  # not even an older version says which indexes there were
        lake.drop()
        lake.create()
