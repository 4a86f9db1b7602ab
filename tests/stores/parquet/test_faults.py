"""Faults cost time, never answers: damage, races, killed writers, vanished files, hostile manifests."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path

import pytest
from tests.stores.keys import key_file, store_with

from skipstone.errors import (
    CommitConflictError,
    MetadataCorruptError,
    MetadataStoreError,
    MetadataTooNewError,
)
from skipstone.indexing.records import ReaderRecord
from skipstone.stores import drafts
from skipstone.stores.manifest import Manifest
from skipstone.stores.metadata_store import Change, ColumnRecord, IndexRecord, ReadProfile
from skipstone.stores.parquet import cleaning
from skipstone.stores.parquet.filesystem import LocalFileSystem
from skipstone.stores.parquet.layout import dataset_folder
from skipstone.stores.parquet.store import ParquetStore
from skipstone.testing.store_model import (
    ROOT,
    HasTag,
    HasValue,
    Model,
    Row,
    StoredRangeIndex,
    StoredTagsIndex,
    added,
    assert_same,
    commit,
    record,
    rows_of,
)

A = StoredRangeIndex("a")
T = StoredTagsIndex("t")
RA, RT = record(A, "a"), record(T, "t")
CLAUSES = (HasValue(A, 15), HasTag(T, "x"))


@pytest.fixture
def base(tmp_path):
    return f"file:{tmp_path}"


@pytest.fixture
def store(base):
    return ParquetStore(location=base)


def folder_of(base: str) -> Path:
    return Path(dataset_folder(ROOT, base).removeprefix("file:"))


def manifests(base: str) -> list[Path]:
    return sorted((folder_of(base) / "_manifests").glob("*.json"))


def parts(base: str) -> list[Path]:
    return sorted((folder_of(base) / "_parts").glob("*.part"))


def rewritten(path: Path, **changes: object) -> None:
    """Change a manifest and give it a checksum that fits, as a forger would."""
    content = json.loads(path.read_text())
    del content["checksum"]
    content.update(changes)
    body = json.dumps(content, separators=(",", ":"))[:-1].encode()
    path.write_bytes(body + b',"checksum":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n')


def some_metadata(store, versions: int = 3):
    snapshot, rows = None, rows_of(6)
    for n, row in enumerate(rows):
        row.fields["t"] = {"tags": ["x"] if n % 2 else ["y", "zß"]}
    rows[5].trusted = False
    for n in range(versions):
        snapshot = commit(store, snapshot, None, [RA, RT], rows[2 * n : 2 * n + 2])
    return snapshot


def test_the_manifest_keeps_every_field_of_a_record(store, base, tmp_path):
    full = IndexRecord(
        id="a-1_b",
        name="näme",
        type_name="storedrange",
        options={"fpp": 0.01, "names": ["x"], "nested": {"a": None}, "flag": True},
        columns=(ColumnRecord("`odd name`.x", "decimal(10,2)", partition=True, reads_as="default 5"),),
        profile=ReadProfile("csv", {"sep": "\u0001\ud800"}, {"zone": "UTC"}, "digest"),
        fields={"low": "decimal128(10, 2)"},
        key="k1",
        created="c",
        refreshed="r",
        functions={"getAgentName": "version 1"},
        lookups={"low": "set"},
        reader=ReaderRecord("csv", {"sep": "\u0001\ud800"}, '{"type": "struct", "fields": []}'),
    )
    for part in (full, full.columns[0], full.profile, full.reader):
        for item in fields(part):
            given = getattr(part, item.name) not in (item.default, {}, ())
            assert given or item.name == "sealed", f"give {item.name} a value in this test"
    file = key_file(tmp_path / "keys.json", "k1")
    commit(store_with(base, file), None, None, [full])
    (found,) = store_with(base, file).latest(ROOT).indexes
    assert found.sealed
    assert replace(found, sealed="") == full
    plain = replace(full, key=None)
    commit(store, store.latest(ROOT), None, [plain])
    assert ParquetStore(location=base).latest(ROOT).indexes == (plain,)


@pytest.mark.slow
def test_any_damaged_byte_is_noticed_or_changes_nothing(store, base):
    snapshot = some_metadata(store)
    truth = [store.evaluate(snapshot, clause).kept.tolist() for clause in CLAUSES]
    objects = store.objects(snapshot)
    generator = random.Random(1)
    noticed = unchanged = 0
    for file in (manifests(base)[-1], *parts(base)):
        whole = file.read_bytes()
        places = generator.sample(range(len(whole)), min(len(whole), 150))
        damages = [whole[:p] + bytes([whole[p] ^ (1 << generator.randrange(8))]) + whole[p + 1 :] for p in places]
        damages += [whole[:p] for p in places[:30]] + [whole[:p] + whole[p + 1 :] for p in places[:30]] + [b""]
        damages += [whole + b"x", b"\0" * len(whole)]
        for damaged in damages:
            file.write_bytes(damaged)
            reader = ParquetStore(location=base)
            try:
                seen = reader.latest(ROOT)
                kept = [reader.evaluate(seen, clause).kept.tolist() for clause in CLAUSES]
                table = reader.objects(seen)
            except (MetadataCorruptError, MetadataTooNewError) as error:
                noticed += 1
                assert str(folder_of(base)) in str(error)  # noqa: PT017  (not noticing is fine, if nothing changed)
                continue
            assert kept == truth
            assert table.equals(objects)
            unchanged += 1
        file.write_bytes(whole)
    assert noticed > 500
    assert noticed > unchanged


def test_a_part_that_is_not_needed_may_be_damaged(store, base):
    """Reading a little stays reading a little: a column that is not asked for is not looked at."""
    some_metadata(store)
    for part in parts(base):
        whole = bytearray(part.read_bytes())
        whole[6] ^= 255  # inside the paths
        part.write_bytes(whole)
    reader = ParquetStore(location=base)
    snapshot = reader.latest(ROOT)
    assert not reader.evaluate(snapshot, CLAUSES[0]).kept.all()
    with pytest.raises(MetadataCorruptError, match="a column is not what was written"):
        reader.objects(snapshot)


def test_damage_is_repaired_by_a_commit_that_replaces(store, base):
    some_metadata(store)
    manifests(base)[-1].write_bytes(b"{}")
    with pytest.raises(MetadataCorruptError, match="refresh"):
        store.latest(ROOT)
    with pytest.raises(CommitConflictError):
        commit(store, None, None, [RA], rows_of(1))
    assert store.recoverable_indexes(ROOT) == (RA, RT)
    model = Model()
    model.apply((RA,), rows_of(2), [RA], ())
    snapshot = store.commit(ROOT, None, Change((RA,), added(rows_of(2), [RA])), replace=True)
    assert snapshot.version == 4
    assert_same(ParquetStore(location=base), snapshot, model, CLAUSES[:1])
    store.drop(ROOT)
    assert store.latest(ROOT) is None
    assert not folder_of(base).exists()
    assert store.recoverable_indexes(ROOT) == ()


def test_an_older_manifest_is_not_used_instead_of_a_damaged_one(store, base):
    some_metadata(store)
    manifests(base)[-1].write_bytes(manifests(base)[-2].read_bytes())
    with pytest.raises(MetadataCorruptError, match="version 2"):
        ParquetStore(location=base).latest(ROOT)


def test_metadata_of_a_later_format_is_refused_politely(store, base):
    some_metadata(store)
    rewritten(manifests(base)[-1], format_version=2, parts="something else entirely")
    with pytest.raises(MetadataTooNewError, match="upgrade"):
        ParquetStore(location=base).latest(ROOT)


def test_unknown_keys_of_the_same_format_are_ignored(store, base):
    snapshot = some_metadata(store)
    rewritten(manifests(base)[-1], later="addition")
    assert ParquetStore(location=base).latest(ROOT) == snapshot


def first_part(**changes):
    return lambda content: {"parts": [{**content["parts"][0], **changes}]}


def first_index(**changes):
    return lambda content: {"indexes": [{**content["indexes"][0], **changes}]}


@pytest.mark.parametrize(
    "change",
    [
        first_part(file="../../etc/passwd.part"),
        first_part(file="/etc/passwd.part"),
        first_part(file="a/b.part"),
        first_part(file=""),
        first_part(file=None),
        first_part(rows=-1),
        first_part(rows=1 << 40),
        first_part(rows=True),
        first_part(removed=10**9),
        first_part(length=-5),
        first_part(length=10**30),
        first_part(footer_length=10**9),
        first_part(footer_sha256="x"),
        first_part(indexes={"../x": [1, 1]}),
        first_part(indexes={"a": [-1, 1]}),
        first_part(indexes={"a": [1]}),
        first_part(sequence=-1),
        lambda content: {"parts": [content["parts"][0]] * 2},
        lambda content: {"parts": list(reversed(content["parts"]))},
        lambda content: {"parts": {}},
        lambda content: {"parts": [[]]},
        lambda content: {"retired": [{"file": "../x", "since": 0}]},
        lambda content: {"object_count": -1},
        lambda content: {"object_count": 10**12},
        lambda content: {"version": 7},
        lambda content: {"format_version": "1"},
        lambda content: {"format_version": 0},
        lambda content: {"indexes": content["indexes"] * 2},
        first_index(id="a:b"),
        first_index(name=5),
        first_index(fields={"a.b": "int64"}),
        first_index(fields=[]),
        first_index(columns=[{"name": "x"}]),
        first_index(columns=[{"name": "x", "type": "int", "partition": "no", "reads_as": ""}]),
        first_index(profile=None),
    ],
)
def test_a_hostile_manifest_is_refused(store, base, change):
    some_metadata(store)
    path = manifests(base)[-1]
    rewritten(path, **change(json.loads(path.read_text())))
    with pytest.raises(MetadataCorruptError):
        ParquetStore(location=base).latest(ROOT)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"format_version": 1' + "0" * 10_000 + "}", "null", "\xff", "1"])
def test_a_manifest_that_is_something_else_is_refused(store, base, text):
    some_metadata(store)
    manifests(base)[-1].write_bytes(text.encode("latin-1"))
    with pytest.raises((MetadataCorruptError, MetadataTooNewError)):
        ParquetStore(location=base).latest(ROOT)


def test_a_forged_manifest_cannot_invent_objects_or_fields(store, base):
    snapshot = some_metadata(store)
    rewritten(manifests(base)[-1], object_count=5)
    reader = ParquetStore(location=base)
    with pytest.raises(MetadataCorruptError, match="instead of 5"):
        reader.evaluate(reader.latest(ROOT), CLAUSES[0])
    odd = {**json.loads(manifests(base)[-1].read_text()), "object_count": snapshot.object_count}
    odd["indexes"][0]["fields"] = {"low": "os.system", "high": "int64"}
    rewritten(manifests(base)[-1], object_count=odd["object_count"], indexes=odd["indexes"])
    reader = ParquetStore(location=base)
    with pytest.raises(MetadataCorruptError, match="no known type"):
        reader.evaluate(reader.latest(ROOT), CLAUSES[0])


def test_parts_that_vanish_are_an_error_that_planning_survives(store, base):
    snapshot = some_metadata(store)
    for part in parts(base):
        part.unlink()
    reader = ParquetStore(location=base)
    for call in (reader.objects, lambda s: reader.evaluate(s, CLAUSES[0]), lambda s: reader.coverage(s, RA)):
        with pytest.raises(MetadataStoreError, match="is gone"):
            call(reader.latest(ROOT))
    with pytest.raises(MetadataStoreError):
        commit(reader, snapshot, None, [RA, RT], rows_of(1))
    assert not parts(base)


def test_an_overwritten_dataset_has_no_metadata(tmp_path):
    root = f"file:{tmp_path}/data"
    store = ParquetStore()
    rows = rows_of(3)
    commit(store, None, None, [RA], rows, root=root)
    assert (tmp_path / "data/_skipstone/_manifests").is_dir()
    old = store.latest(root)
    shutil.rmtree(tmp_path / "data")
    assert store.latest(root) is None
    (tmp_path / "data").mkdir()
    with pytest.raises(CommitConflictError):
        commit(store, old, None, [RA], rows, root=root)
    other = ParquetStore()
    new = commit(other, None, None, [RA], rows[:1], root=root)
    assert new.version == old.version == 1
    store._absent_seconds = 0
    assert store.latest(root) == new
    assert store.objects(store.latest(root)).num_rows == 1


def test_absence_is_remembered_but_own_commits_are_seen_at_once(base):
    class Counting(LocalFileSystem):
        calls = 0

        def list_folder(self, folder):
            Counting.calls += 1
            return super().list_folder(folder)

    reader = ParquetStore(lambda path: Counting(), base)
    assert [reader.latest(ROOT) for _ in range(5)] == [None] * 5
    assert Counting.calls == 1
    snapshot = commit(ParquetStore(location=base), None, None, [RA], rows_of(1))
    assert reader.latest(ROOT) == snapshot
    Counting.calls = 0
    assert reader.latest(ROOT) is reader.latest(ROOT)
    assert Counting.calls == 2


def test_absence_seen_before_a_commit_is_not_remembered_after_it(base):
    class Slow(LocalFileSystem):
        def list_folder(self, folder):
            try:
                return super().list_folder(folder)
            finally:
                if not committed:
                    committed.append(commit(ParquetStore(location=base), None, None, [RA], rows_of(1)))

    committed = []
    reader = ParquetStore(lambda path: Slow(), base)
    assert reader.latest(ROOT) is None
    assert reader.latest(ROOT) == committed[0]


def test_a_warm_evaluation_reads_nothing(store, base):
    some_metadata(store)
    reader = ParquetStore(location=base)
    snapshot = reader.latest(ROOT)
    cold, warm = reader.evaluate(snapshot, CLAUSES[0]), reader.evaluate(snapshot, CLAUSES[0])
    assert 0 < cold.bytes_read < sum(part.stat().st_size for part in parts(base))
    assert warm.bytes_read == 0


def race(base: str, number: int, commits: int, answers) -> None:
    store = ParquetStore(location=base)
    conflicts = 0
    for n in range(commits):
        row = Row(f"file:/{number}-{n}", fields={"a": {"low": n, "high": n}})
        while True:
            try:
                commit(store, store.latest(ROOT), None, [RA], [row])
                break
            except CommitConflictError:
                conflicts += 1
    answers.put((number, conflicts))


@pytest.mark.slow
def test_two_processes_that_race_lose_no_commit(base):
    commits = 100
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    racers = [context.Process(target=race, args=(base, number, commits, answers)) for number in range(2)]
    for racer in racers:
        racer.start()
    conflicts = sum(answers.get(timeout=600)[1] for _ in racers)
    for racer in racers:
        racer.join()
    store = ParquetStore(location=base)
    snapshot = store.latest(ROOT)
    assert snapshot.version == 2 * commits
    paths = set(store.objects(snapshot).column("path").to_pylist())
    assert paths == {f"file:/{number}-{n}" for number in range(2) for n in range(commits)}
    assert conflicts > 0, "the processes never met: the test proves nothing"
    named = {part.file for part in store._manifest(snapshot).parts + store._manifest(snapshot).retired}
    assert {part.name for part in parts(base)} == named, "a loser left its part behind"
    assert len(manifests(base)) == 2 * commits
    for path in manifests(base)[:-1]:
        os.utime(path, (1, 1))
    store.clean(ROOT)
    assert len(manifests(base)) == 10


@pytest.mark.parametrize("slow", ["a few versions", "an hour"])
def test_a_writer_that_was_slow_loses_to_those_that_were_not(base, slow, monkeypatch):
    """Its number is taken, and stays so while it may still come: else its commit would be lost without a word."""

    class Slow(LocalFileSystem):
        def create_if_absent(self, path, data):
            self.late()
            return super().create_if_absent(path, data)

        def put(self, path, local_file):
            super().put(path, local_file)
            if slow == "an hour":
                self.late()

        def late(self):
            if not committed:
                quick = ParquetStore(location=base)
                rows = (rows_of(1, start=n) for n in range(1, 15))
                committed.extend(commit(quick, quick.latest(ROOT), None, [RA], row) for row in rows)
                if slow == "an hour":
                    for path in manifests(base)[:-1]:
                        os.utime(path, (1, 1))
                    quick.clean(ROOT)
                    later = time.time() + 3600
                    monkeypatch.setattr(time, "time", lambda: later)

    committed = []
    first = commit(ParquetStore(location=base), None, None, [RA], rows_of(1))
    with pytest.raises(CommitConflictError, match="try again"):
        commit(ParquetStore(lambda path: Slow(), base), first, None, [RA], rows_of(1, start=20))
    assert len(committed) == 14
    assert len(manifests(base)) == (10 if slow == "an hour" else 15)
    assert ParquetStore(location=base).latest(ROOT) == committed[-1]


KILLED = """
import os, signal, sys
from skipstone.stores.parquet.filesystem import LocalFileSystem
from skipstone.stores.parquet.store import ParquetStore
from skipstone.testing.store_model import ROOT, StoredRangeIndex, commit, record, rows_of
base, step = sys.argv[1:]

