"""What a reader does: search, switch the theme, follow links, and use an attention view."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlparse

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Locator, Page, expect
from site_visits import Tab, page_names

pytestmark = pytest.mark.site


def test_the_first_page_leads_to_the_book(open_tab, addresses, scheme):
    tab = open_tab(scheme, "book/glossary.html")
    tab.page.goto(f"{addresses[scheme]}/index.html")
    tab.page.wait_for_url("**/book/index.html")
    expect(tab.page.locator("main h1").last).to_contain_text("Transformers")


@pytest.mark.parametrize(
    ("term", "page"),
    [("WordPiece", "notebooks/03_tokenization"), ("attention view", "notebooks/attention_view")],
)
def test_search_finds_a_term(open_tab, scheme, term, page):
    tab = open_tab(scheme, "book/index.html")
    tab.page.locator("button.search-button__button").locator("visible=true").first.click()
    field = tab.page.locator("input[type=search]").locator("visible=true").first
    field.fill(term)
    field.press("Enter")
    tab.page.wait_for_url("**/search.html?q=*")
    result = tab.page.locator(f"#search-results a[href*='{page}.html']").first
    expect(result).to_be_visible()
    result.click()
    tab.page.wait_for_url(f"**/{page}.html*")
    assert tab.foreign == tab.failed == tab.errors == []


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
    tab.page.reload()
    assert theme() == "dark"
    tab.page.goto(re.sub(r"index\.html$", "glossary.html", tab.page.url))
    assert theme() == "dark"


def test_maths_is_typeset(visit):
    """On a page that has some; that no page has any left over is tested with the pages."""
    found = visit("file", "notebooks/attention_view.html")
    assert found.num_maths > 0 and found.unset_maths == []


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


# --- The attention view. A line is a weight: from a token on the left to one on the right, coloured by head.


class View:
    """BertViz's head view on a page."""

    def __init__(self, tab: Tab):
        self.page: Page = tab.page
        self.root: Locator = tab.page.locator("[id^='bertviz-']").first
        self.root.scroll_into_view_if_needed()
        expect(self.root.locator("svg")).to_be_visible()
        self.menu = self.root.locator("select#layer")
        self.colours = self.root.locator("svg > g:last-child > rect")

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


@pytest.fixture
def view(open_tab) -> Iterator[View]:
    tab = open_tab("file", "notebooks/attention_view.html")
    view = View(tab)
    yield view
    assert tab.foreign == tab.failed == tab.errors == []
    tab.page.context.close()


def test_the_view_opens_with_the_head_and_layer_of_the_text(view):
    assert view.heads() == {1}
    assert view.menu.input_value() == "3"


def test_pointing_at_a_token_leaves_only_its_lines(view):
    before = view.lines()
    token = view.token("he")
    texts = view.root.locator("#left text").all_text_contents()
    token.hover()
    assert {left for _, left, _, _ in view.lines()} == {texts.index("he")}
    assert view.lines() == [line for line in before if line[1] == texts.index("he")]
    view.token("patrick", "right").hover()
    assert {right for _, _, right, _ in view.lines()} == {texts.index("patrick")}
    view.page.mouse.move(0, 0)
    assert view.lines() == before


def test_clicking_a_colour_box_switches_its_head(view):
    before = view.lines()
    assert view.colours.count() == 12
    view.colours.nth(0).click()
    assert view.heads() == {0, 1}
    view.colours.nth(0).click()
    assert view.lines() == before


def test_double_clicking_a_colour_box_leaves_only_its_head(view):
    view.colours.nth(5).dblclick()
    assert view.heads() == {5}


def test_the_layer_menu_changes_the_lines(view):
    before = view.lines()
    view.menu.select_option("0")
    assert view.lines() != before
    view.menu.select_option("3")
    assert view.lines() == before


def test_the_keyboard_reaches_the_layer_menu(view):
    before, layer = view.lines(), view.menu.input_value()
    view.page.evaluate("scrollTo(0, 0)")
    for _ in range(300):
        view.page.keyboard.press("Tab")
        if view.menu.evaluate("menu => menu === document.activeElement"):
            break
    expect(view.menu).to_be_focused()
    assert view.menu.get_attribute("aria-label")
    view.page.keyboard.press("ArrowUp")
    assert view.menu.input_value() == str(int(layer) - 1)
    assert view.lines() != before
