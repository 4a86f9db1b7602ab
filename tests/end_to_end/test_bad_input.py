"""Bad input gets a clear error, loses nothing, and never fails a query."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support import conf, write_objects

import skipstone
from skipstone import Clause, Dataset, Filter, Index, MinMaxIndex, SkipstoneError, ValueListIndex, skipping_stats
from skipstone.errors import (
    ColumnNotFoundError,
    DatasetError,
    IndexExistsError,
    IndexingError,
    IndexNotFoundError,
    KeyUnavailableError,
    MetadataStoreError,
    MetadataTooNewError,
    SettingError,
    UnsupportedTypeError,
)
from skipstone.indexes.minmax import MinMaxMetadata


@pytest.fixture
def path(spark, tmp_path):
    return write_objects(
        spark, tmp_path / "d", "id int, m map<int,int>, s struct<x: int>", ("(1, map(), NULL)", "(2, NULL, NULL)")
    )


def manifests(path):
    folder = os.path.join(path, "_skipstone", "_manifests")
    return sorted(os.path.join(folder, f) for f in os.listdir(folder))


@pytest.mark.parametrize(
    ("index", "error", "words"),
    [
        (lambda: MinMaxIndex("idd"), ColumnNotFoundError, "id"),
        (lambda: MinMaxIndex("s.y"), ColumnNotFoundError, "s.y"),
        (lambda: MinMaxIndex("m"), UnsupportedTypeError, "map"),
        (lambda: ValueListIndex("s"), UnsupportedTypeError, "struct"),
        (lambda: skipstone.BloomFilterIndex("id", fpp=2), SkipstoneError, "fpp"),
        (lambda: skipstone.HybridIndex("id", threshold=-1), SkipstoneError, "threshold"),
    ],
)
def test_index_that_cannot_be_built(spark, path, index, error, words):
    with pytest.raises(error, match=words):
        Dataset.for_path(spark, path).create_indexes(index())
    assert not os.path.exists(f"{path}/_skipstone")


def test_key_that_would_not_be_used(spark, path):
    with pytest.raises(KeyUnavailableError, match=r"no key .secret.: set spark\.skipstone\.kms\.class"):
        Dataset.for_path(spark, path).create_indexes(MinMaxIndex("id", key="secret"))
    assert not os.path.exists(f"{path}/_skipstone")


def test_duplicate_index(spark, path):
    handle = Dataset.for_path(spark, path)
    with pytest.raises(IndexExistsError, match=r"minmax\(id\)"):
        handle.create_indexes(MinMaxIndex("id"), MinMaxIndex("id"))
    handle.create_indexes(MinMaxIndex("id"))
    with pytest.raises(IndexExistsError, match=r"minmax\(id\)"):
        handle.create_indexes(MinMaxIndex("id"))
    handle.create_indexes(MinMaxIndex("id", name="another"))
    assert {r.name for r in handle.describe().collect()} == {"minmax(id)", "another"}


def test_no_index_given_or_found(spark, path):
    handle = Dataset.for_path(spark, path)
    with pytest.raises(IndexingError, match="at least one"):
        handle.create_indexes()
    with pytest.raises(IndexNotFoundError, match="create_indexes"):
        handle.refresh()
    with pytest.raises(IndexNotFoundError, match="none"):
        handle.drop_indexes("minmax(id)")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda spark, path: spark.range(3), "scan of files"),
        (lambda spark, path: spark.read.parquet(path).where("id = 1"), "filter"),
        (lambda spark, path: spark.read.parquet(path).selectExpr("id + 1 AS id"), "computed"),
        (lambda spark, path: spark.read.parquet(path).join(spark.range(2), "id"), "join|computed"),
        (lambda spark, path: spark.createDataFrame([(1,)], "a int"), "scan of files"),
    ],
)
def test_not_a_plain_file_scan(spark, path, make, words):
    with pytest.raises(DatasetError, match=words):
        Dataset(make(spark, path))


def test_view_of_a_query(spark, path):
    spark.read.parquet(path).where("id = 1").createOrReplaceTempView("not_plain")
    with pytest.raises(DatasetError, match="filter"):
        Dataset.for_table(spark, "not_plain")


def test_nothing_there(spark, tmp_path):
    with pytest.raises(DatasetError, match="nowhere"):
        Dataset.for_path(spark, str(tmp_path / "nowhere"))
    with pytest.raises(DatasetError, match="no_such_table"):
        Dataset.for_table(spark, "no_such_table")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DatasetError, match="no objects"):
        Dataset.for_path(spark, str(empty), schema="id int").create_indexes(MinMaxIndex("id"))


def test_several_roots(spark, path, tmp_path):
    other = write_objects(spark, tmp_path / "e", "id int", ("(1)",))
    with pytest.raises(DatasetError, match="one root folder"):
        Dataset(spark.read.parquet(path, other)).create_indexes(MinMaxIndex("id"))


def test_unreadable_object_is_an_error_and_commits_nothing(spark, path):
    with open(f"{path}/broken.parquet", "wb") as file:
        file.write(b"not parquet at all")
    with pytest.raises(IndexingError):
        Dataset.for_path(spark, path, schema="id int").create_indexes(ValueListIndex("id"))
    assert not os.path.exists(f"{path}/_skipstone/_manifests")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_no_write_permission(spark, path):
    os.chmod(path, stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(MetadataStoreError, match="location"):
            Dataset.for_path(spark, path).create_indexes(MinMaxIndex("id"))
    finally:
        os.chmod(path, stat.S_IRWXU)


def test_location_that_cannot_be_written(spark, path):
    with (
        conf(spark, {"spark.skipstone.location": "/proc/nowhere"}),
        pytest.raises(MetadataStoreError, match="/proc/nowhere"),
    ):
        Dataset.for_path(spark, path).create_indexes(MinMaxIndex("id"))


def test_location_of_its_own(spark, path, tmp_path):
    with conf(spark, {"spark.skipstone.location": str(tmp_path / "elsewhere")}):
        with pytest.raises(MetadataStoreError, match="does not exist"):
            Dataset.for_path(spark, path).create_indexes(MinMaxIndex("id"))
        (tmp_path / "elsewhere").mkdir()
        Dataset.for_path(spark, path).create_indexes(MinMaxIndex("id"))
        assert len(spark.read.parquet(path).where("id = 2").inputFiles()) == 1
    assert not os.path.exists(f"{path}/_skipstone")
    assert len(spark.read.parquet(path).where("id = 2").inputFiles()) == 2


@pytest.mark.parametrize(
    ("setting", "value"), [("store", "cloud"), ("location", "nosuchscheme://x/y"), ("plugins", "no.such.module")]
)
def test_bad_setting_never_fails_a_query(spark, path, setting, value):
    Dataset.for_path(spark, path).create_indexes(MinMaxIndex("id"))
    with conf(spark, {f"spark.skipstone.{setting}": value}):
        with skipping_stats(spark) as stats:
            assert len(spark.read.parquet(path).where("id = 2").collect()) == 1
        assert stats[-1].objects.skipped == 0
        assert stats[-1].not_used or stats[-1].error
        if setting == "store":
            with pytest.raises(SettingError, match="cloud"):
                Dataset.for_path(spark, path).is_indexed  # noqa: B018


def test_bad_boolean_setting(spark, path):
    with conf(spark, {"spark.skipstone.enabled": "maybe"}):
        assert len(spark.read.parquet(path).where("id = 2").collect()) == 1


@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped", "not json", "newer"])
def test_damaged_manifest(spark, path, damage):
    handle = Dataset.for_path(spark, path)
    handle.create_indexes(MinMaxIndex("id"))
    file = manifests(path)[-1]
    content = Path(file).read_bytes()
    if damage == "newer":
        document = json.loads(content)
        document["format_version"] = 999
        changed = json.dumps(document).encode()
    else:
        middle = len(content) // 2
        changed = {
            "truncated": content[:middle],
            "empty": b"",
            "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "not json": b"\x00\xff",
        }[damage]
    os.chmod(file, 0o644)
    with open(file, "wb") as out:
        out.write(changed)
    with skipping_stats(spark) as stats:
        assert len(spark.read.parquet(path).where("id = 2").collect()) == 1
    assert stats[-1].objects.skipped == 0
    assert stats[-1].not_used
    expected = MetadataTooNewError if damage == "newer" else MetadataStoreError
    with pytest.raises(expected):
        handle.describe()
    handle.drop_indexes()
    handle.create_indexes(MinMaxIndex("id"))
    assert len(spark.read.parquet(path).where("id = 2").inputFiles()) == 1


def test_refresh_makes_damaged_metadata_anew(spark, path):
    handle = Dataset.for_path(spark, path)
    handle.create_indexes(MinMaxIndex("id"))
    handle.create_indexes(ValueListIndex("id"))
    Path(manifests(path)[-1]).write_bytes(b"{}")
    report = handle.refresh()
    assert report.indexed == 2
    assert "minmax(id)" in report.indexes
    assert len(spark.read.parquet(path).where("id = 2").inputFiles()) == 1


@pytest.mark.parametrize("damage", ["truncated", "flipped", "missing"])
def test_damaged_part(spark, path, damage):
    handle = Dataset.for_path(spark, path)
    handle.create_indexes(MinMaxIndex("id"))
    folder = f"{path}/_skipstone/_parts"
    file = os.path.join(folder, os.listdir(folder)[0])
    content = bytearray(Path(file).read_bytes())
    os.unlink(file)
    if damage != "missing":
        if damage == "truncated":
            del content[len(content) // 2 :]
        else:
            content = bytearray(b ^ 0x55 for b in content[:4]) + content[4:-8] + content[-8:]
            content[len(content) // 3] ^= 0xFF
        with open(file, "wb") as out:
            out.write(content)
    with skipping_stats(spark) as stats:
        assert len(spark.read.parquet(path).where("id = 2").collect()) == 1
        assert spark.read.parquet(path).where("id = 1").count() == 1
    assert stats[-1].objects.total == 2


def test_plugin_that_raises_at_index_time(spark, path):
    @dataclass(frozen=True)
    class ThrowingIndex(Index):
        column: str
        metadata_type = MinMaxMetadata

        def collect_metadata(self, rows):
            raise RuntimeError("the plug-in broke down")

        def filters(self):
            return ()

    with pytest.raises(IndexingError, match="throwing.*the plug-in broke down"):
        Dataset.for_path(spark, path).create_indexes(MinMaxIndex("id"), ThrowingIndex("id"))
    assert not os.path.exists(f"{path}/_skipstone/_manifests")
    assert len(spark.read.parquet(path).where("id = 2").inputFiles()) == 2


def test_plugin_that_raises_at_query_time(spark, path):
    @dataclass(frozen=True)
    class BrokenClause(Clause):
        index: Index

        def might_match(self, metadata):
            raise RuntimeError("the clause broke down")

        @property
        def requires(self):
            return ((self.index, "lower"),)

    @dataclass(frozen=True)
    class BrokenFilter(Filter):
        index: Index
        where: str

        def label_node(self, node):
            if self.where == "filter":
                raise RuntimeError("the filter broke down")
            return BrokenClause(self.index)

    @dataclass(frozen=True)
    class BreakingIndex(MinMaxIndex):
        where: str = "filter"

        def filters(self):
            return (BrokenFilter(self, self.where),)

    for where in ("filter", "clause"):
        handle = Dataset.for_path(spark, path)
        handle.create_indexes(MinMaxIndex("id"), BreakingIndex("id", where=where))
        with skipping_stats(spark) as stats:
            assert len(spark.read.parquet(path).where("id = 2").collect()) == 1
        assert any("broke down" in reason for reason in stats[-1].not_used)
        if where == "filter":
            assert stats[-1].objects.skipped == 1
        handle.drop_indexes()


def test_index_type_that_is_not_loaded(spark, path, monkeypatch):
    handle = Dataset.for_path(spark, path)
    handle.create_indexes(MinMaxIndex("id"), ValueListIndex("id"))
    monkeypatch.delitem(skipstone.registry._index_types, "valuelist")
    with skipping_stats(spark) as stats:
        assert len(spark.read.parquet(path).where("id = 2").collect()) == 1
    assert stats[-1].objects.skipped == 1
    assert any("not loaded" in reason for reason in stats[-1].not_used)
    with pytest.raises(SkipstoneError, match="not loaded"):
        handle.refresh()


def test_data_files_are_never_written(spark, path):
    def state():
        return {(f, os.stat(f"{path}/{f}").st_mtime_ns) for f in os.listdir(path) if f.endswith(".parquet")}

    before = state()
    handle = Dataset.for_path(spark, path)
    handle.create_indexes(MinMaxIndex("id"))
    handle.refresh()
    handle.drop_indexes()
    assert state() == before


SCRIPT = """
import sys
from pyspark.sql import SparkSession
import skipstone
{body}
"""


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled','false').getOrCreate()\n"
            "skipstone.configure(SparkSession.builder).getOrCreate()",
            "SessionNotConfiguredError",
        ),
        (
            "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled','false').getOrCreate()\n"
            "skipstone.Dataset.for_path(spark, '/nowhere')",
            "SessionNotConfiguredError",
        ),
        (
            "import pyspark; pyspark.__version__ = '3.5.1'\nskipstone.configure(SparkSession.builder).getOrCreate()",
            "UnsupportedSparkError",
        ),
    ],
    ids=["running without the extension", "dataset without the extension", "old Spark"],
)
def test_session_that_cannot_skip(tmp_path, body, words):
    out = tmp_path / "out.txt"
    with out.open("w") as file:
        code = subprocess.call([sys.executable, "-c", SCRIPT.format(body=body)], stdout=file, stderr=file, timeout=400)
    assert code != 0
    assert words in out.read_text()
