"""S3 and HDFS, each with the whole life of an index, two processes at once, and odd names; what only S3 has after that.

The servers are real, and so are the processes: two Spark sessions serve all tests of this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.servers.hdfs import hdfs_cluster
from tests.servers.s3 import BUCKET, UNCONDITIONAL, S3Server, s3_server, s3a_settings
from tests.storage import steps
from tests.storage.races import create_files, race, warnings_of_commits
from tests.storage.workers import Worker, workers

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

NAMES = ("part 1.parquet", "part%202.parquet", "part=3+é.parquet", "part#4.parquet")
COUNT = 12


@dataclass(frozen=True)
class Storage:
    """The servers and two processes that use them."""

    s3: S3Server
    hdfs: str
    processes: list[Worker]

    def place(self, scheme: str) -> str:
        return f"s3a://{BUCKET}" if scheme == "s3a" else self.hdfs


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Storage]:
    folders = [tmp_path_factory.mktemp(name) for name in ("s3", "hdfs", "processes")]
    with (
        s3_server(folders[0]) as s3,
        hdfs_cluster(folders[1]) as hdfs,
        workers(2, folders[2], s3a_settings(s3.url)) as processes,
    ):
        yield Storage(s3, hdfs, processes)


@pytest.mark.parametrize("scheme", ["s3a", "hdfs"])
def test_the_whole_life_of_an_index(storage, scheme):
    one, other = storage.processes
    root = f"{storage.place(scheme)}/tables/a b%20c=d+é/ü"
    one.run(steps.write, root, NAMES)
    assert one.run(steps.create, root) == (4, 0)
    found = [one.run(steps.ask, root, "id = 15"), other.run(steps.ask, root, "name = 'name-000025'")]
    assert [(a.rows, a.total, a.skipped, a.stale, a.unindexed) for a in found] == [(1, 4, 3, 0, 0)] * 2

    one.run(steps.write, root, ["new.parquet"], 10)
    one.run(steps.write, root, NAMES[1:2], 20)
    one.run(steps.delete, f"{root}/{NAMES[0]}")
    asked = other.run(steps.ask, root, "id IN (5, 15, 25, 105, 205)")
    assert (asked.rows, asked.total, asked.skipped, asked.stale, asked.unindexed) == (3, 4, 1, 1, 1)

    together = [w.start(steps.refresh, root, "", True) for w in storage.processes]
    (seen, removed, version), (seen_too, removed_too, version_too) = (f.result(timeout=300) for f in together)
    assert max(seen, seen_too) == 2
    assert max(removed, removed_too) == 1
    assert max(version, version_too) in (2, 3)
    for worker in storage.processes:
        asked = worker.run(steps.ask, root, "id IN (105, 205) AND name > 'name-000104'")
        assert (asked.rows, asked.total, asked.skipped, asked.stale, asked.unindexed) == (2, 4, 2, 0, 0)
    before = one.run(steps.files_below, root)
    assert one.run(steps.refresh, root)[:2] == (0, 0)
    assert one.run(steps.files_below, root) == before

    assert other.run(steps.drop, root) is False
    assert one.run(steps.files_below, f"{root}/_skipstone") == []
    asked = one.run(steps.ask, root, "id = 105")
    assert (asked.rows, asked.skipped) == (1, 0)
    assert asked.not_used == ("no metadata: the dataset is not indexed",)


@pytest.mark.parametrize("scheme", ["s3a", "hdfs"])
def test_metadata_lies_where_the_location_says(storage, scheme, tmp_path):
    one, other = storage.processes
    here, there = f"file:{tmp_path}/da ta+1", f"{storage.place(scheme)}/elsewhere/da ta+1"
    for data, location in ((here, f"{storage.place(scheme)}/metadata of all"), (there, f"file:{tmp_path}")):
        one.run(steps.make_folder, location)
        one.run(steps.write, data, NAMES[:2])
        one.run(steps.create, data, location)
        asked = other.run(steps.ask, data, "id = 15", location)
        assert (asked.rows, asked.total, asked.skipped) == (1, 2, 1)
        assert one.run(steps.files_below, f"{data}/_skipstone") == []
        assert any(name.endswith(".part") for name in one.run(steps.files_below, location))
        assert other.run(steps.ask, data, "id = 15").skipped == 0
        assert other.run(steps.drop, data, location) is False


@pytest.mark.parametrize("scheme", ["s3a", "hdfs"])
def test_two_processes_have_one_winner_each_time(storage, scheme):
    before = len(storage.s3.requests())
    race(storage.processes, f"{storage.place(scheme)}/races", files=40, versions=12)
    if scheme == "s3a":
        refused = [r for r in storage.s3.requests(before) if (r.method, r.status) == ("PUT", 412)]
        assert refused, "no two creates met at the server: this was no race"


def test_the_race_would_show_a_create_that_is_not_atomic(storage):
    rounds = 10
    folder = f"s3a://{BUCKET}/no race"
    ended = [w.start(create_files, folder, rounds, f"{n}", True) for n, w in enumerate(storage.processes)]
    one, other = (set(future.result(timeout=300)) for future in ended)
    assert one | other == set(range(rounds))
    assert one & other, "two plain creates never both succeeded"


def test_without_conditional_creates_one_warning_is_logged(storage):
    one, _ = storage.processes
    assert one.run(warnings_of_commits, f"s3a://{BUCKET}/data") == (True, [])
    atomic, told = one.run(warnings_of_commits, f"s3a://{UNCONDITIONAL}/data")
    assert not atomic
    assert len(told) == 1
    assert "let one process at a time write" in told[0]


def test_an_object_replaced_within_the_second_is_noticed_by_its_tag(storage):
    one, other = storage.processes
    root = f"s3a://{BUCKET}/replaced"
    one.run(steps.write, root, NAMES)
    storage.s3.same_second()
    one.run(steps.create, root)
    before = one.run(steps.states, root)
    one.run(steps.write, root, NAMES[2:3], 50)
    storage.s3.same_second()
    after = one.run(steps.states, root)
    assert {name: after[name] for name in NAMES} == {name: before[name] for name in NAMES}
    for worker in (one, other):
        asked = worker.run(steps.ask, root, "id = 505")
        assert (asked.rows, asked.total, asked.skipped, asked.stale) == (1, 4, 3, 1)
    assert one.run(steps.refresh, root)[0] == 1
    asked = other.run(steps.ask, root, "id = 505")
    assert (asked.rows, asked.skipped, asked.stale) == (1, 3, 0)


def test_a_commit_whose_answer_was_lost_is_known_for_ones_own(storage):
    one, other = storage.processes
    root = f"s3a://{BUCKET}/lost answer"
    one.run(steps.write, root, NAMES)
    before = len(storage.s3.requests())
    storage.s3.lose_answers(1)
    assert one.run(steps.create, root) == (4, 0)
    answers = [r.status for r in storage.s3.requests(before) if r.method == "PUT" and "_manifests" in r.key]
    assert answers == [200, 412], "the create was to be sent twice"
    asked = other.run(steps.ask, root, "id = 15")
    assert (asked.rows, asked.skipped) == (1, 3)


def test_a_needle_costs_requests_for_metadata_and_the_kept_object_only(storage):
    one, other = storage.processes
    root = f"s3a://{BUCKET}/lake/tables/events"
    one.run(steps.write, root, [f"part-{n:04d}.parquet" for n in range(COUNT)])
    one.run(steps.create, root)

    def counted(number: int, skipping: bool = True) -> tuple[int, set[str]]:
        """Return the requests for metadata, and the objects that were opened."""
        before = len(storage.s3.requests())
        assert other.run(steps.find, root, number, skipping) == 1
        made = storage.s3.requests(before)
        metadata = [r for r in made if "_skipstone" in r.key]
        return len(metadata), {r.key.rpartition("/")[2] for r in made if r.key.endswith(".parquet")}

    cold, opened = counted(7)
    assert opened == {"part-0007.parquet"}
    assert 3 <= cold <= 10
    warm, opened = counted(3)
    assert opened == {"part-0003.parquet"}
    assert warm <= 2
    assert counted(5, skipping=False) == (0, {f"part-{n:04d}.parquet" for n in range(COUNT)})


def test_that_there_is_no_metadata_is_remembered(storage):
    one, other = storage.processes
    root = f"s3a://{BUCKET}/lake/tables/plain"
    one.run(steps.write, root, NAMES[:1])
    counts = []
    for _ in range(2):
        before = len(storage.s3.requests())
        assert other.run(steps.find, root, 0) == 1
        counts.append(len([r for r in storage.s3.requests(before) if "_skipstone" in r.key]))
    assert counts[0] <= 4  # the folder and those above it
    assert counts[1] == 0
