"""Losses against PyTorch, calibration against its equation, temperatures against a search."""

import math

import numpy as np
import pytest
import scipy.special
import torch
from predictions import draw

from chapters_src.evaluation import cross_entropies, expected_calibration_error, fit_temperature, reliability


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
        ([[1.0, 2.0]], [2], "labels range from 2 to 2, but the labels of 2 classes"),
        ([[1.0, 2.0]], [-100], "labels range from -100"),
        ([[1.0, 2.0]], [0.0], "integers from 0"),
        ([1.0, 2.0], [0, 1], "expected .N, num_classes."),
        (np.empty((0, 3)), np.empty(0, int), "not empty"),
        ([[1.0, 2.0], [1.0, math.nan]], [0, 1], "NaN or infinity in row 1"),
        ([[1.0, math.inf]], [0], "NaN or infinity in row 0"),
    ],
)
@pytest.mark.parametrize("function", [cross_entropies, fit_temperature, reliability])
def test_rows_and_labels_that_do_not_fit_are_refused(function, logits, labels, message):
    with pytest.raises(ValueError, match=message):
        function(logits, labels)


def test_reliability_of_an_example_worked_out_by_hand():
    probabilities = [[0.5, 0.5], [0.3, 0.7], [0.2, 0.8], [0.0, 1.0], [1.0, 0.0]]
    table = reliability(probabilities, [0, 0, 1, 1, 1], num_bins=4)
    assert table["low"].tolist() == [0, 0.25, 0.5, 0.75] and table["high"].tolist() == [0.25, 0.5, 0.75, 1]
    assert table["count"].tolist() == [0, 1, 1, 3], "a bin holds its upper end: 0.5 lies in the second"
    assert table["confidence"].tolist() == pytest.approx([math.nan, 0.5, 0.7, 2.8 / 3], nan_ok=True)
    assert table["accuracy"].tolist() == pytest.approx([math.nan, 1, 0, 2 / 3], nan_ok=True)
    ece = expected_calibration_error(probabilities, [0, 0, 1, 1, 1], num_bins=4)
    assert ece == pytest.approx((0.5 + 0.7 + 3 * (2.8 / 3 - 2 / 3)) / 5)


def test_a_model_that_says_what_it_knows_is_calibrated_and_a_sharper_one_is_not():
    logits, labels = draw(2, size=20_000)
    calibrated = expected_calibration_error(scipy.special.softmax(logits, axis=1), labels)
    sharper = expected_calibration_error(scipy.special.softmax(3 * logits, axis=1), labels)
    assert calibrated < 0.02 and sharper > 0.1


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([[0.5, 0.6]], "row 0 sums to 1.1"),
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
