"""Log-probabilities with enough precision, and sampling."""

import torch
from torch import Tensor


def upcast(logits: Tensor) -> Tensor:
    """Return logits in float32 at least: bfloat16 has three digits, too few for sums over a vocabulary."""
    return logits if logits.dtype == torch.float64 else logits.float()


def log_probabilities_of(ids: Tensor, logits: Tensor) -> Tensor:
    """Return the log-probability of each token.

    `log_softmax` cannot underflow. The logarithm of a float32 softmax is minus infinity for a token whose
    logit is 104 below the largest.

    Args:
        ids: (...).
        logits: (..., V).

    Returns:
        (...), natural logarithms.
    """
    return logits.log_softmax(dim=-1).gather(-1, ids[..., None]).squeeze(-1)


def draw(probabilities: Tensor, num_draws: int, generator: torch.Generator) -> Tensor:
    """Draw without replacement, on the generator's device, so that results do not depend on the model's.

    Args:
        probabilities: (B, V).
        num_draws: number of draws from each row.
        generator: the source of randomness.

    Returns:
        (B, num_draws), in the order drawn.
    """
    on_device = probabilities.to(generator.device)
    return torch.multinomial(on_device, num_draws, generator=generator).to(probabilities.device)
