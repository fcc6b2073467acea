"""What a launcher starts twice: `two_processes.py FOLDER [CASE ...]`. Each process reports what it has seen.

The cases are the functions whose names begin with `case_`; `test_two_processes.py` checks what they return.
"""

import contextlib
import json
import os
import shutil
import sys
from pathlib import Path

import datasets
import filelock
import torch
from accelerate import Accelerator, DistributedType, PartialState
from accelerate.state import AcceleratorState
from datasets.distributed import split_dataset_by_node
from small_run import compute_loss, digest, evaluate, make_batches, make_model, settings
from test_streams import Interrupted, Numbers, NumbersWithAPlace
from test_streams import run as run_stream
from torch import nn
from torch.distributed.tensor import DTensor
from torch.nn import functional as F
from torch.utils.data import DataLoader

from chapters_src.training import CheckpointError, Settings, checkpoints, full_state_dict, train
from chapters_src.transformer import Config, LanguageModel
from recipes.output import gathered

NUM_EXAMPLES = 33  # Nine batches: the last step of an epoch leaves one process without a batch.


def run(folder=None, loss=compute_loss, model=None, **changes):
    """Train in each process from other weights: the main one's count."""
    model = make_model(dropout=0, seed=PartialState().process_index) if model is None else model
    changes = {"checkpoint_every": 0 if folder is None else 5, **changes}
    batches = make_batches(num_examples=NUM_EXAMPLES)
    arguments = {"evaluate": evaluate, "checkpoint_folder": folder}
    return model, train(model, batches, loss, settings(**changes), **arguments)


def report(model, history):
    return {"weights": digest(model), "steps": history.steps, "evaluations": history.evaluations}


def case_one_batch_each(folder):
    model, history = run(folder / "one", accumulation_steps=1)
    again, _ = run(folder / "one", accumulation_steps=1)
    return {**report(model, history), "again": digest(again), "processes": PartialState().num_processes}


def case_accumulated(folder):
    """Three batches each, of which the last step of an epoch has two and one."""
    exchanges = []

    def watched(model, batch):
        exchanges.append(model.require_backward_grad_sync)
        return compute_loss(model, batch)

    model, history = run(loss=watched, accumulation_steps=3)
    return {**report(model, history), "exchanges": exchanges}


def case_twice_and_unused(folder):
    """The same model in two runs; a part of it is never used."""
    model = make_model(dropout=0)
    torch.manual_seed(0)
    model.register_module("unused", nn.Linear(2, 2))
    unused = [tensor.clone() for tensor in model.unused.parameters()]

    class Used(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, inputs):
            return self.model[:5](inputs)

    both = Used()
    histories = [run(model=both, accumulation_steps=1, max_steps=6)[1] for _ in range(2)]
    is_kept = all(map(torch.equal, unused, model.unused.parameters()))
    return {"steps": [history.steps for history in histories], "unused is kept": is_kept}


def case_stream(folder):
    model, history, seen = run_stream(Numbers(), max_steps=8)
    return {**report(model, history), "seen": seen}


def case_streams_of_their_own(folder):
    """Each process reads other numbers; then one of them reads others than before."""
    rank = PartialState().process_index
    own = {"split_stream": False, "max_steps": 8}

    def stream(first=0):
        return NumbersWithAPlace(first=100 * rank + first)

    through, expected, all_seen = run_stream(stream(), folder / "own through", **own)
    try:
        run_stream(stream(), folder / "own broken", stop_before=5, **own)
    except Interrupted:
        again, found, seen = run_stream(stream(), folder / "own broken", model_seed=5, **own)
    try:
        run_stream(stream(first=rank), folder / "own broken", **own)
    except CheckpointError as error:
        refused = str(error)
    return {
        "same": digest(again) == digest(through) and found == expected and seen == all_seen[4:],
        "first": all_seen[0],
        "refused": refused,
    }


