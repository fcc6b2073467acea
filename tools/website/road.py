"""The road through the chapters: what builds on what, three ways through the book, and what they take.

The start page shows it. The drawing is a file, `book/road.svg`. All else is read from `_toc.yml`, from the
notebooks and from the records of their execution; only the ways are chosen here.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import nbformat
import yaml

from execute import record
from paths import ROOT
from website.reading_time import exercise_minutes, minutes, total

WAYS = {  # name of a way through the book: for whom, and its chapters, of which those that exist are taken
    "use": ("You want models to do a task, and to know when to trust them.", "01 03 04 05 13 14 15 16"),
    "understand": ("You want to know what happens inside, and why.", "01 02 03 06 07 08 11"),
    "build": ("You want to write, train and run transformers of your own.", "03 07 08 09 12 13 15 16"),
}
DRAWING = ROOT / "book" / "road.svg"  # a test compares it with the book and with WAYS


class Chapter(NamedTuple):
    """A chapter as the start page shows it."""

    number: str
    title: str  # without the number
    page: str  # relative to book/
    part: str
    needs: tuple[str, ...]  # numbers of the earlier chapters that it names under "You need"
    reading: float  # minutes
    exercises: int  # minutes, by their own estimates
    running: float | None  # minutes, None if it was not executed


def chapters() -> list[Chapter]:
    """The chapters of `_toc.yml`, in its order."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    found = []
    for part in contents["parts"]:
        for entry in part["chapters"]:
            path = ROOT / f"{entry['file']}.ipynb"
            if entry["file"].startswith("notebooks/") and path.name[:2].isdigit():
                found.append(_chapter(path, part["caption"]))
    return found


def _chapter(path: Path, part: str) -> Chapter:
    notebook, known = nbformat.read(path, 4), record(path)
    opening, number = notebook.cells[0].source, path.name[:2]
    title = re.search(r"(?m)^# (?:\d\d )?(.+)$", opening)[1]
    needs = re.search(r"(?ms)^\*\*You need\*\*.*?(?=^$|\Z)", opening)
    named = re.findall(r"\]\((\d\d)_\w+\.ipynb", needs[0] if needs else "")
    earlier = tuple(sorted({other for other in named if other < number}))
    running = known["seconds"] / 60 if known else None
    page = f"../notebooks/{path.stem}.html"
    reading, exercises = minutes(notebook), exercise_minutes(notebook)
    return Chapter(number, title, page, part, earlier, reading, exercises, running)


def road(book: Sequence[Chapter]) -> str:
    """Show the drawing of all chapters and the three ways, with the list of the ways beside it."""
    drawing = DRAWING.read_text(encoding="utf-8")
    around = raw(f'<div class="front-along">{drawing}<div>'), raw("</div></div>")
    return f"{around[0]}\n{ways(book)}\n{around[1]}"


def ways(book: Sequence[Chapter]) -> str:
    """The three ways as a list: for whom each is, and how long it takes; the drawing has the chapters."""
    lines = []
    for name, (purpose, listed) in WAYS.items():
        along = [chapter for chapter in book if chapter.number in listed.split()]
        lines.append(f"- **{name.capitalize()}.** {purpose} {_along(along)}\n")
    return "".join([*lines, f"- **All of it**, in order. {_along(book)}\n"])


def _along(book: Sequence[Chapter]) -> str:
    known = [chapter.running for chapter in book if chapter.running is not None]
    running = f"{total(known)} of running" if len(known) == len(book) else "not all of it executed yet"
    reading, exercises = total(c.reading for c in book), total(c.exercises for c in book)
    return f"{len(book)} chapters: {reading} of reading, {exercises} of exercises, {running}."


def raw(html: str) -> str:
    """HTML for the site, inside Markdown."""
    return f"```{{raw}} html\n{html}\n```\n"
