"""Folders of bytes: full disks, read-only places, kills at each system call, damage afterwards."""

import errno
import os
import shutil
import warnings
from pathlib import Path

import pytest
import safetensors.torch
import torch

from chapters_src.training import checkpoints
from chapters_src.training.checkpoints import CheckpointError, newest

FILES = {"weights": b"\x00\x01" * 1000, "run.json": b"{}", "shards/0": b"a shard", "shards/.metadata": b"b"}


def save(folder, step, files):
    """Write a checkpoint with these contents."""

    def write(place):
        for name, content in files.items():
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_bytes(content)

    return checkpoints.save(folder, step, write)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_saved_is_there_and_the_newest_two_are_kept(tmp_path):
    folder = tmp_path / "a" / "run"
    assert newest(folder) is None
    for step in (9, 10, 100):
        path = save(folder, step, {**FILES, "step": str(step).encode()})
        assert newest(folder) == path
        assert {name: (path / name).read_bytes() for name in FILES} == FILES
        assert (path / "step").read_text() == str(step)
    assert names(folder) == ["step-00000010", "step-00000100"]


def damage_content(path):
    content = bytearray((path / "weights").read_bytes())
    content[500] ^= 1
    (path / "weights").write_bytes(content)


DAMAGES = {
    "a flipped bit": damage_content,
    "a cut file": lambda path: os.truncate(path / "weights", 700),
    "a missing file": lambda path: (path / "weights").unlink(),
    "a missing shard": lambda path: (path / "shards" / "0").unlink(),
    "a missing manifest": lambda path: (path / "manifest.json").unlink(),
    "a cut manifest": lambda path: os.truncate(path / "manifest.json", 30),
    "an empty manifest": lambda path: os.truncate(path / "manifest.json", 0),
    "another manifest": lambda path: (path / "manifest.json").write_text("[1, 2]"),
    "an empty folder": lambda path: (shutil.rmtree(path), path.mkdir()),
    "a file in its place": lambda path: (shutil.rmtree(path), path.write_bytes(b"")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_of_a_damaged_checkpoint_the_one_before_is_used(tmp_path, damage):
    before, after = save(tmp_path, 10, FILES), save(tmp_path, 20, FILES)
    DAMAGES[damage](after)
    with pytest.warns(UserWarning, match=r"step-00000020 is damaged \(.*previous one"):
        assert newest(tmp_path) == before


def test_a_damaged_checkpoint_counts_for_nothing_and_is_written_again(tmp_path):
    save(tmp_path, 10, FILES), damage_content(save(tmp_path, 20, FILES))
    save(tmp_path, 15, FILES)
    assert names(tmp_path) == ["step-00000010", "step-00000015", "step-00000020"]
    save(tmp_path, 20, FILES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert newest(tmp_path).name == "step-00000020"
    assert names(tmp_path) == ["step-00000015", "step-00000020"]


def test_if_all_are_damaged_nothing_starts_anew_in_silence(tmp_path):
    damage_content(save(tmp_path, 10, FILES))
    with (
        pytest.warns(UserWarning, match="damaged"),
        pytest.raises(CheckpointError, match="delete that folder"),
    ):
        newest(tmp_path)
    assert names(tmp_path) == ["step-00000010"]


@pytest.mark.parametrize("kind", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("call", ["write", "fsync", "mkdir", "rename"])
def test_a_disk_that_fails_leaves_the_former_checkpoint(tmp_path, monkeypatch, kind, call):
    before = save(tmp_path, 10, FILES)
    error = OSError(kind, os.strerror(kind))

    def fail(*args, **kwargs):
        raise error

    owner = {"write": Path, "fsync": os}.get(call, Path)
    monkeypatch.setattr(owner, "write_bytes" if call == "write" else call, fail)
    with pytest.raises(CheckpointError) as caught:
        save(tmp_path, 20, FILES)
    for part in ("After step 20", str(tmp_path), os.strerror(kind), "still step-00000010", "in memory"):
        assert part in str(caught.value)
    assert caught.value.__cause__ is error
    monkeypatch.undo()
    assert names(tmp_path) == ["step-00000010"] and newest(tmp_path) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("library", ["torch", "safetensors"])
def test_a_device_without_room_is_an_error_whoever_writes(tmp_path, library):
    def write(place):
        if library == "torch":
            torch.save({"a": torch.ones(10_000)}, "/dev/full")
        else:
            (place / "file").mkdir()
            safetensors.torch.save_file({"a": torch.ones(10_000)}, place / "file")

    with pytest.raises(CheckpointError, match=r"After step 20 .*There is no earlier checkpoint"):
        checkpoints.save(tmp_path, 20, write)
    assert names(tmp_path) == []


def test_killed_at_any_moment_the_newest_is_whole(tmp_path, monkeypatch):
    """Copy the folder before each system call that changes it; a kill there leaves what the copy has."""
    folder, seen = tmp_path / "run", []
    save(folder, 10, FILES), save(folder, 20, FILES)

    def watched(function):
        def call(*args, **kwargs):
            seen.append(shutil.copytree(folder, tmp_path / f"copy-{len(seen)}"))
            return function(*args, **kwargs)

        return call

    for owner, name in ((os, "fsync"), (Path, "mkdir"), (Path, "rename"), (shutil, "rmtree")):
        monkeypatch.setattr(owner, name, watched(getattr(owner, name)))
    new = {**FILES, "weights": b"new"}
    save(folder, 30, new)
    monkeypatch.undo()
    assert len(seen) >= 8
    for left in seen:
        found = newest(left)
        assert found.name in ("step-00000020", "step-00000030"), left
        expected = (new if found.name == "step-00000030" else FILES)["weights"]
        assert (found / "weights").read_bytes() == expected, left
        save(left, 30, new)
        assert names(left) == ["step-00000020", "step-00000030"], "what was left is cleared away"


def test_everything_is_on_the_disk_before_the_rename(tmp_path, monkeypatch):
    synced, really_sync, really_rename = [], os.fsync, Path.rename

    def sync(descriptor):
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        really_sync(descriptor)

    def rename(path, target):
        inside = {os.path.relpath(name, path) for name in synced}
        assert inside == {*FILES, "manifest.json", "shards", "."}
        synced.clear()
        return really_rename(path, target)

    if not Path("/proc/self/fd").exists():
        pytest.skip("needs /proc")
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "rename", rename)
    save(tmp_path, 1, FILES)
    assert synced == [str(tmp_path)]


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_place_that_cannot_be_a_folder_is_noticed_at_once(tmp_path, place):
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError, match="cannot be a folder for checkpoints"):
        newest(tmp_path / place)
