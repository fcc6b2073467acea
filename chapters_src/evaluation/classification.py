"""Scores of predicted classes and of rankings."""

import numpy as np
from sklearn import metrics

from chapters_src.evaluation.arrays import Array, check_classes, to_array


def classification_scores(labels: Array, predictions: Array) -> dict[str, float]:
    """Compute accuracy and F1 with scikit-learn, from true and predicted classes, integers or strings, (N,).

    The scores are "accuracy", "macro_f1" (mean over the classes) and "weighted_f1" (weighted by true counts),
    from 0 to 1. A class that is never predicted has an F1 of 0; one that is not in `labels` either does not
    count.

    Raises:
        ValueError: there are no examples, the lengths differ, or the values are not classes of one type.
    """
    labels, predictions = check_classes(labels, predictions)
    macro, weighted = (
        metrics.f1_score(labels, predictions, average=average, zero_division=0)
        for average in ("macro", "weighted")
    )
    accuracy = metrics.accuracy_score(labels, predictions)
    return {"accuracy": float(accuracy), "macro_f1": float(macro), "weighted_f1": float(weighted)}


def accuracy(labels: Array, predictions: Array) -> float:
    """Return the accuracy, as scikit-learn does, but fast enough for the bootstrap.

    Args, and what is raised: as for `classification_scores`.
    """
    labels, predictions = check_classes(labels, predictions)
    return float(np.mean(labels == predictions))


def macro_f1(labels: Array, predictions: Array) -> float:
    """Return the mean F1 of the classes, as scikit-learn does, but fast enough for the bootstrap.

    A class that occurs neither in `labels` nor in `predictions` does not count. Args, and what is raised: as
    for `classification_scores`.
    """
    labels, predictions = check_classes(labels, predictions)
    classes, codes = np.unique(np.concatenate([labels, predictions]), return_inverse=True)
    true, predicted = codes[: len(labels)], codes[len(labels) :]
    hits = np.bincount(true[true == predicted], minlength=len(classes))
    # F1 = 2 TP / (2 TP + FP + FN), and the denominator counts each class once on both sides.
    return float(np.mean(2 * hits / np.bincount(codes)))


def recall_at_k(scores: Array, relevant: Array, k: int) -> np.ndarray:
    """Return the share of relevant items among the k highest scores: (...,), from 0 to 1.

    Each row of `scores`, (..., num_items), is a query, and `relevant`, in the same shape, is True for the
    items that should be found. If items tie for the last places, the result is the expected value over all
    orders of the tied items, so equal scores for everything are no better than chance.

    Raises:
        ValueError: the shapes differ, a score is NaN, k is out of range, or a query has no relevant item.
    """
    scores, relevant = to_array(scores).astype(float), to_array(relevant)
    if scores.shape != relevant.shape or scores.size == 0:
        raise ValueError(
            f"scores {scores.shape} and relevant {relevant.shape} need the same shape, not empty"
        )
    if np.isnan(scores).any():
        raise ValueError("a score is NaN: such an item has no rank")
    if relevant.dtype != bool or not relevant.any(axis=-1).all():
        raise ValueError(
            f"relevant ({relevant.dtype}) needs booleans, at least one True in each row: leave out queries "
            "without relevant items"
        )
    if not 1 <= k <= scores.shape[-1]:
        raise ValueError(f"k={k} has to be from 1 to the number of items, {scores.shape[-1]}")
    last = np.sort(scores, axis=-1)[..., -k, None]  # The k-th highest score.
    above, tied = scores > last, scores == last
    places_left = k - above.sum(axis=-1, keepdims=True)
    found = above + tied * places_left / tied.sum(axis=-1, keepdims=True)  # Probability of each item.
    return (found * relevant).sum(axis=-1) / relevant.sum(axis=-1)
