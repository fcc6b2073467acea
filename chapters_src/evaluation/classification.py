"""Scores of predicted classes, and of rankings: scikit-learn's wherever it has them."""

import numpy as np
from sklearn import metrics

from chapters_src.evaluation.arrays import Array, check_classes, to_array


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
    labels, predictions = check_classes(labels, predictions)
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
    labels, predictions = check_classes(labels, predictions)
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
    labels, predictions = check_classes(labels, predictions)
    classes, codes = np.unique(np.concatenate([labels, predictions]), return_inverse=True)
    true, predicted = codes[: len(labels)], codes[len(labels) :]
    hits = np.bincount(true[true == predicted], minlength=len(classes))
    # F1 = 2 TP / (2 TP + FP + FN), and the denominator counts each class once on both sides.
    return float(np.mean(2 * hits / np.bincount(codes)))


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
    scores, relevant = to_array(scores).astype(float), to_array(relevant)
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
