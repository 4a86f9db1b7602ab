"""Protected indexes through Spark: what the bytes of a store give away, and what users with other keys can do."""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
import struct
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType
from tests.stores.keys import key_bytes, key_file, kms_settings
from tests.support import conf, skipping_off, write_objects
from typer.testing import CliRunner

from skipstone import (
    BloomFilterIndex,
    Dataset,
    FeatureIndex,
    FormattedIndex,
    GapListIndex,
    GeoBoxIndex,
    HybridIndex,
    MetricDistanceIndex,
    MinMaxIndex,
    PrefixIndex,
    SuffixIndex,
    ValueListIndex,
    skipping_stats,
)
from skipstone.cli.main import app
from skipstone.errors import IndexExistsError, KeyUnavailableError, MetadataStoreError

OBJECTS = 4
ZSTD = b"\x28\xb5\x2f\xfd"


def kms(file: Path, **others: str) -> dict[str, str]:
    return {f"spark.skipstone.kms.{name}": value for name, value in kms_settings(file, **others).items()}


def user(spark, file: Path | None = None, **others: str):
    """Return a session of a user who has the keys of a file."""
    session = spark.newSession()
    for name, value in ({} if file is None else kms(file, **others)).items():
        session.conf.set(name, value)
    return session


def kept(session, path: str, predicate: str, *, rows: bool = True) -> tuple[int, tuple[str, ...]]:
    """Plan a query, and run it with and without skipping; give how many objects it reads, and what was not used."""
    df = session.read.parquet(path).where(predicate)
    with skipping_stats(session) as stats:
        found = Counter(map(str, df.select("*").collect())) if rows else df.select("*").inputFiles()
    if rows:
        with skipping_off(session):
            assert Counter(map(str, df.select("*").collect())) == found
    return stats[-1].objects.kept, stats[-1].not_used


# ---- what the bytes give away


def number(n: int) -> int:
    return 0x1122334455667700 + n


def text(n: int) -> str:
    return f"quokka{n}{n}wombat"


def day(n: int) -> dt.date:
    return dt.date(2931, 3, 10 + n)


@pytest.fixture(scope="module")
def telling(spark, tmp_path_factory):
    """A dataset whose values cannot be in a file by chance."""
    spark.udf.register("species", lambda s: f"marsupial-{s[:7]}", StringType())
    rows = [
        f"({number(n)}L, '{text(n)}', date'{day(n)}', array({12345.6789 + n}D, 0.5D), {40.123456789 + n}D, -70.987D)"
        for n in range(OBJECTS)
    ]
    schema = "n bigint, s string, d date, v array<double>, lat double, lng double"
    return write_objects(spark, tmp_path_factory.mktemp("telling") / "d", schema, rows)


def every_index(key: str | None) -> list:
    """One of each type, with options that hold values where a type has such options."""
    return [
        MinMaxIndex("n", key=key),
        ValueListIndex("s", key=key),
        ValueListIndex("d", key=key),
        BloomFilterIndex("s", key=key),
        HybridIndex("s", key=key),
        GapListIndex("n", workload=[(987654321987, 987654321988)], key=key),
        PrefixIndex("s", length=8, key=key),
        SuffixIndex("s", length=7, key=key),
        GeoBoxIndex("lat", "lng", key=key),
        FormattedIndex("s", extract="species", key=key),
        MetricDistanceIndex("v", key=key),
        MetricDistanceIndex("v", origins=[(31415.92653, 0.5)], key=key, name="given"),
        FeatureIndex({"wombats": f"s = '{text(2)}'", "early": f"d < date'{day(1)}'"}, key=key),
    ]


def needles() -> dict[str, bytes]:
    """What must not be found, by what it is."""
    found = {}
    for n in range(OBJECTS):
        days = (day(n) - dt.date(1970, 1, 1)).days
        found |= {
            f"text {n}": text(n).encode(),
            f"number {n}": struct.pack("<q", number(n)),
            f"day {n}": struct.pack("<i", days),
            f"prefix {n}": text(n)[:8].encode(),
            f"latitude {n}": struct.pack("<d", 40.123456789 + n),
            f"vector {n}": struct.pack("<d", 12345.6789 + n),
            f"formatted {n}": f"marsupial-{text(n)[:7]}".encode(),
        }
    return found | {
        "suffix": b"7wombat"[1:],
        "feature": b"quokka22wombat",
        "feature's name": b"wombats",
        "feature's day": str(day(1)).encode(),
        "workload": b"987654321987",
        "origin": b"31415.92653",
        "function": b"species",
    }


