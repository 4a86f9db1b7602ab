"""The tutorials run from top to bottom, and print what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skipstone import registry

pytestmark = pytest.mark.slow

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("[a-z]*.md"))
STEP = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.MULTILINE | re.DOTALL)
FUNCTIONS = ("domain", "near_retirement", "worth_a_call")


def comparable(text):
    """Leave out what differs between runs and machines: folders, sizes, times, the identity of functions."""
    text = re.sub(r"file:\S*", "FOLDER", text)
    text = re.sub(r"\(listing .*?\)|\(python .*?\)", "(…)", text)
    text = re.sub(r"\d[\d,.]*(?= ms)|\d[\d,]*(?= of \d[\d,]* bytes)|\d[\d,]*(?= bytes)", "N", text)
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.fixture
def session(spark, monkeypatch):
    """Forget afterwards what a tutorial has defined."""
    monkeypatch.setattr(registry, "_index_types", dict(registry._index_types))
    yield spark
    for name in FUNCTIONS:
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")


@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_prints_what_it_says(session, capsys, tutorial):
    steps = list(STEP.finditer(tutorial.read_text(encoding="utf-8")))
    assert sum(step["output"] is not None for step in steps) > 2
    names = {"__name__": "tutorial"}
    for step in steps:
        exec(compile(step["code"], tutorial.name, "exec", dont_inherit=True), names)
        assert comparable(capsys.readouterr().out) == comparable(step["output"] or ""), step["code"]


def test_every_tutorial_is_listed_and_every_block_is_a_step():
    listed = (TUTORIALS[0].parent / "README.md").read_text(encoding="utf-8")
    assert len(TUTORIALS) >= 4
    for tutorial in TUTORIALS:
        text = tutorial.read_text(encoding="utf-8")
        assert f"({tutorial.name})" in listed
        fences = len(re.findall(r"^```", text, re.MULTILINE))
        steps = list(STEP.finditer(text))
        assert fences == 2 * (len(steps) + sum(step["output"] is not None for step in steps))
