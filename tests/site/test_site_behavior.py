"""What a reader does: switch the theme, follow links, and use an attention view."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlparse

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Locator, Page, expect
from site_visits import Tab, page_names, rows

pytestmark = pytest.mark.site
VIEWS_PAGE = "notebooks/attention_view.html"


def test_the_first_page_leads_to_the_book(open_tab, addresses, scheme):
    tab = open_tab(scheme, "book/glossary.html")
    tab.page.goto(f"{addresses[scheme]}/index.html")
    tab.page.wait_for_url("**/book/index.html")
    expect(tab.page.locator("main h1").last).to_contain_text("Transformers")


def test_the_theme_switches_and_stays(open_tab, scheme):
    tab = open_tab(scheme, "book/index.html", color_scheme="light")

    def theme() -> str:
        return tab.page.evaluate("document.documentElement.dataset.theme")

    def paper() -> str:
        return tab.page.evaluate("getComputedStyle(document.body).backgroundColor")

    assert theme() == "light"
    light_paper = paper()
    button = tab.page.locator(".theme-switch-button").locator("visible=true").first
    for _ in range(3):  # light, dark and what the system prefers, in a circle
        if theme() != "dark":
            button.click()
    assert theme() == "dark" and paper() != light_paper
    tab.page.wait_for_timeout(500)  # the browser itself stores the choice a moment later
    tab.page.reload()
    assert theme() == "dark"
    tab.page.goto(re.sub(r"index\.html$", "glossary.html", tab.page.url))
    assert theme() == "dark"


def test_every_local_link_leads_somewhere(site):
    """Sphinx checks the links of the text; this also checks those of the theme and of raw HTML."""
    pages = {path: BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser") for path in pages_of(site)}
    anchors = {path: {tag["id"] for tag in soup.select("[id]")} for path, soup in pages.items()}
    wrong = set()
    for path, soup in pages.items():
        for link in {tag["href"] for tag in soup.select("a[href]")}:
            address, anchor = urldefrag(urljoin(path.as_uri(), link))
            target = Path(unquote(urlparse(address).path))
            if urlparse(address).scheme != "file" or anchor in ("", "top"):
                missing = urlparse(address).scheme == "file" and not target.is_file()
            else:
                missing = unquote(anchor) not in anchors.get(target, ())
            if missing:
                wrong.add((path.relative_to(site).as_posix(), link))
    assert sorted(wrong) == []


def pages_of(site: Path) -> list[Path]:
    return [(site / name).resolve() for name in [*page_names(), "index.html"]]


# --- The attention view. A line is a weight: from a token on the left to one on the right, colored by head.


class View:
    """BertViz's head view on a page: the first view, or that of another number."""

    def __init__(self, tab: Tab, number: int = 0):
        self.page: Page = tab.page
        self.root: Locator = tab.page.locator("[id^='bertviz-']").nth(number)
        # All at once: a view that is drawn on the way would push this one out of sight again.
        tab.page.evaluate("dispatchEvent(new Event('book:draw-all'))")
        self.root.scroll_into_view_if_needed()
        expect(self.root.locator("svg")).to_be_visible()
        self.menu = self.root.locator("select#layer")
        self.colors = self.root.locator("svg > g:last-child > rect")

    def lines(self) -> list[tuple[int, int, int, float]]:
        """Head, left token, right token and opacity of every line that can be seen."""
        found = self.root.locator("#attention line").evaluate_all(VISIBLE_LINES)
        return [tuple(line) for line in found]

    def heads(self) -> set[int]:
        return {head for head, *_ in self.lines()}

    def token(self, text: str, side: str = "left") -> Locator:
        return self.root.locator(f"#{side} text").get_by_text(text, exact=True).first


VISIBLE_LINES = """lines => lines
  .filter(line => getComputedStyle(line).visibility === 'visible' && +line.getAttribute('stroke-opacity') > 0)
  .map(line => [+line.closest('.headAttention').getAttribute('head-index'),
                +line.getAttribute('left-token-index'), +line.getAttribute('right-token-index'),
                +line.getAttribute('stroke-opacity')])"""


