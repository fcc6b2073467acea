"""What a training run leaves behind besides the weights. `plots.loss_curves` draws it."""

from dataclasses import dataclass, field

import pandas as pd


@dataclass
class History:
    """How a training run went, step by step."""

    # For each step: "step" (from 1), "loss" (mean over its items), "learning_rate", "gradient_norm" (before
    # clipping), "items" (seen so far).
    steps: list[dict[str, float]] = field(default_factory=list)
    # For each evaluation: "step" (after which it was done), and what the function `evaluate` gave.
    evaluations: list[dict[str, float]] = field(default_factory=list)

    def to_frame(self) -> pd.DataFrame:
        """Give everything as one table.

        Returns:
            One row per step, its number as index; each metric is a column named "evaluation_" and its name,
            NaN in steps without evaluation.
        """
        columns = ["step", "loss", "learning_rate", "gradient_norm", "items"]
        steps = pd.DataFrame(self.steps, columns=columns).set_index("step")
        evaluations = pd.DataFrame(self.evaluations, columns=None if self.evaluations else ["step"])
        return steps.join(evaluations.set_index("step").add_prefix("evaluation_"))
