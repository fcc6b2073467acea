"""Guesses before results, and where the reader was: in a browser, with all that it keeps."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect
from site_visits import AXE, RUN_AXE, THEMES

from paths import notebooks
from website.guesses import Guess, guesses

pytestmark = pytest.mark.site
CHAPTER = "13_decoding"
START, BOX = "book/index.html", "book/how_to_use.html#what-the-site-remembers"
SCREENS = {"desktop": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 800}}


def notebook(chapter: str) -> nbformat.NotebookNode:
    [path] = [path for path in notebooks() if path.stem == chapter]
    return nbformat.read(path, 4)


def asked(chapter: str = CHAPTER) -> list[Guess]:
    return guesses(notebook(chapter), chapter)


CHOICE = next(guess for guess in asked() if guess.options)
NUMBER = next(guess for guess in asked() if not guess.options)


@pytest.fixture
def reader(browser, addresses) -> Iterator[Callable[[str], Page]]:
    """Open pages in one browser, which keeps what it is told: `reader("book/index.html")`."""
    context: BrowserContext = browser.new_context(
        viewport=SCREENS["desktop"], reduced_motion="reduce", accept_downloads=True
    )
    errors: list[str] = []

    def opened(name: str) -> Page:
        page = context.pages[0] if context.pages else context.new_page()
        if not errors:
            page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{addresses['file']}/{name}")
        return page

    yield opened
    assert errors == []


def chapter(reader, anchor: str = "", more: str = "") -> Page:
    return reader(f"notebooks/{CHAPTER}.html{more}{anchor}")


def form(page: Page, guess: Guess) -> Locator:
    return page.locator(".guess").nth(asked(guess.chapter).index(guess))


def output(page: Page, guess: Guess) -> Locator:
    return page.locator(f".tag_guessed-{guess.cell} > .cell_output").last


def kept(page: Page) -> dict:
    return page.evaluate("kept.all()")


def right_option(guess: Guess) -> str:
    return guess.options[guess.right - 1].replace("*", "").replace("`", "")


def is_covered(place: Locator) -> bool:
    return not place.evaluate("element => element.firstElementChild.checkVisibility()")


# --- Guessing.


def test_an_output_waits_until_the_reader_has_chosen(reader):
    page = chapter(reader)
    assert page.locator(".guess").count() == len(asked())
    for guess in asked():
        assert is_covered(output(page, guess))
        assert page.locator(f".tag_guessed-{guess.cell} :is(.cell_input, summary)").first.is_visible()
    own = form(page, CHOICE)
    own.get_by_role("button", name=right_option(CHOICE), exact=True).click()
    expect(own).to_contain_text("That is right.")
    expect(own.locator(".guess-said")).to_be_focused()
    assert not is_covered(output(page, CHOICE)) and is_covered(output(page, NUMBER))
    assert kept(page)[f"guess/{CHAPTER}/{CHOICE.cell}"]["right"] is True


def test_a_wrong_choice_names_the_right_one_and_both_are_marked(reader):
    page = chapter(reader)
    own = form(page, CHOICE)
    wrong = next(option for option in CHOICE.options if option != CHOICE.options[CHOICE.right - 1])
    own.get_by_role("button", name=wrong, exact=True).click()
    expect(own.locator(".guess-said")).to_contain_text(right_option(CHOICE))
    expect(own.locator("[data-state=right]")).to_have_text(right_option(CHOICE))
    expect(own.locator("[data-state=wrong]")).to_contain_text("(your guess)")
    assert kept(page)[f"guess/{CHAPTER}/{CHOICE.cell}"]["right"] is False


def value(page: Page, guess: Guess) -> float:
    data = page.locator("script.guess-data").nth(asked(guess.chapter).index(guess)).text_content()
    return json.loads(data)["value"]


@pytest.mark.parametrize("how", ["exactly", "close", "far", "percent", "no number"])
def test_a_number_opens_the_output_and_says_how_close_it_was(reader, how):
    page = chapter(reader)
    own, true = form(page, NUMBER), value(page, NUMBER)
    near, far = (true - NUMBER.within, true - NUMBER.within - 1)
    typed = {"exactly": true, "close": near, "far": far, "percent": f"{true:g} %", "no number": "many"}[how]
    own.get_by_role("textbox").fill(f"{typed}")
    page.keyboard.press("Enter")
    if how == "no number":
        expect(own).to_contain_text("Type a number.")
        expect(own.get_by_role("textbox")).to_be_focused()
        assert is_covered(output(page, NUMBER)) and not any("guess/" in key for key in kept(page))
        return
    said = {"close": "Close. You said", "far": "Not close. You said"}.get(how, "Exactly: ")
    expect(own.locator(".guess-said")).to_contain_text(said)
    assert not is_covered(output(page, NUMBER))
    assert kept(page)[f"guess/{CHAPTER}/{NUMBER.cell}"]["right"] is (how != "far")


def test_a_share_may_be_typed_in_percent(reader):
    share = next(guess for guess in asked("04_feature_extraction") if guess.unit.endswith("from 0 to 1"))
    page = reader(f"notebooks/{share.chapter}.html")
    own, true = form(page, share), value(page, share)
    own.get_by_role("textbox").fill(f"{100 * true - 5:g}%")
    page.keyboard.press("Enter")
    expect(own.locator(".guess-said")).to_contain_text(f"Close. You said {true - 0.05:g}, ")


def test_code_does_not_tell_what_its_output_hides(reader):
    """A claim's sentence stands in the code; it is black until the output opens, and copied whole."""
    page = chapter(reader)
    code = page.locator(f".tag_guessed-{CHOICE.cell} > .cell_input pre")
    told = code.locator(".guess-told-by-code")
    source = next(cell.source for cell in notebook(CHAPTER).cells if cell.id == CHOICE.output)
    claims = [line for line in source.split("\n") if line.startswith("claim(")]
    assert claims and told.all_text_contents() == claims
    assert told.locator("> span").evaluate_all("all => all.map(one => getComputedStyle(one).visibility)") == [
        "hidden"
    ] * len(claims)
    assert code.text_content().strip() == source
    form(page, CHOICE).get_by_role("button", name="Show me").click()
    expect(told.first.locator("> span")).to_have_css("visibility", "visible")


