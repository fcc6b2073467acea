"""Questions by rule, from the documentation of parameters in the installed packages: distant supervision.

The answer model of `recipes/heads.py` trains on them, beside the questions of
`chapters_src.data.question_answers`, whose card describes both.
"""

import hashlib
import inspect
import itertools
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from chapters_src import resources
from chapters_src.data import docstrings
from chapters_src.data.question_answers import Question

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


def questions(packages: Sequence[str] = docstrings.PACKAGES) -> dict[str, list[Question]]:
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
    by_context: dict[str, list[Question]] = {}
    for question in itertools.chain.from_iterable(docstrings.of_each(packages, _harvest)):
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
            for question in of_docstring(module, docstring, seen)
        ]
        (entry / "questions.json").write_text(json.dumps(found), encoding="utf-8")

    entry = resources.cached("parameters", docstrings.cache_key(package) | {"questions": rules}, build)
    return [Question(*row) for row in json.loads((entry / "questions.json").read_text(encoding="utf-8"))]


def of_docstring(module: str, docstring: str, seen: set[str] | None = None) -> list[Question]:
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
