"""What a first visit of a page moves, compressed as hosts do it; and what waits until it is seen."""

import functools
import gzip
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import expect

pytestmark = pytest.mark.site

LIMIT, LIMIT_WITH_VIEWS = 450_000, 900_000  # bytes
TEXTS = {".html", ".css", ".js", ".svg"}  # what hosts compress; fonts and pictures are compressed already
SETTLED = 1000  # milliseconds in which pictures near the window are asked for
VIEWS_PAGE = "notebooks/attention_view.html"
PICTURES_PAGE = "notebooks/07_attention_from_scratch.html"


@functools.cache
def weight(path: Path) -> int:
    """Bytes of a file on its way to a browser."""
    content = path.read_bytes()
    return len(gzip.compress(content, 6)) if path.suffix in TEXTS else len(content)


def has_views(page: Path) -> bool:
    return bool(BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").select("[id^='bertviz-']"))


@pytest.fixture(scope="session")
def first_visit(browser, server, site):
    """Weights of all that a browser with an empty cache asks for before its reader does anything."""

    @functools.cache
    def first_visit(name: str) -> dict[str, int]:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        page, asked = context.new_page(), set()
        page.on("response", lambda response: asked.add(unquote(urlparse(response.url).path)))
        page.goto(f"{server}/{name}")  # until the page says that it is loaded
        page.evaluate("document.fonts.ready")
        page.wait_for_timeout(SETTLED)
        context.close()
        return {path: weight(site / path.lstrip("/")) for path in asked if not path.startswith("image/")}

    return first_visit


def test_a_first_visit_is_light(name, first_visit, site):
    moved = first_visit(name)
    assert f"/{name}" in moved and "/_static/book.css" in moved
    told = "\n".join(f"{size:9,} {path}" for path, size in sorted(moved.items(), key=lambda pair: -pair[1]))
    assert sum(moved.values()) <= (LIMIT_WITH_VIEWS if has_views(site / name) else LIMIT), told


def test_no_page_asks_for_an_icon_font_or_for_mathjax(name, first_visit):
    moved = " ".join(first_visit(name))
    assert "MathJax_" in moved or ".woff" not in moved
    assert "fontawesome" not in moved and "chtml.js" not in moved and "searchindex" not in moved


def test_views_are_drawn_when_they_come_into_view(open_tab):
    tab = open_tab("file", VIEWS_PAGE, viewport={"width": 1280, "height": 900})
    views = tab.page.locator("[id^='bertviz-']")
    assert views.count() == 3
    assert tab.page.locator("[id^='bertviz-'] svg").count() == 0
    nodes = tab.page.evaluate(NODES)
    views.nth(2).scroll_into_view_if_needed()
    expect(views.nth(2).locator("svg line").first).to_be_attached()
    assert views.nth(0).locator("svg").count() == 0, "the reader has jumped over it"
    tab.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert all(view.locator("svg line").count() > 100 for view in views.all())
    assert nodes < tab.page.evaluate(NODES) / 2
    tab.close()


def test_on_paper_there_are_all_pictures(open_tab, tmp_path):
    """What waits until it is near is there when the page is printed, though nobody scrolled to it."""
    tab = open_tab("file", PICTURES_PAGE, viewport={"width": 1280, "height": 900})
    waiting = "[...document.images].filter(image => image.checkVisibility() && !image.complete).length"
    assert tab.page.evaluate(waiting) > 0
    tab.page.pdf(path=tmp_path / "page.pdf")
    assert tab.page.evaluate(waiting) == 0


NODES = "document.querySelectorAll('*').length"
