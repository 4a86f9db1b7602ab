"""A server that is down, slow, busy, strict or changed behind our back: errors that say so, and nothing is wrong."""

from __future__ import annotations

import base64
import json
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from tests.servers.search_proxy import certificate, proxy
from tests.stores.elasticsearch.support import make, on_elasticsearch, on_opensearch, send
from tests.stores.elasticsearch.translation import MinMaxIndex, _objects, clauses_of, describe, table_of

from skipstone.errors import CommitConflictError, MetadataCorruptError, MetadataStoreError, SettingError
from skipstone.expressions.tree import Column, IsNull
from skipstone.stores.elasticsearch.documents import Bulk
from skipstone.stores.elasticsearch.part_writer import NewPart
from skipstone.stores.elasticsearch.settings import ServerSettings
from skipstone.stores.elasticsearch.store import ElasticsearchStore
from skipstone.stores.elasticsearch.versions import dataset_id
from skipstone.stores.metadata_store import Change
from skipstone.stores.names import part_name
from skipstone.testing.store_model import (
    HasTag,
    HasValue,
    Row,
    StoredRangeIndex,
    StoredTagsIndex,
    added,
    commit,
    record,
    rows_of,
)

DATASET = "file:/data/faults"
SECRET = "s3cr3t-passphrase"
A, T = StoredRangeIndex("a"), StoredTagsIndex("t")
RA, RT = record(A, "a"), record(T, "t")


@pytest.fixture
def indexed(url, prefix):
    """A store with one dataset in it, and the rows of that."""
    store = make(url, prefix)
    commit(store, None, None, [RA], rows_of(4), root=DATASET)
    return store


def documents(url, prefix, name, query=None):
    """Return the documents of an index by their ids."""
    send(url, "POST", f"{prefix}-{name}/_refresh")
    body = {"size": 10_000, "query": query or {"match_all": {}}}
    return {
        hit["_id"]: hit.get("_source") for hit in send(url, "POST", f"{prefix}-{name}/_search", body)["hits"]["hits"]
    }


@on_opensearch
def test_busy_servers_are_asked_again(url, prefix, indexed):
    with proxy(url) as between:
        store = make(between.url, prefix)
        between.busy = 2
        assert store.latest(DATASET).object_count == 4
        assert len(between.seen) == 3
        between.busy, between.status = 1, 429
        assert store.evaluate(store.latest(DATASET), HasValue(A, 5)).kept.tolist() == [True, False, False, False]


@on_elasticsearch
def test_a_slow_server_is_waited_for_only_so_long_and_then_left_alone(url, prefix, indexed):
    with proxy(url) as between:
        store = make(between.url, prefix, timeout_seconds=0.4, retries=5)
        between.delay = 120.0
        with pytest.raises(MetadataStoreError, match="does not answer: no answer within"):
            store.latest(DATASET)
        assert len(between.seen) == 1, "the time for all tries went into the first"
        with pytest.raises(MetadataStoreError, match="did not answer a moment ago: no answer within"):
            store.latest(f"{DATASET}/other")
        assert len(between.seen) == 1
        between.delay = 0.0
        commit(store, None, None, [RA], rows_of(1), root=f"{DATASET}/other")  # a writer asks all the same


@on_opensearch
def test_a_server_that_is_down(prefix, indexed):
    store = make("http://127.0.0.1:9", prefix, retries=2)
    for call in (lambda: store.latest(DATASET), lambda: commit(store, None, None, [RA], rows_of(1), root=DATASET)):
        with pytest.raises(MetadataStoreError, match="does not answer: it cannot be reached|did not answer"):
            call()


