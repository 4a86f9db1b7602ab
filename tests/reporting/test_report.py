"""The report's data: what is said of a dataset, its indexes and a workload, and what each index contributes."""

from __future__ import annotations

import base64
import json
import os
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from skipstone import BloomFilterIndex, Dataset, GapListIndex, MinMaxIndex, ValueListIndex
from skipstone.cli.main import app
from skipstone.errors import DatasetError, SoundnessError, WorkloadError
from skipstone.indexing.describe import DESCRIBE_SCHEMA, describe_rows
from skipstone.reporting.report.make import make_report
from skipstone.reporting.report.workload import Statement
from tests.stores.keys import key_bytes, key_file, kms_settings
from tests.support import conf

OBJECTS = 8
ROWS = 10


def write(folder, number, rows=ROWS):
    """Write an object: `a` is laid out in ranges, `b` alternates, `c` is the object's number, `d` is everywhere."""
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {
            "a": [number * ROWS + i for i in range(rows)],
            "b": ["x" if number % 2 else "y"] * rows,
            "c": [str(number)] * rows,
            "d": list(range(rows)),
        }
    )
    pq.write_table(table, folder / f"{number}.parquet")


def old(folder):
    """Let objects look as if they were written a while ago, so that indexing need not wait."""
    for file in folder.rglob("*.parquet"):
        os.utime(file, (1_700_000_000, 1_700_000_000))


