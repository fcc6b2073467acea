"""How the site looks and leads: text, cards, claims, colors, the panels of a phone, the menu."""

import json
import re

import pytest
from playwright.sync_api import Page, expect
from site_visits import PHONE, PHONES, opened, style

from website import downloads

pytestmark = pytest.mark.site

CHAPTER = "notebooks/13_decoding.html"


chapter = opened(CHAPTER, scope="module", viewport={"width": 1440, "height": 900})


on_phone = opened(CHAPTER, **PHONE)


# --- The column and the cards.

LINES = """() => {
  const zero = document.createElement("span");
  zero.textContent = "0".repeat(100);
  document.querySelector("article p").append(zero);
  const most = zero.getBoundingClientRect().width * 0.7;
  zero.remove();
  const long = [...document.querySelectorAll("article section > :is(p, ul, ol)")];
  return [long.length, long.filter(text => text.getBoundingClientRect().width > most + 1).length];
}"""


def test_a_line_of_text_has_at_most_seventy_characters(chapter):
    count, long = chapter.evaluate(LINES)
    assert count > 30 and long == 0


def test_code_and_figures_may_be_wider_than_the_text(chapter):
    text = max(p.bounding_box()["width"] for p in chapter.locator("article section > p").all()[:10])
    code = chapter.locator("article div.cell:visible > .cell_input").first.bounding_box()["width"]
    assert code > text + 40


CARDS = """() => [...document.querySelectorAll("article div.cell:has(> .cell_input + .cell_output)")]
  .filter(cell => cell.checkVisibility()).map(cell => {
    const box = element => element.getBoundingClientRect(), [code, output] = cell.children;
    return {frame: getComputedStyle(cell).borderTopWidth, gap: box(output).top - box(code).bottom,
      wider: Math.abs(box(output).width - box(code).width), inner: getComputedStyle(code).borderTopWidth};
  })"""


def test_code_and_its_output_are_one_card(chapter):
    cards = chapter.evaluate(CARDS)
    assert len(cards) > 5
    for card in cards:
        assert card["frame"] == "1px" and card["inner"] == "0px"
        assert abs(card["gap"]) < 1.5 and card["wider"] < 1.5


def test_a_claim_is_a_sentence_and_not_code(chapter):
    claims = chapter.locator("article .claim")
    assert claims.count() > 5
    first = claims.first
    assert style(first, "fontFamily") == style(chapter.locator("article section > p").first, "fontFamily")
    assert style(first, "borderLeftWidth") == "3px"
    assert style(first.locator(".claim-mark"), "color") != style(first, "color")
    assert style(first, "backgroundColor") != "rgba(0, 0, 0, 0)"
    assert "✓" not in "".join(chapter.locator("article .cell_output pre").all_inner_texts())


COLORS = """() => {
  const saturated = color => {
    const [r, g, b] = color.match(/[\\d.]+/g).map(Number);
    const most = Math.max(r, g, b), least = Math.min(r, g, b);
    if (most - least < 40) return null;
    const hue = most === r ? (g - b) / (most - least) : most === g ? 2 + (b - r) / (most - least)
      : 4 + (r - g) / (most - least);
    return Math.round((hue * 60 + 360) % 360);
  };
  const texts = document.querySelectorAll("main a:not(.mt-source), main p code, nav a, #pst-back-to-top");
  const hues = [...texts].map(text => saturated(getComputedStyle(text).color));
  return [...new Set(hues.filter(hue => hue !== null))];
}"""


@pytest.mark.parametrize("theme_now", ["light", "dark"])
def test_what_can_be_followed_is_of_one_color(chapter, theme_now):
    """Hues in degrees: links, words of code in the text, the menus."""
    chapter.evaluate("theme => document.documentElement.dataset.theme = theme", theme_now)
    hues = chapter.evaluate(COLORS)
    chapter.evaluate("document.documentElement.dataset.theme = 'light'")
    assert hues and max(hues) - min(hues) <= 12, hues


def test_comments_step_back_in_the_dark(chapter):
    chapter.evaluate("document.documentElement.dataset.theme = 'dark'")
    comment, word = chapter.locator(".highlight .c1").first, chapter.locator(".highlight pre").first
    assert brightness(style(comment, "color")) < brightness(style(word, "color"))
    chapter.evaluate("document.documentElement.dataset.theme = 'light'")


def brightness(color: str) -> float:
    return sum(map(float, re.findall(r"[\d.]+", color)[:3]))


START = """element => {
  const range = document.createRange();
  range.selectNodeContents(element);
  return range.getBoundingClientRect().left;
}"""


def test_where_a_link_led_there_is_a_rule_on_the_left(chapter):
    chapter.goto(chapter.url.partition("#")[0] + "#temperature")
    heading = chapter.locator("#temperature > h3, #temperature > h2").first
    assert style(heading, "backgroundColor") == "rgba(0, 0, 0, 0)"
    assert style(heading, "borderLeftWidth") == "3px" and style(heading, "borderTopColor") != style(
        heading, "borderLeftColor"
    )
    text = chapter.locator("#temperature > p").first
    assert heading.evaluate(START) == pytest.approx(text.evaluate(START), abs=1), "nothing moves aside"


def test_a_long_page_shows_how_far_it_is_read(chapter):
    line = chapter.locator(".reading-progress")
    shares = []
    for part in (0, 0.5, 1):
        chapter.evaluate(
            "part => scrollTo({top: document.body.scrollHeight * part, behavior: 'instant'})", part
        )
        chapter.wait_for_timeout(100)
        shares.append(line.bounding_box()["width"] / 1440)
    assert shares[0] < 0.01 and 0.4 < shares[1] < 0.6 and shares[2] > 0.98


