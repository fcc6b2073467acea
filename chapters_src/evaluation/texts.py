"""Checks of predicted texts and their references, for ROUGE, BLEU and chrF."""

from collections.abc import Sequence

# For each prediction, one text or several equally correct ones.
References = Sequence[str] | Sequence[Sequence[str]]


def check_texts(predictions: Sequence[str], references: References) -> tuple[list[str], list[list[str]]]:
    """Return the predictions, and the list of references of each.

    Raises:
        TypeError: a single text was passed instead of a list, or something is not a text.
        ValueError: there are no texts, the lengths differ, or a prediction has no reference.
    """
    for name, texts in (("predictions", predictions), ("references", references)):
        if isinstance(texts, str):
            raise TypeError(f"{name} is a single text, {texts[:40]!r}: pass a list of texts, [text]")
    predictions = list(predictions)
    wanted = [[each] if isinstance(each, str) else list(each) for each in references]
    if len(predictions) != len(wanted) or not predictions:
        raise ValueError(
            f"{len(predictions)} predictions and {len(wanted)} references: pass at least one "
            "prediction, and for each a text or a list of texts"
        )
    for row, (prediction, those) in enumerate(zip(predictions, wanted, strict=True)):
        if not those:
            raise ValueError(f"prediction {row} has no reference: leave it out, or pass an empty text")
        for text in (prediction, *those):
            if not isinstance(text, str):
                raise TypeError(f"row {row} contains {text!r}, which is not a text: decode ids first")
    return predictions, wanted
