"""The record of a training run. `plots.loss_curves` draws it."""

import math
from dataclasses import dataclass, field

import pandas as pd
import torch
from accelerate import Accelerator


@dataclass
class History:
    """The losses and metrics of a training run, step by step."""

    # For each step: "step" (from 1), "loss" (mean over its items), "learning_rate", "gradient_norm" (before
    # clipping), "items" (seen so far).
    steps: list[dict[str, float]] = field(default_factory=list)
    # For each evaluation: "step" (after which it took place), and what `evaluate` returned.
    evaluations: list[dict[str, float]] = field(default_factory=list)

    def to_frame(self) -> pd.DataFrame:
        """Return everything as one table, a row for each step, its number as index.

        Each metric is a column named "evaluation_" and its name, NaN in steps without evaluation.
        """
        columns = ["step", "loss", "learning_rate", "gradient_norm", "items"]
        steps = pd.DataFrame(self.steps, columns=columns).set_index("step")
        evaluations = pd.DataFrame(self.evaluations, columns=None if self.evaluations else ["step"])
        return steps.join(evaluations.set_index("step").add_prefix("evaluation_"))


class Recorder:
    """Collects the numbers of each step on the device, and reads them from time to time.

    A GPU runs asynchronously; reading a number makes the program wait for it.
    """

    def __init__(self, history: History, accelerator: Accelerator) -> None:
        self.history, self.accelerator = history, accelerator
        self.pending: list[tuple[float, torch.Tensor, torch.Tensor, torch.Tensor]] = []

    def add(
        self, learning_rate: float, loss_sum: torch.Tensor, norm: torch.Tensor, num_items: torch.Tensor
    ) -> None:
        """Keep the numbers of a step: the losses of this process, and the items of all."""
        self.pending.append((learning_rate, loss_sum, norm, num_items))

    def read(self) -> None:
        """Move the pending numbers into the history.

        Raises:
            FloatingPointError: a loss or the norm of a gradient is not finite.
            ValueError: a step had no items.
        """
        if not self.pending:
            return
        learning_rates, *numbers = zip(*self.pending, strict=True)
        self.pending = []
        loss_sums, norms, counts = map(torch.stack, numbers)
        loss_sums = self.accelerator.reduce(loss_sums, "sum")
        rows = zip(learning_rates, loss_sums.tolist(), norms.tolist(), counts.tolist(), strict=True)
        for i, (learning_rate, loss_sum, norm, num_items) in enumerate(rows, start=1):
            step, items = 1, num_items
            if self.history.steps:
                step, items = self.history.steps[-1]["step"] + 1, self.history.steps[-1]["items"] + num_items
            if num_items == 0:
                raise ValueError(f"step {step}: its batches have no items, so there is no mean loss")
            loss = loss_sum / num_items
            if not math.isfinite(loss) or not (math.isfinite(norm) or self._may_overflow()):
                weights = _weights(len(learning_rates) - i)
                raise FloatingPointError(
                    f"step {step}: the loss is {loss}, the norm of its gradient {norm}. {weights} "
                    f"Look at the batch, or lower the learning rate (now {learning_rate:.3g})."
                )
            record = {"step": step, "loss": loss, "learning_rate": learning_rate}
            self.history.steps.append({**record, "gradient_norm": norm, "items": items})

    def _may_overflow(self) -> bool:
        """In fp16 a scaled gradient overflows at times; its step is skipped, and the scale is halved."""
        return self.accelerator.scaler is not None and self.accelerator.scaler.get_scale() >= 1


def _weights(steps_ago: int) -> str:
    if steps_ago == 0:
        return "The weights are still those of the previous step."
    return f"That was {steps_ago} steps ago, so the weights are corrupted: resume from the last checkpoint."
