"""Scores against scikit-learn, PyTorch and brute force; intervals against closed forms and simulation."""

import itertools
import math
import time

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from sklearn import metrics

from chapters_src.evaluation import (
    accuracy,
    bootstrap_interval,
    classification_scores,
    cross_entropies,
    expected_calibration_error,
    fit_temperature,
    macro_f1,
    paired_bootstrap,
    recall_at_k,
    reliability,
)


def draw(seed, size=300, num_classes=5):
    generator = np.random.default_rng(seed)
    logits = generator.normal(scale=2, size=(size, num_classes))
    labels = np.array([generator.choice(num_classes, p=row) for row in scipy.special.softmax(logits, axis=1)])
    return logits, labels


# Scores ---------------------------------------------------------------------------------------------------


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
        ([], [], "above 0"),
        ([0, 1], [0], "need one shape"),
        ([[0, 1]], [[0, 1]], "need one shape"),
        ([0, 1], [0.2, 0.9], "predictions .float64. are not all classes"),
        ([0.0, math.nan], [0, 1], "labels .float64. are not all classes"),
        (["a", None], ["a", "b"], "labels .object. are not all classes"),
        ([0, 1], ["0", "1"], "name classes one way"),
    ],
)
def test_what_cannot_be_scored_is_refused(score, labels, predictions, message):
    with pytest.raises(ValueError, match=message):
        score(labels, predictions)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_cross_entropies_are_those_of_pytorch(dtype):
    logits, labels = draw(0)
    logits, labels = torch.tensor(logits, dtype=dtype, requires_grad=True), torch.tensor(labels)
    expected = torch.nn.functional.cross_entropy(logits.double(), labels, reduction="none")
    assert cross_entropies(logits, labels) == pytest.approx(expected.detach().numpy())


def test_cross_entropies_of_huge_logits_are_finite():
    assert cross_entropies([[1000.0, 0.0], [0.0, 1e6]], [1, 1]) == pytest.approx([1000, 0])


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        ([[1.0, 2.0]], [0, 1], "each row needs one label"),
        ([[1.0, 2.0]], [2], "labels go from 2 to 2, but 2 classes"),
        ([[1.0, 2.0]], [-100], "labels go from -100"),
        ([[1.0, 2.0]], [0.0], "integers from 0"),
        ([1.0, 2.0], [0, 1], "need the shape"),
        (np.empty((0, 3)), np.empty(0, int), "not empty"),
        ([[1.0, 2.0], [1.0, math.nan]], [0, 1], "NaN or infinity in row 1"),
        ([[1.0, math.inf]], [0], "NaN or infinity in row 0"),
    ],
)
@pytest.mark.parametrize("function", [cross_entropies, fit_temperature, reliability])
def test_rows_and_labels_that_do_not_fit_are_refused(function, logits, labels, message):
    with pytest.raises(ValueError, match=message):
        function(logits, labels)


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
        ([1, 2], [True], 1, "need one shape"),
        ([], [], 1, "not empty"),
        ([1, math.nan], [True, False], 1, "NaN"),
        ([1, 2], [1, 0], 1, "needs booleans"),
        ([[1, 2], [1, 2]], [[True, False], [False, False]], 1, "nothing is relevant"),
        ([1, 2], [True, False], 0, "k=0 is not from 1"),
        ([1, 2], [True, False], 3, "k=3 is not from 1 to the number of items, 2"),
    ],
)
def test_recall_of_nothing_is_refused(scores, relevant, k, message):
    with pytest.raises(ValueError, match=message):
        recall_at_k(scores, relevant, k)


# Calibration ----------------------------------------------------------------------------------------------


def test_reliability_of_an_example_worked_out_by_hand():
    probabilities = [[0.5, 0.5], [0.3, 0.7], [0.2, 0.8], [0.0, 1.0], [1.0, 0.0]]
    table = reliability(probabilities, [0, 0, 1, 1, 1], num_bins=4)
    assert table["low"].tolist() == [0, 0.25, 0.5, 0.75] and table["high"].tolist() == [0.25, 0.5, 0.75, 1]
    assert table["count"].tolist() == [0, 1, 1, 3], "a bin holds its upper end: 0.5 lies in the second"
    assert table["confidence"].tolist() == pytest.approx([math.nan, 0.5, 0.7, 2.8 / 3], nan_ok=True)
    assert table["accuracy"].tolist() == pytest.approx([math.nan, 1, 0, 2 / 3], nan_ok=True)
    ece = expected_calibration_error(probabilities, [0, 0, 1, 1, 1], num_bins=4)
    assert ece == pytest.approx((0.5 + 0.7 + 3 * (2.8 / 3 - 2 / 3)) / 5)


