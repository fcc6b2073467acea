"""Reading a chapter: sizes and distances, folded parts, the system's colors, the contents panel, formulas."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Locator, expect
from site_visits import PHONE, PHONES, Quiet, opened, page_names, served, style

from paths import notebooks
from website.sphinx_extension import publishing

pytestmark = pytest.mark.site

CHAPTER = "notebooks/07_attention_from_scratch.html"
BOOK = "Transformers, Taken Apart"
FOLDED = {"hide-cell", "hide-input"}


chapter = opened(CHAPTER, scope="module")


on_phone = opened(CHAPTER, **PHONE)


def pixels(place: Locator, name: str) -> float:
    return float(style(place, name).removesuffix("px"))


# --- Every page.


def soup(site: Path, name: str, end: str = "</html>") -> BeautifulSoup:
    text = (site / name).read_text(encoding="utf-8").partition(end)[0]
    return BeautifulSoup(text, "html.parser")


def test_titles_and_descriptions_of_all_pages_differ(site):
    names = [*page_names(), "index.html"]
    titles, about = {}, {}
    for name in names:
        page = soup(site, name, end="</head>")
        titles[name] = page.title.get_text()
        (description,) = page.select("meta[name=description]")
        about[name] = description["content"]
        assert titles[name].count(BOOK) == 1
        assert 15 <= len(about[name]) <= publishing.LONGEST, name
    start = {"book/index.html", "index.html"}  # the second one leads to the first
    for texts in (titles, about):
        others = [text for name, text in texts.items() if name not in start]
        assert len(set(others)) == len(others)


@pytest.mark.parametrize("notebook", notebooks(), ids=lambda path: path.stem)
def test_figures_folded_cells_and_exercises_of_a_chapter(site, notebook):
    page = soup(site, f"notebooks/{notebook.stem}.html")
    number = re.match(r"\d+", notebook.stem)
    prefix = f"Figure {int(number[0])}." if number else "Figure "
    figures = [caption.get_text().strip() for caption in page.select(".caption-number")]
    assert figures == [f"{prefix}{i}" for i in range(1, len(figures) + 1)]
    folded = [title.get_text() for title in page.select("div.cell > details.fold > summary")]
    source = nbformat.read(notebook, 4).cells
    code = [cell for cell in source if cell.cell_type == "code" and FOLDED & {*cell.metadata.get("tags", ())}]
    assert folded == [cell.source.split("\n")[0].removeprefix("# @title ") for cell in code]
    exercises = [place["id"] for place in page.select("p.exercise")]
    if number:
        assert exercises == [f"exercise-{int(number[0])}-{i}" for i in range(1, len(exercises) + 1)]
        solutions = {f"Solution {int(number[0])}.{i}" for i in range(1, len(exercises) + 1)}
        assert solutions and solutions <= {*folded}
    text = page.select_one("article").get_text()
    time = r"(?:\d+ h)? ?(?:\d+ min)?"
    to_solve = rf"Exercises: {time}\. " if number else ""
    assert re.search(rf"Reading time: {time}\. {to_solve}Running time on two CPU cores: ", text)


@pytest.mark.parametrize("scheme_of_colors", ["light", "dark"])
def test_a_fold_looks_like_a_door(open_tab, scheme_of_colors):
    """Those of cells and those of Markdown: a frame, a triangle that turns, and a title that fits a phone."""
    tab = open_tab("file", CHAPTER, color_scheme=scheme_of_colors, **PHONE)
    for fold in (tab.page.locator("details.fold").last, tab.page.locator("details:not(.fold)").last):
        summary = fold.locator("summary")
        assert pixels(fold, "borderTopWidth") >= 1 and pixels(summary, "paddingLeft") >= 10
        assert style(summary, "backgroundColor") != style(tab.page.locator("body"), "backgroundColor")
        triangle = "summary => getComputedStyle(summary, '::before').rotate"
        assert summary.evaluate(triangle) == "none"
        summary.focus()
        tab.page.keyboard.press("Enter")
        expect(fold).to_have_attribute("open", "")
        assert summary.evaluate(triangle) == "90deg"
        assert style(summary, "outlineStyle") == "solid" and pixels(summary, "outlineWidth") >= 2
        box = fold.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONES[0]


# --- Sizes and distances.


def test_a_higher_heading_is_larger_and_no_lighter(chapter):
    headings = [chapter.locator(f"article {name}").first for name in ("h1", "h2", "h3")]
    sizes = [pixels(heading, "fontSize") for heading in headings]
    weights = [int(style(heading, "fontWeight")) for heading in headings]
    assert sizes[0] > 1.25 * sizes[1] and sizes[1] > 1.25 * sizes[2] > 1.25 * 16
    assert weights == sorted(weights, reverse=True)


def test_cells_of_tables_and_outputs_keep_their_distance(chapter):
    cell = chapter.locator("table.dataframe td").first
    assert pixels(cell, "paddingLeft") >= 10 and pixels(cell, "paddingRight") >= 10
    pairs = chapter.locator("div.cell_output > .output + .output")
    assert pairs.count() > 0
    assert min(pixels(pair, "marginTop") for pair in pairs.all()) >= 12


BRIGHT = """() => {
  const bright = color => {
    const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number);
    return a > 0.2 && (r + g + b) / 3 > 150;
  };
  const found = [];
  const framed = 'main .cell_output figure, main .cell_output [id^="bertviz-"], main .cell_input';
  for (const framedOne of document.querySelectorAll(framed)) {
    for (let box = framedOne; box.tagName !== 'MAIN'; box = box.parentElement) {
      const style = getComputedStyle(box);
      const lined = ['Top', 'Right', 'Bottom'].some(side =>
        parseFloat(style[`border${side}Width`]) && bright(style[`border${side}Color`]));
      if (lined || bright(style.backgroundColor)) found.push(`${box.tagName}.${box.className}`);
    }
  }
  return [document.querySelectorAll(framed).length, [...new Set(found)]];
}"""


@pytest.mark.parametrize("page", [CHAPTER, "notebooks/08_transformer_anatomy.html"])
def test_nothing_pale_frames_a_figure_a_view_or_code_in_the_dark(open_tab, page):
    tab = open_tab("file", page, color_scheme="dark")
    count, found = tab.page.evaluate(BRIGHT)
    assert count > 50 and found == []
    tab.page.evaluate("document.documentElement.dataset.theme = 'light'")
    assert tab.page.evaluate(BRIGHT)[1] != []  # there it is paper, so what is bright is seen


# --- Colors.


FIRST_COLORS = """() => {
  window.seen = [];
  new MutationObserver(() => {
    const theme = document.documentElement?.dataset.theme;
    if (document.body && window.seen.at(-1) !== theme) window.seen.push(theme);
  }).observe(document, {attributes: true, childList: true, subtree: true});
}"""


def test_nothing_flashes_when_the_system_has_changed_since_the_last_visit(open_tab):
    tab = open_tab("file", "book/index.html", color_scheme="light")
    tab.page.wait_for_timeout(300)
    assert tab.page.evaluate("localStorage.getItem('theme')") == "light"
    tab.page.emulate_media(color_scheme="dark")
    tab.page.add_init_script(f"({FIRST_COLORS})()")
    tab.page.reload()
    tab.page.wait_for_timeout(300)
    assert tab.page.evaluate("window.seen") == ["dark"]
    tab.page.emulate_media(color_scheme="light")  # and while the page is open
    tab.page.wait_for_function("document.documentElement.dataset.theme === 'light'")
    assert tab.errors == []


# --- On a phone.


def test_the_header_of_a_phone_has_the_name_of_the_book(on_phone):
    name = on_phone.locator("a.book-name")
    expect(name).to_be_visible()
    assert name.inner_text().replace("\n", " ") == BOOK
    box, buttons = name.bounding_box(), on_phone.locator(".header-article-items__end").bounding_box()
    assert box["x"] + box["width"] <= buttons["x"] and buttons["x"] + buttons["width"] <= PHONES[0]
    name.click()
    on_phone.wait_for_url("**/book/index.html")


EDGES = """async () => {
  const drawn = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const found = [];
  for (const box of document.querySelectorAll('article .cell_output .text_html, article .highlight pre')) {
    const edge = { more: box.scrollWidth - box.clientWidth };
    for (const [when, left] of [['start', 0], ['end', box.scrollWidth]]) {
      box.scrollLeft = left;
      await drawn();
      edge[when] = getComputedStyle(box).maskImage;
    }
    found.push(edge);
  }
  return found;
}"""


def test_an_edge_fades_where_there_is_more_on_the_right(on_phone):
    edges = on_phone.evaluate(EDGES)
    wide = [edge for edge in edges if edge["more"] > 0]
    assert 0 < len(wide) < len(edges)
    assert all("gradient" in edge["start"] for edge in wide)
    assert all(edge["start"] == "none" for edge in edges if edge["more"] == 0)
    assert {edge["end"] for edge in edges} == {"none"}


def test_the_side_bar_has_the_name_of_the_book(chapter):
    expect(chapter.locator("a.book-name")).to_be_hidden()
    home = chapter.locator(".bd-sidebar-primary").get_by_role("link", name=f"Start page of {BOOK}")
    expect(home).to_contain_text(BOOK)


def test_the_contents_panel_closes_when_an_entry_is_tapped(on_phone):
    on_phone.locator("button.secondary-toggle").tap()
    panel = on_phone.locator("dialog#pst-secondary-sidebar-modal")
    expect(panel).to_be_visible()
    panel.get_by_role("link", name="Cross-attention").tap()
    expect(panel).to_be_hidden()
    assert on_phone.url.endswith("#cross-attention")
    heading = on_phone.locator("#cross-attention h2")
    expect(heading).to_be_focused()
    expect(heading).to_be_in_viewport()
    assert heading.bounding_box()["y"] > on_phone.locator(".bd-header-article").bounding_box()["height"] - 1


# --- Exercises, formulas.


def test_the_link_to_an_exercise_shows_when_it_is_reached(chapter):
    link = chapter.locator("#exercise-7-1 .exercise-link")
    assert style(link, "opacity") == "0"
    chapter.locator("#exercise-7-1").hover()
    expect(link).to_have_css("opacity", "1")
    chapter.mouse.move(0, 0)
    chapter.locator("#exercises").evaluate("section => { section.tabIndex = -1; section.focus() }")
    chapter.keyboard.press("Tab")
    expect(link).to_be_focused()
    expect(link).to_have_css("opacity", "1")
    chapter.keyboard.press("Enter")
    assert chapter.url.endswith("#exercise-7-1")
    expect(chapter.locator("#exercise-7-1")).to_be_in_viewport()


STOPS = "formulas => formulas.filter(formula => formula.tabIndex >= 0).length"
WIDE = """formulas => formulas.filter(
  one => one.scrollWidth > one.clientWidth + 1 && one.closest('div.math')).length"""


@pytest.mark.parametrize("across", [1280, PHONES[1]])
def test_formulas_are_no_stops_for_the_tab_key_unless_they_scroll(open_tab, across):
    tab = open_tab("file", CHAPTER, viewport={"width": across, "height": 800})
    formulas = tab.page.locator("mjx-container")
    tab.page.wait_for_timeout(300)
    assert formulas.count() > 40
    assert formulas.evaluate_all(STOPS) == formulas.evaluate_all(WIDE)
    assert formulas.evaluate_all(STOPS) <= 3
    spoken = "all => all.filter(one => !one.querySelector('mjx-assistive-mml math')).length"
    assert formulas.evaluate_all(spoken) == 0, "what a screen reader reads"


# --- A wrong address.


@pytest.fixture
def published(site) -> Iterator[str]:
    """The site in a folder of a server that answers wrong addresses with the site's page for them."""
    root = "/transformers-taken-apart/"
    page = (site / "404.html").read_text(encoding="utf-8")
    page = page.replace("<title>", publishing.BASE.format(root=f'"{root}"') + "<title>", 1)

    class Host(Quiet):
        def do_GET(self):  # noqa: N802
            path = urlsplit(self.path).path
            if path.startswith(root) and (site / path.removeprefix(root)).is_file():
                self.path = "/" + path.removeprefix(root)
                super().do_GET()
                return
            self.send_response(404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(page.encode())

    with served(site, Host) as address:
        yield f"{address}{root}"


# Style sheets and pictures that are not there.
LOADED = """() => [
  ...[...document.querySelectorAll('link[rel=stylesheet]')].filter(link => !link.sheet?.cssRules.length),
  ...[...document.images].filter(image => !image.naturalWidth),
].map(element => element.outerHTML)"""


@pytest.mark.parametrize("wrong", ["nothing.html", "notebooks/03/old/address"])
def test_a_wrong_address_shows_a_page_whose_links_lead_on(browser, published, wrong):
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(published + wrong)
    assert answer.status == 404
    expect(page.locator("main h1").last).to_have_text("There is no such page")
    assert page.evaluate(LOADED) == []
    page.get_by_role("main").get_by_role("link", name="start page").click()
    page.wait_for_url(f"{published}book/index.html")
    page.go_back()
    page.get_by_role("link", name="Skip to main content").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/404.html#main-content")
    expect(page.locator("main h1").last).to_be_visible()
