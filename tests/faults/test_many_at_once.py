"""Four writers and eight readers at once, over objects that are added, replaced and deleted all the time."""

from __future__ import annotations

import multiprocessing

from tests.faults.crowd import READERS, WRITERS, read_for_a_while, write_for_a_while
from tests.faults.lake import FEW_QUERIES, Lake


def test_four_writers_and_eight_readers(lakes, tally, long):
    commits, checks = (100, 1_000) if long else (8, 100)
    lake = Lake(lakes / "lake")
    lake.create()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.faults.actions", "tests.faults.crowd"])
    said = context.Queue()
    ended = context.Semaphore(0)
    work = [(write_for_a_while, n, commits) for n in range(WRITERS)]
    work += [(read_for_a_while, n, checks) for n in range(READERS)]
    crowd = [context.Process(target=does, args=(lake.folder, n, size, ended, said)) for does, n, size in work]
    for process in crowd:
        process.start()
    reports = [said.get(timeout=600) for _ in crowd]
    for process in crowd:
        process.join(60)
        assert process.exitcode == 0
    total = {key: sum(report.get(key, 0) for report in reports) for report in reports for key in report}
    count = tally.of("many at once", "4 writers, 8 readers")
    count.faults += total["changes"]
    count.queries += total["queries"]
    count.wrong += total["wrong"]
    count.failed += total["failed"]
    count.skipped += total["skipped"]
    assert total["wrong"] == total["failed"] == 0, total
    assert total["commits"] >= WRITERS * commits, total
    assert total["queries"] > 50, total
    assert total["checked"] >= READERS * checks, f"hardly a skipped object was looked into: {total}"
    lake = lake.reopened()
    lake.refresh()
    answers = lake.ask()
    tally.asked(count, answers)
    assert answers.skipped > 10
    tally.asked(count, lake.reopened().ask(FEW_QUERIES))
