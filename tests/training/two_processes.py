"""What a launcher starts twice: `two_processes.py FOLDER`. Each process reports what it has seen."""

import json
import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from small_run import compute_loss, digest, evaluate, make_batches, make_model, settings

from chapters_src.training import CheckpointError, checkpoints, train


def main(folder):
    """Train, go on from the end, and train once more onto a disk that is full."""
    torch.set_num_threads(1)
    rank = Accelerator().process_index
    one_batch_each = settings(accumulation_steps=1)

    def run(place):
        model = make_model(dropout=0, seed=rank)  # Other weights in each process: the main one's count.
        return model, train(
            model,
            make_batches(),
            compute_loss,
            one_batch_each,
            evaluate=evaluate,
            checkpoint_folder=folder / place,
        )

    model, history = run("run")
    again, _ = run("run")
    result = {"weights": digest(model), "steps": history.steps, "evaluations": history.evaluations}
    result.update({"again": digest(again), "devices": Accelerator().num_processes})
    checkpoints._write = full_disk
    try:
        run("full")
    except CheckpointError as error:
        result["disk error"] = f"CheckpointError: {error}"
    (folder / f"result-{rank}.json").write_text(json.dumps(result), encoding="utf-8")


def full_disk(path, content):
    """Fail as a full disk does."""
    raise OSError(28, "No space left on device")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
