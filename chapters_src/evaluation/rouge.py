"""ROUGE, which scores summaries by what they share with a reference. Chapter 14 explains it step by step.

Lin, ROUGE: A Package for Automatic Evaluation of Summaries (2004), https://aclanthology.org/W04-1013/. The
results are those of the package `rouge-score` with its default, no stemmer. A word is a sequence of letters a
to z and digits, in lower case, so ROUGE ignores text in other alphabets. For other words, or stems, pass
`tokenize`.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pandas as pd

from chapters_src.evaluation.texts import References, check_texts

Tokenize = Callable[[str], list[str]]

_WORD = re.compile(r"[a-z0-9]+")


class RougeScore(NamedTuple):
    """Precision, recall and F1 of a prediction, from 0 to 1."""

    precision: float  # The matching share of the prediction.
    recall: float  # The matching share of the reference: the R in ROUGE.
    f1: float  # Their harmonic mean, which papers report.


def rouge_tokens(text: str) -> list[str]:
    """Split a text into words, in lower case: "U.S. naïve, v1.2" becomes u, s, na, ve, v1, 2."""
    return _WORD.findall(text.lower())


def rouge_n(prediction: str, reference: str, n: int, tokenize: Tokenize = rouge_tokens) -> RougeScore:
    """Compare the n-grams of two texts: ROUGE-N, section 2.

    A repeated n-gram is matched as often as it occurs in both texts. All is 0 if a text has no words to
    compare.

    Raises:
        ValueError: n is less than 1.
    """
    if n < 1:
        raise ValueError(f"n={n} has to be at least 1")
    predicted, wanted = (_ngrams(tokenize(text), n) for text in (prediction, reference))
    return _score((predicted & wanted).total(), predicted.total(), wanted.total())


def rouge_l(prediction: str, reference: str, tokenize: Tokenize = rouge_tokens) -> RougeScore:
    """Compare two texts by their longest common subsequence of words: ROUGE-L, section 3.1.

    Matching words have to be in the same order, but may have others between them.
    """
    predicted, wanted = tokenize(prediction), tokenize(reference)
    shared = len(_common_subsequence(wanted, predicted))
    return _score(shared, len(predicted), len(wanted))


def rouge_l_sum(prediction: str, reference: str, tokenize: Tokenize = rouge_tokens) -> RougeScore:
    r"""Compare two texts sentence by sentence: ROUGE-Lsum, section 3.2.

    Each sentence of the reference is matched with all sentences of the prediction, separated by "\n". A word
    counts if any of these matches contains it, but at most as often as it occurs in both texts. The order of
    sentences does not matter. For single lines this is ROUGE-L.
    """
    predicted, wanted = (
        [tokenize(sentence) for sentence in text.split("\n")] for text in (prediction, reference)
    )
    words_predicted, words_wanted = (
        Counter(word for s in text for word in s) for text in (predicted, wanted)
    )
    found: Counter[str] = Counter()
    for sentence in wanted:
        places = set().union(*(_common_subsequence(sentence, other) for other in predicted))
        found.update(sentence[place] for place in places)
    shared = (found & words_predicted & words_wanted).total()
    return _score(shared, words_predicted.total(), words_wanted.total())


def rouge(
    predictions: Sequence[str], references: References, tokenize: Tokenize = rouge_tokens
) -> pd.DataFrame:
    """Return a table of the scores of each prediction, for means, intervals and the worst cases.

    The columns are "rouge1", "rouge2", "rougeL" and "rougeLsum": F1 from 0 to 1. Of several references the
    best match counts, separately for each kind of ROUGE. `tokenize` splits a text into words.
    `bootstrap_interval(np.mean, table["rouge1"])` returns the score of a test set and its interval.

    Raises:
        TypeError: a single text was passed instead of a list, or something is not a text.
        ValueError: there are no texts, the lengths differ, or a prediction has no reference.
    """
    kinds = {
        "rouge1": lambda prediction, reference: rouge_n(prediction, reference, 1, tokenize),
        "rouge2": lambda prediction, reference: rouge_n(prediction, reference, 2, tokenize),
        "rougeL": lambda prediction, reference: rouge_l(prediction, reference, tokenize),
        "rougeLsum": lambda prediction, reference: rouge_l_sum(prediction, reference, tokenize),
    }
    pairs = list(zip(*check_texts(predictions, references), strict=True))
    return pd.DataFrame(
        {
            kind: [max(score(prediction, each).f1 for each in those) for prediction, those in pairs]
            for kind, score in kinds.items()
        }
    )


def _ngrams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def _score(shared: int, predicted: int, wanted: int) -> RougeScore:
    precision, recall = shared / max(predicted, 1), shared / max(wanted, 1)
    return RougeScore(precision, recall, 2 * precision * recall / (precision + recall) if shared else 0.0)


def _common_subsequence(first: list[str], second: list[str]) -> list[int]:
    """Return the indices in `first` of a longest common subsequence.

    In the table of lengths, which chapter 14 fills cell by cell, neighboring columns differ by 0 or 1. So a
    row is stored in the bits of one integer and computed at once: Hyyrö, Bit-parallel LCS-length computation
    revisited (2004). Bit j of row i is 0 if the length for `first[:i]` increases at `second[j]`. Of several
    longest subsequences, backtracking returns the one that `rouge-score` returns.
    """
    matches: dict[str, int] = {}
    for j, word in enumerate(second):
        matches[word] = matches.get(word, 0) | 1 << j
    full = (1 << len(second)) - 1
    rows = [full]
    for word in first:
        hit = rows[-1] & matches.get(word, 0)
        rows.append((rows[-1] + hit | rows[-1] - hit) & full)

    def length(i: int, j: int) -> int:
        return j - (rows[i] & (1 << j) - 1).bit_count()

    places = []
    i, j = len(first), len(second)
    while i > 0 and j > 0:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            places.append(i)
        elif length(i, j - 1) > length(i - 1, j):
            j -= 1
        else:
            i -= 1
    return places
