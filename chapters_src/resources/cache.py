"""The cache: what is built or fetched once on a computer, atomic and verified."""

import errno
import functools
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from chapters_src.files import atomic_write, locked

MANIFEST = "manifest.json"


class ResourceError(RuntimeError):
    """A resource is not available. The message says which, where we looked for it, and what to do."""


def cache_folder() -> Path:
    """Return the folder where this book keeps what it has built or fetched. It may not exist yet.

    It is `BOOK_CACHE` if that is set, else our folder in the user's cache folder (`XDG_CACHE_HOME`, or the
    platform's default).
    """
    if folder := os.environ.get("BOOK_CACHE"):
        return Path(folder).expanduser().absolute()
    usual = {"darwin": "~/Library/Caches", "win32": os.environ.get("LOCALAPPDATA", "~/AppData/Local")}
    parent = os.environ.get("XDG_CACHE_HOME") or usual.get(sys.platform, "~/.cache")
    return Path(parent).expanduser().absolute() / "transformers-taken-apart"


def cached(name: str, key: Mapping[str, object], build: Callable[[Path], None]) -> Path:
    """Return the folder that `build` fills, from the cache if it is intact there.

    Entries are atomic: each is built in a temporary folder, described by a manifest with the sha256 of each
    file, and then moved into place. While one process builds an entry, others wait for it. An entry that no
    longer matches its manifest is built again.

    Args:
        name: a folder name for entries of this kind, such as "encoder".
        key: everything that the content depends on (versions, settings, hashes), JSON-serializable.
        build: fills the empty folder that it is given.

    Returns:
        The folder of the entry. Do not change its files.

    Raises:
        ResourceError: the cache folder cannot be written, or the disk is full.
    """
    entry = _entry(name, key)
    if _is_intact(entry):
        return entry
    try:
        with locked(entry):
            if not _is_intact(entry):  # Another process may have built it while we waited.
                _build_entry(entry, key, build)
    except OSError as error:
        if not _concerns_cache(error, entry):
            raise
        raise ResourceError(
            f"The cache entry {name!r} cannot be written to {entry.parent}: {error.strerror}. "
            "Free some space there, or set the environment variable BOOK_CACHE to a writable folder."
        ) from error
    return entry


def is_cached(name: str, key: Mapping[str, object]) -> bool:
    """Return whether `cached` would find an intact entry."""
    return _is_intact(_entry(name, key))


def _entry(name: str, key: Mapping[str, object]) -> Path:
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    return cache_folder() / name / digest


def _build_entry(entry: Path, key: Mapping[str, object], build: Callable[[Path], None]) -> None:
    with atomic_write(entry) as unfinished:
        unfinished.mkdir()
        build(unfinished)
        manifest = {"key": key, "files": _hashes(unfinished)}
        (unfinished / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        _remove(entry)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _is_intact(entry: Path) -> bool:
    try:
        return json.loads((entry / MANIFEST).read_text(encoding="utf-8"))["files"] == _hashes(entry)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)
    return {path.relative_to(folder).as_posix(): sha256(path) for path in files}


def sha256(path: Path) -> str:
    """Return the hash of a file, computed once per process and state of the file."""
    state = path.stat()
    return _hash_of_state(path, state.st_size, state.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _hash_of_state(path: Path, size: int, modified: int) -> str:
    """Hash a file once per process and file state: the encoder's weights take 0.2 s."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _concerns_cache(error: OSError, entry: Path) -> bool:
    """Return whether an error is about the cache folder, not about what was being built."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return True
    where = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    return where is not None and (where.is_relative_to(cache_folder()) or entry.is_relative_to(where))
