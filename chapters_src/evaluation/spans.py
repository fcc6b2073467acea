"""Scores of spans in texts, such as named entities."""

from collections.abc import Collection, Hashable, Sequence


def span_scores(
    spans: Sequence[Collection[Hashable]], predictions: Sequence[Collection[Hashable]]
) -> dict[str, float]:
    """Score predicted spans of N texts, which are correct only if start, end and label all are.

    A span may be a tuple of the three. The scores, each from 0 to 1 and over all texts, are "precision"
    (the correct share of the predicted spans), "recall" (the predicted share of the true spans) and "f1",
    their harmonic mean. They are 0 without any spans.

    Raises:
        ValueError: there are no texts, or `spans` and `predictions` differ in length.
    """
    if not spans or len(spans) != len(predictions):
        raise ValueError(
            f"true spans of {len(spans)} texts and predicted spans of {len(predictions)}: pass both for the "
            "same texts, at least one"
        )
    true = {(i, span) for i, text in enumerate(spans) for span in text}
    found = {(i, span) for i, text in enumerate(predictions) for span in text}
    right = len(true & found)
    return {
        "precision": right / max(len(found), 1),
        "recall": right / max(len(true), 1),
        "f1": 2 * right / max(len(true) + len(found), 1),
    }
