"""Senses of words, and what each is a kind of: a small extract of WordNet (chapter 02).

WordNet groups words that share a meaning into *synsets*, and links each to the more general synset that it is
a kind of: its *hypernym*. For the words of `WORDS`, all senses and everything above them are in `wordnet/`
beside this file. Other words are looked up with NLTK, if NLTK and its copy of WordNet are installed.

The card beside this file, `wordnet.md`, describes the extract, its source, license and limits.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from chapters_src import resources
from chapters_src.data import damaged, lines_of

WORDS = (
    *("array", "axis", "banana", "fly", "good", "hotel"),
    *("kernel", "legend", "motel", "panda", "table", "tree"),
)
FOLDER = Path(__file__).parent / "wordnet"
PARTS_OF_SPEECH = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}

_FILES = {"senses.tsv": ["word", "synset"], "synsets.tsv": ["synset", "words", "hypernyms", "definition"]}


class Synset(NamedTuple):
    """One meaning, and the words that have it."""

    name: str  # Such as "panda.n.01": its first word, part of speech, and which sense of that word it is.
    words: tuple[str, ...]  # The synonyms, with spaces: "giant panda".
    hypernyms: tuple[str, ...]  # Names of the synsets that it is a kind of; nearly always one.
    definition: str

    @property
    def part_of_speech(self) -> str:
        """Noun, verb, adjective or adverb, as a word."""
        return PARTS_OF_SPEECH[self.name.rsplit(".", 2)[1]]


class WordNet(NamedTuple):
    """Some words and their senses."""

    senses: dict[str, tuple[str, ...]]  # The names of each word's synsets: nouns first, the commonest first.
    synsets: dict[str, Synset]  # These and everything above them, by name.

    def of(self, word: str) -> list[Synset]:
        """Return the senses of a word.

        Raises:
            KeyError: the word was not loaded.
        """
        if word not in self.senses:
            raise KeyError(f"{word!r} is not one of the loaded words: {', '.join(self.senses)}")
        return [self.synsets[name] for name in self.senses[word]]

    def chains(self, name: str) -> list[list[str]]:
        """Follow the hypernyms of a synset, such as "panda.n.01", to the top, along every path.

        Each chain begins at the top and ends with the synset itself.

        Raises:
            KeyError: the synset was not loaded.
        """
        if name not in self.synsets:
            raise KeyError(f"the synset {name!r} is not one of the {len(self.synsets)} loaded ones")
        above = self.synsets[name].hypernyms
        return [[*chain, name] for up in above for chain in self.chains(up)] if above else [[name]]


def read(words: Sequence[str] = WORDS) -> WordNet:
    """Load the senses of words, and all synsets above them.

    Words of `WORDS` need nothing but this package. With any other word, all are looked up in NLTK's copy of
    WordNet.

    Raises:
        resources.ResourceError: a word needs NLTK's copy, which is not installed; or a file is damaged.
        TypeError: `words` is a string.
    """
    if isinstance(words, str):
        raise TypeError(f"words is the string {words!r}; pass a sequence of words: ({words!r},)")
    if not set(words) <= set(WORDS):
        return extract(words, _nltk_reader(words))
    rows = {file: _read(FOLDER / file, columns) for file, columns in _FILES.items()}
    synsets = {
        name: Synset(name, _list(synonyms), _list(above), definition)
        for name, synonyms, above, definition in rows["synsets.tsv"]
    }
    senses = {word: tuple(name for of, name in rows["senses.tsv"] if of == word) for word in words}
    return _with_what_is_above(senses, synsets)


def extract(words: Sequence[str], reader: Any) -> WordNet:
    """Look up words with NLTK's reader, as was done for the extract: their senses and all synsets above them.

    `reader` is `nltk.corpus.wordnet`, or a `WordNetCorpusReader` of another folder. Senses of inflected forms
    ("flies" for "fly") are left out.
    """
    senses, synsets = {}, {}
    for word in words:
        found = [sense for sense in reader.synsets(word) if word in (n.lower() for n in sense.lemma_names())]
        senses[word] = tuple(sense.name() for sense in found)
        while found:
            sense = found.pop()
            above = [*sense.hypernyms(), *sense.instance_hypernyms()]
            synonyms = tuple(name.replace("_", " ") for name in sense.lemma_names())
            synsets[sense.name()] = Synset(
                sense.name(), synonyms, tuple(up.name() for up in above), sense.definition()
            )
            found += [up for up in above if up.name() not in synsets]
    return _with_what_is_above(senses, synsets)


def _with_what_is_above(senses: dict[str, tuple[str, ...]], synsets: dict[str, Synset]) -> WordNet:
    """Keep the synsets that the senses lead to, in alphabetical order."""
    wanted = {name for names in senses.values() for name in names}
    waiting = list(wanted)
    while waiting:
        new = set(synsets[waiting.pop()].hypernyms) - wanted
        wanted |= new
        waiting += new
    return WordNet(senses, {name: synsets[name] for name in sorted(wanted)})


def write(wordnet: WordNet, folder: Path) -> None:
    """Write the two files that `read` reads into an existing folder, for an `extract` of other words."""
    senses = [(word, name) for word, names in wordnet.senses.items() for name in names]
    synsets = [
        (s.name, "|".join(s.words), "|".join(s.hypernyms), s.definition) for s in wordnet.synsets.values()
    ]
    for (file, columns), rows in zip(_FILES.items(), (senses, synsets), strict=True):
        lines = ["\t".join(row) for row in (columns, *rows)]
        (folder / file).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def _nltk_reader(words: Sequence[str]) -> Any:
    other = ", ".join(sorted(set(words) - set(WORDS)))
    try:
        from nltk.corpus import wordnet

        wordnet.ensure_loaded()
    except (ImportError, LookupError):
        raise resources.ResourceError(
            f"The extract of WordNet has no senses of {other}. It has: {', '.join(WORDS)}. For other words "
            "install NLTK and its copy of WordNet: python -m pip install nltk, then "
            "python -m nltk.downloader wordnet"
        ) from None
    return wordnet


def _list(field: str) -> tuple[str, ...]:
    return tuple(field.split("|")) if field else ()


def _read(path: Path, columns: list[str]) -> list[list[str]]:
    rows = []
    for number, line in lines_of(path):
        row = line.split("\t")
        if len(row) != len(columns) or (number == 1 and row != columns):
            problem = f"{len(row)} fields instead of {', '.join(columns)}"
            raise damaged(path, number, problem, "put a tab between fields")
        rows.append(row)
    return rows[1:]
