"""Indexes with keys: the same answers for who has them, nothing but the others' answers for who has not."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.stores.keys import EverythingProtected, key_bytes, key_file, kms_settings, store_with

from skipstone.errors import KeyProviderError, KeyUnavailableError, MetadataStoreError, SettingError
from skipstone.kms import KeyProvider, LocalFileKeys
from skipstone.querying.clause import AndClause
from skipstone.stores.memory import InMemoryStore
from skipstone.stores.metadata_store import Change, ColumnRecord
from skipstone.stores.parquet import encryption
from skipstone.stores.parquet.encryption import Keys
from skipstone.stores.parquet.layout import dataset_folder
from skipstone.stores.parquet.part_footer import CHUNK
from skipstone.stores.parquet.part_writer import _extent
from skipstone.stores.parquet.store import ParquetStore
from skipstone.testing.store_model import (
    ROOT,
    HasTag,
    HasValue,
    Model,
    StoredRangeIndex,
    StoredTagsIndex,
    assert_same,
    commit,
    record,
    rows_of,
)
from skipstone.testing.stores import assert_store

A = StoredRangeIndex("a")
T = StoredTagsIndex("t", key="secret")
RA = record(A, "a")
RT = replace(record(T, "t"), key="secret", options={"words": ["xyzzy-plugh"]}, functions={"f": "version plover"})
RANGE, TAG = HasValue(A, 15), HasTag(T, "x")


@pytest.fixture
def base(tmp_path):
    return f"file:{tmp_path}/metadata"


@pytest.fixture
def file(tmp_path):
    return key_file(tmp_path / "keys.json", "secret", "footer", "k")


def folder_of(base: str) -> Path:
    return Path(dataset_folder(ROOT, base).removeprefix("file:"))


def rows(count: int, start: int = 0):
    made = rows_of(count, start=start)
    for n, row in enumerate(made):
        row.fields["t"] = {"tags": ["x", "xyzzy-plugh"] if n % 2 else ["y"]}
    return made


@pytest.mark.parametrize(
    "options",
    [{}, {"max_parts": 1}, {"footer_key": "footer"}, {"footer_key": "footer", "max_parts": 2}],
    ids=str,
)
def test_protected_metadata_passes_the_contract(tmp_path, file, options):
    others = dict(options)
    footer = {"footerKey": others.pop("footer_key")} if "footer_key" in options else {}
    keys = Keys(kms_settings(file, **footer))
    numbers = iter(range(10_000))

    def make():
        place = tmp_path / str(next(numbers))
        place.mkdir()
        return EverythingProtected(location=f"file:{place}", keys=keys, **others)

    assert assert_store(make, examples=25) > 6


def test_one_index_protected_one_plain(base, file):
    Path(base.removeprefix("file:")).mkdir()
    store, model = store_with(base, file), Model()
    first = commit(store, None, model, [RA, RT], rows(6))
    snapshot = commit(store, first, model, [RA, RT], rows(4, start=6))
    both = AndClause((RANGE, TAG))
    assert assert_same(store, snapshot, model, [RANGE, TAG, both]) > 10
    assert all(store.refusal(snapshot, r) is None for r in snapshot.indexes)
    assert replace(snapshot.indexes[1], sealed="") == RT
    with_key, without = store_with(base, file), store_with(base, None)
    assert_same(with_key, with_key.latest(ROOT), model, [RANGE, TAG, both])
    seen = without.latest(ROOT)
    assert without.refusal(seen, seen.indexes[0]) is None
    assert "no key 'secret'" in without.refusal(seen, seen.indexes[1])
    assert seen.indexes[1].options == {}
    assert seen.indexes[1].functions == {}
    assert without.evaluate(seen, RANGE).kept.tolist() == store.evaluate(snapshot, RANGE).kept.tolist()
    assert without.evaluate(seen, RANGE).kept.sum() == 1
    with pytest.raises(KeyUnavailableError, match="no key 'secret'"):
        without.evaluate(seen, TAG)
    assert without.coverage(seen, seen.indexes[1]).all()
    assert without.size(seen).keys() == store.size(snapshot).keys()


def test_metadata_beyond_the_bound_is_decrypted_in_the_driver_only(base, file):
    class Spark:
        by_spark = True
        asked = 0

        def __call__(self, parts, clause, fields):
            self.asked += 1
            return [[True] * part.record.rows for part in parts]

    Path(base.removeprefix("file:")).mkdir()
    spark, model = Spark(), Model()
    store = store_with(base, file, cache_bytes=1, part_evaluator=spark)
    snapshot = commit(store, None, model, [RA, RT], rows(6))
    store.evaluate(snapshot, RANGE)
    assert spark.asked == 1
    found = store.evaluate(snapshot, TAG)
    assert spark.asked == 1
    assert not found.by_spark
    assert found.kept.sum() == 3
    footer = store_with(base, file, "footer", cache_bytes=1, part_evaluator=spark)
    snapshot = commit(footer, footer.latest(ROOT), model, [RA, RT], rows(6, start=6))
    assert footer.evaluate(snapshot, RANGE).kept.sum() == 1
    assert spark.asked == 1


def test_who_lacks_the_key_can_write_what_else_there_is(base, file):
    Path(base.removeprefix("file:")).mkdir()
    owner, model = store_with(base, file, max_parts=3), Model()
    snapshot = commit(owner, None, model, [RA, RT], rows(4))
    guest = store_with(base, None, max_parts=3)
    for n in range(4, 10):
        seen = guest.latest(ROOT)
        commit(guest, seen, model, seen.indexes, rows_of(1, start=n), [RA])
    parts = len(list((folder_of(base) / "_parts").iterdir()))
    assert parts == 7, "a guest compacted what only the owner can read"
    model.indexes = [RA, RT]
    snapshot = owner.latest(ROOT)
    assert owner.coverage(snapshot, RT).tolist() == [True] * 4 + [False] * 6
    assert owner.evaluate(snapshot, TAG).kept.tolist() == [False, True] * 2 + [True] * 6
    snapshot = commit(owner, snapshot, model, snapshot.indexes, rows(1, start=9))
    assert len(owner._manifest(snapshot).parts) == 1, "the owner compacts again"
    assert owner.evaluate(snapshot, TAG).kept.tolist() == [False, True] * 2 + [True] * 5 + [False]
    seen = guest.latest(ROOT)
    dropped = commit(guest, seen, None, [r for r in seen.indexes if r.key is None])
    assert [r.id for r in dropped.indexes] == ["a"]
    assert guest.evaluate(dropped, RANGE).kept.sum() == 1


def test_compaction_by_a_key_holder_uses_the_newest_key(base, tmp_path):
    Path(base.removeprefix("file:")).mkdir()
    old, new = key_bytes("secret"), key_bytes("secret", 1)
    file = key_file(tmp_path / "keys.json", secret=[old])
    snapshot = commit(store_with(base, file, max_parts=2), None, None, [RA, RT], rows(4))
    key_file(file, secret=[old, new])
    store, model = store_with(base, file, max_parts=2), Model()
    snapshot = store.latest(ROOT)
    assert store.evaluate(snapshot, TAG).kept.sum() == 2, "rotated: the old version still opens"
    for n in (4, 6):
        snapshot = commit(store, snapshot, model, snapshot.indexes, rows(2, start=n), [RA, RT])
    assert len(store._manifest(snapshot).parts) == 1
    key_file(file, secret=[None, new])
    after = store_with(base, file)
    snapshot = after.latest(ROOT)
    assert after.refusal(snapshot, snapshot.indexes[1]) is None
    assert after.evaluate(snapshot, TAG).kept.sum() == 4


def test_a_destroyed_version_or_a_wrong_key_is_a_refusal(base, tmp_path):
    Path(base.removeprefix("file:")).mkdir()
    old, new = key_bytes("secret"), key_bytes("secret", 1)
    file = key_file(tmp_path / "keys.json", secret=[old])
    commit(store_with(base, file), None, None, [RA, RT], rows(4))
    for versions, text in (
        ([None, new], "version 0 of the key 'secret' is not in the key file any more"),
        ([new], "is not the key that was used"),
        ([b"short"], "is not 16, 24 or 32 bytes"),
    ):
        key_file(file, secret=versions)
        store = store_with(base, file)
        seen = store.latest(ROOT)
        assert text in store.refusal(seen, seen.indexes[1])
        assert store.refusal(seen, seen.indexes[0]) is None
        assert store.evaluate(seen, RANGE).kept.sum() == 1
    key_file(file, secret=[old])
    assert store.refusal(seen, seen.indexes[1]) is not None, "a refusal is remembered for a while"
    fresh = store_with(base, file)
    seen = fresh.latest(ROOT)
    assert fresh.refusal(seen, seen.indexes[1]) is None


def test_a_later_part_under_a_lost_key_is_a_refusal_too(base, tmp_path):
    Path(base.removeprefix("file:")).mkdir()
    old, new = key_bytes("secret"), key_bytes("secret", 1)
    file = key_file(tmp_path / "keys.json", secret=[old])
    commit(store_with(base, file), None, None, [RA, RT], rows(4))
    key_file(file, secret=[old, new])
    store = store_with(base, file)
    snapshot = store.latest(ROOT)
    commit(store, snapshot, None, snapshot.indexes, rows(2, start=4), [RA, RT])
    key_file(file, secret=[old, None])
    after = store_with(base, file)
    seen = after.latest(ROOT)
    assert seen.indexes[1].options == RT.options, "the seal is of the old version"
    assert "version 1" in after.refusal(seen, seen.indexes[1])


def test_without_the_footer_key_nothing_is_read_and_all_is_said(base, file):
    Path(base.removeprefix("file:")).mkdir()
    owner, model = store_with(base, file, "footer"), Model()
    snapshot = commit(owner, None, model, [RA, RT], rows(4))
    assert assert_same(owner, snapshot, model, [RANGE, TAG]) > 0
    part = next((folder_of(base) / "_parts").iterdir()).read_bytes()
    assert part[:4] == part[-4:] == b"PARE"
    assert ROOT.encode() not in part
    without_footer = key_file(file.with_name("others.json"), "secret")
    for keys in (None, without_footer):
        with pytest.raises(KeyUnavailableError, match="no key 'footer'"):
            store_with(base, keys).latest(ROOT)
    names = [r.name for r in store_with(base, None).recoverable_indexes(ROOT)]
    assert names == [RA.name, RT.name]
    # Whoever has the key goes on protecting, whether the session says so or not.
    unaware = store_with(base, file)
    snapshot = commit(unaware, unaware.latest(ROOT), model, snapshot.indexes, rows(2, start=4))
    assert [p.key for p in unaware._manifest(snapshot).parts] == ["footer", "footer"]
    assert_same(owner, owner.latest(ROOT), model, [RANGE, TAG])
    store_with(base, None).drop(ROOT)
    assert owner.latest(ROOT) is None


def test_a_protected_index_needs_its_key_to_be_made(base, file):
    Path(base.removeprefix("file:")).mkdir()
    for store in (store_with(base, None), store_with(base, key_file(file.with_name("none.json"), "other"))):
        with pytest.raises(KeyUnavailableError, match="no key 'secret'"):
            store.check_keys(["secret"])
        with pytest.raises(KeyUnavailableError, match="no key 'secret'"):
            commit(store, None, None, [RA, RT], rows(2))
        assert store.latest(ROOT) is None
        assert not list(Path(base.removeprefix("file:")).rglob("*.part"))
    store_with(base, file).check_keys(["secret"])
    with pytest.raises(KeyUnavailableError, match="no key 'nowhere'"):
        store_with(base, file, "nowhere").check_keys([])
    with pytest.raises(MetadataStoreError, match="InMemoryStore does not encrypt"):
        InMemoryStore().check_keys(["secret"])
    InMemoryStore().check_keys([])


class Odd(KeyProvider):
    """A provider that misbehaves as its settings say."""

    def wrap_key(self, key, master_key):
        return self.unwrap_key(base64.b64encode(key).decode(), master_key)

    asked = 0

    def unwrap_key(self, wrapped, master_key):
        self.asked += 1
        match self.settings["how"]:
            case "raises":
                raise RuntimeError(f"hunter2 {wrapped}")
            case "exits":
                raise SystemExit(3)
            case "hangs":
                self.ended.wait(120)
            case "refuses":
                raise KeyProviderError("ask the security team for the role `reader`")
            case "short":
                return b"short"
        return 42


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("raises", "the key provider raised RuntimeError"),
        ("exits", "the key provider raised SystemExit"),
        ("hangs", "the key provider gave no answer within 0.2 s"),
        ("refuses", "ask the security team for the role `reader`"),
        ("other type", "gave no bytes"),
        ("short", "the key 'secret' does not open"),
    ],
)
def test_whatever_a_provider_does_the_index_is_not_used(base, file, how, said, monkeypatch):
    monkeypatch.setattr(encryption, "_MEMORY", 3600.0)  # a slow machine forgets nothing either
    Path(base.removeprefix("file:")).mkdir()
    commit(store_with(base, file), None, None, [RA, RT], rows(4))
    odd = {"class": f"{__name__}:Odd", "how": how, "timeoutSeconds": "0.2" if how == "hangs" else "60"}
    provider = Keys(odd)
    provider._provider = Odd(odd)  # the module of a test cannot be imported by name
    provider._provider.ended = threading.Event()
    store = ParquetStore(location=base, keys=provider)
    seen = store.latest(ROOT)
    told = store.refusal(seen, seen.indexes[1])
    assert said in told
    assert "hunter2" not in told
    assert store.evaluate(seen, RANGE).kept.sum() == 1
    for _ in range(20):
        assert store.refusal(store.latest(ROOT), seen.indexes[1]) is not None
    provider._provider.ended.set()
    if said.startswith(("the key provider", "ask")):
        assert provider._provider.asked == 1, "a provider that fails is not asked for every query"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"class": ""}, "spark.skipstone.kms.class is not set"),
        ({"class": "nowhere.at.all:Provider"}, "cannot be made: ModuleNotFoundError"),
        ({"class": "json:loads"}, "cannot be made: TypeError"),
        ({"class": "builtins:dict"}, "it needs wrap_key and unwrap_key"),
        ({"class": "skipstone.kms.LocalFileKeys", "file": "/nowhere"}, "cannot be read as JSON"),
    ],
)
def test_a_provider_that_cannot_be_had_is_said(base, file, settings, said):
    Path(base.removeprefix("file:")).mkdir()
    commit(store_with(base, file), None, None, [RA, RT], rows(4))
    store = ParquetStore(location=base, keys=Keys(settings))
    seen = store.latest(ROOT)
    assert said in store.refusal(seen, seen.indexes[1])
    assert store.evaluate(seen, RANGE).kept.sum() == 1
    with pytest.raises(KeyUnavailableError, match="no key"):
        store.check_keys(["secret"])


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "1e9", "nan"])
def test_a_time_that_makes_no_sense_is_refused(seconds):
    with pytest.raises(SettingError, match="timeoutSeconds"):
        Keys({"timeoutSeconds": seconds})


def test_a_file_names_its_key_and_no_other_is_asked_for(base, file):
    """A hostile manifest gives a section another key's name: the provider must not be made to unwrap with it."""
    Path(base.removeprefix("file:")).mkdir()
    commit(store_with(base, file), None, None, [RA, RT], rows(4))
    manifest = next((folder_of(base) / "_manifests").glob("*.json"))
    content = json.loads(manifest.read_text())
    content["indexes"][1] |= {"key": "k", "sealed": ""}
    content["parts"][0]["sections"]["k"] = content["parts"][0]["sections"].pop("secret")
    forge(manifest, content)
    store = store_with(base, file)
    seen = store.latest(ROOT)
    assert "the file was encrypted with another, 'secret'" in store.refusal(seen, seen.indexes[1])
    with pytest.raises(KeyUnavailableError, match="another, 'secret'"):
        store.evaluate(seen, HasTag(replace(T, key="k"), "x"))
    assert store.evaluate(seen, RANGE).kept.sum() == 1


