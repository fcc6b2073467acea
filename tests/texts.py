"""What tests of data sets compute of many short texts."""

import re

import numpy as np


def most_alike(texts):
    """The two texts with the most words in common: the share of all their words, and both texts."""
    words = [set(re.findall(r"\w+", text.casefold())) for text in texts]
    known = {word: i for i, word in enumerate(set().union(*words))}
    has = np.zeros((len(texts), len(known)), dtype=np.float32)
    for row, found in enumerate(words):
        has[row, [known[word] for word in found]] = 1
    both, sizes = has @ has.T, has.sum(axis=1)
    jaccard = both / (sizes[:, None] + sizes[None, :] - both)
    np.fill_diagonal(jaccard, 0)
    first, second = np.unravel_index(jaccard.argmax(), jaccard.shape)
    return jaccard[first, second], texts[first], texts[second]
