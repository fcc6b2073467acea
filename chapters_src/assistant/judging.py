"""Judging answers by rules: what became of a question, and what in a reply stands in the report it answers.

Each rule is a few lines, so that a reader can say where it fails. None of them reads for meaning.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from chapters_src.evaluation.answers import answer_tokens
from chapters_src.tokenization.sentences import split_sentences

REFUSAL = "The passage does not say."

Outcome = Literal["right", "refused", "wrong", "invented"]
Kind = Literal["name", "version", "code", "number", "day", "promise"]

_DAYS = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DAY = re.compile(rf"\b(?:{_DAYS}|{_MONTHS})\b")
_VERSION = re.compile(r"\b\d+(?:\.\d+)+\b")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?![\w.]*\w)")
_CODE = re.compile(r"`([^`]+)`|\b\w+(?:_\w+)+\b|\b\w+\(\)")
_NAME = re.compile(r"\b[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*")
_NO_NAMES = {"Dear", "Hello", "Hi", "I", "We", "The", "Thank", "Thanks", "Until", "Please", "OK"}
_FUTURE = re.compile(
    r"(?<!you )(?<!You )(?:\b(?:will|shall|(?:is|are|am) going to|plan to|promise to|can have|can send)\b"
    r"|['’]ll\b)"
)
_WHEN = re.compile(
    rf"{_DAY.pattern}|\b(?:next|this|within|in|(?:by|before) the end of)(?: \w+){{0,2}} "
    r"(?:hours?|days?|weeks?|months?|years?|release|version|update|edition)\b|"
    r"\bthe \d+(?:st|[nr]d|th)\b|\bversion \d|"
    r"\b(?:today|tonight|tomorrow|soon|shortly|right away|immediately)\b",
    re.I,
)
_WAS_PROMISED = re.compile(r"\b(?:promise[sd]?|announce[sd]?|you (?:said|wrote|told))\b", re.I)


class Finding(NamedTuple):
    """A place in a reply that the report has to support."""

    kind: Kind
    start: int  # In characters.
    end: int
    text: str
    supported: bool  # Whether it stands in the report.


def is_refusal(answer: str) -> bool:
    """Return whether an answer says that the passage does not say, and nothing else."""
    return answer_tokens(answer) == answer_tokens(REFUSAL)


def outcome(answer: str, reference: str, passage: str, *, to_the_letter: bool = False) -> Outcome:
    """Say what became of a question.

    Args:
        answer: what was written.
        reference: the right answer; a refusal where the passage does not say.
        passage: what the answer is to be taken from.
        to_the_letter: whether every character counts, as for code; else words do, without capitals, articles
            and punctuation.

    Returns:
        "right", also of a refusal in its place; "refused", in the wrong place; "wrong": words that stand in
        the passage, in this order, and are not the answer; "invented": they do not stand there.
    """
    read = str.strip if to_the_letter else answer_tokens
    if read(answer) == read(reference):
        return "right"
    if is_refusal(answer):
        return "right" if is_refusal(reference) else "refused"
    words = " ".join(answer_tokens(answer))
    stands = bool(words) and f" {words} " in f" {' '.join(answer_tokens(passage))} "
    return "wrong" if stands else "invented"


def holds(answer: str, reference: str) -> bool:
    """Return whether an answer contains the words of the right one, in their order, with others around them.

    A kinder rule than `outcome`, for models that have not learned how short an answer is to be. An answer
    that repeats its whole passage passes it too, so look at its length as well.
    """
    words, wanted = (" ".join(answer_tokens(text)) for text in (answer, reference))
    return bool(wanted) and f" {wanted} " in f" {words} "


def addressee(reply: str) -> str:
    """Return whom a reply greets: "Dear Merete Falk, ..." greets Merete Falk; empty if nobody."""
    found = re.match(r"\s*(?:Dear|Hello|Hi) ((?:(?:[A-Z]|Dr|Mr|Mrs|Ms|Prof|Rev)\. )*[^,.!\n]+)[,.!\n]", reply)
    return found.group(1).strip() if found else ""


def findings(reply: str, report: str) -> list[Finding]:
    """Find the names, versions, names of code, numbers, days and promises of a reply, by rules, in its order.

    A promise is a sentence that says what will happen, and when (`promises`). It is supported only where the
    report says that somebody has promised something for that time. Everything else is supported if the same
    characters stand in the report. Days and numbers inside of a promise are part of it; names and versions
    there are findings of their own.
    """
    found: list[Finding] = []

    def add(kind: Kind, start: int, end: int, supported: bool) -> None:
        times = kind in ("day", "number")  # Inside of a promise they are part of it.
        around = [one for one in found if times or one.kind != "promise"]
        if all(end <= other.start or start >= other.end for other in around):
            found.append(Finding(kind, start, end, reply[start:end], supported))

    for start, end in promises(reply):
        times = [time.group().lower() for time in _WHEN.finditer(reply[start:end])]
        told = [one for one in split_sentences(report) if _WAS_PROMISED.search(one)]
        add("promise", start, end, any(time in one.lower() for time in times for one in told))
    for match in _CODE.finditer(reply):
        add("code", *match.span(), _stands(match.group(1) or match.group(), report))
    for match in _VERSION.finditer(reply):
        exactly = rf"(?<![\d.]){re.escape(match.group())}(?![\d.]*\d)"
        add("version", *match.span(), bool(re.search(exactly, report)))
    for match in _DAY.finditer(reply):
        add("day", *match.span(), _stands(match.group(), report))
    for match in _NUMBER.finditer(reply):
        exactly = rf"(?<![\d.,]){match.group()}(?!\d|[.,]\d)"
        add("number", *match.span(), bool(re.search(exactly, report)))
    starts = {start for start, _ in _sentences(reply)}
    for match in _NAME.finditer(reply):
        start, words = match.start(), match.group().split(" ")
        while words and (words[0] in _NO_NAMES or (start in starts and not _stands(" ".join(words), report))):
            start += len(words.pop(0)) + 1  # The first word of a sentence has a capital anyway.
        name = re.sub("['’]s$", "", " ".join(words))
        if name and not _DAY.fullmatch(name):
            add("name", start, start + len(name), _stands(name, report))
    return sorted(found, key=lambda one: (one.start, one.end))


def _stands(words: str, report: str) -> bool:
    """Return whether these characters are in a report, not as a part of longer words."""
    return bool(re.search(rf"(?<!\w){re.escape(words)}(?!\w)", report))


def promises(reply: str) -> list[tuple[int, int]]:
    """Return start and end of the sentences that say what will happen, and when.

    What the reader of the reply ("you") will do or see is left out.
    """
    return [
        (start, end)
        for start, end in _sentences(reply)
        if _FUTURE.search(reply[start:end]) and _WHEN.search(reply[start:end])
    ]


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence; the splitter itself makes one space of any white space."""
    end = 0
    for sentence in split_sentences(text):
        found = re.compile(r"\s+".join(map(re.escape, sentence.split()))).search(text, end)
        if found:
            end = found.end()
            yield found.span()


