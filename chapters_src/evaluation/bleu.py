"""BLEU and chrF of a whole corpus, by the package sacrebleu, whose numbers are those that papers report.

Both count what predictions share with their references: BLEU runs of one to four words, chrF runs of one to
six characters. BLEU of a corpus is no mean over its texts: the counts are added up first. So
`bleu_statistics` gives the counts of each text, and `bleu_of_statistics` the score of any choice of texts,
which is what a bootstrap draws:

    bootstrap_interval(bleu_of_statistics, bleu_statistics(predictions, references))
"""

from collections.abc import Sequence
from types import ModuleType

import numpy as np

from chapters_src.evaluation.arrays import Array, to_array
from chapters_src.evaluation.texts import References, check_texts

_ORDERS = 4
# Those of sacrebleu that need no other package and no download.
_TOKENIZERS = ("13a", "intl", "char", "zh", "none")


def bleu(predictions: Sequence[str], references: References, tokenize: str = "13a") -> float:
    """Score a corpus by BLEU: Papineni et al. (2002), https://aclanthology.org/P02-1040/.

    As `sacrebleu.corpus_bleu` gives it: Post, A Call for Clarity in Reporting BLEU Scores (2018),
    https://aclanthology.org/W18-6319/.

    Args:
        predictions: N texts as somebody would read them, not tokenized.
        references: for each a text, or a list of texts.
        tokenize: how sacrebleu cuts words: "13a" (the default of papers), "intl", "zh", "char" or "none".

    Returns:
        From 0 to 100.

    Raises:
        ImportError: sacrebleu is not installed.
        TypeError: one text where there should be a list of them, or something that is no text.
        ValueError: nothing to score, different lengths, a prediction without a reference, or an unknown
            `tokenize`.
    """
    return bleu_of_statistics(bleu_statistics(predictions, references, tokenize))


def bleu_statistics(predictions: Sequence[str], references: References, tokenize: str = "13a") -> np.ndarray:
    """Count for each text what BLEU is made of.

    Args, and what is raised: as for `bleu`.

    Returns:
        (N, 10) whole numbers: runs of 1 to 4 words that are right, runs of 1 to 4 words that there are, words
        of the prediction, and words of the reference that is closest to it in length.
    """
    predictions, references = check_texts(predictions, references)
    if tokenize not in _TOKENIZERS:
        raise ValueError(f"tokenize={tokenize!r} has to be one of {', '.join(_TOKENIZERS)}")
    # How short texts are scored by themselves makes no difference to the counts; without it sacrebleu warns.
    metric = _metrics().BLEU(tokenize=tokenize, effective_order=True)
    scores = [metric.sentence_score(*pair) for pair in zip(predictions, references, strict=True)]
    return np.array([[*score.counts, *score.totals, score.sys_len, score.ref_len] for score in scores])


def bleu_of_statistics(statistics: Array) -> float:
    """Score the corpus of the texts that these counts belong to.

    Args:
        statistics: rows of what `bleu_statistics` gave, (N, 10); a row may stand there several times.

    Returns:
        From 0 to 100.

    Raises:
        ImportError: sacrebleu is not installed.
        ValueError: another shape.
    """
    counts = to_array(statistics)
    if counts.ndim != 2 or counts.shape[1] != 2 * _ORDERS + 2:
        raise ValueError(f"statistics {counts.shape} are not (N, {2 * _ORDERS + 2}): see bleu_statistics")
    sums = counts.sum(axis=0).tolist()
    right, there = sums[:_ORDERS], sums[_ORDERS : 2 * _ORDERS]
    return _metrics().BLEU.compute_bleu(right, there, *sums[2 * _ORDERS :], smooth_method="exp").score


def chrf(predictions: Sequence[str], references: References) -> float:
    """Score a corpus by chrF2, of runs of characters: Popović (2015), https://aclanthology.org/W15-3049/.

    As `sacrebleu.corpus_chrf` gives it. It needs no words, and gives credit for parts of them.

    Args:
        predictions: N texts.
        references: for each a text, or a list of texts.

    Returns:
        From 0 to 100.

    Raises:
        ImportError: sacrebleu is not installed.
        TypeError: one text where there should be a list of them, or something that is no text.
        ValueError: nothing to score, different lengths, or a prediction without a reference.
    """
    predictions, references = check_texts(predictions, references)
    most = max(map(len, references))
    filled = [[*those, *[None] * (most - len(those))] for those in references]
    return _metrics().CHRF().corpus_score(predictions, [*zip(*filled, strict=True)]).score


def _metrics() -> ModuleType:
    """Import sacrebleu, once it is needed: chapters that only score classes can do without it."""
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise ImportError("BLEU and chrF need sacrebleu: python -m pip install sacrebleu") from error
    return metrics
