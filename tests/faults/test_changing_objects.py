"""Objects that change while they are indexed end up read, never believed."""

from __future__ import annotations

import os
import threading
import time

import pytest

from skipstone.indexing import job
from tests.faults import lake as lake_module
from tests.faults.lake import Lake, make_indexed, write_object


def replaced(path):
    write_object(path, 3, "changed", modified=1_700_003_333)


def replaced_now(path):
    write_object(path, 3, "changed", modified=None)


def same_length_and_time(path):
    """Another content that nothing but its change time tells apart: Spark's listing has no change times."""
    old = path.stat()
    write_object(path, 1, "eman-1")
    assert path.stat().st_size == old.st_size
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))


def longer_with_the_old_time(path):
    old = path.stat()
    write_object(path, 1, "a much longer name than before")
    assert path.stat().st_size > old.st_size
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))


def appended(path):
    with path.open("ab") as file:
        file.write(path.read_bytes())


def truncated(path):
    path.write_bytes(path.read_bytes()[:-30])


def emptied(path):
    path.write_bytes(b"")


def deleted(path):
    path.unlink()


def touched(path):
    os.utime(path, (1_700_003_000, 1_700_003_000.25))


CHANGES = [replaced, replaced_now, longer_with_the_old_time, appended, truncated, emptied, deleted, touched]
COLLECT = lake_module.Source.collect
MOMENTS = ["between listing and reading", "between reading and listing again"]


def meddling(moment, change, path):
    """Collect as always, with a change before or after."""

    def collect(source, objects, bound):
        if moment == MOMENTS[0] and not done:
            done.append(change(path))
        found = COLLECT(source, objects, bound)
        if moment == MOMENTS[1] and not done:
            done.append(change(path))
        return found

    done = []
    return collect


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("action", ["create", "refresh"])
def test_an_object_that_changes_while_it_is_indexed(lakes, tally, monkeypatch, action, change, moment):
    lake = Lake(lakes / "lake") if action == "create" else make_indexed(lakes / "lake")
    if action == "refresh":
        write_object(lake.path(1), 1, modified=1_700_003_000)
    count = tally.of("objects change while indexed", f"{change.__name__.replace('_', ' ')}, {moment}")
    count.faults += 1
    monkeypatch.setattr(lake_module.Source, "collect", meddling(moment, change, lake.path(1)))
    report = lake.create() if action == "create" else lake.refresh()
    assert report.left_out == 1
    monkeypatch.setattr(lake_module.Source, "collect", COLLECT)
    if change in (appended, truncated, emptied):
        write_object(lake.path(1), 1, "changed", modified=1_700_004_444)  # until then no reader can read it
    tally.asked(count, lake.reopened().ask())
    lake = lake.reopened()
    repair = lake.refresh if lake.store.latest(lake.root) else lake.create
    repair()
    answers = lake.ask()
    tally.asked(count, answers)
    assert answers.skipped > 15
    count.repaired += 1


def test_other_rows_of_the_same_length_and_time(lakes, tally, monkeypatch):
    """Put there before the object is read they are what is indexed; put there later, no listing shows it (the docs)."""
    lake = Lake(lakes / "lake")
    monkeypatch.setattr(lake_module.Source, "collect", meddling(MOMENTS[0], same_length_and_time, lake.path(1)))
    lake.create()
    count = tally.of("objects change while indexed", f"same length and time, {MOMENTS[0]}")
    count.faults += 1
    tally.asked(count, lake.reopened().ask())


def test_an_object_written_just_now_is_waited_for_or_not_trusted(lakes, tally, monkeypatch):
    """Within the clock's granularity a second write would not show: the job waits, or does not trust the object."""
    lake = Lake(lakes / "lake")
    waits, sleep, here = [], time.sleep, threading.get_ident()

    def counted(seconds: float) -> None:
        if threading.get_ident() == here:  # other threads of the process sleep as they like
            waits.append(seconds)
        sleep(seconds)

    monkeypatch.setattr(job.time, "sleep", counted)
    write_object(lake.path(1), 1, modified=None)
    young = time.time_ns() // 10**9 * 10**9 + 1_500_000_000  # however long it takes until it is listed
    os.utime(lake.path(1), ns=(young, young))
    report = lake.create()
    now = lake.path(1).stat()
    assert report.untrusted == 0
    assert len(waits) == 1, "the job did not wait for the clock"
    write_object(lake.path(1), 1, "eman-1", modified=None)
    assert lake.path(1).stat().st_mtime_ns // 1_000_000 != now.st_mtime_ns // 1_000_000
    count = tally.of("objects change while indexed", "written at the very moment")
    count.faults += 1
    tally.asked(count, lake.reopened().ask())
