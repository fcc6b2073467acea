"""Questions with their answer in a paragraph: the data of chapter 01's answer model.

In the files in `question_answers/` beside this module, a paragraph is followed by its questions, and each
question by its answer, so that they are easy to edit. When loaded, an answer has a start and an end offset
(exclusive). `questions` returns those that the paragraph answers, `unanswerable_questions` some that it does
not.

The card beside this file, `question_answers.md`, describes the paragraphs, how well trivial rules do, the
license and the limits.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from chapters_src.data import damaged, lines_of
from chapters_src.data.docstrings import SPLITS
from chapters_src.tokenization.sentences import split_sentences

KINDS = ("who", "what", "when", "where", "how many", "how much", "which", "why", "how")

_FOLDER = Path(__file__).with_suffix("")
_HEAD = re.compile(r"# ([a-z]+(?:-[a-z]+)+)")
_ANSWER = re.compile(r"=(\d*) (.*\S)")
_WHOLE = r"(?<!\w)(?<!\d[.,:]){}(?!\w|[.,:]\d)"  # Not within a word or a number.
_KIND = re.compile(r"\b(who|whom|whose|what|when|where|how many|how much|which|why|how)\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"\b(?:\d+(?:[.,:]\d+)*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen"
    r"|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|ninety|hundred)(?:-\w+)?\b",
    re.IGNORECASE,
)


class Question(NamedTuple):
    """A question and its answer in a paragraph: `context[start:end] == answer`."""

    paragraph: str  # The paragraph's name, "bug-legend-gone", or the module whose documentation it is.
    context: str
    question: str
    answer: str  # Empty if the paragraph has none; then start and end are 0.
    start: int
    end: int


def questions() -> dict[str, list[Question]]:
    """Load the questions that their paragraph answers: the splits "train", "validation" and "test".

    Each is in the order of its file, and each paragraph in one split only.

    Raises:
        resources.ResourceError: a file is missing, or a line is damaged; the message names the file, the line
            and the fix.
    """
    return {split: _read(_FOLDER / f"{split}.txt")[1] for split in SPLITS}


def unanswerable_questions() -> dict[str, list[Question]]:
    """Load the questions that their paragraph only seems to answer, by its split, each with an empty answer.

    Raises:
        resources.ResourceError: as for `questions`, or a named paragraph does not exist.
    """
    found = {split: _read(_FOLDER / f"{split}.txt")[0] for split in SPLITS}
    contexts = {name: (split, text) for split, texts in found.items() for name, text in texts.items()}
    questions: dict[str, list[Question]] = {split: [] for split in SPLITS}
    path, name = _FOLDER / "unanswerable.txt", ""
    for number, line in _lines(path):
        if head := _HEAD.fullmatch(line):
            name = head[1]
            if name not in contexts:
                raise damaged(
                    path, number, f"no paragraph is called {name!r}", "name one of the three splits"
                )
        elif line.startswith("! ") and line.endswith("?") and name:
            split, context = contexts[name]
            questions[split].append(Question(name, context, line[2:], "", 0, 0))
        else:
            raise damaged(path, number, f"{line!r} is not a question", 'write "! ", the question and "?"')
    return questions


# The files ------------------------------------------------------------------------------------------------


def _read(path: Path) -> tuple[dict[str, str], list[Question]]:
    """Read the paragraphs of a file, by name, and their questions."""
    texts: dict[str, str] = {}
    questions: list[Question] = []
    name = asked = ""
    heads = []  # Number of the line that opens each paragraph.
    for number, line in _lines(path):
        try:
            if asked:
                questions.append(_answered(name, texts[name], asked, line))
                asked = ""
            elif line.startswith("# "):
                name = _name(line, texts)
                texts[name] = ""
                heads.append(number)
            elif not name:
                raise _BadLine("the first line names no paragraph", 'put "# " and a name above the paragraph')
            elif line.startswith("? "):
                if not line.endswith("?"):
                    raise _BadLine(f"{line!r} does not end in a question mark", "add it")
                asked = line[2:]
            elif questions and questions[-1].paragraph == name:
                raise _BadLine(f"{line!r} follows a question", 'begin it with "? ", "=" or "# "')
            else:
                texts[name] = f"{texts[name]} {line}".strip()
        except _BadLine as error:
            raise damaged(path, number, *error.args) from None
    if asked:
        raise damaged(path, number, f"the last question, {asked!r}, has no answer", "add it below")
    for name, number in zip(texts, heads, strict=True):
        if not any(question.paragraph == name for question in questions):
            raise damaged(path, number, f"the paragraph {name!r} has no question", "ask one, or remove it")
    return texts, questions


class _BadLine(ValueError):
    """A line is damaged; the arguments are the problem and the fix."""


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty, with their numbers from 1."""
    found = False
    for number, line in lines_of(path):
        if line != " ".join(line.split()):
            raise damaged(path, number, f"{line!r} has an extra space", "remove it")
        if line:
            found = True
            yield number, line
    if not found:
        raise damaged(path, 1, "the file is empty", "restore it from this book's repository")


