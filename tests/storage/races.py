"""What two processes do at the same instant: create one file, commit one version."""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

import pyarrow as pa

from skipstone.engines.spark.hadoop import HadoopFileSystem, file_system_for
from skipstone.errors import CommitConflictError
from skipstone.stores.metadata_store import Change
from skipstone.stores.parquet.store import ParquetStore
from tests.storage.workers import rendezvous, session

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tests.storage.workers import Worker


class Overwriting(HadoopFileSystem):
    """Creates without overwriting, as Hadoop's ``create`` offers it: what is not atomic everywhere."""

    renaming = ()

    def _has_conditional_create(self, path: str) -> bool:
        return False


def create_files(folder: str, rounds: int, who: str, plainly: bool = False) -> list[int]:
    """Create files that another process creates, too; gives the rounds in which this one was told that it did."""
    system = Overwriting(session()) if plainly else file_system_for(folder, session())
    system.make_folder(folder)
    won = []
    for number in range(rounds):
        rendezvous()
        if system.create_if_absent(f"{folder}/{number}", who.encode() * 1000):
            won.append(number)
    rendezvous()
    if not plainly:
        for number in range(rounds):
            found = system.read(f"{folder}/{number}", 1000 * len(who))
            assert (found == who.encode() * 1000) == (number in won), f"round {number}"
    return won


def commit_versions(root: str, rounds: int, who: str) -> tuple[list[int], list[str]]:
    """Commit versions that another process commits, too; gives the rounds won and the objects known in the end."""
    store = ParquetStore(lambda path: file_system_for(path, session()), absent_seconds=0)
    won: list[int] = []
    paths: list[str] = []
    lost = 0
    for number in range(rounds):
        base = store.latest(root)
        rendezvous()
        try:
            committed = store.commit(root, base, Change((), _added(f"{root}/{number}-{who}")))
            assert committed.version == number + 1
            won.append(number)
        except CommitConflictError:
            lost += 1
        rendezvous()
        latest = store.latest(root)
        assert latest is not None
        assert latest.version == number + 1
        paths = store.objects(latest).column("path").to_pylist()
        assert len(paths) == number + 1, "a version lost or gained an object"
        assert (f"{root}/{number}-{who}" in paths) == (number in won)
    assert len(won) + lost == rounds
    return won, paths


def one_winner_each(first: Future, second: Future, rounds: int) -> None:
    """Check the rounds that two processes say they won: each round by exactly one."""
    one, other = set(first.result(timeout=600)), set(second.result(timeout=600))
    assert not one & other, f"both won rounds {sorted(one & other)}"
    assert one | other == set(range(rounds))


def race(processes: list[Worker], folder: str, files: int, versions: int) -> None:
    """Let two processes create files, and commit versions, at the same instants."""
    one_winner_each(*(w.start(create_files, f"{folder}/files", files, f"{n}") for n, w in enumerate(processes)), files)
    root = f"{folder}/raced"
    ended = [w.start(commit_versions, root, versions, f"{n}") for n, w in enumerate(processes)]
    (one, seen), (other, also_seen) = (future.result(timeout=600) for future in ended)
    assert sorted([*one, *other]) == list(range(versions))
    assert sorted(seen) == sorted(also_seen)
    assert {path.rpartition("/")[2] for path in seen} == {f"{n}-0" for n in one} | {f"{n}-1" for n in other}


def warnings_of_commits(root: str) -> tuple[bool, list[str]]:
    """Commit twice; says whether commits are atomic there, and what was logged."""
    told: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("skipstone")
    log.addHandler(handler)
    try:
        store = ParquetStore(lambda path: file_system_for(path, session()))
        first = store.commit(root, None, Change((), _added(f"{root}/a")))
        store.commit(root, first, Change((), _added(f"{root}/b")))
        return store.atomic_commits(root), told
    finally:
        log.removeHandler(handler)


def _added(path: str) -> pa.Table:
    """One object without any metadata but that it is there."""
    return pa.table(
        {
            "path": pa.array([path]),
            "digest": pa.array([hashlib.md5(path.encode()).digest()], pa.binary(16)),
            "length": pa.array([1], pa.int64()),
            "modified": pa.array([1], pa.int64()),
            "etag": pa.array([""]),
            "row_count": pa.array([1], pa.int64()),
            "trusted": pa.array([True]),
        }
    )