@pytest.mark.parametrize("num_bins", [1, 7, 10, 15])
def test_calibration_error_is_equation_3(num_bins):
    logits, labels = draw(1)
    probabilities = scipy.special.softmax(logits, axis=1)
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == labels
    error = 0
    for m in range(1, num_bins + 1):
        inside = ((m - 1) / num_bins < confidence) & (confidence <= m / num_bins)
        if inside.any():
            error += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    assert expected_calibration_error(probabilities, labels, num_bins) == pytest.approx(error)
    assert reliability(probabilities, labels, num_bins)["count"].sum() == len(labels)


def test_a_model_that_says_what_it_knows_is_calibrated_and_a_sharper_one_is_not():
    logits, labels = draw(2, size=20_000)
    calibrated = expected_calibration_error(scipy.special.softmax(logits, axis=1), labels)
    sharper = expected_calibration_error(scipy.special.softmax(3 * logits, axis=1), labels)
    assert calibrated < 0.02 and sharper > 0.1


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([[0.5, 0.6]], "row 0 adds up to 1.1"),
        ([[0.5, 0.5], [1.5, -0.5]], "smallest number is -0.5"),
        ([[2.0, -3.0]], "softmax"),
    ],
)
def test_what_is_no_probability_is_refused(probabilities, message):
    with pytest.raises(ValueError, match=message):
        reliability(probabilities, [0] * len(probabilities))
    with pytest.raises(ValueError, match="num_bins=0"):
        reliability([[0.5, 0.5]], [0], num_bins=0)


def test_probabilities_in_half_precision_are_accepted():
    probabilities = torch.tensor(draw(3)[0]).softmax(-1).to(torch.bfloat16)
    assert reliability(probabilities, draw(3)[1])["count"].sum() == 300


@pytest.mark.parametrize("true_temperature", [0.3, 1.0, 4.0])
def test_the_temperature_has_the_smallest_loss(true_temperature):
    logits, labels = draw(4, size=2_000)
    logits = logits * true_temperature
    found = fit_temperature(logits, labels)
    grid = np.geomspace(0.05, 20, 4_000)
    losses = [cross_entropies(logits / temperature, labels).mean() for temperature in grid]
    assert found == pytest.approx(grid[np.argmin(losses)], rel=0.002)
    assert found == pytest.approx(true_temperature, rel=0.1)
    assert ((logits / found).argmax(axis=1) == logits.argmax(axis=1)).all()


def test_where_no_temperature_is_best_it_says_so():
    with pytest.raises(ValueError, match="every prediction is right"):
        fit_temperature([[1.0, 0.0], [0.0, 3.0], [2.0, 2.0]], [0, 1, 1])
    with pytest.raises(ValueError, match="no temperature helps"):
        fit_temperature([[1.0, 0.0], [0.0, 3.0]], [1, 0])
    with pytest.raises(ValueError, match="no temperature helps"):
        fit_temperature([[1.0, 0.0], [1.0, 0.0]], [1, 0])


def test_extreme_temperatures_are_found():
    logits, labels = draw(5)
    assert fit_temperature(logits * 1e-4, labels) == pytest.approx(1e-4 * fit_temperature(logits, labels))
    assert fit_temperature(logits * 1e4, labels) == pytest.approx(1e4 * fit_temperature(logits, labels))


# The bootstrap --------------------------------------------------------------------------------------------


def answers(seed, size, rate):
    labels = np.random.default_rng(seed).integers(0, 2, size)
    right = np.arange(size) < rate * size
    return labels, np.where(right, labels, 1 - labels)


@pytest.mark.parametrize(("size", "rate", "level"), [(1000, 0.8, 0.95), (400, 0.5, 0.9), (2000, 0.95, 0.99)])
def test_the_interval_of_an_accuracy_is_binomial(size, rate, level):
    labels, predictions = answers(0, size, rate)
    estimate, low, high = bootstrap_interval(accuracy, labels, predictions, num_samples=4000, level=level)
    assert estimate == pytest.approx(rate)
    expected = np.array(scipy.stats.binom.interval(level, size, rate)) / size
    assert (low, high) == pytest.approx(expected, abs=0.1 * (expected[1] - expected[0]))