def test_show_me_opens_without_a_guess_and_one_can_be_asked_again(reader):
    page = chapter(reader)
    own = form(page, NUMBER)
    own.get_by_role("button", name="Show me").click()
    expect(own).to_contain_text("Shown without a guess.")
    assert not is_covered(output(page, NUMBER))
    page.reload()
    assert not is_covered(output(page, NUMBER))
    own.get_by_role("button", name="Ask me again").click()
    expect(own.get_by_role("textbox")).to_be_focused()
    assert is_covered(output(page, NUMBER))
    page.locator(f".tag_guessed-{NUMBER.cell} .guess-note button").click()
    assert not is_covered(output(page, NUMBER))


def test_a_guess_is_there_on_the_next_visit(reader):
    page = chapter(reader)
    form(page, NUMBER).get_by_role("textbox").fill("1")
    page.keyboard.press("Enter")
    page = reader(START)
    page = chapter(reader)
    expect(form(page, NUMBER)).to_contain_text("You said 1%")
    assert not is_covered(output(page, NUMBER))


def test_the_keyboard_alone_is_enough(reader):
    page = chapter(reader)
    own = form(page, CHOICE)
    own.get_by_role("button").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(own.locator(".guess-said")).to_be_focused()
    page.keyboard.press("Tab")
    expect(own.get_by_role("button", name="Ask me again")).to_be_focused()


def test_nothing_flashes_before_the_cover(browser, addresses):
    """While the page is being read, an output that waits is not shown."""
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script(WATCH)
    page.goto(f"{addresses['file']}/notebooks/{CHAPTER}.html")
    seen = page.evaluate("window.seen")
    assert seen and not any(seen)


WATCH = """window.seen = [];
const look = () => {
  for (const output of document.querySelectorAll('[class*="tag_guessed-"] > .cell_output'))
    window.seen.push(output.firstElementChild?.checkVisibility() ?? false);
  if (document.readyState !== 'complete') requestAnimationFrame(look);
};
requestAnimationFrame(look);
document.addEventListener('readystatechange', look);"""


# --- Links, search and paper lead into what is covered.


