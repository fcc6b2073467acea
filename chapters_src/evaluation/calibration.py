"""The loss of each example, and calibration: how well confidence matches accuracy."""

import numpy as np
import pandas as pd
from scipy import optimize, special

from chapters_src.evaluation.arrays import Array, check_columns, check_probabilities, to_array, to_rows


def cross_entropies(logits: Array, labels: Array) -> np.ndarray:
    """Return the cross-entropy of each example: the negative log-probability of its true class.

    Logits are (N, num_classes), and labels true classes as integers from 0, (N,). The result is (N,), in
    nats, float64; its mean is the usual cross-entropy.

    Raises:
        ValueError: the shapes do not match, a logit is not finite, or a label is out of range.
    """
    logits, labels = to_rows(logits, "logits"), to_array(labels)
    check_columns(logits, labels)
    return -special.log_softmax(logits, axis=1)[np.arange(len(labels)), labels]


def reliability(probabilities: Array, labels: Array, num_bins: int = 10) -> pd.DataFrame:
    """Return the confidence and accuracy of each bin: the table behind a reliability diagram.

    Rows of `probabilities`, (N, num_classes), sum to 1; the highest one is the confidence of an example.
    `labels` are true classes as integers from 0, (N,). Bins have equal width from 0 to 1; each includes its
    upper end. Their rows have "low" and "high" (the ends), "confidence" and "accuracy" (means over the
    examples; NaN if there are none) and "count".

    Raises:
        ValueError: the shapes do not match, rows are not probabilities, a label is out of range, or there are
            no bins.
    """
    probabilities, labels = to_rows(probabilities, "probabilities"), to_array(labels)
    check_columns(probabilities, labels)
    check_probabilities(probabilities)
    if num_bins < 1:
        raise ValueError(f"num_bins={num_bins} has to be at least 1")
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
    """Return the mean gap between confidence and accuracy, over bins weighted by their counts.

    Guo, Pleiss, Sun & Weinberger, On Calibration of Modern Neural Networks (2017), equation 3,
    https://arxiv.org/abs/1706.04599. From 0 (confidence equals accuracy in each bin) to 1.

    Args, and what is raised: as for `reliability`.
    """
    table = reliability(probabilities, labels, num_bins)
    gaps = (table["accuracy"] - table["confidence"]).abs()
    return float((table["count"] * gaps).sum() / table["count"].sum())


def fit_temperature(logits: Array, labels: Array) -> float:
    """Find the temperature for which `softmax(logits / temperature)` has the smallest mean loss.

    Temperature scaling, section 4.2 of Guo et al. (2017). The loss is convex in 1 / temperature, so its slope
    has a single zero. Use examples that the model was not trained on. The predicted classes do not change.
    A temperature greater than 1 makes the model less confident.

    Args: as for `cross_entropies`.

    Raises:
        ValueError: as for `cross_entropies`; or no temperature is best, because every label has the highest
            logit, or labels have on average no higher logits than other classes.
    """
    logits, labels = to_rows(logits, "logits"), to_array(labels)
    check_columns(logits, labels)
    of_label = logits[np.arange(len(labels)), labels]

    def slope(inverse: float) -> float:
        expected = (special.softmax(inverse * logits, axis=1) * logits).sum(axis=1)
        return float(np.mean(expected - of_label))

    if (logits.max(axis=1) == of_label).all():
        raise ValueError(
            "every prediction is right, so the loss decreases all the way to temperature 0: use more examples"
        )
    if slope(0) >= 0:
        raise ValueError("the logits are no better than chance: no temperature helps")
    high = 1.0
    while slope(high) <= 0:
        high *= 2
    return 1 / optimize.brentq(slope, 0, high, xtol=1e-12)
