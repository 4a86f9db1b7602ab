"""Metadata written by an attacker, checksums fitting: nothing is run, nothing outside is touched, time is bounded.

What someone who may write metadata *can* do is lie about values (docs/reliability.md); everything else is refused, or
costs the skipping of the index concerned.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import skipstone
from skipstone import indexes, registry
from skipstone.errors import MetadataStoreError, SkipstoneError
from skipstone.stores.parquet.filesystem import LocalFileSystem
from tests.faults.forging import forge_part, newest_manifest, reseal, seal
from tests.faults.lake import Lake, make_indexed, write_object

MOST_SECONDS = 60.0
"""What nine queries may take on a busy machine, whatever the metadata is like; on an idle one they take a second."""


PRECIOUS = ("_0123456789.part", f".{'0' * 32}.tmp", "manifest.json", "precious.txt")


@pytest.fixture
def lake(lakes):
    for index_type in indexes.BUILT_IN:
        registry.register_index(index_type)
    (lakes / "outside").mkdir()
    for name in PRECIOUS:
        (lakes / "outside" / name).write_text("precious")
        os.utime(lakes / "outside" / name, (1, 1))
    return make_indexed(lakes / "lake")


def everything_outside(lake):
    """Return what lies outside of the lake and is none of the store's, with its time."""
    files = [lake.folder.parent / "outside" / name for name in PRECIOUS]
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) if path.exists() else None for path in files}


def survives(lake, tally, kind, *, refreshes=True):
    """Ask, refresh, drop: nothing wrong, nothing outside touched, no error but Skipstone's own, no module imported."""
    before, modules = everything_outside(lake), set(sys.modules)
    count = tally.of("hostile metadata", kind)
    count.faults += 1
    lake = lake.reopened()
    started = time.monotonic()
    answers = lake.ask()
    assert time.monotonic() - started < MOST_SECONDS
    tally.asked(count, answers)
    count.noticed += bool(answers.said)
    assert max(map(len, answers.said), default=0) < 100_000, "a message repeats what the attacker wrote, at length"
    if refreshes:
        with suppress(SkipstoneError):
            lake.refresh()
        tally.asked(count, lake.ask())
    lake.drop()
    tally.asked(count, lake.ask())
    lake.create()
    repaired = lake.ask()
    tally.asked(count, repaired)
    assert repaired.skipped > 30
    count.repaired += 1
    assert everything_outside(lake) == before
    imported = {name for name in set(sys.modules) - modules if not name.startswith(("skipstone", "pyarrow", "pyspark"))}
    assert not imported & {"antigravity", "this", "turtle", "evil"}
    return answers


def nested(depth):
    found = 1
    for _ in range(depth):
        found = [found]
    return found


def first_index(**changes):
    return lambda content: content["indexes"][0].update(changes)


def as_type(type_name, **options):
    return first_index(type_name=type_name, options={"column": "id"} | options, name="x")


def fields(kind):
    return lambda content: content["indexes"][0].update(fields=dict.fromkeys(content["indexes"][0]["fields"], kind))


