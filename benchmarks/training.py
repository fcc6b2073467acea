"""The training of the language model of chapter 12: our loop beside a plain one, two processes beside one.

The plain loop is what a short training script has: a forward pass, a backward pass, clipping, AdamW and a
cosine schedule, without Accelerate, without checks and without a history. Two processes train on a CPU over
gloo, launched by torchrun; each has one thread, and both share the global batch. Only the steps count, not
the start of the processes.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from benchmarks.measure import Result, taking_turns
from chapters_src.training import Settings, train
from chapters_src.transformer import LanguageModel
from recipes.language_model import Sizes, config_of, loss_of

BLOCKS, LENGTH, STEPS, TURNS = 8, 256, 4, 5
REPOSITORY = Path(__file__).resolve().parents[1]


def results() -> list[Result]:
    """Compare the two loops, and one process with two.

    Returns:
        One result for each line of the table.
    """
    torch.manual_seed(0)
    print(f"training: {BLOCKS} x {LENGTH} tokens", file=sys.stderr, flush=True)
    what = f"language model of chapter 12, {STEPS} steps of {BLOCKS} x {LENGTH} tokens"
    ours, theirs = LanguageModel(config_of(Sizes(), 0.0)), LanguageModel(config_of(Sizes(), 0.0))
    loops = taking_turns(
        f"{what}: the recipe's loop", lambda: recipe(ours), "a plain loop", lambda: plain(theirs), TURNS
    )
    one, two = (seconds_in_processes(number) for number in (1, 2))
    return [loops, Result(f"{what}: two processes, one thread each", two, "one process", one)]


def blocks() -> list[dict[str, Tensor]]:
    """Make the examples of all steps, of random tokens."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(Sizes().vocab_size, (STEPS * BLOCKS, LENGTH + 1), generator=generator)
    return [{"ids": row[:-1], "labels": row[1:]} for row in ids]


def settings() -> Settings:
    """Return those of the recipe, for few steps and with AdamW alone."""
    return Settings(
        learning_rate=1e-3, max_steps=STEPS, schedule="cosine", weight_decay=0.1, betas=(0.9, 0.95)
    )


def recipe(model: LanguageModel, blocks_at_a_time: int = BLOCKS) -> None:
    """Train with the package's loop."""
    train(model, DataLoader(blocks(), batch_size=blocks_at_a_time), loss_of, settings())


def plain(model: nn.Module) -> None:
    """Train with a loop that has the same updates and nothing else."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    model.train()
    for step, batch in enumerate(DataLoader(blocks(), batch_size=BLOCKS)):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * (1 + math.cos(math.pi * step / STEPS)) / 2
        logits = model(batch["ids"], None)
        loss = F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()  # what it would print


def seconds_in_processes(number: int) -> float:
    """Launch processes that share the batch, and return the seconds of the second of two trainings."""
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "seconds.json"
        command = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            f"--nproc-per-node={number}",
        ]
        command += ["-m", "benchmarks.training", str(file)]
        subprocess.run(command, check=True, env=environment, cwd=REPOSITORY, timeout=600)
        return json.loads(file.read_text(encoding="utf-8"))


def launched(file: Path) -> None:
    """Train twice in this process, one of several, and let the first write the seconds of the second time."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = LanguageModel(config_of(Sizes(), 0.0))
    for _ in range(2):
        begin = time.perf_counter()
        recipe(model, BLOCKS // int(os.environ["WORLD_SIZE"]))
        seconds = time.perf_counter() - begin
    if os.environ["RANK"] == "0":
        file.write_text(json.dumps(seconds), encoding="utf-8")


if __name__ == "__main__":
    launched(Path(sys.argv[1]))
