"""How good is a model, and how sure can we be of it? Scores, calibration, and the bootstrap.

Scores come from scikit-learn wherever it has them. What stands here is what it lacks: the loss of each
example, calibration over all classes (Guo et al. 2017), and intervals that say how far a score may move with
another test set of the same size. Chapters 04, 05, 09, 10, 12 and 14 use it.

Arrays may be NumPy arrays, lists or PyTorch tensors on any device. N is the number of examples.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import optimize, special
from sklearn import metrics

Array = Any  # What NumPy can turn into an array, and PyTorch tensors on any device.


class Interval(NamedTuple):
    """A score and the interval of a bootstrap around it."""

    estimate: float  # On the examples as they are.
    low: float
    high: float


# Scores ---------------------------------------------------------------------------------------------------


def classification_scores(labels: Array, predictions: Array) -> dict[str, float]:
    """Score predicted classes.

    A class that occurs on neither side does not count; one that is never predicted has an F1 of 0.

    Args:
        labels: true classes, integers or strings, (N,).
        predictions: predicted classes, (N,).

    Returns:
        "accuracy", "macro_f1" (mean over the classes) and "weighted_f1" (weighted by their true counts), each
        from 0 to 1.

    Raises:
        ValueError: nothing to score, different lengths, or no classes.
    """
    labels, predictions = _classes(labels, predictions)
    macro, weighted = (
        metrics.f1_score(labels, predictions, average=average, zero_division=0)
        for average in ("macro", "weighted")
    )
    accuracy = metrics.accuracy_score(labels, predictions)
    return {"accuracy": float(accuracy), "macro_f1": float(macro), "weighted_f1": float(weighted)}


def accuracy(labels: Array, predictions: Array) -> float:
    """Give the share of predictions that are right: scikit-learn's accuracy, fast enough to bootstrap.

    Args:
        labels: true classes, integers or strings, (N,).
        predictions: predicted classes, (N,).

    Returns:
        From 0 to 1.

    Raises:
        ValueError: nothing to score, different lengths, or no classes.
    """
    labels, predictions = _classes(labels, predictions)
    return float(np.mean(labels == predictions))


def macro_f1(labels: Array, predictions: Array) -> float:
    """Give the mean F1 of the classes: scikit-learn's macro F1, fast enough to bootstrap.

    A class that occurs on neither side does not count.

    Args:
        labels: true classes, integers or strings, (N,).
        predictions: predicted classes, (N,).

    Returns:
        From 0 to 1.

    Raises:
        ValueError: nothing to score, different lengths, or no classes.
    """
    labels, predictions = _classes(labels, predictions)
    classes, codes = np.unique(np.concatenate([labels, predictions]), return_inverse=True)
    true, predicted = codes[: len(labels)], codes[len(labels) :]
    hits = np.bincount(true[true == predicted], minlength=len(classes))
    # F1 = 2 TP / (2 TP + FP + FN), and the denominator counts each class once on both sides.
    return float(np.mean(2 * hits / np.bincount(codes)))


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
    logits, labels = _rows(logits, "logits"), _array(labels)
    _check_columns(logits, labels)
    return -special.log_softmax(logits, axis=1)[np.arange(len(labels)), labels]


def recall_at_k(scores: Array, relevant: Array, k: int) -> np.ndarray:
    """Tell which share of the relevant items is among the k highest scores.

    Where items tie for the last places, the expected value over all orders of the tied ones is given: to
    score everything alike earns no more than chance.

    Args:
        scores: (..., num_items), higher is better; one row is one query.
        relevant: True for the items that should be found, of the same shape.
        k: how many items are looked at, from 1 to num_items.

    Returns:
        (...,), from 0 to 1; for one query a single number.

    Raises:
        ValueError: shapes that differ, NaN, k out of range, or a query without relevant items.
    """
    scores, relevant = _array(scores).astype(float), _array(relevant)
    if scores.shape != relevant.shape or scores.size == 0:
        raise ValueError(f"scores {scores.shape} and relevant {relevant.shape} need one shape, not empty")
    if np.isnan(scores).any():
        raise ValueError("a score is NaN: such an item has no rank")
    if relevant.dtype != bool or not relevant.any(axis=-1).all():
        raise ValueError(
            f"relevant ({relevant.dtype}) needs booleans and in each row at least one True: "
            "leave out queries to which nothing is relevant"
        )
    if not 1 <= k <= scores.shape[-1]:
        raise ValueError(f"k={k} is not from 1 to the number of items, {scores.shape[-1]}")
    last = np.sort(scores, axis=-1)[..., -k, None]  # The score that just gets in.
    above, tied = scores > last, scores == last
    places_left = k - above.sum(axis=-1, keepdims=True)
    found = above + tied * places_left / tied.sum(axis=-1, keepdims=True)  # Chance of each item to be seen.
    return (found * relevant).sum(axis=-1) / relevant.sum(axis=-1)


# Calibration ----------------------------------------------------------------------------------------------


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
    probabilities, labels = _rows(probabilities, "probabilities"), _array(labels)
    _check_columns(probabilities, labels)
    _check_probabilities(probabilities)
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
    logits, labels = _rows(logits, "logits"), _array(labels)
    _check_columns(logits, labels)
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


# The bootstrap --------------------------------------------------------------------------------------------


def bootstrap_interval(
    metric: Callable[..., float],
    *arrays: Array,
    num_samples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Say how far a score may move with another test set of this size: draw examples with replacement.

    The percentile interval of Efron & Tibshirani, An Introduction to the Bootstrap (1993), chapter 13. It
    knows about the choice of test examples, not about the seed that the model was trained with.

    Args:
        metric: takes the arrays, gives a number: `accuracy`, `macro_f1`, or a function of one's own.
        *arrays: what the metric takes; row i of each belongs to example i, (N, ...).
        num_samples: how many test sets are drawn.
        seed: of the draws.
        level: share of the scores of drawn test sets that lie in the interval, between 0 and 1.

    Returns:
        The score, and the lower and upper end of its interval.

    Raises:
        ValueError: no arrays, empty ones, different lengths, settings out of range, or a score that is NaN.
    """
    rows = [_array(array) for array in arrays]
    lengths = [len(row) if row.ndim else 0 for row in rows]
    if not rows or min(lengths) == 0 or len(set(lengths)) > 1:
        raise ValueError(f"the bootstrap needs arrays of one length, at least 1, not of {lengths}")
    if num_samples < 1 or not 0 < level < 1:
        raise ValueError(f"num_samples={num_samples} has to be at least 1, level={level} between 0 and 1")
    generator = np.random.default_rng(seed)
    drawn = (generator.integers(lengths[0], size=lengths[0]) for _ in range(num_samples))
    scores = np.array([metric(*(row[chosen] for row in rows)) for chosen in drawn], dtype=float)
    estimate = float(metric(*rows))
    if np.isnan(scores).any() or np.isnan(estimate):
        raise ValueError(
            f"the metric gave NaN on the examples ({estimate}) or on some of the test sets drawn from them "
            f"({np.isnan(scores).sum()} of {num_samples}): it has to be a number for all of them"
        )
    low, high = np.quantile(scores, [(1 - level) / 2, (1 + level) / 2])
    return Interval(estimate, float(low), float(high))


