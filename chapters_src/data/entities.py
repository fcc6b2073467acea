"""English sentences with named entities, written for this book: the data of chapter 01's entity model.

In the files, in `entities/` beside this module, entities are marked where they stand, so that a person can
edit them: `[Ada Moreno](PER) filed a bug from [Lisbon](LOC).` Read, a sentence is plain text, and each entity
is the offsets of its first character and of the one behind its last, and a label. Between those and the
labels of tokens, as a token classifier needs them, `bio_labels` and `entities_of` translate.

What the sentences are, what counts as an entity, how well trivial rules do, the license and the limits stand
in their card, `entities.md`, beside this file.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from chapters_src import resources

LABELS = ("PER", "ORG", "LOC", "MISC", "PACKAGE")
BIO_LABELS = (
    "O",
    *(f"{place}-{label}" for label in LABELS for place in "BI"),
)  # By the ids of a classifier.
SPLITS = ("train", "validation", "test")

_MARK = re.compile(r"\[([^][]*)\]\(([^()]*)\)")
_WORD = re.compile(r"\w(?:[\w.&'’+-]*\w)?")


class Entity(NamedTuple):
    """A named entity in a text: `text[start:end]` is its name."""

    start: int
    end: int
    label: str  # One of `LABELS`.


class Sentence(NamedTuple):
    """A text and its entities, from left to right; no two overlap."""

    text: str
    entities: tuple[Entity, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the entities, as they stand in the text."""
        return tuple(self.text[entity.start : entity.end] for entity in self.entities)


def load() -> dict[str, list[Sentence]]:
    """Load the sentences.

    Returns:
        The splits "train", "validation" and "test", each in the order of its file.

    Raises:
        resources.ResourceError: a file is missing or empty, or a line is damaged: then the message names the
            file, the line and the problem.
    """
    return {split: _read(Path(__file__).with_suffix("") / f"{split}.txt") for split in SPLITS}


def _read(path: Path) -> list[Sentence]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").removesuffix("\n").split("\n")
    except FileNotFoundError:
        raise resources.ResourceError(
            f"{path} is missing. Get it from this book's repository, or install the package again."
        ) from None
    sentences = []
    for number, line in enumerate(lines, start=1):
        try:
            sentences.append(parse(line))
        except ValueError as error:
            raise resources.ResourceError(
                f"{path}, line {number}: {error}. Mend the line if you have edited it; else get the file "
                "anew from this book's repository, or install the package again."
            ) from None
    return sentences


def parse(line: str) -> Sentence:
    """Read a sentence whose entities are marked.

    Args:
        line: such as "[Ada Moreno](PER) filed a bug from [Lisbon](LOC)." Square brackets stand for marks
            only.

    Returns:
        The sentence without the marks, and its entities.

    Raises:
        ValueError: the line is empty or not UTF-8; it has a bracket that belongs to no mark, a mark within a
            mark, an unknown label, a name that is empty or cut out of a word, or a space too many.
    """
    text, entities, behind = "", [], 0
    for mark in _MARK.finditer(line):
        name, label = mark.groups()
        if label not in LABELS:
            raise ValueError(f"the label {label!r} of {name!r} is none of {', '.join(LABELS)}")
        text += line[behind : mark.start()]
        entities.append(Entity(len(text), len(text) + len(name), label))
        text += name
        behind = mark.end()
    sentence = Sentence(text + line[behind:], tuple(entities))
    _check(sentence)
    return sentence


def _check(sentence: Sentence) -> None:
    text = sentence.text
    if not text.strip() or "\ufffd" in text:
        raise ValueError(f"the sentence is empty, or not UTF-8: {text!r}")
    if bracket := re.search(r"[][].{0,20}", text):
        raise ValueError(
            f"a square bracket belongs to no mark, or marks are nested, at {bracket[0]!r}; "
            "a mark is [name](LABEL), and square brackets stand for nothing else"
        )
    for (start, end, _), name in zip(sentence.entities, sentence.names, strict=True):
        if not name or name != name.strip():
            raise ValueError(f"the name {name!r} is empty, or has a space at an end: put it outside the mark")
        if re.search(r"\w$", text[:start]) or re.match(r"\w", text[end:]):
            raise ValueError(f"the name {name!r} is cut out of a word: mark whole words")
    if re.search(r"^\s|\s\s|[^\S ]|\s$", text):
        raise ValueError(f"a space too many, or a tab, in {text!r}")


