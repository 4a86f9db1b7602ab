"""Holes that were found by attacking protected, remote and contended metadata, each in its smallest form."""

from __future__ import annotations

import base64
import hashlib
import json
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skipstone import MinMaxIndex, ValueListIndex, indexes, registry
from skipstone.engines.spark.description import ScanDescription, read_relation
from skipstone.engines.spark.planning import SparkPlanner
from skipstone.errors import CommitConflictError, KeyUnavailableError, MetadataCorruptError, MetadataStoreError
from skipstone.indexing import repair
from skipstone.indexing.profiles import profile_difference
from skipstone.indexing.records import ColumnRecord
from skipstone.indexing.relation import Relation
from skipstone.stores.cache import ByteCache
from skipstone.stores.elasticsearch.client import Answer
from skipstone.stores.elasticsearch.directory import Chunk, StoredColumn, chunk_ids
from skipstone.stores.elasticsearch.indices import Indices
from skipstone.stores.elasticsearch.part import SearchPart
from skipstone.stores.elasticsearch.part_writer import NewPart, _stream
from skipstone.stores.elasticsearch.versions import Versions
from skipstone.stores.manifest import Manifest, PartRecord
from skipstone.stores.metadata_store import IndexRecord, ReadProfile
from skipstone.stores.parquet import committer
from skipstone.stores.parquet.encryption import Keys
from skipstone.stores.parquet.store import ParquetStore
from tests.faults.lake import Lake, write_object

SECRET = "hunter2-T0p-S3cret"


class AnyName:
    """A provider with one master key, whatever it is called."""

    def __init__(self, settings):
        pass

    def wrap_key(self, key, master_key):
        return base64.b64encode(key).decode()

    def unwrap_key(self, wrapped, master_key):
        return base64.b64decode(wrapped)


@pytest.fixture
def lakes(tmp_path):
    for index_type in indexes.BUILT_IN:
        registry.register_index(index_type)
    return tmp_path


def key_file(tmp_path, *names):
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({n: base64.b64encode(hashlib.sha256(n.encode()).digest()).decode() for n in names}))
    return file


def local_keys(file, **more):
    return Keys({"class": "skipstone.kms:LocalFileKeys", "file": str(file), **more})


def relation(**options):
    return Relation((), "parquet", options, (), False, {}, "")


@pytest.mark.parametrize("name", ["password", "parquet.encryption.key.list", "workbookPassword", "apiKey", "authToken"])
def test_secrets_among_reader_options_are_told_apart_but_not_told(name):
    then, now = (
        relation(**{name: SECRET}).profiles((), ("values",))[0],
        relation(**{name: "another"}).profiles((), ("values",))[0],
    )
    assert SECRET not in repr(then)
    assert then == relation(**{name: SECRET}).profiles((), ("values",))[0]
    difference = profile_difference(then, now)
    assert difference is not None
    assert SECRET not in difference
    assert profile_difference(then, relation().profiles((), ("values",))[0]) is not None


def test_credentials_of_file_systems_are_no_part_of_how_values_are_read():
    one = relation(**{"fs.s3a.secret.key": SECRET, "fs.s3a.endpoint": "x", "sep": ";"}).profiles((), ("values",))[0]
    assert dict(one.options) == {"fs.s3a.endpoint": "x", "sep": ";"}


def test_damage_does_not_end_the_protection_by_a_footer_key(lakes):
    file = key_file(lakes, "footer")
    lake = Lake(lakes / "lake")
    lake.store = ParquetStore(keys=local_keys(file, footerKey="footer"), absent_seconds=0)
    lake.create(ValueListIndex("name"))
    write_object(lake.path(9), 9)
    lake.refresh()
    newest = max((lake.metadata / "_manifests").iterdir())
    newest.write_bytes(newest.read_bytes()[:-50])
    with pytest.raises(KeyUnavailableError, match="footer"):
        Lake(lake.folder, objects=0).refresh()
    for part in (lake.metadata / "_parts").iterdir():
        with pytest.raises((OSError, pa.ArrowException)):
            pq.read_table(pa.BufferReader(part.read_bytes()))
    lake.store = ParquetStore(keys=local_keys(file), absent_seconds=0)  # has the key, does not name it
    lake.refresh()
    assert all(part.key == "footer" for part in lake.store._manifest(lake.store.latest(lake.root)).parts)


def test_a_seal_that_was_opened_for_one_index_does_not_serve_another(tmp_path):
    keys = local_keys(key_file(tmp_path, "pii"))

    def record(index_id, name, length):
        column = ColumnRecord("url", "string", partition=False, reads_as="")
        profile = ReadProfile("parquet", {}, {}, "")
        options = {"column": "url", "length": length}
        return IndexRecord(index_id, name, "prefix", options, (column,), profile, {"null_count": "int64"}, key="pii")

    first, second = keys.sealed(record("a", "one", 2)), keys.sealed(record("b", "two", 8))
    assert keys.opened(first).options["length"] == 2
    with pytest.raises(KeyUnavailableError, match="belongs to something else"):
        keys.opened(replace(second, sealed=first.sealed))
    assert keys.opened(second).options["length"] == 8


def test_a_key_without_a_name_is_refused(monkeypatch):
    keys = Keys({"class": f"{__name__}:AnyName"})
    with pytest.raises(KeyUnavailableError, match="needs a name"):
        ParquetStore(keys=keys).check_keys([""])


