"""Searching, as readers do it: what is found, in which order, how it is shown, and where it leads."""

import re
from urllib.parse import parse_qs, unquote, urlparse

import pytest
from playwright.sync_api import Locator, Page, expect
from search_queries import ASKED, MORE
from site_visits import AXE, THEMES, Tab

from website import search_index

pytestmark = pytest.mark.site


def field(page: Page) -> Locator:
    return page.locator("input[type=search]").locator("visible=true").first


def open_search(tab: Tab) -> Locator:
    tab.page.locator("button.search-button__button").locator("visible=true").first.click()
    return field(tab.page)


def results(page: Page, group: str = "In the book") -> Locator:
    return page.get_by_role("list", name=group).get_by_role("listitem")


def places(found: Locator) -> list[str]:
    """Page and anchor of each result."""
    links = found.locator("a").evaluate_all("links => links.map(link => link.href)")
    addresses = [urlparse(link) for link in links]
    root = re.compile(r".*?((?:notebooks|book|source|benchmarks)/\w+)\.html")
    return [root.fullmatch(unquote(a.path))[1] + (f"#{a.fragment}" if a.fragment else "") for a in addresses]


@pytest.fixture(scope="module")
def asked(open_tab):
    """The first page, with its search open."""
    tab = open_tab("file", "book/index.html")
    open_search(tab)
    yield tab
    tab.close()


def ask(tab: Tab, query: str) -> None:
    field(tab.page).fill("")
    expect(tab.page.locator(".search-status")).to_have_text("")
    field(tab.page).fill(query)
    expect(tab.page.locator(".search-status")).to_have_text(re.compile("found"))


def rank(tab: Tab, query: str, wanted: list[str]) -> int:
    """How far down the first right answer is; 99 if it is not there."""
    ask(tab, query)
    found = [short(place) for place in places(results(tab.page))]
    return next((i for i, place in enumerate(found, 1) if place in wanted), 99)


def short(place: str) -> str:
    """As in `search_queries`: the number of a chapter, or the name of a page, and an anchor."""
    page, _, anchor = place.rpartition("/")[2].partition("#")
    return f"{page[:2] if page[:2].isdigit() else page} {anchor}".strip()


@pytest.fixture(scope="module")
def ranks(asked) -> dict[str, int]:
    return {query: rank(asked, query, wanted) for query, wanted in (ASKED | MORE).items()}


@pytest.mark.parametrize("query", ASKED | MORE)
def test_a_query_finds_its_section(ranks, query):
    assert ranks[query] <= 3


@pytest.mark.parametrize(("queries", "share"), [(ASKED, 38 / 44), (MORE, 25 / 32)])
def test_most_answers_come_first(ranks, queries, share):
    """The bar is what was asked of the search; it has a little more."""
    later = [query for query in queries if ranks[query] > 1]
    assert len(later) <= (1 - share) * len(queries), later


def test_chapters_come_before_listings(asked):
    ask(asked, "BytePairTokenizer")
    lists = asked.page.locator(".search-results ol")
    assert lists.count() == 2
    assert not any(place.startswith("source/") for place in places(lists.nth(0).locator("li")))
    listings = places(lists.nth(1).locator("li"))
    assert "source/tokenization#class-byte-pair-bytepairtokenizer" in listings


def test_nonsense_finds_nothing_and_says_so(asked):
    ask(asked, "qzxvwk")
    expect(asked.page.locator(".search-status")).to_have_text("Nothing found for “qzxvwk”.")
    assert asked.page.locator(".search-results li").count() == 0


def test_what_a_reader_types_is_never_markup(asked):
    ask(asked, "<img src=x onerror=alert(1)> qzxvwk")
    assert asked.page.locator(".search-results img").count() == 0


def test_every_synonym_and_every_german_term_finds_something(asked):
    text = search_index.SYNONYMS.read_text(encoding="utf-8")
    german = [word for word, _ in search_index.german(text)]
    assert len(german) >= 30
    for name in [*(names[0] for names in search_index.synonyms(text)), *german]:
        ask(asked, name)
        assert results(asked.page).count() > 0, name


def test_excerpts_mark_what_was_found(asked):
    ask(asked, "exposure bias")
    first = results(asked.page).first
    marks = [mark.lower() for mark in first.locator("mark").all_inner_texts()]
    assert {"exposure", "bias"} <= set(marks)
    excerpt = first.locator("p").inner_text()
    assert 60 < len(excerpt) < 260