@on_elasticsearch
def test_credentials_open_the_door_and_are_shown_nowhere(url, prefix, indexed, caplog):
    basic = "Basic " + base64.b64encode(f"me:{SECRET}".encode()).decode()
    with proxy(url) as between:
        for expected, good in (
            (basic, {"user": "me", "password": SECRET}),
            (f"ApiKey {SECRET}", {"api_key": SECRET}),
        ):
            between.authorization = expected
            store = make(between.url, prefix, **good)
            assert store.latest(DATASET).object_count == 4
            commit(store, store.latest(DATASET), None, [RA], rows_of(1, start=4), root=DATASET)
            store.drop(DATASET)
            commit(indexed, None, None, [RA], rows_of(4), root=DATASET)
            bad = {name: f"{SECRET}!" if value == SECRET else value for name, value in good.items()}
            for refused in (make(between.url, prefix, **bad), make(between.url, prefix)):
                with pytest.raises(MetadataStoreError, match="refuses the credentials .status 401.*apiKey") as caught:
                    refused.latest(DATASET)
                assert SECRET not in str(caught.value)
                assert SECRET not in repr(refused) + repr(refused.client) + repr(vars(refused.client))
    kept = json.dumps([documents(url, prefix, name) for name in ("heads", "chunks")])
    assert SECRET not in kept + caplog.text


@on_opensearch
def test_tls(url, prefix, indexed, tmp_path):
    files = certificate(tmp_path)
    with proxy(url, files) as between:
        trusting = make(between.url, prefix, ca_file=str(files[0]))
        assert trusting.latest(DATASET).object_count == 4
        with pytest.raises(MetadataStoreError, match="could not prove who it is.*caFile"):
            make(between.url, prefix).latest(DATASET)
        assert make(between.url, prefix, verify=False).latest(DATASET).object_count == 4
    with pytest.raises(SettingError, match="caFile .*cannot be read as certificates"):
        make(between.url, prefix, ca_file=str(files[1]))


@on_elasticsearch
def test_an_answer_that_got_lost_after_the_switch_is_a_success(url, prefix, indexed):
    with proxy(url) as between:
        store = make(between.url, prefix, retries=1)
        base = store.latest(DATASET)
        between.swallow = "if_seq_no="
        after = commit(store, base, None, [RA], rows_of(1, start=4), root=DATASET)
        assert after.version == 2
        assert sum("if_seq_no=" in path for _, path, _ in between.seen) == 2
    assert indexed.latest(DATASET).object_count == 5


