"""Chapters of a small book as its pages show them: numbers of figures, folded cells, exercises."""

import pytest
from bs4 import BeautifulSoup
from small_book import page


@pytest.fixture(scope="module")
def chapter(unpublished) -> BeautifulSoup:
    return page(unpublished, "parts/03_one.html")


def test_figures_have_the_number_of_their_chapter(unpublished):
    wanted = {"00_zero": ["Figure 1", "Figure 2"], "03_one": ["Figure 3.1"], "04_two": ["Figure 4.1"]}
    for name, numbers in wanted.items():
        found = page(unpublished, f"parts/{name}.html").select(".caption-number")
        assert [number.get_text().strip() for number in found] == numbers


def test_a_folded_cell_has_the_title_of_its_first_line(chapter):
    folds = {fold.summary.get_text(strip=True): fold for fold in chapter.select("div.cell > details.fold")}
    assert list(folds) == [
        "Set-up: install what is missing",
        "Solution 3.2",
        "Proof: a < b & c",
        "Code",  # of a cell without a title
    ]
    assert [summary.attrs for summary in chapter.select("details.fold summary")] == [{}] * 4
    with_output = [bool(fold.select(".cell_output")) for fold in folds.values()]
    assert with_output == [False, True, True, False]


def test_an_exercise_has_an_anchor_and_a_link(chapter):
    exercises = {place["id"]: place for place in chapter.select("p.exercise")}
    assert list(exercises) == ["exercise-3-1", "exercise-3-2"]
    for name, place in exercises.items():
        (link,) = place.select("a.exercise-link")
        assert link["href"] == f"#{name}" and link["aria-label"]
    assert exercises["exercise-3-2"].get_text().startswith("3.2 (project, 60 min)")
