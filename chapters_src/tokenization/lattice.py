"""All segmentations of a word at once: the lattice of the Unigram model (chapter 03).

A word of n characters has up to 2^(n-1) segmentations, but only n + 1 positions where a piece can begin or
end. Draw an arrow for each piece of the vocabulary, from its start to its end: every path from 0 to n is a
segmentation, and its probability is the product of the probabilities of its pieces. The best path, the total
probability of all paths, and the average number of uses of a piece each need one pass over the arrows.

All scores are natural logarithms of probabilities, so that products become sums and nothing underflows.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import exp, inf, log

END = ""  # the key in a trie node that marks the end of a piece
Trie = dict  # character -> Trie, and END -> the piece
Arrow = tuple[int, str]  # the start of a piece, and the piece
Lattice = list[list[Arrow]]  # for each position in the word, the arrows that end there


def build_trie(pieces: Iterable[str]) -> Trie:
    """Store pieces in a trie, so that one walk finds all pieces at a position of a text.

    The nested dictionaries `{"a": {"": "a", "b": {"": "ab"}}}` hold "a" and "ab".
    """
    trie: Trie = {}
    for piece in pieces:
        node = trie
        for character in piece:
            node = node.setdefault(character, {})
        node[END] = piece
    return trie


def pieces_at(word: str, start: int, trie: Trie) -> Iterator[str]:
    """Yield the pieces of the vocabulary at position `start` of a word, the shortest first."""
    node = trie
    for position in range(start, len(word)):
        node = node.get(word[position])
        if node is None:
            return
        if END in node:
            yield node[END]


def best_segmentation(
    word: str,
    trie: Trie,
    scores: Mapping[str, float],
    unknown_score: float = -inf,
    without: str | None = None,
) -> list[str]:
    """Find the most probable segmentation of a word, from left to right (the Viterbi algorithm).

    `scores` are the log-probabilities of the pieces in the trie. A single character that is not a piece
    counts as one, with the score `unknown_score`. The piece `without` is excluded. Ties go to the
    segmentation with the longer last piece. The pieces concatenate to the word; an empty list if there is no
    segmentation.
    """
    best = [0.0] + [-inf] * len(word)
    previous = [0] * (len(word) + 1)
    for start in range(len(word)):
        for piece in pieces_at(word, start, trie):
            end = start + len(piece)
            if best[start] + scores[piece] > best[end] and piece != without:
                best[end], previous[end] = best[start] + scores[piece], start
        if word[start] not in scores and best[start] + unknown_score > best[start + 1]:
            best[start + 1], previous[start + 1] = best[start] + unknown_score, start
    if best[-1] == -inf:
        return []
    pieces, end = [], len(word)
    while end:
        pieces.append(word[previous[end] : end])
        end = previous[end]
    return pieces[::-1]


def build_lattice(word: str, trie: Trie) -> Lattice:
    """Find all occurrences of pieces in a word, as arrows, by the position where they end."""
    lattice: Lattice = [[] for _ in range(len(word) + 1)]
    for start in range(len(word)):
        for piece in pieces_at(word, start, trie):
            lattice[start + len(piece)].append((start, piece))
    return lattice


def forward(lattice: Lattice, scores: Mapping[str, float]) -> tuple[float, list[list[float]]]:
    """Add up the probabilities of all segmentations, from left to right (the forward pass).

    Every position of the lattice has to be reachable.

    Returns:
        The log-probability of the word, summed over all its segmentations; and for each position, the share
        of the probability that arrives along each arrow.
    """
    totals, shares = [0.0], [[1.0]]
    for arrows in lattice[1:]:
        values = [totals[start] + scores[piece] for start, piece in arrows]
        highest = max(values)
        parts = [exp(value - highest) for value in values]  # relative to the highest, to avoid overflow
        whole = sum(parts)
        totals.append(highest + log(whole))
        shares.append([part / whole for part in parts])
    return totals[-1], shares


def expected_counts(lattice: Lattice, scores: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """Compute how often each piece is used in a word, averaged over all segmentations by their probability.

    After the forward pass, probability 1 flows back from the end of the word. Each position splits what it
    gets among its arrows, by their shares; the flow along an arrow is the probability that its piece is used
    there.

    Returns:
        The log-probability of the word, and the expected count of each piece that fits in it.
    """
    log_probability, shares = forward(lattice, scores)
    received = [0.0] * (len(lattice) - 1) + [1.0]
    counts: defaultdict[str, float] = defaultdict(float)
    for end in range(len(lattice) - 1, 0, -1):
        for (start, piece), share in zip(lattice[end], shares[end], strict=True):
            used = received[end] * share
            counts[piece] += used
            received[start] += used
    return log_probability, counts
