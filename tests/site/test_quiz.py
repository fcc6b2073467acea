"""The five questions of a chapter in a browser: by mouse and keyboard, kept, forgotten, and on paper."""

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect
from site_visits import AXE, PHONE, RUN_AXE, THEMES, TOO_WIDE, opened

import questions
from paths import ROOT

pytestmark = pytest.mark.site

NAME = "07_attention_from_scratch"
CHAPTER = f"notebooks/{NAME}.html"
ASKED = json.loads((ROOT / "book" / "questions" / "07.json").read_text(encoding="utf-8"))["questions"]
RIGHT = [questions.right_letter(one) for one in ASKED]


chapter = opened(CHAPTER)


def plain(markdown: str) -> str:
    """The words of a Markdown text, without formulas and signs."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", markdown)
    return re.sub(r"\W+", " ", re.sub(r"\$[^$]*\$", " ", text)).strip()


def form(page: Page, number: int) -> Locator:
    return page.locator(".quiz-question").nth(number - 1)


def answer(page: Page, number: int, letter: str) -> None:
    form(page, number).get_by_role("radio", name=re.compile(f"^{letter} ")).check()
    form(page, number).get_by_role("button", name="Answer").click()


def wrong(number: int) -> str:
    return next(letter for letter in "ABC" if letter != RIGHT[number - 1])


def why(number: int, letter: str) -> str:
    return ASKED[number - 1]["options"]["ABCD".index(letter)]["why"]


def test_every_chapter_with_questions_shows_five_and_loads_the_script(site):
    for path in sorted((ROOT / "book" / "questions").glob("*.json")):
        (page,) = (site / "notebooks").glob(f"{path.stem}_*.html")
        text = page.read_text(encoding="utf-8")
        assert text.count('<details class="quiz-answers"') == 5
        assert "quiz.js" in text and "quiz.css" in text and "kept.js" in text
    others = site / "book" / "index.html", site / "book" / "glossary.html"
    assert not any("quiz.js" in page.read_text(encoding="utf-8") for page in others)


def test_a_form_says_what_the_file_says(chapter):
    assert chapter.locator(".quiz-question").count() == 5
    for number, one in enumerate(ASKED, 1):
        group = form(chapter, number).get_by_role("group")
        assert plain(one["question"])[:40] in plain(group.locator("legend").inner_text())
        assert group.get_by_role("radio").count() == len(one["options"])
        assert group.locator(":checked").count() == 0
    expect(chapter.locator("#five-questions details")).to_have_count(5)
    for fold in chapter.locator("#five-questions details").all():
        expect(fold).to_be_hidden()


def test_every_choice_is_answered_with_its_own_explanation(chapter):
    for number in (1, 2):
        told = form(chapter, number).get_by_role("status")
        form(chapter, number).get_by_role("button", name="Answer").click()
        expect(told).to_have_text("Choose an answer first.")
        for letter in "ABCD"[: len(ASKED[number - 1]["options"])]:
            answer(chapter, number, letter)
            verdict = "right" if letter == RIGHT[number - 1] else "wrong"
            expect(told).to_contain_text(f"{letter} is {verdict}.")
            assert plain(why(number, letter))[:40] in plain(told.inner_text())
            mark = form(chapter, number).locator(".quiz-mark").nth("ABCD".index(letter))
            expect(mark).to_have_text(verdict)


def test_a_wrong_answer_can_be_tried_again_and_five_right_ones_end_it(chapter):
    over = chapter.locator(".quiz-over")
    answer(chapter, 1, wrong(1))
    expect(form(chapter, 1).get_by_role("status")).to_contain_text("Try again.")
    for number, letter in enumerate(RIGHT, 1):
        expect(over).to_be_empty()
        answer(chapter, number, letter)
    expect(over).to_have_text(re.compile("^All 5 answered, 4 of them at the first try"))


def test_the_keyboard_is_enough(chapter):
    first = form(chapter, 1).get_by_role("radio").first
    chapter.locator("#five-questions h2").evaluate("heading => { heading.tabIndex = -1; heading.focus() }")
    chapter.keyboard.press("Tab")
    if chapter.evaluate("document.activeElement.matches('a')"):  # the sign beside the heading
        chapter.keyboard.press("Tab")
    expect(first).to_be_focused()
    outline = "input => getComputedStyle(input.closest('label')).outlineStyle"
    assert first.evaluate(outline) == "solid"
    for _ in range("ABCD".index(RIGHT[0])):
        chapter.keyboard.press("ArrowDown")
    if RIGHT[0] == "A":
        chapter.keyboard.press("Space")
    expect(form(chapter, 1).get_by_role("status")).to_be_empty()
    chapter.keyboard.press("Enter")
    expect(form(chapter, 1).get_by_role("status")).to_contain_text(f"{RIGHT[0]} is right.")
    chapter.keyboard.press("Tab")
    expect(form(chapter, 1).get_by_role("button", name="Answer")).to_be_focused()


def test_what_was_answered_is_kept_until_it_is_forgotten(open_tab):
    tab = open_tab("file", CHAPTER)
    page = tab.page
    answer(page, 2, wrong(2))
    answer(page, 2, RIGHT[1])
    kept = page.evaluate("kept.all('quiz/')")
    (value,) = kept.values()
    assert list(kept) == [f"quiz/{NAME}/2"]
    assert (value["tries"], value["right"]) == ([wrong(2), RIGHT[1]], RIGHT[1])
    page.reload()
    expect(form(page, 2).get_by_role("status")).to_contain_text(f"{RIGHT[1]} is right.")
    expect(form(page, 2).locator(".quiz-mark", has_text="wrong")).to_have_count(1)
    page.evaluate("kept.write('guess/elsewhere', 1)")
    page.get_by_role("button", name="Start over").click()
    expect(form(page, 2).get_by_role("status")).to_be_empty()
    assert form(page, 2).locator(":checked").count() == 0
    assert page.evaluate("[kept.all('quiz/'), kept.all('guess/')]") == [{}, {"guess/elsewhere": 1}]
    answer(page, 1, RIGHT[0])
    page.evaluate("kept.forget()")  # everything, from anywhere on the page
    expect(form(page, 1).get_by_role("status")).to_be_empty()
    assert tab.errors == []


def test_an_answer_to_a_question_that_was_rewritten_does_not_count(chapter):
    key = f"quiz/{NAME}/1"
    chapter.evaluate("key => kept.write(key, {tries: ['A'], right: 'A', sign: 'former'})", key)
    chapter.reload()
    expect(form(chapter, 1).get_by_role("status")).to_be_empty()
    expect(form(chapter, 1).locator(".quiz-mark", has_text=re.compile("right|wrong"))).to_have_count(0)


def test_without_javascript_questions_and_folded_answers_are_there(open_tab):
    tab = open_tab("file", CHAPTER, java_script_enabled=False)
    section = tab.page.locator("#five-questions")
    assert section.locator(".quiz-question").count() == 0
    for number, one in enumerate(ASKED, 1):
        fold = section.locator("details").nth(number - 1)
        expect(fold.locator("summary")).to_have_text(f"Answer {number}")
        assert plain(one["question"])[:40] in plain(section.inner_text())
        fold.locator("summary").click()
        expect(fold.get_by_text(f"{RIGHT[number - 1]} is right.")).to_be_visible()


def test_on_paper_the_questions_are_text_and_the_answers_come_last(open_tab):
    tab = open_tab("file", CHAPTER)
    page = tab.page
    answer(page, 1, wrong(1))
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator(".quiz-live")).to_be_hidden()
    expect(page.locator("#five-questions > ul").first).to_be_visible()
    assert page.locator("#five-questions details").count() == 0
    last = page.locator("article > section:last-of-type, article > section section:last-of-type").last
    expect(page.get_by_role("heading", name="Answers to the five questions")).to_be_visible()
    assert page.locator("article details.quiz-answers[open]").count() == 5
    expect(last).to_contain_text(f"{RIGHT[4]} is right.")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert page.locator("#five-questions details.quiz-answers:not([open])").count() == 5
    expect(page.get_by_role("heading", name="Answers to the five questions")).to_have_count(0)
    page.evaluate("document.documentElement.classList.add('whole-book')")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#five-questions details.quiz-answers").count() == 5, "the book collects them itself"


def test_the_widget_passes_axe_and_fits_a_phone(open_tab):
    tab = open_tab("file", CHAPTER, **PHONE)
    page = tab.page
    answer(page, 1, wrong(1))
    answer(page, 2, RIGHT[1])
    page.add_script_tag(path=AXE)
    ask = RUN_AXE.replace("axe.run({", "axe.run('#five-questions', {")
    for theme in THEMES:
        page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        assert page.evaluate(ask, None) == []
    assert page.evaluate(TOO_WIDE) == []
    for label in page.locator(".quiz-option").all()[:8]:
        assert label.bounding_box()["height"] >= 40
