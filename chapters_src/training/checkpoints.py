"""Checkpoints, as folders that appear whole or not at all: a run survives a full disk and a lost machine.

A checkpoint is built in a folder beside its place, written through to the disk, and moved into place by one
rename. A manifest holds the sha256 of each file, so that one that was damaged later is noticed.
"""

import hashlib
import json
import math
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from accelerate import Accelerator, PartialState
from safetensors import SafetensorError
from torch import nn

from chapters_src.training.history import History
from chapters_src.training.launch import accumulation_steps, full_tensor, run_on_all_ranks, unwrap
from chapters_src.training.order import Steps, Stream
from chapters_src.training.settings import Settings

KEEP = 2  # Checkpoints kept: the newest, and the one before in case the newest gets damaged.

_MANIFEST = "manifest.json"
_PARTIAL = ".partial"


class CheckpointError(RuntimeError):
    """A checkpoint cannot be written, or not be used. The message says why, and what to do."""


class RunCheckpoints:
    """What a run leaves on the disk, and how it goes on from there. Without a folder nothing happens.

    Accelerate writes and reads weights (safetensors), optimizers and generators; beside them are the history,
    the conditions under which the run may go on, and the place in a stream. No file can run code when it is
    read, but for one under FSDP with sharded checkpoints: the metadata that PyTorch writes are a pickle.

    Args:
        folder: of the run, or None.
        accelerator: of the run; it has prepared the model.
        model: as the accelerator gave it.
        steps: which batches the run sees.
        settings: of the run.
    """

    def __init__(
        self,
        folder: str | Path | None,
        accelerator: Accelerator,
        model: nn.Module,
        steps: Steps | Stream,
        settings: Settings,
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self.accelerator, self.model, self.steps = accelerator, model, steps
        self.data_file = f"data_{accelerator.process_index}.pt"
        if self.folder is not None:
            self.conditions = json.loads(json.dumps(self._conditions(settings)))
            accelerator.register_save_state_pre_hook(self._store_as_the_model_names_it)
            accelerator.register_load_state_pre_hook(self._load_as_the_model_names_it)

    def _store_as_the_model_names_it(
        self, models: list[nn.Module], weights: list[dict[str, torch.Tensor]], folder: str
    ) -> None:
        """Leave out what DDP puts before each name, and all names but one of a tied tensor."""
        for i, model in enumerate(map(unwrap, models[: len(weights)])):  # FSDP writes files of its own.
            state = model.state_dict(keep_vars=True)
            names = {id(tensor): name for name, tensor in reversed(state.items())}  # The first name of each.
            weights[i] = {
                name: tensor.detach().contiguous()
                for name, tensor in state.items()
                if names[id(tensor)] == name
            }

    def _load_as_the_model_names_it(self, models: list[nn.Module], folder: str) -> None:
        models[:] = map(unwrap, models)

    def _conditions(self, settings: Settings) -> dict[str, object]:
        """Collect what has to be the same for the run to go on."""
        return {
            **{name: value for name, value in asdict(settings).items() if name != "log_every"},
            "accumulation_steps": accumulation_steps(settings),
            "mixed_precision": self.accelerator.mixed_precision,
            "processes": self.accelerator.num_processes,
            **self.steps.fingerprint(),
        }

    def save(self, history: History) -> None:
        """Write a checkpoint after the last step of the history. All processes call it.

        Args:
            history: up to now.

        Raises:
            FloatingPointError: a weight is not finite.
            CheckpointError: the checkpoint cannot be written.
        """
        if self.folder is None:
            return
        step = len(history.steps)
        weights = [weight.detach() for weight in self.model.parameters() if weight.is_floating_point()]
        if not math.isfinite(full_tensor(nn.utils.get_total_norm(weights))):
            raise FloatingPointError(
                f"step {step}: a weight is not finite, so no checkpoint is written. Lower the learning rate."
            )
        save(self.folder, step, lambda place: self._write(place, history))

    def _write(self, place: Path, history: History) -> None:
        self.accelerator.save_state(place)
        if (state := self.steps.state()) is not None:
            torch.save(state, place / self.data_file)
        if self.accelerator.is_main_process:
            run = {"conditions": self.conditions, "history": asdict(history)}
            (place / "run.json").write_text(json.dumps(run), encoding="utf-8")

    def load(self) -> History:
        """Go on from the newest intact checkpoint, if there is one. All processes call it.

        Returns:
            The history up to there; an empty one if there is no checkpoint.

        Raises:
            CheckpointError: it is of another run or model, or all checkpoints are damaged.
        """
        if self.folder is None:
            return History()
        path = run_on_all_ranks(lambda: newest(self.folder), main_only=True)
        if path is None:
            return History()
        run = json.loads((path / "run.json").read_bytes())
        run_on_all_ranks(lambda: self._compare(path, run["conditions"]))
        try:
            self.accelerator.load_state(path)
        except (RuntimeError, ValueError, KeyError) as error:
            raise CheckpointError(
                f"The checkpoint {path} is of another model: {error} "
                "Give another checkpoint_folder, or delete this one."
            ) from error
        history = History(**run["history"])
        file = path / self.data_file
        state = torch.load(file, weights_only=True) if file.exists() else None
        self.steps.resume(len(history.steps), state)
        if self.accelerator.is_main_process and os.environ.get("BOOK_BUILD") != "1":
            print(f"Going on from {path}", file=sys.stderr)
        return history

    def _compare(self, path: Path, then: Mapping[str, object]) -> None:
        now = self.conditions
        differences = [
            f"{name} was {then.get(name)!r} and is {now.get(name)!r}"
            for name in {**then, **now}
            if then.get(name) != now.get(name)
        ]
        if differences:
            raise CheckpointError(
                f"The checkpoint {path} is of a run with other settings or data: {'; '.join(differences)}. "
                "Go on with the former ones, or give another checkpoint_folder."
            )


def save(folder: Path, step: int, write: Callable[[Path], object]) -> Path:
    """Write a checkpoint, then remove all but the newest `KEEP`. All processes call it.

    Args:
        folder: of the run; made if it is not there. On several computers: one that all of them see.
        step: number of the step after which it is written.
        write: writes files into the folder that it is given. Each process calls it.

    Returns:
        The folder of the checkpoint.

    Raises:
        CheckpointError: it cannot be written. Those before are as they were.
    """
    place = folder / f"step-{step:08d}"
    partial = place.with_name(place.name + _PARTIAL)

    def begin() -> None:
        shutil.rmtree(partial, ignore_errors=True)  # Left by a run that was killed here.
        partial.mkdir(parents=True)

    def finish() -> None:
        _seal(partial)
        if place.exists():  # Damaged, or the run would have gone on from it.
            shutil.rmtree(place)
        partial.rename(place)
        _sync(folder)

    try:
        run_on_all_ranks(begin, main_only=True)
        run_on_all_ranks(lambda: write(partial))
        run_on_all_ranks(finish, main_only=True)
    except (OSError, RuntimeError, SafetensorError) as error:
        if PartialState().is_main_process:
            shutil.rmtree(partial, ignore_errors=True)
        raise CheckpointError(
            f"After step {step} no checkpoint can be written to {folder}: "
            f"{getattr(error, 'strerror', None) or error}. "
            f"{_what_is_there(folder)} The model in memory has the weights of step {step}. "
            "Make room, or make the folder writable, and call train again to go on from the checkpoint."
        ) from error
    if PartialState().is_main_process:
        older = [path for path in _checkpoints(folder) if path <= place]
        for path in older[:-KEEP]:
            shutil.rmtree(path, ignore_errors=True)
    return place


def _seal(folder: Path) -> None:
    """Write all files through to the disk, and the manifest that holds their hashes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    manifest = {path.relative_to(folder).as_posix(): _hash(path) for path in files}
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    inside = (path.parent for path in files)
    for path in (*files, folder / _MANIFEST, *sorted({folder, *inside}, reverse=True)):
        _sync(path)


def newest(folder: Path) -> Path | None:
    """Find the newest checkpoint that is intact. For each damaged one that is newer there is a warning.

    Args:
        folder: of the run; made if it is not there, so that a wrong place is noticed before the first step.

    Returns:
        Its folder, or None if there are no checkpoints.

    Raises:
        CheckpointError: there are checkpoints, and all are damaged; or the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(f"{folder} cannot be a folder for checkpoints: {error.strerror}.") from error
    found = _checkpoints(folder)
    for path in reversed(found):
        if not (problem := _problem(path)):
            return path
        warnings.warn(f"The checkpoint {path} is damaged ({problem}): trying the one before.", stacklevel=2)
    if found:
        raise CheckpointError(f"All checkpoints in {folder} are damaged. To start anew, delete that folder.")
    return None


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("step-*") if path.suffix != _PARTIAL)


def _what_is_there(folder: Path) -> str:
    found = _checkpoints(folder)
    return f"The newest checkpoint is still {found[-1].name}." if found else "There is no earlier checkpoint."


def _problem(path: Path) -> str:
    """Say what is wrong with a checkpoint; empty if nothing is."""
    try:
        for name, expected in json.loads((path / _MANIFEST).read_bytes()).items():
            if _hash(path / name) != expected:
                return f"the content of {name} has changed"
    except (OSError, ValueError, AttributeError) as error:
        return str(error)
    return ""


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    """Write a file through to the disk, or which names a folder holds (Windows has no call for folders)."""
    if path.is_dir() and os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
