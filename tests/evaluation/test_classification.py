"""Scores against scikit-learn, brute force, and examples worked out by hand."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn import metrics

from chapters_src.evaluation import accuracy, classification_scores, macro_f1, recall_at_k


def test_scores_of_an_example_worked_out_by_hand():
    # Class a: TP 2, FN 1 -> F1 4/5. Class b: TP 1, FP 1 -> 2/3. Class c is predicted once, and never true.
    labels, predictions = ["a", "a", "a", "b"], ["a", "a", "b", "b"]
    scores = classification_scores(labels, predictions)
    assert scores == pytest.approx(
        {"accuracy": 3 / 4, "macro_f1": (4 / 5 + 2 / 3) / 2, "weighted_f1": (3 * 4 / 5 + 2 / 3) / 4}
    )
    with_c = classification_scores([*labels, "b"], [*predictions, "c"])
    assert with_c["macro_f1"] == pytest.approx((4 / 5 + 1 / 2 + 0) / 3)


@pytest.mark.parametrize("seed", range(20))
def test_the_fast_scores_are_those_of_scikit_learn(seed):
    generator = np.random.default_rng(seed)
    labels, predictions = generator.integers(
        -2, generator.integers(1, 9), size=(2, generator.integers(1, 40))
    )
    scores = classification_scores(labels, predictions)
    assert accuracy(labels, predictions) == pytest.approx(scores["accuracy"])
    assert macro_f1(labels, predictions) == pytest.approx(scores["macro_f1"])
    assert scores["macro_f1"] == pytest.approx(
        metrics.f1_score(labels, predictions, average="macro", zero_division=0)
    )


def test_scores_take_lists_tensors_and_series():
    labels, predictions = [0, 1, 2, 1], [0, 1, 1, 1]
    expected = classification_scores(labels, predictions)
    assert classification_scores(torch.tensor(labels), torch.tensor(predictions)) == expected
    assert classification_scores(pd.Series(labels), np.array(predictions)) == expected
    names = pd.Series(["a", "b", "c", "b"])
    assert classification_scores(names, ["a", "b", "b", "b"]) == expected


@pytest.mark.parametrize("score", [classification_scores, accuracy, macro_f1])
@pytest.mark.parametrize(
    ("labels", "predictions", "message"),
    [
        ([], [], "not empty"),
        ([0, 1], [0], "need the same shape"),
        ([[0, 1]], [[0, 1]], "need the same shape"),
        ([0, 1], [0.2, 0.9], "predictions .float64. are not all classes"),
        ([0.0, math.nan], [0, 1], "labels .float64. are not all classes"),
        (["a", None], ["a", "b"], "labels .object. are not all classes"),
        ([0, 1], ["0", "1"], "use the same type"),
    ],
)
def test_what_cannot_be_scored_is_refused(score, labels, predictions, message):
    with pytest.raises(ValueError, match=message):
        score(labels, predictions)


def test_recall_of_an_example_worked_out_by_hand():
    scores, relevant = [0.9, 0.1, 0.8, 0.3], [True, True, False, False]
    assert [recall_at_k(scores, relevant, k) for k in (1, 2, 3, 4)] == [0.5, 0.5, 0.5, 1]
    assert recall_at_k([scores, scores[::-1]], [relevant, relevant], 1).tolist() == [0.5, 0]


@pytest.mark.parametrize("seed", range(10))
def test_recall_with_ties_is_the_mean_over_all_orders(seed):
    generator = np.random.default_rng(seed)
    scores, relevant = generator.integers(0, 3, size=5), generator.random(5) < 0.5
    relevant[0] = True
    for k in range(1, 6):
        orders = (sorted(order, key=lambda i: -scores[i]) for order in itertools.permutations(range(5)))
        recalls = [relevant[order[:k]].sum() / relevant.sum() for order in orders]
        assert recall_at_k(scores, relevant, k) == pytest.approx(np.mean(recalls))


@pytest.mark.parametrize(
    ("scores", "relevant", "k", "message"),
    [
        ([1, 2], [True], 1, "need the same shape"),
        ([], [], 1, "not empty"),
        ([1, math.nan], [True, False], 1, "NaN"),
        ([1, 2], [1, 0], 1, "needs booleans"),
        ([[1, 2], [1, 2]], [[True, False], [False, False]], 1, "without relevant items"),
        ([1, 2], [True, False], 0, "k=0 has to be from 1"),
        ([1, 2], [True, False], 3, "k=3 has to be from 1 to the number of items, 2"),
    ],
)
def test_recall_of_nothing_is_refused(scores, relevant, k, message):
    with pytest.raises(ValueError, match=message):
        recall_at_k(scores, relevant, k)