def test_a_section_or_seal_of_another_index_is_not_taken(base, file):
    Path(base.removeprefix("file:")).mkdir()
    other = replace(RT, id="u", name="other")
    made = rows(4)
    for row in made:
        row.fields["u"] = {"tags": ["y"]}
    commit(store_with(base, file), None, None, [RT, other], made)
    manifest = next((folder_of(base) / "_manifests").glob("*.json"))
    whole = manifest.read_bytes()
    content = json.loads(whole)
    first, second = content["indexes"]
    first["sealed"], second["sealed"] = second["sealed"], first["sealed"]
    forge(manifest, content)
    store = store_with(base, file)
    assert "belongs to something else" in store.refusal(store.latest(ROOT), store.latest(ROOT).indexes[0])
    content = json.loads(whole)
    first, second = content["indexes"]
    first["id"], second["id"] = second["id"], first["id"]
    forge(manifest, content)
    store = store_with(base, file)
    assert "belongs to something else" in store.refusal(store.latest(ROOT), store.latest(ROOT).indexes[0])
    content = json.loads(whole)
    content["indexes"][0] |= {"id": "v", "sealed": ""}
    part = content["parts"][0]
    part["indexes"]["v"] = part["indexes"].pop("t")
    part["sections"]["secret"]["columns"] = ["v:tags", "u:tags"]
    forge(manifest, content)
    store = store_with(base, file)
    with pytest.raises(MetadataStoreError, match="lacks the column"):
        store.evaluate(store.latest(ROOT), TAG)


