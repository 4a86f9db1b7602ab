"""What to do first, and what has changed since an earlier report."""

from __future__ import annotations

import json
import os
import shlex

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skipstone
from skipstone import BloomFilterIndex, Dataset, MinMaxIndex, ValueListIndex
from skipstone.errors import DatasetError
from skipstone.reporting.report.compare import compared, read_report
from skipstone.reporting.report.make import make_report
from tests.reporting.test_report import run

OBJECTS, ROWS = 8, 10


def write(folder, number):
    """Write an object: `a` in ranges, `c` the object's number, `d` everywhere, `e` the same number on every second."""
    folder.mkdir(parents=True, exist_ok=True)
    table = {
        "a": [number * ROWS + i for i in range(ROWS)],
        "c": [str(number)] * ROWS,
        "d": list(range(ROWS)),
        "e": [100 + number] * ROWS,
    }
    pq.write_table(pa.table(table), folder / f"{number}.parquet")
    os.utime(folder / f"{number}.parquet", (1_700_000_000, 1_700_000_000))


@pytest.fixture
def dataset(spark, tmp_path):
    for number in range(OBJECTS):
        write(tmp_path / "data", number)
    return Dataset.for_path(spark, str(tmp_path / "data"))


def steps(report):
    return [(step["action"], step["index"], step["objects"]) for step in report.as_dict()["do_first"]]


def test_steps_come_ranked_and_do_what_they_say(spark, dataset, tmp_path):
    workload = ["c = '3'", "c = '5'", "e = 104", "a BETWEEN 21 AND 23", "d = 3"]
    before = dataset.report(workload)
    assert steps(before) == [
        ("create", "hybrid(c)", 14),
        ("create", "hybrid(e)", 7),
        ("create", "minmax(a)", 7),
        ("layout", None, 7),
    ]
    for step in before.as_dict()["do_first"][:3]:
        assert step["command"].startswith(f"skipstone index {dataset.root} --")
        exec(step["python"], {**vars(skipstone), "dataset": dataset})
    layout = before.as_dict()["do_first"][3]
    assert (layout["columns"], layout["queries"], layout["command"]) == (["d"], [5], None)
    page = tmp_path / "before.html"
    before.write(page)

    dataset.create_indexes(ValueListIndex("c"), BloomFilterIndex("d"))
    write(tmp_path / "data", OBJECTS)
    dataset = Dataset.for_path(spark, dataset.root)
    after = dataset.report(workload, compare=page)
    assert steps(after)[0] == ("layout", None, 8)
    assert steps(after)[1] == ("refresh", None, 5)
    dropped = [step["index"] for step in after.as_dict()["do_first"] if step["action"] == "drop"]
    unneeded = [index["name"] for index in after.as_dict()["indexes"] if index["unneeded"]]
    assert sorted(dropped) == sorted(unneeded)
    assert "bloomfilter(d)" in unneeded
    assert len({"hybrid(c)", "valuelist(c)"} & set(unneeded)) == 1  # they prove the same: one of them is needed
    told = after.as_dict()["compared"]
    assert (told["before"]["objects_read"], told["after"]["objects_read"]) == (5 * 8, 4 * 2 + 9)
    assert told["indexes_added"] == ["bloomfilter(d)", "hybrid(c)", "hybrid(e)", "minmax(a)", "valuelist(c)"]
    assert [said for said in told["differences"] if "8 objects, now 9" in said]
    assert told["after"]["scanning_factor"] < told["before"]["scanning_factor"] == pytest.approx(1)

    for step in after.as_dict()["do_first"]:
        if step["action"] in ("refresh", "drop"):
            exec(step["python"], {"dataset": dataset})
            assert shlex.split(step["command"])[:3] == ["skipstone", step["action"], dataset.root]
    last = dataset.report(workload, compare=after)
    assert {action for action, *_ in steps(last)} == {"layout"}
    assert last.as_dict()["workload"]["objects"]["skipped"] == 4 * 8
    assert "objects read before" in str(last)
    assert "&#x27;d&#x27;" in last._repr_html_()


def test_without_measuring_all_that_is_read_counts(dataset):
    dataset.create_indexes(MinMaxIndex("a"))
    report = dataset.report(["a < 10 AND c = '0'", "length(c) = 1"], measure=False)
    assert steps(report) == [("create", "hybrid(c)", 1)]
    assert report.as_dict()["queries"][0]["scans"][0]["remedies"][0].startswith("MinMaxIndex('c')")


def test_what_keeps_an_index_from_being_used_is_a_step(spark, dataset):
    dataset.create_indexes(MinMaxIndex("a"))
    other = spark.read.schema("a INT, c STRING, d BIGINT, e BIGINT").parquet(dataset.root)
    step = make_report(dataset, [other.where("a < 10")], measure=False).as_dict()["do_first"][0]
    assert (step["action"], step["why"]) == ("mend", "minmax(a): a is int here, was bigint when indexed")
    assert step["what"].startswith("Read the column with the type of then")


def test_only_reports_are_compared_with(dataset, tmp_path):
    report = dataset.report([], measure=False)
    other = tmp_path / "other.html"
    for text in ("", "<html></html>", "[]", '{"format": 1}', '{"format": "1", "queries": []}'):
        other.write_text(text)
        with pytest.raises(DatasetError, match="report"):
            read_report(other)
    with pytest.raises(DatasetError, match="cannot be read"):
        dataset.report([], compare=tmp_path / "nowhere.html")
    with pytest.raises(DatasetError, match="version 2"):
        read_report(report.as_dict() | {"format": 2})
    with pytest.raises(DatasetError, match="damaged"):
        compared({"format": 1, "queries": [{}]}, report.as_dict())
    other.write_text(json.dumps(report.as_dict()))
    assert read_report(other) == report.as_dict()
    report.write(other)
    assert read_report(str(other)) == report.as_dict()


def test_the_command_line_compares(dataset, tmp_path):
    folder = dataset.root.removeprefix("file:")
    workload = tmp_path / "queries.sql"
    workload.write_text("c = '3'")
    page = tmp_path / "page.html"
    run(folder, "-w", workload, "-o", page, "--plan-only")
    dataset.create_indexes(ValueListIndex("c"))
    run(folder, "-w", workload, "-o", page, "--plan-only", "--compare", page)
    told = read_report(page)["compared"]
    assert (told["before"]["objects_read"], told["after"]["objects_read"]) == (OBJECTS, 1)
