"""Predicted texts and their references, checked: what ROUGE, BLEU and chrF are computed from."""

from collections.abc import Sequence

# For each prediction one text, or several that are equally right.
References = Sequence[str] | Sequence[Sequence[str]]


def check_texts(predictions: Sequence[str], references: References) -> tuple[list[str], list[list[str]]]:
    """Give the predictions, and for each the list of its references.

    Raises:
        TypeError: one text where there should be a list of them, or something that is no text.
        ValueError: nothing to score, different lengths, or a prediction without a reference.
    """
    for name, texts in (("predictions", predictions), ("references", references)):
        if isinstance(texts, str):
            raise TypeError(f"{name} is the one text {texts[:40]!r}: a list of texts is needed, [text]")
    predictions = list(predictions)
    references = [[each] if isinstance(each, str) else list(each) for each in references]
    if len(predictions) != len(references) or not predictions:
        raise ValueError(
            f"{len(predictions)} predictions and {len(references)} references: each prediction needs one "
            "entry, a text or a list of texts, and there has to be at least one"
        )
    for row, (prediction, those) in enumerate(zip(predictions, references, strict=True)):
        if not those:
            raise ValueError(f"prediction {row} has no reference: leave it out, or give it an empty text")
        for text in (prediction, *those):
            if not isinstance(text, str):
                raise TypeError(f"row {row} holds {text!r}, which is no text: decode ids first")
    return predictions, references
