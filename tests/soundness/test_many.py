"""Several processes add to one record of the long campaign, and none tries what another has tried or is trying."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.soundness.campaign import Counts
from tests.soundness.many_record import BEGIN, END, FIRST_SEED, Record, pairs, table, write_page

ROOT = Path(__file__).parents[2]
CHILD = """
import sys
from pathlib import Path
from tests.soundness.campaign import Counts
from tests.soundness.many_record import Record
record = Record(Path(sys.argv[1]))
for _ in range(20):
    with record.claim() as seed:
        record.add(seed, "columns", Counts(pairs=10), [], seconds=0.5, commit="abc")
        print(seed)
"""


@pytest.fixture
def record(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return Record(tmp_path / "campaign.json")


def added(record, seed, failures=()):
    counts = Counts(pairs=100, objects=1_000, skipped=400, skipped_by_values=Counter(minmax=7), alone=Counter(minmax=9))
    return record.add(seed, "columns", counts, failures, seconds=30.0, commit="abc, Spark 4.3.0")


def test_a_seed_is_given_once(record):
    with record.claim() as first, record.claim() as second:
        assert (first, second) == (FIRST_SEED, FIRST_SEED + 1)
        added(record, second)
        assert record.read()["next"] == FIRST_SEED
        with record.claim() as third:
            assert third == FIRST_SEED + 2
        added(record, first)
    assert (record.read()["next"], record.read()["ahead"]) == (FIRST_SEED + 2, [])
    with record.claim() as seed:
        assert seed == FIRST_SEED + 2  # the third was broken off


def test_processes_at_once_lose_nothing(record, tmp_path):
    environment = {"TMPDIR": str(tmp_path), "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "PATH": ""}
    command = [sys.executable, "-c", CHILD, str(record.file)]
    running = [subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in "abc"]
    seeds = [int(line) for process in running for line in process.communicate()[0].split()]
    assert [process.returncode for process in running] == [0, 0, 0]
    assert sorted(seeds) == list(range(FIRST_SEED, FIRST_SEED + 60))
    told = record.read()
    assert (told["next"], told["ahead"], pairs(told)) == (FIRST_SEED + 60, [], 600)
    assert told["kinds"]["columns"]["seconds"] == 30


def test_counts_of_before_seconds_were_recorded_stay(record):
    counts = dict.fromkeys(("datasets", "pairs", "refused", "not_comparable", "executed", "objects", "skipped"), 4)
    before = {"next": FIRST_SEED + 1, "kinds": {"columns": {**counts, "relevant": 4}}, "commits": {}, "failures": []}
    record.file.write_text(json.dumps(before))
    told = added(record, FIRST_SEED + 1, ["lost", "lost", "lost", "lost"])
    assert pairs(told) == 104
    assert len(told["failures"]) == 3
    assert told["failures"][0] == f"seed {FIRST_SEED + 1}, abc, Spark 4.3.0: lost"
    text = table(told)
    assert "| columns | 5 | 104 | 4 | 1,004 | 4 | 404 |" in text
    assert "100 of them took 0.0 hours of processes, 200 a minute. By commit: abc, Spark 4.3.0 100." in text


def test_the_table_goes_between_its_marks(record, tmp_path):
    told, page = added(record, FIRST_SEED), tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_page(told, page)
    write_page(told, page)
    assert page.read_text() == f"before\n{BEGIN}\n\n{table(told)}\n\n{END}\nafter\n"
    page.write_text("nothing\n")
    with pytest.raises(ValueError, match="no place for the table"):
        write_page(told, page)


def test_the_page_has_a_place_for_the_table_and_the_record_no_failure(tmp_path):
    told = Record(ROOT / "docs" / "soundness-campaign.json").read()
    page = tmp_path / "soundness.md"
    page.write_text((ROOT / "docs" / "soundness.md").read_text(encoding="utf-8"), encoding="utf-8")
    write_page(told, page)
    assert "**0 failures.**" in page.read_text(encoding="utf-8")
