"""The EPUB: valid, whole, readable without scripts and without a network."""

import re

import pytest
from printed_book import (
    MATH,
    SVG,
    XHTML,
    Package,
    cells_of,
    check_package,
    check_with_epubcheck,
    exercises_of,
    printing_with,
    words,
)

from paper import epub
from paper.contents import Part
from paths import HTML

pytestmark = pytest.mark.site

CHAPTER = "notebooks/14_summarization"
PAGES = ("book/index", "book/glossary", "notebooks/attention_view", CHAPTER)


@pytest.fixture(scope="module")
def package(browser, site, tmp_path_factory) -> Package:
    """An EPUB of four pages."""
    target = tmp_path_factory.mktemp("epub") / "book.epub"
    with printing_with(browser):
        epub.make_epub(target, [Part("", PAGES[:2]), Part("Views & texts", PAGES[2:])], say=lambda _: None)
    assert [path.name for path in target.parent.iterdir()] == ["book.epub"]
    return Package(target)


def test_an_epub_is_complete_in_itself(package):
    check_package(package)


def test_epubcheck_finds_nothing(package):
    check_with_epubcheck(package.path)


def test_the_contents_name_chapters_and_sections(package):
    listed = package.text("contents.xhtml")
    for name in ("Glossary", "Views & texts", "Reading an attention view", "A control before a story"):
        assert name in listed


def test_a_chapter_has_its_open_code_and_the_titles_of_its_folds(package):
    page = package.pages["notebooks-14_summarization.xhtml"]
    text = words(package.text("notebooks-14_summarization.xhtml"))
    code = [cell.source for cell in cells_of(CHAPTER, "code")]
    lines = [line for source in code if not source.startswith("# @title") for line in source.splitlines()]
    assert [line for line in lines if words(line) not in text] == []
    titles = re.findall(r"(?m)^# @title (.+)", "\n".join(code))
    titles = [title for title in titles if not title.startswith(("Solution", "Set-up:"))]
    folds = ["".join(box.itertext()) for box in page.iter(f"{XHTML}div") if box.get("class") == "fold"]
    closed = [f"{title} (on the site)" for title in titles]
    assert len(closed) > 20 and sorted(fold.strip() for fold in folds) == sorted(closed)
    assert text.count("Hint:") > 3 and "git+https" not in text


def test_solutions_stand_in_an_appendix_with_links_both_ways(package):
    chapter, appendix = ("notebooks-14_summarization.xhtml", "notebooks-14_summarization-solutions.xhtml")
    text = words(package.text(appendix))
    cells = cells_of(CHAPTER, "code")
    exercises = exercises_of(CHAPTER)
    assert len(exercises) > 4
    links = {
        page: [a.get("href") for a in package.pages[page].iter(f"{XHTML}a")] for page in (chapter, appendix)
    }
    for exercise in exercises:
        name = exercise.replace(".", "-")
        assert links[chapter].count(f"{appendix}#solution-{name}") == 1
        assert links[appendix].count(f"{chapter}#exercise-{name}") == 1
        solution = next(c.source for c in cells if c.source.startswith(f"# @title Solution {exercise}\n"))
        assert [line for line in solution.splitlines()[1:] if words(line) not in text] == []
    assert f'{appendix}">14 Summarization' in package.files["contents.xhtml"].decode()


def test_formulas_are_mathml(package):
    page = (HTML / f"{CHAPTER}.html").read_text(encoding="utf-8")
    names = ("notebooks-14_summarization.xhtml", "notebooks-14_summarization-solutions.xhtml")
    made = [formula for name in names for formula in package.pages[name].iter(MATH)]
    assert len(made) == len(re.findall(r'class="math ', page)) > 5
    assert all(len(list(formula.iter())) > 1 for formula in made)
    assert not any("\\(" in package.text(name) for name in names)


def test_views_are_pictures_that_are_told_in_words(package):
    images = [e for e in package.pages["notebooks-attention_view.xhtml"].iter(f"{XHTML}img")]
    view = next(image for image in images if "view-0" in image.get("src"))
    assert "layer 5" in view.get("alt") and "time" in view.get("alt")
    assert len(package.files[view.get("src")]) > 20_000, "a picture with lines in it"


def test_the_start_page_does_without_script_and_style_sheet(package):
    page, text = package.pages["book-index.xhtml"], package.text("book-index.xhtml")
    chips = ["".join(item.itertext()) for item in page.iter(f"{XHTML}li") if item.get("class", "") != ""]
    assert any(re.fullmatch(r"emma\d+%", chip) for chip in chips)
    assert "Text becomes tokens" in text and "Choose a sentence" not in text
    road = next(page.iter(f"{SVG}svg"))
    assert [link.get("href") for link in road.iter(f"{SVG}a")] == ["notebooks-14_summarization.xhtml"]
    box = next(link.find(f"{SVG}rect") for link in road.iter(f"{SVG}a"))
    assert "fill: none" in box.get("style"), "titles can be read"
    assert "background: #ffffff" in road.get("style"), "the ink is that of light pages"
    painted = [part.get("style") for part in road.iter()]
    assert all(painted) and not any("var(" in style for style in painted)
    assert len({part.get("transform") for part in road.iter()} - {None}) > 12, (
        "chapters stand in their places"
    )