def test_any_damaged_byte_of_a_protected_part_is_noticed_or_changes_nothing(base, file):
    Path(base.removeprefix("file:")).mkdir()
    store = store_with(base, file)
    section = store._manifest(commit(store, None, None, [RA, RT], rows(6))).parts[0].sections["secret"]
    part = next((folder_of(base) / "_parts").iterdir())
    whole = part.read_bytes()
    generator = random.Random(7)
    places = generator.sample(range(len(whole)), 100) + generator.sample(
        range(section.offset, section.offset + section.length), 150
    )
    noticed = unchanged = 0
    for place in places:
        part.write_bytes(whole[:place] + bytes([whole[place] ^ (1 << generator.randrange(8))]) + whole[place + 1 :])
        store = store_with(base, file)
        seen = store.latest(ROOT)
        for clause, kept in ((RANGE, 1), (TAG, 3)):
            try:
                assert store.evaluate(seen, clause).kept.sum() == kept
                unchanged += 1
            except MetadataStoreError:
                noticed += 1
    assert noticed > 150
    assert noticed + unchanged == 500


def test_forged_sections_and_seals_are_refused(base, file):
    """Whoever may write to the folder can make every hash fit; what pyarrow then reads must not harm the process."""
    Path(base.removeprefix("file:")).mkdir()
    store = store_with(base, file)
    section = store._manifest(commit(store, None, None, [RA, RT], rows(6))).parts[0].sections["secret"]
    part = next((folder_of(base) / "_parts").iterdir())
    manifest = next((folder_of(base) / "_manifests").glob("*.json"))
    whole, content = part.read_bytes(), json.loads(manifest.read_text())
    end = section.offset + section.length
    generator = random.Random(11)
    refused = 0
    for place in generator.sample(range(end - section.footer_length, end), 120):
        forged = whole[:place] + bytes([whole[place] ^ (1 << generator.randrange(8))]) + whole[place + 1 :]
        part.write_bytes(forged)
        digest = hashlib.sha256(forged[end - section.footer_length : end]).hexdigest()
        content["parts"][0]["sections"]["secret"]["footer_sha256"] = digest
        forge(manifest, content)
        store = store_with(base, file)
        seen = store.latest(ROOT)
        assert store.evaluate(seen, RANGE).kept.sum() == 1
        try:
            assert store.evaluate(seen, TAG).kept.sum() == 3
        except MetadataStoreError:
            refused += 1
    assert refused > 60
    part.write_bytes(whole)
    sealed = base64.b64decode(content["indexes"][1]["sealed"])
    content["parts"][0]["sections"]["secret"]["footer_sha256"] = section.footer_sha256
    refused = 0
    for place in [*generator.sample(range(len(sealed)), 120), -1]:
        forged = sealed[:place] + bytes([sealed[place] ^ (1 << generator.randrange(8))]) + sealed[place + 1 :]
        content["indexes"][1]["sealed"] = base64.b64encode(forged if place >= 0 else b"").decode() or "?"
        forge(manifest, content)
        store = store_with(base, file)
        seen = store.latest(ROOT)
        reason = store.refusal(seen, seen.indexes[1])
        refused += reason is not None
        assert reason is not None or seen.indexes[1].options == RT.options
    assert refused > 100


