"""The five questions of a chapter: one JSON file for each, written into its notebook as a Markdown cell.

`stamp` calls `with_questions`. The cell holds everything, the answers in folds, so that Colab, JupyterLab and
a code host have it too. On the site `book/_static/quiz.js` makes forms of it. Standard library only, because
this runs before anything is installed.
"""

import json
import re
from pathlib import Path

CELL = "five-questions"  # the id of the cell, and the anchor of its heading
HEADING = "## Five questions"
BEFORE = "## Exercises"
NUMBER = 5  # of questions
OPTIONS = (3, 4)  # at least, at most
LETTERS = "ABCD"
CATCH_ALL = re.compile(
    r"\b(?:(?:all|none|both) of the (?:above|others?|options?)|both [A-D] and [A-D])\b", re.I
)
INTRODUCTION = (
    "Each asks what would follow, and one answer is right. Choose before you look: every answer says why it "
    "is right, or what is wrong with it."
)


class QuestionsError(Exception):
    """A file of questions breaks a rule; the message says which, and where."""


def file_of(notebook: Path) -> Path:
    """Return the file of a chapter's questions, which need not exist: `book/questions/03.json`."""
    return notebook.parent.parent / "book" / "questions" / f"{notebook.name[:2]}.json"


def with_questions(notebook: Path, text: str) -> str:
    """Return the text of a notebook's file with the cell of its questions up to date.

    Args:
        notebook: the file.
        text: its content. It comes back as it is if the chapter has no questions yet.

    Raises:
        QuestionsError: the questions break a rule, or the notebook has no exercises to put them before.
    """
    source = file_of(notebook)
    if not source.exists():
        return text
    questions = json.loads(source.read_text(encoding="utf-8"))["questions"]
    if problems := faults(questions):
        raise QuestionsError(f"{source.name}: " + "; ".join(problems))
    content = json.loads(text)
    cells = content["cells"]
    found = next((cell for cell in cells if cell.get("id") == CELL), None)
    if found is None:
        found = {"cell_type": "markdown", "id": CELL, "metadata": {}}
        cells.insert(_place(notebook, cells), found)
    found["source"] = as_markdown(questions).splitlines(keepends=True)
    # As nbformat writes it.
    return json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _place(notebook: Path, cells: list[dict]) -> int:
    """Return the index of the first cell of the exercises."""
    for place, cell in enumerate(cells):
        if cell["cell_type"] == "markdown" and "".join(cell["source"]).startswith(BEFORE):
            return place
    raise QuestionsError(f"{notebook.name} has no cell that begins with `{BEFORE}`")


def as_markdown(questions: list[dict]) -> str:
    """Return the questions of a chapter as the text of a Markdown cell."""
    parts = [HEADING, INTRODUCTION]
    for number, question in enumerate(questions, 1):
        options = question["options"]
        right = right_letter(question)
        parts.append(f"**{number}.** {question['question']}")
        parts.append("\n".join(f"- **{letter}** {one['text']}" for letter, one in _lettered(options)))
        parts.append(f'<details class="quiz-answers" data-right="{right}"><summary>Answer {number}</summary>')
        said = (
            f"- **{letter} is {'right' if letter == right else 'wrong'}.** {one['why']}"
            for letter, one in _lettered(options)
        )
        parts += ["\n".join(said), "</details>"]
    return "\n\n".join(parts)


def right_letter(question: dict) -> str:
    """Return the letter of the right answer."""
    return next(letter for letter, one in _lettered(question["options"]) if one["right"])


def _lettered(options: list[dict]) -> list[tuple[str, dict]]:
    return list(zip(LETTERS, options, strict=False))


def faults(questions: list[dict]) -> list[str]:
    """Return what is wrong with the questions of a chapter, in words; an empty list if nothing is.

    Args:
        questions: each `{"question": ..., "options": [{"text": ..., "right": ..., "why": ...}, ...]}`.
    """
    if len(questions) != NUMBER:
        return [f"{len(questions)} questions, not {NUMBER}"]
    found = []
    for number, question in enumerate(questions, 1):
        found += [f"question {number}: {fault}" for fault in _faults_of(question)]
    return found or _faults_of_all(questions)


def _faults_of(question: dict) -> list[str]:
    """Return what is wrong with one question."""
    if set(question) != {"question", "options"}:
        return [f"fields {sorted(question)}, not question and options"]
    options = question["options"]
    if not OPTIONS[0] <= len(options) <= OPTIONS[1]:
        return [f"{len(options)} options, not {OPTIONS[0]} or {OPTIONS[1]}"]
    if any(set(one) != {"text", "right", "why"} for one in options):
        return ["an option has other fields than text, right and why"]
    found = []
    if not all(isinstance(one["right"], bool) for one in options):
        found.append("right is true or false")
    elif sum(one["right"] for one in options) != 1:
        found.append("not exactly one option is right")
    texts = [one["text"].strip() for one in options]
    if len(set(texts)) < len(texts):
        found.append("two options are equal")
    for letter, one in _lettered(options):
        if len(one["why"].split()) < 4:
            found.append(f"{letter} is not explained")
        if CATCH_ALL.search(one["text"]):
            found.append(f"{letter} is about other options")
    for text in [question["question"], *texts, *(one["why"] for one in options)]:
        if "\n" in text or "<" in re.sub(r"`[^`]*`|\$[^$]*\$", "", text):
            found.append(f"more than inline Markdown: {text[:40]!r}")
        if text.count("`") % 2 or text.count("$") % 2:
            found.append(f"code or a formula is not closed: {text[:40]!r}")
    return found


def _faults_of_all(questions: list[dict]) -> list[str]:
    """Return what gives right answers away: their letters, or that they are always the longest."""
    found = []
    letters = [right_letter(question) for question in questions]
    if len(set(letters)) < 3 or max(map(letters.count, letters)) > 2:
        found.append(f"the right answers are {' '.join(letters)}: use three letters, none more than twice")
    longest = sum(
        max(question["options"], key=lambda one: len(one["text"]))["right"] for question in questions
    )
    if longest > 2:
        found.append(f"{longest} right answers are the longest of their options; at most 2 may be")
    return found