def test_two_writers_and_one_winner(url, prefix):
    rounds = 4
    stores = [make(url, prefix) for _ in range(3)]
    base = commit(stores[0], None, None, [RA], rows_of(1), root=DATASET)
    for number in range(rounds):
        won, lost, barrier = [], [], threading.Barrier(len(stores))

        def write(store, won=won, lost=lost, barrier=barrier, base=base, number=number):
            mine = store.latest(DATASET)
            assert mine.version == base.version
            barrier.wait()
            try:
                won.append(commit(store, mine, None, [RA], rows_of(1, start=1 + number), root=DATASET))
            except CommitConflictError as error:
                lost.append(str(error))

        threads = [threading.Thread(target=write, args=(store,)) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert ["try again" in text for text in lost] == [True] * (len(stores) - 1)
        base = won[0]
        assert {store.latest(DATASET).id for store in stores} == {base.id}
    assert base.object_count == 1 + rounds
    parts = {part.file for part in stores[0]._manifest(base).parts}
    assert {d["part"] for d in documents(url, prefix, "chunks").values()} == parts  # losers leave nothing


def test_an_index_with_another_mapping(url, prefix):
    send(url, "PUT", f"{prefix}-objects", {"mappings": {"properties": {"part": {"type": "text"}}}})
    store = make(url, prefix)
    with pytest.raises(MetadataStoreError, match=f"index {prefix}-objects .*mapping of something else.*another prefix"):
        commit(store, None, None, [RA], rows_of(1), root=DATASET)
    assert store.latest(DATASET) is None


def test_a_slot_of_another_type(url, prefix, indexed):
    send(url, "PUT", f"{prefix}-objects/_mapping", {"properties": {"k900": {"type": "keyword", "ignore_above": 5}}})
    with pytest.raises(MetadataStoreError, match="field 'k900' of another type"):
        commit(indexed, indexed.latest(DATASET), None, [RA], rows_of(1, start=4), root=DATASET)


@on_opensearch
@pytest.mark.parametrize(
    "damage",
    [
        {"manifest": base64.b64encode(b"{}").decode()},
        {"manifest": base64.b64encode(b"\xff" * 20).decode()},
        {"version": 7},
        {"writer_id": "another"},
        None,
    ],
)
def test_a_damaged_head(url, prefix, indexed, damage):
    dataset = dataset_id(DATASET)
    content = send(url, "GET", f"{prefix}-heads/_doc/{dataset}")["_source"]
    changed = {"dataset": "?"} if damage is None else content | damage
    send(url, "PUT", f"{prefix}-heads/_doc/{dataset}", changed)
    other = make(url, prefix)
    with pytest.raises(MetadataCorruptError, match="damaged"):
        other.latest(DATASET)
    assert other.recoverable_indexes(DATASET) == (RA,)
    repaired = other.commit(DATASET, None, Change((RA,), added(rows_of(2), [RA])), replace=True)
    assert indexed.latest(DATASET).id == repaired.id
    assert indexed.evaluate(repaired, HasValue(A, 5)).kept.tolist() == [True, False]


@on_opensearch
def test_a_head_that_is_gone_is_made_again_from_its_copy(url, prefix, indexed):
    commit(indexed, indexed.latest(DATASET), None, [RA, RT], root=DATASET)
    send(url, "DELETE", f"{prefix}-heads/_doc/{dataset_id(DATASET)}")
    other = make(url, prefix)
    assert other.latest(DATASET) is None
    with pytest.raises(MetadataCorruptError, match=r"version 2 is gone.* `refresh\(\)` makes its indexes again"):
        other.check_newest(DATASET)
    found = other.recovery(DATASET)
    assert [r.name for r in found.indexes] == [RA.name, RT.name]
    assert found.lost == ()
    assert other.commit(DATASET, None, Change((RA,), added(rows_of(2), [RA])), replace=True).version == 3
    other.check_newest(DATASET)


@on_opensearch
def test_a_copy_that_is_older_than_the_damaged_head_says_what_is_lost(url, prefix, indexed):
    dataset = dataset_id(DATASET)
    older = send(url, "GET", f"{prefix}-heads/_doc/{dataset}.copy")["_source"]
    commit(indexed, indexed.latest(DATASET), None, [RA, RT], root=DATASET)
    head = send(url, "GET", f"{prefix}-heads/_doc/{dataset}")["_source"]
    send(url, "PUT", f"{prefix}-heads/_doc/{dataset}.copy", older)
    indexed.check_newest(DATASET)
    cut = base64.b64encode(base64.b64decode(head["manifest"])[:-30]).decode()
    send(url, "PUT", f"{prefix}-heads/_doc/{dataset}", head | {"manifest": cut})
    found = make(url, prefix).recovery(DATASET)
    assert found.indexes == (RA,)
    assert "version 2 was damaged and cannot be read; what changed after version 1 is lost" in found.lost[0]
    assert f"what is left of it names {RT.name}" in found.lost[0]


@on_opensearch
def test_dropped_metadata_leaves_no_copy(url, prefix, indexed):
    indexed.drop(DATASET)
    assert not documents(url, prefix, "heads")
    indexed.check_newest(DATASET)
    assert indexed.recovery(DATASET).indexes == ()


def _read_all(store, snapshot):
    for part in store._parts(snapshot):
        part.read(sorted(part.column_names()))


@on_opensearch
def test_every_damaged_or_missing_chunk_is_noticed(url, prefix, indexed):
    chunks = documents(url, prefix, "chunks")
    checked = 0
    for identifier, content in chunks.items():
        data = bytearray(base64.b64decode(content["data"]))
        data[len(data) // 2] ^= 1
        text = base64.b64encode(bytes(data)).decode()
        for change in ({**content, "data": text}, None):
            path = f"{prefix}-chunks/_doc/{identifier}"
            send(url, "DELETE", path) if change is None else send(url, "PUT", path, change)
            store = make(url, prefix)
            snapshot = store.latest(DATASET)
            with pytest.raises(MetadataCorruptError, match="damaged"):
                _read_all(store, snapshot)
            checked += 1
        send(url, "PUT", f"{prefix}-chunks/_doc/{identifier}", content)
    assert checked == 2 * len(chunks) >= 20
    assert make(url, prefix).objects(indexed.latest(DATASET)).num_rows == 4


@pytest.fixture
def searched(url, prefix):
    """A store whose dataset has documents to search, and a clause that the server evaluates."""
    store = make(url, prefix)
    one = describe(MinMaxIndex("c"), _objects("int")[:20], {"c": "int"}, "m")
    snapshot = store.commit(DATASET, None, Change((one.record,), table_of([one], range(20))))
    (clause,) = clauses_of(one.index, [IsNull(Column("c", "int"))])
    assert 0 < store.evaluate(snapshot, clause).kept.sum() < 20
    return store, snapshot, clause


@on_elasticsearch
def test_a_missing_searchable_document_refutes_nothing(url, prefix, searched):
    store, snapshot, clause = searched
    (part,) = store._manifest(snapshot).parts
    send(url, "DELETE", f"{prefix}-objects/_doc/{part.file}.3?refresh=true")
    with pytest.raises(MetadataCorruptError, match="documents .* not all there"):
        store.evaluate(snapshot, clause)
    with pytest.raises(MetadataCorruptError, match="documents .* not all there"):
        store.objects(snapshot)


@pytest.mark.parametrize("name", ["objects", "chunks", "heads"])
def test_an_index_deleted_behind_our_back(url, prefix, searched, name):
    _, _, clause = searched
    send(url, "DELETE", f"{prefix}-{name}")
    fresh = make(url, prefix)
    if name == "heads":
        assert fresh.latest(DATASET) is None
        return
    with pytest.raises(MetadataCorruptError, match="index is gone|document of it is not there"):
        fresh.evaluate(fresh.latest(DATASET), clause)
    one = describe(MinMaxIndex("c"), _objects("int")[:20], {"c": "int"}, "m2")
    again = fresh.commit(DATASET, None, Change((one.record,), table_of([one], range(20))), replace=True)
    assert not fresh.evaluate(again, clauses_of(one.index, [IsNull(Column("c", "int"))])[0]).kept.all()


def test_documents_that_were_mapped_anew_are_not_believed(url, prefix, searched):
    """Texts analysed as words would match other terms; the count by part cannot be made on such a field."""
    store, snapshot, clause = searched
    (part,) = store._manifest(snapshot).parts
    send(url, "DELETE", f"{prefix}-objects")
    for row in range(part.rows):
        content = {"part": part.file, "sequence": 1, "row": row, "l0": 0, "known": []}
        send(url, "PUT", f"{prefix}-objects/_doc/{part.file}.{row}{'?refresh=true' if row == 19 else ''}", content)
    with pytest.raises(MetadataStoreError):
        store.evaluate(snapshot, clause)


@on_opensearch
def test_what_a_dead_writer_left_is_cleaned_after_an_hour(url, prefix, indexed):
    now = int(time.time() * 1000)
    table = added(rows_of(2), [RA]).append_column("removed", pa.array([False] * 2))
    left = {age: NewPart(dataset_id(DATASET), part_name(), 9, now - age) for age in (7_200_000, 60_000)}
    foreign = NewPart(dataset_id("file:/other"), part_name(), 9, now - 7_200_000)
    for part in (*left.values(), foreign):
        with Bulk(indexed.client) as bulk:
            part.write(bulk, indexed._indices, table, [RA])
    send(url, "POST", f"{prefix}-chunks/_refresh")
    commit(indexed, indexed.latest(DATASET), None, [RA], rows_of(1, start=4), root=DATASET)
    parts = {d["part"] for d in documents(url, prefix, "chunks").values()}
    assert left[7_200_000].file not in parts
    assert {left[60_000].file, foreign.file} <= parts


@on_elasticsearch
def test_dropping_leaves_nothing_of_the_dataset_and_all_of_others(url, prefix, indexed):
    commit(indexed, None, None, [RA], rows_of(2), root="file:/data/other")
    indexed.drop(DATASET)
    for name in ("heads", "chunks", "objects"):
        assert not documents(url, prefix, name, {"term": {"dataset": dataset_id(DATASET)}})
    assert indexed.objects(indexed.latest("file:/data/other")).num_rows == 2


def test_a_refused_document_fails_the_commit_and_changes_nothing(url, prefix, indexed):
    base = indexed.latest(DATASET)
    send(url, "PUT", f"{prefix}-chunks/_settings", {"index.blocks.write": True})
    with pytest.raises(MetadataStoreError, match="refuses a document"):
        commit(indexed, base, None, [RA], rows_of(1, start=4), root=DATASET)
    send(url, "PUT", f"{prefix}-chunks/_settings", {"index.blocks.write": False})
    assert make(url, prefix).latest(DATASET).id == base.id


@on_elasticsearch
def test_large_columns_travel_in_bounded_requests(url, prefix):
    words = [np.random.default_rng(n).bytes(30_000).hex() for n in range(200)]  # 12 MB that do not compress well
    rows = [Row(f"file:/{n}", fields={"t": {"tags": [word]}}) for n, word in enumerate(words)]
    with proxy(url) as between:
        store = make(between.url, prefix)
        snapshot = commit(store, None, None, [RT], rows, root=DATASET)
        fresh = make(between.url, prefix)
        assert fresh.evaluate(snapshot, HasTag(T, words[7])).kept.tolist() == [n == 7 for n in range(200)]
    sent = [size for _, path, size in between.seen if path.startswith("/_bulk")]
    assert len(sent) >= 2
    assert max(sent) < 6 << 20


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "url is not set"),
        ({"url": "localhost:9200"}, "url is 'localhost:9200'"),
        ({"url": f"https://me:{SECRET}@host:9200"}, "url has a user in it"),
        ({"url": "http://h:1", "index": "Upper"}, "index is 'Upper'"),
        ({"url": "http://h:1", "user": "me"}, "belong together"),
        ({"url": "http://h:1", "user": "me", "password": "x", "apiKey": SECRET}, "beside a user"),
        ({"url": "http://h:1", "verify": "maybe"}, "verify is 'maybe'"),
        ({"url": "http://h:1", "timeoutSeconds": "soon"}, "timeoutSeconds is 'soon'"),
        ({"url": "http://h:1", "retries": "-1"}, "retries is '-1'"),
        ({"url": "http://h:1", "hosts": "x"}, "hosts is no setting"),
        ({"url": "http://h:1", "user": "me", "password": f"{SECRET}\n x\x01"}, "no HTTP header"),
    ],
)
def test_settings_that_make_no_sense(settings, said):
    with pytest.raises(SettingError, match=said) as caught:
        ServerSettings.of({f"elasticsearch.{name}": value for name, value in settings.items()})
    assert SECRET not in str(caught.value)


@on_opensearch
def test_an_index_with_a_key_is_refused(url, prefix, indexed):
    from dataclasses import replace

    with pytest.raises(MetadataStoreError, match="does not encrypt"):
        commit(indexed, indexed.latest(DATASET), None, [RA, replace(RT, key="k1")], rows_of(1), [RA], root=DATASET)


@on_elasticsearch
def test_absent_metadata_is_remembered(url, prefix, indexed):
    store = make(url, prefix)
    before = store.client.requests
    assert [store.latest("file:/data/nothing") for _ in range(5)] == [None] * 5
    assert store.client.requests - before == 1
    commit(indexed, None, None, [RA], rows_of(1), root="file:/data/nothing")  # of this process: seen at once
    assert store.latest("file:/data/nothing").object_count == 1


def test_the_store_without_its_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "urllib3", None)
    with pytest.raises(SettingError, match=r"pip install 'skipstone\[elasticsearch\]'"):
        ElasticsearchStore(ServerSettings("http://h:1"))
