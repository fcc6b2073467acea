"""Exact match and token F1: the scores of answers to questions, as SQuAD defines them. Chapter 01 uses them.

Rajpurkar et al., SQuAD (2016), https://arxiv.org/abs/1606.05250, section 6.1; where nothing is the right
answer, Rajpurkar et al., Know What You Don't Know (2018), https://arxiv.org/abs/1806.03822. Both scores look
away from capitals, punctuation and the articles a, an, the.
"""

import re
import string
from collections.abc import Sequence

import pandas as pd

from chapters_src.evaluation.rouge import rouge_n
from chapters_src.evaluation.texts import References, check_texts

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def answer_tokens(answer: str) -> list[str]:
    """Take the words of an answer that count.

    Args:
        answer: any text.

    Returns:
        Its words in lower case, without ASCII punctuation and without articles: "The U.S., a state" becomes
        us, state. Punctuation vanishes and leaves no space: "state-of-the-art" is one word.
    """
    return re.sub(r"\b(a|an|the)\b", " ", answer.lower().translate(_PUNCTUATION)).split()


def exact_match(prediction: str, reference: str) -> float:
    """Tell whether two answers have the same words in the same order.

    Args:
        prediction: the answer to score.
        reference: what it is compared with; empty where there is no answer.

    Returns:
        1 or 0.
    """
    return float(answer_tokens(prediction) == answer_tokens(reference))


def token_f1(prediction: str, reference: str) -> float:
    """Compare the words of two answers, whatever their order: the harmonic mean of precision and recall.

    Args:
        prediction: the answer to score.
        reference: what it is compared with; empty where there is no answer.

    Returns:
        From 0 to 1. If one of the two has no words, 1 if the other has none either, else 0.
    """
    if not answer_tokens(prediction) or not answer_tokens(reference):
        return exact_match(prediction, reference)
    return rouge_n(prediction, reference, 1, answer_tokens).f1  # The same formula, on other words.


def answer_scores(predictions: Sequence[str], references: References) -> pd.DataFrame:
    """Score each answer, so that means, intervals and the worst cases can be had from one table.

    Args:
        predictions: N answers; an empty one says that there is none.
        references: for each an answer, or a list of answers of which the best match counts, for each score by
            itself.

    Returns:
        From 0 to 1, a row for each prediction, with the columns "exact_match" and "f1".

    Raises:
        TypeError: one text where there should be a list of them, or something that is no text.
        ValueError: nothing to score, different lengths, or a prediction without a reference.
    """
    pairs = list(zip(*check_texts(predictions, references), strict=True))
    return pd.DataFrame(
        {
            name: [max(score(prediction, each) for each in those) for prediction, those in pairs]
            for name, score in (("exact_match", exact_match), ("f1", token_f1))
        }
    )