def paired_bootstrap(
    metric: Callable[[np.ndarray, np.ndarray], float],
    labels: Array,
    predictions_a: Array,
    predictions_b: Array,
    num_samples: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Compare two models on the same examples: how much better is A than B, and is that more than luck?

    Both are scored on the same draws, so what makes an example hard for both cancels. Koehn, Statistical
    Significance Tests for Machine Translation Evaluation (2004), https://aclanthology.org/W04-3250/.

    Args:
        metric: takes labels and predictions, gives a number, higher is better.
        labels: what is true, (N, ...).
        predictions_a: what model A says, (N, ...).
        predictions_b: what model B says, (N, ...).
        num_samples: how many test sets are drawn.
        seed: of the draws.
        level: share of the differences that lie in the interval, between 0 and 1.

    Returns:
        Score of A minus score of B, and its interval. If that holds 0, these examples do not settle it.

    Raises:
        ValueError: as `bootstrap_interval`.
    """

    def difference(labels: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
        return metric(labels, a) - metric(labels, b)

    arrays = (labels, predictions_a, predictions_b)
    return bootstrap_interval(difference, *arrays, num_samples=num_samples, seed=seed, level=level)


# Checks ---------------------------------------------------------------------------------------------------


def _array(values: Array) -> np.ndarray:
    if hasattr(values, "detach"):  # A PyTorch tensor, which may be on a graphics card, or bfloat16.
        values = values.detach().cpu()
        values = values.double() if values.is_floating_point() else values
    return np.asarray(values)


def _classes(labels: Array, predictions: Array) -> tuple[np.ndarray, np.ndarray]:
    labels, predictions = _array(labels), _array(predictions)
    if labels.shape != predictions.shape or labels.ndim != 1 or len(labels) == 0:
        raise ValueError(
            f"labels {labels.shape} and predictions {predictions.shape} need one shape (N,), and N above 0"
        )
    for name, values in (("labels", labels), ("predictions", predictions)):
        if values.dtype.kind not in "biuUSTO" or (values.dtype == object and pd.isna(values).any()):
            raise ValueError(f"{name} ({values.dtype}) are not all classes: of logits take argmax(-1)")
    if (labels.dtype.kind in "biu") != (predictions.dtype.kind in "biu"):
        raise ValueError(f"labels are {labels.dtype}, predictions {predictions.dtype}: name classes one way")
    return labels, predictions


def _rows(values: Array, name: str) -> np.ndarray:
    values = _array(values).astype(np.float64)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"{name} {values.shape} need the shape (N, num_classes), not empty")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} have NaN or infinity in row {np.argwhere(~np.isfinite(values))[0, 0]}")
    return values


def _check_columns(rows: np.ndarray, labels: np.ndarray) -> None:
    if labels.shape != rows.shape[:1]:
        raise ValueError(f"labels {labels.shape} and rows {rows.shape}: each row needs one label")
    if labels.dtype.kind not in "iu":
        raise ValueError(f"labels are {labels.dtype}; integers from 0 are needed")
    if labels.min() < 0 or labels.max() >= rows.shape[1]:
        raise ValueError(
            f"labels go from {labels.min()} to {labels.max()}, but {rows.shape[1]} classes have labels "
            f"from 0 to {rows.shape[1] - 1}"
        )


def _check_probabilities(rows: np.ndarray) -> None:
    sums = rows.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    if rows.min() < 0 or abs(sums[worst] - 1) > 1e-2:  # Half precision adds up to 1 only roughly.
        raise ValueError(
            f"row {worst} adds up to {sums[worst]:.4f}, the smallest number is {rows.min():.4f}: "
            "probabilities are not negative and add up to 1; of logits take softmax(-1)"
        )
