"""The report's page in a real browser: it shows the JSON's figures, runs and fetches nothing, and reads everywhere."""

from __future__ import annotations

import copy
import json
import os
import re
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skipstone import BloomFilterIndex, Dataset, FeatureIndex, MinMaxIndex, ValueListIndex
from skipstone.reporting.report.compare import compared
from skipstone.reporting.report.make import Report, make_report
from skipstone.reporting.report.workload import Statement
from skipstone.showing.format import visible
from tests.reporting.browser import chromium, contrasts, opened

SCRIPT = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
HEBREW = "שם החשבון"
OBJECTS = 6
READABLE = 4.5
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}
NOT_SHOWN = re.compile(
    r"/format|/queries/\d+/number|/workload/(measured|objects/(unindexed|stale))"
    r"|/compared/(queries_measured|queries/\d+/(place|before/objects_total)|(before|after)/objects_total)"
    r"|/queries/\d+/objects/(unindexed|stale)"
    r"|/queries/\d+/indicators/(objects|kept_objects|rows_in_relevant_objects)"
    r"|/queries/\d+/scans/\d+/(bytes_total|bytes_skipped|metadata_bytes_read|objects/.*)"
    r"|/indexes/\d+/options/.*"
)


@pytest.fixture(scope="module")
def report(spark, tmp_path_factory):
    """A report on a dataset and queries whose names would like to break it."""
    folder = tmp_path_factory.mktemp("browser") / "a&amp;b <i>data"
    folder.mkdir()
    for number in range(OBJECTS):
        rows = range(10)
        table = {"n": [number * 10 + i for i in rows], SCRIPT: [f"x{number}"] * 10, HEBREW: [number % 2] * 10}
        pq.write_table(pa.table(table), folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1_700_000_000, 1_700_000_000))
    dataset = Dataset.for_path(spark, str(folder))
    dataset.create_indexes(
        MinMaxIndex("n"),
        ValueListIndex(f"`{HEBREW}`"),
        BloomFilterIndex(f"`{SCRIPT}`"),
        FeatureIndex({SCRIPT: "n % 7 = 3"}, name="features"),
        MinMaxIndex("n", name="\u202e reversed \u2028" + "very-long-name" * 30),
    )
    long = " OR ".join(f"n = {number}" for number in range(100)) + "".join(f"\n-- {'long ' * 20}" for _ in range(200))
    made = make_report(
        dataset,
        [
            Statement(1, "n < 10", "Plain & simple"),
            Statement(2, f"`{SCRIPT}` = 'x3'", SCRIPT),
            Statement(3, f"`{HEBREW}` = 1 AND n >= 30", f"{HEBREW} \u202e\u2028"),
            Statement(4, f"SELECT n FROM dataset WHERE {long}", "w" * 500),
            Statement(5, "n = -1 OR n = -2"),
            Statement(6, "n % 7 = 3"),
            Statement(7, "SELECT a.n FROM dataset a JOIN dataset b ON a.n = b.n WHERE a.n < 10 AND b.n < 20"),
            dataset.dataframe.where("n >= 0"),
        ],
    )
    data = made.as_dict()
    return Report(data | {"compared": compared(earlier(data), data)})


def earlier(data):
    """Make up what a report might have said before: without an index, with more objects read, with another query."""
    before = json.loads(json.dumps(data))
    before["conditions"]["spark"] = SCRIPT
    del before["indexes"][0]
    before["indexes"].append(data["indexes"][0] | {"name": SCRIPT})
    before["queries"][0]["objects"] |= {"kept": OBJECTS, "skipped": 0}
    before["queries"][2]["objects"]["kept"] = 0
    before["queries"][5]["sql"] = "another one"
    return before


@pytest.fixture(scope="module")
def file(report, tmp_path_factory):
    made = tmp_path_factory.mktemp("page") / "report.html"
    report.write(made)
    return made


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


def at(document, pointer):
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        document = document[int(key) if isinstance(document, list) else key]
    return document


