"""Folders that appear whole or not at all: how a training run survives a full disk and a lost machine.

A checkpoint is built in a folder beside its place, written through to the disk, and moved into place by one
rename. A manifest holds the sha256 of each file, so that one that was damaged later is noticed.
"""

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

from accelerate import PartialState
from safetensors import SafetensorError

from chapters_src.training.launch import together

KEEP = 2  # Checkpoints kept: the newest, and the one before in case the newest gets damaged.

_MANIFEST = "manifest.json"
_PARTIAL = ".partial"


class CheckpointError(RuntimeError):
    """A checkpoint cannot be written, or not be used. The message says why, and what to do."""


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
        together(begin, main_only=True)
        together(lambda: write(partial))
        together(finish, main_only=True)
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
