"""The data sets of the book: one module each, its files and its card beside it.

Here is what several of them read their files with.
"""

from collections.abc import Iterator
from pathlib import Path

from chapters_src import resources


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file of the package, without their ends, and their numbers from 1.

    Raises:
        resources.ResourceError: the file is missing, or a line is not UTF-8.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise resources.ResourceError(
            f"{path} is missing. Get it from this book's repository, or install the package again."
        ) from None
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        if "\ufffd" in line:
            raise damaged(path, number, f"{line!r} is not UTF-8", "save the file as UTF-8")
        yield number, line


def damaged(path: Path, number: int, problem: str, way_out: str) -> resources.ResourceError:
    """Return the error for a line that cannot be read; its number is from 1.

    `way_out` says what to do about the problem, for somebody who edits the file.
    """
    return resources.ResourceError(
        f"{path}, line {number}: {problem}; {way_out}. If you have not edited the file, restore it from "
        "this book's repository, or install the package again."
    )