def test_a_plain_part_with_an_encrypted_column_does_not_end_the_process(base, file):
    """pyarrow ends the process when the metadata of a column is asked for whose key is missing."""
    import pyarrow.parquet as pq
    from pyarrow.parquet import encryption

    Path(base.removeprefix("file:")).mkdir()
    commit(store_with(base, None), None, None, [RA], rows(4))
    part = next((folder_of(base) / "_parts").iterdir())
    factory, connection = Keys(kms_settings(file))._factory("k"), encryption.KmsConnectionConfig()
    hostile = encryption.EncryptionConfiguration(footer_key="k", column_keys={"k": ["etag"]}, plaintext_footer=True)
    table = pq.read_table(pa.BufferReader(part.read_bytes()))
    properties = factory.file_encryption_properties(connection, hostile)
    pq.write_table(table, part, write_statistics=False, encryption_properties=properties)
    plain = part.read_bytes()
    start = len(plain) - 8 - int.from_bytes(plain[-8:-4], "little")
    group = pq.read_metadata(part, decryption_properties=factory.file_decryption_properties(connection)).row_group(0)
    places = [_extent(group.column(leaf)) for leaf in range(group.num_columns)]
    chunks = [(offset, size, zlib.crc32(plain[offset : offset + size])) for offset, size in places]
    end = np.array(chunks, CHUNK).tobytes() + plain[start:]
    part.write_bytes(plain[:start] + end)
    manifest = next((folder_of(base) / "_manifests").glob("*.json"))
    content = json.loads(manifest.read_text())
    digest = hashlib.sha256(end).hexdigest()
    content["parts"][0] |= {"length": start + len(end), "footer_length": len(end), "footer_sha256": digest}
    forge(manifest, content)
    for keys_of in (None, file):
        store = store_with(base, keys_of)
        seen = store.latest(ROOT)
        assert store.evaluate(seen, RANGE).kept.sum() == 1
        with pytest.raises(MetadataStoreError, match="damaged: a column cannot be decoded"):
            store.objects(seen)


