"""The whole way, in Spark, on real servers: created, queried, refreshed, dropped, and every fault costs time only."""

from __future__ import annotations

import base64
import contextlib
import shutil

import pytest
from tests.servers.search_proxy import proxy
from tests.stores.elasticsearch.support import make, on_elasticsearch, on_opensearch, send
from tests.support import assert_same_rows, conf, skipping_off

import skipstone
from skipstone import (
    BloomFilterIndex,
    Dataset,
    GapListIndex,
    GeoBoxIndex,
    HybridIndex,
    MinMaxIndex,
    PrefixIndex,
    SuffixIndex,
    ValueListIndex,
    skipping_stats,
)
from skipstone.errors import MetadataStoreError

OBJECTS = 8
PASSWORD = "open-sesame-17"
QUERIES = {
    "id = 17": 7,
    "id IN (1, 79) AND name <> 'n0'": 7,
    "name = 'n3' OR id < 5": 6,
    "name LIKE 'n3%'": 7,
    "endswith(mail, '@host4')": 7,
    "account = md5('33')": 7,
    "name = 'n3' AND account = md5('33')": 7,
    "lat BETWEEN 20 AND 29 AND lng < -20": 7,
    "gap = 14 OR gap = 41": 7,
    "name IS NULL": 8,
    "id >= 0": 0,
}
INDEXES = (
    MinMaxIndex("id"),
    ValueListIndex("name"),
    BloomFilterIndex("account"),
    HybridIndex("name", threshold=1),
    GapListIndex("gap", gaps=2),
    PrefixIndex("name", length=2),
    SuffixIndex("mail", length=6),
    GeoBoxIndex("lat", "lng"),
)


def write(spark, folder, start, stop):
    (
        spark.range(start, stop, numPartitions=1)
        .selectExpr(
            "id",
            "concat('n', id div 10) AS name",
            "md5(string(id)) AS account",
            "concat(id, '@host', id div 10) AS mail",
            "double(id) AS lat",
            "double(-id) AS lng",
            "int(if(id % 10 < 5, id - id % 10, id - id % 10 + 9)) + int(id % 10 = 4) * 4 AS gap",
        )
        .write.mode("append")
        .parquet(str(folder))
    )


@contextlib.contextmanager
def chosen(spark, url, prefix, **options):
    names = {"url": url, "index": prefix, "timeoutSeconds": "60", **options}
    values = {f"spark.skipstone.elasticsearch.{name}": value for name, value in names.items()}
    with conf(spark, {"spark.skipstone.store": "elasticsearch", **values}):
        yield