@pytest.mark.parametrize(("page", "least"), [("book/index.html", 3), (CHAPTER, 8)])
@pytest.mark.parametrize("screen", [1280, 1920])
def test_the_right_column_lists_the_sections(open_tab, page, least, screen):
    tab = open_tab("file", page, viewport={"width": screen, "height": 900})
    contents = tab.page.locator("#pst-secondary-sidebar nav")
    expect(contents).to_be_visible()
    text = tab.page.locator("article").bounding_box()
    assert contents.bounding_box()["x"] >= text["x"] + text["width"]
    assert contents.get_by_role("link").count() >= least


# --- A phone.


def test_the_menu_opens_at_the_current_chapter_and_closes_by_a_button(on_phone):
    on_phone.locator("button.primary-toggle").tap()
    panel = on_phone.locator("dialog#pst-primary-sidebar-modal")
    expect(panel).to_be_visible()
    expect(panel.locator("li.current > a.current").last).to_be_in_viewport()
    close = panel.get_by_role("button", name="Close")
    box = close.bounding_box()
    assert min(box["width"], box["height"]) >= 44
    close.tap()
    expect(panel).to_be_hidden()


def test_the_contents_panel_has_a_button_that_closes_it(on_phone):
    on_phone.locator("button.secondary-toggle").tap()
    panel = on_phone.locator("dialog#pst-secondary-sidebar-modal")
    panel.get_by_role("button", name="Close").tap()
    expect(panel).to_be_hidden()


OLD_BROWSER = """const supports = CSS.supports.bind(CSS);
CSS.supports = (...asked) => !/timeline/.test(asked.join()) && supports(...asked);"""


FADES = """boxes => boxes.filter(box => box.checkVisibility())
  .map(box => [box.scrollWidth > box.clientWidth + 1, box.classList.contains('goes-on')])"""


def test_an_edge_fades_in_browsers_that_cannot_tell_by_themselves(open_tab):
    tab = open_tab("file", CHAPTER, **PHONE)
    tab.page.add_init_script(OLD_BROWSER)
    tab.page.reload()
    boxes = tab.page.locator("article .cell_input .highlight pre")
    tab.page.wait_for_function("document.querySelector('article .goes-on')")
    seen = boxes.evaluate_all(FADES)
    assert any(more for more, _ in seen) and all(more == fades for more, fades in seen)
    first = tab.page.locator("article .cell_input .goes-on").first
    first.evaluate("box => { box.id = 'scrolled'; box.scrollLeft = box.scrollWidth; }")
    expect(tab.page.locator("#scrolled")).not_to_have_class(re.compile("goes-on"))
    assert tab.errors == []


# --- Nothing moves.

SHIFTS = """async () => {
  let sum = 0;
  const add = list => list.getEntries().forEach(shift => (sum += shift.hadRecentInput ? 0 : shift.value));
  new PerformanceObserver(add).observe({type: "layout-shift", buffered: true});
  for (let top = 0; top < document.body.scrollHeight; top += innerHeight) {
    scrollTo({top, behavior: "instant"});
    for (let i = 0; i < 6; i++) await new Promise(requestAnimationFrame);
  }
  await new Promise(done => setTimeout(done, 300));
  return sum;
}"""


@pytest.mark.parametrize("page", ["attention_view", "07_attention_from_scratch", "13_decoding"])
@pytest.mark.parametrize("screen", [1440, PHONES[0]])
def test_nothing_moves_while_a_page_is_read(open_tab, page, screen):
    tab = open_tab("file", f"notebooks/{page}.html", viewport={"width": screen, "height": 900})
    assert tab.page.evaluate(SHIFTS) < 0.1


def test_a_page_that_is_loaded_anew_shows_the_same_section(open_tab):
    tab = open_tab("file", "notebooks/attention_view.html", viewport={"width": 1440, "height": 900})
    heading = tab.page.locator("#what-a-view-shows-and-what-it-does-not > h2")
    heading.evaluate("heading => heading.scrollIntoView({behavior: 'instant'})")
    tab.page.wait_for_timeout(500)
    tab.page.reload()
    tab.page.wait_for_timeout(1000)
    expect(heading).to_be_in_viewport()


# --- The menu of downloads.


def entries(page: Page) -> dict[str, str]:
    page.locator(".dropdown-download-buttons > button").click()
    items = page.locator(".dropdown-download-buttons .dropdown-menu > li > *")
    return {item.inner_text().strip(): item.get_attribute("href") or "" for item in items.all()}


def test_the_menu_offers_this_notebook(chapter, site):
    found = entries(chapter)
    notebook = (site / CHAPTER).parent / found["This notebook (.ipynb)"]
    assert json.loads(notebook.read_text(encoding="utf-8"))["nbformat"] == 4
    assert "Print this page" in found


def test_the_menu_offers_the_whole_book_where_there_is_one(open_tab):
    tab = open_tab("file", "book/glossary.html")
    offered = {one["name"]: one["address"] for one in downloads.offered()}
    found = entries(tab.page)
    assert {name: found[name].endswith(offered[name].lstrip("./")) for name in offered} == dict.fromkeys(
        offered, True
    )
    tab = open_tab("file", "book/glossary.html")
    listed = [{"name": "The book as PDF", "address": "../book.pdf"}]
    tab.page.add_init_script(f"window.bookDownloads = {json.dumps(listed)}")
    tab.page.route("**/downloads.js*", lambda route: route.fulfill(body="", content_type="text/javascript"))
    tab.page.reload()
    address = entries(tab.page)["The book as PDF"]
    assert address.endswith("/build/book.pdf"), "beside the folder of the site"
    assert tab.foreign == tab.errors == []