def test_a_link_into_a_covered_output_opens_it(reader):
    page = chapter(reader)
    page.evaluate(
        "id => document.querySelector(`.tag_guessed-${id} > .cell_output > *`).id = 'within'", CHOICE.cell
    )
    page.evaluate("location.hash = '#within'")
    page.wait_for_function("!document.querySelector('#within').closest('[hidden]')")
    expect(page.locator("#within")).to_be_in_viewport()
    expect(page.locator(f".tag_guessed-{CHOICE.cell} .guess-note").last).to_be_hidden()
    assert is_covered(output(page, NUMBER)) and kept(page).keys() <= {f"read/{CHAPTER}"}
    expect(form(page, CHOICE).get_by_role("button", name="Show me")).to_be_visible()


def test_what_was_searched_for_is_seen_in_a_covered_output(reader):
    words = "greedy loop"
    page = chapter(reader, anchor="#why-does-it-loop", more="?highlight=greedy+loop")
    page.wait_for_load_state("load")
    expect(output(page, CHOICE).locator("mark").first).to_be_visible(), words


def test_on_paper_nothing_waits_and_nobody_is_asked(reader):
    page = chapter(reader)
    page.emulate_media(media="print")
    page.wait_for_function("!document.querySelector('.guess')")
    assert page.locator(".guess, .guess-note:visible").count() == 0
    for guess in asked():
        assert not is_covered(output(page, guess))
    page.emulate_media(media="screen")
    page.wait_for_function("document.querySelector('.guess')")
    assert all(is_covered(output(page, guess)) for guess in asked())
    assert page.locator(".guess").count() == len(asked())


def test_without_javascript_question_and_output_are_there(open_tab):
    tab = open_tab("file", f"notebooks/{CHAPTER}.html", java_script_enabled=False)
    places = tab.page.locator("[class*='tag_guessed-'] > .cell_output")
    assert places.count() >= len(asked())
    expect(places.first).to_be_visible()
    assert tab.page.locator(".guess, .guess-note").count() == 0


# --- Where was I.


def read_on(page: Page, anchor: str) -> None:
    """Scroll through a section, as a reader does."""
    page.evaluate(SCROLL, anchor)
    page.wait_for_function("key => kept.read(key)", arg=f"read/{CHAPTER}")


SCROLL = """async anchor => {
  const section = document.getElementById(anchor);
  const own = section.querySelector(':scope > section') ?? section.nextElementSibling;
  const top = section.getBoundingClientRect().top + scrollY - 100;
  const end = (own ? own.getBoundingClientRect().top : section.getBoundingClientRect().bottom) + scrollY;
  for (let y = top; y < end + innerHeight; y += innerHeight / 2) {
    scrollTo({top: y, behavior: 'instant'});
    await new Promise(done => setTimeout(done, 400));
  }
}"""


def test_a_section_that_was_read_is_marked_and_the_start_page_leads_back(reader):
    page = chapter(reader)
    link = page.locator(".bd-sidebar-secondary a[href='#adding-logarithms']").first
    assert "was-read" not in (link.get_attribute("class") or "")
    read_on(page, "adding-logarithms")
    assert "adding-logarithms" in kept(page)[f"read/{CHAPTER}"]["sections"]
    assert "exercises" not in kept(page)[f"read/{CHAPTER}"]["sections"]
    assert "was-read" in link.get_attribute("class")
    page = reader(START)
    line = page.locator(".kept-line")
    expect(line).to_contain_text("Continue: 13 Decoding")
    share = page.locator(f".bd-sidebar-primary a[href$='{CHAPTER}.html'] .read-share")
    expect(share).to_contain_text("sections read")
    here = kept(page)[f"read/{CHAPTER}"]["here"]["anchor"]
    line.get_by_role("link", name="Continue").click()
    page.wait_for_url(f"**/{CHAPTER}.html#{here}")
    page = reader(START)
    page.get_by_role("button", name="Forget it").click()
    expect(line).to_contain_text("Forgotten.")
    assert kept(page) == {} and share.count() == 0
    line.get_by_role("button", name="Undo").click()
    expect(line).to_contain_text("Continue: 13 Decoding")


def test_a_jump_to_the_end_is_no_reading(reader):
    page = chapter(reader, anchor="#exercises")
    page.mouse.wheel(0, 300)
    page.wait_for_function("key => kept.read(key)", arg=f"read/{CHAPTER}")
    assert "adding-logarithms" not in kept(page)[f"read/{CHAPTER}"]["sections"]


# --- All that is kept: shown, saved, brought back, deleted; nothing else is touched.


