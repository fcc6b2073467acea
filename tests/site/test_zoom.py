"""The diagrams of chapter 08 are zoomed and moved as a reader would: by click, by keyboard, by touch."""

import pytest
from playwright.sync_api import Locator, Page, expect
from site_visits import PHONE, Fingers, Tab, opened

pytestmark = pytest.mark.site

PAGE = "notebooks/08_transformer_anatomy.html"
DRAWN_BY_CODE = "notebooks/01_hello_transformers.html"  # diagrams that are no files


class Diagram:
    """The first diagram of the page, scrolled to the middle of the window."""

    def __init__(self, tab: Tab):
        self.page: Page = tab.page
        self.figure: Locator = tab.page.locator("figure.diagram").first
        self.svg = self.figure.locator("svg")
        self.stage = self.figure.get_by_role("group")
        self.svg.evaluate("svg => svg.scrollIntoView({block: 'center', behavior: 'instant'})")
        self.whole = self.seen()

    def seen(self) -> list[float]:
        """Left, upper side, width and height of what can be seen, in units of the diagram."""
        return [float(number) for number in self.svg.get_attribute("viewBox").split()]

    def share(self) -> float:
        """Which share of the whole width can be seen."""
        return self.seen()[2] / self.whole[2]

    def press(self, name: str) -> None:
        self.figure.get_by_role("button", name=name).click()

    def at(self, across: float, down: float) -> tuple[float, float]:
        """A place in the window, given in shares of the picture."""
        box = self.svg.bounding_box()
        return box["x"] + across * box["width"], box["y"] + down * box["height"]

    def under(self, x: float, y: float) -> tuple[float, float]:
        """What lies at a place in the window, in units of the diagram."""
        box, (left, top, width, _) = self.svg.bounding_box(), self.seen()
        scale = width / box["width"]
        return left + (x - box["x"]) * scale, top + (y - box["y"]) * scale

    def scrolled(self) -> float:
        return self.page.evaluate("scrollY")


diagram = opened(PAGE, see=Diagram, viewport={"width": 1280, "height": 1000})


on_phone = opened(PAGE, see=Diagram, **PHONE)


def test_every_diagram_of_the_page_can_be_zoomed(diagram):
    # Some of them are folded, and their buttons are nobody's until they are opened.
    diagram.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    figures = diagram.page.locator("figure.diagram")
    assert figures.count() >= 3
    for figure in figures.all():
        names = [button.get_attribute("aria-label") for button in figure.get_by_role("button").all()]
        assert names == ["Zoom out", "Show all", "Zoom in"]
        assert figure.locator("svg").get_attribute("aria-label") in figure.get_by_role("group").get_attribute(
            "aria-label"
        )


def test_clicks_zoom_one_diagram_to_an_end_and_show_all_again(diagram):
    others = diagram.page.locator("figure.diagram svg")
    before, box = others.nth(1).get_attribute("viewBox"), diagram.svg.bounding_box()
    diagram.press("Zoom out")
    assert diagram.seen() == diagram.whole
    diagram.press("Zoom in")
    diagram.press("Zoom in")
    assert diagram.share() == pytest.approx(1 / 1.5**2)
    left, top, width, height = diagram.seen()
    assert left + width / 2 == pytest.approx(diagram.whole[2] / 2), "the middle stays"
    assert top + height / 2 == pytest.approx(diagram.whole[3] / 2)
    assert others.nth(1).get_attribute("viewBox") == before
    after = diagram.svg.bounding_box()
    assert (after["width"], after["height"]) == (box["width"], box["height"]), "the picture keeps its size"
    diagram.press("Zoom out")
    assert diagram.share() == pytest.approx(1 / 1.5)
    for _ in range(10):
        diagram.press("Zoom in")
    assert diagram.share() == pytest.approx(1 / 8)
    diagram.press("Show all")
    assert diagram.seen() == diagram.whole


def test_the_keyboard_alone_is_enough(diagram):
    page = diagram.page
    diagram.stage.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    expect(diagram.stage).to_be_focused()
    for key, share in (("+", 1 / 1.5), ("=", 1 / 1.5**2), ("-", 1 / 1.5)):
        page.keyboard.press(key)
        assert diagram.share() == pytest.approx(share)
    left, top, *_ = diagram.seen()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert diagram.seen()[0] > left and diagram.seen()[1] > top
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    assert diagram.seen()[:2] == pytest.approx([left, top])
    page.keyboard.press("0")
    assert diagram.seen() == diagram.whole
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert diagram.share() == pytest.approx(1 / 1.5), "the last button zooms in"


def test_the_keys_of_page_and_browser_stay_theirs(diagram):
    keyboard, before = diagram.page.keyboard, diagram.scrolled()
    diagram.stage.focus()
    keyboard.press("+")
    keyboard.press("ArrowDown")
    diagram.page.wait_for_timeout(200)
    assert diagram.scrolled() == before, "enlarged, an arrow moves the diagram and not the page"
    seen = diagram.seen()
    keyboard.press("Alt+-")
    keyboard.press("Alt+0")
    assert diagram.seen() == seen
    keyboard.press("0")
    keyboard.press("ArrowDown")
    diagram.page.wait_for_function(f"scrollY > {before}")
    assert diagram.seen() == diagram.whole


