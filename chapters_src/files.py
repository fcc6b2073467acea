"""Files and folders that are whole or not there, whatever happens while they are written.

What is written goes to a temporary neighbor first, and one rename brings it to its place. So nobody sees half
of it, and after an exception or on a full disk the former content is still there and nothing is left behind.
Only a killed process leaves its temporary neighbor, a hidden folder with ".partial" in its name; whoever
holds the lock next removes it.
"""

import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path of the same name, where a file or a folder is to be made; then move it to its place.

    The folder that holds the place is made if it is not there. A file that is there is replaced, and so is an
    empty folder.

    Raises:
        OSError: it cannot be written, or a folder that is not empty has the place.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=_prefix(path), dir=path.parent) as place:
        yield Path(place) / path.name
        os.replace(Path(place) / path.name, path)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file atomically (see `atomic_write`), in UTF-8, its line ends as they are."""
    with atomic_write(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="")


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a file or folder, while others wait, and remove what a killed process has left.

    The lock is a file beside what is to be written, which stays; the system releases it when the process
    dies.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        for left in path.parent.glob(f"{glob.escape(_prefix(path))}*"):
            shutil.rmtree(left)
        yield


def _prefix(path: Path) -> str:
    return f".{path.name}.partial-"