def test_users_of_one_process_share_nothing(base, file):
    Path(base.removeprefix("file:")).mkdir()
    owner = store_with(base, file)
    commit(owner, None, None, [RA, RT], rows(4))
    other = store_with(base, key_file(file.with_name("other.json"), "k"))
    mine, theirs = owner.latest(ROOT), other.latest(ROOT)
    assert mine.id != theirs.id, "the engine remembers objects by the snapshot's id"
    owner.evaluate(mine, TAG)
    assert other.refusal(mine, mine.indexes[1]) is not None, "not even with the owner's own record"
    with pytest.raises(MetadataStoreError):
        other.evaluate(theirs, TAG)


def test_several_threads_decrypt_at_once(base, file):
    Path(base.removeprefix("file:")).mkdir()
    store = store_with(base, file)
    index = StoredRangeIndex("b", key="secret")
    made = rows(3000)
    for n, row in enumerate(made):
        row.fields["b"] = {"low": n, "high": n}
    snapshot = commit(store, None, None, [RT, replace(record(index, "b"), key="secret")], made)
    (part,) = store._parts(snapshot)
    choices = (["t:tags"], ["b:low", "t:tags"], ["b:high", "b:low"])
    truth = part.read(["t:tags", "b:low", "b:high"])
    with ThreadPoolExecutor(8) as pool:
        for columns, found in zip(choices * 100, pool.map(part.read, choices * 100), strict=True):
            assert found.equals(truth.select(columns))


