"""The README tells the truth: its Python runs, prints what it says, and its tables and links are those of the code."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pytest

import skipstone
from skipstone.settings import SETTINGS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def comparable(text):
    """Leave out what differs between runs: folders, sizes and times."""
    text = re.sub(r"\S*/logs\b", "FOLDER", text)
    text = re.sub(r"\(listing .*?\)", "(…)", text)
    text = re.sub(r"\d[\d,.]*(?= ms)|\d[\d,]*(?= of \d[\d,]* bytes)|\d[\d,]*(?= bytes)", "N", text)
    return [line.rstrip() for line in text.strip().splitlines()]


def test_the_python_runs_and_prints_what_the_readme_says(spark, capsys):
    code, functions = blocks("python")
    (output,) = blocks("text")
    names = {"__name__": "readme"}
    exec(compile(code, "README.md", "exec"), names)
    assert comparable(capsys.readouterr().out) == comparable(output)
    exec(compile(functions, "README.md", "exec"), names)
    assert spark.sql("SELECT is_teen(15) AND NOT is_teen(20)").first()[0]
    assert spark.sql("SELECT ST_Distance(ST_Point(1D, 2D), ST_Point(1D, 5D))").first()[0] == 3


def test_the_custom_index_example_skips(spark, capsys):
    example = runpy.run_path(str(ROOT / "examples" / "custom_index.py"), run_name="custom_index_example")
    example["main"]()
    told = capsys.readouterr().out
    assert "4000 rows" in told
    assert "kept=4, skipped=12" in told


def test_every_index_type_that_is_named_exists():
    named = set(re.findall(r"^\| `(\w+Index)\(", README, re.MULTILINE))
    assert named == {name for name in skipstone.__all__ if name.endswith("Index") and name != "Index"}


def test_the_settings_are_those_of_the_code():
    table = README.partition("## Settings")[2].partition("\n## ")[0]
    told = dict(re.findall(r"^\| `([\w.]+)` \| (.*?) \|", table, re.MULTILINE))
    assert told.keys() == SETTINGS.keys()
    for name, (default, _, _) in SETTINGS.items():
        assert told[name].strip("`") == default or not default


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (document.parent / target).exists(), target


PAGES = [d for d in DOCUMENTS if d.name != "CHANGELOG.md" and d.parent.name != "adr"]
PLACES = (ROOT, ROOT / "src" / "skipstone")


@pytest.mark.parametrize("document", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_documents_name_real_modules(document):
    text = document.read_text(encoding="utf-8")
    for name in re.findall(r"`((?:[\w.-]+/)*[\w*]+\.(?:py|scala))`", text):
        assert any(list(place.glob(name)) for place in PLACES), name


def test_both_flows_are_walked_in_at_most_twenty_modules():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for title in ("## An index job", "## A query"):
        walk = text.partition(title)[2].partition("\n## ")[0]
        modules = re.findall(r"^\| \d+ \| `([\w/]+\.(?:py|scala))` \|", walk, re.MULTILINE)
        assert 10 < len(modules) == len(set(modules)) <= 20


def test_the_rooms_are_drawn_with_their_ranks():
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for rank, rooms in enumerate(reversed(layers), 1):
        (drawn,) = re.findall(rf"^ ?{rank:2d}   (.*)$", text, re.MULTILINE)
        assert all(re.search(rf"\b{room}\b", drawn) for room in re.findall(r"\w+", rooms)), rooms


def test_the_example_of_an_engine_skips_without_spark(capsys):
    page = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    engine, use = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    exec(compile(f"{engine}\n{use}", "docs/engines.md", "exec"), {"__name__": "engine_example"})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^print\(.*  # (.*)$", use, re.MULTILINE)
