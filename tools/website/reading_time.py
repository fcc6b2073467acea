"""How long a notebook takes: to read its open text and code, and to solve its exercises.

This is the only place that says so. The site shows both times at the top of a chapter and sums them on the
start page.
"""

import re
from collections.abc import Iterable

from nbformat import NotebookNode

WORDS_A_MINUTE = 200
SECONDS_A_LINE = 15  # of code
FOLDING_TAGS = {"hide-cell", "hide-input", "remove-cell", "remove-input"}
_FOLDED = re.compile(r'<details.*?</details>|<div class="machine".*?</div>', re.DOTALL)
_FORMULA_OR_TARGET = re.compile(r"\$[^$]*\$|\]\([^)]*\)")  # each counts as a word
_PARTS = re.compile(r"(?m)^(?=#+ )")
_NOT_CORE = re.compile(r"#+ .*(?:Five questions|Exercises|Further reading)")
_ESTIMATE = re.compile(r"(?m)^\*\*\d+\.\d+ \((?:[\w-]+, )?(\d+) min\)\*\*")


def minutes(notebook: NotebookNode) -> float:
    """Return the minutes that it takes to read what is open in a notebook.

    Folded cells, `<details>`, the places of machines, and the sections Five questions, Exercises and Further
    reading do not count.

    Args:
        notebook: executed or not; outputs do not count.
    """
    words = lines = 0
    core = True
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            for part in _PARTS.split(_FOLDED.sub("", cell.source)):
                if _NOT_CORE.match(part):
                    core = False
                elif part.startswith("## "):
                    core = True
                words += core * count_words(part)
        elif core and cell.cell_type == "code" and not FOLDING_TAGS & set(cell.metadata.get("tags", ())):
            lines += count_lines(cell.source)
    return words / WORDS_A_MINUTE + lines * SECONDS_A_LINE / 60


def count_words(text: str) -> int:
    """Return the number of words in a Markdown text.

    An inline formula and the target of a link are a word each; a displayed formula counts its symbols.
    """
    return len(re.findall(r"\w+", _FORMULA_OR_TARGET.sub(" x ", text)))


def count_lines(code: str) -> int:
    """Return the number of lines of code that are neither blank nor only a comment."""
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in code.splitlines())


def exercise_minutes(notebook: NotebookNode) -> int:
    """Return the sum of the estimates in the exercises' headings, such as `**3.2 (20 min)**`."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return sum(map(int, _ESTIMATE.findall(text)))


def total(times: Iterable[float]) -> str:
    """Add up minutes, and return the sum as people say it.

    Up to 100 minutes it is rounded to a minute, beyond that to a quarter of an hour.
    """
    whole = sum(times)
    if whole <= 100:
        return f"{whole:.0f} min"
    hours, quarters = divmod(round(whole / 15), 4)
    return f"{hours} h" + (f" {15 * quarters} min" if quarters else "")
