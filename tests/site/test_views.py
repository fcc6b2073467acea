"""BertViz's views as our `views.js` completes them: legend, keys and names, room, colors of the dark."""

import base64

import pytest
from playwright.sync_api import Locator, Page, expect
from site_visits import AXE, PHONE, opened, rows

pytestmark = pytest.mark.site

CHAPTER = "notebooks/attention_view.html"
HEAD, MODEL, NEURON = 0, 1, 2
NEEDED = 1004  # pixels that the neuron view's columns take
DESKTOP = {"width": 1280, "height": 900}


desktop = opened(CHAPTER, scope="module", viewport=DESKTOP)


phone = opened(CHAPTER, **PHONE)


def view(page: Page, number: int) -> Locator:
    """A view that has been drawn."""
    found = page.locator("[id^='bertviz-']").nth(number)
    found.scroll_into_view_if_needed()
    expect(found.locator("svg[data-view]")).to_be_visible()
    return found


def focused(page: Page) -> Locator:
    return page.locator(":focus")


def shown_heads(place: Locator) -> list[int]:
    return place.locator(".headAttention").evaluate_all(
        "heads => heads.flatMap((head, i) => [...head.querySelectorAll('line')]"
        ".some(line => +line.getAttribute('stroke-opacity') > 0) ? [i] : [])"
    )


# --- The legend.


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (HEAD, ["more opaque", "equally wide", "ten colors: head 10 has that of 0, 11 that of 1"]),
        (MODEL, ["more opaque", "the color is the layer's"]),
        (NEURON, ["more opaque", "Blue is positive, orange negative"]),
    ],
)
def test_every_view_has_a_legend_that_says_what_it_draws(desktop, number, said):
    root = view(desktop, number)
    legend = root.locator("xpath=following-sibling::*[1]")
    expect(legend).to_have_class("view-legend")
    text = " ".join(legend.inner_text().split())
    assert [words for words in said if words not in text] == []


def test_what_the_legend_says_of_lines_and_colors_is_true(desktop):
    root = view(desktop, HEAD)
    lines = root.locator("#attention line").evaluate_all(
        "lines => lines.map(line => [line.getAttribute('stroke-width'), line.getAttribute('stroke'),"
        " +line.closest('.headAttention').getAttribute('head-index'), line.__data__,"
        " +line.getAttribute('stroke-opacity')])"
    )
    on = shown_heads(root)
    assert {width for width, *_ in lines} == {"2"}
    colors = {head: color for _, color, head, *_ in lines}
    assert len(set(colors.values())) == 10
    assert colors[10] == colors[0] and colors[11] == colors[1]
    for _, _, head, weight, opacity in lines:
        assert opacity == pytest.approx(weight / len(on) if head in on else 0)


def test_every_color_box_has_its_number(desktop):
    root = view(desktop, HEAD)
    numbers, boxes = root.locator(".view-number"), root.locator("svg > g:last-child > rect")
    assert numbers.all_text_contents() == [str(head) for head in range(12)]
    for number, box in zip(numbers.all(), boxes.all(), strict=True):
        inner, outer = number.bounding_box(), box.bounding_box()
        assert outer["x"] <= inner["x"] and inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 1


# --- The keyboard.


