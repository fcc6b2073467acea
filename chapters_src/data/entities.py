"""English sentences with named entities, written for this book: the data of chapter 01's entity model.

The files in `entities/` beside this module mark entities inline, so that they are easy to edit:
`[Ada Moreno](PER) filed a bug from [Lisbon](LOC).` When loaded, a sentence is plain text, and each entity has
a start offset, an end offset (exclusive) and a label. `bio_labels` makes of them the labels of tokens that a
token classifier needs.

The card beside this file, `entities.md`, describes the sentences, what counts as an entity, how well trivial
rules do, the license and the limits.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from chapters_src.data import damaged, lines_of

LABELS = ("PER", "ORG", "LOC", "MISC", "PACKAGE")
BIO_LABELS = ("O", *(f"{place}-{label}" for label in LABELS for place in "BI"))  # In the order of ids.
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
        """The names of the entities, as in the text."""
        return tuple(self.text[entity.start : entity.end] for entity in self.entities)


def sentences() -> dict[str, list[Sentence]]:
    """Load the sentences of the splits "train", "validation" and "test", each in the order of its file.

    Raises:
        resources.ResourceError: a file is missing or empty, or a line is damaged; the message names the file,
            the line and the problem.
    """
    return {split: [*_read(Path(__file__).with_suffix("") / f"{split}.txt")] for split in SPLITS}


def _read(path: Path) -> Iterator[Sentence]:
    for number, line in lines_of(path):
        try:
            yield parse(line)
        except ValueError as error:
            raise damaged(path, number, str(error), "mend the line") from None


def parse(line: str) -> Sentence:
    """Read a sentence whose entities are marked, and return it without the marks.

    "[Ada Moreno](PER) filed a bug from [Lisbon](LOC)." is such a line. Square brackets are only for marks.

    Raises:
        ValueError: the line is empty; it has a stray bracket, a mark within a mark, an unknown
            label, a name that is empty or part of a word, or an extra space.
    """
    text, entities, behind = "", [], 0
    for mark in _MARK.finditer(line):
        name, label = mark.groups()
        if label not in LABELS:
            raise ValueError(f"the label {label!r} of {name!r} is not one of {', '.join(LABELS)}")
        text += line[behind : mark.start()]
        entities.append(Entity(len(text), len(text) + len(name), label))
        text += name
        behind = mark.end()
    sentence = Sentence(text + line[behind:], tuple(entities))
    _check(sentence)
    return sentence


def _check(sentence: Sentence) -> None:
    text = sentence.text
    if not text.strip():
        raise ValueError("the sentence is empty")
    if bracket := re.search(r"[][].{0,20}", text):
        raise ValueError(
            f"a square bracket belongs to no mark, or marks are nested, at {bracket[0]!r}; "
            "a mark is [name](LABEL), and square brackets mean nothing else"
        )
    for (start, end, _), name in zip(sentence.entities, sentence.names, strict=True):
        if not name or name != name.strip():
            raise ValueError(f"the name {name!r} is empty, or has a space at an end: put it outside the mark")
        if re.search(r"\w$", text[:start]) or re.match(r"\w", text[end:]):
            raise ValueError(f"the name {name!r} is part of a word: mark whole words")
    if re.search(r"^\s|\s\s|[^\S ]|\s$", text):
        raise ValueError(f"an extra space, or a tab, in {text!r}")


def bio_labels(
    entities: Iterable[Entity], offsets: Sequence[tuple[int, int]], special: str | None = None
) -> list[str | None]:
    """Turn entities into a label for each token: B- for the first token of an entity, I- for the others.

    A token belongs to the first entity, from left to right, that it overlaps, so this works for words, for
    pieces of words, and for tokens that include the space before them.

    `offsets` are start and end (exclusive) of each token, as fast tokenizers return them. They are equal for
    a token without characters, such as [CLS] and padding, whose label is `special`; the others get one of
    `BIO_LABELS`.
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


def capitalized(text: str, label: str) -> tuple[Entity, ...]:
    """Find names by a rule, from left to right: runs of capitalized words. All get the same label.

    A baseline. The first word of the text counts only if the second one has a capital, too; "I" never does.
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
    """Find names of a list, case-sensitively, from left to right. The list has a label for each name.

    A baseline. Of overlapping names, the leftmost counts, then the longest.
    """
    if not names:
        return ()
    longest_first = sorted(names, key=len, reverse=True)
    pattern = rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"
    return tuple(Entity(*found.span(), names[found[0]]) for found in re.finditer(pattern, text))
