"""Byte-pair training as it is usually explained first: count all pairs again before each merge."""

import sys
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise


def learn_merges_naively(
    words: Mapping[str, int], vocabulary: Mapping[str, int], vocab_size: int
) -> list[tuple[str, str]]:
    """Learn the same merges as `chapters_src.tokenization.byte_pair.learn_merges`, the plain way.

    Each distinct word is held once, with its count; nothing else is remembered from one merge to the next.

    Args:
        words: Each word, spelled in symbols of one character, with its number of occurrences.
        vocabulary: The single symbols, with their ids.
        vocab_size: Tokens to stop at.

    Returns:
        The merges in the order learned.
    """
    symbols = list(vocabulary)
    spelled = [([vocabulary[symbol] for symbol in word], number) for word, number in words.items()]
    merges: list[tuple[str, str]] = []
    while len(symbols) < vocab_size:
        counts: Counter[tuple[int, int]] = Counter()
        for word, number in spelled:
            for pair in pairwise(word):
                counts[pair] += number
        if not counts:
            break
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append((symbols[best[0]], symbols[best[1]]))
        spelled = [(merge(word, best, len(symbols)), number) for word, number in spelled]
        symbols.append("".join(merges[-1]))
        if len(merges) % 200 == 0:
            print(f"  naive: {len(merges)} merges", file=sys.stderr, flush=True)
    return merges


def merge(word: list[int], pair: tuple[int, int], merged: int) -> list[int]:
    """Replace each occurrence of a pair in a word, from left to right."""
    result, position = [], 0
    while position < len(word):
        if word[position] == pair[0] and position + 1 < len(word) and word[position + 1] == pair[1]:
            result.append(merged)
            position += 2
        else:
            result.append(word[position])
            position += 1
    return result