def test_the_keyboard_uses_the_head_view(desktop):
    root, keyboard = view(desktop, HEAD), desktop.keyboard
    before = shown_heads(root)
    root.locator("select").last.focus()
    keyboard.press("Tab")
    keyboard.press("ArrowDown")
    keyboard.press("ArrowDown")
    texts = root.locator("#left text").all_text_contents()
    lines = root.locator("#attention line")
    visible = """lines => [...new Set(lines.filter(line => getComputedStyle(line).visibility === 'visible')
      .map(line => +line.getAttribute('left-token-index')))]"""
    assert lines.evaluate_all(visible) == [2], "to reach a token is to point at it"
    name = focused(desktop).get_attribute("aria-label")
    assert name.startswith(f"{texts[2]}: ")
    weights = root.locator("#attention line[left-token-index='2']").evaluate_all(
        "lines => lines.map(line => [+line.getAttribute('stroke-opacity'),"
        " +line.getAttribute('right-token-index')])"
    )
    strongest, place = max(weights)
    right = root.locator("#right text").all_text_contents()
    assert f"{texts[2]}: {right[place]} {strongest:.2f}" in name, "its name says what the lines show"
    assert root.locator("#left path.view-focus").count() == 1
    keyboard.press("Tab")  # the tokens on the right
    assert lines.evaluate_all(visible) != [2]
    keyboard.press("Tab")  # the boxes
    assert root.locator("path.view-focus").count() == 1
    for _ in range(5):
        keyboard.press("ArrowRight")
    assert focused(desktop).get_attribute("aria-label") == "head 5"
    assert focused(desktop).get_attribute("aria-checked") == "false"
    keyboard.press("Enter")
    assert shown_heads(root) == sorted([*before, 5])
    assert focused(desktop).get_attribute("aria-checked") == "true"
    keyboard.press("Shift+Enter")
    assert shown_heads(root) == [5]
    keyboard.press("Home")
    keyboard.press("Space")
    assert shown_heads(root) == [0, 5]
    checked = root.locator("[role=checkbox]").evaluate_all(
        "boxes => boxes.flatMap((box, i) => box.getAttribute('aria-checked') === 'true' ? [i] : [])"
    )
    assert checked == [0, 5]
    keyboard.press("Tab")
    assert root.locator("path.view-focus").count() == 0, "the frame goes with the focus"


def test_a_view_that_is_drawn_anew_keeps_its_keys(desktop):
    root = view(desktop, HEAD)
    layer = root.locator("select#layer")
    former = layer.input_value()
    layer.select_option("0")
    expect(root.locator("[role=checkbox]")).to_have_count(12)
    expect(root.locator(".view-number")).to_have_count(12)
    assert root.locator("[role=checkbox][tabindex='0']").count() == 1
    drawn = desktop.locator("[id^='bertviz-']:has(svg)")
    assert desktop.locator(".view-legend").count() == drawn.count(), "one for each view"
    layer.select_option(former)


def test_the_keyboard_opens_a_head_of_the_model_view(desktop):
    root, keyboard = view(desktop, MODEL), desktop.keyboard
    assert root.locator("[role=button]").count() == 6 * 12
    root.focus()
    for key in ("Tab", "ArrowDown", "ArrowDown", "ArrowRight"):
        keyboard.press(key)
    assert focused(desktop).get_attribute("aria-label") == "layer 2, head 1"
    keyboard.press("Enter")
    expect(root.get_by_text("Layer 2, Head 1")).to_be_visible()
    assert focused(desktop).get_attribute("aria-expanded") == "true"
    keyboard.press("Tab")
    keyboard.press("ArrowDown")
    assert focused(desktop).get_attribute("aria-label") == "time"
    assert rows(root) == [1]
    keyboard.press("Shift+Tab")
    assert len(rows(root)) > 1
    keyboard.press("Escape")
    assert root.locator(".detail").count() == 0
    assert focused(desktop).get_attribute("aria-expanded") == "false"


def test_the_keyboard_opens_the_columns_of_the_neuron_view(desktop):
    root, keyboard = view(desktop, NEURON), desktop.keyboard
    small, large = root.locator("#collapsed"), root.locator("#expanded")
    root.locator("select#att_head").focus()
    keyboard.press("Tab")
    keyboard.press("ArrowDown")
    assert rows(small) == [1]
    keyboard.press("Enter")
    expect(large).to_have_css("visibility", "visible")
    assert focused(desktop).get_attribute("aria-label") == "patrick", "the focus stays on the token"
    values = "boxes => boxes.map(box => +box.dataset.value)"
    scores = large.locator(".dotproduct").evaluate_all(values)
    keyboard.press("ArrowDown")
    assert large.locator(".dotproduct").evaluate_all(values) != scores
    keyboard.press("Escape")
    expect(large).to_have_css("visibility", "hidden")
    assert focused(desktop).get_attribute("aria-label") == "was"