COLUMN = {"name": "id", "type": "bigint", "partition": False, "reads_as": ""}
FORGERIES = {
    "type that is a module": first_index(type_name="antigravity"),
    "type that is a class": first_index(type_name="skipstone.indexes.minmax.MinMaxIndex"),
    "type that is code": first_index(type_name="__import__('antigravity')"),
    "no column": first_index(options={"column": None}),
    "column that is an object": first_index(options={"column": {"__class__": "antigravity"}}),
    "column that is a long list": first_index(options={"column": ["id"] * 10_000}),
    "column of back-ticks": first_index(options={"column": "`" * 100_000}),
    "column of dots": first_index(options={"column": "a." * 100_000}),
    "option that is not there": first_index(options={"column": "id", "evil": 1}),
    "options of the constructor's own": first_index(options={"column": "id", "self": 1, "cls": 2, "name": "y"}),
    "deep options": first_index(options={"column": "id", "evil": nested(900)}),
    "name with control characters": first_index(name="x\n\x1b[31m\0"),
    "Bloom filter of a tiny probability": as_type("bloomfilter", fpp=1e-300),
    "Bloom filter of no probability": as_type("bloomfilter", fpp=float("nan")),
    "hybrid of a huge threshold": as_type("hybrid", threshold=10**30),
    "endless gaps": as_type("gaplist", gaps=10**12),
    "workload of nonsense": as_type("gaplist", workload=nested(900)),
    "endless prefix": as_type("prefix", length=10**18),
    "number of 4,000 digits": as_type("suffix", length=10**4000),
    "long origins": as_type("metricdistance", metric="levenshtein", origins=["x" * 100_000] * 3),
    "metric that is not registered": as_type("metricdistance", metric="evil", origins=["a"]),
    "condition of brackets": first_index(
        type_name="feature", options={"features": [["a", "b"]], "conditions": ["[" * 20_000]}
    ),
    "SQL": first_index(type_name="feature", options={"features": [["a", "raise_error('run')"]], "conditions": []}),
    "function of Spark's": as_type("formatted", extract="java_method"),
    "function with SQL in it": as_type("formatted", extract="a`; DROP TABLE x; --"),
    "wide values": fields("fixed_size_binary[999999999]"),
    "texts instead of numbers": fields("string"),
    "narrow numbers": fields("int8"),
    "deep type": fields("list<item: " * 19 + "int8" + ">" * 19),
    "long type": fields("struct<" + "a: int64, " * 900 + "b: int8>"),
    "zone that is a path": fields("timestamp[us, tz=../../../etc/passwd]"),
    "decimal of 99 digits": fields("decimal256(99, -99)"),
    "type of code": fields("__import__('antigravity')"),
    "a hundred thousand fields": first_index(fields={f"f{n}": "int64" for n in range(100_000)}),
    "ninety thousand columns": first_index(columns=[COLUMN] * 90_000),
    "functions of no identity": first_index(functions={"abs": "x" * 10_000}),
    "three hundred indexes on one column": lambda c: c.update(
        indexes=[{**c["indexes"][0], "id": f"i{n}", "name": f"n{n}"} for n in range(300)]
    ),
    "two hundred thousand retired parts": lambda c: c.update(
        retired=[{"file": f"_{n}.part", "since": 0} for n in range(200_000)]
    ),
    "its own parts retired": lambda c: c.update(retired=[{"file": p["file"], "since": 0} for p in c["parts"]]),
    "no objects": lambda c: c.update(object_count=0),
    "no parts": lambda c: c.update(parts=[], object_count=0),
    "two billion rows": lambda c: c["parts"][0].update(rows=1 << 31),
    "part of a petabyte": lambda c: c["parts"][0].update(length=1 << 50, footer_length=1 << 31),
    "last sequence number": lambda c: c["parts"][-1].update(sequence=1 << 50),
    "NaN": lambda c: c.update(object_count=float("nan")),
    "infinite version": lambda c: c.update(version=float("inf")),
    "ids that are paths": lambda c: c["parts"][0].update(indexes={"../../outside": [0, 0]}),
    "part that is a path": lambda c: c["parts"][0].update(file="../../outside/precious.txt"),
    "part that is an absolute path": lambda c: c["parts"][0].update(file="/etc/passwd"),
    "retired that is a path": lambda c: c.update(retired=[{"file": "../../outside/precious.txt", "since": 0}]),
    "deep addition": lambda c: c.update(later=nested(900)),
    "root elsewhere": lambda c: c.update(root=f"file:{os.sep}"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_manifest(lake, tally, name):
    reseal(newest_manifest(lake), FORGERIES[name])
    refreshes = name != "three hundred indexes on one column"  # it would make them all
    answers = survives(lake, tally, "manifest", refreshes=refreshes)
    assert answers.said or answers.skipped > 0 or name in ("no parts", "no objects")


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 200_000,
        b'{"format_version":1,"version":' + b"1" * 5_000,
        b'{"format_version":1,"format_version":1,"version":3,"version":1e400',
        b'{"format_version":1,"parts":' + b"[" * 400 + b"]" * 400,
        b'{"format_version":true',
        b'{"format_version":-1',
        b'{"format_version":1,"\xff\xfe":1',
        b"{" * 50,
    ],
)
def test_manifest_of_odd_json(lake, tally, text):
    newest_manifest(lake).write_bytes(seal(text))
    assert survives(lake, tally, "manifest of odd JSON").skipped == 0


