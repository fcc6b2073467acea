"""The start page in a browser: its first screen, the two panels, the road; and the index of claims."""

import re

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import expect
from site_visits import opened

from website import front
from website.claims import all_claims

pytestmark = pytest.mark.site
START = "book/index.html"
TOKENIZER = front.language_model_tokenizer()
SCREENS = {"desktop": {"width": 1280, "height": 800}, "phone": {"width": 390, "height": 844}}


start = opened(START, scope="module", viewport=SCREENS["desktop"])


@pytest.mark.parametrize("screen", SCREENS)
def test_the_first_screen_shows_what_the_book_is_and_how_to_begin(open_tab, screen, theme):
    tab = open_tab("file", START, viewport=SCREENS[screen])
    tab.page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
    for what in ("main h1", "a.front-main", "a.front-button:not(.front-main)", "#front-picture figcaption"):
        box = tab.page.locator(what).last.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= SCREENS[screen]["height"], what
        assert box["x"] >= 0 and box["x"] + box["width"] <= SCREENS[screen]["width"], what


def test_typing_shows_tokens(start):
    field = start.get_by_label("Type a sentence")
    field.fill("")
    expect(start.locator("#front-count")).to_have_text("0 tokens for 0 characters")
    text = "Ça, 猫! <b>tokenizer</b>"
    field.press_sequentially(text)
    chips = start.locator("#front-tokens li")
    assert [int(n) for n in chips.locator("small").all_inner_texts()] == TOKENIZER.encode(text)
    shown = chips.locator("bdi").all_inner_texts()
    assert "␣tokenizer" in shown or {"<", "b", ">"} & set(shown)
    assert any(re.fullmatch(r"(<[0-9A-F]{2}>)+", piece) for piece in shown), "bytes that are no character"
    expect(start.locator("#front-count")).to_have_text(f"{len(shown)} tokens for {len(text)} characters")
    field.fill("👍a")
    expect(start.locator("#front-count")).to_contain_text("for 2 characters")


def test_choosing_a_sentence_and_a_token_by_keyboard_shows_whom_it_attends_to(start):
    choice = start.get_by_label("Choose a sentence")
    choice.focus()
    options = choice.locator("option").all_inner_texts()
    assert len(options) == 6
    for sentence in options:
        choice.select_option(sentence)
        words = start.locator("#front-attention button").all_inner_texts()
        expect(start.locator("#front-attention small").first).to_have_text("?")
        start.locator("#front-ask button").first.press("Enter")
        assert words == ["[CLS]", *sentence.lower().split(), "[SEP]"]
        percents = [int(n.rstrip("%")) for n in start.locator("#front-attention small").all_inner_texts()]
        assert 97 <= sum(percents) <= 103
        pronoun = next(word for word in words if word in ("he", "she"))
        expect(start.locator("#front-attention [aria-pressed=true]")).to_have_text(pronoun)
        expect(start.locator("#front-attention [aria-pressed=true]")).to_be_focused()
    choice.select_option(index=0)
    choice.press("Tab")
    start.keyboard.press("Tab")
    start.keyboard.press("Enter")
    chosen = start.locator("#front-attention [aria-pressed=true]")
    expect(chosen).to_have_text("emma")
    expect(chosen).to_be_focused()
    expect(start.locator("#front-look")).to_have_text(re.compile(r"^emma attends to .+%, .+%, .+%$"))
    start.locator("#front-attention button").last.click()
    expect(chosen).to_have_text("[SEP]")


def test_the_question_takes_an_answer_and_says_whether_it_is_right(start):
    """The head follows the pronoun, and is lost in the last sentence; who is meant is said there, too."""
    choice, said = start.get_by_label("Choose a sentence"), start.locator("#front-look")
    for number, (name, verdict) in enumerate(
        [("Emma", "Yes, Emma."), ("Emma", "No, David."), ("Julia", "Yes, Julia."), ("Julia", "No, Paul."),
         ("Peter", "Yes, Peter."), ("Peter", "No, David.")]
    ):  # fmt: skip
        choice.select_option(index=number)
        expect(said).to_be_hidden()
        start.get_by_role("group", name="Who is “").get_by_role("button", name=name).click()
        expect(said).to_contain_text(f"{verdict} ")
        expect(said).to_contain_text(" attends to ")


def test_what_can_be_pressed_is_large_enough_and_looks_so(start):
    buttons = start.locator("#front-attention button, #front-ask button:visible")
    for box in [button.bounding_box() for button in buttons.all() if button.is_visible()]:
        assert min(box["width"], box["height"]) >= 24
    assert buttons.first.evaluate("button => getComputedStyle(button).cursor") == "pointer"


