"""What the book is in one piece: the pages of `_toc.yml` without the listings, opened in a browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import yaml
from playwright.sync_api import Browser, Page, sync_playwright

from browsers import FLAGS, find_browser
from paths import HTML, ROOT

_SETTINGS = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
TITLE, AUTHOR = _SETTINGS["title"], _SETTINGS["author"]
LICENSE = "Text and figures: CC BY 4.0. Code: Apache-2.0."
PATIENCE = 300_000  # milliseconds, for a long page on a slow computer
READY = """async () => {
  await Promise.all([window.MathJax?.startup?.promise, document.fonts.ready]);
  window.dispatchEvent(new Event("book:draw-all"));
  const images = [...document.images];
  images.forEach((image) => (image.loading = "eager"));
  await Promise.all(images.map((image) => image.decode().catch(() => {})));
}"""


class NoBrowser(Exception):
    """There is nothing to print with."""


@dataclass(frozen=True)
class Part:
    """Some pages of the book that follow each other."""

    caption: str  # empty for the first page
    pages: tuple[str, ...]  # such as "notebooks/03_tokenization"


def parts() -> list[Part]:
    """The parts of the book; what lies below another page, the listings, is left out."""
    listed = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    found = [Part("", (listed["root"],))]
    for part in listed["parts"]:
        found.append(
            Part(part["caption"], tuple(page["file"] for page in part["chapters"] if "file" in page))
        )
    return found


def address_of(page: str) -> str:
    """Where a page of the site lies on this computer, as an address."""
    return (HTML / f"{page}.html").resolve().as_uri()


@contextmanager
def browser() -> Iterator[Browser]:
    """The system's browser, without a window.

    Raises:
        NoBrowser: there is none.
    """
    program = find_browser()
    if program is None:
        raise NoBrowser("no browser to print with: install Chromium, Chrome or Edge")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield running
        finally:
            running.close()


@contextmanager
def opened(running: Browser, address: str, **options: object) -> Iterator[Page]:
    """A page with its formulas, fonts, pictures and views in place. Nothing is asked of another host.

    Args:
        running: a browser.
        address: of a file.
        options: of the browser's context.
    """
    context = running.new_context(reduced_motion="reduce", color_scheme="light", **options)
    context.set_default_timeout(PATIENCE)
    context.route(lambda url: not url.startswith(("file:", "data:", "blob:")), lambda route: route.abort())
    page = context.new_page()
    page.goto(address)
    page.evaluate(READY)
    try:
        yield page
    finally:
        context.close()
