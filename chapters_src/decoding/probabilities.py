"""Log-probabilities with enough precision, and sampling."""

import torch
from torch import Tensor


def upcast(logits: Tensor) -> Tensor:
    """Return logits in float32 at least: bfloat16 has three digits, too few for sums over a vocabulary."""
    return logits if logits.dtype == torch.float64 else logits.float()


def log_probabilities_of(ids: Tensor, logits: Tensor) -> Tensor:
    """Return the log-probability of each token, in natural logarithms: ids (...), logits (..., V) -> (...).

    `log_softmax` cannot underflow. The logarithm of a float32 softmax is minus infinity for a token whose
    logit is 104 below the largest.
    """
    return logits.log_softmax(dim=-1).gather(-1, ids[..., None]).squeeze(-1)


def draw(probabilities: Tensor, num_draws: int, generator: torch.Generator) -> Tensor:
    """Draw without replacement from probabilities, (B, V): (B, num_draws), in the order drawn.

    This happens on the generator's device, so that results do not depend on the model's.
    """
    on_device = probabilities.to(generator.device)
    return torch.multinomial(on_device, num_draws, generator=generator).to(probabilities.device)


def check_generator(generator: object) -> None:
    """Raise a TypeError unless the argument is a generator."""
    if not isinstance(generator, torch.Generator):
        raise TypeError(f"generator={generator!r}: sampling needs a torch.Generator().manual_seed(...)")
