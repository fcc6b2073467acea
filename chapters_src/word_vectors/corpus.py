"""A corpus as word ids, and a vocabulary's coverage of it."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True, eq=False)
class Corpus:
    """Texts without their rare words. As in word2vec, the neighbors of a dropped word become adjacent."""

    words: list[str]  # The vocabulary, most frequent first, V.
    counts: np.ndarray  # Occurrences of each word, int64, (V,).
    ids: np.ndarray  # All texts, concatenated, as indices into `words`, int64, (N,).
    texts: np.ndarray  # The index of the text of each id, int64, (N,).


class Coverage(NamedTuple):
    """The share of a corpus that a vocabulary covers."""

    types: float  # Of the distinct words.
    tokens: float  # Of the running text.


def read_corpus(texts: Iterable[Sequence[str]], min_count: int = 5) -> Corpus:
    """Count words, and assign ids to those that occur at least `min_count` times.

    Windows never cross from one text, a sequence of words, into the next. Equally frequent words are in
    alphabetical order.

    Raises:
        TypeError: a text is a string, not a sequence of words.
        ValueError: no word is frequent enough.
    """
    texts = list(texts)
    if any(isinstance(text, str) for text in texts):
        raise TypeError("each text has to be a sequence of words; split the string first")
    counted = Counter(word for text in texts for word in text)
    kept = sorted((word for word, n in counted.items() if n >= min_count), key=lambda w: (-counted[w], w))
    if not kept:
        raise ValueError(f"none of {len(counted)} distinct words occurs min_count={min_count} times")
    number = {word: i for i, word in enumerate(kept)}
    found = [(number[word], i) for i, text in enumerate(texts) for word in text if word in number]
    ids, text_numbers = np.array(found, dtype=np.int64).T.copy()
    return Corpus(kept, np.array([counted[word] for word in kept]), ids, text_numbers)


def coverage(counts: Mapping[str, int], vocabulary: Collection[str]) -> Coverage:
    """Compute the share of a corpus, counted words, that a vocabulary covers, by type and by token.

    A vocabulary that is a set or a dict is fast.

    Raises:
        ValueError: the corpus is empty.
    """
    total = sum(counts.values())
    if not total:
        raise ValueError("an empty corpus has no coverage: there are no words to count")
    known = {word: n for word, n in counts.items() if word in vocabulary}
    return Coverage(len(known) / len(counts), sum(known.values()) / total)
