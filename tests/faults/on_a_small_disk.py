"""Run in a mount namespace of its own: commits to a disk of a few hundred kilobytes, with ever more room on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from skipstone.errors import MetadataStoreError
from tests.faults.lake import FEW_QUERIES, Lake, write_object

PAGE = 4096


def main(folder: Path, what: str) -> None:
    """Fill the disk up to some room, commit, ask, make room, repair."""
    disk = folder / "disk"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)], check=False)
    if mounted.returncode:
        sys.exit(77)
    os.fsync = lambda _: None
    lake = Lake(folder / "lake")
    if what == "metadata":
        lake.metadata.symlink_to(disk, target_is_directory=True)
    else:
        tempfile.tempdir = str(disk)
    lake.create()
    found = {
        "faults": 0,
        "committed": 0,
        "queries": 0,
        "wrong": 0,
        "failed": 0,
        "skipped": 0,
        "repaired": 0,
        "unclear": 0,
    }
    for pages in range(16):
        write_object(lake.path(1), 1, modified=1_700_002_000 + pages)
        lake = lake.reopened()
        fill(disk / "filling", pages * PAGE)
        try:
            lake.refresh()
            found["committed"] += 1
        except MetadataStoreError as error:
            found["faults"] += 1
            found["unclear"] += "space" not in str(error)
        for again in (lake.reopened(), lake.reopened()):
            answers = again.ask(FEW_QUERIES)
            for key in ("queries", "wrong", "failed", "skipped"):
                found[key] += getattr(answers, key)
            (disk / "filling").unlink(missing_ok=True)
            again.refresh()
        assert lake.reopened().ask(FEW_QUERIES).skipped == 15
        found["repaired"] += 1
    left = [path.name for path in disk.rglob("*.tmp")]
    assert not left, left
    print(json.dumps(found))


def fill(path: Path, room: int) -> None:
    """Write until only so much room is left."""
    path.unlink(missing_ok=True)
    free = os.statvfs(path.parent)
    with path.open("wb") as file:
        file.write(bytes(max(0, free.f_bavail * free.f_frsize - room)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
