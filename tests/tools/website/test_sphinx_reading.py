"""Chapters of a small book as its pages show them: numbers of figures, folded cells, exercises, times."""

import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from small_book import build

from paths import ROOT
from website import reading_time


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return build(tmp_path_factory.mktemp("book"))


@pytest.fixture(scope="module")
def chapter(book) -> BeautifulSoup:
    return page(book, "03_one")


def page(book, name: str) -> BeautifulSoup:
    return BeautifulSoup((book / "parts" / f"{name}.html").read_text(encoding="utf-8"), "html.parser")


def test_figures_have_the_number_of_their_chapter(book):
    numbers = {
        name: [number.get_text().strip() for number in page(book, name).select(".caption-number")]
        for name in ("00_zero", "03_one", "04_two")
    }
    assert numbers == {
        "00_zero": ["Figure 1", "Figure 2"],
        "03_one": ["Figure 3.1"],
        "04_two": ["Figure 4.1"],
    }


def test_a_folded_cell_says_what_it_holds(chapter):
    titles = [summary.get_text("|", strip=True) for summary in chapter.select("details summary")]
    assert titles == [
        "Show the set-up|Hide the set-up",
        "Show solution 3.2|Hide solution 3.2",
        "Show check: two ways|Hide check: two ways",
        "Show code|Hide code",
        "Show code and output|Hide code and output",
    ]


def test_an_exercise_has_an_anchor_and_a_link(chapter):
    exercises = {place["id"]: place for place in chapter.select("p.exercise")}
    assert list(exercises) == ["exercise-3-1", "exercise-3-2"]
    for name, place in exercises.items():
        (link,) = place.select("a.exercise-link")
        assert link["href"] == f"#{name}" and link["aria-label"]
    assert exercises["exercise-3-2"].get_text().startswith("3.2 (project)")


def test_a_page_takes_the_colors_of_the_system_before_the_theme_looks(chapter):
    text = str(chapter)
    assert text.index("prefers-color-scheme") < text.index('localStorage.getItem("theme")')


# --- How long a chapter takes to read.

FOLDED = new_code_cell("a = 1\n" * 90, metadata={"tags": ["hide-cell"]})
EXERCISES = "Last words.\n\n## Exercises\n\n**1.1** " + "word " * 5000


def test_the_book_tells_how_the_time_is_counted():
    told = (ROOT / "book" / "how_to_use.md").read_text(encoding="utf-8")
    words, lines = reading_time.WORDS_A_MINUTE, reading_time.LINES_A_MINUTE
    assert f"{words} words and {lines} lines of code a minute" in told


def of(*cells) -> int:
    return reading_time.minutes(new_notebook(cells=list(cells)))


@pytest.mark.parametrize(
    ("cells", "minutes"),
    [
        ([new_markdown_cell("word " * 220)], 1),
        ([new_markdown_cell("word " * 220 * 7)], 7),
        ([new_markdown_cell("word " * 220 * 33)], 35),
        ([new_markdown_cell("word " * 220), new_code_cell("a = 1\n\nb = 2\n" * 20)], 3),
        ([new_markdown_cell("word " * 220), FOLDED], 1),
        ([new_markdown_cell("word " * 440), new_markdown_cell(EXERCISES), new_code_cell("x\n" * 99)], 2),
    ],
    ids=["words", "minutes", "in fives", "code", "folded code", "exercises"],
)  # fmt: skip
def test_words_and_code_take_their_time(cells, minutes):
    assert of(*cells) == minutes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Two words.", 2),
        ("it's a well-known [link](../book/glossary.md#a-b-c)", 4),
        ("the sum $a + b + c$ is", 4),
        ("<details><summary>Hint</summary>Think twice.</details> seen", 1),
        ("## A heading, and `code_name`", 4),
    ],
)
def test_words_are_counted_as_a_reader_sees_them(text, words):
    assert reading_time.count_words(text) == words
