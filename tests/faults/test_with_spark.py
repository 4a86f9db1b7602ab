"""The same faults with Spark itself: objects that change under a slow index, processes killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from skipstone import Dataset, MinMaxIndex, skipping_stats
from skipstone.indexes.minmax import MinMaxMetadata
from skipstone.indexing.index import Index

HERE = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("index_and_die.py")


@dataclass(frozen=True)
class SlowIndex(Index):
    """Tells the test that it reads, and waits until the test has done its worst."""

    column: str
    signs: str
    metadata_type = MinMaxMetadata

    def collect_metadata(self, rows):
        Path(self.signs, "reading").touch()
        for _ in range(2_400):  # two minutes, should the test have failed
            if Path(self.signs, "changed").exists():
                break
            time.sleep(0.05)
        return MinMaxMetadata.of(rows.column(0))

    def filters(self):
        return ()


def replaced(path):
    path.with_suffix(".fresh").write_text("77\n78\n")
    path.with_suffix(".fresh").rename(path)


def appended(path):
    with path.open("a") as file:
        file.write("77\n")


def truncated(path):
    path.write_text("77\n")


def deleted(path):
    path.unlink()


def longer_with_the_old_time(path):
    old = path.stat()
    path.write_text("77\n78\n79\n80\n81\n")
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))


@pytest.mark.parametrize("change", [replaced, appended, truncated, deleted, longer_with_the_old_time])
def test_an_object_that_changes_while_spark_reads(spark, tmp_path, tally, change):
    folder = tmp_path / "d"
    folder.mkdir()
    for number in range(3):
        (folder / f"object-{number}.csv").write_text("".join(f"{10 * number + n}\n" for n in range(4)))
        os.utime(folder / f"object-{number}.csv", (1_700_000_000 + number, 1_700_000_000 + number))
    dataset = Dataset.for_path(spark, str(folder), format="csv", schema="a INT")

    def meddle():
        while not (tmp_path / "reading").exists():
            time.sleep(0.02)
        change(folder / "object-1.csv")
        (tmp_path / "changed").touch()

    thread = threading.Thread(target=meddle)
    thread.start()
    report = dataset.create_indexes(SlowIndex("a", str(tmp_path)), MinMaxIndex("a"))
    thread.join()
    assert report.left_out == 1
    count = tally.of("objects change while Spark reads them", change.__name__.replace("_", " "))
    count.faults += 1
    skipped = 0
    for value in (0, 11, 21, 77, 80):
        frame = spark.read.schema("a INT").csv(str(folder)).where(f"a = {value}")
        with skipping_stats(spark) as stats:
            found = frame.count()
        skipped += stats[-1].objects.skipped
        truth = sum(line == str(value) for file in folder.glob("*.csv") for line in file.read_text().split())
        count.queries += 1
        count.wrong += found != truth
        assert found == truth, value
    count.skipped += skipped
    assert skipped > 0


@pytest.mark.long
@pytest.mark.parametrize("action", ["create", "refresh", "drop"])
def test_a_spark_process_that_is_killed(spark, tmp_path, tally, action):
    """Steps of the driver on the metadata folder, every fourth; the process is one like a user's."""
    count = tally.of("killed (SIGKILL), with Spark", action)
    for step in range(1, 200, 4):
        folder = tmp_path / f"{action}-{step}"
        spark.range(40).repartitionByRange(4, "id").write.parquet(str(folder))
        if action != "create":
            Dataset.for_path(spark, str(folder)).create_indexes(MinMaxIndex("id"))
            spark.range(40, 50).coalesce(1).write.mode("append").parquet(str(folder))
        with (tmp_path / "said").open("w") as said:
            done = subprocess.run(
                [sys.executable, str(SCRIPT), str(folder), action, str(step)],
                stdout=said,
                stderr=said,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])},
                cwd=HERE,
                check=False,
                timeout=300,
            )
        assert done.returncode in (0, -signal.SIGKILL), (tmp_path / "said").read_text()[-2000:]
        if done.returncode == 0:
            break
        count.faults += 1
        for again in (False, True):
            frame = spark.read.parquet(str(folder))
            with skipping_stats(spark) as stats:
                assert frame.where("id = 17").count() == 1
                assert frame.where("id > 35").count() == (4 if action == "create" else 14)
            count.queries += 2
            count.skipped += sum(entry.objects.skipped for entry in stats)
            if again:
                assert stats[-1].objects.skipped > 0
            elif Dataset(frame).is_indexed:
                Dataset(frame).refresh()
            else:
                Dataset(frame).create_indexes(MinMaxIndex("id"))
        count.repaired += 1
    assert count.faults > 1
