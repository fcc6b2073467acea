"""The contents of the printed book: the pages of `_toc.yml` without listings, opened in a browser."""

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
# Pages for which paper is no place: lists of what the site has, the live model, and how to build the site.
ON_SITE_ONLY = ("book/claims", "book/helper_package", "book/model_at_work", "book/how_to_build")
APPENDIX = "genindex"  # a page of the site that nothing leads to: the frame in which the appendix is printed
APPENDIX_TITLE = "Solutions and answers"
MOVE_BACK_MATTER = (ROOT / "tools" / "paper" / "back_matter.js").read_text(encoding="utf-8")
PATIENCE = 300_000  # milliseconds, for a long page on a slow computer
READY = """async () => {
  await Promise.all([window.MathJax?.startup?.promise, document.fonts.ready]);
  window.dispatchEvent(new Event("book:draw-all"));
  const images = [...document.images];
  images.forEach((image) => (image.loading = "eager"));
  await Promise.all(images.map((image) => image.decode().catch(() => {})));
}"""


class NoBrowser(Exception):
    """No browser is installed."""


@dataclass(frozen=True)
class Part:
    """A part of the book: consecutive pages."""

    caption: str  # empty for the first page
    pages: tuple[str, ...]  # such as "notebooks/03_tokenization"


def parts() -> list[Part]:
    """Return the parts of the book, without subpages and other listings."""
    listed = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    found = [Part("", (listed["root"],))]
    for part in listed["parts"]:
        files = (page["file"] for page in part["chapters"] if "file" in page)
        found.append(Part(part["caption"], tuple(file for file in files if file not in ON_SITE_ONLY)))
    return found


def address_of(page: str) -> str:
    """Return the file address of a page of the site."""
    return (HTML / f"{page}.html").resolve().as_uri()


def has_back_matter(page: str) -> bool:
    """Return whether a page of the site has solutions or answers."""
    text = (HTML / f"{page}.html").read_text(encoding="utf-8")
    return "<summary>Solution " in text or "quiz-answers" in text


@contextmanager
def browser() -> Iterator[Browser]:
    """Start the system's browser without a window.

    Raises:
        NoBrowser: no browser is installed.
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
    """Open a page and wait for its formulas, fonts, pictures and views, without contacting other hosts.

    Args:
        running: a browser.
        address: the address of a file.
        options: options of the browser's context.
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