def test_all_of_it_can_be_saved_deleted_and_brought_back(reader, tmp_path):
    page = chapter(reader)
    own = form(page, CHOICE)
    own.get_by_role("button", name=right_option(CHOICE), exact=True).click()
    read_on(page, "adding-logarithms")
    page = reader(BOX)
    page.evaluate("localStorage.setItem('other', 'theirs')")
    box = page.locator("#kept-box")
    expect(box).to_contain_text("1 of 1 guess right or close")
    expect(box.locator("tbody tr")).to_contain_text(["13 Decoding"])
    with page.expect_download() as saved:
        box.get_by_role("button", name="Save as a file").click()
    file = tmp_path / "kept.json"
    saved.value.save_as(file)
    before = kept(page)
    assert json.loads(file.read_text(encoding="utf-8")) == before != {}

    box.get_by_role("button", name="Forget everything").click()
    expect(box).to_contain_text("Nothing yet.")
    assert kept(page) == {} and page.evaluate("localStorage.getItem('other')") == "theirs"
    box.get_by_role("button", name="Undo").click()
    expect(box).to_contain_text("All of it is back.")
    assert kept(page) == before

    box.get_by_role("button", name="Forget everything").click()
    page.reload()
    expect(box).to_contain_text("Nothing yet.")
    box.locator("input[type=file]").set_input_files(file)
    expect(box).to_contain_text("Brought back: 2 entries.")
    assert kept(page) == before
    box.locator("input[type=file]").set_input_files(Path(__file__))
    expect(box).to_contain_text("This file cannot be read.")
    assert kept(page) == before


def test_a_reader_may_want_no_covers(reader):
    page = reader(BOX)
    page.get_by_role("checkbox", name="Cover an output").uncheck()
    page = chapter(reader)
    assert page.locator(".guess").count() == 0
    assert not is_covered(output(page, CHOICE))
    page = reader(BOX)
    page.get_by_role("checkbox", name="Cover an output").check()
    page = chapter(reader)
    assert page.locator(".guess").count() == len(asked())


BLOCKED = {
    "refused": "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no') } })",
    "full": "Storage.prototype.setItem = () => { throw new DOMException('full') }",
    "missing": "Object.defineProperty(window, 'localStorage', { value: null })",
    "damaged": "localStorage.setItem('transformers-taken-apart/guess/13_decoding/x', '{oh');"
    "localStorage.setItem('transformers-taken-apart/read/13_decoding', '\"oh\"')",
}


@pytest.mark.parametrize("how", BLOCKED)
def test_a_browser_that_keeps_nothing_breaks_no_page(open_tab, browser, addresses, how):
    context = browser.new_context()
    context.add_init_script(BLOCKED[how])
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(error.stack or ""))
    for name in (START, BOX, f"notebooks/{CHAPTER}.html"):
        page.goto(f"{addresses['file']}/{name}")
        page.wait_for_timeout(200)
        if name == BOX and how != "damaged":
            expect(page.locator("#kept-box")).to_contain_text("This browser keeps nothing")
    own = form(page, CHOICE)
    own.get_by_role("button", name=right_option(CHOICE), exact=True).click()
    expect(own).to_contain_text("That is right.")
    assert not is_covered(output(page, CHOICE))
    page.mouse.wheel(0, 500)
    page.wait_for_timeout(500)
    scripts = ("shared.js", "kept.js", "guesses.js", "progress.js")  # the theme has some of its own
    assert [error for error in errors if any(script in error for script in scripts)] == []


# --- For everybody.


@pytest.mark.parametrize("screen", SCREENS)
def test_forms_and_box_are_accessible_and_fit(reader, screen, theme):
    page = chapter(reader)
    page.set_viewport_size(SCREENS[screen])
    own = form(page, CHOICE)
    own.get_by_role("button", name=CHOICE.options[0], exact=True).click()
    expect(page.get_by_role("group", name="Your guess").first).to_be_visible()
    for name, places in (("", [".guess", ".guess-note"]), (BOX, ["#kept-box"])):
        page = reader(name) if name else page
        page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        page.add_script_tag(path=AXE)
        found = page.evaluate(RUN_AXE, THEMES[theme])
        assert [
            one for one in found if any(p.strip(".#") in one["html"] + one["where"] for p in places)
        ] == []
        assert page.evaluate("document.scrollingElement.scrollWidth <= document.scrollingElement.clientWidth")
