"""What decoding gives back: small objects that do not change.

Probabilities of whole sequences are products of many numbers below 1, and soon too small for a float: 0.5 to
the power 150 is 0 in float32, 0.5 to the power 1075 in float64. Their logarithms are sums, and stay what they
are. So everything here is a logarithm.
"""

import math
from dataclasses import dataclass


class _Summed:
    log_probabilities: tuple[float, ...]

    @property
    def log_probability(self) -> float:
        """The logarithm of the probability of the whole sequence: the sum over its tokens."""
        return math.fsum(self.log_probabilities)


@dataclass(frozen=True)
class Scored(_Summed):
    """How probable a model finds a given sequence."""

    log_probabilities: tuple[float, ...]  # Natural logarithms, one for each token.


@dataclass(frozen=True)
class Continuation(_Summed):
    """What was written after one prompt.

    The log-probabilities are the model's own, as it gives them without filters. So they can be compared
    between methods, whichever distribution the tokens were drawn from.
    """

    ids: tuple[int, ...]  # New tokens without padding; that which ended it is the last one.
    log_probabilities: tuple[float, ...]  # Natural logarithms, one for each token.
    finished: str  # Why no more was written: "end" (an end id), "stop" (a stop string), "length".
    text: str | None = None  # Without the end token, and cut before the stop string; None: no tokenizer.
    score: float | None = None  # Of beam search: what hypotheses are ranked by.
