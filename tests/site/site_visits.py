"""Opening pages of the rendered site, and what is looked at on each."""

import functools
import http.server
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, Page

from paths import HTML, NPM

AXE = NPM / "node_modules" / "axe-core" / "axe.min.js"
# The rules of axe-core that are asked: all of them; in the dark only those on colors, the rest is the same.
THEMES = {"light": None, "dark": ["color-contrast", "link-in-text-block"]}
PHONES = (390, 360)  # CSS pixels: a common phone, and a narrow one
PHONE = {"viewport": {"width": PHONES[0], "height": 800}, "has_touch": True, "is_mobile": True}
NO_SITE = "(no site)"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and says nothing of it."""

    def log_message(self, *_):
        pass


@contextmanager
def served(folder: Path, handler: type[Quiet]) -> Iterator[str]:
    """Serve a folder on loopback; yields the address."""
    serve = functools.partial(handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def style(place: Locator, name: str) -> str:
    """The computed value of a property of an element's style."""
    return place.evaluate("(element, name) => getComputedStyle(element)[name]", name)


def rows(place: Locator) -> list[int]:
    """Which tokens' lines are drawn, in a model or neuron view."""
    return place.locator(".attn-line-group").evaluate_all(
        "groups => groups.flatMap((group, i) => +getComputedStyle(group).opacity ? [i] : [])"
    )


def page_names() -> list[str]:
    """Every page, relative to the site; index.html only sends its reader on and has a test of its own."""
    pages = {path.relative_to(HTML) for path in HTML.rglob("*.html")} - {Path("index.html")}
    return sorted(path.as_posix() for path in pages if path.parts[0] != "_static") or [NO_SITE]


def kind(name: str) -> str:
    """What a page is one of: the pages of a kind come from one template."""
    return name.rpartition("/")[0]


def visits(everything: bool) -> list[tuple[str, str]]:
    """The visits to be made: each a scheme and a page.

    The first page of each kind, and every page of the book, is opened as a file and looked at in full; of the
    listings of source code every fourth. Served over HTTP is the first page of each kind.

    Args:
        everything: visit every page both ways, as `make test-full` does.
    """
    names = page_names()
    same = {name: [n for n in names if kind(n) == kind(name)].index(name) for name in names}
    files = [n for n in names if everything or kind(n) != "source" or same[n] % 4 == 0]
    served = [n for n in names if everything or same[n] == 0]
    return [*(("file", name) for name in files), *(("http", name) for name in served)]


@dataclass
class Tab:
    """A page in a fresh browser context, and what it asked for and complained about."""

    page: Page
    foreign: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def close(self) -> None:
        """Close a tab that asked no other host for anything, lacked nothing and complained about nothing."""
        assert self.foreign == self.failed == self.errors == [], (self.foreign, self.failed, self.errors)
        self.page.context.close()


def opened(name: str, scope: str = "function", see: Callable = attrgetter("page"), **options):
    """A fixture: a page that is opened as a file, and in the end has nothing to complain about.

    Args:
        name: the page.
        scope: how long it stays open.
        see: makes of the tab what the tests get.
        options: of the browser's context.
    """

    @pytest.fixture(scope=scope)
    def opened(open_tab) -> Iterator:
        tab = open_tab("file", name, **options)
        yield see(tab)
        tab.close()

    return opened


def listen(context: BrowserContext, tab: Tab, address: str) -> None:
    """Note what a tab asks for and complains about, and refuse what is not at `address`."""
    own = re.compile(rf"^({re.escape(address)}/|data:|blob:)")

    def note_failure(request):
        if request.failure != "net::ERR_ABORTED":  # the reader went on to another page
            tab.failed.append(f"{request.url}: {request.failure}")

    def note_status(response):
        if response.status >= 400:
            tab.failed.append(f"{response.url}: {response.status}")

    def note_message(message):
        if message.type in ("error", "warning"):
            tab.errors.append(message.text)

    context.route(lambda url: not own.match(url), lambda route: route.abort())
    context.on("request", lambda request: own.match(request.url) or tab.foreign.append(request.url))
    context.on("requestfailed", note_failure)
    context.on("response", note_status)
    tab.page.on("pageerror", lambda error: tab.errors.append(str(error)))
    tab.page.on("console", note_message)


class Fingers:
    """Touches of a page."""

    def __init__(self, page: Page):
        self.session = page.context.new_cdp_session(page)

    def move(self, *paths: tuple[tuple[float, float], tuple[float, float]], steps: int = 8) -> None:
        """Put fingers down and move each from its first place to its second."""
        for step in range(steps + 1):
            points = [
                {"x": x + (to_x - x) * step / steps, "y": y + (to_y - y) * step / steps, "id": i}
                for i, ((x, y), (to_x, to_y)) in enumerate(paths)
            ]
            self.send("touchMove" if step else "touchStart", points)
        self.send("touchEnd", [])

    def send(self, kind: str, points: list[dict]) -> None:
        self.session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


