"""What a launcher starts, once or on each card: `on_cards.py FOLDER`. The main process reports.

It trains a small language model of ours with padded batches, each run as `EXPECTED` in `test_cuda.py` asks.
"""

import json
import os
import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from torch.nn import functional as F
from torch.utils.data import DataLoader

from chapters_src.training import Settings, train
from chapters_src.transformer import Config, LanguageModel

LENGTH, NUM_TEXTS, VOCAB_SIZE = 16, 48, 64


class Model(torch.nn.Module):
    """A language model that takes a mask of padding."""

    def __init__(self, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        config = Config(
            vocab_size=VOCAB_SIZE,
            d_model=32,
            num_layers=2,
            num_heads=2,
            feed_forward_width=64,
            max_length=LENGTH,
        )
        self.model = LanguageModel(config)

    def forward(self, ids, attention_mask):
        return self.model(ids, attention_mask)


def texts():
    """Make sequences in which each token follows from the one before, padded on the left."""
    generator = torch.Generator().manual_seed(0)
    made = []
    for number in range(NUM_TEXTS):
        first = torch.randint(1, VOCAB_SIZE, (), generator=generator)
        ids = (first + torch.arange(LENGTH)) % (VOCAB_SIZE - 1) + 1
        mask = torch.arange(LENGTH) >= number % 6
        labels = ids.roll(-1).where(mask, torch.tensor(-100))
        labels[-1] = -100
        made.append({"ids": ids * mask, "attention_mask": mask.long(), "labels": labels})
    return made


def compute_loss(model, batch):
    logits = model(batch["ids"], batch["attention_mask"])
    return F.cross_entropy(logits.flatten(0, 1).float(), batch["labels"].flatten(), reduction="sum")


def run(folder=None, stop_after=None, model_seed=0, **changes):
    calls = []

    def loss(model, batch):
        calls.append(batch)
        if stop_after is not None and len(calls) > stop_after:
            raise InterruptedError
        return compute_loss(model, batch)

    values = {"learning_rate": 1e-2, "max_steps": 40, "checkpoint_every": 10 if folder else 0}
    batches = DataLoader(texts(), 8 // int(os.environ.get("WORLD_SIZE", "1")), shuffle=True)
    history = train(
        Model(model_seed),
        batches,
        loss,
        Settings(**{**values, **changes}),
        evaluate=lambda model: {"dtype bytes": next(model.parameters()).element_size()},
        checkpoint_folder=folder,
    )
    return [row["loss"] for row in history.steps]


def main(folder):
    accelerator = Accelerator()
    found = {"kind": accelerator.distributed_type.value, "device": accelerator.device.type}
    found["processes"] = accelerator.num_processes
    found["full"] = run()
    if "ACCELERATE_MIXED_PRECISION" not in os.environ:
        found["bf16"], found["fp16"] = run(mixed_precision="bf16"), run(mixed_precision="fp16")
    try:
        run(folder / "run", stop_after=25)
    except InterruptedError:
        found["resumed"] = run(folder / "run", model_seed=1)
    if accelerator.is_main_process:
        (folder / "result.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