def test_the_interval_is_that_of_scipy():
    logits, labels = draw(6)
    ours = bootstrap_interval(macro_f1, labels, logits.argmax(axis=1), num_samples=4000, level=0.9)
    theirs = scipy.stats.bootstrap(
        (labels, logits.argmax(axis=1)),
        macro_f1,
        n_resamples=4000,
        paired=True,
        vectorized=False,
        confidence_level=0.9,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.006)


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    generator = np.random.default_rng(0)
    held = 0
    for seed in range(300):
        right = generator.random(200) < 0.7
        _, low, high = bootstrap_interval(np.mean, right, num_samples=300, seed=seed, level=0.9)
        held += low <= 0.7 <= high
    assert 0.85 < held / 300 < 0.95  # Three standard deviations around 0.9 are 0.052.


def test_examples_are_drawn_whole():
    rows, drawn = np.arange(50), []

    def metric(first, second):
        assert (second[:, 0] == 2 * first).all() and len(first) == 50
        drawn.append(first)
        return first.mean()

    bootstrap_interval(metric, rows, np.stack([2 * rows, rows], axis=1), num_samples=20)
    assert len(drawn) >= 20


def test_the_seed_decides():
    values = np.random.default_rng(0).normal(size=50)
    before = np.random.get_state()[1].copy()
    first, again, other = (
        bootstrap_interval(np.mean, values, seed=seed, num_samples=200) for seed in (3, 3, 4)
    )
    assert first == again != other
    assert (np.random.get_state()[1] == before).all()


def test_pairing_sees_differences_that_separate_intervals_do_not():
    labels, a = answers(2, 500, 0.80)
    b = a.copy()
    b[:12] = 1 - labels[:12]  # B is A, with twelve answers spoiled.
    difference = paired_bootstrap(accuracy, labels, a, b)
    assert difference.estimate == pytest.approx(12 / 500)
    assert difference.low > 0
    # Twelve of 500 differ: the count of them in a drawn test set is binomial.
    expected = np.array(scipy.stats.binom.interval(0.95, 500, 12 / 500)) / 500
    assert (difference.low, difference.high) == pytest.approx(expected, abs=0.003)
    separate = [bootstrap_interval(accuracy, labels, predictions) for predictions in (a, b)]
    assert separate[0].low < separate[1].high


def test_a_pair_of_equals_differs_by_nothing():
    labels, predictions = answers(3, 100, 0.6)
    assert paired_bootstrap(macro_f1, labels, predictions, predictions, num_samples=50) == (0, 0, 0)
    assert paired_bootstrap(accuracy, labels, labels, 1 - labels, num_samples=50) == (1, 1, 1)


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ((), {}, r"not of \[\]"),
        (([], []), {}, "not of .0, 0."),
        (([1, 2], [1]), {}, "not of .2, 1."),
        ((3.0,), {}, "not of .0."),
        (([1, 2], [1, 2]), {"num_samples": 0}, "num_samples=0"),
        (([1, 2], [1, 2]), {"level": 1}, "level=1"),
        (([1, 2], [1, 2]), {"level": 95}, "level=95"),
    ],
)
def test_what_cannot_be_resampled_is_refused(arrays, options, message):
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(accuracy, *arrays, **options)


def test_a_metric_that_is_not_always_a_number_is_refused():
    with pytest.raises(ValueError, match=r"metric gave NaN .* \(\d+ of 200\)"):
        bootstrap_interval(lambda x: math.nan if x.sum() == 0 else 1.0, np.array([0, 0, 1]), num_samples=200)


@pytest.mark.parametrize(("metric", "seconds"), [(accuracy, 1), (macro_f1, 3)])
def test_two_thousand_samples_of_a_thousand_examples_are_fast(metric, seconds):
    generator = np.random.default_rng(0)
    labels, predictions = generator.integers(0, 6, size=(2, 1000))
    start = time.process_time()
    bootstrap_interval(metric, labels, predictions, num_samples=2000)
    assert time.process_time() - start < seconds
