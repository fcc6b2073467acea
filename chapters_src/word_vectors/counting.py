"""Vectors from co-occurrence counts: pointwise mutual information and its main directions.

Sources: Church & Hanks (1990), https://aclanthology.org/J90-1003/ (mutual information of words); Levy &
Goldberg (2014), https://papers.nips.cc/paper/5477 (skip-gram factorizes shifted PMI); Levy, Goldberg & Dagan
(2015), https://aclanthology.org/Q15-1016/ (smoothing, the power of the singular values); Pennington, Socher &
Manning (2014), https://aclanthology.org/D14-1162/ (GloVe: near words count for more).
"""

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from chapters_src.word_vectors.corpus import Corpus


def window_weights(window: int, weighting: str) -> np.ndarray:
    """Return the weights of the distances 1, 2, ..., `window` of a pair of words.

    The weighting is "uniform"; "linear", the average of word2vec, which draws the size of each window from 1
    to `window`; or "harmonic", one over the distance, as in GloVe.

    Raises:
        ValueError: the window is below 1, or the weighting is unknown.
    """
    if window < 1:
        raise ValueError(f"window={window}: a word needs at least 1 neighbor on each side")
    distances = np.arange(1, window + 1)
    weights = {"uniform": np.ones(window), "linear": 1 - (distances - 1) / window, "harmonic": 1 / distances}
    if weighting not in weights:
        raise ValueError(f"weighting={weighting!r}: choose from {', '.join(weights)}")
    return weights[weighting]


def cooccurrence(corpus: Corpus, window: int = 5, weighting: str = "linear") -> sparse.csr_array:
    """Count co-occurrences of words within one text, in windows as for `window_weights`.

    The matrix is symmetric, (V, V): entry (w, c) is the weighted number of times that c occurs in the window
    of w.
    """
    size = len(corpus.words)
    total = sparse.csr_array((size, size))
    for distance, weight in enumerate(window_weights(window, weighting), start=1):
        together = corpus.texts[distance:] == corpus.texts[:-distance]
        left, right = corpus.ids[:-distance][together], corpus.ids[distance:][together]
        pairs = sparse.coo_array((np.full(len(left), weight), (left, right)), shape=(size, size)).tocsr()
        total = total + pairs + pairs.T
    return total.tocsr()


def ppmi(counts: sparse.csr_array, smoothing: float = 0.75, shift: float = 0.0) -> sparse.csr_array:
    """Compute positive pointwise mutual information (PPMI) from counts.

        PPMI(w, c) = max(0, log P(w, c) / (P(w) P(c)) - shift)

    Args:
        counts: (V, V), entry (w, c) is the number of times that c occurs near w.
        smoothing: P(c) is proportional to count(c) to this power. Below 1 it makes rare contexts less
            surprising; 1 leaves P(c) as it is.
        shift: the logarithm of the number of negative samples makes the matrix that skip-gram factorizes.

    Returns:
        (V, V), in nats; only positive entries are stored.

    Raises:
        ValueError: there are no counts, or some are negative.
    """
    entries = counts.tocoo()
    if entries.nnz == 0 or entries.data.min() < 0:
        raise ValueError(f"{entries.nnz} counts, some of them maybe negative: PMI needs positive counts")
    of_word, of_context = counts.sum(axis=1), counts.sum(axis=0) ** smoothing
    expected = of_word[entries.row] * (of_context / of_context.sum())[entries.col]
    with np.errstate(divide="ignore"):  # A stored zero becomes log 0, which is then dropped.
        values = np.log(entries.data / expected) - shift
    positive = values > 0
    where = entries.row[positive], entries.col[positive]
    return sparse.coo_array((values[positive], where), shape=counts.shape).tocsr()


def svd_vectors(matrix: sparse.csr_array, dim: int, power: float = 0.5) -> np.ndarray:
    """Keep the `dim` main directions of a matrix: truncated singular value decomposition, (V, V) -> (V, D).

    The left singular vectors are multiplied by the singular values to the `power`. 1 keeps the matrix's own
    distances; Levy, Goldberg & Dagan (2015) found 0.5 and 0 to work better for words. The main direction
    comes first, and the entry of largest absolute value in each column is positive, so that signs are
    reproducible.

    Raises:
        ValueError: `dim` is not from 1 to V - 1.
    """
    if not 0 < dim < matrix.shape[0]:
        raise ValueError(f"dim={dim} must be from 1 to {matrix.shape[0] - 1}, one less than the words")
    start = np.full(matrix.shape[0], 1 / matrix.shape[0] ** 0.5)  # Fixed, so that two runs agree.
    left, singular, _ = linalg.svds(matrix.astype(float), k=dim, v0=start)
    order = np.argsort(-singular)
    left, singular = left[:, order], singular[order]
    largest = left[np.abs(left).argmax(axis=0), np.arange(dim)]
    return left * np.where(largest < 0, -1, 1) * singular**power
