"""Scores of spans that were found in texts: named entities, for example."""

from collections.abc import Collection, Hashable, Sequence


def span_scores(
    spans: Sequence[Collection[Hashable]], predictions: Sequence[Collection[Hashable]]
) -> dict[str, float]:
    """Score spans that were found: a span counts only if all of it is right, both ends and the label.

    Args:
        spans: for each text the true spans, such as tuples of start, end and label, (N,).
        predictions: for each text those that were found, (N,).

    Returns:
        Over all texts together, each from 0 to 1: "precision" (the share of what was found that is right),
        "recall" (the share of what is there that was found) and "f1", their harmonic mean. A precision or a
        recall of nothing is 0.

    Raises:
        ValueError: no texts, or `spans` and `predictions` differ in length.
    """
    if not spans or len(spans) != len(predictions):
        raise ValueError(f"{len(spans)} texts with true spans and {len(predictions)} with found ones")
    true = {(i, span) for i, text in enumerate(spans) for span in text}
    found = {(i, span) for i, text in enumerate(predictions) for span in text}
    right = len(true & found)
    return {
        "precision": right / max(len(found), 1),
        "recall": right / max(len(true), 1),
        "f1": 2 * right / max(len(true) + len(found), 1),
    }
