"""How long a notebook takes, against counts by hand."""

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from paths import ROOT
from website import reading_time


def notebook(*cells) -> NotebookNode:
    """Return a notebook of Markdown (a string) and code (a string with its tags)."""
    made = [
        new_markdown_cell(cell)
        if isinstance(cell, str)
        else new_code_cell(cell[0], metadata={"tags": cell[1]})
        for cell in cells
    ]
    return new_notebook(cells=made)


# 9 words with the title, and 4 lines of code; what is folded, and the exercise, do not count.
SMALL = notebook(
    "# 03 One\n\nThe sum $a + b$ is [known](x.md#y).",  # 2 + the sum x is known x
    ("# a comment\nfor i in range(3):\n\n    # another\n    print(i)", []),
    ("a = 1\n" * 90, ["hide-cell"]),
    ("a = 1\n" * 90, ["hide-input", "timing"]),
    "<details><summary>Why?</summary>\n\n    code = 1\n\nThink twice.</details>",
    '<div class="machine" data-machine="x" data-start=\'{"a": [1, 2]}\'>\n<p>In place of it.</p>\n</div>',
    ('"""A docstring."""\nx = 1  # one', ["full-width"]),
    "## Exercises\n\n**3.1 (warm-up, 10 min)** " + "word " * 500,
    ("# Try it here.\na = 1", []),
)


def test_a_small_chapter_counted_by_hand():
    assert reading_time.minutes(SMALL) == pytest.approx(8 / 200 + 4 / 4)
    assert reading_time.exercise_minutes(SMALL) == 10


def test_sections_that_are_no_core_end_with_the_next_section():
    text = (
        "# T\n\n## Five questions\nout\n\n## Exercises\nout\n\n## Last words\nin\n\n## Further reading\nout"
    )
    assert reading_time.minutes(notebook(text)) == pytest.approx((1 + 3) / 200)
    apart = notebook("## Exercises", "a b", ("x = 1", []), "## Last words", ("x = 1", []))
    assert reading_time.minutes(apart) == pytest.approx(2 / 200 + 1 / 4)


@pytest.mark.parametrize("tag", ["hide-cell", "hide-input", "remove-cell", "remove-input"])
def test_code_that_a_tag_folds_or_removes_is_not_read(tag):
    assert reading_time.minutes(notebook(("a = 1", [tag]))) == 0
    assert reading_time.minutes(notebook(("a = 1", ["timing"]))) == 0.25


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Two words.", 2),
        ("a [link](../book/glossary.md#a-b-c)", 3),
        ("the sum $a + b + c$ is", 4),
        ("$$\na = b\n$$", 4),
        ("## A heading, and `code_name`", 4),
    ],
)
def test_words_are_counted(text, words):
    assert reading_time.count_words(text) == words


def test_exercises_carry_their_own_estimates():
    tasks = (
        "**3.1 (warm-up, 5 min)** See **3.2 (20 min)**.",  # named within a line: not its task
        "**3.2 (20 min)** Two.",
        "**3.3 (project, 90 min)** Three.",
        "**3.4** Nobody knows.",
    )
    assert reading_time.exercise_minutes(notebook("\n\n".join(tasks[:2]), *tasks[2:])) == 5 + 20 + 90


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        (0.6, "1 min"),
        (75, "75 min"),
        (99.6, "100 min"),
        (106, "1 h 45 min"),
        (239, "4 h"),
        (2714, "45 h 15 min"),
    ],
)
def test_times_are_rounded_as_people_say_them(minutes, said):
    assert reading_time.total([minutes / 2, minutes / 2]) == said


def test_the_book_says_how_the_time_is_counted():
    told = (ROOT / "book" / "how_to_use.md").read_text(encoding="utf-8")
    assert f"{reading_time.WORDS_A_MINUTE} words a minute" in told
    assert f"{reading_time.SECONDS_A_LINE} seconds for each line of code" in told
