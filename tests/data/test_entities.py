"""Sentences with named entities: marks read exactly, damage named, labels of tokens and back."""

import itertools
import re

import pytest
from tokenizers import Tokenizer

from chapters_src import resources
from chapters_src.data import entities
from chapters_src.data.entities import BIO_LABELS, LABELS, Entity, Sentence, bio_labels

FILES = {
    "train.txt": "[Ada Moreno](PER)'s mail from [Lisbon](LOC)\nno name (at all)\n",
    "validation.txt": "Ask [Noor](PER).\n",
    "test.txt": "[R](MISC) and [São Paulo](LOC)\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The files above in place of those of the package."""
    monkeypatch.setattr(entities, "__file__", str(tmp_path / "entities.py"))
    (tmp_path / "entities").mkdir()
    for file, text in FILES.items():
        (tmp_path / "entities" / file).write_text(text, encoding="utf-8")
    return tmp_path / "entities"


def test_load(folder):
    assert entities.sentences() == {
        "train": [
            Sentence("Ada Moreno's mail from Lisbon", (Entity(0, 10, "PER"), Entity(23, 29, "LOC"))),
            Sentence("no name (at all)", ()),
        ],
        "validation": [Sentence("Ask Noor.", (Entity(4, 8, "PER"),))],
        "test": [Sentence("R and São Paulo", (Entity(0, 1, "MISC"), Entity(6, 15, "LOC")))],
    }
    assert entities.sentences()["test"][0].names == ("R", "São Paulo")


def test_lines_may_end_as_on_windows(folder):
    expected = entities.sentences()
    path = folder / "train.txt"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert entities.sentences() == expected


@pytest.mark.parametrize("choice", ["embedded", "full"])
def test_the_sentences_are_the_same_with_either_choice(choice, monkeypatch):
    """The real files: text without the marks, and a name for each mark, read in another way."""
    monkeypatch.setenv("BOOK_RESOURCES", choice)
    for split, sentences in entities.sentences().items():
        path = resources.embedded.DATA_FOLDER / "entities" / f"{split}.txt"
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) == len(sentences) > 50
        for line, sentence in zip(lines, sentences, strict=True):
            parts = re.split(r"\[(.+?)\]\((\w+)\)", line)
            assert sentence.text == "".join(part for i, part in enumerate(parts) if i % 3 != 2)
            assert sentence.names == tuple(parts[1::3])
            assert [entity.label for entity in sentence.entities] == parts[2::3]


DAMAGES = [  # What stands in line 2, and what the message says of it.
    (b"", "the sentence is empty"),
    (b"mail from [Lisbon](CITY)", "the label 'CITY' of 'Lisbon' is not one of PER, ORG, LOC, MISC, PACKAGE"),
    (b"mail from [Lisbon](loc)", "the label 'loc'"),
    (b"mail from [Lisbon]", r"belongs to no mark, or marks are nested, at '\[Lisbon\]'"),
    (b"mail from [Lisbon] (LOC)", "belongs to no mark"),
    (b"mail from Lisbon](LOC)", "belongs to no mark"),
    (b"[Bank of [Ireland](LOC)](ORG)", "marks are nested"),
    (b"[[Ireland](LOC)](ORG)", "marks are nested"),
    (b"[](PER) left", "the name '' is empty"),
    (b"[Ada ](PER)left", "the name 'Ada ' .*put it outside the mark"),
    (b"[Ireland](LOC)ish", "the name 'Ireland' is part of a word"),
    (b"un[Irish](MISC)", "the name 'Irish' is part of a word"),
    (b"[Ada](PER)[Moreno](PER)", "part of a word"),
    (b"no  name", "an extra space"),
    (b"no name ", "an extra space"),
    (b"no\tname", "an extra space, or a tab"),
    (b"na\xefve", "not UTF-8"),
]


