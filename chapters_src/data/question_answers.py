"""Questions with their answer in a paragraph: the data of chapter 01's answer model.

In the files in `question_answers/` beside this module, a paragraph is followed by its questions, and each
question by its answer, so that they are easy to edit. When loaded, an answer has a start and an end offset
(exclusive). `load` returns the questions, `load_unanswerable` some that the paragraph does not answer, and
`load_parameters` many more of a narrow kind, generated from the documentation of parameters in the installed
packages.

The card beside this file, `question_answers.md`, describes the paragraphs, how well trivial rules do, the
license and the limits.
"""

import hashlib
import inspect
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import joblib

from chapters_src import resources
from chapters_src.data import docstrings
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


def load() -> dict[str, list[Question]]:
    """Load the questions that their paragraph answers.

    Returns:
        The splits "train", "validation" and "test", each in the order of its file. Each paragraph is in one
        split only.

    Raises:
        resources.ResourceError: a file is missing, or a line is damaged; the message names the file, the line
            and the fix.
    """
    return {split: _read(_FOLDER / f"{split}.txt")[1] for split in SPLITS}


def load_unanswerable() -> dict[str, list[Question]]:
    """Load the questions that their paragraph only seems to answer.

    Returns:
        The questions by split of the paragraph, each with an empty answer.

    Raises:
        resources.ResourceError: as for `load`, or a named paragraph does not exist.
    """
    found = {split: _read(_FOLDER / f"{split}.txt")[0] for split in SPLITS}
    contexts = {name: (split, text) for split, texts in found.items() for name, text in texts.items()}
    questions: dict[str, list[Question]] = {split: [] for split in SPLITS}
    path, name = _FOLDER / "unanswerable.txt", ""
    for number, line in _lines(path):
        if head := _HEAD.fullmatch(line):
            name = head[1]
            if name not in contexts:
                raise _damaged(
                    path, number, f"no paragraph is called {name!r}", "name one of the three splits"
                )
        elif line.startswith("! ") and line.endswith("?") and name:
            split, context = contexts[name]
            questions[split].append(Question(name, context, line[2:], "", 0, 0))
        else:
            raise _damaged(path, number, f"{line!r} is not a question", 'write "! ", the question and "?"')
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
            raise _damaged(path, number, *error.args) from None
    if asked:
        raise _damaged(path, number, f"the last question, {asked!r}, has no answer", "add it below")
    for name, number in zip(texts, heads, strict=True):
        if not any(question.paragraph == name for question in questions):
            raise _damaged(path, number, f"the paragraph {name!r} has no question", "ask one, or remove it")
    return texts, questions


class _BadLine(ValueError):
    """A line is damaged; the arguments are the problem and the fix."""


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty, with their numbers from 1."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise resources.ResourceError(
            f"{path} is missing. Get it from this book's repository, or install the package again."
        ) from None
    number = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if "\ufffd" in line or line != " ".join(line.split()):
            raise _damaged(path, number, f"{line!r} has an extra space or is not UTF-8", "rewrite it")
        if line:
            yield number, line
    if not text.strip():
        raise _damaged(path, number, "the file is empty", "restore it from this book's repository")


def _damaged(path: Path, number: int, problem: str, way_out: str) -> resources.ResourceError:
    return resources.ResourceError(
        f"{path}, line {number}: {problem}; {way_out}. If you have not edited the file, restore it from "
        "this book's repository, or install the package again."
    )


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
    """Return the kind of a question, by its first question word.

    Args:
        question: a question, such as "By how much did it grow?"

    Returns:
        One of `KINDS`; *whom* and *whose* count as "who".

    Raises:
        ValueError: there is no question word.
    """
    word = _KIND.search(question)
    if not word:
        raise ValueError(f"the question {question!r} has none of the words {', '.join(KINDS)}")
    return {"whom": "who", "whose": "who"}.get(word[0].lower(), word[0].lower())


