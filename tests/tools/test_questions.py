"""The five questions of each chapter: the rules that their files follow, and the cells made of them."""

import copy
import json
import re
from collections import Counter
from pathlib import Path

import nbformat
import pytest

import address
import questions
from paths import ROOT, notebooks

FOLDER = ROOT / "book" / "questions"
FILES = sorted(FOLDER.glob("*.json"))
CHAPTERS = [path for path in notebooks() if re.match(r"\d\d_", path.name)]
every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def read(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["questions"]


def made() -> list[dict]:
    """Five questions that follow the rules, with the right answers A B C A B."""
    options = ["It grows with the length.", "It stays as it is.", "It becomes zero."]
    return [
        {
            "question": f"What happens to the number {i}?",
            "options": [
                {"text": text, "right": place == i % 3, "why": f"Because of reason {place} there."}
                for place, text in enumerate(options)
            ],
        }
        for i in range(5)
    ]


# --- The files.


@every_file
def test_a_file_follows_the_rules(path):
    assert questions.faults(read(path)) == []
    assert set(json.loads(path.read_text(encoding="utf-8"))) == {"questions"}


def test_every_chapter_has_its_questions():
    wanted = [chapter.name[:2] for chapter in CHAPTERS]
    assert [path.stem for path in FILES] == wanted, "book/questions/NN.json holds the questions of chapter NN"


def test_the_letters_of_right_answers_are_spread_over_the_book():
    letters = Counter(questions.right_letter(one) for path in FILES for one in read(path))
    total = sum(letters.values())
    assert all(0.1 < letters[letter] / total < 0.45 for letter in "ABCD"), letters


@pytest.mark.parametrize("extreme", [min, max])
def test_the_length_does_not_give_the_right_option_away(extreme):
    """Whoever always takes the longest, or the shortest, is right hardly more often than by chance."""
    every = [one["options"] for path in FILES for one in read(path)]
    taken = [extreme(options, key=lambda one: len(one["text"]))["right"] for options in every]
    assert sum(taken) / len(taken) < 0.4


def test_the_first_question_has_no_letter_of_its_own():
    letters = Counter(questions.right_letter(read(path)[0]) for path in FILES)
    assert max(letters.values()) <= len(FILES) / 2, letters


def test_no_question_stands_twice():
    texts = [one["question"] for path in FILES for one in read(path)]
    assert len({*texts}) == len(texts)


@every_file
def test_an_explanation_says_more_than_its_option(path):
    for one in read(path):
        for option in one["options"]:
            assert option["why"].strip() != option["text"].strip()
            assert option["why"].rstrip().endswith((".", ")", "?", "!", "”", "$")), option["why"]


# --- The rules find what breaks them.


def spoiled(change) -> list[dict]:
    broken = copy.deepcopy(made())
    change(broken)
    return broken


def set_right(broken: list[dict], letters: str) -> None:
    for one, right in zip(broken, letters, strict=True):
        for letter, option in zip("ABC", one["options"], strict=True):
            option["right"] = letter == right


FAULTS = {
    "4 questions, not 5": lambda b: b.pop(),
    "fields": lambda b: b[0].update(hint="no"),
    "2 options": lambda b: b[1]["options"].pop(),
    "other fields": lambda b: b[1]["options"][0].pop("why"),
    "true or false": lambda b: b[2]["options"][0].update(right="yes"),
    "not exactly one": lambda b: [option.update(right=True) for option in b[3]["options"]],
    "are equal": lambda b: b[4]["options"][0].update(text="It stays as it is."),
    "B is not explained": lambda b: b[0]["options"][1].update(why="No."),
    "about other options": lambda b: b[0]["options"][2].update(text="All of the above."),
    "more than inline": lambda b: b[0].update(question="One\n\ntwo <b>three</b>"),
    "not closed": lambda b: b[0]["options"][0].update(text="It is `x"),
    "use three letters": lambda b: set_right(b, "AABBA"),
    "are the longest": lambda b: [
        next(option for option in one["options"] if option["right"]).update(text=f"A long option {i} " * 3)
        for i, one in enumerate(b[:3])
    ],
}


def test_what_follows_the_rules_has_no_faults():
    assert questions.faults(made()) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault):
    found = "; ".join(questions.faults(spoiled(FAULTS[fault])))
    assert fault in found


