"""Every report of the catalogue that a few objects can show, against every index type."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skipstone import Dataset
from tests.regressions.cases import CASES
from tests.support import EVERY_TYPE, assert_sound, conf, write_objects

REPORTS = 131
PAGE = Path(__file__).parents[2] / "docs" / "soundness.md"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_relevant_object_is_skipped(spark, tmp_path, case):
    path = write_objects(spark, tmp_path / "data", case.schema, case.objects)
    with conf(spark, case.settings):
        df = spark.read.options(**case.options).parquet(path)
        indexed = Dataset(df)
        nested = ["s.x", "s.t.y"] if "struct<x" in case.schema else []
        indexed.create_indexes(*(kind("*") for kind in EVERY_TYPE), *(kind(c) for kind in EVERY_TYPE for c in nested))
        skipped = assert_sound(spark, df, case.predicates)
    assert skipped > 0, "nothing was skipped: the case shows nothing"


def test_every_report_is_answered_on_the_page():
    answered = {int(number) for number in re.findall(r"^\| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)}
    assert answered == set(range(1, REPORTS + 1))


def test_cases_named_on_the_page_exist():
    page = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"case: “([^”]+)”", page))
    assert named <= {case.name for case in CASES}
    for case in CASES:
        for number in case.reports:
            assert re.search(rf"^\| {number} \|.*case: “{re.escape(case.name)}”", page, re.MULTILINE), (
                case.name,
                number,
            )