def first_capitals(context: str, question: str) -> str:
    """Answer with the first capitalized words of the first sentence: a baseline.

    Args:
        context: a paragraph.
        question: ignored.

    Returns:
        A run of capitalized words, preferably not the one that opens the sentence; empty if there is none.
    """
    sentence = split_sentences(context)[0]
    runs = [match[0] for match in re.finditer(r"\b[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)*", sentence)]
    later = [run for run in runs if not sentence.startswith(run)]
    return next(iter(later or runs), "")


def by_kind(context: str, question: str) -> str:
    """Answer with words of the likeliest sentence that suit the kind of question: the best baseline.

    Args:
        context: a paragraph.
        question: a question about it.

    Returns:
        Capitalized words for *who* and *where*, a number for *how many*, *how much* and *when*, and the full
        sentence for everything else, or if it has none of these.
    """
    sentence = likeliest_sentence(context, question)
    asked = kind(question)
    if asked in ("who", "where"):
        return first_capitals(sentence, question) or sentence
    if asked in ("how many", "how much", "when"):
        return nearest_number(sentence, question) or sentence
    return sentence


def likeliest_sentence(context: str, question: str) -> str:
    """Answer with the sentence that has the most words of the question: a baseline.

    Args:
        context: a paragraph.
        question: a question about it.

    Returns:
        The sentence; the first one of equals.
    """
    wanted = set(re.findall(r"\w+", question.lower()))
    return max(
        split_sentences(context), key=lambda sentence: len(wanted & set(re.findall(r"\w+", sentence.lower())))
    )


def nearest_number(context: str, question: str) -> str:
    """Answer with the first number of the likeliest sentence: a baseline for "how many".

    Args:
        context: a paragraph.
        question: a question about it.

    Returns:
        The number as written, in digits or words; the first of the paragraph if that sentence has none; empty
        if the paragraph has none either.
    """
    number = _NUMBER.search(likeliest_sentence(context, question)) or _NUMBER.search(context)
    return number[0] if number else ""


# Questions by rule, from the documentation of parameters --------------------------------------------------

_LONGEST = 100  # Words of a context; a single parameter may have more, up to twice as many.
_LONGEST_ANSWER = 10  # Words.
_DEFAULT_FORMS = (
    "What is the default of {}?",
    "What is the default value of {}?",
    "Which value does {} have unless one is given?",
    "What is {} if nothing is passed for it?",
)
_TYPE_FORMS = (
    "What type is {}?",
    "What type does {} have?",
    "Of what type is {}?",
    "What does {} have to be?",
)
_CHOICE_FORMS = ("Which values may {} have?", "What can be chosen for {}?", "What are the choices for {}?")

_SECTION = re.compile(r"(?:other |keyword )?(?:parameters|args|arguments):?", re.IGNORECASE)
_NUMPY_ENTRY = re.compile(r"\*{0,2}(?P<name>\w+) ?: ?(?P<type>\S.*)")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(?P<name>\w+) ?\((?P<type>(?:[^()]|\([^()]*\))+)\): ?(?P<text>.*)")
_LITERAL = r"None|True|False|-?\d+(?:\.\d+)?(?:e-?\d+)?|'[^']*'|\"[^\"]*\"|\(\)|\[\]|\{\}"
_HEADER_DEFAULT = re.compile(
    rf"\b(?:defaults? to|default is|default:|default=|default) *(?P<value>{_LITERAL}|\([^()]*\)|[\w.+-]*\w)$"
)
_TEXT_DEFAULT = re.compile(
    rf"\b[Dd]efaults?(?: value)?(?: is| to|:|=) *(?P<value>{_LITERAL})(?=[.,;)]*(?: |$))"
)
_OPTIONAL = re.compile(r",? *\(?\b(?:optional|defaults?|keyword[- ]only)\b.*")
_NOT_PLAIN = re.compile(r"::|\\|\$|\||>>>|://|\.\. |%\(|[^\x20-\x7e]")


class _Parameter(NamedTuple):
    name: str
    type: str
    text: str  # Name, type and description as one line.
    type_end: int  # Where in that line the type ends.


