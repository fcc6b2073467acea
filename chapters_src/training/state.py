"""What a run has to remember to go on with the same bits: weights, optimizer, random generators, history.

Weights are stored as safetensors, everything else as JSON or as PyTorch files that are read with
`weights_only=True`: no file of a checkpoint can run code.
"""

import contextlib
import io
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import nn

from chapters_src.training.checkpoints import CheckpointError
from chapters_src.training.history import History

# Random generators ----------------------------------------------------------------------------------------


def seed_generators(seed: int) -> None:
    """Seed the global generators of Python, NumPy and PyTorch, graphics cards included.

    Args:
        seed: from 0, and below 2**32.
    """
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def generator_states() -> dict[str, Any]:
    """Read the states of the global generators.

    Returns:
        "python", "numpy", "torch" and "cuda" (a list, one per graphics card), of types that `torch.load`
        takes with `weights_only=True`.
    """
    kind, keys, position, has_gauss, gauss = np.random.get_state()
    return {
        "python": random.getstate(),
        "numpy": (str(kind), keys.tolist(), int(position), int(has_gauss), float(gauss)),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def set_generator_states(states: Mapping[str, Any]) -> None:
    """Put the global generators into the states that `generator_states` has read.

    Args:
        states: of this machine or another; states of graphics cards that are not here are left out.
    """
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    for device in range(min(torch.cuda.device_count(), len(states["cuda"]))):
        torch.cuda.set_rng_state(states["cuda"][device], device)


@contextlib.contextmanager
def kept_generators() -> Iterator[None]:
    """Leave the global generators at the end of a block as they were at its beginning."""
    states = generator_states()
    try:
        yield
    finally:
        set_generator_states(states)


# The files of a checkpoint --------------------------------------------------------------------------------


def pack(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    history: History,
    conditions: Mapping[str, object],
    generators: list[dict[str, Any]],
) -> dict[str, bytes]:
    """Turn the state of a run into files.

    Args:
        model: its weights and persistent buffers are stored.
        optimizer: its moments.
        history: up to now.
        conditions: what has to be the same for the run to go on, as JSON can hold it.
        generators: `generator_states()` of each process.

    Returns:
        Name of the file -> content.
    """
    weights = {  # Copies, because safetensors refuses tensors that share memory, such as tied embeddings.
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in model.state_dict().items()
    }
    rest = io.BytesIO()
    torch.save({"optimizer": optimizer.state_dict(), "generators": generators}, rest)
    return {
        "model.safetensors": safetensors.torch.save(weights),
        "optimizer.pt": rest.getvalue(),
        "run.json": json.dumps({"conditions": conditions, "history": asdict(history)}).encode(),
    }


def unpack(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, conditions: Mapping[str, object]
) -> tuple[History, list[dict[str, Any]]]:
    """Put the state that `pack` stored into a model and its optimizer.

    Args:
        folder: of the checkpoint.
        model: gets the weights, on the device that it is on.
        optimizer: gets the moments.
        conditions: of the run that wants to go on.

    Returns:
        The history, and the states of the generators of each process.

    Raises:
        CheckpointError: the conditions differ, or the weights are those of another model.
    """
    run = json.loads((folder / "run.json").read_bytes())
    _check_conditions(folder, run["conditions"], conditions)
    rest = torch.load(folder / "optimizer.pt", map_location="cpu", weights_only=True)
    try:
        model.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"))
        optimizer.load_state_dict(rest["optimizer"])
    except (RuntimeError, ValueError) as error:
        raise CheckpointError(
            f"The checkpoint {folder} is of another model: {error} "
            "Give another checkpoint_folder, or delete this one."
        ) from error
    return History(**run["history"]), rest["generators"]


def _check_conditions(folder: Path, then: Mapping[str, object], now: Mapping[str, object]) -> None:
    differences = [
        f"{name} was {then.get(name)!r} and is {now.get(name)!r}"
        for name in {**then, **now}
        if then.get(name) != now.get(name)
    ]
    if differences:
        raise CheckpointError(
            f"The checkpoint {folder} is of a run with other settings: {'; '.join(differences)}. "
            "Go on with the former ones, or give another checkpoint_folder."
        )
