"""Norm before or after the sublayer: at which learning rates twelve layers learn to reverse (chapter 08).

    python -m benchmarks.norm_order

An encoder of twelve layers reads twelve random tokens of twelve kinds and names them in reverse order, so
that guessing has a loss of ln 12 = 2.48. All matrices begin with Xavier's initialization, embeddings with a
standard normal one. Adam is the optimizer, without weight decay; a batch has 32 sequences, all of them new.
Rows differ in the order of norm and sublayer, in the learning rate, in the steps of linear warm-up, and in
a factor by which the loss is multiplied before its gradient is taken: that makes every gradient larger or
smaller, and asks for the same network.

The figures of the record are a dictionary with

- "settings" of model and training;
- "runs": for each row ("name", "norm_first", "learning_rate", "warm_up", "factor") and each start ("seed"
  of weights and data) "losses", the mean of each ten steps without the factor, in nats;
- "gradients": for each order and start the norm of the gradient at the second feed-forward matrix of each
  layer, before any training and without a factor, on 64 sequences.

The record is written anew after each run, so an interrupted benchmark leaves what it has. `--smoke` makes a
few steps of everything; its numbers mean nothing.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from chapters_src import records
from chapters_src.transformer import Config, Encoder
from recipes.output import write_record

LENGTH = 12  # Tokens of a sequence.
KINDS = 12  # Of tokens.
BATCH_SIZE = 32
STARTS = 4
EVERY = 10  # Steps of which the mean loss is kept.


@dataclass(frozen=True)
class Row:
    """What differs between two rows of the record."""

    name: str
    norm_first: bool
    learning_rate: float
    steps: int
    warm_up: int = 1  # Steps until the learning rate is reached.
    factor: float = 1.0  # Of the loss.


ROWS = (
    Row("pre", True, 3e-3, 600),
    Row("post", False, 3e-3, 1_200),
    Row("post, warm-up", False, 3e-3, 600, warm_up=60),
    Row("post, a third of the rate", False, 1e-3, 600),
    Row("pre, three times the rate", True, 1e-2, 600),
    Row("post, loss x 0.1", False, 3e-3, 600, factor=0.1),
    Row("pre, loss x 10", True, 3e-3, 600, factor=10.0),
)


def initialize(model: nn.Module, seed: int) -> None:
    """Draw its weights anew, whatever the library does: matrices by Xavier, embeddings standard normal.

    Args:
        model: changed in place. Its biases become zero, its gains stay.
        seed: of the weights.
    """
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if "embedding" in name:
            nn.init.normal_(parameter, generator=generator)
        elif parameter.ndim == 2:
            nn.init.xavier_uniform_(parameter, generator=generator)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)


def reversing_model(norm_first: bool, seed: int, num_layers: int = 12) -> nn.ModuleDict:
    """Make the encoder and its head, with weights that depend on the seed alone.

    Args:
        norm_first: whether the norm stands before its sublayer, else after the sum.
        seed: of the weights. Both orders get the same ones.
        num_layers: the depth.

    Returns:
        A dictionary with the encoder, "body", and the linear layer on top of it, "head".
    """
    config = Config(
        d_model=32,
        num_layers=num_layers,
        num_heads=4,
        feed_forward_width=128,
        vocab_size=KINDS,
        max_length=LENGTH,
        positions="learned",
        activation="gelu",
        norm_first=norm_first,
    )
    model = nn.ModuleDict({"body": Encoder(config), "head": nn.Linear(config.d_model, KINDS)})
    initialize(model, seed)
    return model


def reversing_loss(model: nn.ModuleDict, generator: torch.Generator, batch_size: int = BATCH_SIZE) -> Tensor:
    """Draw sequences, and return the mean loss of naming their tokens in reverse order, in nats.

    Args:
        model: of `reversing_model`.
        generator: of the sequences.
        batch_size: how many.
    """
    ids = torch.randint(KINDS, (batch_size, LENGTH), generator=generator)
    logits = model["head"](model["body"](ids, None))
    return F.cross_entropy(logits.flatten(0, 1), ids.flip(1).flatten())


def train(row: Row, seed: int, steps: int, num_layers: int = 12) -> list[float]:
    """Train one model, and return the mean loss of each ten steps.

    Args:
        row: says how.
        seed: of the weights; the sequences have seed + 1,000.
        steps: how many, a multiple of ten.
        num_layers: the depth.
    """
    model = reversing_model(row.norm_first, seed, num_layers)
    generator = torch.Generator().manual_seed(seed + 1_000)
    optimizer = torch.optim.Adam(model.parameters(), lr=row.learning_rate)
    losses = torch.empty(steps)
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = row.learning_rate * min(1, (step + 1) / row.warm_up)
        loss = reversing_loss(model, generator)
        optimizer.zero_grad()
        (row.factor * loss).backward()
        optimizer.step()
        losses[step] = loss.detach()
    return [round(value, 4) for value in losses.unflatten(0, (-1, EVERY)).mean(dim=1).tolist()]


def gradient_norms(norm_first: bool, seed: int, num_layers: int = 12) -> list[float]:
    """Return the norm of the gradient at the second feed-forward matrix of each layer, before any training.

    Args:
        norm_first: whether the norm stands before its sublayer.
        seed: of the weights; the 64 sequences have seed + 1,000.
        num_layers: the depth.
    """
    model = reversing_model(norm_first, seed, num_layers)
    reversing_loss(model, torch.Generator().manual_seed(seed + 1_000), 64).backward()
    return [layer.feed_forward.down.weight.grad.norm().item() for layer in model["body"].stack.layers]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all rows, and write the record after each run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=records.FOLDER / "norm_order.json")
    parser.add_argument("--smoke", action="store_true", help="a few steps of everything; needs an --output")
    options = parser.parse_args(arguments)
    if options.smoke and options.output == parser.get_default("output"):
        parser.error("a smoke run's numbers mean nothing: name a file for them with --output")
    gradients = [
        {"norm_first": norm_first, "seed": seed, "norms": gradient_norms(norm_first, seed)}
        for norm_first in (True, False)
        for seed in range(STARTS)
    ]
    runs = []
    for row in ROWS:
        for seed in range(STARTS):
            steps = 20 if options.smoke else row.steps
            runs.append(asdict(row) | {"steps": steps, "seed": seed, "losses": train(row, seed, steps)})
            print(row.name, seed, runs[-1]["losses"][-1], flush=True)
            settings = {
                "layers": 12,
                "d_model": 32,
                "heads": 4,
                "feed_forward_width": 128,
                "tokens": LENGTH,
                "kinds": KINDS,
                "batch_size": BATCH_SIZE,
                "guessing": math.log(KINDS),
            }
            write_record(
                options.output,
                "Losses of encoders of twelve layers that learn to reverse twelve tokens, with the norm "
                "before and after each sublayer, at several learning rates, from four starts.",
                "benchmarks/norm_order.py",
                {"settings": settings, "runs": runs, "gradients": gradients},
            )


if __name__ == "__main__":
    main()
