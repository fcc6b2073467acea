"""What a training run can be told, and the learning rate that follows from it. Chapters 05, 09 and 12."""

import math
from dataclasses import dataclass

import torch

SCHEDULES = ("constant", "linear", "cosine")
PRECISIONS = ("no", "bf16")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that decides how a run goes, besides the model and the data.

    A step is one update of the weights. Exactly one of `num_epochs` and `max_steps` is given.

    Raises:
        ValueError: a value that is out of range.
    """

    learning_rate: float  # The highest one of the run, after the warm-up.
    num_epochs: int = 0  # Passes over the data.
    max_steps: int = 0  # Steps, over as many passes as that takes.
    weight_decay: float = 0.01  # Of matrices; biases and the gains of norms have none.
    warmup: float = 0.0  # Share of the steps in which the learning rate rises from 0, from 0 to 1.
    schedule: str = "linear"  # After the warm-up: "constant", or down to 0, "linear" or "cosine".
    max_grad_norm: float = 1.0  # Longer gradients are scaled down to this length; math.inf: none are.
    accumulation_steps: int = 1  # Batches of the loader that each process puts into one step.
    mixed_precision: str = "no"  # "no", or "bf16": products of matrices with 8 significant bits.
    seed: int = 0  # Of the order of the examples, of dropout, and of all else drawn on the way.
    evaluate_every: int = 0  # Steps; 0: only at the end.
    checkpoint_every: int = 0  # Steps; 0: only at the end.

    def __post_init__(self) -> None:
        counts = (
            "num_epochs",
            "max_steps",
            "accumulation_steps",
            "seed",
            "evaluate_every",
            "checkpoint_every",
        )
        for name in counts:
            value = getattr(self, name)
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"{name}={value!r} has to be a whole number, at least 0")
        if (self.num_epochs > 0) == (self.max_steps > 0):
            given = f"num_epochs={self.num_epochs}, max_steps={self.max_steps}"
            raise ValueError(f"{given}: exactly one of them has to be above 0")
        in_range = {
            "learning_rate": (0 < self.learning_rate < math.inf, "above 0"),
            "weight_decay": (0 <= self.weight_decay < math.inf, "at least 0"),
            "warmup": (0 <= self.warmup <= 1, "a share of the steps, from 0 to 1"),
            "schedule": (self.schedule in SCHEDULES, f"one of {SCHEDULES}"),
            "max_grad_norm": (self.max_grad_norm > 0, "above 0; for no clipping math.inf"),
            "accumulation_steps": (self.accumulation_steps >= 1, "at least 1"),
            "mixed_precision": (self.mixed_precision in PRECISIONS, f"one of {PRECISIONS}"),
            "seed": (self.seed < 2**32, "below 2**32"),
        }
        for name, (is_good, rule) in in_range.items():
            if not is_good:
                raise ValueError(f"{name}={getattr(self, name)!r} has to be {rule}")


def learning_rate_at(step: int, total_steps: int, settings: Settings) -> float:
    """Give the learning rate of one step.

    Warm-up and decay are those of Transformers' `get_linear_schedule_with_warmup` and its siblings. So with a
    warm-up the very first step has the rate 0 and changes nothing.

    Args:
        step: from 0.
        total_steps: of the whole run.
        settings: with `learning_rate`, `warmup` and `schedule`.

    Returns:
        From 0 to `settings.learning_rate`.

    Raises:
        ValueError: the run has no such step.
    """
    if not 0 <= step < total_steps:
        raise ValueError(f"step {step} is not in a run of {total_steps} steps, which begin at 0")
    warmup_steps = round(settings.warmup * total_steps)
    if step < warmup_steps:
        return settings.learning_rate * step / warmup_steps
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    left = {
        "constant": 1.0,
        "linear": 1 - progress,
        "cosine": (1 + math.cos(math.pi * progress)) / 2,
    }
    return settings.learning_rate * left[settings.schedule]


def best_precision(device: torch.device | str) -> str:
    """Tell which mixed precision a device does well.

    Args:
        device: as `setup` returned it.

    Returns:
        "bf16" on a graphics card that computes with bfloat16 itself, else "no". (Some processors do, too: the
        way to know is to time both.)
    """
    is_cuda = torch.device(device).type == "cuda"
    return "bf16" if is_cuda and torch.cuda.is_bf16_supported(including_emulation=False) else "no"