def test_the_keyboard_reaches_the_layer_menu(open_tab):
    tab = open_tab("file", VIEWS_PAGE)
    view = View(tab)
    before = view.lines()
    assert view.heads() == {2} and view.menu.input_value() == "5", "those of the text"
    view.page.evaluate("scrollTo(0, 0)")
    for _ in range(300):
        view.page.keyboard.press("Tab")
        if view.menu.evaluate("menu => menu === document.activeElement"):
            break
    expect(view.menu).to_be_focused()
    assert view.menu.get_attribute("aria-label")
    view.page.keyboard.press("ArrowUp")
    assert view.menu.input_value() == "4"
    assert view.lines() != before
    view.page.keyboard.press("ArrowDown")
    assert view.lines() == before
    tab.close()


# --- All three views of the page, by mouse and by finger.

HEAD, MODEL, NEURON = 0, 1, 2
MAX_VIEWS = 900_000  # bytes of all views in the page
NOT_DOUBLE = 600  # milliseconds after which another click is one of its own


class Hand:
    """Points and clicks, with a mouse or with a finger."""

    def __init__(self, tab: Tab, touches: bool):
        self.tab, self.touches = tab, touches

    def point_at(self, place: Locator) -> None:
        place.tap() if self.touches else place.hover()

    def leave(self) -> None:
        self.point_at(self.tab.page.locator("main h1").last)

    def click(self, place: Locator) -> None:
        place.tap() if self.touches else place.click()
        self.tab.page.wait_for_timeout(NOT_DOUBLE)

    def click_twice(self, place: Locator) -> None:
        box, touchscreen = place.bounding_box(), self.tab.page.touchscreen
        if not self.touches:
            place.dblclick()
        for _ in range(2 * self.touches):
            touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


@pytest.fixture(scope="module")
def tabs(open_tab) -> Iterator[dict[bool, Tab]]:
    """The page as a mouse sees it (False) and as a finger does (True)."""
    tabs = {touches: open_tab("file", VIEWS_PAGE, has_touch=touches) for touches in (False, True)}
    yield tabs
    for tab in tabs.values():
        tab.page.context.close()


@pytest.fixture(params=[False, True], ids=["mouse", "finger"])
def hand(tabs, request) -> Iterator[Hand]:
    tab = tabs[request.param]
    yield Hand(tab, request.param)
    assert tab.foreign == tab.failed == tab.errors == []


@pytest.fixture
def finger(tabs) -> Hand:
    return Hand(tabs[True], touches=True)


def part(hand: Hand, number: int, within: str = "") -> Locator:
    """A view of the page, or a part of it."""
    view = hand.tab.page.locator("[id^='bertviz-']").nth(number)
    view.scroll_into_view_if_needed()
    expect(view.locator("svg").first).to_be_attached()  # it is drawn when it comes into view
    return view.locator(within) if within else view


def token(place: Locator, text: str) -> Locator:
    """The first token with this text."""
    return place.locator("text").get_by_text(text, exact=True).first


def test_the_views_are_small(site):
    page = BeautifulSoup((site / VIEWS_PAGE).read_text(encoding="utf-8"), "html.parser")
    views = [cell for cell in page.select("div.cell") if cell.select("[id^='bertviz-']")]
    assert len(views) == 3
    assert sum(len(str(cell).encode()) for cell in views) < MAX_VIEWS


def test_the_head_view_reacts(hand):
    view = View(hand.tab, HEAD)
    texts = view.root.locator("#left text").all_text_contents()
    before = view.lines()
    place = texts.index("flies")
    hand.point_at(view.token("time", "right"))
    assert view.lines() == [line for line in before if line[2] == texts.index("time")]
    hand.point_at(view.token("flies"))
    assert view.lines() == [line for line in before if line[1] == place] != []
    hand.click(view.colors.nth(7))
    assert view.colors.count() == 12 and view.heads() == {2, 7}
    hand.click(view.colors.nth(7))
    hand.leave()
    assert view.lines() == before