def load_parameters(packages: Sequence[str] = docstrings.PACKAGES) -> dict[str, list[Question]]:
    """Generate questions from the documentation of parameters: distant supervision.

    A context describes one or several consecutive parameters. There is one question about each: its default,
    its type or its choices. The first call for a package parses its source; later calls read the cache. The
    same installed versions and the same rules give the same questions.

    Args:
        packages: names to import, in any order.

    Returns:
        Questions by split, as in `docstrings.split`: entire top-level modules are held out, and a held-out
        context shares no run of 13 words with an earlier split. `paragraph` is the dotted name of the module.

    Raises:
        resources.ResourceError: a package is not installed, or the cache folder cannot be written.
        TypeError: `packages` is a string.
    """
    if isinstance(packages, str):
        raise TypeError(f"packages is the string {packages!r}; pass a sequence of names: ({packages!r},)")
    chosen = sorted(set(packages))
    for package in chosen:
        docstrings.cache_key(package)  # Raises here rather than in a worker process.
    tasks = (joblib.delayed(_harvest)(package) for package in chosen)
    harvests = joblib.Parallel(n_jobs=min(len(chosen), joblib.cpu_count()))(tasks) if chosen else []
    by_context: dict[str, list[Question]] = {}
    for question in (question for harvest in harvests for question in harvest):
        known = by_context.setdefault(question.context, [])
        if not known or known[0].paragraph == question.paragraph:
            known.append(question)
    contexts = docstrings.split(
        docstrings.Paragraph(context, questions[0].paragraph.partition(".")[0], questions[0].paragraph)
        for context, questions in by_context.items()
    )
    return {
        split: [question for paragraph in found for question in by_context[paragraph.text]]
        for split, found in contexts.items()
    }


def _harvest(package: str) -> list[Question]:
    """Harvest one package, through the cache."""
    rules = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()

    def build(entry: Path) -> None:
        seen: set[str] = set()
        found = [
            question
            for module, docstring in docstrings.each_docstring(package)
            for question in parameter_questions(module, docstring, seen)
        ]
        (entry / "questions.json").write_text(json.dumps(found), encoding="utf-8")

    entry = resources.cached("parameters", docstrings.cache_key(package) | {"questions": rules}, build)
    return [Question(*row) for row in json.loads((entry / "questions.json").read_text(encoding="utf-8"))]


def parameter_questions(module: str, docstring: str, seen: set[str] | None = None) -> list[Question]:
    """Ask about the parameters of one docstring.

    Args:
        module: the paragraph name of the questions.
        docstring: as it stands in the source, in NumPy or Google style.
        seen: texts of parameters to skip; the ones of this docstring are added.

    Returns:
        The questions, in the order of the parameters.
    """
    seen = set() if seen is None else seen
    fresh = [parameter for parameter in _parameters(docstring) if parameter.text not in seen]
    seen.update(parameter.text for parameter in fresh)
    return [question for group in _groups(fresh) for question in _questions(module, group)]


def _parameters(docstring: str) -> Iterator[_Parameter]:
    """Yield the parameters of a docstring whose description is plain text."""
    lines = inspect.cleandoc(docstring).expandtabs().split("\n")
    for number, line in enumerate(lines):
        if not _SECTION.fullmatch(line.strip()):
            continue
        underlined = bool(re.fullmatch(r" *-{3,}", "".join(lines[number + 1 : number + 2])))
        if underlined or line.strip().endswith(":"):
            body = lines[number + 2 :] if underlined else lines[number + 1 :]
            yield from _entries(body, _indent(line), underlined)


