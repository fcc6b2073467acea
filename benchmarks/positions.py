"""Kinds of positions: where a model that learned to look three tokens back still does (chapter 08).

    python -m benchmarks.positions

A causal language model of two layers reads random tokens of twelve kinds, and says after each the token that
stood three places before it. What the tokens are does not help: the model has to know where they stand.
Guessing is right one time in twelve. Training sequences have 8 to 32 tokens, all of them new, 32 in a batch.
Matrices begin with Xavier's initialization, embeddings of tokens and positions with a standard normal one.
Adam is the optimizer. Rows differ in the kind of position. (The package has no relative bias as in T5. Its
"sinusoidal_concatenated" is "sinusoidal" with the numbers in another order.)

Learned positions have a table of 64 rows, as long as the longest sequence. Training reaches the first 32 of
them, the others stay as they were drawn.

The figures of the record are a dictionary with

- "settings" of model, training and scores;
- "runs": for each kind ("positions"), number of "steps" and start ("seed" of weights and data) the shares of
  right tokens among new sequences, the first three tokens left out:
  - "within": sequences of 32 tokens;
  - "longer": sequences of 64 tokens, the 33rd to the 64th;
  - "short": sequences of 12 tokens, at positions 0 to 11;
  - "moved by 20": the same sequences at positions 20 to 31, which training reaches in longer sequences;
  - "moved by 40": the same sequences at positions 40 to 51, which training never reaches.

A kind that has not learned at every start within the training length gets twice the steps besides.

The record is written anew after each run, so an interrupted benchmark leaves what it has. `--smoke` makes a
few steps of everything; its numbers mean nothing.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.norm_order import initialize
from chapters_src import records
from chapters_src.transformer import Config, LanguageModel
from recipes.output import write_record

KINDS = ("none", "learned", "sinusoidal", "rotary")
STEPS = 1_000
ROWS = (*((kind, STEPS) for kind in KINDS), ("none", 2 * STEPS))
BACK = 3  # Places from a token to the one that has to be named.
TOKENS = 12  # Kinds of tokens.
SHORTEST, LONGEST = 8, 32  # Tokens of a sequence in training.
SHORT = 12  # Tokens of a short sequence.
MOVES = (20, 40)  # By how much its positions are moved.
BATCH_SIZE = 32
STARTS = 4
SCORED = 500  # Sequences of each length.


def looking_back(positions: str, seed: int) -> LanguageModel:
    """Make the model, with weights that depend on the seed and the kind of position alone.

    Args:
        positions: one of `KINDS`.
        seed: of the weights.
    """
    config = Config(
        d_model=64,
        num_layers=2,
        num_heads=4,
        feed_forward_width=256,
        vocab_size=TOKENS,
        max_length=2 * LONGEST,
        positions=positions,
        scale_embedding=False,
        activation="gelu",
        tie_weights=False,
    )
    model = LanguageModel(config)
    initialize(model, seed)
    return model


def draw(length: int, generator: torch.Generator, number: int = BATCH_SIZE) -> tuple[Tensor, Tensor]:
    """Draw sequences, (number, length), and the tokens to name after the fourth and all later tokens."""
    ids = torch.randint(TOKENS, (number, length), generator=generator)
    return ids, ids[:, :-BACK]


def train(positions: str, seed: int, steps: int) -> LanguageModel:
    """Train one model.

    Args:
        positions: one of `KINDS`.
        seed: of the weights; the sequences have seed + 1,000.
        steps: how many.
    """
    model = looking_back(positions, seed)
    generator = torch.Generator().manual_seed(seed + 1_000)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps):
        length = int(torch.randint(SHORTEST, LONGEST + 1, (), generator=generator))
        ids, targets = draw(length, generator)
        logits = model(ids, None)[:, BACK:]
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def right(model: nn.Module, ids: Tensor, targets: Tensor, moved: int = 0) -> Tensor:
    """Return where the model names the right token.

    Args:
        model: a language model.
        ids: of `draw`, (B, T).
        targets: of `draw`, (B, T - 3).
        moved: the position of the first token.

    Returns:
        Boolean, (B, T - 3).
    """
    positions = moved + torch.arange(ids.size(1))[None]
    return model(ids, None, positions=positions)[:, BACK:].argmax(dim=-1) == targets


def scores(model: nn.Module, seed: int) -> dict[str, float]:
    """Return the shares of right tokens, by the names of the record.

    Args:
        model: after training.
        seed: the sequences have seed + 2,000.
    """
    generator = torch.Generator().manual_seed(seed + 2_000)
    within, longer, short = (draw(length, generator, SCORED) for length in (LONGEST, 2 * LONGEST, SHORT))
    are_right = {
        "within": right(model, *within),
        "longer": right(model, *longer)[:, LONGEST - BACK :],
        "short": right(model, *short),
    }
    are_right |= {f"moved by {moved}": right(model, *short, moved=moved) for moved in MOVES}
    return {name: round(each.float().mean().item(), 4) for name, each in are_right.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Train and score all models, and write the record after each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=records.FOLDER / "positions.json")
    parser.add_argument("--smoke", action="store_true", help="a few steps of everything; needs an --output")
    options = parser.parse_args(arguments)
    if options.smoke and options.output == parser.get_default("output"):
        parser.error("a smoke run's numbers mean nothing: name a file for them with --output")
    torch.set_num_threads(1)
    settings = {
        "layers": 2,
        "d_model": 64,
        "heads": 4,
        "feed_forward_width": 256,
        "tokens": TOKENS,
        "back": BACK,
        "lengths": [SHORTEST, LONGEST],
        "moves": list(MOVES),
        "batch_size": BATCH_SIZE,
        "learning_rate": 1e-3,
        "scored": SCORED,
        "guessing": 1 / TOKENS,
    }
    runs = []
    for kind, planned in ROWS:
        for seed in range(STARTS):
            steps = 5 if options.smoke else planned
            run = {"positions": kind, "steps": steps, "seed": seed}
            runs.append(run | scores(train(kind, seed, steps), seed))
            print(runs[-1], flush=True)
            write_record(
                options.output,
                "Shares of right tokens of causal language models that learn to name the token three places "
                "before, with four kinds of positions, within and beyond the training length and with "
                "positions moved, from four starts.",
                "benchmarks/positions.py",
                {"settings": settings, "runs": runs},
            )


if __name__ == "__main__":
    main()