def test_making_damaged_metadata_anew_does_not_undo_what_others_did_meanwhile(lakes, monkeypatch):
    lake = Lake(lakes / "lake")
    lake.create(MinMaxIndex("id"))
    part = next((lake.metadata / "_parts").iterdir())
    data = bytearray(part.read_bytes())
    data[4:40] = bytes(36)  # in the column of paths, which only index jobs read
    part.write_bytes(bytes(data))
    one, other = lake.reopened(), lake.reopened()
    real = repair.index_objects

    def while_another_creates(*arguments):
        monkeypatch.setattr(repair, "index_objects", real)
        found = real(*arguments)
        other.create(ValueListIndex("name"))
        return found

    monkeypatch.setattr(repair, "index_objects", while_another_creates)
    with pytest.raises(CommitConflictError, match="try again"):
        one.refresh()
    one.refresh()
    assert {r.name for r in lake.reopened().store.latest(lake.root).indexes} == {"minmax(id)", "valuelist(name)"}


class Server:
    """Takes heads, but not their copies."""

    url = "http://nowhere"

    def __init__(self):
        self.documents = {}

    def call(self, method, path, body=None, **_):
        name = path.split("/_doc/")[1].partition("?")[0]
        if name.endswith(".copy"):
            raise MetadataStoreError("the search server does not answer")
        if method == "PUT":
            self.documents[name] = body
        found = self.documents.get(name)
        return (
            Answer(404, {}, 0)
            if found is None
            else Answer(200, {"_seq_no": 1, "_primary_term": 1, "_source": found}, 0)
        )


def test_a_commit_that_is_visible_is_not_reported_as_failed():
    versions = Versions(Server(), "heads", "d")
    versions.switch(None, Manifest(1, "file:/d", "w", "me", "", 0, (), ()))
    assert versions.look().writer_id == "me"


class Collected:
    """In place of Bulk."""

    def __init__(self):
        self.largest, self.nested = 0, 0

    def put(self, index, identifier, document):
        self.largest = max(self.largest, len(json.dumps(document)))
        self.nested = max(self.nested, sum(len(v) for k, v in document.items() if k[0] == "n" and k[1:].isdigit()))
        return 1


@pytest.mark.parametrize(
    ("type_name", "fields", "value", "count"),
    [
        ("valuelist", {"values": "list<item: string>"}, [f"{n:0100d}" for n in range(100_000)], 1),
        ("gaplist", {"bounds": "list<item: int64>"}, list(range(1_000)), 21),
    ],
)
def test_what_a_server_would_refuse_is_left_to_arrow(lakes, type_name, fields, value, count):
    (name,) = fields
    profile = ReadProfile("parquet", {}, {}, "")
    records = [
        IndexRecord(f"i{n}", f"i{n}", type_name, {"column": "c"}, (), profile, {**fields, "null_count": "int64"})
        for n in range(count)
    ]
    columns = {"row_count": pa.array([1]), "removed": pa.array([False])}
    for record in records:
        columns[f"{record.id}:{name}"] = pa.array([value])
        columns[f"{record.id}:null_count"] = pa.array([0])
    bulk = Collected()
    NewPart("d", "_p.part", 1, 0).write(bulk, Indices(Server(), "x"), pa.table(columns), records)
    assert bulk.largest < 6_000_000
    assert bulk.nested <= 10_000


def test_a_chunk_of_a_type_that_no_metadata_has_is_refused():
    """pyarrow's cast of a decimal with such a scale ends the process (signal 11)."""
    odd = pa.Array.from_buffers(pa.decimal128(20, 2147483647), 1, [None, pa.py_buffer(bytes(16))])
    data = _stream(pa.table({"a:lower": odd}))
    column = StoredColumn(0, 16, (Chunk(len(data), hashlib.sha256(data).hexdigest()),))
    documents = {chunk_ids("_p.part", column, 0)[0]: {"data": base64.b64encode(data).decode()}}
    record = PartRecord("_p.part", 100, 10, "0" * 64, 1, 0, 1, {})
    with pytest.raises(MetadataCorruptError, match="is not an Arrow type that metadata can have"):
        SearchPart(Server(), "x", record, ByteCache(0))._chunk(documents, column, 0, 1)


def test_objects_that_cannot_be_read_leave_no_file_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    class Damaged:
        def objects(self, *_):
            raise MetadataCorruptError("damaged")

    planner = SparkPlanner(None)
    planner._snapshots["s"] = (Damaged(), None)
    with pytest.raises(MetadataCorruptError):
        planner.objects("s")
    assert list(Path(tmp_path).iterdir()) == []


def test_a_commit_that_was_overtaken_by_a_drop_is_a_conflict(monkeypatch, tmp_path):
    for index_type in indexes.BUILT_IN:
        registry.register_index(index_type)
    lake = Lake(tmp_path / "lake")
    lake.create(MinMaxIndex("id"))
    write_object(lake.path(8), 8)
    lake.refresh()
    write_object(lake.path(9), 9)
    one, other = lake.reopened(), lake.reopened()
    real = committer.retire

    def overtaken(*arguments):
        monkeypatch.setattr(committer, "retire", real)
        other.drop()
        other.create(ValueListIndex("name"))
        return real(*arguments)

    monkeypatch.setattr(committer, "retire", overtaken)
    with suppress(CommitConflictError, MetadataStoreError):
        one.refresh()  # tries again by itself, on top of what is there then, or says that it cannot
    found = lake.reopened()
    assert [record.name for record in found.store.latest(found.root).indexes] == ["valuelist(name)"]
    assert found.ask().skipped > 0


def test_how_files_are_read_is_shown_without_credentials():
    described = {
        "roots": ["file:/lake"],
        "format": "csv",
        "options": {"fs.s3a.secret.key": SECRET},
        "conf": {"spark.skipstone.elasticsearch.password": SECRET},
        "schema_digest": "",
    }
    assert "file:/lake" in repr(read_relation(described))
    assert SECRET not in repr(read_relation(described))
    whole = {**described, "columns": [], "data_schema": "", "partition_schema": ""}
    assert SECRET not in repr(ScanDescription.of(whole))