def killed(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

if step == "before the manifest":
    LocalFileSystem.create_if_absent = killed
elif step == "inside the manifest":
    os.link = killed
elif step == "inside the part":
    LocalFileSystem.put = lambda self, path, local: (self._local(path).write_bytes(local.read_bytes()[:50]), killed())
store = ParquetStore(location=base)
commit(store, store.latest(ROOT), None, [record(StoredRangeIndex("a"), "a")], rows_of(1, start=90))
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", ["before the manifest", "inside the manifest", "inside the part"])
def test_a_killed_writer_leaves_garbage_that_a_later_commit_cleans(store, base, step):
    model = Model()
    snapshot = commit(store, None, model, [RA], rows_of(3))
    killed = subprocess.run([sys.executable, "-c", KILLED, base, step], cwd=Path(__file__).parents[3], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert store.latest(ROOT) == snapshot
    assert_same(store, snapshot, model, CLAUSES[:1])
    left = {p for p in folder_of(base).rglob("*") if p.is_file()}
    assert len(left) > 2
    for path in left:
        os.utime(path, (1, 1))
    snapshot = commit(store, snapshot, model, [RA], rows_of(1, start=3))
    assert_same(store, snapshot, model, CLAUSES[:1])
    now = {p for p in folder_of(base).rglob("*") if p.is_file()}
    assert {p.name for p in now} == {
        *(part.file for part in store._manifest(snapshot).parts),
        *(path.name for path in manifests(base)),
    }


def test_a_reader_of_an_older_version_keeps_its_parts_for_a_while(base, monkeypatch):
    store = ParquetStore(location=base, max_parts=1)
    first = commit(store, None, None, [RA], rows_of(2))
    for path in folder_of(base).rglob("*.part"):
        os.utime(path, (1, 1))
    second = commit(store, first, None, [RA], rows_of(2, start=2))
    assert len(store._manifest(second).parts) == 1
    assert ParquetStore(location=base).objects(first).num_rows == 2
    monkeypatch.setattr(drafts, "GRACE", -1)
    monkeypatch.setattr(cleaning, "GRACE", -1)
    third = commit(store, second, None, [RA], rows_of(2, start=4))
    assert {part.name for part in parts(base)} >= {part.file for part in store._manifest(third).parts}
    with pytest.raises(MetadataStoreError, match="is gone"):
        ParquetStore(location=base).objects(first)


def test_an_uncertain_commit_is_decided_by_what_is_there(base):
    class Uncertain(LocalFileSystem):
        mode = "written"

        def create_if_absent(self, path, data):
            if self.mode == "written":
                super().create_if_absent(path, data)
            elif self.mode == "other":
                commit(ParquetStore(location=base), store.latest(ROOT), None, [RA], rows_of(1))
            msg = "connection reset"
            raise OSError(msg)

    store = ParquetStore(lambda path: Uncertain(), base)
    snapshot = commit(store, None, None, [RA], rows_of(3))
    assert store.latest(ROOT) == snapshot
    Uncertain.mode = "other"
    with pytest.raises(CommitConflictError):
        commit(store, snapshot, None, [RA], rows_of(3))
    assert store.latest(ROOT).version == 2
    assert len(parts(base)) == 2
    Uncertain.mode = "lost"
    with pytest.raises(MetadataStoreError, match="connection reset"):
        commit(store, store.latest(ROOT), None, [RA], rows_of(3))
    assert store.latest(ROOT).version == 2


@pytest.mark.parametrize("call", ["make_folder", "put", "create_if_absent"])
def test_a_full_disk_leaves_nothing_behind(base, call):
    class Full(LocalFileSystem):
        pass

    def fail(self, *arguments):
        raise OSError(28, "No space left on device")

    setattr(Full, call, fail)
    store = ParquetStore(lambda path: Full(), base)
    with pytest.raises(MetadataStoreError, match="No space left"):
        commit(store, None, None, [RA], rows_of(3))
    assert ParquetStore(location=base).latest(ROOT) is None


def test_a_location_that_is_not_there_is_an_error_that_says_so(tmp_path):
    store = ParquetStore(location=f"file:{tmp_path}/nowhere")
    assert store.latest(ROOT) is None
    with pytest.raises(MetadataStoreError, match=r"does not exist.*spark\.skipstone\.location"):
        commit(store, None, None, [RA], rows_of(1))
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_that_may_not_be_written_names_the_setting(tmp_path):
    """A file where the folder should be stops even a superuser, unlike permissions."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/_skipstone").write_text("not a folder")
    with pytest.raises(MetadataStoreError, match=r"spark\.skipstone\.location"):
        commit(ParquetStore(), None, None, [RA], rows_of(1), root=f"file:{tmp_path}/data")


@pytest.mark.skipif(os.geteuid() == 0, reason="a superuser may write everywhere")
def test_a_read_only_folder_names_the_setting(tmp_path):
    (tmp_path / "data").mkdir(mode=0o555)
    with pytest.raises(MetadataStoreError, match=r"spark\.skipstone\.location"):
        commit(ParquetStore(), None, None, [RA], rows_of(1), root=f"file:{tmp_path}/data")


def test_an_index_id_cannot_be_used_again(store):
    snapshot = some_metadata(store)
    snapshot = commit(store, snapshot, None, [RT])
    with pytest.raises(MetadataStoreError, match="new id"):
        commit(store, snapshot, None, [RT, RA])


def test_compaction_keeps_parts_few_and_drops_what_is_dead(base):
    store = ParquetStore(location=base, max_parts=3)
    model, snapshot = Model(), None
    for n in range(12):
        indexes = [RA, RT] if n < 5 else [RT]
        rows = [
            replace(row, fields={"a": {"low": n, "high": n}, "t": {"tags": ["x"] * (n % 2)}})
            for row in rows_of(2, start=n)
        ]
        snapshot = commit(store, snapshot, model, indexes, rows, indexes[n % 2 :] if n < 5 else indexes)
        assert len(store._manifest(snapshot).parts) <= 3
        assert_same(store, snapshot, model, CLAUSES)
    assert all("a" not in part.indexes for part in store._manifest(snapshot).parts)


def test_row_groups_are_bounded_in_objects_and_bytes(base):
    from skipstone.stores.parts.columns import rows_per_group

    assert rows_per_group(1_000_000, 8_000_000) == 65_536
    assert rows_per_group(1000, 64 << 30) == 1
    assert rows_per_group(0, 0) == 65_536
    store = ParquetStore(location=base)
    rows = [Row(f"file:/{n}", fields={"a": {"low": n, "high": n}}) for n in range(70_000)]
    snapshot = commit(store, None, None, [RA], rows)
    assert store._reader(snapshot).parts[0].row_group_rows() == [65_536, 4_464]
    assert store.evaluate(snapshot, HasValue(A, 66_000)).kept.nonzero()[0].tolist() == [66_000]


def test_manifests_survive_being_written_by_hand(store, base):
    """docs/format.md says how; this is another implementation's view."""
    some_metadata(store)
    data = manifests(base)[-1].read_bytes()
    body, _, ending = data.rpartition(b',"checksum":"')
    assert ending == hashlib.sha256(body).hexdigest().encode() + b'"}\n'
    assert Manifest.decode(data, "x", 3).encode() == data
