"""The table of models of chapter 11 is used as a reader would: by mouse, by key, on a phone, on paper."""

import pytest
from playwright.sync_api import Locator, Page, expect
from site_visits import AXE, PHONE, PHONES, Tab, opened

from chapters_src.data import models

pytestmark = pytest.mark.site

PAGE = "notebooks/11_meet_the_transformers.html"
PARTS = ("Ideas", "Sizes", "Designs", "Data and ranking")
EVERYTHING = len(models.load())


class View:
    """The table, scrolled into the window."""

    def __init__(self, tab: Tab):
        self.page: Page = tab.page
        self.root: Locator = tab.page.locator("figure.model-table")
        self.root.scroll_into_view_if_needed()
        self.filter = self.root.get_by_label("Filter")
        self.sort_by = self.root.get_by_label("Sort by")

    def show(self, part: str) -> Locator:
        self.root.get_by_label(part, exact=True).check()
        return self.root.locator("table:visible")

    def rows(self) -> Locator:
        return self.root.locator("table:visible tbody tr:visible")

    def names(self) -> list[str]:
        return self.rows().locator("th").all_text_contents()

    def column(self, title: str) -> list[str]:
        return self.rows().locator(f"td[data-label='{title}']").all_text_contents()


view = opened(PAGE, see=View, viewport={"width": 1280, "height": 900})


on_phone = opened(PAGE, see=View, **PHONE)


def values(texts: list[str]) -> list[float]:
    return [float(text.replace(",", "")) for text in texts if text != "–"]


def test_every_model_of_the_file_is_in_every_part(view):
    named = [f"{name} {row['size']}".strip() for name, row in models.load().iterrows()]
    for part in PARTS:
        table = view.show(part)
        expect(table).to_have_count(1)
        expect(table.locator("caption")).to_have_text(part)
        assert sorted(view.names()) == sorted(named)


def test_a_title_sorts_and_turns_by_key_and_by_mouse(view):
    table = view.show("Sizes")
    head = table.locator("thead th").filter(has_text="parameters, millions")
    head.get_by_role("button").focus()
    view.page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "ascending")
    column = view.column("parameters, millions")
    assert values(column) == sorted(values(column))  # as numbers: 66 comes before 110
    assert "–" not in column[: len(values(column))]
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    turned = view.column("parameters, millions")
    assert values(turned) == values(column)[::-1]
    assert turned[-1] == "–", "what was not counted comes last both ways"
    assert view.names()[0].startswith("DeepSeek-V3")
    view.show("Ideas")
    assert view.names()[0].startswith("DeepSeek-V3"), "the order stays when another part is shown"


def test_the_menu_sorts_and_returns_to_the_order_of_the_years(view):
    view.show("Ideas")
    before, years = view.names(), view.column("year")
    assert years == sorted(years)
    view.sort_by.select_option("after")
    parents = [text for text in view.column("after") if text != "–"]
    assert parents == sorted(parents, key=str.lower)
    view.root.get_by_role("button", name="Reverse").click()
    assert next(text for text in view.column("after") if text != "–") == parents[-1]
    view.sort_by.select_option("(first published)")
    assert view.names() == before


def test_the_filter_searches_all_parts_and_says_how_many_are_left(view):
    status = view.root.get_by_role("status")
    expect(status).to_have_text(f"{EVERYTHING} of {EVERYTHING} models")
    view.show("Ideas")
    view.filter.fill("rotary before")  # words of the part on designs
    found = view.names()
    assert "Llama 7B" in found and "BERT base" not in found
    expect(status).to_have_text(f"{len(found)} of {EVERYTHING} models")
    view.filter.fill("SuperGLUE")
    assert {"T5 large", "GPT-3 175B"} <= set(view.names())
    view.filter.fill("no such words")
    expect(view.rows()).to_have_count(0)
    view.filter.fill("")
    expect(view.rows()).to_have_count(EVERYTHING)