def test_a_click_shows_no_frame(desktop):
    root = view(desktop, HEAD)
    root.locator("svg > g:last-child > rect").nth(7).click()
    assert root.locator("path.view-focus").count() == 0
    root.locator("svg > g:last-child > rect").nth(7).click()


# --- Room.


def open_columns(root: Locator) -> None:
    token = root.locator("#collapsed #leftText > g").nth(1)
    token.dispatch_event("mouseover")
    token.locator("rect:not(.highlight)").dispatch_event("click")
    expect(root.locator("#expanded")).to_have_css("visibility", "visible")


RIGHT_END = """root => Math.max(...[...root.querySelectorAll('#expanded :is(#rightText, #heading) text')]
  .map(text => text.getBoundingClientRect().right))"""


def test_a_desktop_shows_all_columns_of_the_neuron_view(desktop):
    root = view(desktop, NEURON)
    open_columns(root)
    hint = root.locator("xpath=preceding-sibling::*[1]")
    expect(hint).to_be_hidden()
    assert root.evaluate("root => root.scrollWidth <= root.clientWidth + 1")
    box = root.bounding_box()
    assert root.evaluate(RIGHT_END) <= box["x"] + box["width"] <= DESKTOP["width"]
    assert root.locator("#expanded #rightText text").first.evaluate(
        "text => text.getBoundingClientRect().height"
    ) > 10, "and they can be read"  # fmt: skip
    root.locator("#expanded #leftText > g").nth(1).locator("rect:not(.highlight)").dispatch_event("click")


def test_a_phone_scrolls_to_all_columns_and_says_so(phone):
    root = view(phone, NEURON)
    hint = root.locator("xpath=preceding-sibling::*[1]")
    expect(hint).to_be_hidden()
    open_columns(root)
    expect(hint).to_be_visible()
    assert root.evaluate("root => root.scrollWidth") >= 0.8 * NEEDED
    assert root.evaluate("root => getComputedStyle(root).maskImage") != "none"
    root.evaluate("root => root.scrollTo({left: root.scrollWidth, behavior: 'instant'})")
    box = root.bounding_box()
    assert box["x"] + box["width"] / 2 < root.evaluate(RIGHT_END) <= box["x"] + box["width"]
    phone.wait_for_timeout(100)
    assert root.evaluate("root => getComputedStyle(root).maskImage") == "none", "the end does not fade"
    assert phone.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_the_model_view_says_on_a_phone_that_it_scrolls(phone):
    root = view(phone, MODEL)
    expect(root.locator("xpath=preceding-sibling::*[1]")).to_have_text("Scroll sideways to see all of it.")
    expect(root.locator("xpath=preceding-sibling::*[1]")).to_be_visible()


def test_the_head_view_fits_on_a_phone(open_tab, width):
    tab = open_tab("file", CHAPTER, viewport={"width": width, "height": 800})
    root = view(tab.page, HEAD)
    assert root.evaluate("root => root.scrollWidth <= root.clientWidth + 1")
    ends = root.locator("#right text").evaluate_all("all => all.map(e => e.getBoundingClientRect().right)")
    box = root.bounding_box()
    assert max(ends) <= box["x"] + box["width"]


def test_the_head_view_uses_its_width(desktop):
    root = view(desktop, HEAD)
    ends = root.locator("#right text").evaluate_all("all => all.map(e => e.getBoundingClientRect().right)")
    box = root.bounding_box()
    assert max(ends) - box["x"] > 0.7 * box["width"]


