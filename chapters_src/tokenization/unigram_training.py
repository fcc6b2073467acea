"""Learning the pieces of a Unigram model (chapter 03).

Byte-pair encoding and WordPiece grow a vocabulary. Unigram shrinks one: start with far too many pieces, fit
their probabilities, drop the pieces that cost the corpus the least likelihood, and repeat.

The fit is expectation-maximization. E-step: with the current probabilities, count how often each piece is
used, averaged over all segmentations. M-step: the new probability of a piece is its share of these counts.
Each round makes the corpus at least as probable as before.

Source: Kudo 2018, https://arxiv.org/abs/1804.10959 (Section 3.2).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from math import log

from chapters_src.tokenization.lattice import (
    Lattice,
    best_segmentation,
    build_lattice,
    build_trie,
    expected_counts,
)

LONGEST_PIECE = 16  # characters
SEEDS_PER_PIECE = 10  # initial candidates per final piece
KEPT_PER_ROUND = 0.5  # share of the pieces that survive a round of pruning
EM_STEPS = 2  # per round
LEAST_COUNT = 0.5  # minimum final count of a piece, so that rare characters keep a usable score

CountedLattices = list[tuple[Lattice, int]]


def seed_pieces(
    words: Mapping[str, int], number: int, min_frequency: int = 1, excluded: Collection[str] = ()
) -> dict[str, float]:
    """Choose the pieces to start from: all characters, and the substrings that cover the most text.

    Each piece of the counted words has a weight: occurrences times length. There are fewer than `number` if
    the corpus has fewer substrings, and more if it has more characters. Substrings in `excluded` are left
    out, and those that occur less often than `min_frequency`, unless they are single characters.
    """
    characters: defaultdict[str, int] = defaultdict(int)
    substrings: defaultdict[str, int] = defaultdict(int)
    for word, frequency in words.items():
        for start in range(len(word)):
            characters[word[start]] += frequency
            for end in range(start + 2, min(len(word), start + LONGEST_PIECE) + 1):
                substrings[word[start:end]] += frequency
    weights = {
        piece: count * len(piece)
        for piece, count in substrings.items()
        if count >= min_frequency and piece not in excluded
    }
    heaviest = sorted(weights, key=lambda piece: (-weights[piece], piece))[: max(0, number - len(characters))]
    return {**characters, **{piece: weights[piece] for piece in heaviest}}


def log_probabilities(counts: Mapping[str, float], least: float = 1e-100) -> dict[str, float]:
    """Turn counts into log-probabilities: log(count / sum of all counts). This is the M-step.

    Counts below `least` are raised to it; by default just enough to keep the logarithm finite.
    """
    raised = {piece: max(count, least) for piece, count in counts.items()}
    log_total = log(sum(raised.values()))
    return {piece: log(count) - log_total for piece, count in raised.items()}


def build_lattices(words: Mapping[str, int], pieces: Iterable[str]) -> CountedLattices:
    """Build the lattice of each word, with the word's number of occurrences."""
    trie = build_trie(pieces)
    return [(build_lattice(word, trie), frequency) for word, frequency in words.items()]


def count_pieces(lattices: CountedLattices, scores: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """Count how often each piece is used in the corpus, averaged over all segmentations: the E-step.

    Returns:
        The log-likelihood of the corpus under `scores`, in nats, and the expected count of each piece.
    """
    log_likelihood = 0.0
    counts = dict.fromkeys(scores, 0.0)
    for lattice, frequency in lattices:
        log_probability, in_word = expected_counts(lattice, scores)
        log_likelihood += frequency * log_probability
        for piece, count in in_word.items():
            counts[piece] += frequency * count
    return log_likelihood, counts


def losses(counts: Mapping[str, float], scores: Mapping[str, float]) -> dict[str, float]:
    """Estimate for each piece of two characters or more how much log-likelihood goes with it, in nats.

    The best other segmentation of its characters replaces the piece wherever it was used.
    """
    trie = build_trie(scores)
    result = {}
    for piece in scores:
        if len(piece) > 1:
            substitutes = best_segmentation(piece, trie, scores, without=piece)
            result[piece] = counts[piece] * (scores[piece] - sum(scores[other] for other in substitutes))
    return result


def prune(counts: Mapping[str, float], scores: Mapping[str, float], number: int) -> dict[str, float]:
    """Keep all single characters, and of the other pieces those with the highest losses, `number` in all."""
    loss = losses(counts, scores)
    by_loss = sorted(loss, key=lambda piece: (-loss[piece], piece))
    characters = [piece for piece in counts if len(piece) == 1]
    return {piece: counts[piece] for piece in [*characters, *by_loss][:number]}


def learn_pieces(
    words: Mapping[str, int], number: int, min_frequency: int = 1, excluded: Collection[str] = ()
) -> list[tuple[str, float]]:
    """Learn a Unigram vocabulary from counted words: pieces with log-probabilities, the most probable first.

    `number` is at least that of distinct characters. There are fewer pieces if the corpus has fewer
    substrings. `min_frequency` and `excluded` are as for `seed_pieces`.
    """
    scores = log_probabilities(seed_pieces(words, SEEDS_PER_PIECE * number, min_frequency, excluded))
    counts: dict[str, float] = {}
    while True:
        lattices = build_lattices(words, scores)
        for _ in range(EM_STEPS):
            _, counts = count_pieces(lattices, scores)
            scores = log_probabilities(counts)
        if len(scores) <= number:
            scores = log_probabilities(counts, least=LEAST_COUNT)
            return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        scores = log_probabilities(prune(counts, scores, max(number, int(KEPT_PER_ROUND * len(scores)))))