def test_a_key_given_twice(lake, tally):
    """The last one counts, as everywhere in Python; the checksum covers both."""
    path = newest_manifest(lake)
    body = path.read_bytes().rpartition(b',"checksum"')[0]
    path.write_bytes(seal(body + b',"parts":[],"object_count":0'))
    assert survives(lake, tally, "manifest of odd JSON").skipped == 0


@pytest.mark.parametrize("key", ["root", "writer", "created", "name", "type_name"])
def test_a_text_of_ten_megabytes(lake, tally, key):
    long = "x" * 10_000_000
    reseal(
        newest_manifest(lake),
        (lambda c: c.update({key: long})) if key in ("root", "writer", "created") else first_index(**{key: long}),
    )
    survives(lake, tally, "text of 10 MB")


@pytest.mark.parametrize("version", [10**20 - 1, 1 << 50, (1 << 50) + 1])
def test_the_last_versions(lake, tally, version):
    path = newest_manifest(lake)
    forged = path.with_name(f"_{version:020d}.json")
    forged.write_bytes(path.read_bytes())
    reseal(forged, version=version)
    survives(lake, tally, "version numbers")


def test_many_manifests(lake, tally, long):
    """They make a listing long, and the next commit, once they are an hour old, deletes all but ten of them."""
    path = newest_manifest(lake)
    for version in range(4, 100_004 if long else 3_004):
        path.with_name(f"_{version:020d}.json").touch()
    survives(lake, tally, "many manifests", refreshes=False)
    folder = lake.metadata / "_manifests"
    for version in range(4, 504):
        (folder / f"_{version:020d}.json").touch()
    for manifest in folder.iterdir():
        os.utime(manifest, (1, 1))
    lake = lake.reopened()
    lake.refresh()
    assert len(list(folder.iterdir())) <= 10


OBJECTS = {
    "outside of the dataset": {"path": ["file:/etc/passwd", "s3a://elsewhere/x", "../../x", "\0", "x" * 100_000, "id"]},
    "one object twice": {"digest": "the first"},
    "digests of nothing": {"digest": [bytes(16)] + [b"\xff" * 15 + bytes([n]) for n in range(5)]},
    "negative lengths": {"length": [-1, -(1 << 63), 0, 1, 2, 3]},
    "times of no time": {"modified": [(1 << 63) - 1, -(1 << 63), 0, -1, 1, 2]},
    "absurd row counts": {"row_count": [(1 << 63) - 1, 1 << 40, None, None, 5, 100]},
    "e-tags": {"etag": ["x" * 100_000, "\0", "%s%n", "../..", "", "'"]},
}


@pytest.mark.parametrize("name", OBJECTS)
def test_forged_objects(lake, tally, name):
    """Rows that describe no object of the listing skip none; a row count of 0 is a lie like any other."""
    forge_part(lake, OBJECTS[name])
    answers = survives(lake, tally, "objects of a part")
    assert (answers.skipped > 0) == (name in ("absurd row counts", "e-tags", "outside of the dataset"))


def test_a_part_that_grows(lake, tally):
    """Two million rows in some kilobytes; digests do not compress, so that honest parts have 16 bytes a row or more."""
    forge_part(lake, {}, rows=2_000_000)
    (part,) = (lake.metadata / "_parts").iterdir()
    assert part.stat().st_size < 1_000_000
    answers = survives(lake, tally, "part that grows")
    assert answers.said
    assert answers.skipped == 0