def case_interrupted(folder):
    """With dropout, which each process draws for itself."""
    calls = []

    def loss(model, batch):
        calls.append(batch)
        if len(calls) == 13:
            raise Interrupted
        return compute_loss(model, batch)

    def start():
        return make_model(dropout=0.5, seed=PartialState().process_index)

    through, expected = run(folder / "through", model=start(), accumulation_steps=1)
    try:
        run(folder / "broken", loss, start(), accumulation_steps=1)
    except Interrupted:
        again, found = run(folder / "broken", model=start(), accumulation_steps=1)
    return {"same": digest(again) == digest(through) and found == expected, "weights": digest(again)}


def case_compiled(folder):
    """A compiled model with tied weights, stored under the names of the model that was compiled."""

    def tied():
        model = make_model(dropout=0)
        torch.manual_seed(0)
        model.append(nn.Linear(3, 3)), model.append(nn.Linear(3, 3))
        model[6].weight = model[5].weight
        return model

    _, expected = run(model=tied(), max_steps=6)
    compiled = torch.compile(tied(), backend="eager")
    _, found = run(folder / "compiled", model=compiled, max_steps=6)
    _, resumed = run(folder / "compiled", model=tied(), max_steps=6)
    return {"expected": expected.steps, "found": found.steps, "resumed": resumed.steps}


def case_sharded_by_accelerate(folder):
    """FSDP2 as a launcher requests it, on CPUs, which Accelerate takes for GPUs here."""
    environment = {
        "ACCELERATE_USE_FSDP": "true",
        "FSDP_VERSION": "2",
        "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
        "FSDP_TRANSFORMER_CLS_TO_WRAP": "TransformerLayer",
        "FSDP_CPU_RAM_EFFICIENT_LOADING": "false",
        "FSDP_STATE_DICT_TYPE": "SHARDED_STATE_DICT",
    }
    ids = torch.randint(50, (16, 9), generator=torch.Generator().manual_seed(1))
    rows = [{"ids": row[:-1], "labels": row[1:]} for row in ids]

    def loss(model, batch):
        logits = model(batch["ids"], None)
        return F.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten(), reduction="sum")

    def start(seed=0):
        torch.manual_seed(seed)
        return LanguageModel(language_model_config())

    def fit(model, place=None, **changes):
        settings = Settings(learning_rate=0.01, max_steps=6, **changes)
        history = train(model, DataLoader(rows, 2), loss, settings, checkpoint_folder=place)
        return [row["loss"] for row in history.steps]

    plain, sharded = start(), start()
    losses = {"plain": fit(plain), "plain, second run": fit(plain)}
    before = AcceleratorState._shared_state.copy(), PartialState._shared_state.copy()
    os.environ.update(environment)
    PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU
    losses["sharded"] = fit(sharded, folder / "fsdp", checkpoint_every=3)
    if PartialState().is_main_process:
        shutil.rmtree(folder / "fsdp" / "step-00000006")
    losses["resumed"] = fit(start(), folder / "fsdp", checkpoint_every=3)
    losses["sharded, second run"] = fit(sharded)
    weights = full_state_dict(sharded)
    whole = gathered(sharded, lambda: start(seed=3))
    try:
        fit(start(seed=PartialState().process_index))
    except ValueError as error:
        losses["error"] = str(error)
    for name in environment:
        del os.environ[name]
    for state, content in zip((AcceleratorState, PartialState), before, strict=True):
        state._shared_state.clear()
        state._shared_state.update(content)
    with torch.no_grad():
        found = [model and model(ids, None) for model in (whole, plain)]
    return {
        **losses,
        "names": sorted(weights),
        "expected names": sorted(plain.state_dict()),
        "difference": None if whole is None else (found[0] - found[1]).abs().max().item(),
        "is sharded": any(isinstance(parameter, DTensor) for parameter in sharded.parameters()),
    }


