"""Exact match and token F1, the scores of SQuAD for answers to questions. Chapter 01 uses them.

Rajpurkar et al., SQuAD (2016), https://arxiv.org/abs/1606.05250, section 6.1; for unanswerable questions,
Rajpurkar et al., Know What You Don't Know (2018), https://arxiv.org/abs/1806.03822. Both scores ignore
capitalization, punctuation and the articles a, an, the.
"""

import re
import string
from collections.abc import Sequence

import pandas as pd

from chapters_src.evaluation.rouge import rouge_n
from chapters_src.evaluation.texts import References, check_texts

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def answer_tokens(answer: str) -> list[str]:
    """Split an answer into words in lower case, without ASCII punctuation and articles.

    "The U.S., a state" becomes us, state. Punctuation is not replaced by a space: "state-of-the-art" is one
    word.
    """
    return re.sub(r"\b(a|an|the)\b", " ", answer.lower().translate(_PUNCTUATION)).split()


def exact_match(prediction: str, reference: str) -> float:
    """Return 1 if two answers have the same words in the same order, else 0."""
    return float(answer_tokens(prediction) == answer_tokens(reference))


def token_f1(prediction: str, reference: str) -> float:
    """Return the F1 of the words of two answers, in any order, from 0 to 1.

    If one of them has no words, it is 1 if the other has none either, else 0.
    """
    if not answer_tokens(prediction) or not answer_tokens(reference):
        return exact_match(prediction, reference)
    return rouge_n(prediction, reference, 1, answer_tokens).f1  # The same formula, with other words.


def answer_scores(predictions: Sequence[str], references: References) -> pd.DataFrame:
    """Return a table of the scores of each answer, for means, intervals and the worst cases.

    The columns are "exact_match" and "f1", from 0 to 1. An empty prediction means that there is no answer. Of
    several references the best match counts, separately for each score.

    Raises:
        TypeError, ValueError: as for `rouge`.
    """
    pairs = list(zip(*check_texts(predictions, references), strict=True))
    return pd.DataFrame(
        {
            name: [max(score(prediction, each) for each in those) for prediction, those in pairs]
            for name, score in (("exact_match", exact_match), ("f1", token_f1))
        }
    )
