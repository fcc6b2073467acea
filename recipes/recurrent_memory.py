"""What recurrent networks keep, by their start, their width and their training: two tables of chapter 06.

    python recipes/recurrent_memory.py --output build/recurrent-memory

Both use the corners of squares (`chapters_src/data/corners.md`), a batch of 64 fresh sequences for each step,
and the training loop of the chapter: Adam, a learning rate that rises to 0.005 and falls, clipped gradients.
The output holds one file for each finished run, and the record is written after each of them. Its figures are

- "starts": for each kind of network, start, number of steps and seed the share of sequences whose first
  corner is named after 19 points of noise (by chance 0.25); networks with states of 32 numbers;
- "laps": for each model, width of its state, start (bias of the gates that keep), steps and seed the number
  of its weights and, for laps of several lengths, the share of corners of the second lap that are
  right, given those before; all were trained on laps of 2 to 12 corners. "one vector" hands over the
  encoder's last state, "attention" also looks at all states by additive attention.

`--smoke` runs everything on a small scale, in seconds; its numbers mean nothing, and its record stays in the
output.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from chapters_src.data import corners
from recipes.output import kept, options_of_runs, parser_of_runs, write_record
from recipes.recurrent_translation import AdditiveAttention

NOISE = 0.1  # Of the corners.
SEEDS = range(4)
KEPT = 32  # Numbers of a state in the first table.
DISTANCE = 19  # Points of noise after the corner.
LONGEST = 12  # Corners of a lap in training.
LENGTHS = (2, 4, 6, 8, 10, 12)
LEARNING_RATE = 5e-3

Batch = tuple[tuple[Tensor, ...], Tensor]  # What a model reads, and the labels.


def trained(model: nn.Module, draw: Callable[[], Batch], steps: int) -> nn.Module:
    """Train as the chapter does."""
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
    for _ in range(steps):
        inputs, labels = draw()
        loss = F.cross_entropy(model(*inputs).flatten(0, -2), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model


@torch.no_grad()
def right(model: nn.Module, batch: Batch) -> float:
    """Return the share of labels that the model gives."""
    inputs, labels = batch
    return (model(*inputs).argmax(-1) == labels).float().mean().item()


# Starts ---------------------------------------------------------------------------------------------------


class NameFirst(nn.Module):
    """Reads a sequence, and names a corner from the last state."""

    def __init__(self, network: nn.RNNBase) -> None:
        super().__init__()
        self.network, self.head = network, nn.Linear(KEPT, 4)

    def forward(self, points: Tensor) -> Tensor:
        """Return four logits for each sequence."""
        return self.head(self.network(points)[0][:, -1])


def network(kind: str, start: float | None) -> nn.RNNBase:
    """Make a network as PyTorch does, or with a start that keeps.

    Args:
        kind: "RNN", "GRU" or "LSTM".
        start: for a GRU or an LSTM the bias of the gate that keeps; for a plain network the factor of an
            orthogonal matrix.

    Returns:
        The network.
    """
    made = getattr(nn, kind)(2, KEPT, batch_first=True)
    if start is not None:
        with torch.no_grad():
            if kind == "RNN":
                nn.init.orthogonal_(made.weight_hh_l0).mul_(start)
            else:  # The second block: z of a GRU, f of an LSTM.
                made.bias_ih_l0[KEPT : 2 * KEPT] = start
    return made


def first_corners(count: int, generator: torch.Generator) -> Batch:
    """Draw corners, each followed by points of noise."""
    points, labels = corners.laps(count, 1, noise=NOISE, generator=generator)
    rest = torch.randn(count, DISTANCE, 2, generator=generator)
    return (torch.cat([points[:, :1], rest], dim=1),), labels[:, 0]


def of_start(kind: str, start: float | None, steps: int, seed: int) -> dict[str, Any]:
    """Train one network to name the first corner."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = trained(NameFirst(network(kind, start)), lambda: first_corners(64, generator), steps)
    found = right(model, first_corners(2000, generator))
    return {"kind": kind, "start": start, "steps": steps, "seed": seed, "right": found}


