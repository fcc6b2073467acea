"""ROUGE, which counts what a text shares with a reference: the score of summaries. Chapter 14 takes it apart.

Lin, ROUGE: A Package for Automatic Evaluation of Summaries (2004), https://aclanthology.org/W04-1013/. The
numbers are those of the package `rouge-score` without its stemmer, which is also what that package does
unless told otherwise. A word is a run of the letters a to z and of digits, in lower case: ROUGE was made for
English, and sees nothing of a text in another alphabet. For other words, or stems, hand over `tokenize`.
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
    """What a prediction and a reference share, from 0 to 1."""

    precision: float  # As a share of the prediction: it falls with every word too many.
    recall: float  # As a share of the reference: the R in ROUGE.
    f1: float  # Their harmonic mean, which is what papers report.


def rouge_tokens(text: str) -> list[str]:
    """Take the words of a text as ROUGE sees them: runs of a to z and 0 to 9, in lower case.

    Args:
        text: any text.

    Returns:
        Its words: "U.S. naïve, v1.2" becomes u, s, na, ve, v1, 2.
    """
    return _WORD.findall(text.lower())


def rouge_n(prediction: str, reference: str, n: int, tokenize: Tokenize = rouge_tokens) -> RougeScore:
    """Compare the runs of n words: ROUGE-N, section 2.

    A run that occurs several times is matched as often as it occurs in both.

    Args:
        prediction: the text to score.
        reference: what it is compared with.
        n: 1 for words, 2 for pairs of words.
        tokenize: takes a text, gives its words.

    Returns:
        Precision, recall and F1; 0 where there is nothing to compare.

    Raises:
        ValueError: n is below 1.
    """
    if n < 1:
        raise ValueError(f"n={n}: a run has at least one word")
    predicted, wanted = (_runs(tokenize(text), n) for text in (prediction, reference))
    return _score((predicted & wanted).total(), predicted.total(), wanted.total())


def rouge_l(prediction: str, reference: str, tokenize: Tokenize = rouge_tokens) -> RougeScore:
    """Compare by the longest common subsequence of words: ROUGE-L, section 3.1.

    Words count that are in both texts in the same order, whatever stands between them.

    Args:
        prediction: the text to score.
        reference: what it is compared with.
        tokenize: takes a text, gives its words.

    Returns:
        Precision, recall and F1; 0 where there is nothing to compare.
    """
    predicted, wanted = tokenize(prediction), tokenize(reference)
    shared = len(_common_subsequence(wanted, predicted))
    return _score(shared, len(predicted), len(wanted))


def rouge_l_sum(prediction: str, reference: str, tokenize: Tokenize = rouge_tokens) -> RougeScore:
    r"""Compare sentence by sentence: ROUGE-Lsum, section 3.2.

    Each sentence of the reference is matched with all sentences of the prediction, and the words that any of
    these matches found count, each at most as often as it occurs in both texts. So the order of the
    sentences does not matter.

    Args:
        prediction: the text to score, one sentence on a line ("\n" between them).
        reference: what it is compared with, likewise. For texts of one line this is ROUGE-L.
        tokenize: takes a sentence, gives its words.

    Returns:
        Precision, recall and F1; 0 where there is nothing to compare.
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
    """Score each prediction, so that means, intervals and the worst cases can be had from one table.

    `bootstrap_interval(np.mean, table["rouge1"])` gives the score of a test set and how sure it is.

    Args:
        predictions: N texts.
        references: for each a text, or a list of texts of which the best match counts, for each kind of ROUGE
            by itself.
        tokenize: takes a text, gives its words.

    Returns:
        F1 from 0 to 1, a row for each prediction, with the columns "rouge1", "rouge2", "rougeL" and
        "rougeLsum".

    Raises:
        TypeError: one text where there should be a list of them, or something that is no text.
        ValueError: nothing to score, different lengths, or a prediction without a reference.
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


def _runs(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def _score(shared: int, predicted: int, wanted: int) -> RougeScore:
    precision, recall = shared / max(predicted, 1), shared / max(wanted, 1)
    return RougeScore(precision, recall, 2 * precision * recall / (precision + recall) if shared else 0.0)


def _common_subsequence(first: list[str], second: list[str]) -> list[int]:
    """Find the places in `first` of a longest common subsequence.

    The table of its lengths, which chapter 14 fills cell by cell, grows by 0 or 1 from column to column.
    So a row fits into the bits of one number, and is computed in one go: Hyyrö, Bit-parallel LCS-length
    computation revisited (2004). Bit j of row i is 0 where the length for `first[:i]` grows at `second[j]`.
    Where several subsequences are equally long, the walk back takes the one that `rouge-score` takes.
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