def _entries(lines: list[str], outer: int, underlined: bool) -> Iterator[_Parameter]:
    """Yield the entries of one section: lines at one indent, each with deeper lines below it."""
    filled = [line for line in lines if line.strip()]
    indent = _indent(filled[0]) if filled else outer
    if indent < outer + (not underlined):
        return
    for number, line in enumerate(lines):
        if line.strip() and (_indent(line) < indent or re.fullmatch(r" *-{3,}", line)):
            return
        entry = (_NUMPY_ENTRY if underlined else _GOOGLE_ENTRY).fullmatch(line.strip())
        if (
            not entry
            or _indent(line) > indent
            or set("".join(lines[number + 1 : number + 2]).strip()) == {"-"}
        ):
            continue
        below = []
        for deeper in lines[number + 1 :]:  # The first paragraph of the description.
            if not deeper.strip() or _indent(deeper) <= indent or deeper.strip().startswith(("- ", "* ")):
                break
            below.append(deeper.strip())
        parameter = _parameter(entry.groupdict(), below)
        if parameter:
            yield parameter


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _parameter(entry: dict[str, str], below: list[str]) -> _Parameter | None:
    name, type_ = (_plain(entry[part]) for part in ("name", "type"))
    description = _plain(" ".join([entry.get("text", ""), *below]))
    start = f"{name} (" if "text" in entry else f"{name} : "
    text = f"{start}{type_}{'): ' if 'text' in entry else '. '}{description}"
    if (
        not 3 <= len(description.split()) <= 2 * _LONGEST
        or description.endswith(":")
        or _NOT_PLAIN.search(text)
    ):
        return None
    return _Parameter(name, type_, text, len(start) + len(type_))


def _plain(text: str) -> str:
    """Remove inline markup: quotes of code, stars of emphasis, roles, links, footnotes."""
    text = re.sub(r":[\w:+-]+:`[~!]?([^`<]+?)(?: *<[^`>]*>)?`|\[`~?([^`]+)`\](?:\([^)]*\))?", r"\1\2", text)
    text = re.sub(r"`~?| ?\[\w+\]_", "", text)
    return re.sub(r"\s+", " ", re.sub(r"\*+(?=\w)|(?<=\w)\*+", "", text)).strip(" ,")


def _groups(parameters: Iterable[_Parameter]) -> Iterator[list[_Parameter]]:
    """Group neighbors, as long as their context stays short."""
    group: list[_Parameter] = []
    for parameter in parameters:
        if group and sum(len(one.text.split()) for one in [*group, parameter]) > _LONGEST:
            yield group
            group = []
        if all(parameter.name != one.name for one in group):
            group.append(parameter)
    if group:
        yield group


def _questions(module: str, group: list[_Parameter]) -> Iterator[Question]:
    """Ask one question about each parameter. Its kind and wording depend on the text alone."""
    context, offset = "\n".join(parameter.text for parameter in group), 0
    for parameter in group:
        draw = zlib.crc32(f"{parameter.text}{len(context)}".encode())
        spans = [span for span in _spans(parameter) if _is_short(parameter.text[span[1] : span[2]])]
        if spans:
            forms, start, end = spans[draw % len(spans)]
            question = forms[draw // len(spans) % len(forms)].format(parameter.name)
            answer = parameter.text[start:end]
            yield Question(module, context, question, answer, offset + start, offset + end)
        offset += len(parameter.text) + 1


def _is_short(answer: str) -> bool:
    return 1 <= len(answer.split()) <= _LONGEST_ANSWER


def _spans(parameter: _Parameter) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Yield ways to ask about a parameter, with the start and end of the answer."""
    start = parameter.type_end - len(parameter.type)
    stated = _HEADER_DEFAULT.search(parameter.text[: parameter.type_end], start)
    defaults = [*filter(None, [stated]), *_TEXT_DEFAULT.finditer(parameter.text, parameter.type_end)]
    if len({match["value"] for match in defaults}) == 1:
        yield _DEFAULT_FORMS, *defaults[0].span("value")
    optional = _OPTIONAL.search(parameter.type)
    only_type = (parameter.type[: optional.start()] if optional else parameter.type).rstrip(" ,")
    forms = _CHOICE_FORMS if re.fullmatch(r"\{[^{}]*\}", only_type) else _TYPE_FORMS
    yield forms, start, start + len(only_type)
