"""Checkpoints: folders that appear complete or not at all, so that a run survives a full disk or a crash.

A checkpoint is built in a folder beside its final place, flushed to the disk, and moved into place by one
rename. A manifest holds the SHA-256 of each file, so that later damage is noticed.
"""

import contextlib
import hashlib
import json
import math
import os
import shutil
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import torch
from accelerate import Accelerator, PartialState
from accelerate.utils import gather_object, set_seed
from filelock import FileLock, Timeout
from safetensors import SafetensorError
from torch import nn

from chapters_src.training.conditions import Conditions, differences
from chapters_src.training.history import History
from chapters_src.training.launch import full_tensor, run_on_all_ranks, unwrap
from chapters_src.training.order import Steps, Stream

KEEP = 2  # Checkpoints kept: the newest, and the previous one in case the newest gets damaged.

_MANIFEST = "manifest.json"
_PARTIAL = ".partial"
_LOCK = ".lock"
_PATIENCE = 10.0  # Seconds until a network file system has to show a new file on all computers.


class CheckpointError(RuntimeError):
    """A checkpoint cannot be written or used. The message says why, and what to do."""


class RunCheckpoints:
    """What a run saves, and how it is resumed. Without a folder nothing happens.

    Accelerate writes and reads weights (safetensors), optimizers and random generators. Next to them are the
    history, the conditions under which the run may be resumed, and the place in a stream. No file can execute
    code when it is read, with one exception: under FSDP with sharded checkpoints, the metadata that PyTorch
    writes are a pickle.

    The accelerator has prepared the model.
    """

    def __init__(
        self,
        folder: str | Path | None,
        accelerator: Accelerator,
        model: nn.Module,
        steps: Steps | Stream,
        conditions: Conditions,
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self.accelerator, self.model, self.steps = accelerator, model, steps
        self.conditions = conditions
        self.rank, self.num_processes = accelerator.process_index, accelerator.num_processes
        self.data_file = f"data_{0 if steps.is_shared else self.rank}.pt"
        if self.folder is not None:
            accelerator.register_save_state_pre_hook(self._store_as_the_model_names_it)
            accelerator.register_load_state_pre_hook(self._load_as_the_model_names_it)

    def _store_as_the_model_names_it(
        self, models: list[nn.Module], weights: list[dict[str, torch.Tensor]], folder: str
    ) -> None:
        """Remove the prefixes of wrappers from names, and all names but one of a tied tensor."""
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

    def save(self, history: History) -> None:
        """Write a checkpoint after the last step of the history. All processes call it.

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
        state = self.steps.state()
        if state is not None and (self.accelerator.is_main_process or not self.steps.is_shared):
            torch.save(state, place / self.data_file)
        if self.accelerator.is_main_process:
            run = {
                "conditions": self.conditions,
                "total_steps": self.steps.total_steps,
                "processes": self.num_processes,
                "history": asdict(history),
            }
            (place / "run.json").write_text(json.dumps(run), encoding="utf-8")

    def load(self) -> History:
        """Resume from the newest intact checkpoint, if there is one. All processes call it.

        It returns the history up to there; an empty one if there is no checkpoint.

        Raises:
            CheckpointError: the checkpoint is of another run or model, or all checkpoints are damaged.
        """
        if self.folder is None:
            return History()
        path = run_on_all_ranks(lambda: newest(self.folder), main_only=True)
        if path is None:
            return History()
        run = json.loads((path / "run.json").read_bytes())
        history = History(**run["history"])
        run_on_all_ranks(lambda: self._compare(path, run["conditions"], len(history.steps)))
        try:
            self.accelerator.load_state(path)
        except (RuntimeError, ValueError, KeyError) as error:
            raise CheckpointError(
                f"The checkpoint {path} is of another model: {error} "
                "Pass another checkpoint_folder, or delete this one."
            ) from error
        if not (path / f"random_states_{self.rank}.pkl").exists():  # There were fewer processes.
            set_seed(self.steps.seed + len(history.steps), device_specific=True)
        file = path / self.data_file
        state = torch.load(file, weights_only=True) if file.exists() else None
        self.steps.resume(len(history.steps), state)
        self._report(path, run)
        return history

    def _compare(self, path: Path, then: Conditions, num_steps: int) -> None:
        if found := differences(then, self.conditions):
            raise CheckpointError(
                f"The checkpoint {path} is of a run with other settings, options or data: {found}. "
                "Resume with the former values, or pass another checkpoint_folder."
            )
        if num_steps > self.steps.total_steps:
            raise CheckpointError(
                f"The checkpoint {path} has {num_steps} steps, and the run is now {self.steps.total_steps} "
                "steps long: make it at least as long, or pass another checkpoint_folder."
            )

    def _report(self, path: Path, run: dict[str, int]) -> None:
        if not self.accelerator.is_main_process or os.environ.get("BOOK_BUILD") == "1":
            return
        changes = []
        if run["total_steps"] != self.steps.total_steps:
            changes.append(
                f"the run had {run['total_steps']} steps and now has {self.steps.total_steps}; from here on "
                "the learning rate follows the new schedule"
            )
        if run["processes"] != self.num_processes:
            changes.append(
                f"it had {run['processes']} processes and now has {self.num_processes}, so dropout differs"
            )
        print(": ".join([f"Resuming from {path}", *["; ".join(changes)] * bool(changes)]), file=sys.stderr)


@contextlib.contextmanager
def exclusive(folder: Path | None) -> Iterator[None]:
    """Lock a folder for one run, and check that all processes see the same one. All processes call it.

    The folder is made if it does not exist; without one nothing happens. The operating system releases the
    lock when the main process ends, however it ends.

    Raises:
        CheckpointError: another run uses the folder, it cannot be made or locked, or some process sees
            another folder of this name.
    """
    if folder is None:
        yield
        return
    lock = FileLock(folder / _LOCK)
    run_on_all_ranks(lambda: _acquire(lock, folder), main_only=True)
    try:
        _check_shared(folder)
        yield
    finally:
        lock.release()


def _acquire(lock: FileLock, folder: Path) -> None:
    _make(folder)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise CheckpointError(
            f"Another run is using {folder}: wait until it has ended, or pass another checkpoint_folder."
        ) from error
    except OSError as error:
        raise CheckpointError(f"{folder} cannot be locked for this run: {error.strerror}.") from error


def _check_shared(folder: Path) -> None:
    """Check that all processes see what the main one writes, as they have to when the run is resumed."""
    if PartialState().num_processes == 1:
        return
    probe = folder / run_on_all_ranks(lambda: f".{uuid.uuid4().hex}", main_only=True)
    run_on_all_ranks(probe.touch, main_only=True)
    deadline = time.monotonic() + _PATIENCE
    while not (is_there := probe.exists()) and time.monotonic() < deadline:
        time.sleep(0.1)
    seen = gather_object([is_there])
    if PartialState().is_main_process:
        probe.unlink(missing_ok=True)
    if not all(seen):
        blind = ", ".join(str(rank) for rank, is_seen in enumerate(seen) if not is_seen)
        raise CheckpointError(
            f"{folder} is not the same folder for all processes: what the main process writes there, "
            f"process {blind} does not see. Pass a checkpoint_folder on a disk that all of them share."
        )


def save(folder: Path, step: int, write: Callable[[Path], object]) -> Path:
    """Write a checkpoint after a step, then remove all but the newest `KEEP`. All processes call it.

    The folder is made if it does not exist, and has to be visible on all computers of the run. Each process
    calls `write`, which writes files into a given folder.

    Raises:
        CheckpointError: it cannot be written. Earlier checkpoints are unchanged.
    """
    place = folder / f"step-{step:08d}"
    partial = place.with_name(place.name + _PARTIAL)

    def begin() -> None:
        shutil.rmtree(partial, ignore_errors=True)  # Left by a run that was killed at this point.
        partial.mkdir(parents=True)

    def finish() -> None:
        _seal(partial)
        if place.exists():  # It is damaged; otherwise the run would have resumed from it.
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
            "Free some space or make the folder writable, and call train again to resume."
        ) from error
    if PartialState().is_main_process:
        older = [path for path in _checkpoints(folder) if path <= place]
        for path in older[:-KEEP]:
            shutil.rmtree(path, ignore_errors=True)
    return place


def _seal(folder: Path) -> None:
    """Write the manifest with the hashes of all files, and flush everything to the disk."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    manifest = {path.relative_to(folder).as_posix(): _hash(path) for path in files}
    (folder / _MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    inside = (path.parent for path in files)
    for path in (*files, folder / _MANIFEST, *sorted({folder, *inside}, reverse=True)):
        _sync(path)


def newest(folder: Path) -> Path | None:
    """Return the newest intact checkpoint or None, and warn of each newer one that is damaged.

    The folder is made if it does not exist, so that a wrong place is noticed before the first step.

    Raises:
        CheckpointError: all checkpoints are damaged, or the folder cannot be made.
    """
    _make(folder)
    found = _checkpoints(folder)
    for path in reversed(found):
        if not (problem := _problem(path)):
            return path
        warnings.warn(f"The checkpoint {path} is damaged ({problem}): trying the previous one.", stacklevel=2)
    if found:
        raise CheckpointError(f"All checkpoints in {folder} are damaged. To start over, delete that folder.")
    return None


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(f"{folder} cannot be a folder for checkpoints: {error.strerror}.") from error


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("step-*") if path.suffix != _PARTIAL)


def _what_is_there(folder: Path) -> str:
    found = _checkpoints(folder)
    return f"The newest checkpoint is still {found[-1].name}." if found else "There is no earlier checkpoint."


def _problem(path: Path) -> str:
    """Return what is wrong with a checkpoint; an empty string if it is intact."""
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
    """Flush a file, or the entries of a folder, to the disk (Windows has no call for folders)."""
    if path.is_dir() and os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
