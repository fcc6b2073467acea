"""Every page: no other host, no errors, readable on a phone, by a screen reader, and in both themes."""

import re
from pathlib import Path

import nbformat
import pytest
from site_visits import FIGURES, PHONES, THEMES, kind, look_at, page_names, visits

from paths import notebooks

pytestmark = pytest.mark.site


def test_a_page_asks_no_other_host_lacks_nothing_and_has_no_error(name, scheme, visit):
    found = visit(scheme, name)
    assert (found.foreign, found.failed, found.errors) == ([], [], [])


def test_pictures_are_told_math_is_typeset_and_views_are_drawn(name, visit):
    found = visit("file", name)
    assert (found.images_without_alt, found.unset_math, found.undrawn_views) == ([], [], [])


def test_a_phone_does_not_scroll_sideways(name, width, visit):
    assert visit("file", name).too_wide[width] == []


def test_every_icon_is_drawn(name, visit):
    """An icon without a shape would be a black square."""
    icons = visit("file", name).icons
    assert len(icons) > 5
    assert [icon for icon, mask in icons if "data:image/svg+xml" not in mask] == []


def test_axe_finds_nothing_serious(name, theme, visit):
    found = visit("file", name).violations[theme]
    told = [f"{v['rule']}: {v['where']}\n  {v['html']}\n  {v['why']}" for v in found]
    assert not found, f"{len(found)} in all\n" + "\n".join(told[:10])


def test_no_kind_of_page_is_left_out(site):
    """And of the book itself no page: only listings of source code are sampled."""
    few, all_of_them = (visits(everything) for everything in (False, True))
    kinds = {kind(name) for name in page_names()}
    assert {"notebooks", "book", "source", ""} <= kinds
    for scheme in ("file", "http"):
        assert {kind(name) for of, name in few if of == scheme} == kinds
        assert [name for of, name in all_of_them if of == scheme] == page_names()
    assert {name for name in page_names() if kind(name) != "source"} <= {n for of, n in few if of == "file"}
    assert len(few) < len(all_of_them) * 2 / 3


@pytest.mark.parametrize(
    "notebook",
    [pytest.param(path, id=f"notebooks/{path.stem}.html") for path in notebooks()],
)
def test_every_figure_of_a_notebook_is_on_its_page(notebook, visit):
    about = [cell.metadata.get("mystnb", {}) for cell in nbformat.read(notebook, 4).cells]
    names = [cell["figure"]["name"] for cell in about if "figure" in cell]
    found = visit("file", f"notebooks/{notebook.stem}.html")
    for seen in found.figures.values():
        assert [figure["name"] for figure in seen] == names


def test_a_figure_shows_one_picture_in_each_theme(name, visit):
    """And so its alternative text is read once; the hidden picture is not read."""
    light, dark = (visit("file", name).figures[theme] for theme in THEMES)
    for one, other in zip(light, dark, strict=True):
        assert len(one["seen"]) == len(other["seen"]) == 1, one["name"]
        (one, other), captions = (one["seen"] + other["seen"]), (one["caption"], other["caption"])
        assert one["file"] != other["file"]
        assert one["alt"] == other["alt"] and len(one["alt"]) > 20
        assert captions[0] == captions[1] != ""


def test_nothing_but_the_page_is_behind_a_figure(name, theme, visit):
    for figure in visit("file", name).figures[theme]:
        assert figure["grounds"] == [], figure["name"]
        for picture in figure["seen"]:
            assert picture["filter"] == "none"
            drawing = Path(picture["file"]).read_text(encoding="utf-8")
            assert re.search(r'id="patch_1">\s*<path [^>]*style="([^"]*)"', drawing)[1] == "fill: none"


def test_text_in_figures_can_be_read_on_a_phone(name, width, visit):
    """At least nine pixels: what is drawn, times how large the page shows it."""
    for figure in visit("file", name).figures[width]:
        for picture in figure["seen"]:
            drawing = Path(picture["file"]).read_text(encoding="utf-8")
            units = float(re.search(r'viewBox="0 0 (\S+) ', drawing)[1])
            smallest = min(letters(drawing), default=9 * units)
            assert smallest * picture["width"] / units >= 9 - 1e-3, figure["name"]


def letters(drawing: str) -> list[float]:
    """Sizes of the letters in a drawing by matplotlib: of each text, and of what is small in it."""
    texts = re.findall(r'<g [^>]*scale\((\S+) -\1\)">(.*?)</g>', drawing, re.DOTALL)
    return [
        100 * float(size) * float(small or 1)
        for size, uses in texts
        for small in re.findall(r"<use [^>]*?(?:scale\((\S+)\)\"[^>]*)?/>", uses)
    ]


def test_on_paper_a_figure_is_light(open_tab):
    tab = open_tab("file", FIGURES_PAGE)
    tab.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    tab.page.emulate_media(media="print")
    printed = tab.page.evaluate(FIGURES)
    assert printed and all(len(figure["seen"]) == 1 for figure in printed)
    assert not any("-dark" in figure["seen"][0]["file"] for figure in printed)
    assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert [figure["name"] for figure in printed if figure["grounds"]] == []


def test_a_wide_figure_scrolls_in_its_box(open_tab):
    """The page does not: that is tested on every page. The box can be reached with the keyboard."""
    tab = open_tab("file", FIGURES_PAGE, viewport={"width": PHONES[0], "height": 800})
    boxes = tab.page.locator(".drawing").evaluate_all(
        "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.tabIndex)"
    )
    assert boxes == [0]


FIGURES_PAGE = "notebooks/07_attention_from_scratch.html"


def test_a_visit_sees_what_is_wrong(open_tab):
    """The tests above stand on what a visit notes; here every fault is planted."""
    tab = open_tab("file", "book/glossary.html")
    tab.page.evaluate(FAULTS)
    tab.page.wait_for_timeout(200)
    found = look_at(tab)
    assert tab.foreign == ["https://example.org/x.js"]
    assert sorted(failed.split(": ")[0].split("/")[-1] for failed in tab.failed) == ["missing.js", "x.js"]
    assert any("planted" in error for error in tab.errors)
    assert found.undrawn_views == ["bertviz-0"]
    assert len(found.images_without_alt) == 1
    assert "an equation" in found.unset_math
    cards = {theme: found.figures[theme][0]["grounds"] for theme in THEMES}
    assert cards["light"] == [] and len(cards["dark"]) == 1
    assert found.figures["dark"][0]["seen"][0]["filter"] != "none"
    assert all(any("wide words" in element for element in wide) for wide in found.too_wide.values())
    assert {violation["rule"] for violation in found.violations["light"]} >= {"color-contrast", "image-alt"}
    assert "color-contrast" in {violation["rule"] for violation in found.violations["dark"]}


FAULTS = """() => {
  for (const source of ["https://example.org/x.js", "missing.js"]) {
    document.head.append(Object.assign(document.createElement("script"), {src: source}));
  }
  console.error("planted");
  document.querySelector("main p").insertAdjacentHTML("beforebegin", `
    <div id="bertviz-0"></div> <img src="../_static/logo.svg"> <span class="math">an equation</span>
    <p style="color: #ddd; background: #fff">pale words</p>
    <div class="cell_output"><figure id="planted"><img src="../_static/logo.svg" alt="A"></figure></div>
    <p style="width: 1000px">wide words</p>`);
}"""
