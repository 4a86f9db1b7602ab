"""The documentation site: it is built, every link leads somewhere, every public name is in it, and search finds it."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.reporting.browser import chromium

import skipstone
from skipstone import errors, testing, toolkit

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "scripts" / "site" / "build.py"
TINY = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from build import build, stage
root, folder = map(Path, sys.argv[2:])
stage(root, folder, [("How-to", ["README.md"])], {})
sys.exit(build(folder))
"""


def run(log, *arguments):
    with log.open("w") as output:
        done = subprocess.run([sys.executable, *map(str, arguments)], stdout=output, stderr=output, check=False)
    return done.returncode, log.read_text()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    code, said = run(folder / "log", BUILD, folder / "built")
    assert code == 0, said
    assert "No issues found" in said
    return folder / "built" / "site"


def test_every_page_has_its_place(site):
    for page in (ROOT / "docs").rglob("*.md"):
        place = page.relative_to(ROOT / "docs").with_suffix("")
        place = place.parent if place.name == "README" else place
        assert (site / place / "index.html").exists(), page
    first = (site / "index.html").read_text()
    for title in ("First hour", "How-to", "Reference", "Internals"):
        assert title in first
    assert (site / "examples" / "custom_index.py" / "index.html").exists()
    assert re.search(r'href="./sql/" class="md-tabs__link">\s*How-to\b', first)  # a section begins with its first page


def test_every_public_name_is_in_the_reference(site):
    pages = "".join(page.read_text() for page in (site / "api").rglob("index.html"))
    there = set(re.findall(r'id="([\w.]+)"', pages))
    modules = ("agents", "distances", "geo")
    homes = {name: f"skipstone.{name}" for name in skipstone.__all__ if name not in modules}
    homes["SkipstoneError"] = "skipstone.errors.SkipstoneError"
    homes |= {module: f"skipstone.{module}.register" for module in modules}
    for module in (errors, testing, toolkit):
        homes |= {f"{module.__name__}.{name}": f"{module.__name__}.{name}" for name in module.__all__}
    assert not {name for name, home in homes.items() if home not in there}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[x](docs/nowhere.md)", "page does not exist"),
        ("[x](docs/page.md#nothing)", "anchor does not exist"),
        ("[x](docs/page.md#it-is-heres-why)", None),
        ("[x](docs/more) and [y](docs/tool.py)", None),
    ],
)
def test_a_broken_link_fails_the_build(tmp_path, text, said):
    root = tmp_path / "root"
    (root / "docs" / "more").mkdir(parents=True)
    (root / "examples").mkdir()
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "docs/more/README.md"):
        (root / name).write_text("# Title\n")
    (root / "docs" / "page.md").write_text("# Page\n\n## It is: here's why\n")
    (root / "docs" / "tool.py").write_text("x = 1\n")
    (root / "README.md").write_text(f"# Title\n\n{text}\n")
    code, log = run(tmp_path / "log", "-c", TINY, BUILD.parent, root, tmp_path / "built")
    assert (code != 0) is (said is not None), log
    assert (said or "No issues found") in log


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextmanager
def served(folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.long
def test_it_is_read_in_a_browser(site):
    with served(site) as address, chromium() as browser:
        for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
            page = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}).new_page()
            events = []
            page.on("pageerror", lambda error, events=events: events.append(str(error)))
            page.on("requestfailed", lambda request, events=events: events.append(request.url))
            page.on("request", lambda r, events=events: None if r.url.startswith(address) else events.append(r.url))
            page.goto(f"{address}/indexes/")
            assert page.locator("h1").inner_text().startswith("Index types")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            dark = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g)[0] < 128")
            assert dark is (scheme == "dark")
            assert events == []
        page = browser.new_page()
        page.goto(address)
        page.get_by_role("button", name="Search").first.click()
        page.keyboard.type("GapListIndex")
        page.locator("a[role=option][href*='api/indexes']").first.wait_for(timeout=120_000)
