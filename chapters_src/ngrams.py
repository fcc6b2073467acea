"""An n-gram language model with interpolated Kneser-Ney smoothing.

It is a baseline for neural language models (chapter 12), and a draft that costs almost nothing (chapter 13).
The probability of a token w after the tokens h is

    P(w | h) = max(c(hw) - D, 0) / c(h) + D * t(h) / c(h) * P(w | h')

where c(hw) is how often w followed h, c(h) is the sum of c(hw) over all w, t(h) is the number of different
tokens that followed h, and h' is h without its first token. The discount D, subtracted from each count, is
redistributed according to the shorter history. Shorter histories count the different tokens that precede hw,
not its occurrences: "Francisco" is frequent, but only after "San".

Sources: Kneser & Ney (1995), https://doi.org/10.1109/ICASSP.1995.479394; Chen & Goodman (1999), section 3,
https://doi.org/10.1006/csla.1999.0128.
"""

import operator
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np


class _Counts(NamedTuple):
    """The n-grams of one length. Each is an integer with the ids as digits."""

    grams: np.ndarray  # Sorted, int64, (n-grams,).
    counts: np.ndarray  # int64, (n-grams,).
    histories: np.ndarray  # Sorted, int64, (histories,): n-grams without their last token.
    totals: np.ndarray  # Sum of the counts after each history, (histories,).
    types: np.ndarray  # Number of different tokens after each history, (histories,).
    discount: float


class NGramModel:
    """An n-gram model of documents, each preceded and followed by `end_id`.

    Training sorts all n-grams, which takes a few seconds for two million tokens and order 4.
    """

    def __init__(
        self, documents: Iterable[Sequence[int]], order: int, *, vocab_size: int, end_id: int
    ) -> None:
        """Count the n-grams of documents.

        Args:
            documents: the ids of each document, without `end_id`.
            order: length of the longest n-grams, at least 1; the model looks back order - 1 tokens.
            vocab_size: number of different ids.
            end_id: precedes each document as often as needed, and is predicted after it.

        Raises:
            ValueError: there are no documents, an id is out of range, or n-grams do not fit into 63 bits.
        """
        order, vocab_size, end_id = map(operator.index, (order, vocab_size, end_id))
        if order < 1 or order * np.log2(vocab_size) > 63:
            raise ValueError(
                f"order={order} has to be at least 1, and vocab_size ** order below 2 ** 63: "
                f"with vocab_size={vocab_size} at most {int(63 / np.log2(vocab_size))}"
            )
        self.order, self.vocab_size, self.end_id = order, vocab_size, end_id
        windows = [self._windows(document) for document in documents]  # (tokens, order) each
        if not windows:
            raise ValueError("there are no documents")
        self._orders = self._count(np.concatenate(windows))

    def log_probabilities(self, document: Sequence[int]) -> np.ndarray:
        """Return the log-probability of each token of a document, without `end_id`, and of its end.

        These are natural logarithms, (tokens + 1,).

        Raises:
            ValueError: an id is out of range.
        """
        windows = self._windows(document)
        probabilities = np.full(len(windows), 1 / self.vocab_size)
        for length, counted in enumerate(self._orders, start=1):
            grams = self._codes(windows[:, self.order - length :])
            seen = _look_up(counted.grams, counted.counts, grams)
            history = _look_up(
                counted.histories, np.arange(1, len(counted.histories) + 1), grams // self.vocab_size
            )
            known = history > 0
            total, types = counted.totals[history[known] - 1], counted.types[history[known] - 1]
            own = np.maximum(seen[known] - counted.discount, 0) / total
            probabilities[known] = own + counted.discount * types / total * probabilities[known]
        return np.log(probabilities)

    def probabilities(self, ids: Sequence[int]) -> np.ndarray:
        """Return the probability of each next token, (vocab_size,), after the ids of a document so far.

        Raises:
            ValueError: an id is out of range.
        """
        window = self._windows(ids)[-1]  # The last place is for the next token.
        probabilities = np.full(self.vocab_size, 1 / self.vocab_size)
        for length, counted in enumerate(self._orders, start=1):
            history = int(self._codes(window[None, self.order - length :])[0]) // self.vocab_size
            place = int(np.searchsorted(counted.histories, history))
            if place == len(counted.histories) or counted.histories[place] != history:
                break  # The history never occurred, so neither did longer ones.
            total, types = counted.totals[place], counted.types[place]
            first = history * self.vocab_size
            start, stop = np.searchsorted(counted.grams, [first, first + self.vocab_size])
            probabilities *= counted.discount * types / total
            followers = counted.grams[start:stop] - first
            probabilities[followers] += (counted.counts[start:stop] - counted.discount) / total
        return probabilities

    def _windows(self, document: Sequence[int]) -> np.ndarray:
        """Return each token of a document, and its end, with the order - 1 tokens before it."""
        ids = np.asarray(document, dtype=np.int64)
        if ids.ndim != 1 or (len(ids) and not 0 <= ids.min() <= ids.max() < self.vocab_size):
            raise ValueError(f"a document {ids.shape} is not a list of ids from 0 to {self.vocab_size - 1}")
        start, end = np.full(self.order - 1, self.end_id), [self.end_id]
        return np.lib.stride_tricks.sliding_window_view(np.concatenate([start, ids, end]), self.order)

    def _codes(self, windows: np.ndarray) -> np.ndarray:
        """Return the integers that have the ids of each row as digits."""
        codes = np.zeros(len(windows), dtype=np.int64)
        for column in windows.T:
            codes = codes * self.vocab_size + column
        return codes

    def _count(self, windows: np.ndarray) -> list[_Counts]:
        """Count the n-grams of all lengths, the shortest first."""
        orders: list[_Counts] = []
        longer = None
        for length in range(self.order, 0, -1):
            grams, counts = np.unique(self._codes(windows[:, self.order - length :]), return_counts=True)
            if longer is not None:  # Count the preceding tokens, except at the start of documents.
                first = self.vocab_size ** (length - 1)
                before = np.unique(longer % (first * self.vocab_size), return_counts=True)[1]
                is_start = (grams // first == self.end_id) & (length > 1)
                counts = np.where(is_start, counts, before)
            orders.append(_with_histories(grams, counts, self.vocab_size))
            longer = grams
        return orders[::-1]


def _with_histories(grams: np.ndarray, counts: np.ndarray, vocab_size: int) -> _Counts:
    histories, starts, types = np.unique(grams // vocab_size, return_index=True, return_counts=True)
    once, twice = (int((counts == times).sum()) for times in (1, 2))
    discount = once / (once + 2 * twice) if once else 0.0
    return _Counts(
        grams, counts, histories, np.add.reduceat(counts, starts), types, min(max(discount, 0.1), 0.9)
    )


def _look_up(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the value of each key; 0 for a missing key."""
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], 0)
