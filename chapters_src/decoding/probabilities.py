"""Log-probabilities in enough digits, and draws from probabilities."""

import torch
from torch import Tensor


def accurate(logits: Tensor) -> Tensor:
    """Give logits in float32 at least: bfloat16 has three digits, and sums over a vocabulary need more."""
    return logits if logits.dtype == torch.float64 else logits.float()


def log_probabilities_of(ids: Tensor, logits: Tensor) -> Tensor:
    """Give the log-probability of each token under the logits of its place.

    `log_softmax` takes the logarithm before anything can underflow; the logarithm of a softmax is minus
    infinity for a token that is 104 below the best.

    Args:
        ids: (...).
        logits: (..., V).

    Returns:
        (...), natural logarithms.
    """
    return logits.log_softmax(dim=-1).gather(-1, ids[..., None]).squeeze(-1)


def draw(probabilities: Tensor, num_draws: int, generator: torch.Generator) -> Tensor:
    """Draw without replacement, on the device of the generator, so that its seed decides on any device.

    Args:
        probabilities: (B, V).
        num_draws: of each row.
        generator: where the randomness comes from.

    Returns:
        (B, num_draws), in the order drawn.
    """
    where = probabilities.to(generator.device)
    return torch.multinomial(where, num_draws, generator=generator).to(probabilities.device)
