"""A corpus as numbers, and how much of it a vocabulary covers."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True, eq=False)
class Corpus:
    """Texts whose rare words have been dropped, as word2vec drops them: a word's neighbors move together."""

    words: list[str]  # The vocabulary, the most frequent word first: V.
    counts: np.ndarray  # Occurrences of each, int64, (V,).
    ids: np.ndarray  # The texts in a row, numbers into `words`, int64, (N,).
    texts: np.ndarray  # The number of the text that each of them belongs to, int64, (N,).


class Coverage(NamedTuple):
    """What share of a corpus a vocabulary knows."""

    types: float  # Of the different words.
    tokens: float  # Of the running text.


def read_corpus(texts: Iterable[Sequence[str]], min_count: int = 5) -> Corpus:
    """Count words, and number those that are frequent enough.

    Args:
        texts: each a sequence of words. No window will reach from one into the next.
        min_count: rarer words are dropped.

    Returns:
        The corpus. Words that are equally frequent are in alphabetical order.

    Raises:
        TypeError: a text is a string, and not a sequence of words.
        ValueError: no word is frequent enough.
    """
    texts = list(texts)
    if any(isinstance(text, str) for text in texts):
        raise TypeError("each text has to be a sequence of words; split the string first")
    counted = Counter(word for text in texts for word in text)
    kept = sorted((word for word, n in counted.items() if n >= min_count), key=lambda w: (-counted[w], w))
    if not kept:
        raise ValueError(f"none of {len(counted)} different words occurs min_count={min_count} times")
    number = {word: i for i, word in enumerate(kept)}
    found = [(number[word], i) for i, text in enumerate(texts) for word in text if word in number]
    ids, text_numbers = np.array(found, dtype=np.int64).T.copy()
    return Corpus(kept, np.array([counted[word] for word in kept]), ids, text_numbers)


def coverage(counts: Mapping[str, int], vocabulary: Collection[str]) -> Coverage:
    """Tell what share of a corpus a vocabulary knows, by type and by token.

    Args:
        counts: the words of the corpus, each with its number of occurrences.
        vocabulary: the known words; a set or a dict is fast.

    Returns:
        The share of different words, and the share of the running text.

    Raises:
        ValueError: the corpus is empty.
    """
    total = sum(counts.values())
    if not total:
        raise ValueError("an empty corpus has no coverage: there are no words to count")
    known = {word: n for word, n in counts.items() if word in vocabulary}
    return Coverage(len(known) / len(counts), sum(known.values()) / total)
