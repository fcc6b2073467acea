"""How long a notebook takes to read: its words, and the code that it shows."""

import re

from nbformat import NotebookNode

WORDS_A_MINUTE = 220
LINES_A_MINUTE = 20  # of code: three seconds a line
FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$]*\$", re.DOTALL)
TARGET = re.compile(r"(?<=\])\([^)]*\)|<[^>]*>")  # where a link leads, and HTML
WORD = re.compile(r"\w[\w'’-]*")
EXERCISES = re.compile(r"(?m)^## Exercises$")


def minutes(notebook: NotebookNode) -> int:
    """The minutes that it takes to read a notebook, without its exercises and what is folded.

    Args:
        notebook: executed or not; outputs do not count.

    Returns:
        At least 1; from 10 minutes on a multiple of 5.
    """
    words = lines = 0
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            before, *exercises = EXERCISES.split(cell.source, maxsplit=1)
            words += count_words(before)
            if exercises:
                break
        elif cell.cell_type == "code" and not _is_folded(cell):
            lines += sum(bool(line.strip()) for line in cell.source.splitlines())
    exactly = words / WORDS_A_MINUTE + lines / LINES_A_MINUTE
    return max(1, round(exactly)) if exactly < 10 else 5 * round(exactly / 5)


def count_words(text: str) -> int:
    """The words of a Markdown text as a reader sees it; a formula is one."""
    return len(WORD.findall(FORMULA.sub(" x ", TARGET.sub(" ", FOLDED.sub(" ", text)))))


def _is_folded(cell: NotebookNode) -> bool:
    return any(tag in ("hide-input", "hide-cell") for tag in cell.metadata.get("tags", ()))