def test_a_pyarrow_that_cannot_decrypt_safely_is_not_used(base, file, monkeypatch):
    Path(base.removeprefix("file:")).mkdir()
    commit(store_with(base, file), None, None, [RA, RT], rows(4))
    monkeypatch.setattr(pa, "__version__", "19.0.1")
    store = store_with(base, file)
    seen = store.latest(ROOT)
    assert "needs pyarrow 20" in store.refusal(seen, seen.indexes[1])
    assert store.evaluate(seen, RANGE).kept.sum() == 1


def test_replacing_everything_seals_anew(base, file):
    Path(base.removeprefix("file:")).mkdir()
    store = store_with(base, file)
    first = commit(store, None, None, [RA, RT], rows(2))
    again = store.commit(
        ROOT, None, Change(tuple(replace(r, id=f"{r.id}2", sealed="") for r in first.indexes)), replace=True
    )
    assert again.indexes[1].options == RT.options
    assert again.indexes[1].sealed != first.indexes[1].sealed


def test_what_a_table_declares_of_a_column_is_sealed_too(base, file):
    Path(base.removeprefix("file:")).mkdir()
    declared = replace(RT, columns=(ColumnRecord("t", "string", reads_as="default 'frobozz'"),))
    store = store_with(base, file)
    commit(store, None, None, [declared], rows(2))
    assert store.latest(ROOT).indexes[0].columns == declared.columns
    assert store_with(base, None).latest(ROOT).indexes[0].columns == (ColumnRecord("t", "string"),)
    assert b"frobozz" not in next((folder_of(base) / "_manifests").glob("*.json")).read_bytes()


def test_a_wrapped_key_opens_with_its_own_key_only(file):
    keys = LocalFileKeys(kms_settings(file))
    wrapped = keys.wrap_key(b"0123456789abcdef", "secret")
    assert keys.unwrap_key(wrapped, "secret") == b"0123456789abcdef"
    assert wrapped != keys.wrap_key(b"0123456789abcdef", "secret")
    for wrong in (wrapped.replace("0:", "9:"), wrapped[2:], f"0:{wrapped[3:]}", "0:!", ""):
        with pytest.raises(KeyProviderError) as caught:
            keys.unwrap_key(wrong, "secret")
        assert base64.b64encode(key_bytes("secret")).decode() not in str(caught.value)
    with pytest.raises(KeyProviderError, match="is not the key that was used"):
        keys.unwrap_key(wrapped, "k")


def forge(path: Path, content: dict) -> None:
    """Write a manifest with a checksum that fits."""
    content = {name: value for name, value in content.items() if name != "checksum"}
    body = json.dumps(content, separators=(",", ":"))[:-1].encode()
    path.write_bytes(body + b',"checksum":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n')