class Blind(NamedTuple):
    """Two answers in an order that hides who wrote which."""

    a: str
    b: str
    first_is_a: bool  # The key: look at it after the vote.


def blinded(first: Sequence[str], second: Sequence[str], seed: int) -> list[Blind]:
    """Put the N answers of two writers to the same questions side by side, each pair in an order drawn anew.

    Raises:
        ValueError: the numbers of answers differ.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} answers: pairs need as many of both")
    keeps = np.random.default_rng(seed).random(len(first)) < 0.5
    return [
        Blind(one, other, True) if keep else Blind(other, one, False)
        for one, other, keep in zip(first, second, keeps, strict=True)
    ]


def wins_of_first(pairs: Sequence[Blind], votes: Sequence[str]) -> list[float]:
    """Open the key: 1 where the first writer has won, 0 where the second has, 0.5 for a tie.

    `pairs` are those of `blinded`, and `votes` "A", "B" or "=" for each.

    Raises:
        ValueError: a vote is something else, or there are more or fewer of them.
    """
    if len(votes) != len(pairs) or not set(votes) <= {"A", "B", "="}:
        raise ValueError(f"votes={list(votes)!r}: for each of the {len(pairs)} pairs 'A', 'B' or '='")
    return [
        0.5 if vote == "=" else float((vote == "A") == pair.first_is_a)
        for pair, vote in zip(pairs, votes, strict=True)
    ]