# Laps -----------------------------------------------------------------------------------------------------


class Copier(nn.Module):
    """An encoder and a decoder of the chapter, with or without attention."""

    def __init__(self, width: int, attention: bool) -> None:
        super().__init__()
        self.encoder = nn.GRU(2, width, batch_first=True)
        self.decoder = nn.GRU(2, width, batch_first=True)
        self.head = nn.Linear(width, 4)
        self.attention = AdditiveAttention(width) if attention else None
        self.join = nn.Linear(2 * width, width) if attention else None

    def forward(self, source: Tensor, prefix: Tensor) -> Tensor:
        """Return four logits for each position of the prefix."""
        states, last = self.encoder(source)
        decoded, _ = self.decoder(prefix, last)
        if self.attention is not None:
            context = self.attention(decoded, states) @ states
            decoded = torch.tanh(self.join(torch.cat([context, decoded], dim=-1)))
        return self.head(decoded)


def laps(count: int, length: int, generator: torch.Generator) -> Batch:
    """Draw laps of one length."""
    points, labels = corners.laps(count, length, noise=NOISE, generator=generator)
    source, prefix, _ = corners.source_query_target(points, given=length)
    return (source, prefix), labels[:, length:]


def of_laps(model: str, width: int, steps: int, seed: int, start: float | None = None) -> dict[str, Any]:
    """Train one model on laps of all lengths."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)

    def draw() -> Batch:
        length = int(torch.randint(2, LONGEST + 1, (), generator=generator))
        return laps(64, length, generator)

    copier = Copier(width, model == "attention")
    if start is not None:
        with torch.no_grad():  # The gates that keep, in encoder and decoder.
            for gru in (copier.encoder, copier.decoder):
                gru.bias_ih_l0[width : 2 * width] = start
    trained(copier, draw, steps)
    return {
        "model": model,
        "width": width,
        "start": start,
        "steps": steps,
        "seed": seed,
        "weights": sum(p.numel() for p in copier.parameters()),
        "right": {str(n): right(copier, laps(1000, n, generator)) for n in LENGTHS},
    }


# The runs -------------------------------------------------------------------------------------------------


def wanted(smoke: bool) -> Iterator[tuple[str, Callable[..., dict[str, Any]], tuple]]:
    """Yield a table, the function that makes a row of it, and its arguments."""
    few = (lambda steps: 2 + steps // 1000) if smoke else (lambda steps: steps)
    starts = [("RNN", 1.2), ("GRU", 3.0), ("LSTM", 3.0), ("LSTM", 1.0)]
    rows = [(kind, None, steps) for kind in ("RNN", "GRU", "LSTM") for steps in (300, 1200)]
    for seed in SEEDS:
        for kind, start, steps in [*rows, *((*start, 300) for start in starts)]:
            yield "starts", of_start, (kind, start, few(steps), seed)
        for model, width, steps in (
            ("one vector", 64, 1000),
            ("attention", 16, 1000),
            ("one vector", 16, 1000),
            ("one vector", 64, 4000),
            ("one vector", 128, 1000),
        ):
            yield "laps", of_laps, (model, width, few(steps), seed)
        yield "laps", of_laps, ("one vector", 64, few(1000), seed, 3.0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make all runs, and write the record."""
    parser = parser_of_runs("Train the small recurrent networks of chapter 06.", "recurrent_memory")
    options = options_of_runs(parser, arguments)
    figures: dict[str, list] = {"starts": [], "laps": []}
    for table, make, settings in wanted(options.smoke):
        path = options.output / f"{table}-{'-'.join(map(str, settings)).replace(' ', '_')}.json"
        row = kept(path, partial(make, *settings))
        print(row, flush=True)
        figures[table].append(row)
        what = "Small recurrent networks on corners: the first of twenty named, and whole laps repeated."
        write_record(options.record, what, "recipes/recurrent_memory.py", figures)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