@pytest.fixture(scope="module")
def dataset(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "data"
    for number in range(OBJECTS):
        write(folder, number)
    old(folder)
    made = Dataset.for_path(spark, str(folder))
    made.create_indexes(MinMaxIndex("a"), ValueListIndex("b"), ValueListIndex("c"), BloomFilterIndex("c"))
    return made


def contributed(query, scan=0):
    return {one["index"]: (one["alone"], one["only"]) for one in query["scans"][scan]["contributions"]}


def test_what_each_index_contributes(spark, dataset):
    before = dict(spark.conf.getAll)
    report = make_report(
        dataset,
        [
            "a < 40 AND b = 'x'",
            "a < 10 OR c = '3'",
            "c = '3'",
            "d = 3",
            "a < 10 AND d = 3",
            "SELECT l.a FROM dataset l JOIN dataset r ON l.d = r.d WHERE l.a < 10 AND r.b = 'x'",
        ],
        measure=False,
    ).as_dict()
    both, either, twice, none, guarded, joined = report["queries"]
    assert both["objects"]["skipped"] == 6
    assert contributed(both) == {"minmax(a)": (4, 2), "valuelist(b)": (4, 2)}
    assert either["objects"]["skipped"] == 6
    assert contributed(either) == {"minmax(a)": (0, 6), "valuelist(c)": (0, 0), "bloomfilter(c)": (0, 0)}
    assert twice["objects"]["skipped"] == 7
    assert contributed(twice) == {"valuelist(c)": (7, 0), "bloomfilter(c)": (7, 0)}
    assert (none["objects"]["kept"], none["scans"][0]["contributions"]) == (OBJECTS, [])
    assert none["scans"][0]["not_used"]
    assert contributed(guarded) == {"minmax(a)": (7, 7)}
    assert [contributed(joined, scan) for scan in (0, 1)] == [{"minmax(a)": (7, 7)}, {"valuelist(b)": (4, 4)}]
    totals = {index["name"]: (index["queries"], index["alone"], index["only"]) for index in report["indexes"]}
    assert totals == {
        "minmax(a)": (4, 18, 22),
        "valuelist(b)": (2, 8, 6),
        "valuelist(c)": (2, 7, 0),
        "bloomfilter(c)": (2, 7, 0),
    }
    assert report["workload"]["objects"]["skipped"] == sum(q["objects"]["skipped"] for q in report["queries"]) == 37
    assert dict(spark.conf.getAll) == before
    assert dataset.dataframe.where("c = '3'").count() == ROWS


def test_what_is_said_of_the_dataset_and_its_indexes(dataset):
    report = make_report(dataset, []).as_dict()
    about = report["dataset"]
    assert (about["objects"], about["rows"], about["format"]) == (OBJECTS, OBJECTS * ROWS, "parquet")
    folder = dataset.root.removeprefix("file:")
    assert about["bytes"] == sum(os.stat(f"{folder}/{n}.parquet").st_size for n in range(OBJECTS))
    assert about["problem"] is None
    names = [column.split()[0] for column in DESCRIBE_SCHEMA.split(", ")]
    described = {row[0]: dict(zip(names, row, strict=True)) for row in describe_rows(dataset._target())}
    assert len(report["indexes"]) == len(described) == 4
    for index in report["indexes"]:
        row = described[index["name"]]
        for name in ("type", "columns", "covered", "stale", "missing", "bytes", "created", "refreshed", "not_used"):
            assert index[name] == row[name], name
        assert index["share"] == row["bytes"] / about["bytes"]
    assert report["workload"]["queries"] == 0
    assert json.loads(json.dumps(report)) == report


def test_the_indicators_are_those_of_the_query(dataset):
    df = dataset.dataframe.where("b = 'x' AND d = 3")
    report = make_report(dataset, [df, "c = 'nobody'", Statement(3, "d >= 0", "all of it")]).as_dict()
    one, nobody, everything = report["queries"]
    found = one["indicators"]
    assert found == dataset.indicators(df).as_dict()
    assert (found["objects"], found["kept_objects"], found["relevant_objects"]) == (OBJECTS, 4, 4)
    assert (found["selectivity"], found["layout_factor"]) == (0.05, 0.1)
    assert (found["metadata_factor"], found["scanning_factor"]) == (1, 0.5)
    assert one["sql"] is None
    assert one["title"] == "Query 1"
    assert one["verdict"].startswith("The layout is the limit: the 4 rows")
    assert nobody["indicators"]["selectivity"] is None
    assert nobody["verdict"].startswith("No row satisfies the condition")
    assert everything["title"] == "all of it"
    assert everything["verdict"].startswith("Nothing worth improving: 80 rows are read for the 80")
    work = report["workload"]["indicators"]
    assert (work["queries"], work["left_out"]) == (2, 1)
    assert work["geometric_means"]["selectivity"] == pytest.approx((0.05 * 1) ** 0.5)


def test_a_query_that_cannot_be_measured_leaves_the_others(spark, dataset):
    spark.udf.register("fails", lambda value: 1 // 0, "int")
    report = make_report(dataset, ["a < 10", "fails(d) = 1", "SELECT 1"]).as_dict()
    one, failing, elsewhere = report["queries"]
    assert one["indicators"]["relevant_objects"] == 1
    assert failing["indicators"] is None
    assert failing["verdict"].startswith("Not measured: ")
    assert elsewhere["indicators"] is None
    assert (report["workload"]["measured"], report["workload"]["indicators"]["queries"]) == (1, 1)


def test_lost_rows_are_an_error_and_not_a_report(dataset, monkeypatch):
    def lost(queries):
        raise SoundnessError("ROWS ARE LOST")

    monkeypatch.setattr(dataset, "indicators", lost)
    with pytest.raises(SoundnessError):
        make_report(dataset, ["a < 10"])


def test_changed_and_new_objects_and_partitions(spark, tmp_path):
    folder = tmp_path / "data"
    for number in range(OBJECTS):
        write(folder / f"p={number % 2}", number)
    old(folder)
    made = Dataset.for_path(spark, str(folder))
    made.create_indexes(MinMaxIndex("a"), ValueListIndex("c"))
    write(folder / "p=0", 4, rows=3)
    write(folder / "p=1", 9)
    made = Dataset.for_path(spark, str(folder))
    report = make_report(made, ["a < 10", "a < 10 AND p = 0", "a < 10 AND c = '0' AND p = 0"], measure=False).as_dict()
    assert report["dataset"]["rows"] is None
    assert {(i["covered"], i["stale"], i["missing"]) for i in report["indexes"]} == {(OBJECTS - 1, 1, 1)}
    all_of_it, pruned, both = report["queries"]
    assert all_of_it["objects"] == {"total": 9, "kept": 3, "skipped": 6, "unindexed": 1, "stale": 1}
    assert contributed(all_of_it) == {"minmax(a)": (6, 6)}
    assert pruned["objects"] == {"total": 4, "kept": 2, "skipped": 2, "unindexed": 0, "stale": 1}
    assert contributed(pruned) == {"minmax(a)": (2, 2)}
    assert contributed(both) == {"minmax(a)": (2, 0), "valuelist(c)": (2, 0)}


def test_the_store_that_the_session_chooses_is_asked(spark, tmp_path):
    folder = tmp_path / "data"
    for number in range(3):
        write(folder, number)
    old(folder)
    with conf(spark, {"spark.skipstone.store": "memory"}):
        made = Dataset.for_path(spark, str(folder))
        made.create_indexes(MinMaxIndex("a"), ValueListIndex("b"))
        report = make_report(made, ["a < 10 AND b = 'y'"], measure=False).as_dict()
    assert report["conditions"]["store"] == "memory"
    assert contributed(report["queries"][0]) == {"minmax(a)": (2, 1), "valuelist(b)": (1, 0)}


def test_reports_of_several_threads_do_not_mix(spark, dataset):
    spark.catalog.dropTempView("dataset")  # whatever a command in this session has left
    found = {}

    def make(number, query):
        found[number] = make_report(dataset, [query] * 3, measure=False).as_dict()["queries"]

    queries = ["a < 40 AND b = 'x'", "a < 10 AND b = 'y'"]
    threads = [threading.Thread(target=make, args=pair) for pair in enumerate(queries)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not spark.catalog.tableExists("dataset")
    assert {str(contributed(query)) for query in found[0]} == {"{'minmax(a)': (4, 2), 'valuelist(b)': (4, 2)}"}
    assert {str(contributed(query)) for query in found[1]} == {"{'minmax(a)': (7, 3), 'valuelist(b)': (4, 0)}"}


def test_a_protected_index_keeps_its_options_to_itself(spark, tmp_path):
    folder = tmp_path / "data"
    for number in range(3):
        write(folder, number)
    old(folder)
    keys = key_file(tmp_path / "keys", "hr")
    holder, other = spark.newSession(), spark.newSession()
    for name, value in kms_settings(keys).items():
        holder.conf.set(f"spark.skipstone.kms.{name}", value)
    made = Dataset.for_path(holder, str(folder))
    made.create_indexes(GapListIndex("a", workload=[(12345, 54321)], key="hr", name="gaps"), ValueListIndex("b"))
    with_key = make_report(made, ["a < 10"], measure=False)
    assert "12345" in describe_rows(made._target())[0][3]
    index = with_key.as_dict()["indexes"][0]
    assert (index["name"], index["key"], index["options"]) == ("gaps", "hr", {})
    assert contributed(with_key.as_dict()["queries"][0]) == {"gaps": (2, 2)}
    without = make_report(Dataset.for_path(other, str(folder)), ["a < 10", "b = 'x'"], measure=False)
    assert "key" in without.as_dict()["indexes"][0]["not_used"]
    assert [query["objects"]["kept"] for query in without.as_dict()["queries"]] == [3, 1]
    for page in (with_key.html(), without.html()):
        assert "12345" not in page
        assert base64.b64encode(key_bytes("hr")).decode() not in page
        assert "protected by the key" in page


def test_damaged_metadata_is_said_and_the_report_goes_on(spark, tmp_path):
    folder = tmp_path / "data"
    write(folder, 0)
    old(folder)
    made = Dataset.for_path(spark, str(folder))
    made.create_indexes(MinMaxIndex("a"))
    for file in (folder / "_skipstone").rglob("*"):
        if file.is_file():
            file.write_bytes(b"not what it was")
    with conf(spark, {"spark.skipstone.cacheBytes": "123456789"}):  # another store, which remembers nothing
        report = make_report(Dataset.for_path(spark, str(folder)), ["a = 3"], measure=False)
    data = report.as_dict()
    assert data["dataset"]["problem"]
    assert data["queries"][0]["objects"]["kept"] == 1
    assert data["queries"][0]["scans"][0]["not_used"]
    assert "The metadata cannot be read" in report.html()


def test_without_an_index_and_without_a_scan(spark, tmp_path):
    folder = tmp_path / "data"
    write(folder, 0)
    made = Dataset.for_path(spark, str(folder))
    report = make_report(made, ["a = 1", "SELECT 1"], measure=False)
    data = report.as_dict()
    assert data["indexes"] == []
    assert data["queries"][0]["scans"][0]["not_used"] == ["no metadata: the dataset is not indexed"]
    assert data["queries"][1]["scans"] == []
    assert "no file scan" in data["queries"][1]["verdict"]
    page = report.html()
    assert "The dataset has no index" in page
    assert "no file scan" in page


def test_a_page_is_written_whole_or_not_at_all(dataset, tmp_path):
    report = make_report(dataset, [])
    page = tmp_path / "report.html"
    page.write_text("before")
    report.write(page)
    assert page.read_text(encoding="utf-8") == report.html()
    assert page.stat().st_mode & 0o777 == 0o666 & ~_umask()
    with pytest.raises(DatasetError, match="cannot be written to"):
        report.write(tmp_path / "nowhere" / "report.html")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["report", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def test_the_command_line(dataset, tmp_path):
    folder = dataset.root.removeprefix("file:")
    workload = tmp_path / "queries.sql"
    workload.write_text("-- name: the third\nSELECT max(d) FROM dataset WHERE c = '3';\na < 10", encoding="utf-8")
    page = tmp_path / "page.html"
    told = run(folder, "--workload", workload, "-o", page, "--plan-only").stdout
    assert told.startswith(f"{page}: 4 indexes, 2 queries; skipped 14 of 16 objects, ")
    assert told.count("\n") == 1
    assert "the third" in page.read_text(encoding="utf-8")
    data = json.loads(run(folder, "-w", workload, "--output", "json", "--plan-only").stdout)
    assert [query["title"] for query in data["queries"]] == ["the third", "a < 10"]
    assert [query["objects"]["kept"] for query in data["queries"]] == [1, 1]
    both = tmp_path / "both.html"
    assert json.loads(run(folder, "--output", "json", "--out", both).stdout)["workload"]["queries"] == 0
    assert both.exists()


@pytest.mark.parametrize(
    ("workload", "options", "code", "said"),
    [
        ("a = 1; a >", ["-o", "{}/p.html"], 1, "statement 2 (a >)"),
        ("a = 1; DROP TABLE t", ["-o", "{}/p.html"], 1, "statement 2 (DROP TABLE t) is not a query"),
        ("", ["-o", "{}/p.html"], 2, "no statement"),
        ("a = 1", [], 2, "-o report.html"),
        ("a = 1", ["-o", "{}/nowhere/p.html"], 1, "cannot be written to"),
        (None, ["-o", "{}/p.html"], 2, "cannot be read: No such file"),
        (b"\xff\xfe", ["-o", "{}/p.html"], 2, "is not UTF-8 text"),
    ],
)
def test_errors_are_one_line_and_nothing_is_written(dataset, tmp_path, workload, options, code, said):
    file = tmp_path / "queries.sql"
    if workload is not None:
        file.write_bytes(workload if isinstance(workload, bytes) else workload.encode())
    options = [option.format(tmp_path) for option in options]
    folder = dataset.root.removeprefix("file:")
    result = run(folder, "--workload", file, "--plan-only", *options, code=code)
    assert result.stdout == ""
    assert result.stderr.startswith("skipstone: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} <= {"queries.sql"}


def test_a_query_that_is_none_is_named(dataset):
    with pytest.raises(WorkloadError, match="statement 2"):
        make_report(dataset, [dataset.dataframe, "SELECT nothing FROM dataset"])
