"""The results of decoding, as immutable objects.

The probability of a sequence is a product of many numbers below 1 and underflows soon: 0.5 to the power of
150 is 0 in float32, 0.5 to the power of 1075 in float64. Sums of logarithms do not, so everything here is a
logarithm.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Scored:
    """The log-probabilities of a given sequence."""

    log_probabilities: tuple[float, ...]  # Natural logarithms, one per token.

    @property
    def log_probability(self) -> float:
        """The log-probability of the whole sequence: the sum over its tokens."""
        return math.fsum(self.log_probabilities)


@dataclass(frozen=True)
class Continuation:
    """The text generated for one prompt.

    The log-probabilities are the model's own, before any filter, so they can be compared between methods.
    """

    ids: tuple[int, ...]  # New tokens without padding; the last one is the one that ended it.
    log_probabilities: tuple[float, ...]  # Natural logarithms, one per token.
    finished: str  # Why it ended: "end" (an end id), "stop" (a stop string) or "length".
    text: str | None = None  # Without the end token, cut before the stop string; None without a tokenizer.
    score: float | None = None  # What beam search ranks hypotheses by; None for other methods.

    @property
    def log_probability(self) -> float:
        """The log-probability of the whole sequence: the sum over its tokens."""
        return math.fsum(self.log_probabilities)
