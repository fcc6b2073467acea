"""The messages themselves: are they what their card says?"""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix
from texts import most_alike

from chapters_src.data import emotions

CARD = (Path(emotions.__file__).with_suffix(".md")).read_text(encoding="utf-8")
SHARES = {"sadness": 29, "joy": 34, "love": 8, "anger": 13, "fear": 12, "surprise": 4}  # percent
CLOSE_FORMS = {
    "sadness": r"sad(?:ness|ly|der|dest|den\w*)?",
    "joy": r"(?:en)?joy\w*",
    "love": r"lov(?:e|es|ed|ing|ely|er|ers)",
    "anger": r"ang(?:er|ers|ered|ry|rily|rier)",
    "fear": r"fear\w*|afraid",
    "surprise": r"surpris\w*",
}


@pytest.fixture(scope="module")
def messages():
    """(split, text, label as a word, as in the files)."""
    return [
        (split, text, emotions.LABELS[label])
        for split, data in emotions.load().items()
        for text, label in zip(data["text"], data["label"], strict=True)
    ]


def words(text):
    return re.findall(r"\w+", text.lower())


def in_threes(sequence):
    return list(zip(sequence, sequence[1:], sequence[2:], strict=False))


def test_sizes(messages):
    assert Counter(split for split, *_ in messages) == {"train": 1500, "validation": 500, "test": 1000}


def test_class_shares(messages):
    planted = emotions.planted_errors()
    for split in emotions.SPLITS:
        labels = [label for s, _, label in messages if s == split]
        for row, label in planted.loc[planted["split"] == split, ["row", "label"]].itertuples(index=False):
            labels[row] = label
        counts = Counter(labels)
        for label, percent in SHARES.items():
            assert abs(100 * counts[label] / len(labels) - percent) < 1, (split, label)


def test_lengths(messages):
    lengths = [len(text.split()) for _, text, _ in messages]
    assert min(lengths) >= 4 and max(lengths) <= 60
    assert f"They have {min(lengths)} to {max(lengths)} words, {int(np.median(lengths))} in" in " ".join(
        CARD.split()
    )


def test_texts_need_no_quoting(messages):
    assert not [text for _, text, _ in messages if re.search('[;"\n\t]', text) or text != text.strip()]


def test_no_two_messages_are_alike(messages):
    share, *both = most_alike([text for _, text, _ in messages])
    assert share < 0.6, both


def test_no_templates(messages):
    threes = [three for _, text, _ in messages for three in in_threes(words(text))]
    assert len(set(threes)) / len(threes) >= 0.8
    openings = Counter(tuple(words(text)[:3]) for _, text, _ in messages)
    assert max(openings.values()) <= 0.02 * len(messages), openings.most_common(3)


def test_the_class_is_rarely_named(messages):
    named = sum(
        bool(re.search(rf"\b(?:{CLOSE_FORMS[label]})\b", text.lower())) for _, text, label in messages
    )
    assert named / len(messages) <= 0.15


def test_planted_errors_are_wrong_and_of_the_announced_number(messages):
    planted = emotions.planted_errors()
    assert planted["split"].value_counts().to_dict() == {"train": 30, "validation": 20}
    assert not planted.duplicated(["split", "row"]).any()
    given = {split: [label for s, _, label in messages if s == split] for split in emotions.SPLITS}
    assert all(given[row.split][row.row] != row.label for row in planted.itertuples())


def test_ambiguous_messages_have_another_second_label(messages):
    ambiguous = emotions.ambiguous()
    given = {split: [label for s, _, label in messages if s == split] for split in emotions.SPLITS}
    assert not ambiguous.duplicated(["split", "row"]).any()
    assert all(given[row.split][row.row] != row.second_label for row in ambiguous.itertuples())
    assert f"{len(ambiguous)} messages have a second plausible one" in " ".join(CARD.split())


def test_the_card_tells_the_measured_agreement(messages):
    second = emotions.second_readings()
    test = [label for split, _, label in messages if split == "test"]
    assert len(second) == second["row"].nunique() == 300
    assert [test[row] for row in second["row"]] == second["label"].tolist()
    agreed = (second["label"] == second["second_label"]).sum()
    kappa = cohen_kappa_score(second["label"], second["second_label"])
    assert f"agree on {agreed} of them, Cohen's kappa {kappa:.2f}" in " ".join(CARD.split())
    table = confusion_matrix(second["label"], second["second_label"], labels=emotions.LABELS)
    for label, row in zip(emotions.LABELS, table, strict=True):
        assert f"| **{label}** | {' | '.join(map(str, row))} |" in CARD


def test_the_card_says_who_wrote_them():
    assert "The messages are synthetic." in CARD and "A language model wrote them" in CARD