def numbers(document, pointer=""):
    """Return the pointers of all numbers in a document."""
    if isinstance(document, dict):
        for key, value in document.items():
            yield from numbers(value, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")
    elif isinstance(document, list):
        for position, value in enumerate(document):
            yield from numbers(value, f"{pointer}/{position}")
    elif isinstance(document, int | float) and not isinstance(document, bool):
        yield pointer


def assert_shows(shown, kind, value):
    """Check that a text shows a number to the last digit that it has."""
    if value is None:
        assert shown == "\N{EN DASH}"
        return
    match = re.fullmatch(r"(-?[\d,]+(?:\.(\d+))?) ?(.*)", shown)
    assert match, shown
    scale = {"count": 1, "factor": 1, "percent": 0.01, "milliseconds": 0.001}.get(kind) or UNITS[match[3]]
    unit = {"percent": "%", "milliseconds": "ms", "size": match[3]}.get(kind, "")
    assert match[3] == unit
    digit = scale * 10 ** -len(match[2] or "")
    if kind == "size" and not match[2] and match[3] != "B":
        digit = scale
    assert abs(float(match[1].replace(",", "")) * scale - value) <= digit * 0.5000001, (shown, kind, value)
    if kind == "count":
        assert shown == f"{value:,}"


def test_the_figures_on_the_page_are_those_of_the_json(report, file, browser):
    with opened(browser, file) as page:
        document = json.loads(page.text_content("#skipstone-report"))
        elements = page.eval_on_selector_all(
            "[data-of]",
            "es => es.map(e => [e.dataset.of, e.dataset.kind ?? e.tagName, "
            "e.getAttribute('value') ?? e.dataset.value ?? e.dateTime ?? '', e.textContent])",
        )
        title = page.title()
    assert document == report.as_dict()
    seen = set()
    texts = cut = 0
    for pointer, kind, exact, shown in elements:
        value = at(document, pointer)
        seen.add(pointer)
        if kind == "BDI":
            assert shown == visible(value)[:6_000]
            cut += len(visible(value)) > 6_000
            texts += 1
        elif kind == "TIME":
            assert exact == value
        else:
            assert exact == ("" if value is None else repr(value))
            assert_shows(shown, kind, value)
    missing = {pointer for pointer in numbers(document) if not NOT_SHOWN.fullmatch(pointer)} - seen
    assert not missing
    assert texts > 60
    assert cut == 2
    assert len(elements) - texts > 250
    assert title == f"Skipstone report: {document['dataset']['root']}"


def test_hostile_names_are_shown_and_do_nothing(file, browser):
    with opened(browser, file) as page:
        assert page.locator("script").count() == 1
        assert page.locator("img").count() == 0
        assert page.locator("[onerror]").count() == 0
        assert page.locator("#query-1").text_content() == f"2. {SCRIPT}"
        assert "\\u202e\\u2028" in page.locator("#query-2").text_content()
        shown = page.locator("main").inner_text()
        assert not re.search("[\u2028\u2029\u202a-\u202e\u2066-\u2069]", shown)
        assert HEBREW in shown
        assert page.locator("main").evaluate("e => getComputedStyle(e).direction") == "ltr"


def test_charts_have_what_people_who_do_not_see_them_need(file, browser):
    with opened(browser, file) as page:
        charts = page.locator("svg.chart")
        assert charts.count() == 4
        for chart in charts.all():
            named = chart.get_attribute("aria-labelledby").split()
            assert [page.locator(f"[id='{name}']").text_content() != "" for name in named] == [True, True]
        assert page.locator("svg:not([role=img]):not([aria-hidden=true]):not(svg svg)").count() == 0
        assert page.locator("th:not([scope])").count() == 0
        levels = page.eval_on_selector_all("h1, h2, h3, h4", "es => es.map(e => Number(e.tagName[1]))")
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        ids = page.eval_on_selector_all("[id]", "es => es.map(e => e.id)")
        assert len(ids) == len(set(ids))
        links = page.eval_on_selector_all("a[href]", "es => es.map(e => e.getAttribute('href'))")
        assert len(links) >= 12
        assert all(link[0] == "#" and link[1:] in ids for link in links)


def test_bars_are_as_long_as_the_figures_say(report, file, browser):
    objects = report.as_dict()["queries"]
    with opened(browser, file) as page:
        wide = page.eval_on_selector_all(
            "svg.chart[aria-labelledby^=objects] rect.skipped", "es => es.map(e => e.getBoundingClientRect().width)"
        )
        full = page.locator("svg.chart[aria-labelledby^=objects] rect.track").first.bounding_box()["width"]
    shares = [q["objects"]["skipped"] / q["objects"]["total"] for q in objects if q["objects"]["skipped"]]
    assert len(shares) >= 5
    assert [width / full for width in wide] == pytest.approx(shares, abs=0.002)


def test_it_begins_with_what_to_do_and_folds_details(report, file, browser):
    data = report.as_dict()
    assert data["do_first"]
    with opened(browser, file) as page:
        assert page.locator("main h2").first.text_content() == "Do first"
        steps = page.locator(".steps > li")
        assert steps.count() == len(data["do_first"])
        for step, told in zip(steps.all(), data["do_first"], strict=True):
            assert step.locator("h3").text_content() == visible(told["what"])
            lines = [visible(line) for line in (told["python"], told["command"]) if line]
            assert step.locator("pre").all_text_contents() == lines
        assert page.locator("details").count() == len(data["queries"]) == page.locator("article").count()
        inside = page.locator("article").first.locator("details pre").first
        assert not inside.evaluate("e => e.checkVisibility()")
        page.locator("article").first.locator("summary").click()
        assert inside.evaluate("e => e.checkVisibility()")
        last = page.locator("article").last.locator("details pre").first
        assert not last.evaluate("e => e.checkVisibility()")
        page.emulate_media(media="print")  # paper has nothing to click on
        assert last.evaluate("e => e.checkVisibility()")


def test_sums_and_means_are_told_apart(file, browser):
    with opened(browser, file) as page:
        overview = page.locator("section[aria-labelledby=overview]")
        sums, means = overview.locator("dl.tiles").all()
        assert "these are sums" in sums.evaluate("e => e.previousElementSibling.textContent")
        assert "these are geometric means" in means.evaluate("e => e.previousElementSibling.textContent")
        assert sums.locator("[data-of*=geometric_means]").count() == 0
        assert means.locator("[data-of]:not([data-of*=geometric_means])").count() == 0
        feet = page.locator("section[aria-labelledby=workload] tfoot tr").all()
        assert [foot.locator("th").text_content()[:9] for foot in feet] == ["Sums", "Geometric"]


def test_before_and_after(report, file, browser):
    told = report.as_dict()["compared"]
    assert (told["queries_in_both"], told["queries_only_before"], told["queries_only_after"]) == (7, 1, 1)
    with opened(browser, file) as page:
        section = page.locator("section[aria-labelledby=compared]")
        assert section.locator("tbody tr").count() == 7
        assert section.locator("tbody td.better").count() == 1
        assert section.locator("tbody td.warning").count() == 1
        assert f"Spark was {SCRIPT}" in section.locator("p.warning").text_content()
        assert SCRIPT in section.locator("dl.facts dd").last.text_content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("medium", ["screen", "print"])
def test_every_text_is_readable(file, browser, scheme, medium):
    with opened(browser, file, scheme=scheme) as page:
        page.emulate_media(media=medium, color_scheme=scheme)
        found = contrasts(page)
        assert len(found) > 300
        assert not [pair for pair in found if pair[0] < READABLE]
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        dark = (scheme, medium) == ("dark", "screen")
        assert (paper != "rgb(255, 255, 255)") is dark
        assert len(page.screenshot()) > 20_000


def test_nothing_is_cut_off_on_paper(file, browser):
    with opened(browser, file, width=720, scheme="dark") as page:
        printed = page.pdf(format="A4", print_background=True)
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 4
        page.emulate_media(media="print")
        cut = page.eval_on_selector_all(
            "pre, .scroll, td, th, figure",
            "es => es.filter(e => e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)"
            ".map(e => e.outerHTML.slice(0, 80))",
        )
        assert cut == []


@pytest.mark.parametrize("width", [320, 360, 800])
def test_narrow_windows_do_not_scroll_sideways(file, browser, width):
    with opened(browser, file, width=width) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        sideways = page.eval_on_selector_all(
            "main *:not(.scroll *):not(svg *)",
            "es => es.filter(e => e.getBoundingClientRect().right > innerWidth).length",
        )
        assert sideways == 0


def test_a_long_workload_and_an_empty_one(report, browser, tmp_path):
    data = copy.deepcopy(report.as_dict())
    data["queries"] = [query | {"number": n + 1} for n, query in enumerate(data["queries"] * 10)]
    many, none = tmp_path / "many.html", tmp_path / "none.html"
    Report(data).write(many)
    with opened(browser, many) as page:
        assert page.locator("article").count() == len(data["queries"]) == 80
        assert page.locator("svg.chart[aria-labelledby^=objects] rect.track").count() == 60
        assert "The charts show the first 60 queries" in page.locator("main").inner_text()
        assert page.eval_on_selector_all("svg.chart", "es => Math.max(...es.map(e => e.clientHeight))") < 1_000
    data = copy.deepcopy(report.as_dict()) | {"queries": [], "do_first": [], "compared": None}
    Report(data).write(none)
    with opened(browser, none, width=360) as page:
        assert page.locator("article").count() == 0
        assert "No query was given" in page.locator("main").inner_text()
