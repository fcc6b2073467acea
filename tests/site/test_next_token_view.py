"""The next-token view of chapter 13 is used as a reader would: by mouse, by keyboard, by finger."""

import json
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect
from site_visits import Tab

pytestmark = pytest.mark.site

PAGE = "notebooks/13_decoding.html"
PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}
MAX_DATA = 60_000  # bytes


class View:
    """The view, scrolled to the middle of the window."""

    def __init__(self, tab: Tab):
        self.page: Page = tab.page
        self.root: Locator = tab.page.locator("figure.next-token-view")
        self.rows = self.root.locator(".ntv-row")
        self.text = self.root.locator(".ntv-text")
        self.root.scroll_into_view_if_needed()
        self.data = json.loads(self.root.locator("script[type='application/json']").text_content())

    def slider(self, name: str) -> Locator:
        return self.root.get_by_label(name)

    def button(self, name: str) -> Locator:
        return self.root.get_by_role("button", name=name)

    def numbers(self) -> list[str]:
        return self.root.locator(".ntv-row .ntv-number").all_text_contents()

    def bars(self) -> list[float]:
        return self.root.locator(".ntv-row .ntv-fill").evaluate_all(
            "bars => bars.map(bar => bar.getBoundingClientRect().width)"
        )

    def draws(self) -> list[str]:
        return self.root.locator(".ntv-chip").all_text_contents()

    def leading(self) -> Locator:
        """The tokens that have a place in the tree."""
        return self.root.locator(".ntv-token[aria-disabled='false']")


@pytest.fixture
def view(open_tab) -> Iterator[View]:
    tab = open_tab("file", PAGE)
    yield View(tab)
    assert tab.foreign == tab.failed == tab.errors == []
    tab.page.context.close()


@pytest.fixture
def on_phone(open_tab) -> Iterator[View]:
    tab = open_tab("file", PAGE, **PHONE)
    yield View(tab)
    assert tab.foreign == tab.failed == tab.errors == []
    tab.page.context.close()


def expected(data: dict, temperature: float, top_k: int, top_p: float) -> np.ndarray:
    """The probabilities of the tokens that are kept one by one, computed anew."""
    logits, counts = np.array(data["nodes"][0]["logits"]), np.array(data["counts"])
    every = np.repeat(logits, counts) / temperature
    every[top_k:] = -np.inf
    p = np.exp(every) / np.exp(every).sum()
    p[np.cumsum(p) - p >= top_p] = 0
    return p[: data["exact"]] / p.sum()


def share(text: str) -> float:
    return 0.0 if text == "out" else float(text.removesuffix(" %")) / 100


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, None, 1.0), (0.5, None, 1.0), (2.0, None, 0.6), (1.0, 5, 1.0), (1.5, 12, 0.8), (0.1, None, 0.05)],
)
def test_the_numbers_are_those_of_the_filters(view, temperature, top_k, top_p):
    view.slider("temperature").fill(str(temperature))
    view.slider("top-k").fill(str(top_k or view.data["exact"] + 1))
    view.slider("top-p").fill(str(top_p))
    wanted = expected(view.data, temperature, top_k or view.data["vocab_size"], top_p)[:20]
    found = [share(text) for text in view.numbers()]
    assert found == pytest.approx(wanted, abs=0.006, rel=0.06)
    assert [text == "out" for text in view.numbers()] == [p == 0 for p in wanted]
    if top_k:
        assert f"{min(top_k, (wanted > 0).sum())} of " in view.root.locator(".ntv-summary").inner_text()


@pytest.mark.parametrize("name", ["temperature", "top-k", "top-p"])
def test_the_keyboard_moves_a_slider_and_the_view_changes(view, name):
    numbers, bars, draws = view.numbers(), view.bars(), view.draws()
    view.slider(name).focus()
    view.page.keyboard.press("Home")
    assert view.numbers() != numbers and view.bars() != bars and view.draws() != draws
    assert view.slider(name).get_attribute("aria-valuetext") in view.root.inner_text()
    for _ in range(50):
        view.page.keyboard.press("ArrowRight")
    if name != "temperature":  # Then everything is as at the start.
        assert (view.numbers(), view.bars(), view.draws()) == (numbers, bars, draws)


def test_what_is_ruled_out_is_never_drawn(view):
    view.slider("top-k").fill("3")
    kept = set(view.root.locator(".ntv-row:not(.out) .ntv-token").all_text_contents())
    assert len(kept) == 3 and len(view.draws()) == 20 and set(view.draws()) <= kept
    assert view.root.locator(".ntv-row.out").count() == view.rows.count() - 3


def test_twenty_tokens_are_drawn_again(view):
    former = view.draws()
    view.button("Draw again").click()
    assert len(view.draws()) == 20 and view.draws() != former


def test_choosing_tokens_goes_along_the_tree_and_back(view):
    start, numbers = view.text.inner_text(), view.numbers()
    token = view.leading().first
    chosen = token.text_content().replace("␣", " ")
    token.click()
    assert view.text.inner_text().startswith(start.removesuffix("▏") + chosen)
    assert view.numbers() != numbers
    view.leading().first.click()
    view.button("Back").click()
    assert view.text.inner_text() == start.removesuffix("▏") + chosen + "▏"
    view.button("Start again").click()
    assert (view.text.inner_text(), view.numbers()) == (start, numbers)


def test_the_keyboard_goes_along_the_tree(view):
    start = view.text.inner_text()
    view.leading().first.focus()
    view.page.keyboard.press("Enter")
    assert len(view.text.inner_text()) > len(start)
    view.button("Back").focus()
    view.page.keyboard.press("Space")
    assert view.text.inner_text() == start


def test_a_token_outside_the_tree_leads_nowhere(view):
    start = view.text.inner_text()
    view.root.locator(".ntv-token[aria-disabled='true']").last.click(force=True)
    assert view.text.inner_text() == start


def test_a_path_ends_and_says_so(view):
    for _ in range(view.data["nodes"].__len__()):
        if not view.leading().count():
            break
        view.leading().first.click()
    expect(view.root).to_contain_text("The tree ends here")


def test_a_finger_moves_sliders_and_chooses(on_phone):
    numbers, draws = on_phone.numbers(), on_phone.draws()
    slider = on_phone.slider("temperature")
    box = slider.bounding_box()
    slider.tap(position={"x": box["width"] * 0.1, "y": box["height"] / 2})
    assert on_phone.numbers() != numbers and on_phone.draws() != draws
    start = on_phone.text.inner_text()
    on_phone.leading().first.tap()
    assert len(on_phone.text.inner_text()) > len(start)
    for place in (*on_phone.leading().all()[:3], slider):
        assert place.bounding_box()["height"] >= 24
    width = on_phone.page.evaluate("document.documentElement.clientWidth")
    assert on_phone.root.bounding_box()["width"] <= width


def test_the_data_is_small(view):
    text = view.root.locator("script[type='application/json']").text_content()
    assert len(text.encode()) <= MAX_DATA