def test_two_models_stand_side_by_side(view):
    table = view.show("Two models compared")
    expect(view.filter).to_be_hidden()
    view.root.get_by_label("Compare", exact=True).select_option("GPT-2 small")
    view.root.get_by_label("compare with", exact=True).select_option("Llama 7B")
    assert table.locator("thead th").all_text_contents() == ["GPT-2 small", "Llama 7B"]
    facts = {
        row.locator("th").text_content(): row.locator("td").all_text_contents()
        for row in table.locator("tbody tr").all()
    }
    assert facts["positions"] == ["learned", "rotary"]
    assert facts["asked for (same)"] == ["language model"] * 2
    assert facts["parameters, millions"] == ["124.4", "6,738.4"]
    assert len(facts) == len({title.removesuffix(" (same)") for title in facts}) == 15
    assert table.locator("tbody a[href^='https://']").count() >= 4, "facts keep their links"


def test_the_titles_stay_in_view(view):
    table = view.show("Designs")
    row = table.locator("tbody tr").nth(20)
    row.evaluate("row => row.scrollIntoView({block: 'center', behavior: 'instant'})")
    head = table.locator("thead th").nth(1)
    expect(head).to_be_in_viewport()
    assert head.bounding_box()["y"] + head.bounding_box()["height"] <= row.bounding_box()["y"]
    assert view.page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_all_of_it_works_without_a_mouse(view):
    view.root.get_by_label("Ideas", exact=True).focus()
    for part in PARTS[1:]:
        view.page.keyboard.press("ArrowRight")
        expect(view.root.locator("table:visible caption")).to_have_text(part)
    view.page.keyboard.press("Tab")
    expect(view.filter).to_be_focused()
    view.page.keyboard.type("mixtral")
    assert view.rows().count() < 5
    view.page.keyboard.press("Tab")
    expect(view.sort_by).to_be_focused()


@pytest.mark.parametrize("part", [*PARTS, "Two models compared"])
def test_a_phone_shows_cards_that_need_no_scrolling_sideways(on_phone, part):
    table = on_phone.show(part)
    width = on_phone.page.evaluate("document.documentElement.scrollWidth")
    assert width <= PHONES[0]
    outside = table.locator("tbody th, tbody td").evaluate_all(
        "cells => cells.filter(cell => cell.getBoundingClientRect().right > innerWidth).length"
    )
    assert outside == 0
    small = table.locator("tbody td, tbody th").evaluate_all(
        "cells => Math.min(...cells.map(cell => parseFloat(getComputedStyle(cell).fontSize)))"
    )
    assert small >= 12
    label = table.locator("tbody td").first.evaluate("cell => getComputedStyle(cell, '::before').content")
    assert label not in ("none", '""'), "a card names each of its lines"


def test_nothing_is_wrong_for_screen_readers(open_tab, theme):
    tab = open_tab("file", PAGE, color_scheme=theme)
    tab.page.add_script_tag(path=AXE)
    for part in ("Sizes", "Two models compared"):
        View(tab).show(part)
        found = tab.page.evaluate("axe.run('figure.model-table')")
        assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found["violations"]] == []


def test_paper_has_all_parts_and_no_controls(view):
    view.show("Sizes")
    view.filter.fill("mixtral")
    view.show("Two models compared")
    view.page.emulate_media(media="print")
    expect(view.root.locator("table:visible")).to_have_count(len(PARTS))
    expect(view.root.locator("button:visible, input:visible, select:visible")).to_have_count(0)
    expect(view.root.locator("tbody tr:visible")).to_have_count(len(PARTS) * EVERYTHING)
    titles = view.root.locator("table").nth(1).locator("thead th").all_inner_texts()
    assert titles[0] == "model" and titles[2] == "parameters, millions"
    view.page.emulate_media(media="screen")
    expect(view.root.locator("table:visible caption")).to_have_text("Side by side")


def test_without_a_script_all_parts_are_there(open_tab):
    root = open_tab("http", PAGE, java_script_enabled=False).page.locator("figure.model-table")
    expect(root.locator("table:visible")).to_have_count(len(PARTS))
    expect(root.locator("button, input, select")).to_have_count(0)
