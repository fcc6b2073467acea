"""A run that takes a second, for tests and for the processes that they start: `python small_run.py FOLDER`.

Dropout, accumulation and batches of unequal size are on, and checkpoints fall into the middle of an epoch.
"""

import hashlib
import json
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from chapters_src.training import Settings, train

NUM_EXAMPLES = 37


def make_model(dropout=0.2, seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Linear(6, 16), nn.LayerNorm(16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 3)
        )


def make_batches(batch_size=4, num_examples=NUM_EXAMPLES, **options):
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(num_examples, 6, generator=generator)
    labels = torch.randint(0, 3, (num_examples,), generator=generator)
    options = {"shuffle": True, "collate_fn": collate, **options}
    return DataLoader(TensorDataset(inputs, labels), batch_size, **options)


def collate(examples):
    inputs, labels = zip(*examples, strict=True)
    return {"inputs": torch.stack(inputs), "labels": torch.stack(labels)}


def compute_loss(model, batch):
    return F.cross_entropy(model(batch["inputs"]), batch["labels"], reduction="sum")


def evaluate(model):
    """Drop a part of the inputs at random: an evaluation that draws."""
    inputs, labels = make_batches().dataset.tensors
    kept = inputs * (torch.rand_like(inputs) < 0.9)
    return {"loss": F.cross_entropy(model(kept), labels).item()}


def settings(**changes):
    values = {
        "learning_rate": 0.02,
        "max_steps": 40,
        "warmup": 0.1,
        "schedule": "cosine",
        "accumulation_steps": 3,
        "evaluate_every": 8,
        "checkpoint_every": 5,
    }
    return Settings(**{**values, **changes})


def digest(model):
    """Hash the bits of all weights."""
    weights = (tensor.contiguous().numpy().tobytes() for tensor in model.state_dict().values())
    return hashlib.sha256(b"".join(weights)).hexdigest()


def slowly(model, batch):
    """Take so long that somebody can stop the process in the middle."""
    time.sleep(0.01)
    return compute_loss(model, batch)


if __name__ == "__main__":
    torch.set_num_threads(1)
    trained = make_model()
    history = train(
        trained, make_batches(), slowly, settings(), evaluate=evaluate, checkpoint_folder=sys.argv[1]
    )
    result = {"weights": digest(trained), "steps": history.steps, "evaluations": history.evaluations}
    (Path(sys.argv[1]) / "result.json").write_text(json.dumps(result), encoding="utf-8")
