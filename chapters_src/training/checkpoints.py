"""Folders that appear whole or not at all: how a training run survives a full disk and a lost machine.

A checkpoint is built in a folder beside its place, written through to the disk, and moved into place by one
rename. A manifest holds the sha256 of each file, so that one that was damaged later is noticed.
"""

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path

KEEP = 2  # Checkpoints kept: the newest, and the one before in case the newest gets damaged.

_MANIFEST = "manifest.json"
_PARTIAL = ".partial"


class CheckpointError(RuntimeError):
    """A checkpoint cannot be written, or not be used. The message says why, and what to do."""


def save(folder: Path, step: int, files: Mapping[str, bytes]) -> Path:
    """Write a checkpoint, then remove all but the newest `KEEP`.

    Args:
        folder: of the run; made if it is not there.
        step: number of the step after which it is written.
        files: name -> content.

    Returns:
        The folder of the checkpoint.

    Raises:
        CheckpointError: it cannot be written. Those before are as they were.
    """
    place = folder / f"step-{step:08d}"
    partial = place.with_name(place.name + _PARTIAL)
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    try:
        shutil.rmtree(partial, ignore_errors=True)  # Left by a run that was killed here.
        partial.mkdir(parents=True)
        for name, content in {**files, _MANIFEST: json.dumps(hashes, indent=1).encode()}.items():
            _write(partial / name, content)
        _sync(partial)
        if place.exists():  # Damaged, or the run would have gone on from it.
            shutil.rmtree(place)
        partial.rename(place)
        _sync(folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise CheckpointError(
            f"After step {step} no checkpoint can be written to {folder}: {error.strerror or error}. "
            f"{_what_is_there(folder)} The model in memory has the weights of step {step}. "
            "Make room, or make the folder writable, and call train again to go on from the checkpoint."
        ) from error
    older = [path for path in _checkpoints(folder) if path <= place]
    for path in older[:-KEEP]:
        shutil.rmtree(path, ignore_errors=True)
    return place


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
        hashes = json.loads((path / _MANIFEST).read_bytes())
        for name, expected in hashes.items():
            with (path / name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                    return f"the content of {name} has changed"
    except (OSError, ValueError, AttributeError) as error:
        return str(error)
    return ""


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Write through to the disk which names a folder holds; Windows has no such call, and needs none."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