@pytest.mark.parametrize("name", ["_parts", "_manifests", "."])
def test_metadata_folders_that_are_links(lake, tally, name):
    """Cleaning must not follow them: what lies there is not the store's, however it is named."""
    outside = lake.folder.parent / "outside"
    folder = (lake.metadata / name).resolve()
    before = everything_outside(lake)
    for path in folder.iterdir():
        path.rename(outside / path.name)
    folder.rmdir()
    folder.symlink_to(outside, target_is_directory=True)
    lake = lake.reopened()
    write_object(lake.path(0), 0, modified=1_700_007_000)
    with suppress(MetadataStoreError):
        lake.refresh()
    assert everything_outside(lake) == before
    survives(lake, tally, "links")


def test_files_that_are_links(lake, tally):
    outside = lake.folder.parent / "outside"
    for name, target in zip(("_parts/_linked.part", f"_parts/.{'1' * 32}.tmp"), PRECIOUS[:2], strict=True):
        (lake.metadata / name).symlink_to(outside / target)
        os.utime(lake.metadata / name, (1, 1), follow_symlinks=False)
    write_object(lake.path(0), 0, modified=1_700_007_000)
    lake.refresh()
    survives(lake, tally, "links")


@pytest.mark.parametrize("name", ["_manifests/_00000000000000000009.json", "a part"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "endless device"])
@pytest.mark.timeout(60)
def test_files_that_are_no_files(lake, tally, name, kind):
    """A pipe that nobody writes to would be waited for without end, a device never ends."""
    path = lake.metadata / name if name != "a part" else min((lake.metadata / "_parts").iterdir())
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    survives(lake, tally, "files that are no files")


def test_what_cannot_be_deleted_does_not_keep_the_rest(lake, tally):
    """One file that resists (here a folder of that name) is no reason to keep all other garbage for ever."""
    garbage = [f"_parts/_{n}.part" for n in range(20)]
    for name in garbage:
        (lake.metadata / name).write_text("garbage")
    lake.age()

    class Resisting(LocalFileSystem):
        def delete(self, path, **options):
            if path.endswith(garbage[7]):
                raise PermissionError(13, "may not be deleted", path)
            super().delete(path, **options)

    lake = Lake(lake.folder, lambda path: Resisting(), objects=0)
    write_object(lake.path(0), 0, modified=1_700_007_000)
    lake.refresh()
    assert [name for name in garbage if name in lake.metadata_files()] == [garbage[7]]
    survives(lake, tally, "files that are no files")


def test_no_code_from_stored_data():
    """Only these modules unpickle or import, none of them what a store's file says."""
    found = {}
    source = Path(skipstone.__file__).parent
    for path in source.rglob("*.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.search(
                r"\b(pickle\.loads?|eval|exec|compile|__import__|import_module|marshal|shelve)\(", line
            ) and not re.search(r"re\.compile|Pattern\.compile|^\s*(#|\"\"\")", line):
                found.setdefault(str(path.relative_to(source)), []).append(number)
    assert set(found) <= {
        "__init__.py",  # its own names, on first use
        "functions/identity/bytecode.py",  # compiles a module's source to compare, and runs nothing
        "registry.py",  # what spark.skipstone.plugins names
        "kms.py",  # what spark.skipstone.kms.class names
        "engines/spark/shipping.py",  # what its own driver sent to its own executors
    }, found


def test_a_function_that_a_manifest_names_is_not_called_on_its_name_alone(lake):
    """Which function it was must be known, too: a forged name would call another of the user's functions."""
    reseal(newest_manifest(lake), as_type("formatted", column="id", extract="send_mail"))
    lake = lake.reopened()
    write_object(lake.path(0), 0, modified=1_700_008_000)
    with pytest.raises(SkipstoneError, match="which function send_mail was"):
        lake.refresh()


def test_sql_in_a_manifest_is_not_run(lake):
    """A predicate that metadata has is run on refresh only if the caller restates it."""

    def forged(content):
        content["indexes"][0].update(
            type_name="feature", options={"features": [["evil", "raise_error('run')"]], "conditions": []}
        )

    reseal(newest_manifest(lake), forged)
    lake = lake.reopened()
    write_object(lake.path(0), 0, modified=1_700_008_000)
    report = lake.refresh()
    assert any("restated" in problem for problem in report.problems)
    assert json.loads(newest_manifest(lake).read_text())["version"] == report.version
