"""The sentences with named entities themselves: are they what their card says?"""

import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from texts import most_alike

from chapters_src.data import entities
from chapters_src.data.entities import LABELS, SPLITS, bio_labels
from chapters_src.evaluation.spans import span_scores

CARD = " ".join(Path(entities.__file__).with_suffix(".md").read_text(encoding="utf-8").split())
# All words that names of two splits have in common.
COMMON_WORDS = set(
    re.findall(r"\w+", "bank day festival hospital institute lake library of street the treaty university")
)


@pytest.fixture(scope="module")
def splits():
    return entities.sentences()


@pytest.fixture(scope="module")
def everything(splits):
    return [(split, sentence) for split in SPLITS for sentence in splits[split]]


def words(text):
    return re.findall(r"\w+", text.casefold())


def names_of(sentences):
    return {name.casefold() for sentence in sentences for name in sentence.names}


def labels_of(sentences):
    return Counter(entity.label for sentence in sentences for entity in sentence.entities)


def test_sizes(splits):
    for split, sentences in splits.items():
        counts = labels_of(sentences)
        columns = [len(sentences), sum(not s.entities for s in sentences), counts.total()]
        columns += [*(counts[label] for label in LABELS), len(names_of(sentences))]
        assert f"| {split} | {' | '.join(map(str, columns))} |" in CARD
    assert [len(splits[split]) for split in SPLITS] == [603, 94, 184]


def test_a_fifth_has_no_entity(splits):
    for sentences in splits.values():
        assert 0.18 < sum(not sentence.entities for sentence in sentences) / len(sentences) < 0.23


def test_labels_are_balanced(splits):
    for sentences in splits.values():
        counts = labels_of(sentences)
        assert all(0.15 < counts[label] / counts.total() < 0.25 for label in LABELS), counts


def test_the_share_of_words_in_entities(splits):
    shares = []
    for sentences in splits.values():
        labels = [
            label
            for sentence in sentences
            for label in bio_labels(
                sentence.entities, [word.span() for word in re.finditer(r"\w+", sentence.text)]
            )
        ]
        shares.append(f"{100 * np.mean([label != 'O' for label in labels]):.0f}%")
    assert "Of the words, {} (train), {} (validation) and {} (test) are in a name".format(*shares) in CARD


def test_lengths(everything):
    lengths = [len(words(sentence.text)) for _, sentence in everything]
    middle = int(np.median(lengths))
    assert f"They have {min(lengths)} to {max(lengths)} words, {middle} in the middle" in CARD


def test_no_two_sentences_are_alike(everything):
    assert len({sentence.text.casefold() for _, sentence in everything}) == len(everything)
    share, *both = most_alike([sentence.text for _, sentence in everything])
    assert share < 0.5, both


def test_no_run_of_six_words_occurs_twice(everything):
    """Within a split as between two of them: no templates."""
    runs = Counter()
    for _, sentence in everything:
        sequence = words(sentence.text)
        runs.update({tuple(sequence[i : i + 6]) for i in range(len(sequence) - 5)})
    assert runs.most_common(1)[0][1] == 1, runs.most_common(3)
    openings = Counter(tuple(words(sentence.text)[:2]) for _, sentence in everything)
    assert max(openings.values()) <= 4, openings.most_common(3)


def test_splits_share_no_name(splits):
    for one, other in combinations(SPLITS, 2):
        assert names_of(splits[one]).isdisjoint(names_of(splits[other]))


def test_splits_share_no_telling_word_of_a_name(splits):
    """So that a surname or a city in training says nothing of a name in testing."""
    shared = set()
    for one, other in combinations(SPLITS, 2):
        shared |= {w for n in names_of(splits[one]) for w in words(n)} & {
            w for n in names_of(splits[other]) for w in words(n)
        }
    assert shared == COMMON_WORDS
    assert f"Only {', '.join(sorted(COMMON_WORDS)[:-1])} and university occur" in CARD


def test_names_that_are_words_too(splits):
    """The card counts names that also stand in their split without being one."""
    counts = []
    for sentences in splits.values():
        names, also_words = dict.fromkeys(names_of(sentences), "MISC"), set()
        for text, found in sentences:
            for start, end, _ in found:
                text = text[:start] + "\0" * (end - start) + text[end:]
            text = text.casefold()
            also_words.update(text[start:end] for start, end, _ in entities.looked_up(text, names))
        counts.append(len(also_words))
    assert min(counts) > 5
    assert "{} names in train, {} in validation and {} in test".format(*counts) in CARD


def test_names_with_two_labels(splits):
    pairs = {
        (name.casefold(), entity.label)
        for sentences in splits.values()
        for sentence in sentences
        for name, entity in zip(sentence.names, sentence.entities, strict=True)
    }
    count = sum(times > 1 for times in Counter(name for name, _ in pairs).values())
    assert f"{count} names have two labels" in CARD


def test_trivial_baselines(splits):
    """In the card: tagging nothing, capitals, training names."""
    train, test = splits["train"], splits["test"]
    by_name: dict[str, Counter] = {}
    for sentence in train:
        for name, entity in zip(sentence.names, sentence.entities, strict=True):
            by_name.setdefault(name, Counter())[entity.label] += 1
    known = {name: labels.most_common(1)[0][0] for name, labels in by_name.items()}
    right = Counter(
        entity.label
        for sentence in train
        for entity in sentence.entities
        for start, end, _ in entities.capitalized(sentence.text, "")
        if (start, end) == (entity.start, entity.end)
    )
    commonest = right.most_common(1)[0][0]
    assert f"calls all of them {commonest}" in CARD
    truth = [sentence.entities for sentence in test]
    rows = {
        "nothing": [()] * len(test),
        "words with a capital letter": [entities.capitalized(s.text, commonest) for s in test],
        "names of the training split": [entities.looked_up(s.text, known) for s in test],
    }
    for name, found in rows.items():
        whole = span_scores(truth, found)
        bare = span_scores([[e[:2] for e in t] for t in truth], [[e[:2] for e in f] for f in found])
        scores = [*whole.values(), bare["f1"]]
        assert f"| {name} | {' | '.join(f'{score:.2f}' for score in scores)} |" in CARD
    looked_up = rows["names of the training split"]
    assert span_scores(truth, looked_up)["f1"] == 0
    alarms = [s.text[e.start : e.end] for s, found in zip(test, looked_up, strict=True) for e in found]
    assert f"All that it finds there is {', '.join(f'*{alarm}*' for alarm in alarms)}, in a lake" in CARD


def test_the_card_says_who_wrote_them():
    assert "The sentences are synthetic." in CARD and "A language model wrote them" in CARD