def readable(folder: Path) -> bytes:
    """Return all that can be read in a store: every byte, what is compressed in it, what is base64 in it."""
    pieces = []
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            pieces.append(data)
            pieces += [_inflated(data[found.start() :]) for found in re.finditer(re.escape(ZSTD), data)]
            for found in re.finditer(rb"[A-Za-z0-9+/]{40,}={0,2}", data):
                pieces.append(base64.b64decode(found[0][: len(found[0]) // 4 * 4]))
    return b"\n".join(pieces)


def _inflated(data: bytes) -> bytes:
    """Return what a zstd frame at the beginning of some bytes holds."""
    stream, found = pa.CompressedInputStream(pa.BufferReader(data), "zstd"), []
    try:
        while piece := stream.read(1):  # a longer read past the end would fail as a whole
            found.append(piece)
    except OSError:  # whatever follows the frame
        pass
    return b"".join(found)


def test_nothing_of_a_protected_index_can_be_read_in_any_file(spark, telling, tmp_path):
    file = key_file(tmp_path / "keys.json", "pii", "footer")
    keys = [key_bytes("pii"), key_bytes("footer")]
    found = {}
    for kind, key, footer in (("plain", None, ""), ("keyed", "pii", ""), ("footer", "pii", "footer")):
        folder = tmp_path / kind
        folder.mkdir()
        with conf(spark, {"spark.skipstone.location": str(folder), **kms(file, footerKey=footer)}):
            dataset = Dataset.for_path(spark, telling)
            dataset.create_indexes(*every_index(key))
            dataset.refresh()
            names = " ".join(row.name for row in dataset.describe().collect())
            assert kept(spark, telling, f"s = '{text(2)}'")[0] == 1
        everything = readable(folder)
        found[kind] = {what for what, needle in needles().items() if needle in everything}
        assert not any(k in everything or base64.b64encode(k) in everything for k in keys)
        assert key is None or not any(needle in names.encode() for needle in needles().values())
        assert (b"object-0001" in everything) == (not footer), "object names are readable without a footer key"
    missed = needles().keys() - found["plain"]
    assert not missed, "the search must find in a plain store what it looks for"
    assert len(found["plain"]) > 30
    assert found["keyed"] == found["footer"] == set()


# ---- users


@pytest.fixture
def shared(spark, tmp_path):
    """A dataset with an index of each of two users and one of everyone's."""
    rows = [f"({n}, 'n{n}', {n * 10})" for n in range(6)]
    path = write_objects(spark, tmp_path / "d", "id int, name string, salary int", rows)
    file = key_file(tmp_path / "all.json", "hr", "names")
    dataset = Dataset.for_path(user(spark, file), path)
    dataset.create_indexes(MinMaxIndex("id"), ValueListIndex("name", key="names"), MinMaxIndex("salary", key="hr"))
    return path, file


def test_two_users_with_different_keys_share_a_location(spark, shared, tmp_path):
    path, everything = shared
    hr = user(spark, key_file(tmp_path / "hr.json", "hr"))
    names = user(spark, key_file(tmp_path / "names.json", "names"))
    nobody, owner = user(spark), user(spark, everything)
    expected = {
        "id = 3": {owner, hr, names, nobody},
        "salary = 30": {owner, hr},
        "name = 'n3'": {owner, names},
        "salary = 30 AND name = 'n3'": {owner, hr, names},
        "salary < 5 AND id > 4": {owner, hr, names, nobody},
    }
    for rows in (True, False):  # the second time everything is in memory
        for predicate, served in expected.items():
            for session in (owner, hr, names, nobody):
                objects, not_used = kept(session, path, predicate, rows=rows)
                assert (objects < 6) == (session in served), predicate
                if session is nobody and "salary" in predicate:
                    assert any(t.startswith("minmax(salary): no key 'hr'") for t in not_used)
                if session is hr and "name" in predicate:
                    assert any("no key 'names'" in t and "has no key" in t for t in not_used)
    rows = {row.name: row for row in Dataset.for_path(hr, path).describe().collect()}
    assert rows["minmax(salary)"].key == "hr"
    assert rows["minmax(salary)"].not_used is None
    assert "no key 'names'" in rows["valuelist(name)"].not_used
    assert rows["valuelist(name)"].covered == 6
    explained = str(Dataset.for_path(nobody, path).explain(nobody.read.parquet(path).where("salary = 30")))
    assert "no key 'hr'" in explained


def test_metadata_larger_than_the_driver_keeps(spark, shared, tmp_path):
    """Spark reads the plain columns out of the part, around the encrypted ones, which the driver decrypts."""
    path, everything = shared
    owner, guest = user(spark, everything), user(spark)
    for session in (owner, guest):
        session.conf.set("spark.skipstone.cacheBytes", "1")
    assert kept(owner, path, "id = 3")[0] == kept(guest, path, "id = 3")[0] == 1
    assert kept(owner, path, "salary = 30")[0] == 1
    assert kept(owner, path, "salary = 30 AND id = 4")[0] == 0
    assert kept(guest, path, "salary = 30")[0] == 6


def test_a_user_without_a_key_refreshes_and_drops(spark, shared, tmp_path):
    path, everything = shared
    write_objects(spark, Path(path), "id int, name string, salary int", ["(7, 'n7', 70)"], first=6)
    hr = user(spark, key_file(tmp_path / "hr.json", "hr"))
    report = Dataset.for_path(hr, path).refresh()
    assert report.indexed == 1
    (problem,) = report.problems
    assert problem.startswith("valuelist(name): no key 'names'")
    owner = user(spark, everything)
    assert kept(owner, path, "name = 'n3'")[0] == 2, "the new object is not known to that index"
    assert kept(owner, path, "salary = 70")[0] == 1
    report = Dataset.for_path(owner, path).refresh()
    assert (report.indexed, report.problems) == (1, ())
    assert kept(owner, path, "name = 'n3'")[0] == 1
    Dataset.for_path(user(spark), path).drop_indexes("minmax(salary)")
    assert [r.name for r in Dataset.for_path(owner, path).describe().collect()] == ["minmax(id)", "valuelist(name)"]
    assert kept(owner, path, "name = 'n3'")[0] == 1


def test_a_lost_key_and_how_to_go_on(spark, shared, tmp_path):
    path, file = shared
    owner = user(spark, file)
    assert kept(owner, path, "salary = 30")[0] == 1
    key_file(file, "names", hr=[None, key_bytes("hr", 1)])
    again = user(spark, file, timeoutSeconds="9")  # another value, so that nothing is remembered
    objects, not_used = kept(again, path, "salary = 30")
    assert objects == 6
    assert any("version 0 of the key 'hr' is not in the key file any more" in t for t in not_used)
    dataset = Dataset.for_path(again, path)
    assert dataset.refresh().problems[0].startswith("minmax(salary): no key 'hr'")
    report = dataset.refresh(indexes=[MinMaxIndex("salary", key="hr")])
    assert (report.indexed, report.problems) == (6, ())
    assert kept(again, path, "salary = 30")[0] == 1
    assert kept(again, path, "name = 'n3'")[0] == 1
    wrong = user(spark, key_file(tmp_path / "wrong.json", "names", hr=[key_bytes("x"), key_bytes("y")]))
    objects, not_used = kept(wrong, path, "salary = 30")
    assert objects == 6
    assert any("is not the key that was used" in t for t in not_used)


def test_damaged_metadata_is_made_anew_with_and_without_the_key(spark, shared):
    path, file = shared
    owner, guest = user(spark, file), user(spark)
    manifest = json.loads(next((Path(path) / "_skipstone" / "_manifests").iterdir()).read_text())
    (record,) = manifest["parts"]
    (part,) = (Path(path) / "_skipstone" / "_parts").iterdir()
    whole, section = part.read_bytes(), record["sections"]["hr"]
    place = section["offset"] + section["length"] - 20
    part.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    fresh = user(spark, file, timeoutSeconds="8")  # another value, so that nothing is remembered
    objects, not_used = kept(fresh, path, "salary = 30")
    assert objects == 6
    assert any("is damaged: its footer is not the one that was written" in t for t in not_used)
    assert kept(fresh, path, "id = 3")[0] == 1
    assert Dataset.for_path(fresh, path).refresh().problems == ()
    assert kept(fresh, path, "salary = 30")[0] == 1
    for session, served in ((guest, 6), (owner, 1)):
        for part in (Path(path) / "_skipstone" / "_parts").iterdir():
            part.write_bytes(part.read_bytes()[:-50])
        report = Dataset.for_path(session, path).refresh()
        assert len(report.problems) == (2 if session is guest else 0)
        assert kept(owner, path, "id = 3")[0] == 1
        assert kept(owner, path, "salary = 30")[0] == served


def test_nothing_is_built_without_a_key(spark, tmp_path):
    path = write_objects(spark, tmp_path / "d", "id int", ["(1)"])
    dataset = Dataset.for_path(user(spark), path)
    with pytest.raises(KeyUnavailableError, match=r"no key 'hr': set spark\.skipstone\.kms\.class"):
        dataset.create_indexes(MinMaxIndex("id", key="hr"))
    with pytest.raises(KeyUnavailableError, match="has no key 'hr'"):
        Dataset.for_path(user(spark, key_file(tmp_path / "k.json", "x")), path).create_indexes(
            MinMaxIndex("id", key="hr")
        )
    memory = user(spark)
    memory.conf.set("spark.skipstone.store", "memory")
    with pytest.raises(MetadataStoreError, match="does not encrypt"):
        Dataset.for_path(memory, path).create_indexes(MinMaxIndex("id", key="hr"))
    assert not (tmp_path / "d" / "_skipstone").exists()


def test_without_the_footer_key_everything_is_read(spark, tmp_path):
    path = write_objects(spark, tmp_path / "d", "id int", [f"({n})" for n in range(4)])
    file = key_file(tmp_path / "k.json", "footer", "other")
    owner = user(spark, file, footerKey="footer")
    Dataset.for_path(owner, path).create_indexes(MinMaxIndex("id"), ValueListIndex("id", key="other"))
    assert kept(owner, path, "id = 2")[0] == 1
    for guest in (user(spark), user(spark, key_file(tmp_path / "other.json", "other"))):
        objects, not_used = kept(guest, path, "id = 2")
        assert objects == 4
        assert any("no key 'footer'" in t for t in not_used)
        rows = Dataset.for_path(guest, path).describe().collect()
        assert [row.name for row in rows] == ["minmax(id)", "valuelist(id)"]
        assert all("no key 'footer'" in row.not_used for row in rows)
        with pytest.raises(KeyUnavailableError, match="no key 'footer'"):
            Dataset.for_path(guest, path).refresh()
    told = CliRunner().invoke(app, ["describe", path], catch_exceptions=False).output
    assert "minmax(id) is not used: no key 'footer'" in told
    Dataset.for_path(user(spark), path).drop_indexes()
    assert not Dataset.for_path(owner, path).is_indexed


def test_two_users_with_metadata_of_their_own(spark, tmp_path):
    """Over a dataset that both may only read; a superuser can write everywhere, so that nothing there may change."""
    path = write_objects(spark, tmp_path / "d", "id int, name string", [f"({n}, 'n{n}')" for n in range(4)])
    before = sorted(p.name for p in Path(path).rglob("*"))
    sessions = {}
    for name in ("anna", "boris"):
        (tmp_path / name).mkdir()
        sessions[name] = user(spark, key_file(tmp_path / f"{name}.json", name))
        sessions[name].conf.set("spark.skipstone.location", str(tmp_path / name))
    Path(path).chmod(0o555)
    Dataset.for_path(sessions["anna"], path).create_indexes(MinMaxIndex("id", key="anna"))
    Dataset.for_path(sessions["boris"], path).create_indexes(ValueListIndex("name", key="boris"))
    assert kept(sessions["anna"], path, "id = 2")[0] == 1
    assert kept(sessions["anna"], path, "name = 'n2'")[0] == 4
    assert kept(sessions["boris"], path, "name = 'n2'")[0] == 1
    assert kept(sessions["boris"], path, "id = 2")[0] == 4
    assert kept(user(spark), path, "id = 2 AND name = 'n2'")[0] == 4
    Dataset.for_path(sessions["anna"], path).drop_indexes()
    assert kept(sessions["boris"], path, "name = 'n2'")[0] == 1
    Path(path).chmod(0o755)
    assert sorted(p.name for p in Path(path).rglob("*")) == before


def test_names_of_protected_indexes_spell_no_option(spark, tmp_path):
    plain, keyed = (BloomFilterIndex("c", fpp=0.05, key=key) for key in (None, "k"))
    assert (plain.name, keyed.name) == ("bloomfilter(c, fpp=0.05)", "bloomfilter(c)")
    assert FeatureIndex({"rich": "salary > 10"}, key="k").name == "feature(…)"
    assert FeatureIndex({"rich": "salary > 10"}, key="k", name="mine").name == "mine"
    assert keyed.with_columns(("`odd c`",)).name == "bloomfilter(`odd c`)"
    path = write_objects(spark, tmp_path / "d", "c int", ["(1)"])
    dataset = Dataset.for_path(user(spark, key_file(tmp_path / "k.json", "k")), path)
    with pytest.raises(IndexExistsError, match="another name="):
        dataset.create_indexes(keyed, BloomFilterIndex("c", fpp=0.1, key="k"))


def test_pruning_by_a_protected_index_reads_what_partitioning_reads(spark, tmp_path):
    """Data laid out by a sensitive column: folders would tell its values, opaque names and a protected index do not."""
    rows = [f"('diagnosis-{n % 3}', {n})" for n in range(9)]
    source = spark.sql(f"SELECT * FROM VALUES {', '.join(rows)} AS t(diagnosis, id)")
    hive, opaque = tmp_path / "hive", tmp_path / "opaque"
    source.repartition(3, "id").write.partitionBy("diagnosis").parquet(str(hive))
    opaque.mkdir()
    for number_, part in enumerate(sorted(hive.rglob("*.parquet"))):
        spark.read.option("basePath", str(hive)).parquet(str(part)).coalesce(1).write.parquet(str(tmp_path / "one"))
        next((tmp_path / "one").glob("part-*.parquet")).rename(opaque / f"{number_:04d}.parquet")
        for left in (tmp_path / "one").iterdir():
            left.unlink()
        (tmp_path / "one").rmdir()
    file = key_file(tmp_path / "k.json", "medical")
    owner = user(spark, file)
    Dataset.for_path(owner, str(opaque)).create_indexes(ValueListIndex("diagnosis", key="medical"))
    order = {str(part): f"{n:04d}.parquet" for n, part in enumerate(sorted(hive.rglob("*.parquet")))}
    compared = 0
    for predicate in (
        "diagnosis = 'diagnosis-1'",
        "diagnosis IN ('diagnosis-0', 'diagnosis-2')",
        "diagnosis <> 'diagnosis-0'",
        "diagnosis LIKE '%-2'",
        "diagnosis = 'none'",
    ):
        with_folders = spark.read.parquet(str(hive)).where(predicate)
        partitioned = {order[_local(f)] for f in _read_files(with_folders)}
        skipped = {Path(_local(f)).name for f in _read_files(owner.read.parquet(str(opaque)).where(predicate))}
        assert skipped == partitioned, predicate
        assert len(partitioned) < len(order)
        compared += 1
        assert kept(owner, str(opaque), predicate)[0] == len(partitioned)
    assert compared == 5
    names = [str(p) for p in opaque.rglob("*")]
    assert not any("diagnosis" in name for name in names)
    assert b"diagnosis-" not in readable(opaque / "_skipstone")


def _read_files(df) -> set[str]:
    """Return the files that a query's physical plan reads."""
    scans = df._jdf.queryExecution().executedPlan().collectLeaves()
    scan = scans.apply(0)
    listed = scan.relation().location().listFiles(scan.partitionFilters(), scan.dataFilters())
    files = [
        listed.apply(d).files().apply(f) for d in range(listed.size()) for f in range(listed.apply(d).files().size())
    ]
    return {file.getPath().toString() for file in files}


def _local(path: str) -> str:
    return path.removeprefix("file:").replace("//", "/")


def test_the_manifest_names_keys_and_columns_and_no_more(shared):
    path, _ = shared
    manifest = json.loads(max((Path(path) / "_skipstone" / "_manifests").glob("*.json")).read_text())
    salary = next(r for r in manifest["indexes"] if r["name"] == "minmax(salary)")
    assert salary["key"] == "hr"
    assert salary["options"] == salary["functions"] == {}
