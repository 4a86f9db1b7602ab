"""A real browser over a page in a file: Chromium of the system, driven by playwright."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from playwright.sync_api import Error, sync_playwright

from tests.servers.downloads import unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the system's Chromium; where there is none the test fails under CI and is skipped elsewhere."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        unavailable("Chromium", "install it (Debian and Ubuntu: apt-get install chromium)")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        except Error as error:
            unavailable(f"Chromium as {found}", error)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, file: Path, *, width: int = 1200, scheme: str = "light") -> Iterator[Page]:
    """Open a page; whatever it logs, raises or fetches beside itself is an error when the block ends."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    events: list[str] = []
    page.on("console", lambda message: events.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: events.append(f"error: {error}"))
    page.on("dialog", lambda dialog: events.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: events.append(f"request: {request.url}"))
    try:
        page.goto(file.as_uri())
        yield page
        assert events == [f"request: {file.as_uri()}"]
    finally:
        context.close()


CONTRASTS = """() => {
  const parse = text => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return [r, g, b, a]; };
  const linear = v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    return [255, 255, 255, 1];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const unseen = element.closest('script, title, desc') || !element.getClientRects().length;
    if (unseen || !walker.currentNode.data.trim()) continue;
    const style = getComputedStyle(element);
    const ink = light(parse(element instanceof SVGElement ? style.fill : style.color)), paper = light(behind(element));
    const [high, low] = ink > paper ? [ink, paper] : [paper, ink];
    found.push([(high + 0.05) / (low + 0.05), walker.currentNode.data.trim().slice(0, 40)]);
  }
  return found;
}"""
"""Gives the contrast (WCAG 2) of every text that is seen with what is behind it."""


def contrasts(page: Page) -> list[tuple[float, str]]:
    """Measure the contrast of every text on a page."""
    return [(ratio, text) for ratio, text in page.evaluate(CONTRASTS)]
