"""Guesses before results: what a Markdown cell asks, and what the executed output answers.

The question stands in a Markdown cell as text. The cell's metadata `guess` says how a reader of the site
answers it: by choosing (`options`, and which of them is `right`, counted from 1) or by a number. In both
cases `output` is the id of a later code cell, and a regular expression looks for the answer in what that cell
printed: so nobody types a number that the code prints, and a right option cannot become a wrong one
unnoticed. The script `book/_static/guesses.js` asks; without it the page shows question and output as before.
"""

import json
import math
import re
from itertools import takewhile
from typing import NamedTuple

from nbformat import NotebookNode

MOST = 4  # a chapter
FORMS = {"choice": {"options", "right", "matches"}, "number": {"value", "within", "factor", "unit"}}
FOLDED = "hide-cell"
OUTPUT_TAG = "guessed-"  # and the id of the question: myst-nb makes a class of it
_TAG = re.compile(r"<[^>]*>")


class GuessFailed(Exception):
    """A guess is not well formed, or the executed output no longer answers it."""


class Guess(NamedTuple):
    """A question that a reader answers before a result is shown."""

    chapter: str  # the stem of the notebook's name
    cell: str  # the id of the Markdown cell that asks
    output: str  # the id of the code cell that answers
    options: tuple[str, ...] = ()  # empty where a number is asked for
    right: int = 0  # which option, from 1
    pattern: str = ""  # what the output must have in it, or what finds the number
    within: float | None = None  # a number is close if it differs by no more than this,
    factor: float | None = None  # or if it is no more than this many times as large or as small
    unit: str = ""

    def fail(self, why: str) -> GuessFailed:
        """Return an error that names the place."""
        return _error(self.chapter, self.cell, why)


def guesses(notebook: NotebookNode, chapter: str) -> list[Guess]:
    """Return the guesses of a notebook, executed or not, in order.

    Raises:
        GuessFailed: the metadata of a cell are not well formed, or name a cell that does not follow.
    """
    found = []
    for place, cell in enumerate(notebook.cells):
        if "guess" in cell.metadata:
            if cell.cell_type != "markdown":
                raise _error(chapter, cell.id, "only a Markdown cell asks for a guess")
            guess = _read(cell.metadata["guess"], chapter, cell.id)
            _answers(notebook, place, guess)
            found.append(guess)
    if len(found) > MOST:
        raise GuessFailed(f"{chapter} has {len(found)} guesses: {MOST} are enough for a chapter")
    return found


def _error(chapter: str, cell: str, why: str) -> GuessFailed:
    return GuessFailed(f"{chapter}, cell {cell}: {why}")


def _read(said: dict, chapter: str, cell: str) -> Guess:
    """Return a guess from the metadata of a cell."""

    def check(condition: bool, why: str) -> None:
        if not condition:
            raise _error(chapter, cell, why)

    check(
        isinstance(said, dict) and isinstance(said.get("output"), str),
        "a guess names its `output`, a cell id",
    )
    form = "choice" if "options" in said else "number"
    unknown = sorted(said.keys() - FORMS[form] - {"output"})
    check(not unknown, f"a {form} does not have {', '.join(unknown)}")
    pattern = said.get("matches" if form == "choice" else "value")
    check(
        isinstance(pattern, str),
        f"a {form} needs {'`matches`' if form == 'choice' else '`value`'}, a pattern",
    )
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise _error(chapter, cell, f"{pattern!r} is no regular expression: {error}") from None
    if form == "choice":
        options = said["options"]
        good = isinstance(options, list) and all(isinstance(one, str) and one.strip() for one in options)
        check(good and 2 <= len(options) <= 5, "`options` is a list of two to five texts")
        check(len(set(options)) == len(options), "two `options` are the same")
        right = said.get("right")
        check(right in range(1, len(options) + 1), f"`right` is from 1 to {len(options)}, not {right!r}")
        return Guess(chapter, cell, said["output"], tuple(options), right, pattern)
    check(groups == 1, f"`value` has one group, the number, not {groups}: {pattern!r}")
    check(("within" in said) != ("factor" in said), "a number has either `within` or `factor`")
    within, factor = said.get("within"), said.get("factor")
    good = all(isinstance(one, int | float) for one in (within, factor) if one is not None)
    check(good and (within is None or within >= 0) and (factor is None or factor > 1), "`factor` is above 1")
    return Guess(chapter, cell, said["output"], (), 0, pattern, within, factor, said.get("unit", ""))


