"""The skeleton of a chapter: it runs, it is listed, and it cannot be taken for a chapter."""

import re
import shutil
import sys

import nbformat
import pytest

import questions
import skeleton
from chapters_src import exercises
from chapters_src.exercises import checking
from paths import NOTEBOOKS, ROOT


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A copy of what the command reads and writes."""
    shutil.copytree(NOTEBOOKS, tmp_path / "notebooks")
    shutil.copyfile(ROOT / "_toc.yml", tmp_path / "_toc.yml")
    (tmp_path / "chapters_src" / "exercises").mkdir(parents=True)
    monkeypatch.setattr(skeleton, "PACKAGE", tmp_path / "chapters_src")
    monkeypatch.setattr(skeleton, "ROOT", tmp_path)
    monkeypatch.setattr(skeleton, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(skeleton, "notebooks", lambda: sorted((tmp_path / "notebooks").glob("*.ipynb")))
    return tmp_path


def test_a_skeleton_has_what_all_chapters_share(book):
    left = skeleton.make("99_a_new_chapter")
    notebook = nbformat.read(book / "notebooks" / "99_a_new_chapter.ipynb", 4)
    nbformat.validate(notebook)
    other = nbformat.read(max(NOTEBOOKS.glob("[0-9][0-9]_*")), 4)  # The chapter before it.
    assert notebook.metadata == other.metadata
    assert notebook.cells[0].source.startswith("# 99 A new chapter\n")
    same = [re.sub(r'setup\("\d\d".*\)', "setup()", nb.cells[1].source) for nb in (notebook, other)]
    assert same[0] == same[1] and 'device, SEED = setup("99")' in notebook.cells[1].source
    assert notebook.cells[1].metadata == other.cells[1].metadata
    assert any("index.md" in sentence for sentence in left)


def test_its_exercise_has_a_check_that_tells_answers_apart(book, monkeypatch, capsys):
    skeleton.make("99_a_new_chapter")
    monkeypatch.setattr(exercises, "__path__", [str(book / "chapters_src" / "exercises")])
    notebook = nbformat.read(book / "notebooks" / "99_a_new_chapter.ipynb", 4)
    starter, solution = (cell.source for cell in notebook.cells if 'check("99.1"' in cell.source)
    for source in (starter, starter.replace("None", "3"), solution):
        exec(source, {"check": exercises.check})
    monkeypatch.syspath_prepend(ROOT / "tests" / "exercises")
    from planted import PLANTED, judge

    exec((book / "tests/exercises/planted_99.py").read_text(encoding="utf-8"), {})
    case = PLANTED.pop("99.1")()
    assert [judge("99.1", *answers).kind for answers in (case.right, *case.also_right)] == ["right", "right"]
    for words, answers in case.wrong.items():
        verdict = judge("99.1", *answers)
        assert verdict.kind == "wrong" and words in verdict.message
    assert capsys.readouterr().out.splitlines() == [
        "99.1: nothing to check yet",
        "99.1: not yet. TBD: what is wrong, without giving the answer away.",
        "99.1: right. TBD: a sentence for a right answer.",
    ]
    del checking._CHECKS["99.1"], sys.modules["chapters_src.exercises.chapter_99"]


def test_its_questions_follow_the_rules_and_stand_before_the_exercises(book):
    skeleton.make("99_last")
    path = book / "notebooks" / "99_last.ipynb"
    text = questions.with_questions(path, path.read_text(encoding="utf-8"))
    headings = re.findall(r"(?m)^## .+$", "\n".join(c.source for c in nbformat.reads(text, 4).cells))
    assert headings[-3:] == ["## Five questions", "## Exercises", "## Further reading"]


def test_its_figure_has_a_caption_and_a_description(book):
    skeleton.make("99_last")
    notebook = nbformat.read(book / "notebooks" / "99_last.ipynb", 4)
    (figure,) = [cell for cell in notebook.cells if "plt.show()" in cell.source]
    assert {*figure.metadata["mystnb"]["figure"]} == {"caption", "name"}
    assert figure.metadata["mystnb"]["image"]["alt"] and figure.source.startswith("# @title Plot: ")


def test_it_is_listed_after_the_chapter_before_it(book):
    before = re.findall(r"notebooks/(\w+)", (book / "_toc.yml").read_text(encoding="utf-8"))
    skeleton.make("99_last")
    after = re.findall(r"notebooks/(\w+)", (book / "_toc.yml").read_text(encoding="utf-8"))
    last = max(name for name in before if name[0].isdigit())
    place = before.index(last) + 1
    assert after == [*before[:place], "99_last", *before[place:]]


def test_a_first_chapter_is_listed_before_the_others(book):
    skeleton.make("00_words")
    listed = re.findall(r"notebooks/(\d\d)", (book / "_toc.yml").read_text(encoding="utf-8"))
    assert listed == sorted(listed) and listed[0] == "00"


def test_the_tests_find_that_it_is_not_finished(book):
    """The words that tests/notebooks/test_notebook_sources.py looks for."""
    skeleton.make("99_last")
    parts = (
        "chapters_src/exercises/chapter_99.py",
        "tests/exercises/planted_99.py",
        "book/questions/99.json",
    )
    for name, least in (("notebooks/99_last.ipynb", 8), *((part, 2) for part in parts)):
        text = (book / name).read_text(encoding="utf-8")
        assert len(re.findall(r"\b(?:TODO|FIXME|XXX|TBD)\b", text)) >= least, name


@pytest.mark.parametrize(
    "name", [None, "", "language_model", "12", "12_Language", "12-language", "8_x", "08_again"]
)
def test_a_name_that_no_chapter_can_have(book, name):
    before = {path: path.read_bytes() for path in book.rglob("*") if path.is_file()}
    with pytest.raises(skeleton.SkeletonError):
        skeleton.make(name)
    assert {path: path.read_bytes() for path in book.rglob("*") if path.is_file()} == before