def test_two_clicks_on_a_color_box_leave_only_its_head(hand):
    view = View(hand.tab, HEAD)
    expect(view.root.locator("svg")).to_have_css("touch-action", "manipulation")  # no zooming instead
    for head in (5, 1, 2):
        hand.click_twice(view.colors.nth(head))
        assert view.heads() == {head}


def test_the_model_view_opens_a_head(hand):
    layer, head, text = 5, 2, "flies"
    view = part(hand, MODEL)
    pictures = view.locator("svg > g:has(> .attn_background)")
    assert pictures.count() == 6 * 12
    clickable = pictures.nth(12 * layer + head).locator("> rect").last
    hand.click(clickable)
    expect(view.get_by_text(f"Layer {layer}, Head {head}")).to_be_visible()
    left = view.locator("g.detail").first
    texts = left.locator("text").all_text_contents()
    assert rows(view) == list(range(len(texts)))
    hand.point_at(token(left, text))
    assert rows(view) == [texts.index(text)]
    hand.click(clickable)
    assert view.locator(".detail").count() == 0


def test_the_neuron_view_opens_a_query(hand):
    view, text = part(hand, NEURON), "he"
    small, large = view.locator("#collapsed"), view.locator("#expanded")
    texts = small.locator("#leftText text").all_text_contents()
    i = texts.index(text)
    hand.point_at(token(small.locator("#leftText"), text))
    assert rows(small) == [i]
    hand.click(small.locator("#leftText rect:not(.highlight)").nth(i))  # the plus sign
    expect(large).to_have_css("visibility", "visible")
    scores = [math.exp(score) for score in large.locator(".dotproduct").evaluate_all(VALUES)]
    weights = large.locator("#rightText .highlight").evaluate_all(SHADES)
    assert weights == pytest.approx([score / sum(scores) for score in scores], abs=0.05)
    hand.point_at(token(large.locator("#leftText"), texts[0]))
    assert large.locator("#rightText .highlight").evaluate_all(SHADES) != weights
    hand.click(large.locator("#leftText rect:not(.highlight)").nth(0))  # the minus sign
    expect(large).to_have_css("visibility", "hidden")
    layer = view.locator("select#layer")
    assert layer.get_attribute("aria-label") == "layer"
    assert view.locator("select#att_head").get_attribute("aria-label") == "head"
    hand.leave()
    assert rows(small) == list(range(len(texts)))
    lines = small.locator("line").evaluate_all(OPACITIES)
    layer.select_option("0")
    assert small.locator("line").evaluate_all(OPACITIES) != lines


VALUES = "boxes => boxes.map(box => +box.dataset.value)"
SHADES = "marks => marks.map(mark => +getComputedStyle(mark).opacity)"
OPACITIES = "lines => lines.map(line => line.getAttribute('stroke-opacity') || line.style.strokeOpacity)"


@pytest.mark.parametrize(("kind", "number"), [("head", HEAD), ("neuron", NEURON)])
def test_a_finger_points_while_it_is_down(finger, kind, number):
    """Before it is lifted, there are no mouse events: the views would not notice."""
    view = part(finger, number)
    side, word = ("#left", "flies") if kind == "head" else ("#collapsed #leftText", "he")
    place = token(view.locator(side), word)
    session = finger.tab.page.context.new_cdp_session(finger.tab.page)

    def shown() -> int:
        if kind == "head":
            return len({left for _, left, _, _ in View(finger.tab, number).lines()})
        return len(rows(view.locator("#collapsed")))

    finger.leave()
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    point = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    everything = shown()
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
    assert shown() == 1 < everything
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    finger.leave()
    assert shown() == everything
