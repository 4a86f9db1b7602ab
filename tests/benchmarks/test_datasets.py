"""The generated logs are what docs/datasets.md says: seeded, resumable, and of the structure that is written down."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from benchmarks.datasets import database_logs, storage_logs, writing
from benchmarks.datasets.database_accounts import HEIGHT, Shape, generated_slices, kind_of, make_slice
from benchmarks.datasets.user_agents import browsers, robots
from benchmarks.experiments.workloads import agent_name


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def distinct(table, column):
    return pc.count_distinct(table[column]).as_py()


@pytest.fixture(scope="module")
def day(tmp_path_factory):
    """The first day of a small database-logs dataset: number of slice to table."""
    folder = tmp_path_factory.mktemp("day")
    shape = Shape(64)
    tables = []
    for number in range(shape.slices):
        database_logs.write(shape, number, folder / f"{number}")
        tables.append(pq.read_table(folder / f"{number}"))
    return shape, tables


# Writing -----------------------------------------------------------------------------------------------------------


def write_number(log, number, path):
    with Path(log).open("a") as file:
        file.write(f"{number}\n")
    path.write_text("x" * (number + 1))


def name_in_folder(number):
    return f"hour={number // 2}/part-{number}.parquet"


def test_an_interrupted_dataset_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setenv("SKIPSTONE_BENCH_DATA", str(tmp_path))
    log = tmp_path / "log"
    root = tmp_path / "some"
    (root / "hour=0").mkdir(parents=True)
    (root / "hour=0" / "part-1.parquet").write_text("yy")  # written before the interruption
    (root / "hour=1").mkdir()
    (root / "hour=1" / "_0000002").write_text("half")  # interrupted
    generated = writing.generate("some", 5, 50, name_in_folder, partial(write_number, log))
    assert sorted(log.read_text().split()) == ["0", "2", "3", "4"]
    assert (generated.objects, generated.rows, generated.bytes) == (5, 50, 1 + 2 + 3 + 4 + 5)
    assert all(path.stat().st_mtime == writing.WRITTEN for path in root.rglob("part-[0234].parquet"))
    log.unlink()
    assert writing.generate("some", 5, 50, name_in_folder, partial(write_number, log)) == generated
    assert not log.exists()  # a complete dataset is not written again
    assert json.loads((tmp_path / "some.json").read_text())["bytes"] == 15


@pytest.mark.parametrize(
    "write", [partial(database_logs.write, Shape(64)), partial(storage_logs.write, storage_logs.Shape(96))]
)
def test_an_object_depends_on_its_number_alone(write, tmp_path):
    for name, number in (("a", 3), ("b", 4), ("c", 3)):
        write(number, tmp_path / name)
    assert digest(tmp_path / "a") == digest(tmp_path / "c")
    assert digest(tmp_path / "a") != digest(tmp_path / "b")


# Database logs -----------------------------------------------------------------------------------------------------


def test_database_logs_have_the_papers_columns_and_a_folder_for_each_day(day):
    shape, tables = day
    assert all(table.num_columns + 1 == database_logs.COLUMNS == 62 for table in tables)  # and the folder's
    assert all(table.num_rows == shape.rows == HEIGHT // 100 for table in tables)
    names = {shape.name(number) for number in range(shape.objects)}
    assert len(names) == shape.objects
    assert len({name.partition("/")[0] for name in names}) == shape.days
    days = {str(value)[:10] for table in tables for value in pc.min_max(table["ts"]).as_py().values()}
    assert days == {"2024-01-01"}


def test_the_full_dataset_is_forty_days_of_a_hundred_objects():
    shape = Shape(4_000)
    kinds = [kind_of(shape, number) for number in range(shape.slices)]
    assert (shape.days, shape.slices) == (40, 100)
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"named": 88, "large": 9, "generated": 3}


def test_objects_of_a_day_are_laid_out_by_account(day):
    _, tables = day
    ranges = [pc.min_max(table["account_name"]).as_py() for table in tables]
    shared = [a["max"] == b["min"] for a, b in pairwise(ranges)]
    assert all(a["max"] <= b["min"] for a, b in pairwise(ranges))
    assert sum(shared) == 2  # a large account fills three objects


def test_names_are_long_hierarchical_and_related_to_the_account(day):
    _, tables = day
    for table in tables:
        own = table.filter(pc.invert(pc.starts_with(table["db_name"], "_")))
        length = pc.utf8_length(own["db_name"])
        assert pc.mean(length).as_py() > 2 * 15
        parts = [name.split("/") for name in own["db_name"].slice(0, 500).to_pylist()]
        assert all(len(part) == 3 for part in parts)
        assert [part[1] for part in parts] == own["account_name"].slice(0, 500).to_pylist()
        assert pc.mean(pc.utf8_length(table["http_request"])).as_py() > 2 * 20
        requests = table["http_request"].slice(0, 500).to_pylist()
        databases = table["db_name"].slice(0, 500).to_pylist()
        assert all(f" /{db}/" in request for request, db in zip(requests, databases, strict=True))


def test_distinct_values_are_skewed_so_that_hybrid_needs_both_forms(day):
    shape, tables = day
    counts = {number: distinct(table, "db_name") for number, table in enumerate(tables)}
    generated = [number for number in counts if kind_of(shape, number) == "generated"]
    assert generated
    assert all(counts[number] > shape.threshold for number in generated)
    assert all(counts[number] < shape.threshold / 2 for number in counts if number not in generated)
    wanted = {number: make_slice(shape, number).active[1] for number in counts}
    assert all(count <= wanted[number] + len(database_logs.SYSTEM) for number, count in counts.items())
    named = [number for number in counts if number not in generated]
    assert sum(counts[n] for n in named) == pytest.approx(sum(wanted[n] for n in named), rel=0.1)
    assert counts[generated[0]] == pytest.approx(wanted[generated[0]], rel=0.02)


def test_a_few_names_occur_in_many_objects_and_most_in_few(day):
    _, tables = day
    seen = [set(pc.unique(table["db_name"]).to_pylist()) for table in tables]
    everywhere = sum("_replicator/scheduled/transient-jobs" in names for names in seen)
    assert 0.1 < everywhere / len(tables) < 0.7
    rest = set().union(*seen) - {name for name, _ in database_logs.SYSTEM}
    in_few = sum(sum(name in names for names in seen) <= 3 for name in rest)
    assert in_few == len(rest)


def test_tall_objects_have_the_papers_rows_and_distinct_values(tmp_path):
    shape = Shape(4_000, share=1)
    database_logs._write_tall(shape, "named", 4, 1, tmp_path / "named")
    table = pq.read_table(tmp_path / "named", columns=["db_name", "account_name"])
    number = range(generated_slices(shape)[0])[generated_slices(shape)[0] // 4]
    accounts, databases = make_slice(shape, number).active
    assert table.num_rows == HEIGHT
    assert distinct(table, "account_name") == pytest.approx(accounts, rel=0.02)
    assert distinct(table, "db_name") == pytest.approx(databases, rel=0.02)
    of_named = [make_slice(shape, n).active[1] for n in range(100) if kind_of(shape, n) == "named"]
    assert np.mean(of_named) == pytest.approx(700, rel=0.25)


# Storage logs ------------------------------------------------------------------------------------------------------


def test_storage_logs_have_the_papers_columns_and_a_folder_for_each_hour(tmp_path):
    full = storage_logs.Shape(46_000)
    assert full.per_hour == 24
    assert full.name(24) == "hour=2024-01-01-01/part-00000.parquet"
    storage_logs.write(storage_logs.Shape(96), 30, tmp_path / "object")
    table = pq.read_table(tmp_path / "object")
    assert table.num_columns + 1 == storage_logs.COLUMNS == 99
    assert {str(value)[:13] for value in pc.min_max(table["ts"]).as_py().values()} == {"2024-01-02 06"}


def test_user_agents_are_seen_ones_and_robots_are_rare(tmp_path):
    shape = storage_logs.Shape(96)
    names, rows, of_robots = set(), 0, 0
    for number in range(8):
        storage_logs.write(shape, number, tmp_path / "object")
        agents = pq.read_table(tmp_path / "object", columns=["user_agent"])["user_agent"]
        names |= {agent_name(agent) for agent in pc.unique(agents).to_pylist()}
        rows += len(agents)
        of_robots += pc.sum(pc.is_in(agents, value_set=storage_logs._user_agents().slice(96 + len(browsers())))).as_py()
    assert len(browsers()) > 500
    assert len(robots()) > 1_000
    assert len({agent_name(robot) for robot in robots()}) > 500
    assert 0 < of_robots / rows < 0.02
    assert {"Boto3", "aws-sdk-java", "Chrome"} < names
