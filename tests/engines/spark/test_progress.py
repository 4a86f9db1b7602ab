"""What a waiting person is shown while an index job runs."""

import io
import re
import time

import pytest
from rich.console import Console

from skipstone.engines.spark.progress import how_far, shown_progress
from skipstone.indexing.objects import DataObject

OBJECTS = [DataObject(f"file:/lake/{n}", 1_000_000, 0, "") for n in range(40)]


def test_objects_bytes_rate_and_what_is_left_are_shown(spark):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=160)
    with shown_progress(spark, OBJECTS, wanted=True, console=console):
        spark.sparkContext.parallelize(range(8), 8).foreach(lambda _: time.sleep(0.6))
    shown = screen.getvalue()
    assert "40 objects, 40 MB" in shown
    assert re.search(r"\d+ of 40 objects, \d+ MB of 40 MB, [\d,]+ objects/(s|min), about \d+ s left", shown)


def test_nothing_is_shown_where_nobody_looks(spark, capsys):
    with shown_progress(spark, OBJECTS):
        spark.range(3).count()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("share", "seconds", "words"),
    [
        (0.0, 5.0, "100 objects, 2 GB"),
        (0.5, 10.0, "50 of 100 objects, 1 GB of 2 GB, 5 objects/s, about 10 s left"),
        (0.01, 600.0, "1 of 100 objects, 20 MB of 2 GB, 0 objects/min, about 990 min left"),
        (1.0, 10.0, "100 of 100 objects, 2 GB of 2 GB, 10 objects/s, about 0 s left"),
    ],
)
def test_how_far_a_job_is(share, seconds, words):
    assert how_far(100, 2_000_000_000, share, seconds) == words