@pytest.mark.parametrize(("content", "problem"), DAMAGES)
def test_a_damaged_line_is_named(content, problem, folder):
    lines = (folder / "train.txt").read_bytes().split(b"\n")
    lines[1] = content
    (folder / "train.txt").write_bytes(b"\n".join(lines))
    where = re.escape(f"{folder / 'train.txt'}, line 2: ")
    with pytest.raises(resources.ResourceError, match=rf"^{where}.*{problem}.*install the package again"):
        entities.sentences()


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_missing_or_empty(file, folder):
    (folder / file).write_bytes(b"")
    with pytest.raises(resources.ResourceError, match=f"{file}, line 1: the sentence is empty"):
        entities.sentences()
    (folder / file).unlink()
    with pytest.raises(resources.ResourceError, match=f"{file} is missing.*install the package again"):
        entities.sentences()


def test_labels_of_tokens():
    """[CLS] ann lee met ar ##up at matplotlib ##ib [SEP] and padding."""
    found = [Entity(0, 7, "PER"), Entity(12, 16, "PER"), Entity(16, 19, "LOC"), Entity(23, 33, "PACKAGE")]
    offsets = [(0, 0), (0, 3), (4, 7), (8, 11), (12, 14), (14, 16), (16, 19), (23, 31), (31, 33), (0, 0)]
    names = ["B-PER", "I-PER", "O", "B-PER", "I-PER", "B-LOC", "B-PACKAGE", "I-PACKAGE"]
    assert bio_labels(found, offsets) == [None, *names, None]
    assert bio_labels(found, offsets, special="O") == ["O", *names, "O"]
    assert bio_labels([], offsets[1:-1]) == ["O"] * 8


def test_a_token_may_carry_the_space_before_it():
    offsets = [(0, 3), (3, 8), (8, 10), (10, 11)]
    assert bio_labels([Entity(4, 10, "LOC")], offsets) == ["O", "B-LOC", "I-LOC", "O"]


def test_the_names_of_the_labels():
    assert len(BIO_LABELS) == 11 and BIO_LABELS[:3] == ("O", "B-PER", "I-PER")
    assert {name[2:] for name in BIO_LABELS[1:]} == set(LABELS)


def entities_of(labels, offsets):
    """The inverse of `bio_labels`."""
    found = []
    for label, (start, end) in zip(labels, offsets, strict=True):
        if label and label[0] == "I":
            found[-1] = found[-1]._replace(end=end)
        elif label and label[0] == "B":
            found.append(Entity(start, end, label[2:]))
    return tuple(found)


ALL = [sentence for sentences in entities.sentences().values() for sentence in sentences]


def test_there_and_back_with_the_tokens_of_the_encoder():
    tokenizer = Tokenizer.from_file(f"{resources.checkpoint('encoder')}/tokenizer.json")
    tokenizer.no_padding()
    pieces = 0
    for sentence in ALL:
        offsets = tokenizer.encode(sentence.text).offsets
        labels = bio_labels(sentence.entities, offsets)
        assert entities_of(labels, offsets) == sentence.entities
        assert [label is None for label in labels] == [True, *[False] * (len(labels) - 2), True]
        in_name = [label not in (None, "O") for label in labels]
        goes_on = [re.fullmatch(r"\w\w", sentence.text[start - 1 : start + 1]) for start, _ in offsets]
        pieces += sum(map(bool, itertools.compress(goes_on, in_name)))
    assert pieces > 500  # Tokens that go on a word inside a name.


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The mill of Norvik Paper burned.", ["Norvik Paper"]),
        ("Lisbon is far, I said, and I'm tired.", []),
        ("Ada Moreno's cat is in Lisbon, not in Porto.", ["Ada Moreno", "Lisbon", "Porto"]),
        ("Élise met Ångström & Sons on Monday.", ["Ångström", "Sons", "Monday"]),
        ("the numpy job", []),
    ],
)
def test_the_rule_of_capitals(text, names):
    found = entities.capitalized(text, "LOC")
    assert [text[start:end] for start, end, _ in found] == names
    assert {entity.label for entity in found} <= {"LOC"}


def test_looking_names_up():
    names = {"York": "LOC", "New York": "LOC", "New York Opera": "ORG", "C++": "MISC"}
    text = "The New York Opera left New York for York with a Yorkshire terrier, an EastYork map and C++."
    found = entities.looked_up(text, names)
    assert Sentence(text, found).names == ("New York Opera", "New York", "York", "C++")
    assert [entity.label for entity in found] == ["ORG", "LOC", "LOC", "MISC"]
    assert entities.looked_up(text, {}) == () == entities.looked_up("york", names)