@dataclass
class Visit:
    """What a visit to one page found."""

    foreign: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    undrawn_views: list[str] = field(default_factory=list)
    images_without_alt: list[str] = field(default_factory=list)
    unset_math: list[str] = field(default_factory=list)
    icons: list[list[str]] = field(default_factory=list)  # their class, and what gives them a shape
    too_wide: dict[int, list[str]] = field(default_factory=dict)
    violations: dict[str, list[dict]] = field(default_factory=dict)
    figures: dict[str | int, list[dict]] = field(default_factory=dict)  # by theme, and by width of a phone


def look_at(tab: Tab) -> Visit:
    """Look at a page as a screen reader, a phone and a reader in the dark would, everything open."""
    page, found = tab.page, Visit()
    page.add_style_tag(content="* { transition: none !important; animation: none !important }")
    page.evaluate("document.querySelectorAll('details').forEach(folded => folded.open = true)")
    page.evaluate("document.querySelectorAll('.guess-note:not([hidden]) button').forEach(b => b.click())")
    page.evaluate(SEE_VIEWS)
    found.undrawn_views = page.evaluate(UNDRAWN_VIEWS)
    found.images_without_alt = page.evaluate(IMAGES_WITHOUT_ALT)
    found.unset_math = page.evaluate(UNSET_MATH)
    found.icons = page.evaluate(ICONS)
    page.add_script_tag(path=AXE)
    for theme, rules in THEMES.items():
        page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        found.violations[theme] = page.evaluate(RUN_AXE, rules)
        found.figures[theme] = page.evaluate(FIGURES)
    for width in PHONES:
        page.set_viewport_size({"width": width, "height": 800})
        found.too_wide[width] = page.evaluate(TOO_WIDE)
        found.figures[width] = page.evaluate(FIGURES)
    return found


# Views are drawn when they come into view.
SEE_VIEWS = """async () => {
  for (const view of document.querySelectorAll('[id^="bertviz-"]')) {
    view.scrollIntoView({behavior: 'instant'});
    for (let i = 0; i < 50 && !view.querySelector('svg line'); i++) await new Promise(requestAnimationFrame);
  }
  scrollTo({top: 0, behavior: 'instant'});
}"""
UNDRAWN_VIEWS = """() => [...document.querySelectorAll('[id^="bertviz-"]')]
  .filter(view => !view.querySelector('svg line')).map(view => view.id)"""
IMAGES_WITHOUT_ALT = """() => [...document.images].filter(image => !image.alt.trim())
  .map(image => image.outerHTML.slice(0, 200))"""
UNSET_MATH = """() => [...document.querySelectorAll('main .math')]
  .filter(math => !math.querySelector('mjx-container') || math.querySelector('mjx-merror'))
  .map(math => math.textContent)"""
ICONS = """() => [...document.querySelectorAll('i[class*="fa-"]')]
  .map(icon => [icon.className, getComputedStyle(icon).maskImage])"""
RUN_AXE = """async rules => (await axe.run({resultTypes: ['violations'], preload: false,
                                        ...(rules && {runOnly: rules})})).violations
  .filter(rule => ['serious', 'critical'].includes(rule.impact))
  .flatMap(({id, nodes}) => nodes.map(({target, html, failureSummary}) =>
    ({rule: id, where: target.join(' '), html: html.slice(0, 200), why: failureSummary})))"""
# Empty where the page does not scroll sideways; else what sticks out, unless it is inside a box that scrolls.
TOO_WIDE = """() => {
  const {scrollWidth, clientWidth} = document.scrollingElement;
  if (scrollWidth <= clientWidth) return [];
  const scrolls = element => element && element !== document.body
    && (getComputedStyle(element).overflowX !== 'visible' || scrolls(element.parentElement));
  const sticksOut = element => element.getBoundingClientRect().right > clientWidth + 1;
  const wide = [...document.querySelectorAll('main *')]
    .filter(element => sticksOut(element) && !scrolls(element.parentElement))
    .map(element => `${element.tagName}.${element.className}: ${element.textContent.trim().slice(0, 60)}`);
  return [`${scrollWidth} pixels in ${clientWidth}`, ...wide.slice(0, 8)];
}"""
# Of each figure that a code cell shows: its pictures that can be seen, and what paints a ground behind them.
FIGURES = """() => {
  const paint = element => getComputedStyle(element).backgroundColor;
  const page = paint(document.body);
  const grounds = element => !element || element === document.body ? []
    : [paint(element), ...grounds(element.parentElement)].filter(c => c !== page && c !== 'rgba(0, 0, 0, 0)');
  return [...document.querySelectorAll('main .cell_output figure:has(img)')].map(figure => {
    const seen = [...figure.querySelectorAll('img')].filter(image => image.checkVisibility());
    return {
      name: figure.id,
      caption: figure.querySelector('figcaption')?.checkVisibility() ? figure.innerText : '',
      seen: seen.map(image => ({
        file: decodeURIComponent(new URL(image.src).pathname), alt: image.alt,
        width: image.getBoundingClientRect().width, filter: getComputedStyle(image).filter,
      })),
      grounds: seen.flatMap(grounds),
    };
  });
}"""