@pytest.fixture(scope="module")
def written(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("written") / "data"
    for n in range(OBJECTS):
        write(spark, folder, 10 * n, 10 * n + 10)
    return folder


@pytest.fixture
def folder(written, tmp_path):
    """A copy of the objects, with times that tell them from later ones."""
    return shutil.copytree(written, tmp_path / "data")


def test_the_life_of_a_dataset(spark, folder, url, prefix):
    with chosen(spark, url, prefix):
        dataset = Dataset.for_path(spark, str(folder))
        report = dataset.create_indexes(*INDEXES)
        assert (report.objects, report.indexed, report.version) == (OBJECTS, OBJECTS, 1)
        assert not list(folder.glob("_skipstone*"))
        frame = spark.read.parquet(str(folder))
        for predicate, skips in QUERIES.items():
            assert assert_same_rows(spark, frame.where(predicate)) == skips, predicate
        explained = str(dataset.explain(frame.where("id = 17 AND account = md5('17')")))
        assert "skips 7" in explained
        assert "minmax(id)" in explained
        rows = dataset.describe().collect()
        assert {row["name"] for row in rows} == {index.name for index in INDEXES}
        assert dataset.refresh().version == 1
        write(spark, folder, 80, 90)
        frame = spark.read.parquet(str(folder))
        with skipping_stats(spark) as stats:
            assert frame.where("id = 85").count() == 1
        assert (stats[-1].objects.kept, stats[-1].objects.unindexed) == (1, 1)
        assert dataset.refresh().indexed == 1
        assert assert_same_rows(spark, frame.where("id IN (5, 85) AND name <> 'n0'")) == OBJECTS
        dataset.drop_indexes(SuffixIndex("mail", length=6).name)
        assert assert_same_rows(spark, frame.where("endswith(mail, '@host4')")) == 0
        assert assert_same_rows(spark, frame.where("name = 'n8'")) == OBJECTS
        dataset.drop_indexes()
        assert not dataset.is_indexed
        assert assert_same_rows(spark, frame.where("id = 17")) == 0


def assert_reads_everything(spark, folder, said):
    """Check that a query answers as without skipping, and that the reason is told."""
    frame = spark.read.parquet(str(folder)).where("id = 17 AND account = md5('17')")
    with skipping_off(spark):
        expected = frame.collect()
    frame = spark.read.parquet(str(folder)).where("id = 17 AND account = md5('17')")
    assert frame.collect() == expected
    (entry,) = skipstone.last_query(spark)
    assert entry.objects.skipped == 0
    told = " ".join(entry.not_used)
    assert said in told, told
    assert PASSWORD not in told
    return told


@on_elasticsearch
def test_every_fault_costs_time_only(spark, folder, url, prefix):
    with chosen(spark, url, prefix):
        dataset = Dataset.for_path(spark, str(folder))
        dataset.create_indexes(MinMaxIndex("id"), BloomFilterIndex("account"))
    head = next(iter(_documents(url, prefix, "heads", "copy")))
    with chosen(spark, "http://127.0.0.1:9", prefix):
        assert_reads_everything(spark, folder, "does not answer: it cannot be reached")
    with proxy(url) as between:
        between.delay = 120.0
        with chosen(spark, between.url, prefix, timeoutSeconds="0.5"):
            assert_reads_everything(spark, folder, "does not answer: no answer within")
    with proxy(url) as between:
        between.authorization = "Basic " + base64.b64encode(b"me:another").decode()
        with chosen(spark, between.url, prefix, user="me", password=PASSWORD):
            assert_reads_everything(spark, folder, "refuses the credentials")
            with pytest.raises(MetadataStoreError, match="refuses the credentials") as caught:
                Dataset.for_path(spark, str(folder)).refresh()
            assert PASSWORD not in str(caught.value)
            frame = spark.read.parquet(str(folder)).where("id = 17")
            shown = str(Dataset.for_path(spark, str(folder)).explain(frame)) + frame._jdf.queryExecution().toString()
            assert "refuses the credentials" in shown
            assert PASSWORD not in shown
    kept = send(url, "GET", f"{prefix}-heads/_doc/{head}")["_source"]
    send(url, "PUT", f"{prefix}-heads/_doc/{head}", {**kept, "manifest": base64.b64encode(b"{}").decode()})
    with chosen(spark, url, prefix, timeoutSeconds="61"):  # a store of its own, that has seen nothing yet
        assert_reads_everything(spark, folder, "is damaged")
        assert Dataset.for_path(spark, str(folder)).refresh().version == 2  # repairs
        assert assert_same_rows(spark, spark.read.parquet(str(folder)).where("id = 17")) == 7
    for number, name in enumerate(("objects", "chunks")):
        send(url, "DELETE", f"{prefix}-{name}")
        with chosen(spark, url, prefix, timeoutSeconds=f"62.{number}"):
            assert_reads_everything(spark, folder, "refresh()")
            Dataset.for_path(spark, str(folder)).refresh()
            assert assert_same_rows(spark, spark.read.parquet(str(folder)).where("id = 17")) == 7
    chunks = list(_documents(url, prefix, "chunks", "0.0"))
    assert len(chunks) > 10
    for chunk in chunks:
        send(url, "DELETE", f"{prefix}-chunks/_doc/{chunk}")
    with chosen(spark, url, prefix, timeoutSeconds="63"):
        assert_reads_everything(spark, folder, "a document of it is not there")
        Dataset.for_path(spark, str(folder)).refresh()
        assert assert_same_rows(spark, spark.read.parquet(str(folder)).where("id = 17")) == 7
        Dataset.for_path(spark, str(folder)).drop_indexes()


@on_opensearch
def test_a_mapping_conflict(spark, folder, url, prefix):
    send(url, "PUT", f"{prefix}-chunks", {"mappings": {"properties": {"data": {"type": "text"}}}})
    with chosen(spark, url, prefix):
        with pytest.raises(MetadataStoreError, match="another prefix"):
            Dataset.for_path(spark, str(folder)).create_indexes(MinMaxIndex("id"))
        assert_reads_everything(spark, folder, "not indexed")


def _documents(url, prefix, name, ending):
    """Return the ids of documents by how they end, without that ending for the copies of heads."""
    send(url, "POST", f"{prefix}-{name}/_refresh")
    hits = send(url, "POST", f"{prefix}-{name}/_search", {"size": 1_000})["hits"]["hits"]
    for hit in hits:
        if hit["_id"].endswith(f".{ending}"):
            yield hit["_id"].removesuffix(".copy")


@on_opensearch
def test_a_query_asks_the_server_twice(spark, folder, url, prefix):
    """Once for the head and once for the answer, whatever the number of clauses; other processes' commits are seen."""
    with proxy(url) as between, chosen(spark, between.url, prefix):
        dataset = Dataset.for_path(spark, str(folder))
        dataset.create_indexes(MinMaxIndex("id"), ValueListIndex("name"))
        frame = spark.read.parquet(str(folder))
        frame.where("id = 3").collect()
        between.seen.clear()
        for n in range(5):
            assert frame.where(f"(id = {n} OR name = 'n7') AND name <> 'x{n}' AND id <> {n + 50}").collect()
        requests = [path.partition("?")[0] for _, path, _ in between.seen]
        assert len(requests) == 10, requests
        other = make(url, prefix)
        root = dataset.root
        other.drop(root)
        assert assert_same_rows(spark, frame.where("id = 3")) == 0