def test_dragging_moves_only_what_is_enlarged(diagram):
    mouse = diagram.page.mouse
    here, there = diagram.at(0.5, 0.5), diagram.at(0.4, 0.45)

    def drag():
        mouse.move(*here)
        mouse.down()
        mouse.move(*there, steps=4)
        mouse.up()

    drag()
    assert diagram.seen() == diagram.whole
    diagram.press("Zoom in")
    held = diagram.under(*here)
    drag()
    assert diagram.under(*there) == pytest.approx(held, abs=0.5), "it follows the mouse"
    mouse.move(*here)
    assert diagram.under(*there) == pytest.approx(held, abs=0.5), "and only while the button is down"
    for _ in range(5):
        drag()
    left, top, width, height = diagram.seen()
    assert 0 <= left <= diagram.whole[2] - width + 1e-6 and 0 <= top <= diagram.whole[3] - height + 1e-6


def test_the_wheel_scrolls_the_page_and_zooms_only_with_ctrl(diagram):
    page, here = diagram.page, diagram.at(0.3, 0.4)
    held, before = diagram.under(*here), diagram.scrolled()
    page.mouse.move(*here)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -60)
    page.wait_for_function("document.querySelector('figure.diagram.enlarged')")
    page.keyboard.up("Control")
    assert diagram.share() < 0.9 and diagram.scrolled() == before
    assert diagram.under(*here) == pytest.approx(held, abs=0.5), "what is under the mouse stays there"
    seen = diagram.seen()
    page.mouse.wheel(0, 120)
    page.wait_for_function(f"scrollY > {before}")
    assert diagram.seen() == seen


def test_two_fingers_zoom_and_move_the_diagram_and_not_the_page(on_phone):
    fingers, before = Fingers(on_phone.page), on_phone.scrolled()
    x, y = on_phone.at(0.4, 0.4)
    to_x, to_y = x + 10, y + 40
    held = on_phone.under(x, y)
    paths = [((x, y - side * 60), (to_x, to_y - side * 120)) for side in (1, -1)]
    fingers.move(*paths)
    assert on_phone.share() == pytest.approx(0.5, abs=0.02)
    assert on_phone.under(to_x, to_y) == pytest.approx(held, abs=3), "it stays between the fingers"
    assert on_phone.scrolled() == before
    assert on_phone.page.evaluate("visualViewport.scale") == pytest.approx(1)
    fingers.move(*[(end, start) for start, end in paths])
    assert on_phone.share() == pytest.approx(1, abs=0.02)


def test_one_finger_scrolls_the_page_unless_the_diagram_is_enlarged(on_phone):
    fingers, page = Fingers(on_phone.page), on_phone.page
    before = on_phone.scrolled()
    fingers.move((on_phone.at(0.5, 0.6), on_phone.at(0.5, 0.4)))
    page.wait_for_function(f"scrollY > {before}")
    assert on_phone.seen() == on_phone.whole

    page.evaluate("y => scrollTo({top: y, behavior: 'instant'})", before)
    on_phone.figure.get_by_role("button", name="Zoom in").tap()
    on_phone.figure.get_by_role("button", name="Zoom in").tap()
    on_phone.svg.evaluate("svg => svg.scrollIntoView({block: 'center', behavior: 'instant'})")
    before, here, there = on_phone.scrolled(), on_phone.at(0.5, 0.5), on_phone.at(0.4, 0.45)
    held = on_phone.under(*here)
    fingers.move((here, there))
    assert on_phone.under(*there) == pytest.approx(held, abs=3)
    assert on_phone.scrolled() == before


def test_no_finger_is_stuck_on_an_enlarged_diagram(on_phone):
    """What the diagram cannot be moved any further, the page is scrolled."""
    fingers = Fingers(on_phone.page)
    on_phone.figure.get_by_role("button", name="Zoom in").tap()
    on_phone.svg.evaluate("svg => svg.scrollIntoView({block: 'center', behavior: 'instant'})")
    before = on_phone.scrolled()
    for _ in range(4):
        fingers.move(((190, 500), (190, 250)))
    _, top, _, height = on_phone.seen()
    assert top + height == pytest.approx(on_phone.whole[3]), "the lower end is reached"
    assert on_phone.scrolled() > before + 250


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desktop", "phone"])
def test_text_lies_inside_its_box(open_tab, options):
    """With the fonts that are there. A box's text comes right after its outline."""
    tab = open_tab("file", DRAWN_BY_CODE, **options)
    tab.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    sticking_out = tab.page.evaluate(STICKING_OUT)
    assert sticking_out["out"] == [] and sticking_out["texts"] > 50


STICKING_OUT = """() => {
  const texts = [...document.querySelectorAll('figure.diagram:not(:has([fill^="var("])) text')];
  const outline = text => text.tagName === 'rect' ? text : outline(text.previousElementSibling);
  const out = texts.filter(text => {
    const inner = text.getBBox(), outer = outline(text).getBBox();
    return inner.x < outer.x + 1 || inner.x + inner.width > outer.x + outer.width - 1
      || inner.y < outer.y || inner.y + inner.height > outer.y + outer.height;
  });
  return {texts: texts.length, out: out.map(text => text.textContent)};
}"""


def test_lines_and_text_take_the_color_of_the_page(open_tab, theme):
    tab = open_tab("file", DRAWN_BY_CODE)
    tab.page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
    ink, text = tab.page.evaluate(INKS)
    assert text == ink


INKS = """() => {
  const diagram = document.querySelector('figure.diagram:not(:has([fill^="var("])) text');
  return [getComputedStyle(document.querySelector('main p')).color, getComputedStyle(diagram).fill];
}"""