def case_data(folder):
    """Each process brings other data, or streams of which each would drop a part; or half of them."""
    rank, found = PartialState().process_index, {}

    def attempt(name, action):
        try:
            action()
        except (CheckpointError, ValueError) as error:
            found[name] = f"{type(error).__name__}: {error}"

    others = make_batches(num_examples=NUM_EXAMPLES)
    others.dataset.tensors[0][:] += rank
    options = settings(checkpoint_every=0, evaluate_every=0)
    attempt("values", lambda: train(make_model(), others, compute_loss, options))
    fewer = make_batches(num_examples=NUM_EXAMPLES - rank)
    attempt("number", lambda: train(make_model(), fewer, compute_loss, options))
    attempt("dropout", lambda: run(model=make_model(dropout=rank / 4)))
    rows = datasets.Dataset.from_dict({"number": [*range(24)]}).to_iterable_dataset(num_shards=2)
    own = split_dataset_by_node(rows, rank, 2)
    attempt("split by node", lambda: run_stream(own, max_steps=2))
    found["split by node, told"] = run_stream(own, max_steps=2, split_stream=False)[2]
    return found


def case_folders(folder):
    """Folders that are not shared, and a second run."""
    rank, found = PartialState().process_index, {}

    def attempt(name, place):
        try:
            run(place, max_steps=2)
        except CheckpointError as error:
            found[name] = str(error)

    before, checkpoints._PATIENCE = checkpoints._PATIENCE, 1.0
    attempt("not shared", folder / f"node {rank}")
    checkpoints._PATIENCE = before
    (folder / "locked").mkdir(exist_ok=True)
    with filelock.FileLock(folder / "locked" / ".lock") if rank == 0 else contextlib.nullcontext():
        PartialState().wait_for_everyone()
        attempt("locked", folder / "locked")
    attempt("free", folder / "locked")
    found["left"] = sorted(path.name for path in (folder / "locked").iterdir())
    return found


def case_other_number_of_processes(folder):
    """Go on where one process stopped, each with half of its batch; a third of a step fits nothing."""
    found = {}
    _, history = run(folder / "of one process", accumulation_steps=1, max_steps=20, evaluate_every=0)
    found["same step"] = history.steps
    try:
        run(folder / "of one process", accumulation_steps=2, max_steps=20, evaluate_every=0)
    except CheckpointError as error:
        found["twice the step"] = str(error)
    _, _, found["stream"] = run_stream(Numbers(24), folder / "stream of one", batch_size=2, max_steps=9)
    return found


def case_errors(folder):
    errors = {}

    def attempt(name, **arguments):
        try:
            run(**arguments)
        except (CheckpointError, ValueError) as error:
            errors[name] = f"{type(error).__name__}: {error}"

    really_save = torch.save
    if PartialState().process_index == 1:  # Only one of them has no room.
        torch.save = fail
    attempt("disk", folder=folder / "full", accumulation_steps=1)
    torch.save = really_save
    os.environ["ACCELERATE_USE_FSDP"] = "true"
    os.environ["FSDP_VERSION"] = "2"
    attempt("fsdp")
    del os.environ["ACCELERATE_USE_FSDP"]
    return errors


def fail(*arguments, **options):
    """Fail as a full disk does."""
    raise OSError(28, "No space left on device")


def language_model_config():
    return Config(vocab_size=50, d_model=16, num_layers=2, num_heads=2, feed_forward_width=32, max_length=9)


if __name__ == "__main__":
    torch.set_num_threads(1)
    Accelerator()  # Before any PartialState, which would not read ACCELERATE_USE_CPU.
    place = Path(sys.argv[1])
    cases = sys.argv[2:] or [name for name in list(globals()) if name.startswith("case_")]
    found = {name: globals()[name](place) for name in cases}
    (place / f"result-{PartialState().process_index}.json").write_text(json.dumps(found), encoding="utf-8")
    torch.distributed.destroy_process_group()