@pytest.mark.parametrize("screen", [1280, 390])
def test_a_result_leads_to_its_section_where_matches_are_marked(open_tab, scheme, screen):
    tab = open_tab(scheme, "book/index.html", viewport={"width": screen, "height": 800})
    if screen < 1000:
        tab.page.keyboard.press("Control+k")  # the button is in the panel that opens from the side
        field(tab.page).fill("exposure bias")
    else:
        open_search(tab).fill("exposure bias")
    link = results(tab.page).locator("a[href*='09_machine_translation']").first
    link.click()
    tab.page.wait_for_url("**/09_machine_translation.html*")
    assert parse_qs(urlparse(tab.page.url).query)["highlight"] == ["exposure bias"]
    section = tab.page.locator("section#exposure-bias")
    mark = section.locator("p mark").first
    expect(mark).to_be_in_viewport()
    assert {text.lower() for text in section.locator("mark").all_inner_texts()} == {"exposure", "bias"}
    assert tab.page.locator("mark").count() == section.locator("mark").count(), "marked in its section only"
    tab.page.keyboard.press("Escape")
    expect(tab.page.locator("mark")).to_have_count(0)
    tab.close()


def test_a_match_in_folded_code_is_unfolded(open_tab):
    """A word that the section has in folded code only."""
    name, section = "notebooks/03_tokenization.html", "section#where-do-the-probabilities-come-from"
    tab = open_tab("file", name)
    assert "pairwise" not in tab.page.locator(section).inner_text()
    tab.page.goto(tab.page.url + "?highlight=pairwise#where-do-the-probabilities-come-from")
    expect(tab.page.locator(f"{section} mark").first).to_be_in_viewport()
    assert {mark.inner_text() for mark in tab.page.locator("mark").all()} == {"pairwise"}


def test_the_keyboard_does_it_all(open_tab, scheme):
    tab = open_tab(scheme, "book/index.html")
    keys = tab.page.keyboard
    keys.press("Control+k")
    keys.type("greedy")
    expect(results(tab.page).first).to_be_visible()
    for key, focused in [("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0)]:
        keys.press(key)
        expect(tab.page.locator(".search-results a").nth(focused)).to_be_focused()
    keys.press("ArrowUp")
    expect(field(tab.page)).to_be_focused()
    tab.page.get_by_role("link", name=re.compile(r"^and \d+ more")).first.press("Enter")
    tab.page.wait_for_url("**/search.html?q=greedy")
    expect(field(tab.page)).to_have_value("greedy")
    expect(results(tab.page).first).to_be_visible()
    found = places(results(tab.page))
    field(tab.page).fill("perplexity")
    keys.press("Enter")
    expect(tab.page.locator(".search-results mark").first).to_have_text(re.compile("perplexity", re.I))
    assert tab.page.url.endswith("?q=perplexity") and places(results(tab.page)) != found
    tab.close()


@pytest.mark.parametrize("wait", [True, False])
def test_enter_opens_the_first_result(open_tab, wait):
    """Also for those who type and press Enter before they see anything."""
    tab = open_tab("file", "book/index.html")
    open_search(tab).press_sequentially("exposure bias")
    if wait:
        expect(results(tab.page).first).to_be_visible()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/09_machine_translation.html*#exposure-bias")


def test_in_the_dark_the_results_have_an_edge(asked):
    ask(asked, "greedy")
    asked.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    panel = asked.page.locator("#pst-search-dialog .search-results")
    page = asked.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert panel.evaluate("panel => getComputedStyle(panel).backgroundColor") != page
    assert panel.evaluate("panel => getComputedStyle(panel).borderTopWidth") == "1px"
    asked.page.evaluate("document.documentElement.dataset.theme = 'light'")


def test_nothing_of_the_search_is_loaded_before_it_is_used(open_tab):
    tab = open_tab("file", "book/index.html")
    assert tab.page.evaluate("typeof MiniSearch + typeof bookIndex") == "undefined" * 2
    open_search(tab).fill("greedy")
    expect(results(tab.page).first).to_be_visible()


def test_a_search_without_its_index_says_so(open_tab):
    tab = open_tab("file", "book/index.html")
    tab.page.route("**/search_index.js", lambda route: route.abort())
    open_search(tab).fill("greedy")
    expect(tab.page.locator(".search-status")).to_contain_text("could not be loaded")


@pytest.mark.parametrize("screen", [1280, 390])
@pytest.mark.parametrize("place", ["dialog", "page"])
def test_results_can_be_read_by_all(open_tab, place, screen):
    """On a phone and a desktop, in light and dark, by a screen reader."""
    name = "book/index.html" if place == "dialog" else "search.html?q=byte+pair"
    tab = open_tab("file", name, viewport={"width": screen, "height": 800})
    if place == "dialog":
        tab.page.keyboard.press("Control+k")
        field(tab.page).fill("byte pair")
    expect(results(tab.page).first).to_be_visible()
    assert field(tab.page).get_attribute("aria-label") or tab.page.get_by_label("Search").count()
    wide = "document.querySelector('.search-results:has(li)')"
    assert tab.page.evaluate(f"{wide}.scrollWidth - {wide}.clientWidth") <= 0
    assert tab.page.evaluate("document.scrollingElement.scrollWidth") <= screen
    tab.page.add_script_tag(path=AXE)
    for theme in THEMES:
        tab.page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        found = tab.page.evaluate("async () => (await axe.run('.search-results:has(li)')).violations")
        assert [violation["id"] for violation in found] == []
