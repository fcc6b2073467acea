"""Counts of neighboring pairs in a corpus, updated as pairs are merged (chapter 03).

Byte-pair encoding and WordPiece both learn by merging pairs, thousands of times. Recounting after each merge
would read the entire corpus thousands of times. But a merge only affects the words that contain the pair, and
in them only the neighboring pairs. So this class also keeps an index from each pair to the words that may
contain it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise

Pair = tuple[int, int]


class PairCounts:
    """Counted words as symbols, with the count of every pair of neighbors.

    Args:
        words: Each distinct word as ids of symbols, with its number of occurrences in the corpus.

    Attributes:
        counts: Pair to its number of occurrences; pairs that no longer occur have no entry.
        symbol_counts: Symbol to its number of occurrences.
    """

    def __init__(self, words: Iterable[tuple[list[int], int]]):
        self.counts: Counter[Pair] = Counter()
        self.symbol_counts: Counter[int] = Counter()
        self._words, self._frequencies = [], []
        self._words_with: defaultdict[Pair, set[int]] = defaultdict(set)
        for number, (word, frequency) in enumerate(words):
            self._words.append(word)
            self._frequencies.append(frequency)
            for symbol in word:
                self.symbol_counts[symbol] += frequency
            for pair in pairwise(word):
                self.counts[pair] += frequency
                self._words_with[pair].add(number)

    def merge(self, pair: Pair, merged: int) -> set[Pair]:
        """Replace a pair by one symbol in all words, and return the pairs whose count has changed."""
        changes: defaultdict[Pair, int] = defaultdict(int)
        for number in self._words_with.pop(pair, ()):
            length = len(self._words[number])
            self._merge_in_word(number, pair, merged, changes)
            self.symbol_counts[merged] += (length - len(self._words[number])) * self._frequencies[number]
        for symbol in pair:
            self.symbol_counts[symbol] -= self.symbol_counts[merged]
        changes[pair] = -self.counts[pair]
        return self._apply(changes)

    def _merge_in_word(self, number: int, pair: Pair, merged: int, changes: dict[Pair, int]) -> None:
        """Merge from left to right; of overlapping pairs the left one wins, so `a a a` becomes `aa a`."""
        left, right = pair
        word, frequency = self._words[number], self._frequencies[number]
        result: list[int] = []
        position, last = 0, len(word) - 1
        while position <= last:
            if word[position] != left or position == last or word[position + 1] != right:
                result.append(word[position])
                position += 1
                continue
            if result:  # x left right -> x merged
                changes[result[-1], left] -= frequency
                self._count_in(number, (result[-1], merged), frequency, changes)
            if position + 2 <= last:  # left right x -> merged x
                changes[right, word[position + 2]] -= frequency
                self._count_in(number, (merged, word[position + 2]), frequency, changes)
            result.append(merged)
            position += 2
        self._words[number] = result

    def _count_in(self, number: int, pair: Pair, frequency: int, changes: dict[Pair, int]) -> None:
        changes[pair] += frequency
        self._words_with[pair].add(number)

    def _apply(self, changes: dict[Pair, int]) -> set[Pair]:
        changed = {pair for pair, change in changes.items() if change}
        for pair in changed:
            self.counts[pair] += changes[pair]
            if not self.counts[pair]:
                del self.counts[pair]
                self._words_with.pop(pair, None)
        return changed
