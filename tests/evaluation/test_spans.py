"""Scores of spans, against scikit-learn's on the same question asked span by span."""

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from chapters_src.evaluation.spans import span_scores


def test_all_of_a_span_has_to_be_right():
    true = [[(0, 3, "PER"), (10, 14, "LOC")], [(5, 9, "ORG")]]
    found = [[(0, 3, "PER"), (10, 13, "LOC")], [(5, 9, "LOC"), (10, 14, "LOC"), (20, 22, "PER")]]
    assert span_scores(true, found) == {"precision": 1 / 5, "recall": 1 / 3, "f1": 2 / 8}


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_scikit_learn(seed):
    draw = np.random.default_rng(seed)
    true, found = draw.integers(0, 2, (2, 6, 20)).astype(bool)
    as_spans = [[[int(span) for span in np.flatnonzero(text)] for text in side] for side in (true, found)]
    expected = precision_recall_fscore_support(true.ravel(), found.ravel(), average="binary")[:3]
    assert list(span_scores(*as_spans).values()) == pytest.approx(expected)


def test_nothing_found_and_nothing_there():
    zeros = {"precision": 0, "recall": 0, "f1": 0}
    assert span_scores([[(0, 1)], []], [[], []]) == zeros == span_scores([[]], [[(0, 1)]])


@pytest.mark.parametrize(("true", "found"), [([], []), ([[(0, 1)]], []), ([[]], [[], []])])
def test_what_cannot_be_scored(true, found):
    with pytest.raises(
        ValueError, match=f"^true spans of {len(true)} texts and predicted spans of {len(found)}"
    ):
        span_scores(true, found)