def _answers(notebook: NotebookNode, place: int, guess: Guess) -> list[NotebookNode]:
    """Return the code cells after a question, up to the one whose output answers it."""
    for end, cell in enumerate(notebook.cells[place + 1 :], place + 1):
        if cell.get("id") == guess.output and cell.cell_type == "code":
            if FOLDED in cell.metadata.get("tags", ()):
                raise guess.fail(f"the output of {guess.output} is folded; one that answers is open")
            return [one for one in notebook.cells[place + 1 : end + 1] if one.cell_type == "code"]
    raise guess.fail(f"no code cell {guess.output!r} follows")


def _covered(notebook: NotebookNode, answers: list[NotebookNode]) -> list[NotebookNode]:
    """Return the cells whose outputs wait: up to the answer, and those that follow it without a word."""
    rest = notebook.cells[notebook.cells.index(answers[-1]) + 1 :]
    cells = [*answers, *takewhile(lambda cell: cell.cell_type == "code", rest)]
    return [cell for cell in cells if cell.outputs and FOLDED not in cell.metadata.get("tags", ())]


# --- What the executed notebook answers.


def printed(cell: NotebookNode) -> str:
    """Return what a code cell shows, as plain text."""
    texts = ["".join(output.text for output in cell.outputs if output.output_type == "stream")]
    for output in cell.outputs:
        data = output.get("data", {})
        plain = data.get("text/plain", "")
        if "text/html" in data and (not plain or plain.startswith("<")):
            plain = _TAG.sub(" ", data["text/html"])
        texts.append(plain)
    return "\n".join(text for text in texts if text)


def answer(guess: Guess, cell: NotebookNode) -> float | None:
    """Return the number that an executed cell shows; None for a choice.

    Raises:
        GuessFailed: the output does not have what the guess looks for.
    """
    text = printed(cell)
    match = re.search(guess.pattern, text, re.MULTILINE)
    if match is None:
        shown = text if len(text) < 2000 else f"{text[:2000]} ..."
        what = "right answer" if guess.options else "number"
        raise guess.fail(
            f"the {what} is not in the output of {guess.output}: looked for {guess.pattern!r} in\n{shown}"
        )
    if guess.options:
        return None
    try:
        number = float(match[1].replace(",", "").replace("−", "-"))
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or (guess.factor and number <= 0):
        raise guess.fail(f"{match[1]!r} is no number that can be guessed; found with {guess.pattern!r}")
    return number


def with_guesses(executed: NotebookNode, chapter: str) -> None:
    """Give an executed notebook what the page needs to ask: a small script of data below each question.

    The code cells from the question to the answer get a tag, so that the page can cover their outputs. A
    notebook without outputs asks nothing; where results may differ from the book's, nor does a question whose
    answer is not there.

    Raises:
        GuessFailed: see `guesses` and `answer`.
    """
    asked = {guess.cell: guess for guess in guesses(executed, chapter)}
    for place, cell in enumerate(executed.cells):
        guess = asked.get(cell.get("id"))
        if guess is None:
            continue
        answers = _answers(executed, place, guess)
        if not answers[-1].outputs:
            continue
        try:
            number = answer(guess, answers[-1])
        except GuessFailed:
            if _results_may_differ():
                continue  # the question stays as text
            raise
        for code in _covered(executed, answers):
            code.metadata["tags"] = [*code.metadata.get("tags", ()), OUTPUT_TAG + guess.cell]
        cell.source += f"\n\n{_for_the_page(guess, number)}"


def _results_may_differ() -> str:
    """Return why results may differ from the book's, as `claim` sees it; empty where they must not."""
    from chapters_src import notebook  # imports PyTorch

    return notebook._why_results_may_differ(timing=False)


def _for_the_page(guess: Guess, number: float | None) -> str:
    """Return the data of a guess, as a script that no browser runs."""
    data = {"id": guess.cell, "chapter": guess.chapter}
    if guess.options:
        data |= {"options": guess.options, "right": guess.right - 1}
    else:
        close = {"within": guess.within} if guess.factor is None else {"factor": guess.factor}
        data |= {"value": number, "unit": guess.unit, **close}
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    return f'<script type="application/json" class="guess-data">{text}</script>'
