"""One table of reasons, each with its remedy: what planning says is in it, and so is what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skipstone import Dataset, GeoBoxIndex, HybridIndex, MinMaxIndex, ValueListIndex, last_query
from skipstone.engines.spark.reasons import REASONS, reason_of
from skipstone.indexing.profiles import changing_partitions, column_difference, profile_difference
from skipstone.indexing.records import ColumnRecord, ReadProfile
from skipstone.querying.sentences import NO_METADATA, NO_PREDICATE
from tests.support import conf, write_objects

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.name)
def test_each_example_is_of_its_own_kind(reason):
    assert reason_of(reason.example) is reason
    assert reason.remedy
    assert not reason.remedy.endswith(".")


def test_a_sentence_of_no_kind():
    assert reason_of("the moon is full") is None


def test_what_reading_gives_is_known():
    parquet, csv = ReadProfile("parquet"), ReadProfile("csv")
    here = {"a": ColumnRecord("a", "bigint")}
    sentences = {
        "another format": profile_difference(parquet, csv),
        "another option": profile_difference(ReadProfile("csv", {"sep": ","}), ReadProfile("csv", {"sep": ";"})),
        "another setting": profile_difference(ReadProfile("csv", {}, {"a b": "1"}), csv),
        "another schema": profile_difference(ReadProfile("csv", schema="x"), csv),
        "another column": column_difference([ColumnRecord("a", "int")], here),
        "partition values": changing_partitions(parquet, [ColumnRecord("p", "timestamp", partition=True)]),
    }
    for kind, sentence in sentences.items():
        assert reason_of(f"minmax(a): {sentence}").name == kind
    moved = column_difference([ColumnRecord("a", "bigint", partition=True)], here)
    declared = column_difference([ColumnRecord("a", "bigint", reads_as="7")], here)
    assert reason_of(f"i: {moved}").name == reason_of(f"i: {declared}").name == "another column"
    assert reason_of(NO_PREDICATE).name == "no predicate"
    assert reason_of(NO_METADATA).name == "no metadata"


def test_what_the_bridge_says_is_known():
    bridge = ROOT / "src" / "skipstone" / "engines" / "spark" / "bridge"
    text = "".join(file.read_text(encoding="utf-8") for file in bridge.glob("*.scala"))
    notes = re.findall(r'entry\.(?:notes = entry\.notes :\+ |keepAll\()s?"([^"]+)"', text)
    assert len(notes) >= 4
    for note in [
        *notes,
        *re.findall(r'(?:IllegalState|Timeout)Exception\(s?"(planner (?:is busy|gave no answer within)[^"]*)"', text),
    ]:
        assert reason_of(re.sub(r"\$\{.*?\}|\$\w+", "x", note)) is not None, note


def test_the_page_has_the_table():
    page = (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \| `(.+?)` \| (.+?) \| (.*) \|$", page, re.MULTILINE)
    told = [(name, example.replace("\\|", "|"), remedy) for name, example, remedy, _ in rows]
    assert told == [(reason.name, reason.example, reason.remedy) for reason in REASONS]
    for (*_, lines), reason in zip(rows, REASONS, strict=True):
        assert lines == "<br>".join(f"`{line}`" for line in (reason.python, reason.command.format(path="PATH")) if line)


@pytest.fixture(scope="module")
def places(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reasons") / "places"
    rows = [f"({n}, {n}.5, {n + 10}.5, 'n{n}')" for n in range(4)]
    path = write_objects(spark, folder, "id INT, lat DOUBLE, lng DOUBLE, name STRING", rows)
    dataset = Dataset.for_path(spark, path)
    dataset.create_indexes(GeoBoxIndex("lat", "lng"), MinMaxIndex("id"), HybridIndex("name"), ValueListIndex("id"))
    return dataset


def test_half_a_place(places):
    said = str(places.explain("lat > 2"))
    assert "no index serves lat > 2.0; geobox(lat, lng) needs ranges on both columns: add one on lng; MinMax" in said
    assert "both columns" not in str(places.explain("lat > 2 AND lng > 11"))
    assert "both columns" not in str(places.explain("id > 2"))


def test_the_clause_of_a_hybrid_index_is_written_once(places):
    explanation = places.explain("name = 'n2'")
    clause = explanation.scans[0].clause
    assert clause.count("hybrid(name)[name = 'n2']") == 1
    assert explanation.scans[0].objects.kept == 1
    (line,) = [line for line in explanation.text.splitlines() if "⇐" in line and "name = 'n2'" in line]
    assert line.count("hybrid(name)") == 1
    either = places.explain("name = 'n2' OR id = 1").scans[0].clause
    assert either == "hybrid(name)[name = 'n2'] OR (minmax(id)[id = 1] AND valuelist(id)[id = 1])"


@pytest.mark.parametrize("store", ["parquet", "memory"])
def test_clauses_that_skipped_nothing_are_marked(spark, places, store):
    with conf(spark, {"spark.skipstone.store": store}):
        if store == "memory":
            places.create_indexes(MinMaxIndex("id"), HybridIndex("name"))
        df = places.dataframe.where("id >= 0 AND name = 'n2'")
        assert df.count() == 1
        (scan,) = last_query(spark)
        assert "minmax(id)[id >= 0] (skips nothing)" in scan.clause
        assert "hybrid(name)[name = 'n2']" in scan.clause
        assert "[name = 'n2'] (skips nothing)" not in scan.clause
        told = str(places.explain(df))
        assert re.search(r"id >= 0   ⇐ .*minmax\(id\)\[id >= 0\] \(skips nothing\)", told)
        assert re.search(r"name = 'n2'   ⇐ hybrid\(name\)\[name = 'n2'\]$", told, re.MULTILINE)
        alone = places.explain("id >= 0 OR name = 'n2'").scans[0]
        assert alone.objects.skipped == 0
        assert alone.clause.endswith(" (skips nothing)")


def test_a_remedy_stands_behind_what_does_not_say_it_itself(spark, places):
    other = spark.read.schema("id BIGINT, lat DOUBLE, lng DOUBLE, name STRING").parquet(places.root)
    said = str(places.explain(other.where("id = 3")))
    assert "minmax(id): id is bigint here, was int when indexed; read the column with the type of then" in said
    assert f"- {NO_PREDICATE}; put the condition below a LIMIT" in str(places.explain(other))
