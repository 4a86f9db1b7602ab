"""Results show themselves in notebooks and by ``print``; what the methods return is what it was."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from skipstone import BloomFilterIndex, Dataset, MinMaxIndex, ValueListIndex, last_query, skipping_stats
from skipstone.engines.spark.described import indexes_html
from skipstone.indexing.report import IndexingReport
from tests.reporting.browser import chromium, contrasts, opened

SCRIPT = "</style></script><script>alert(1)</script><img src=x onerror=alert(2)>"
READABLE = 4.5
THEMES = {  # how notebooks say that they are light or dark
    "jupyterlab-light": ("", '<body data-jp-theme-light="true">', False),
    "jupyterlab-dark": ("", '<body data-jp-theme-light="false">', True),
    "vscode-light": ("", '<body class="vscode-light">', False),
    "vscode-dark": ("", '<body class="vscode-dark">', True),
    "colab-dark": (' theme="dark"', "<body>", True),
    "sphinx-light": (' data-theme="light"', "<body>", False),
}


@pytest.fixture(scope="module")
def shown(spark, tmp_path_factory):
    """Everything that shows itself, of a dataset whose names would like to break it."""
    folder = tmp_path_factory.mktemp("notebooks") / "a&amp;b <i>data"
    folder.mkdir()
    for number in range(4):
        rows = range(10)
        table = {"n": [number * 10 + i for i in rows], SCRIPT: [f"x{number}"] * 10, "d": list(rows)}
        pq.write_table(pa.table(table), folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1_700_000_000, 1_700_000_000))
    dataset = Dataset.for_path(spark, str(folder))
    found = {"dataset without indexes": dataset._repr_html_()}
    made = dataset.create_indexes(MinMaxIndex("n"), ValueListIndex(f"`{SCRIPT}`"), BloomFilterIndex("d"))
    with skipping_stats(spark) as stats:
        assert dataset.dataframe.where(f"`{SCRIPT}` = 'x3'").count() == 10
        assert dataset.dataframe.where("n < 10 AND d % 7 = 3").count() == 1
    last = last_query(spark)
    workload = [f"`{SCRIPT}` = 'x3'", "n < 0", "d % 7 = 3"]
    report = dataset.report(workload)
    objects = {
        "dataset": dataset,
        "create_indexes": made,
        "refresh": dataset.refresh(),
        "describe": dataset.describe(),
        "last_query": last,
        "scan": last[0],
        "skipping_stats": stats,
        "explain": dataset.explain(workload[0]),
        "indicators": dataset.indicators(workload[0]),
        "indicators of nothing": dataset.indicators("n < 0"),
        "workload": dataset.indicators(workload),
        "report": dataset.report(workload, compare=report),
    }
    return objects, found | {name: one._repr_html_() for name, one in objects.items()}


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


def written(folder, pieces, name="page.html", attributes="", body="<body>"):
    file = folder / name
    cells = "".join(f"<section data-of='{which}'>{piece}</section>" for which, piece in pieces.items())
    head = "<head><meta charset='utf-8'><meta name='viewport' content='width=device-width'></head>"
    file.write_text(f"<!DOCTYPE html><html{attributes}>{head}{body}{cells}</body></html>", encoding="utf-8")
    return file


def test_what_methods_return_is_what_it_was(spark, shown):
    objects, _ = shown
    described = objects["describe"]
    assert isinstance(described, DataFrame)
    assert type(described).__name__ == "DataFrame"
    assert repr(described).startswith("DataFrame[name: string, type: string,")
    assert {row.name for row in described.where("type = 'minmax'").collect()} == {"minmax(n)"}
    assert type(described.select("name")) is type(spark.range(1))
    assert spark.range(1)._repr_html_() is None  # Spark's own class is as it was
    last = objects["last_query"]
    assert isinstance(last, list)
    assert repr(last) == repr(list(last))
    assert isinstance(objects["create_indexes"], IndexingReport)


def test_what_print_says(shown):
    objects, _ = shown
    root = objects["dataset"].root
    assert str(objects["dataset"]) == f"{root} (parquet)"
    assert repr(objects["dataset"]).startswith("Dataset('file:")
    lines = str(objects["describe"]).splitlines()
    assert lines[0].startswith("minmax(n): 4 objects covered; ")
    assert len(lines) == 3
    told = str(objects["last_query"])
    assert told.startswith(f"{root} (parquet): reads 1 of 4 objects, skips 3 (75.0%) by bloomfilter(d), minmax(n)")
    assert told == str(objects["scan"])
    assert len(str(objects["skipping_stats"]).splitlines()) == 2
    assert "\n" not in str(objects["create_indexes"])
    assert str(objects["report"]).splitlines()[0].endswith("3 indexes, 3 queries; skipped 7 of 12 objects")
    assert len(str(objects["report"])) < 2_000


def test_an_index_that_is_lacking_or_refused_is_said():
    row = {"name": "i", "columns": ["a"], "covered": 1, "stale": 2, "missing": 0, "bytes": 7, "refreshed": None}
    assert "refresh() indexes them" in indexes_html([row | {"not_used": None}])
    assert "i is not used: no key" in indexes_html([row | {"not_used": "no key", "stale": None, "bytes": None}])
    assert "no index" in indexes_html([])


def test_trouble_of_an_index_job_is_shown():
    report = IndexingReport("file:/d", ("i",), 3, 2, 1, 1, 0, 9, 10, 0.5, 1, ("o: <b>",), "by x", ("gone",))
    text = report._repr_html_()
    for said in ("changed meanwhile", "Repaired: by x", "Lost: gone", "1 not indexed", "o: &lt;b&gt;"):
        assert said in text
    assert "not trusted" not in text


def test_metadata_that_cannot_be_read_is_said(spark, tmp_path):
    pq.write_table(pa.table({"n": [1]}), tmp_path / "0.parquet")
    dataset = Dataset.for_path(spark, str(tmp_path))
    spark.conf.set("spark.skipstone.store", "nonesuch")
    try:
        assert "The indexes cannot be read: spark.skipstone.store is" in dataset._repr_html_()
    finally:
        spark.conf.unset("spark.skipstone.store")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(shown, browser, tmp_path, scheme):
    _, pieces = shown
    with opened(browser, written(tmp_path, pieces), scheme=scheme) as page:
        assert page.locator(".skipstone").count() == len(pieces)
        assert page.locator("script, img, [onerror]").count() == 0
        assert SCRIPT in page.locator("[data-of=dataset]").inner_text()
        assert SCRIPT in page.locator("[data-of=describe]").inner_text()
        page.eval_on_selector_all("details", "es => es.forEach(e => { e.open = true })")
        assert SCRIPT in page.locator("[data-of=skipping_stats]").inner_text()
        found = contrasts(page)
        assert len(found) > 150
        assert not [pair for pair in found if pair[0] < READABLE]
        paper = page.locator(".skipstone").first.evaluate("e => getComputedStyle(e).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") is (scheme == "light")
        bar = page.locator("[data-of=scan] .bar")
        share = bar.locator("i").bounding_box()["width"] / bar.bounding_box()["width"]
        assert share == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize("theme", THEMES)
def test_the_notebook_decides_whether_it_is_dark(shown, browser, tmp_path, theme):
    attributes, body, dark = THEMES[theme]
    file = written(tmp_path, {"describe": shown[1]["describe"]}, "theme.html", attributes, body)
    for scheme in ("light", "dark"):
        with opened(browser, file, scheme=scheme) as page:
            paper = page.locator(".skipstone").evaluate("e => getComputedStyle(e).backgroundColor")
            assert (paper != "rgb(255, 255, 255)") is dark
            assert not [pair for pair in contrasts(page) if pair[0] < READABLE]


def test_what_a_notebook_says_of_any_list_and_table_does_not_matter(browser, tmp_path):
    """JupyterLab sets all cells to the right and gives all terms a fifth of the width."""
    foreign = (
        "<style>.jp-X dl dt{width:20%;float:left;display:block}.jp-X dl dd{float:left;width:80%}"
        ".jp-X:not(.jp-Y) td,.jp-X:not(.jp-Y) th{text-align:right;white-space:nowrap;max-width:none}</style>"
    )
    report = IndexingReport("file:/d", ("i",), 3, 2, 1, 1, 0, 9, 10, 0.5, 1)
    row = {"name": "i", "columns": ["a"], "covered": 1, "stale": 2, "missing": 0, "bytes": 7, "refreshed": None}
    pieces = {"report": report._repr_html_(), "indexes": indexes_html([row | {"not_used": None}])}
    with opened(browser, written(tmp_path, pieces, body=f"<body class='jp-X'>{foreign}")) as page:
        heights = page.eval_on_selector_all("dt", "es => es.map(e => e.getBoundingClientRect().height)")
        assert len(heights) == 7
        assert max(heights) < 30
        assert page.locator("tbody th").evaluate("e => getComputedStyle(e).textAlign") == "start"
        assert page.locator("tbody td.n").first.evaluate("e => getComputedStyle(e).textAlign") == "end"


@pytest.mark.parametrize("width", [320, 700])
def test_narrow_cells_do_not_scroll_the_page(shown, browser, tmp_path, width):
    with opened(browser, written(tmp_path, shown[1]), width=width) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