def bio_labels(
    entities: Iterable[Entity], offsets: Sequence[tuple[int, int]], special: str | None = None
) -> list[str | None]:
    """Turn entities into a label for each token: B- for the first token of an entity, I- for the others.

    A token belongs to the entity that it shares a character with (the first one, if there are two), so this
    holds for words, for pieces of words, and for tokens with the space before them.

    Args:
        entities: from left to right.
        offsets: for each token the offset of its first character and of the one behind its last, as fast
            tokenizers give them. A token of no characters, such as [CLS] and padding, has two equal ones.
        special: the label of a token of no characters.

    Returns:
        One label a token: one of `BIO_LABELS`, or `special`.
    """
    entities = list(entities)
    labels: list[str | None] = []
    begun = set()
    for start, end in offsets:
        entity = next((e for e in entities if e.start < end and start < e.end), None)
        if start == end:
            labels.append(special)
        elif entity is None:
            labels.append("O")
        else:
            labels.append(f"{'I' if entity in begun else 'B'}-{entity.label}")
            begun.add(entity)
    return labels


def entities_of(labels: Sequence[str | None], offsets: Sequence[tuple[int, int]]) -> tuple[Entity, ...]:
    """Group the labels of tokens to entities: the way back from `bio_labels`.

    A model may say I- where nothing has begun, or where something else has: that counts as B-.

    Args:
        labels: one of `BIO_LABELS` for each token, or None for a token of no characters.
        offsets: as for `bio_labels`. An entity begins where its first token does and ends where its last one
            does, so tokens must not include the space before them.

    Returns:
        The entities, from left to right.

    Raises:
        ValueError: labels and offsets differ in number, or a label is none of `BIO_LABELS`.
    """
    if len(labels) != len(offsets):
        raise ValueError(f"{len(labels)} labels for the offsets of {len(offsets)} tokens")
    entities: list[Entity] = []
    previous = "O"
    for label, (start, end) in zip(labels, offsets, strict=True):
        if label is not None and label not in BIO_LABELS:
            raise ValueError(f"the label {label!r} is none of {', '.join(BIO_LABELS)}")
        place, _, kind = (label or "O").partition("-")
        if place == "I" and previous.endswith(f"-{kind}"):
            entities[-1] = entities[-1]._replace(end=end)
        elif place != "O":
            entities.append(Entity(start, end, kind))
        previous = label or "O"
    return tuple(entities)


def capitalized(text: str, label: str) -> tuple[Entity, ...]:
    """Find names by a rule: words with a capital letter, and all of them in a row.

    A baseline. The first word of the text counts only if the second one has a capital, too; "I" never does.

    Args:
        text: a sentence.
        label: what to call all of them.

    Returns:
        The names, from left to right.
    """
    words = list(_WORD.finditer(text))
    runs: list[Entity] = []
    for word in words:
        name = re.sub("['’]s$", "", word[0])
        start, end = word.start(), word.start() + len(name)
        if not name[0].isupper() or re.fullmatch("I(['’].*)?", name):
            continue
        if runs and text[runs[-1].end : start] == " ":
            runs[-1] = runs[-1]._replace(end=end)
        else:
            runs.append(Entity(start, end, label))
    if runs and runs[0].start == words[0].start() and runs[0].end <= words[0].end():
        del runs[0]
    return tuple(runs)


def looked_up(text: str, names: Mapping[str, str]) -> tuple[Entity, ...]:
    """Find names that are in a list.

    A baseline. Of names that overlap, the one that begins first counts, and then the longer one.

    Args:
        text: a sentence.
        names: a label for each name; capitals matter.

    Returns:
        The names, from left to right.
    """
    if not names:
        return ()
    longest_first = sorted(names, key=len, reverse=True)
    pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"
    return tuple(Entity(*found.span(), names[found[0]]) for found in re.finditer(pattern, text))