@pytest.mark.parametrize("text", ["Both of the options", "none of the above", "Both A and C"])
def test_options_about_other_options_are_refused(text):
    assert questions.CATCH_ALL.search(text)
    assert not questions.CATCH_ALL.search("All of them: both tokens and positions")


# --- The cell.


@pytest.fixture
def book(tmp_path) -> Path:
    """A notebook with exercises and a file of questions, in the folders of a book."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "book" / "questions").mkdir(parents=True)
    texts = "# 03 Title", "## Exercises\n\n**3.1 (10 min)** Do."
    cells = [nbformat.v4.new_markdown_cell(text) for text in texts]
    path = tmp_path / "notebooks" / "03_title.ipynb"
    path.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=cells)) + "\n", encoding="utf-8")
    questions.file_of(path).write_text(json.dumps({"questions": made()}), encoding="utf-8")
    return path


def stamped(path: Path) -> str:
    text = questions.with_questions(path, path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")
    return text


def test_the_cell_stands_before_the_exercises_and_is_written_once(book):
    first = stamped(book)
    assert stamped(book) == first
    read_back = nbformat.reads(first, 4)
    nbformat.validate(read_back)
    assert nbformat.writes(read_back) + "\n" == first, "written as nbformat writes it"
    assert [cell.id for cell in read_back.cells][1] == questions.CELL
    assert [cell.source.split("\n")[0] for cell in read_back.cells] == [
        "# 03 Title", "## Five questions", "## Exercises"
    ]  # fmt: skip


def test_a_changed_question_changes_the_cell_and_nothing_else(book):
    former = nbformat.reads(stamped(book), 4)
    changed = made()
    changed[2]["options"][0]["why"] = "Another reason than the former."
    questions.file_of(book).write_text(json.dumps({"questions": changed}), encoding="utf-8")
    now = nbformat.reads(stamped(book), 4)
    differing = [b.id for a, b in zip(former.cells, now.cells, strict=True) if a != b]
    assert differing == [questions.CELL]
    assert "**A is wrong.** Another reason than the former." in now.cells[1].source


def test_the_cell_says_all_that_the_file_says():
    text = questions.as_markdown(made())
    for number, one in enumerate(made(), 1):
        assert f"**{number}.** {one['question']}" in text
        for letter, option in zip("ABC", one["options"], strict=True):
            verdict = "right" if option["right"] else "wrong"
            assert f"- **{letter}** {option['text']}" in text
            assert f"- **{letter} is {verdict}.** {option['why']}" in text
    assert re.findall(r'data-right="(.)"', text) == list("ABCAB")
    assert text.count("</details>") == text.count("<details ") == 5


def test_a_chapter_without_a_file_stays_as_it_is(book):
    questions.file_of(book).unlink()
    text = book.read_text(encoding="utf-8")
    assert questions.with_questions(book, text) == text


def test_a_broken_file_and_a_chapter_without_exercises_are_refused(book):
    text = book.read_text(encoding="utf-8")
    with pytest.raises(questions.QuestionsError, match="no cell that begins with"):
        questions.with_questions(book, text.replace("## Exercises", "## Other"))
    questions.file_of(book).write_text(json.dumps({"questions": made()[:3]}), encoding="utf-8")
    with pytest.raises(questions.QuestionsError, match=r"03\.json: 3 questions, not 5"):
        questions.with_questions(book, text)


def test_lint_notices_a_cell_that_is_out_of_date(monkeypatch, book):
    folder = book.parent.parent
    for name in (*address.TEXTS, "pyproject.toml"):
        (folder / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "_toc.yml").write_text("", encoding="utf-8")
    monkeypatch.setattr(address, "ROOT", folder)
    monkeypatch.setattr(address, "notebooks", lambda: [book])
    own = "notebooks/03_title.ipynb"
    stamped(book)
    assert own not in address.stamp(check_only=True)
    book.write_text(book.read_text(encoding="utf-8").replace("reason 0", "reason 9"), encoding="utf-8")
    assert own in address.stamp(check_only=True)