def _name(line: str, texts: dict[str, str]) -> str:
    head = _HEAD.fullmatch(line)
    if not head:
        raise _BadLine(f"{line!r} is not a name", 'write "# " and a name such as "bug-legend-gone"')
    if head[1] in texts:
        raise _BadLine(f"two paragraphs are called {head[1]!r}", "give one of them another name")
    return head[1]


def _answered(name: str, context: str, question: str, line: str) -> Question:
    """Find the answer in a line: "= text", or "=2 text" for the second occurrence of the text."""
    match = _ANSWER.fullmatch(line)
    if not match:
        raise _BadLine(f"{line!r} is not an answer to {question!r}", 'write "= " and words of the paragraph')
    place, answer = match.groups()
    starts = [found.start() for found in re.finditer(_WHOLE.format(re.escape(answer)), context)]
    if not starts:
        raise _BadLine(f"the answer {answer!r} is not in {name!r}", "copy it from the paragraph")
    if len(starts) > 1 and not place:
        raise _BadLine(
            f"the answer {answer!r} is in {name!r} {len(starts)} times", 'say which: "=1 ", "=2 " ...'
        )
    if not 1 <= int(place or 1) <= len(starts):
        raise _BadLine(
            f"there is no occurrence {place} of {answer!r} in {name!r}", f"the last is {len(starts)}"
        )
    start = starts[int(place or 1) - 1]
    return Question(name, context, question, answer, start, start + len(answer))


# Trivial rules --------------------------------------------------------------------------------------------


def kind(question: str) -> str:
    """Return the kind of a question, one of `KINDS`, by its first question word.

    *Whom* and *whose* count as "who".

    Raises:
        ValueError: there is no question word.
    """
    word = _KIND.search(question)
    if not word:
        raise ValueError(f"the question {question!r} has none of the words {', '.join(KINDS)}")
    return {"whom": "who", "whose": "who"}.get(word[0].lower(), word[0].lower())


def first_capitals(context: str, question: str) -> str:
    """Answer with the first capitalized words of the first sentence, whatever is asked: a baseline.

    It prefers a run that does not open the sentence; without capitals the answer is empty.
    """
    sentence = split_sentences(context)[0]
    runs = [match[0] for match in re.finditer(r"\b[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*", sentence)]
    later = [run for run in runs if not sentence.startswith(run)]
    return next(iter(later or runs), "")


def by_kind(context: str, question: str) -> str:
    """Answer with words of the likeliest sentence that suit the kind of question: the best baseline.

    These are capitalized words for *who* and *where*, a number for *how many*, *how much* and *when*, and the
    full sentence for everything else, or if it has none of these.
    """
    sentence = likeliest_sentence(context, question)
    asked = kind(question)
    if asked in ("who", "where"):
        return first_capitals(sentence, question) or sentence
    if asked in ("how many", "how much", "when"):
        return nearest_number(sentence, question) or sentence
    return sentence


def likeliest_sentence(context: str, question: str) -> str:
    """Answer with the sentence that has the most words of the question, the first of equals: a baseline."""
    wanted = set(re.findall(r"\w+", question.lower()))
    return max(
        split_sentences(context), key=lambda sentence: len(wanted & set(re.findall(r"\w+", sentence.lower())))
    )


def nearest_number(context: str, question: str) -> str:
    """Answer with the first number of the likeliest sentence, as written: a baseline for "how many".

    If that sentence has none, it is the first of the paragraph; empty if that has none either.
    """
    number = _NUMBER.search(likeliest_sentence(context, question)) or _NUMBER.search(context)
    return number[0] if number else ""