def test_one_line_says_what_stands_behind_the_book(start, site):
    line = start.locator(".front-proof")
    expect(line).to_be_in_viewport()
    numbers = [int(n.replace(",", "")) for n in line.locator("b").all_inner_texts()]
    assert numbers[0] == sum(map(len, all_claims().values()))
    assert line.locator("a").get_attribute("href") == "claims.html"


def test_the_claim_shows_its_evidence(start):
    """What the cell printed beside the claim, and the claim as one."""
    text = start.locator("article").inner_text()
    _, shown = text.split("A claim.", 1)
    shown = shown.split("An equality.")[0]
    assert re.search(r"switches in \d+ of \d+ pairs", shown)
    assert start.locator("article .claim").count() >= 1


def test_without_javascript_there_is_a_still_picture(open_tab):
    tab = open_tab("file", START, java_script_enabled=False, viewport=SCREENS["phone"])
    picture = tab.page.locator("#front-picture")
    expect(picture.locator("#front-text")).to_be_hidden()
    expect(picture.locator(".front-still").first).to_be_visible()
    assert picture.locator("#front-tokens li").count() > 5
    expect(picture.locator("#front-attention [aria-current]")).to_have_text(re.compile("she"))


def test_its_script_and_style_are_on_the_start_page_only(site):
    having = [page for page in site.rglob("*.html") if "front.js" in page.read_text(encoding="utf-8")]
    assert having == [site / START]


def test_the_road_is_whole(start):
    """Nothing is drawn outside the drawing, where paper and books cut it off."""
    outside = start.locator(".front-road").evaluate("""road => {
      const around = road.getBoundingClientRect(), box = part => part.getBoundingClientRect();
      const sticksOut = ({top, right, bottom, left}) => top < around.top - 1 || right > around.right + 1
        || bottom > around.bottom + 1 || left < around.left - 1;
      return [...road.querySelectorAll("text, line, path, circle")].filter(part => sticksOut(box(part)))
        .map(part => part.textContent || part.outerHTML); }""")
    assert outside == []


def test_the_road_is_walked_by_clicks(start):
    stations = start.locator(".front-road a")
    pages = stations.evaluate_all("links => links.map(link => new URL(link.href.baseVal, location).pathname)")
    assert len(pages) == len(set(pages)) >= 12
    for page in pages:
        assert re.search(r"/notebooks/\d\d_\w+\.html$", page)
    stations.nth(1).click()
    start.wait_for_url(f"**{pages[1].rpartition('/')[2]}")
    start.go_back()
    start.wait_for_url("**/index.html")


def straight(texts: list[str]) -> list[str]:
    """Texts without round quotation marks and ellipses: the page sets them, and so do some claims."""
    return [re.sub("[‘’]", "'", re.sub("[“”]", '"', text)).replace("…", "...") for text in texts]


def test_the_index_of_claims_lists_all_and_sorts_and_filters(open_tab, site):
    tab = open_tab("file", "book/claims.html")
    rows = tab.page.locator("table.sortable tbody tr")
    claims = straight([claim.sentence for found in all_claims().values() for claim in found])
    expect(rows).to_have_count(len(claims))
    column = rows.locator("td:nth-child(2)")
    assert straight(column.all_inner_texts()) == claims
    field = tab.page.get_by_label("Filter the rows:")
    expect(field).to_be_visible()  # the table is ready for clicks
    tab.page.locator("table.sortable thead th").nth(1).click()
    expect(column.first).not_to_have_text(claims[0])
    turned = straight(column.all_inner_texts())
    assert sorted(turned) == sorted(claims) and turned != claims
    field.fill("pronoun")
    assert 0 < rows.count() < len(claims)
    rows.first.locator("a").click()
    tab.page.wait_for_url(re.compile(r"/notebooks/07_\w+\.html#[\w-]+$"))
    tab.close()


def test_terms_and_papers_lead_back_to_chapters(site):
    glossary, references = (
        BeautifulSoup((site / "book" / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
        for name in ("glossary", "references")
    )
    token = glossary.select_one("section#token")
    assert len(token.select("a[href*='notebooks/']")) > 3
    paper = references.find(id="ref-vaswani-2017")
    reading = BeautifulSoup(
        (site / "notebooks/07_attention_from_scratch.html").read_text("utf-8"), "html.parser"
    )
    assert paper is not None
    assert reading.select("section#further-reading a[href='../book/references.html#ref-vaswani-2017']")
