"""The loss of each example, and calibration: is a model right as often as it says?"""

import numpy as np
import pandas as pd
from scipy import optimize, special

from chapters_src.evaluation.arrays import Array, check_columns, check_probabilities, to_array, to_rows


def cross_entropies(logits: Array, labels: Array) -> np.ndarray:
    """Give the loss of each example: minus the log-probability of its true class.

    Args:
        logits: (N, num_classes).
        labels: true classes as integers from 0, (N,).

    Returns:
        (N,), in nats, float64. Their mean is the usual cross-entropy.

    Raises:
        ValueError: shapes that do not fit, NaN or infinity, or a label that is no column of the logits.
    """
    logits, labels = to_rows(logits, "logits"), to_array(labels)
    check_columns(logits, labels)
    return -special.log_softmax(logits, axis=1)[np.arange(len(labels)), labels]


def reliability(probabilities: Array, labels: Array, num_bins: int = 10) -> pd.DataFrame:
    """Compare confidence and accuracy: the table behind a reliability diagram.

    Args:
        probabilities: (N, num_classes), rows that add up to 1. The confidence of an example is the largest.
        labels: true classes as integers from 0, (N,).
        num_bins: number of bins of equal width between 0 and 1; a bin holds its upper end.

    Returns:
        One row per bin: "low", "high" (its ends), "confidence", "accuracy" (means over its examples; NaN
        where there are none) and "count".

    Raises:
        ValueError: shapes that do not fit, rows that are no probabilities, a label that is no column, or no
            bins.
    """
    probabilities, labels = to_rows(probabilities, "probabilities"), to_array(labels)
    check_columns(probabilities, labels)
    check_probabilities(probabilities)
    if num_bins < 1:
        raise ValueError(f"num_bins={num_bins}: at least one bin is needed")
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    edges = np.linspace(0, 1, num_bins + 1)
    bins = np.digitize(confidence, edges[1:-1], right=True)
    examples = pd.DataFrame({"confidence": confidence, "accuracy": right.astype(float)})
    table = examples.groupby(bins).mean().reindex(range(num_bins))
    table["count"] = np.bincount(bins, minlength=num_bins)
    table.insert(0, "low", edges[:-1])
    table.insert(1, "high", edges[1:])
    return table.rename_axis("bin")


def expected_calibration_error(probabilities: Array, labels: Array, num_bins: int = 10) -> float:
    """Give the mean gap between confidence and accuracy, over bins weighted by their counts.

    Guo, Pleiss, Sun & Weinberger, On Calibration of Modern Neural Networks (2017), equation 3,
    https://arxiv.org/abs/1706.04599.

    Args:
        probabilities: (N, num_classes), rows that add up to 1.
        labels: true classes as integers from 0, (N,).
        num_bins: number of bins of equal width between 0 and 1.

    Returns:
        From 0 (confidence is accuracy, in each bin) to 1.

    Raises:
        ValueError: as `reliability`.
    """
    table = reliability(probabilities, labels, num_bins)
    gaps = (table["accuracy"] - table["confidence"]).abs()
    return float((table["count"] * gaps).sum() / table["count"].sum())


def fit_temperature(logits: Array, labels: Array) -> float:
    """Find the temperature that calibrates: `softmax(logits / temperature)` has the smallest mean loss.

    Section 4.2 of Guo et al. (2017). The loss is convex in 1 / temperature, so its slope is zero in one
    place. Fit on examples that the model has not been trained on. Predictions stay the same.

    Args:
        logits: (N, num_classes).
        labels: true classes as integers from 0, (N,).

    Returns:
        A number above 0; above 1 it makes the model less confident.

    Raises:
        ValueError: shapes that do not fit, NaN or infinity, a label that is no column; or no temperature is
            best, because all labels have the highest logit, or on average no more than a mean one.
    """
    logits, labels = to_rows(logits, "logits"), to_array(labels)
    check_columns(logits, labels)
    of_label = logits[np.arange(len(labels)), labels]

    def slope(inverse: float) -> float:
        expected = (special.softmax(inverse * logits, axis=1) * logits).sum(axis=1)
        return float(np.mean(expected - of_label))

    if (logits.max(axis=1) == of_label).all():
        raise ValueError(
            "every prediction is right, so the loss falls all the way to temperature 0: use more"
        )
    if slope(0) >= 0:
        raise ValueError("the logits say less than nothing about the labels: no temperature helps")
    high = 1.0
    while slope(high) <= 0:
        high *= 2
    return 1 / optimize.brentq(slope, 0, high, xtol=1e-12)