SMALL = """root => [...root.querySelectorAll(
    'svg > g:last-child > rect, #left > g:last-of-type rect, #collapsed #leftText rect:not(.highlight)')]
  .map(part => part.getBoundingClientRect()).map(box => [box.width, box.height])
  .filter(([width, height]) => height && Math.min(width, height) < 23.9)"""


@pytest.mark.parametrize("number", [HEAD, NEURON])
def test_a_finger_finds_its_target(phone, number):
    assert view(phone, number).evaluate(SMALL) == []


def test_a_tap_opens_the_token_that_was_tapped(phone):
    """Nothing moves under the finger between the tap on a token and the one on its plus sign."""
    root = view(phone, NEURON)
    token = root.locator("#collapsed #leftText > g").nth(6)
    name = token.locator("text").text_content()
    before = root.bounding_box()
    token.locator("text").tap()
    token.locator("rect:not(.highlight)").tap()
    expect(root.locator("#expanded")).to_have_css("visibility", "visible")
    assert root.bounding_box()["y"] == pytest.approx(before["y"], abs=1)
    chosen = root.locator("#expanded #leftText > g").filter(has=phone.locator("rect.highlight"))
    shades = chosen.locator("rect.highlight").evaluate_all(
        "all => all.map(one => +getComputedStyle(one).opacity)"
    )
    assert [
        texts
        for texts, shade in zip(chosen.locator("text").all_text_contents(), shades, strict=True)
        if shade
    ] == [name]


def test_a_head_that_is_enlarged_on_a_phone_comes_into_view(phone):
    root = view(phone, MODEL)
    root.locator("[role=button] > rect:last-of-type").nth(3).tap()
    frame, place = root.locator("rect.detail").bounding_box(), root.bounding_box()
    assert place["x"] <= frame["x"] and frame["x"] + frame["width"] <= place["x"] + place["width"]


# --- The dark, and screen readers.


def test_views_follow_the_dark(open_tab):
    tab = open_tab("file", CHAPTER, viewport=DESKTOP, color_scheme="dark")
    views = [view(tab.page, number) for number in (HEAD, MODEL, NEURON)]
    assert [brightness(tab.page, root.screenshot()) < 70 for root in views] == [True] * 3
    tab.page.emulate_media(color_scheme="light")
    tab.page.wait_for_function("document.documentElement.dataset.theme === 'light'")
    assert [brightness(tab.page, root.screenshot()) > 180 for root in views] == [True] * 3


def brightness(page: Page, picture: bytes) -> float:
    """The mean brightness of a picture, 0 to 255, as a browser reads it."""
    return page.evaluate(BRIGHTNESS, base64.b64encode(picture).decode())


BRIGHTNESS = """async text => {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const picture = await createImageBitmap(new Blob([bytes], {type: 'image/png'}));
  const canvas = new OffscreenCanvas(picture.width, picture.height), draw = canvas.getContext('2d');
  draw.drawImage(picture, 0, 0);
  const {data} = draw.getImageData(0, 0, picture.width, picture.height);
  let sum = 0;
  for (let i = 0; i < data.length; i += 4) sum += data[i] + data[i + 1] + data[i + 2];
  return sum / (data.length / 4) / 3;
}"""


def test_axe_finds_nothing_serious_in_opened_views(desktop):
    open_columns(view(desktop, NEURON))
    root = view(desktop, MODEL)
    root.locator("[role=button] > rect:last-of-type").nth(30).dispatch_event("click")
    desktop.add_script_tag(path=AXE)
    assert desktop.evaluate(AXE_ON_VIEWS) == []


AXE_ON_VIEWS = """async () => (await axe.run({include: [['[id^="bertviz-"]'], ['.view-legend']]},
    {resultTypes: ['violations'], preload: false})).violations
  .filter(rule => ['serious', 'critical'].includes(rule.impact))
  .flatMap(({id, nodes}) => nodes.map(({html}) => id + html.slice(0, 200)))"""
