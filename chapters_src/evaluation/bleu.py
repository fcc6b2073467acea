"""BLEU and chrF of a corpus, computed by sacrebleu, the standard for reporting them.

Both count what predictions share with their references: BLEU n-grams of one to four words, chrF n-grams of
one to six characters. BLEU of a corpus is not a mean over its texts, because counts are summed first.
Therefore `bleu_statistics` returns the counts of each text, and `bleu_of_statistics` the score of any sample
of them, as the bootstrap needs:

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
    """Score a corpus by BLEU, from 0 to 100: Papineni et al. (2002), https://aclanthology.org/P02-1040/.

    The result is that of `sacrebleu.corpus_bleu`: Post, A Call for Clarity in Reporting BLEU Scores (2018),
    https://aclanthology.org/W18-6319/.

    Args:
        predictions: N texts, not tokenized.
        references: for each prediction, a text or a list of texts.
        tokenize: sacrebleu's tokenizer: "13a" (the default in papers), "intl", "zh", "char" or "none".

    Raises:
        ImportError: sacrebleu is not installed.
        TypeError: as for `rouge`.
        ValueError: as for `rouge`, or `tokenize` is unknown.
    """
    return bleu_of_statistics(bleu_statistics(predictions, references, tokenize))


def bleu_statistics(predictions: Sequence[str], references: References, tokenize: str = "13a") -> np.ndarray:
    """Return the counts of each text that BLEU is computed from.

    Args, and what is raised: as for `bleu`.

    Returns:
        Integers, (N, 10): matching n-grams for n from 1 to 4, all n-grams of the prediction likewise, words
        of the prediction, and words of the reference closest to it in length.
    """
    predictions, references = check_texts(predictions, references)
    if tokenize not in _TOKENIZERS:
        raise ValueError(f"tokenize={tokenize!r} has to be one of {', '.join(_TOKENIZERS)}")
    # effective_order does not affect the counts, but avoids a warning about short texts.
    metric = _metrics().BLEU(tokenize=tokenize, effective_order=True)
    scores = [metric.sentence_score(*pair) for pair in zip(predictions, references, strict=True)]
    return np.array([[*score.counts, *score.totals, score.sys_len, score.ref_len] for score in scores])


def bleu_of_statistics(statistics: Array) -> float:
    """Return the BLEU of a corpus from rows of `bleu_statistics`, (N, 10), in any number.

    Raises:
        ImportError: sacrebleu is not installed.
        ValueError: `statistics` has another shape.
    """
    counts = to_array(statistics)
    if counts.ndim != 2 or counts.shape[1] != 2 * _ORDERS + 2:
        raise ValueError(
            f"statistics {counts.shape} are not (N, {2 * _ORDERS + 2}): pass rows of bleu_statistics"
        )
    sums = counts.sum(axis=0).tolist()
    right, there = sums[:_ORDERS], sums[_ORDERS : 2 * _ORDERS]
    return _metrics().BLEU.compute_bleu(right, there, *sums[2 * _ORDERS :], smooth_method="exp").score


def chrf(predictions: Sequence[str], references: References) -> float:
    """Score a corpus by chrF2, from n-grams of characters: Popović (2015), https://aclanthology.org/W15-3049/.

    The result, from 0 to 100, is that of `sacrebleu.corpus_chrf`. Unlike BLEU, it gives credit for parts of
    words. Args, and what is raised: as for `bleu`.
    """
    predictions, references = check_texts(predictions, references)
    most = max(map(len, references))
    filled = [[*those, *[None] * (most - len(those))] for those in references]
    return _metrics().CHRF().corpus_score(predictions, [*zip(*filled, strict=True)]).score


def _metrics() -> ModuleType:
    """Import sacrebleu only when needed, because most chapters do not need it."""
    try:
        from sacrebleu import metrics
    except ImportError as error:
        raise ImportError("BLEU and chrF need sacrebleu: python -m pip install sacrebleu") from error
    return metrics
