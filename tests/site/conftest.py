"""The rendered site in a real browser: opened as files, and served on this machine's own loopback."""

import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from site_visits import PHONES, THEMES, Quiet, Tab, Visit, listen, look_at, served, visits

from browsers import FLAGS, find_browser
from paths import HTML

expect.set_options(timeout=20_000)  # milliseconds; two cores may be busy with other tests
SCHEMES = ("file", "http")


def pytest_generate_tests(metafunc):
    """A test that asks for a page's `name`, a `scheme`, a `theme` or a `width` runs once for each."""
    made = visits(everything=os.environ.get("BOOK_VISITS") == "all")
    asked = metafunc.fixturenames
    if "name" in asked and "scheme" in asked:
        metafunc.parametrize(("scheme", "name"), made)
    elif "name" in asked:
        metafunc.parametrize("name", [name for of, name in made if of == "file"])
    elif "scheme" in asked:
        metafunc.parametrize("scheme", SCHEMES)
    for other, values in {"theme": list(THEMES), "width": PHONES}.items():
        if other in asked:
            metafunc.parametrize(other, values)


@pytest.fixture(scope="session")
def site(absent) -> Path:
    """The folder of the rendered site."""
    if not (HTML / "index.html").exists():
        absent("there is no site in build/html: run python tools/book.py book first")
    return HTML


@pytest.fixture(scope="session")
def server(site) -> Iterator[str]:
    """The address of a server on loopback that serves the site."""
    with served(site, Quiet) as address:
        yield address


@pytest.fixture(scope="session")
def browser(site, absent) -> Iterator[Browser]:
    """The system's Chromium, one for all tests."""
    found = find_browser()
    if found is None:
        absent("no browser: neither Chromium nor Chrome nor Edge is on the PATH or in its usual place")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=found, args=FLAGS)


@pytest.fixture(scope="session")
def addresses(site, server) -> dict[str, str]:
    """Where the site begins, opened as files and served."""
    return {"file": site.resolve().as_uri(), "http": server}


@pytest.fixture(scope="session")
def open_tab(browser, addresses) -> Callable[..., Tab]:
    """Open a page: `open_tab("file", "book/index.html")`. Requests to other hosts are noted and refused."""

    def open_tab(scheme: str, name: str, **options) -> Tab:
        context = browser.new_context(**{"reduced_motion": "reduce"} | options)
        tab = Tab(context.new_page())
        listen(context, tab, addresses[scheme])
        tab.page.goto(f"{addresses[scheme]}/{name}")
        tab.page.evaluate("Promise.all([window.MathJax?.startup?.promise, document.fonts.ready])")
        return tab

    return open_tab


@pytest.fixture(scope="session")
def visit(open_tab) -> Callable[[str, str], Visit]:
    """Visit a page once for all tests: `visit("file", "book/index.html")`; a file is looked at in full."""

    @functools.cache
    def visit(scheme: str, name: str) -> Visit:
        tab = open_tab(scheme, name)
        noted = {"foreign": tab.foreign[:], "failed": tab.failed[:], "errors": tab.errors[:]}
        found = replace(look_at(tab) if scheme == "file" else Visit(), **noted)
        tab.page.context.close()
        return found

    return visit


@pytest.fixture(autouse=True)
def closed(request) -> Iterator[None]:
    """What a test opens is closed after it; what is open for its whole module stays."""
    running = request.getfixturevalue("browser") if "browser" in request.fixturenames else None
    before = running.contexts if running else []
    yield
    for context in running.contexts if running else []:
        if context not in before:
            context.close()
