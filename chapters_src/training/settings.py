"""The settings of a training run, and the learning rate that follows from them. Chapters 05, 09 and 12."""

import math
from dataclasses import dataclass

import torch

SCHEDULES = ("constant", "linear", "cosine")
PRECISIONS = ("no", "bf16", "fp16")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that determines a run, besides the model and the data.

    A step is one update of the weights. Set exactly one of `num_epochs` and `max_steps`.

    Raises:
        ValueError: a value is out of range.
    """

    learning_rate: float  # The highest of the run, after the warm-up.
    num_epochs: int = 0  # Passes over the data.
    max_steps: int = 0  # Steps, over as many passes as they need.
    min_learning_rate: float = 0.0  # "linear" and "cosine" reach it one step after the last.
    warmup: float = 0.0  # Share of the steps in which the learning rate rises from 0, from 0 to 1.
    schedule: str = "linear"  # After the warm-up: "constant", "linear" or "cosine".
    weight_decay: float = 0.01  # Of matrices; biases and gains of norms have none.
    # Of AdamW: decay of its averages of gradients and of their squares.
    betas: tuple[float, float] = (0.9, 0.999)
    max_grad_norm: float = 1.0  # Larger gradients are scaled down to this norm; math.inf: no clipping.
    accumulation_steps: int | None = None  # Batches of each process in one step; None: the launcher's, or 1.
    mixed_precision: str | None = None  # "no", "bf16" or "fp16"; None: the launcher's, or "no".
    split_stream: bool = True  # All processes share one stream; False: each has its own.
    seed: int = 0  # Of the order of the examples, of dropout, and of all other random numbers.
    log_every: int | None = None  # Steps between two readings of the losses; None: 1 on a CPU, else 10.
    evaluate_every: int = 0  # Steps; 0: only at the end.
    checkpoint_every: int = 0  # Steps; 0: only at the end.

    def __post_init__(self) -> None:
        optional = ("accumulation_steps", "log_every")
        for name in ("num_epochs", "max_steps", "seed", "evaluate_every", "checkpoint_every", *optional):
            value, least = getattr(self, name), int(name in optional)
            is_default = value is None and name in optional
            if not is_default and (not isinstance(value, int) or value < least):
                raise ValueError(f"{name}={value!r} has to be a whole number, at least {least}")
        if (self.num_epochs > 0) == (self.max_steps > 0):
            given = f"num_epochs={self.num_epochs}, max_steps={self.max_steps}"
            raise ValueError(f"{given}: exactly one of them has to be above 0")
        in_range = {
            "learning_rate": (0 < self.learning_rate < math.inf, "above 0"),
            "min_learning_rate": (
                0 <= self.min_learning_rate <= self.learning_rate,
                "from 0 to learning_rate",
            ),
            "warmup": (0 <= self.warmup <= 1, "a share of the steps, from 0 to 1"),
            "schedule": (self.schedule in SCHEDULES, f"one of {SCHEDULES}"),
            "weight_decay": (0 <= self.weight_decay < math.inf, "at least 0"),
            "betas": (
                len(self.betas) == 2 and all(0 <= beta < 1 for beta in self.betas),
                "two numbers, from 0 and below 1",
            ),
            "max_grad_norm": (self.max_grad_norm > 0, "above 0; for no clipping math.inf"),
            "mixed_precision": (self.mixed_precision in (None, *PRECISIONS), f"one of {PRECISIONS}, or None"),
            "seed": (self.seed < 2**31, "below 2**31"),
        }
        for name, (is_good, rule) in in_range.items():
            if not is_good:
                raise ValueError(f"{name}={getattr(self, name)!r} has to be {rule}")
        if self.schedule == "constant" and self.min_learning_rate:
            given = f"min_learning_rate={self.min_learning_rate}"
            raise ValueError(f"{given} is never reached with the schedule 'constant': leave it out")


def learning_rate_at(step: int, total_steps: int, settings: Settings) -> float:
    """Return the learning rate of one step, from 0, of a run: from 0 to `settings.learning_rate`.

    Warm-up and decay are the same as in Transformers' `get_linear_schedule_with_warmup` and its siblings. So
    with a warm-up the first step has the rate 0 and changes nothing.

    Raises:
        ValueError: the run has no such step.
    """
    if not 0 <= step < total_steps:
        raise ValueError(f"step {step} is not in a run of {total_steps} steps, which begin at 0")
    warmup_steps = round(settings.warmup * total_steps)
    if step < warmup_steps:
        return settings.learning_rate * step / warmup_steps
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    left = {"constant": 1.0, "linear": 1 - progress, "cosine": (1 + math.cos(math.pi * progress)) / 2}
    lowest = settings.min_learning_rate
    return lowest + (settings.learning_rate - lowest) * left[settings.schedule]


def best_precision(device: torch.device | str) -> str:
    """Return the mixed precision that suits a device, as `setup` returned it.

    It is "bf16" on a GPU that computes in bfloat16 natively, "fp16" on other GPUs, "no" elsewhere. (Some CPUs
    are fast in bfloat16 too; time both to find out.)
    """
    if torch.device(device).type != "cuda":
        return "no"
    return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp16"
